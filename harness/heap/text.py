"""Values as people read them: short, without addresses, and without asking them.

True only here: no `__repr__` of a user runs.  Of an object its class and attributes are
shown, of a class or a function its name; built-in values are shown as Python does.
"""

import datetime
import decimal
import fractions
import pathlib
import re
import types
import uuid
from collections.abc import Callable
from typing import Any

from harness.heap.accessors import known_exactly, known_of
from harness.heap.known import ABSENT, Known, Unreadable
from harness.heap.layout import (
    layout_of,
    module_dict,
    module_of,
    namespace_of,
    qualname_of,
)
from harness.heap.noise import noise_of

# An answer is shown whole as long as a person could still read it.
_LONGEST = 4_000
_DEEPEST = 5
_MOST = 200

_PLAIN = frozenset(
    map(
        id,
        (
            *(int, str, bytes, bytearray, float, complex, bool, type(None), type(...)),
            *(type(NotImplemented), range, decimal.Decimal, fractions.Fraction),
            *(datetime.date, datetime.timedelta, uuid.UUID, re.Pattern),
            *(pathlib.PosixPath, pathlib.PurePosixPath),
            *(pathlib.WindowsPath, pathlib.PureWindowsPath),
        ),
    )
)
_BRACKETS = {id(list): "[]", id(tuple): "()", id(set): "{}", id(frozenset): "{}"}
_VALUES = frozenset(map(id, (int, str, bytes, bytearray, float, complex)))


def text_of(value: object, unordered: bool = False, registry: object = None) -> str:
    """A value as people read it, without what is in the registry."""
    text = _text(value, 0, unordered, set() if registry is None else {id(registry)})
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."


def _text(value: Any, depth: int, unordered: bool, above: set[int]) -> str:
    kind = type(value)
    if id(kind) in _PLAIN:
        return _repr(kind)(value)
    if issubclass(kind, type):
        return f"<class {_name(module_of(value), str.__str__(qualname_of(value)))}>"
    if kind is types.FunctionType:
        module = value.__module__
        return f"<function {_name(module, str.__str__(value.__qualname__))}>"
    if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
        return f"<function {str.__str__(value.__qualname__)}>"
    if issubclass(kind, types.ModuleType):
        values = module_dict(value)
        return f"<module {values.get('__name__')}>"
    if depth > _DEEPEST or id(value) in above:
        return "..."
    above = above | {id(value)}

    def inner(each: Any) -> str:
        return _text(each, depth + 1, unordered, above)

    if kind is types.MethodType:
        return f"<method {inner(value.__func__)} of {inner(value.__self__)}>"
    if kind is dict:
        return _dict(value.items(), inner, unordered)
    if id(kind) in _BRACKETS:
        return _sequence(value, kind, inner, unordered)
    return _object(value, kind, inner, unordered)


def _repr(kind: Any) -> Callable[[Any], str]:
    written: Callable[[Any], str] = kind.__repr__
    return written


def _name(module: object, qualname: str) -> str:
    outside = type(module) is str and module not in ("", "builtins")
    return f"{module}.{qualname}" if outside else qualname


def _dict(items: Any, inner: Any, unordered: bool) -> str:
    parts = [f"{inner(key)}: {inner(each)}" for key, each in _first(items)]
    if unordered:
        parts.sort()
    return f"{{{', '.join(parts)}}}"


def _sequence(values: Any, kind: type, inner: Any, unordered: bool) -> str:
    parts = [inner(each) for each in _first(values)]
    if unordered or kind is set or kind is frozenset:
        parts.sort()
    if kind is tuple and len(parts) == 1:
        return f"({parts[0]},)"
    if kind is set and not parts:
        return "set()"
    start, end = tuple(_BRACKETS[id(kind)])
    text = f"{start}{', '.join(parts)}{end}"
    return f"frozenset({text if parts else ''})" if kind is frozenset else text


def _first(values: Any) -> list[Any]:
    found: list[Any] = []
    for each in values:
        if len(found) == _MOST:
            break
        found.append(each)
    return found


def _object(value: Any, kind: type, inner: Any, unordered: bool) -> str:
    name = str.__str__(qualname_of(kind)).rpartition(".")[2]
    layout = layout_of(kind)
    attributes = layout.dict_of(value) if layout.dict_of is not None else {}
    member = dict.get(attributes, "_name_")
    if type(member) is str and "_member_map_" in namespace_of(kind):
        return f"{name}.{member}"
    if issubclass(kind, BaseException):
        args = BaseException.__dict__["args"].__get__(value)
        return f"{name}({', '.join(map(inner, args))})"
    parts = []
    known = known_exactly(kind) or known_of(layout.known) or Known()
    if id(layout.known) in _VALUES and known.parts is not None:
        parts.append(inner(known.parts(value)[0][1]))
    elif known.body == "dict":
        parts.append(_dict(dict.items(value), inner, unordered))
    elif known.body == "ordered" and known.items is not None:
        parts.append(_dict(known.items(value), inner, False))
    elif known.body and known.items is not None:
        shape = tuple if layout.known is tuple else list
        parts.append(_sequence(list(known.items(value)), shape, inner, unordered))
        if layout.known is tuple:
            fields = _fields(value, kind, inner)
            parts[-1:] = fields or parts[-1:]
    elif known.parts is not None:
        parts += _parts(known, value, inner)
    for slot, getter in layout.slots:
        try:
            parts.append(f"{slot}={inner(getter(value))}")
        except AttributeError:
            continue
    left_out = noise_of(kind)
    parts += [
        f"{key}={inner(each)}"
        for key, each in _first(attributes.items())
        if type(key) is not str or key not in left_out
    ]
    return f"{name}({', '.join(parts)})"


def _parts(known: Known, value: Any, inner: Any) -> list[str]:
    if known.parts is None:
        return []
    try:
        parts = known.parts(value)
    except Unreadable:
        return []
    return [f"{label}={inner(each)}" for label, each in parts if each is not ABSENT]


def _fields(value: Any, kind: type, inner: Any) -> list[str]:
    """The fields of a named tuple by name."""
    names = namespace_of(kind).get("_fields")
    if type(names) is not tuple or len(names) != tuple.__len__(value):
        return []
    values = tuple.__iter__(value)
    return [f"{name}={inner(each)}" for name, each in zip(names, values, strict=True)]
