"""Primitives of containers: lists, dictionaries, and `range`.

Rules of lists:
- a list is Python's own: two names of one list see each other's changes;
- elements are of one type `t`; where a method compares or orders them, they behave and
  raise as their type does in Python;
- a new list shares its elements with the old one, if they can be shared at all;
- `range`, `sorted` and `list` return lists; a `range` in a loop is never created: its
  length and its numbers are computed (`len(range(...))`, `range(...)[i]`).

Rules of dictionaries:
- a dictionary is Python's own and keeps the order of insertion; its keys are of one
  kind and equal as in Python, tensors by identity;
- `keys`, `values` and `items` return lists of the current content (Python's views
  follow later changes);
- a schema cannot have a variable as the type of a key, so each row here is six: its
  text has `KEY` for the type, and its samples `K0` and `K1` for two keys.
"""

import builtins
import math
import re
from typing import Any

from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.primitives.numbers import bounded, overflow
from everyorder.runtime.script.primitives.primitive_row import (
    form,
    functions,
    methods,
    operators,
    row,
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


_LISTS = (
    *operators(
        """
getitem.t(t[](a) self, int index) -> t(*)  raises
    [1, 2], 0; [1, 2], -1; [1, 2], 2; [], 0; [[1], [2]], 1; ['a'], LEAST
slice.t(t[] self, int? start, int? stop, int? step) -> t[]  raises
    [1, 2, 3], 1, None, None; [1, 2, 3], None, None, -1; [1, 2], -9, 9, None;
    [1, 2], None, None, 0; [[1], [2]], None, None, None; [1, 2, 3], 2, 0, -2
setitem.t(t[](a!) self, int index, t(b -> *) value) -> ()  raises
    [1, 2], 0, 9; [1, 2], -1, 9; [1], 1, 9; [], -1, 0; [[1]], 0, [2]
setslice.t(t[](a!) self, int? start, int? stop, int? step, t[] values) -> ()  raises
    [1, 2, 3], 0, 2, None, [9]; [1, 2, 3], None, None, 2, [7, 8];
    [1, 2, 3], None, None, 2, [7]; [1], 5, 1, None, [3, 4]; [1], None, None, 0, []
delitem.t(t[](a!) self, int index) -> ()  raises
    [1, 2], 0; [1, 2], -1; [1], 1; [], 0
delslice.t(t[](a!) self, int? start, int? stop, int? step) -> ()  raises
    [1, 2, 3], 1, None, None; [1, 2, 3], None, None, -2; [1], 0, 1, 0
add.t(t[] a, t[] b) -> t[]
    [1], [2, 3]; [], []; [[1]], [[2]]
iadd.t(t[](a!) self, t[] b) -> t[](a!)
    [1], [2, 3]; [], []; ['a'], ['b']
mul.t(t[] self, int n) -> t[]
    [1, 2], 2; [1], 0; [1], -1; [[1]], 2
mul.left_t(int n, t[] self) -> t[]
    2, [1, 2]; -1, [1]
imul.t(t[](a!) self, int n) -> t[](a!)
    [1, 2], 2; [1], 0; [[1]], 3
eq.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]
ne.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]
lt.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]; [1j], [2j]
le.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]; [1j], [2j]
gt.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]; [1j], [2j]
ge.list(t[] a, t[] b) -> bool  raises
    [1, 2], [1, 2]; [1], [2]; [], [1]; [nan], [nan]; [T2], [T3]; [1j], [2j]
contains.t(t[] self, t item) -> bool  raises
    [1, 2], 2; [1], 3; [], 'a'; [nan], nan; [[1]], [1]; [T0], T0; [T2], T3
""",
        {
            "slice": _slice,
            "setslice": _set_slice,
            "delslice": _delete_slice,
            "mul.left_t": _repeated_left,
        },
    ),
    *methods(
        list,
        """
append.t(t[](a!) self, t(b -> *) el) -> ()
    [], 1; [[1]], [2]; ['a'], 'b'
extend.t(t[](a!) self, t[] other) -> ()
    [1], [2, 3]; [], []; [[1]], [[2]]
insert.t(t[](a!) self, int index, t(b -> *) el) -> ()
    [1, 2], 1, 9; [1], -5, 0; [1], 7, 2; [], MOST, [1]; [1], LEAST, 2
pop.t(t[](a!) self, int index=-1) -> t(*)  raises
    [1, 2]; [1, 2], 0; [1], 1; []; [[1], [2]], -2
remove.t(t[](a!) self, t el) -> ()  raises
    [1, 2, 1], 1; ['a'], 'b'; [], 1; [[1]], [1]; [T0, T1], T0
clear.t(t[](a!) self) -> ()
    [1, 2]; []
reverse.t(t[](a!) self) -> ()
    [1, 2, 3]; []; [[1], [2]]
sort.t(t[](a!) self, *, bool reverse=False) -> ()  raises
    [3, 1, 2]; [2, 1], reverse=True; ['b', 'a']; [1j, 2j]; [nan, 1.0]; []
copy.t(t[] self) -> t[]
    [1, 2]; []; [[1]]
count.t(t[] self, t el) -> int  raises
    [1, 2, 1], 1; ['a'], 'b'; [nan], nan; [[1], [1]], [1]; [T2], T3
index.t(t[] self, t el, int start=0, int? end=None) -> int  raises
    [1, 2, 1], 1; [1, 2, 1], 1, 1; [1, 2, 1], 1, 1, 2; [], 1; ['a'], 'a', -1;
    [1, 2], 2, -5, -1
""",
        {"sort": _sort, "index": _index},
    ),
)


def _sum_of_floats(iterable: list[float]) -> float:
    # Python's sum of an empty list is an int.
    return sum(iterable) if iterable else 0.0


def _sum_of_complex(iterable: list[complex]) -> complex:
    return sum(iterable) if iterable else 0j


def _product_of_ints(iterable: list[int]) -> int:
    # A product that is too large stays too large unless a factor is zero: stop early.
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


_EXTREMES = "[3, 1, 2]; []; ['b', 'a']; [1.0, nan]; [1j, 2j]; [[2], [1]]"
_TRUTHS = "[]; [1, 0]; [0.0]; ['', 'a']; [[], [1]]; [True, True]; [None]; [T2]"
_WHOLE = (
    *functions(
        builtins,
        f"""
len.t(t[] obj) -> int
    []; [1, 2]
bool.list(t[] x) -> bool
    []; [0]
list.t(t[] iterable) -> t[]
    []; [1, 2]; [[1]]
sorted.t(t[] iterable, *, bool reverse=False) -> t[]  raises
    [3, 1, 2]; ['b', 'a'], reverse=True; [1j, 2j]; [True, False]; [[2], [1]]
min.t(t[](a) iterable) -> t(*)  raises
    {_EXTREMES}
max.t(t[](a) iterable) -> t(*)  raises
    {_EXTREMES}
sum.int(int[] iterable) -> int  raises
    [1, 2]; []; [MOST, 1]; [MOST, MOST, LEAST]; [LEAST, -1]
sum.bool(bool[] iterable) -> int
    [True, True]; []
sum.float(float[] iterable) -> float
    [0.1, 0.2, 0.3]; [inf, -inf]; [-0.0]
sum.complex(complex[] iterable) -> complex
    [1j, 2+0j]; [0j]
any.t(t[] iterable) -> bool  raises
    {_TRUTHS}
all.t(t[] iterable) -> bool  raises
    {_TRUTHS}
""",
        {
            "sorted": _sorted,
            "sum.int": bounded("sum", sum),
            "sum.float": _sum_of_floats,
            "sum.complex": _sum_of_complex,
        },
    ),
    *functions(
        math,
        """
fsum.list(float[] seq) -> float  raises
    [0.1] * 10; []; [inf, -inf]; [1e308, 1e308]
prod.int(int[] iterable) -> int  raises
    [2, 3]; []; [MOST, 2]; [LEAST, -1]; [MOST, MOST, 0]; [2**62, 2, -1];
    [2**62, -2]; [LEAST, -1, -1]
prod.float(float[] iterable) -> float
    [0.5, 3.0]; [inf, 0.0]
""",
        {"prod.int": _product_of_ints, "prod.float": _product_of_floats},
    ),
)


def _range_length(start: int, stop: int, step: int) -> int:
    numbers = range(start, stop, step)
    # `len` raises beyond the range of a C index; here the number itself is needed.
    first, last, stride = numbers.start, numbers.stop, numbers.step
    if stride < 0:
        first, last, stride = last, first, -stride
    return max(0, -((first - last) // stride))


def _range_item(start: int, stop: int, step: int, index: int) -> int:
    return range(start, stop, step)[index]


def _range_list(start: int, stop: int, step: int) -> list[int]:
    return list(range(start, stop, step))


def _range_contains(start: int, stop: int, step: int, item: int) -> bool:
    return item in range(start, stop, step)


_RANGE = "range({0}, {1}, {2})"
_RANGES = (
    row(
        "range_length.int(int start, int stop, int step) -> int",
        form(f"len({_RANGE})"),
        bounded("len(range(...))", _range_length),
        "0, 5, 1; 5, 0, -2; 0, 5, 0; 3, 3, 1; 0, MOST, 2; 5, 0, 1; 0, 5, LEAST",
        raises=True,
    ),
    row(
        "range_item.int(int start, int stop, int step, int index) -> int",
        form(f"{_RANGE}[{{3}}]"),
        _range_item,
        "0, 5, 1, 3; 5, 0, -2, 2; 0, 5, 1, 5; 0, 5, 1, -1; LEAST, MOST, 7, 3",
        raises=True,
    ),
    row(
        "range_list.int(int start, int stop, int step) -> int[]",
        form(f"list({_RANGE})"),
        _range_list,
        "0, 5, 1; 5, 0, -2; 0, 5, 0; 3, 3, 1",
        raises=True,
    ),
    row(
        "range_contains.int(int start, int stop, int step, int item) -> bool",
        form(f"{{3}} in {_RANGE}"),
        _range_contains,
        "0, 5, 1, 3; 0, 5, 2, 3; 0, 5, 0, 1",
        raises=True,
    ),
)


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


def _by_keys(text: str) -> str:
    """Return a table with `KEY` for the type of keys, once for each type of key."""
    entries = re.split(r"\n(?=\S)", text.strip())
    return "\n".join(_of_key(each, kind) for each in entries for kind in KEYS)


def _of_key(entry: str, kind: str) -> str:
    if kind != "Tensor":
        # Of all types of keys, only tensors have memory that can be shared.
        entry = entry.replace("KEY(b -> *)", "KEY").replace("KEY(*)", "KEY")
    first, second = KEYS[kind]
    return entry.replace("K0", first).replace("K1", second).replace("KEY", kind)


_DICTS = (
    *operators(
        _by_keys("""
getitem.Dict_KEY(Dict(KEY, t)(a) self, KEY key) -> t(*)  raises
    {K0: 1}, K0; {K0: 1}, K1; {}, K0; {K0: [1]}, K0
setitem.Dict_KEY(Dict(KEY, t)(a!) self, KEY(b -> *) key, t(c -> *) value) -> ()
    {K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]
delitem.Dict_KEY(Dict(KEY, t)(a!) self, KEY key) -> ()  raises
    {K0: 1, K1: 2}, K0; {K0: 1}, K1; {}, K0
contains.Dict_KEY(Dict(KEY, t) self, KEY item) -> bool
    {K0: 1}, K0; {K0: 1}, K1
eq.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> bool  raises
    {K0: 1, K1: 2}, {K1: 2, K0: 1}; {K0: 1}, {K0: 2}; {}, {K0: 1}; {K0: T2}, {K0: T3}
ne.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> bool  raises
    {K0: 1, K1: 2}, {K1: 2, K0: 1}; {K0: 1}, {K0: 2}; {}, {K0: 1}; {K0: T2}, {K0: T3}
or_.Dict_KEY(Dict(KEY, t) a, Dict(KEY, t) b) -> Dict(KEY, t)
    {K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}
ior.Dict_KEY(Dict(KEY, t)(a!) self, Dict(KEY, t) b) -> Dict(KEY, t)(a!)
    {K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}
""")
    ),
    *functions(
        builtins,
        _by_keys("""
len.Dict_KEY(Dict(KEY, t) obj) -> int
    {}; {K0: 1, K1: 2}
bool.Dict_KEY(Dict(KEY, t) x) -> bool
    {}; {K0: 1}
list.Dict_KEY(Dict(KEY, t) iterable) -> KEY[]
    {}; {K1: 1, K0: 2}
dict.KEY((KEY, t)[] iterable) -> Dict(KEY, t)
    []; [(K0, 1), (K1, 2), (K0, 3)]
dict.Dict_KEY(Dict(KEY, t) iterable) -> Dict(KEY, t)
    {}; {K0: 1}; {K0: [1]}
"""),
    ),
    *methods(
        dict,
        _by_keys("""
keys.KEY(Dict(KEY, t) self) -> KEY[]
    {}; {K1: 1, K0: 2}
values.KEY(Dict(KEY, t) self) -> t[]
    {}; {K1: 1, K0: 2}; {K0: [1]}
items.KEY(Dict(KEY, t) self) -> ((KEY, t)[])
    {}; {K1: 1, K0: 2}; {K0: [1]}
get.KEY(Dict(KEY, t)(a) self, KEY key) -> t(*)?
    {K0: 1}, K0; {K0: 1}, K1; {K0: [1]}, K0
get.default_KEY(Dict(KEY, t)(a) self, KEY key, t(b -> *) default_value) -> t(*)
    {K0: 1}, K0, 2; {K0: 1}, K1, 2; {K0: [1]}, K1, [2]
setdefault.KEY(Dict(KEY, t)(a!) self, KEY(b -> *) key, t(c -> *) default_value) -> t(*)
    {K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]; {}, K0, K0
pop.Dict_KEY(Dict(KEY, t)(a!) self, KEY key) -> t(*)  raises
    {K0: 1}, K0; {K0: 1}, K1; {K0: [1], K1: [2]}, K1
pop.Dict_default_KEY(Dict(KEY, t)(a!) self, KEY key, t(b -> *) default_value) -> t(*)
    {K0: 1}, K0, 2; {K0: 1}, K1, 2; {}, K0, [1]
popitem.KEY(Dict(KEY, t)(a!) self) -> (KEY(*), t(*))  raises
    {K0: 1, K1: 2}; {}; {K0: [1]}
update.KEY(Dict(KEY, t)(a!) self, Dict(KEY, t) to_add) -> ()
    {K0: 1}, {K1: 2}; {K0: 1, K1: 2}, {K0: 3}; {}, {}
clear.KEY(Dict(KEY, t)(a!) self) -> ()
    {K0: 1}; {}
copy.Dict_KEY(Dict(KEY, t) self) -> Dict(KEY, t)
    {K0: 1, K1: 2}; {}; {K0: [1]}
"""),
        {
            "keys": _keys,
            "values": _values,
            "items": _items,
            **{f"get.{kind}": _get for kind in KEYS},
        },
    ),
)

ROWS = (*_LISTS, *_WHOLE, *_RANGES, *_DICTS)
