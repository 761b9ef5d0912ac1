"""Names of objects that global variables hold, to distinguish objects that are alike.

Two sentinels, or two handlers of one class without different attributes, have equal
forms.  An answer that is one of them is another answer than the other one, so the name
of a global variable is added to its form.

Rules:
- the names are those of the moment when they are read: a variable that is bound again
  later renames nothing.  Of several names of an object the first one read counts;
- objects are referred to weakly.  Of those that do not support it, such as `object()`,
  only the ones that refer to their class alone are named, and stay alive;
- values and containers are not named, nor is a function or class that its own module
  knows by its name: its form contains that;
- an object inside of another one is not named, except in lists, tuples, dicts and sets.
"""

import gc
import types
import weakref
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from everyorder.harness.state.layout import module_of, qualname_of
from everyorder.harness.state.tokens import ATOM_IDS

_CONTAINERS = frozenset(map(id, (list, tuple, dict, set, frozenset)))


class _Reference(weakref.ref[Any]):
    """A reference that is not the one of the program, whose hash is state."""

    __slots__ = ()


class GlobalNames:
    """Names of objects by identity; empty before `read`."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Any], str]] = {}

    def read(self, spaces: Iterable[dict[str, Any]]) -> None:
        """Name the objects in these namespaces of modules."""
        for space in {id(each): each for each in spaces}.values():
            module = dict.get(space, "__name__")
            if type(module) is not str:
                continue
            for name, value in list(dict.items(space)):
                if type(name) is str and not name.startswith("__"):
                    self._add(value, module, name)

    def _add(self, value: Any, module: str, name: str) -> None:
        kind = type(value)
        if id(kind) in ATOM_IDS or kind is int or id(kind) in _CONTAINERS:
            return
        if issubclass(kind, types.ModuleType) or _is_known_as(value, module, name):
            return
        if self.name_of(value):
            return
        entry: Callable[[], Any]
        try:
            entry = _Reference(value)
        except TypeError:
            if any(each is not kind for each in gc.get_referents(value)):
                return
            entry = partial(_same, value)
        self._entries[id(value)] = entry, f"{module}.{name}"

    def name_of(self, value: object) -> str:
        """Return the name of an object, of a bound method's object, or ""."""
        if type(value) is types.MethodType:
            names = map(self.name_of, (value.__self__, value.__func__))
            return ", ".join(filter(None, names))
        entry = self._entries.get(id(value))
        return entry[1] if entry is not None and entry[0]() is value else ""


def _same(value: Any) -> Any:
    return value


def _is_known_as(value: Any, module: str, name: str) -> bool:
    """Return True for a function or class that its module knows by this name."""
    if type(value) is types.FunctionType:
        own = value.__module__
        return type(own) is str and own == module and value.__qualname__ == name
    if issubclass(type(value), type):
        return module_of(value) == module and qualname_of(value) == name
    return False
