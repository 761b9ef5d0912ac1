"""Containers: what programs do with lists, with dictionaries, and with a `range`.

Rules of lists:
- a list is Python's own: two names of one list see each other's changes;
- elements are of one type `t`; where a method compares or orders them, they do as their
  type does in Python, and raise what it raises;
- a new list shares its elements with the old one, if they can be shared at all;
- `range`, `sorted` and `list` give lists; a `range` in a loop is never made: its length
  and its numbers are computed (`len(range(...))`, `range(...)[i]`).

Rules of dictionaries:
- a dictionary is Python's own and keeps the order of insertion; its keys are of one
  kind and equal as in Python, tensors by identity;
- `keys`, `values` and `items` give lists of what is there now (Python's views follow
  later changes);
- a schema cannot have a variable as the type of a key, so each row here is six: its
  text has `KEY` for the type, and its samples `K0` and `K1` for two keys.
"""

import math
import operator
from collections.abc import Callable, Iterator
from typing import Any

from runtime.schema.values import INT_END, INT_FIRST
from runtime.script.primitives.numbers import bounded, overflow
from runtime.script.primitives.row import (
    Row,
    Way,
    binary,
    call,
    form,
    method,
    row,
    special,
)

Values = list[Any]
Bound = int | None


def _slice(self: Values, start: Bound, stop: Bound, step: Bound) -> Values:
    return self[start:stop:step]


def _set_slice(
    self: Values, start: Bound, stop: Bound, step: Bound, values: Values
) -> None:
    self[start:stop:step] = values


def _delete_slice(self: Values, start: Bound, stop: Bound, step: Bound) -> None:
    del self[start:stop:step]


def _index(self: Values, el: object, start: int, end: Bound) -> int:
    return self.index(el, start) if end is None else self.index(el, start, end)


def _sort(self: Values, reverse: bool) -> None:
    self.sort(reverse=reverse)


def _sorted(iterable: Values, reverse: bool) -> Values:
    return sorted(iterable, reverse=reverse)


def _repeated_left(n: int, self: Values) -> Values:
    return n * self


def _subscripts() -> Iterator[Row]:
    schema = "getitem.t(t[](a) self, int index) -> t(*)"
    samples = "[1, 2], 0; [1, 2], -1; [1, 2], 2; [], 0; [[1], [2]], 1; ['a'], LEAST"
    item = special("[]", "{0}[{1}]")
    yield row(schema, item, operator.getitem, samples, raises=True)
    schema = "slice.t(t[] self, int? start, int? stop, int? step) -> t[]"
    samples = (
        "[1, 2, 3], 1, None, None; [1, 2, 3], None, None, -1; [1, 2], -9, 9, None; "
        "[1, 2], None, None, 0; [[1], [2]], None, None, None; [1, 2, 3], 2, 0, -2"
    )
    part = special("[:]", "{0}[{1}:{2}:{3}]")
    yield row(schema, part, _slice, samples, raises=True)
    schema = "setitem.t(t[](a!) self, int index, t(b -> *) value) -> ()"
    samples = "[1, 2], 0, 9; [1, 2], -1, 9; [1], 1, 9; [], -1, 0; [[1]], 0, [2]"
    store = special("[]=", "{0}[{1}] = {2}")
    yield row(schema, store, operator.setitem, samples, raises=True)
    schema = (
        "setslice.t(t[](a!) self, int? start, int? stop, int? step, t[] values) -> ()"
    )
    samples = (
        "[1, 2, 3], 0, 2, None, [9]; [1, 2, 3], None, None, 2, [7, 8]; "
        "[1, 2, 3], None, None, 2, [7]; [1], 5, 1, None, [3, 4]; [1], None, None, 0, []"
    )
    store = special("[:]=", "{0}[{1}:{2}:{3}] = {4}")
    yield row(schema, store, _set_slice, samples, raises=True)
    schema = "delitem.t(t[](a!) self, int index) -> ()"
    remove = special("del []", "del {0}[{1}]")
    samples = "[1, 2], 0; [1, 2], -1; [1], 1; [], 0"
    yield row(schema, remove, operator.delitem, samples, raises=True)
    schema = "delslice.t(t[](a!) self, int? start, int? stop, int? step) -> ()"
    samples = "[1, 2, 3], 1, None, None; [1, 2, 3], None, None, -2; [1], 0, 1, 0"
    remove = special("del [:]", "del {0}[{1}:{2}:{3}]")
    yield row(schema, remove, _delete_slice, samples, raises=True)


def _operators() -> Iterator[Row]:
    schema = "add.t(t[] a, t[] b) -> t[]"
    samples = "[1], [2, 3]; [], []; [[1]], [[2]]"
    yield row(schema, binary("+"), operator.add, samples)
    schema = "iadd.t(t[](a!) self, t[] b) -> t[](a!)"
    extend = special("+=", "{0} += {1}")
    yield row(schema, extend, operator.iadd, "[1], [2, 3]; [], []; ['a'], ['b']")
    schema = "mul.t(t[] self, int n) -> t[]"
    samples = "[1, 2], 2; [1], 0; [1], -1; [[1]], 2"
    yield row(schema, binary("*"), operator.mul, samples)
    schema = "mul.left_t(int n, t[] self) -> t[]"
    yield row(schema, binary("*"), _repeated_left, "2, [1, 2]; -1, [1]")
    schema = "imul.t(t[](a!) self, int n) -> t[](a!)"
    repeat = special("*=", "{0} *= {1}")
    yield row(schema, repeat, operator.imul, "[1, 2], 2; [1], 0; [[1]], 3")
    samples = "[1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]"
    for symbol, name, function in (
        ("==", "eq", operator.eq),
        ("!=", "ne", operator.ne),
        ("<", "lt", operator.lt),
        ("<=", "le", operator.le),
        (">", "gt", operator.gt),
        (">=", "ge", operator.ge),
    ):
        schema = f"{name}.list(t[] a, t[] b) -> bool"
        more = samples if name in ("eq", "ne") else f"{samples}; [1j], [2j]"
        yield row(schema, binary(symbol), function, more, raises=True)
    schema = "contains.t(t[] self, t item) -> bool"
    within = special("in", "{1} in {0}")
    samples = "[1, 2], 2; [1], 3; [], 'a'; [nan], nan; [[1]], [1]; [T0], T0; [T2], T3"
    yield row(schema, within, operator.contains, samples, raises=True)


def _methods() -> Iterator[Row]:
    schema = "append.t(t[](a!) self, t(b -> *) el) -> ()"
    yield row(schema, method("append"), list.append, "[], 1; [[1]], [2]; ['a'], 'b'")
    schema = "extend.t(t[](a!) self, t[] other) -> ()"
    samples = "[1], [2, 3]; [], []; [[1]], [[2]]"
    yield row(schema, method("extend"), list.extend, samples)
    schema = "insert.t(t[](a!) self, int index, t(b -> *) el) -> ()"
    samples = "[1, 2], 1, 9; [1], -5, 0; [1], 7, 2; [], MOST, [1]; [1], LEAST, 2"
    yield row(schema, method("insert"), list.insert, samples)
    schema = "pop.t(t[](a!) self, int index=-1) -> t(*)"
    samples = "[1, 2]; [1, 2], 0; [1], 1; []; [[1], [2]], -2"
    yield row(schema, method("pop"), list.pop, samples, raises=True)
    schema = "remove.t(t[](a!) self, t el) -> ()"
    samples = "[1, 2, 1], 1; ['a'], 'b'; [], 1; [[1]], [1]; [T0, T1], T0"
    yield row(schema, method("remove"), list.remove, samples, raises=True)
    schema = "clear.t(t[](a!) self) -> ()"
    yield row(schema, method("clear"), list.clear, "[1, 2]; []")
    schema = "reverse.t(t[](a!) self) -> ()"
    yield row(schema, method("reverse"), list.reverse, "[1, 2, 3]; []; [[1], [2]]")
    schema = "sort.t(t[](a!) self, *, bool reverse=False) -> ()"
    samples = "[3, 1, 2]; [2, 1], reverse=True; ['b', 'a']; [1j, 2j]; [nan, 1.0]; []"
    yield row(schema, method("sort"), _sort, samples, raises=True)
    schema = "copy.t(t[] self) -> t[]"
    yield row(schema, method("copy"), list.copy, "[1, 2]; []; [[1]]")
    schema = "count.t(t[] self, t el) -> int"
    samples = "[1, 2, 1], 1; ['a'], 'b'; [nan], nan; [[1], [1]], [1]; [T2], T3"
    yield row(schema, method("count"), list.count, samples, raises=True)
    schema = "index.t(t[] self, t el, int start=0, int? end=None) -> int"
    samples = (
        "[1, 2, 1], 1; [1, 2, 1], 1, 1; [1, 2, 1], 1, 1, 2; [], 1; ['a'], 'a', -1; "
        "[1, 2], 2, -5, -1"
    )
    yield row(schema, method("index"), _index, samples, raises=True)


def _whole() -> Iterator[Row]:
    yield row("len.t(t[] obj) -> int", call(len), len, "[]; [1, 2]")
    yield row("bool.list(t[] x) -> bool", call(bool), bool, "[]; [0]")
    yield row("list.t(t[] iterable) -> t[]", call(list), list, "[]; [1, 2]; [[1]]")
    schema = "sorted.t(t[] iterable, *, bool reverse=False) -> t[]"
    samples = "[3, 1, 2]; ['b', 'a'], reverse=True; [1j, 2j]; [True, False]; [[2], [1]]"
    yield row(schema, call(sorted), _sorted, samples, raises=True)
    samples = "[3, 1, 2]; []; ['b', 'a']; [1.0, nan]; [1j, 2j]; [[2], [1]]"
    for name, function in (("min", min), ("max", max)):
        schema = f"{name}.t(t[](a) iterable) -> t(*)"
        yield row(schema, call(function), function, samples, raises=True)
    total = bounded("sum", sum)
    samples = "[1, 2]; []; [MOST, 1]; [MOST, MOST, LEAST]; [LEAST, -1]"
    yield row("sum.int(int[] iterable) -> int", call(sum), total, samples, raises=True)
    schema = "sum.bool(bool[] iterable) -> int"
    yield row(schema, call(sum), sum, "[True, True]; []")
    schema = "sum.float(float[] iterable) -> float"
    yield row(schema, call(sum), _sum_of_floats, "[0.1, 0.2, 0.3]; [inf, -inf]; [-0.0]")
    schema = "sum.complex(complex[] iterable) -> complex"
    yield row(schema, call(sum), _sum_of_complex, "[1j, 2+0j]; [0j]")
    samples = "[]; [1, 0]; [0.0]; ['', 'a']; [[], [1]]; [True, True]; [None]; [T2]"
    for name, truth in (("any", any), ("all", all)):
        schema = f"{name}.t(t[] iterable) -> bool"
        yield row(schema, call(truth), truth, samples, raises=True)
    schema = "fsum.list(float[] seq) -> float"
    samples = "[0.1] * 10; []; [inf, -inf]; [1e308, 1e308]"
    yield row(schema, call(math.fsum), math.fsum, samples, raises=True)
    schema = "prod.int(int[] iterable) -> int"
    samples = (
        "[2, 3]; []; [MOST, 2]; [LEAST, -1]; [MOST, MOST, 0]; [2**62, 2, -1]; "
        "[2**62, -2]; [LEAST, -1, -1]"
    )
    yield row(schema, call(math.prod), _product_of_ints, samples, raises=True)
    schema = "prod.float(float[] iterable) -> float"
    samples = "[0.5, 3.0]; [inf, 0.0]"
    yield row(schema, call(math.prod), _product_of_floats, samples)


def _sum_of_floats(iterable: list[float]) -> float:
    # Python's sum of nothing is an int.
    return sum(iterable) if iterable else 0.0


def _sum_of_complex(iterable: list[complex]) -> complex:
    return sum(iterable) if iterable else 0j


def _product_of_ints(iterable: list[int]) -> int:
    # A product that is too large stays so, but for a zero: it is not computed further.
    if 0 in iterable:
        return 0
    result = 1
    for each in iterable:
        result *= each
        if not INT_FIRST <= result <= INT_END:
            break
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("math.prod", iterable)


def _product_of_floats(iterable: list[float]) -> float:
    return math.prod(iterable) if iterable else 1.0


def _range_length(start: int, stop: int, step: int) -> int:
    numbers = range(start, stop, step)
    # `len` refuses what an index of C does not hold; the number itself is needed.
    first, last, stride = numbers.start, numbers.stop, numbers.step
    if stride < 0:
        first, last, stride = last, first, -stride
    return max(0, -((first - last) // stride))


def _range_item(start: int, stop: int, step: int, index: int) -> int:
    return range(start, stop, step)[index]


def _range_list(start: int, stop: int, step: int) -> list[int]:
    return list(range(start, stop, step))


def _ranges() -> Iterator[Row]:
    numbers = "range({0}, {1}, {2})"
    schema = "range_length.int(int start, int stop, int step) -> int"
    samples = "0, 5, 1; 5, 0, -2; 0, 5, 0; 3, 3, 1; 0, MOST, 2; 5, 0, 1; 0, 5, LEAST"
    length: Callable[..., int] = bounded("len(range(...))", _range_length)
    way = form(f"len({numbers})")
    yield row(schema, way, length, samples, raises=True)
    schema = "range_item.int(int start, int stop, int step, int index) -> int"
    samples = "0, 5, 1, 3; 5, 0, -2, 2; 0, 5, 1, 5; 0, 5, 1, -1; LEAST, MOST, 7, 3"
    way = form(f"{numbers}[{{3}}]")
    yield row(schema, way, _range_item, samples, raises=True)
    schema = "range_list.int(int start, int stop, int step) -> int[]"
    samples = "0, 5, 1; 5, 0, -2; 0, 5, 0; 3, 3, 1"
    way = form(f"list({numbers})")
    yield row(schema, way, _range_list, samples, raises=True)
    schema = "range_contains.int(int start, int stop, int step, int item) -> bool"
    samples = "0, 5, 1, 3; 0, 5, 2, 3; 0, 5, 0, 1"
    way = form(f"{{3}} in {numbers}")
    yield row(schema, way, _range_contains, samples, raises=True)


def _range_contains(start: int, stop: int, step: int, item: int) -> bool:
    return item in range(start, stop, step)


# Dictionaries

Mapping = dict[Any, Any]

# Kind of key -> two keys as a program writes them.
KEYS: dict[str, tuple[str, str]] = {
    "str": ("'a'", "'b'"),
    "int": ("1", "-2"),
    "bool": ("True", "False"),
    "float": ("0.5", "-1.5"),
    "complex": ("1j", "2+0j"),
    "Tensor": ("T0", "T1"),
}


def _keys(self: Mapping) -> list[Any]:
    return list(self)


def _values(self: Mapping) -> list[Any]:
    return list(self.values())


def _items(self: Mapping) -> list[tuple[Any, Any]]:
    return list(self.items())


def _get(self: Mapping, key: object) -> Any:
    return self.get(key)


# Schema, way, function, samples, whether it may raise.
_ROWS: tuple[tuple[str, Way, Callable[..., Any], str, bool], ...] = (
    (
        "getitem.Dict_KEY(Dict(KEY, t)(a) self, KEY key) -> t(*)",
        special("[]", "{0}[{1}]"),
        operator.getitem,
        "{K0: 1}, K0; {K0: 1}, K1; {}, K0; {K0: [1]}, K0",
        True,
    ),
    (
        "setitem.Dict_KEY(Dict(KEY, t)(a!) self, KEY(b -> *) key, t(c -> *) value)"
        " -> ()",
        special("[]=", "{0}[{1}] = {2}"),
        operator.setitem,
        "{K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]",
        False,
    ),
    (
        "delitem.Dict_KEY(Dict(KEY, t)(a!) self, KEY key) -> ()",
        special("del []", "del {0}[{1}]"),
        operator.delitem,
        "{K0: 1, K1: 2}, K0; {K0: 1}, K1; {}, K0",
        True,
    ),
    (
        "contains.Dict_KEY(Dict(KEY, t) self, KEY item) -> bool",
        special("in", "{1} in {0}"),
        operator.contains,
        "{K0: 1}, K0; {K0: 1}, K1",
        False,
    ),
    (
        "eq.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> bool",
        binary("=="),
        operator.eq,
        "{K0: 1, K1: 2}, {K1: 2, K0: 1}; {K0: 1}, {K0: 2}; {}, {K0: 1}; "
        "{K0: T2}, {K0: T3}",
        True,
    ),
    (
        "ne.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> bool",
        binary("!="),
        operator.ne,
        "{K0: 1, K1: 2}, {K1: 2, K0: 1}; {K0: 1}, {K0: 2}; {}, {K0: 1}; "
        "{K0: T2}, {K0: T3}",
        True,
    ),
    (
        "or_.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> Dict(KEY, t)",
        binary("|"),
        operator.or_,
        "{K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}",
        False,
    ),
    (
        "ior.Dict_KEY(Dict(KEY, t)(a!) self, Dict(KEY, t) b) -> Dict(KEY, t)(a!)",
        special("|=", "{0} |= {1}"),
        operator.ior,
        "{K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}",
        False,
    ),
    (
        "len.Dict_KEY(Dict(KEY, t) obj) -> int",
        call(len),
        len,
        "{}; {K0: 1, K1: 2}",
        False,
    ),
    (
        "bool.Dict_KEY(Dict(KEY, t) x) -> bool",
        call(bool),
        bool,
        "{}; {K0: 1}",
        False,
    ),
    (
        "list.Dict_KEY(Dict(KEY, t) iterable) -> KEY[]",
        call(list),
        list,
        "{}; {K1: 1, K0: 2}",
        False,
    ),
    (
        "dict.KEY((KEY, t)[] iterable) -> Dict(KEY, t)",
        call(dict),
        dict,
        "[]; [(K0, 1), (K1, 2), (K0, 3)]",
        False,
    ),
    (
        "dict.Dict_KEY(Dict(KEY, t) iterable) -> Dict(KEY, t)",
        call(dict),
        dict,
        "{}; {K0: 1}; {K0: [1]}",
        False,
    ),
    (
        "keys.KEY(Dict(KEY, t) self) -> KEY[]",
        method("keys"),
        _keys,
        "{}; {K1: 1, K0: 2}",
        False,
    ),
    (
        "values.KEY(Dict(KEY, t) self) -> t[]",
        method("values"),
        _values,
        "{}; {K1: 1, K0: 2}; {K0: [1]}",
        False,
    ),
    (
        "items.KEY(Dict(KEY, t) self) -> ((KEY, t)[])",
        method("items"),
        _items,
        "{}; {K1: 1, K0: 2}; {K0: [1]}",
        False,
    ),
    (
        "get.KEY(Dict(KEY, t)(a) self, KEY key) -> t(*)?",
        method("get"),
        _get,
        "{K0: 1}, K0; {K0: 1}, K1; {K0: [1]}, K0",
        False,
    ),
    (
        "get.default_KEY(Dict(KEY, t)(a) self, KEY key, t(b -> *) default_value)"
        " -> t(*)",
        method("get"),
        dict.get,
        "{K0: 1}, K0, 2; {K0: 1}, K1, 2; {K0: [1]}, K1, [2]",
        False,
    ),
    (
        "setdefault.KEY(Dict(KEY, t)(a!) self, KEY(b -> *) key,"
        " t(c -> *) default_value) -> t(*)",
        method("setdefault"),
        dict.setdefault,
        "{K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]; {}, K0, K0",
        False,
    ),
    (
        "pop.Dict_KEY(Dict(KEY, t)(a!) self, KEY key) -> t(*)",
        method("pop"),
        dict.pop,
        "{K0: 1}, K0; {K0: 1}, K1; {K0: [1], K1: [2]}, K1",
        True,
    ),
    (
        "pop.Dict_default_KEY(Dict(KEY, t)(a!) self, KEY key,"
        " t(b -> *) default_value) -> t(*)",
        method("pop"),
        dict.pop,
        "{K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]",
        False,
    ),
    (
        "popitem.KEY(Dict(KEY, t)(a!) self) -> (KEY(*), t(*))",
        method("popitem"),
        dict.popitem,
        "{K0: 1, K1: 2}; {}; {K0: [1]}",
        True,
    ),
    (
        "update.KEY(Dict(KEY, t)(a!) self, Dict(KEY, t) to_add) -> ()",
        method("update"),
        dict.update,
        "{K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}",
        False,
    ),
    (
        "clear.KEY(Dict(KEY, t)(a!) self) -> ()",
        method("clear"),
        dict.clear,
        "{K0: 1}; {}",
        False,
    ),
    (
        "copy.Dict_KEY(Dict(KEY, t) self) -> Dict(KEY, t)",
        method("copy"),
        dict.copy,
        "{K0: 1, K1: 2}; {}; {K0: [1]}",
        False,
    ),
)


def _dict_rows() -> Iterator[Row]:
    for schema, way, function, samples, raises in _ROWS:
        for kind, (first, second) in KEYS.items():
            # Of keys, only tensors can be shared with what else there is.
            plain = kind != "Tensor"
            text = schema
            if plain:
                text = text.replace("KEY(b -> *)", "KEY").replace("KEY(*)", "KEY")
            written = samples.replace("K0", first).replace("K1", second)
            text = text.replace("KEY", kind)
            yield row(text, way, function, written, raises=raises)


ROWS = (
    *_subscripts(),
    *_operators(),
    *_methods(),
    *_whole(),
    *_ranges(),
    *_dict_rows(),
)
