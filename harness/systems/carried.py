"""The data that an exception carries in addition to its text, for comparisons.

Handlers decide by the fields of an exception, not by its text.  Compared are its class
(by name and bases), its arguments, the fields of its built-in base, the attributes that
Python code has set, its notes, and the members of a group.

Rules:
- only plain data is compared: built-in values, exact containers of them, exceptions,
  and classes, functions and members of enumerations that their module knows by name.
  In the place of every other object stands its class, and `left_out` names it;
- texts are compared without addresses, because they differ from run to run;
- not compared: cause, context and traceback; the `obj` of an AttributeError, which is
  the object that the user asked;
- no code of the user runs: fields are read by the descriptors of built-in types.
"""

import re
import types
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from everyorder.harness.state import canonical
from everyorder.harness.state.accessors import accessor_of
from everyorder.harness.state.layout import (
    ABSENT,
    layout_of,
    module_of,
    mro_of,
    qualname_of,
)
from everyorder.harness.state.scope import resolve
from everyorder.harness.state.value_snapshot import PLAIN_KINDS, ValueSnapshot

# As `repr` writes an address: all that are in use have so many digits.
_ADDRESS = re.compile(r"\bat 0x[0-9A-Fa-f]{7,}")
# The text of Python's limit; how it goes on depends on the machine.
RECURSION = "maximum recursion depth exceeded"
# Deeper data, and more of it, is left out.
_DEEPEST = 6
_MOST = 5_000
_CONTAINERS = (list, tuple, dict, set, frozenset)
# In the order of an exception's own `args`, or set by the interpreter.
_SKIPPED = frozenset(
    {
        *("args", "exceptions", "message", "obj", "value"),
        *("__cause__", "__context__", "__suppress_context__", "__traceback__"),
    }
)
_args_of = BaseException.__dict__["args"].__get__
_members_of = BaseExceptionGroup.__dict__["exceptions"].__get__


@dataclass(frozen=True, slots=True)
class NotCompared:
    """An object that an exception carries, of which only the class is compared."""

    kind: str


def without_addresses(text: str) -> str:
    """Return a text with the same mark in the place of each address."""
    return _ADDRESS.sub("at 0x...", text)


class CarriedData:
    """The data of one exception and of its members; `left_out` names other objects.

    `name_and_text` returns the class name and the text of an exception.
    """

    def __init__(
        self, name_and_text: Callable[[BaseException], tuple[str, str]]
    ) -> None:
        self.left_out: set[str] = set()
        self._name_and_text = name_and_text
        self._rest = _MOST

    def named(self, error: BaseException, name: str, text: str) -> Hashable:
        """Return the name, with the class, arguments and built-in fields behind it.

        Only the name for an exception of Python's own that has no more than its text.
        """
        data = self._fixed(error, text, 0)
        if module_of(type(error)) == "builtins" and len(data) == 1:
            return name
        value = canonical(data)
        assert isinstance(value, ValueSnapshot), "a list is not a text"
        return ValueSnapshot(name, value.digest)

    def shown(self, error: BaseException, depth: int = 0) -> dict[str, Any]:
        """Return attributes, notes and members, in the order of their names."""
        place = qualname_of(type(error))
        rows = {
            name: self._plain(value, f"{place}.{name}", depth)
            for name, value in sorted(_attributes(error).items())
        }
        if issubclass(type(error), BaseExceptionGroup):
            members = list(_members_of(error))
            rows["exceptions"] = self._plain(members, f"{place}.exceptions", depth)
        return rows

    def _fixed(self, error: BaseException, text: str, depth: int) -> list[Any]:
        kind = type(error)
        place = qualname_of(kind)
        rows: list[Any] = [[f"{module_of(e)}.{qualname_of(e)}" for e in mro_of(kind)]]
        args = list(_args_of(error))
        if issubclass(kind, BaseExceptionGroup):
            args = args[:1]  # then the members, which are shown
        if not _is_text_of(args, text):
            rows.append(("args", self._plain(args, f"{place}.args", depth)))
        accessor = accessor_of(layout_of(kind).base)
        parts = accessor.parts(error) if accessor and accessor.parts else []
        rows += [
            (name, self._plain(value, f"{place}.{name}", depth))
            for name, value in parts
            if name not in _SKIPPED and value is not ABSENT
        ]
        return rows

    def _plain(self, value: Any, place: str, depth: int) -> Any:
        kind = type(value)
        self._rest -= 1
        if kind is str:
            return without_addresses(value)
        if id(kind) in PLAIN_KINDS or _is_known_by_name(value):
            return value
        if depth < _DEEPEST and self._rest > 0:
            if issubclass(kind, BaseException):
                name, text = self._name_and_text(value)
                fixed = self._fixed(value, text, depth + 1)
                return [name, text, fixed, self.shown(value, depth + 1)]
            if kind in _CONTAINERS and len(value) <= self._rest:
                try:
                    return self._container(value, kind, place, depth + 1)
                except TypeError:  # a member that is not hashable without its object
                    pass
        self.left_out.add(place)
        return NotCompared(qualname_of(kind))

    def _container(self, value: Any, kind: type, place: str, depth: int) -> Any:
        if kind is dict:
            return {
                self._plain(key, place, depth): self._plain(each, place, depth)
                for key, each in value.items()
            }
        return kind([self._plain(each, place, depth) for each in value])


def _is_text_of(args: list[Any], text: str) -> bool:
    """Return True if a text has all arguments, which are texts."""
    if text == RECURSION:
        return True
    if any(type(each) is not str for each in args):
        return False
    shown = [*args, *map(repr, args)] if len(args) == 1 else [repr(tuple(args))]
    return not args or text in map(without_addresses, shown)


def _attributes(error: BaseException) -> dict[str, Any]:
    """Return the attributes of an error that Python code has set, by name."""
    layout = layout_of(type(error))
    rows = dict((layout.dict_of and layout.dict_of(error)) or {})
    for name, getter in layout.slots:
        try:
            rows[name] = getter(error)
        except AttributeError:
            continue
    return {str(name): value for name, value in rows.items()}


def _is_known_by_name(value: Any) -> bool:
    """Return True for a class, function or member that its module knows by name."""
    kind = type(value)
    if kind is types.FunctionType:
        module, name = value.__module__, value.__qualname__
    elif issubclass(kind, type):
        module, name = module_of(value), qualname_of(value)
    elif issubclass(kind, Enum):
        return _is_known_by_name(kind)
    else:
        return False
    return type(module) is str and resolve(module, name) is value
