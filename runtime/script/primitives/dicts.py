"""Dictionaries: subscripts, methods, comparisons and constructors.

True only here: what scripts do with dictionaries, once for each kind of key.

Rules:
- a dictionary is Python's own and keeps the order of insertion; its keys are of one
  kind and equal as in Python, tensors by identity;
- `keys`, `values` and `items` give lists of what is there now (Python's views follow
  later changes);
- a schema cannot have a variable as the type of a key, so each row here is six: its
  text has `KEY` for the type, and its samples `K0` and `K1` for two keys.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any

from runtime.script.primitives.row import (
    Row,
    Way,
    binary,
    call,
    method,
    row,
    special,
)

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


def _rows() -> Iterator[Row]:
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


ROWS = tuple(_rows())
