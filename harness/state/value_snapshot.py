"""Answers as values, and as text for people: without `==`, without references.

An answer is recorded at once, because it may be a live object that changes later.
`True`, `1` and `1.0` are three answers, and so are dicts of different order.

Lists, tuples, dicts and sets are compared by their contents, without the identity of
objects in them, and so are immutable objects (numbers, dates, paths, members of
enumerations, frozen data).  Every other object in them is compared by its canonical
form and by identity.  An answer may lead back to the registry; the contents of the
registry are its state, not its answer, and are not compared.  An object that a global
variable holds has the variable's name as well (`global_names.py`).

The digest is compared, the text is for people: short, and without addresses.  No
`__repr__` of a user runs for it: an object is shown by its class and attributes, a
class or a function by its name; built-in values are shown as Python does.
"""

import datetime
import decimal
import fractions
import hashlib
import marshal
import pathlib
import re
import types
import uuid
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from datetime import date, time, timedelta, tzinfo
from decimal import Decimal
from enum import Enum
from fractions import Fraction
from pathlib import PurePath
from typing import Any
from uuid import UUID

from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.state.accessors import NAN, accessor_of, exact_accessor
from everyorder.harness.state.global_names import GlobalNames
from everyorder.harness.state.heap import Heap, pause_collector
from everyorder.harness.state.layout import (
    ABSENT,
    Accessor,
    Unreadable,
    layout_of,
    module_dict,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)
from everyorder.harness.state.noise import is_noise_attribute, noise_of
from everyorder.harness.state.scope import FollowedScope
from everyorder.harness.state.tokens import ATOM_IDS

# An answer is shown whole as long as a person could still read it.
_LONGEST = 4_000
_DEEPEST = 5
_MOST = 200
# How an answer is named where it cannot be read.
ANSWER = "the answer"
# A placeholder for hidden contents until the text is complete: no repr writes it.
_LEFT_OUT = "\0..."

# Built-in kinds of values, which are shown as Python shows them.
PLAIN_KINDS = frozenset(
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
_SHOWN_VALUES = frozenset(map(id, (int, str, bytes, bytearray, float, complex)))


def text_of(
    value: object, unordered: bool = False, registry: object = None
) -> tuple[str, bool]:
    """Return a value as text, without the registry's contents; True if it is cut."""
    text = _text(value, 0, unordered, set() if registry is None else {id(registry)})
    whole = text.replace(_LEFT_OUT, "...")
    if len(whole) <= _LONGEST:
        return whole, whole != text
    return f"{whole[: _LONGEST - 3]}...", True


def _text(value: Any, depth: int, unordered: bool, above: set[int]) -> str:
    kind = type(value)
    if id(kind) in PLAIN_KINDS:
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
    if id(value) in above:
        return "..."
    if depth > _DEEPEST:
        return _LEFT_OUT
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
    first, rest = _first(items)
    parts = [f"{inner(key)}: {inner(each)}" for key, each in first]
    if unordered:
        parts.sort()
    return f"{{{', '.join(parts + rest)}}}"


def _sequence(values: Any, kind: type, inner: Any, unordered: bool) -> str:
    first, rest = _first(values)
    parts = [inner(each) for each in first]
    if unordered or kind is set or kind is frozenset:
        parts.sort()
    parts += rest
    if kind is tuple and len(parts) == 1:
        return f"({parts[0]},)"
    if kind is set and not parts:
        return "set()"
    start, end = tuple(_BRACKETS[id(kind)])
    text = f"{start}{', '.join(parts)}{end}"
    return f"frozenset({text if parts else ''})" if kind is frozenset else text


def _first(values: Any) -> tuple[list[Any], list[str]]:
    """Return as many values as are shown, and a placeholder if there are more."""
    first: list[Any] = []
    for each in values:
        if len(first) == _MOST:
            return first, [_LEFT_OUT]
        first.append(each)
    return first, []


def _object(value: Any, kind: type, inner: Any, unordered: bool) -> str:
    name = str.__str__(qualname_of(kind)).rpartition(".")[2]
    layout = layout_of(kind)
    attributes = (layout.dict_of and layout.dict_of(value)) or {}
    # By the attributes, without the methods of the class: they are the user's code.
    member = dict.get(attributes, "_name_")
    if type(member) is str and "_member_map_" in namespace_of(kind):
        return f"{name}.{member}"
    if issubclass(kind, BaseException):
        args = BaseException.__dict__["args"].__get__(value)
        return f"{name}({', '.join(map(inner, args))})"
    parts = []
    accessor = exact_accessor(kind) or accessor_of(layout.base) or Accessor()
    if id(layout.base) in _SHOWN_VALUES and accessor.parts is not None:
        label, base = accessor.parts(value)[0]
        parts.append(base.partition(" ")[0] if label == NAN else inner(base))
    elif accessor.body == "dict":
        parts.append(_dict(dict.items(value), inner, unordered))
    elif accessor.body == "ordered" and accessor.items is not None:
        parts.append(_dict(accessor.items(value), inner, False))
    elif accessor.body and accessor.items is not None:
        shape = tuple if layout.base is tuple else list
        parts.append(_sequence(list(accessor.items(value)), shape, inner, unordered))
        if layout.base is tuple:
            fields = _fields(value, kind, inner)
            parts[-1:] = fields or parts[-1:]
    elif accessor.parts is not None:
        parts += _parts(accessor, value, inner)
    for slot, getter in layout.slots:
        try:
            parts.append(f"{slot}={inner(getter(value))}")
        except AttributeError:
            continue
    left_out = noise_of(kind)
    first, rest = _first(attributes.items())
    parts += [
        f"{key}={inner(each)}"
        for key, each in first
        if type(key) is not str
        or key not in left_out
        or not is_noise_attribute(value, key, each)
    ]
    parts += rest
    return f"{name}({', '.join(parts)})"


def _parts(accessor: Accessor, value: Any, inner: Any) -> list[str]:
    if accessor.parts is None:
        return []
    try:
        parts = accessor.parts(value)
    except Unreadable as error:
        parts = error.parts
    return [f"{label}={inner(each)}" for label, each in parts if each is not ABSENT]


def _fields(value: Any, kind: type, inner: Any) -> list[str]:
    """Return the fields of a named tuple by name."""
    names = namespace_of(kind).get("_fields")
    if type(names) is not tuple or len(names) != tuple.__len__(value):
        return []
    values = tuple.__iter__(value)
    return [f"{name}={inner(each)}" for name, each in zip(names, values, strict=True)]


_SETS = frozenset({id(set), id(frozenset)})
_CONTAINERS = _SETS | {id(list), id(tuple), id(dict)}
# These types and their subclasses.
_VALUES = frozenset(
    map(
        id,
        (
            *(int, str, float, complex, bytes, tuple, frozenset, range, re.Pattern),
            *(date, time, timedelta, tzinfo, Decimal, Fraction, Enum, PurePath, UUID),
        ),
    )
)
_DATACLASS = type(vars(dataclass(type("_", (), {})))["__dataclass_params__"])
_ATOMS = ATOM_IDS | {id(int)}


@dataclass(frozen=True, slots=True)
class ValueSnapshot:
    """An answer as a value: a text for people, and a digest of its exact form.

    `cut` means that the text leaves something out.
    """

    text: str
    digest: bytes
    cut: bool = field(default=False, compare=False, repr=False)

    def __str__(self) -> str:
        return self.text


def canonical(
    value: object,
    *,
    unordered: bool = False,
    scope: FollowedScope | None = None,
    registry: object = None,
    names: GlobalNames | None = None,
    note: Callable[[Caveat], object] | None = None,
) -> Hashable:
    """Return an answer that can be stored and compared; a plain text is returned as is.

    With `unordered`, the order of dicts, lists and tuples does not count.  The contents
    of `registry` do not count, either.  `note` is called for what cannot be read.
    """
    if type(value) is str:
        return value
    names = names or GlobalNames()
    with pause_collector():
        heap = Heap(scope or FollowedScope(), registry)
        digest = _Digest(unordered, heap, names).of(value)
        text, cut = text_of(value, unordered, registry)
        name = _name_of(value, names)
        unread = [each for each in heap.caveats() if each.kind == "opaque"]
    if note is not None:
        for caveat in unread:
            note(caveat)
    return ValueSnapshot(f"{text} ({name})" if name else text, digest, cut)


def _name_of(value: object, names: GlobalNames) -> str:
    """Return the name of a global variable for an object that is not a value."""
    kind = type(value)
    return "" if id(kind) in PLAIN_KINDS or _is_value(kind) else names.name_of(value)


class _Cycle(Exception):
    """A container holds itself."""


class _Digest:
    """Digests of values, bottom up; one instance for each answer."""

    def __init__(self, unordered: bool, heap: Heap, names: GlobalNames) -> None:
        self.unordered = unordered
        self.heap = heap
        self.names = names
        self.numbers: dict[int, int] = {}
        self.known: dict[tuple[int, bool], bytes] = {}

    def of(self, value: Any) -> bytes:
        try:
            return self._of(value)
        except _Cycle:
            return self._form(value)

    def _form(self, value: Any) -> bytes:
        form = self.heap.form({ANSWER: value})
        return form.blind if self.unordered else form.exact

    def _of(self, root: Any) -> bytes:
        """Return the token of a value; visit containers before and after contents."""
        numbered = not self.unordered
        pending: list[tuple[Any, bool, bool]] = [(root, numbered, False)]
        open_: set[tuple[int, bool]] = set()
        while pending:
            value, numbered, complete = pending.pop()
            kind = type(value)
            key = (id(value), numbered)
            if id(kind) not in _CONTAINERS or key in self.known:
                continue
            if complete:
                open_.discard(key)
                self.known[key] = self._container(value, kind, numbered)
                continue
            if key in open_:
                raise _Cycle
            open_.add(key)
            pending.append((value, numbered, True))
            inner = numbered and id(kind) not in _SETS
            pending += [(each, inner, False) for each in reversed(_contents(value))]
        return self._token(root, not self.unordered)

    def _token(self, value: Any, numbered: bool) -> bytes:
        kind = type(value)
        if id(kind) in _ATOMS:
            return marshal.dumps((kind.__name__, value), 2)
        if id(kind) in _CONTAINERS:
            return self.known[id(value), numbered]
        digest = self.known.get((id(value), False))
        if digest is None:
            name = _name_of(value, self.names)
            digest = self._form(value) + (name and f" {name} ").encode()
            self.known[id(value), False] = digest
        if not numbered or _is_value(kind):
            return b"object" + digest
        number = self.numbers.setdefault(id(value), len(self.numbers))
        return b"object%d " % number + digest

    def _container(self, value: Any, kind: type, numbered: bool) -> bytes:
        inner = numbered and id(kind) not in _SETS
        if kind is dict:
            parts = [
                marshal.dumps((self._token(key, inner), self._token(each, inner)), 2)
                for key, each in value.items()
            ]
        else:
            parts = [self._token(each, inner) for each in value]
        if self.unordered or id(kind) in _SETS:
            parts.sort()
        written = marshal.dumps((kind.__name__, parts), 2)
        return hashlib.blake2b(written, digest_size=16).digest()


def _is_value(kind: type) -> bool:
    """Return True if instances are distinguishable from equal ones only by `is`."""
    bases = mro_of(kind)
    if any(id(base) in _VALUES for base in bases):
        return True
    parameters = namespace_of(kind).get("__dataclass_params__")
    return type(parameters) is _DATACLASS and parameters.frozen


def _contents(value: Any) -> list[Any]:
    if type(value) is dict:
        return [each for pair in value.items() for each in pair]
    contents: Iterable[Any] = value
    return list(contents)
