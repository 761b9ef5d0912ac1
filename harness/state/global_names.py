"""Names of objects that global variables hold, to distinguish objects that are alike.

Two sentinels, or two handlers of one class without different attributes, have equal
forms.  An answer that is one of them is another answer than the other one, so the name
of a global variable is added to its form.

Rules:
- the names are those of the moment when the first registry was made; an object has the
  first name in the order of its module.  So rebinding a variable renames nothing;
- no object is kept alive, and none without weak references is named, except an instance
  of `object` itself;
- values and containers have no names, nor has a function or class that its own module
  knows by its name: its form contains that.
"""

import types
import weakref
from collections.abc import Callable, Iterable
from typing import Any

from everyorder.harness.state.layout import module_of, qualname_of
from everyorder.harness.state.tokens import ATOM_IDS

_CONTAINERS = frozenset(map(id, (list, tuple, dict, set, frozenset)))


class GlobalNames:
    """Names of objects by identity; empty before `read`."""

    def __init__(self) -> None:
        self._entries: dict[int, tuple[Callable[[], Any], str]] = {}
        self._modules: set[int] = set()

    def read(self, spaces: Iterable[dict[str, Any]]) -> None:
        """Name the objects in these namespaces of modules, each namespace once."""
        for space in spaces:
            if id(space) in self._modules:
                continue
            self._modules.add(id(space))
            module = dict.get(space, "__name__")
            for name, value in list(dict.items(space)):
                if type(name) is str and not name.startswith("__"):
                    self._add(value, module, name)

    def _add(self, value: Any, module: object, name: str) -> None:
        kind = type(value)
        if id(kind) in ATOM_IDS or id(kind) in _CONTAINERS:
            return
        if issubclass(kind, types.ModuleType) or _is_known_as(value, module, name):
            return
        if self.name_of(value):
            return
        if kind is object:
            self._entries[id(value)] = (lambda: value), name
            return
        try:
            self._entries[id(value)] = weakref.ref(value), name
        except TypeError:
            return

    def name_of(self, value: object) -> str:
        """Return the name of an object, of a bound method's object, or ""."""
        if type(value) is types.MethodType:
            own, function = map(self.name_of, (value.__self__, value.__func__))
            return f"{function} of {own}" if own or function else ""
        entry = self._entries.get(id(value))
        return entry[1] if entry is not None and entry[0]() is value else ""


def _is_known_as(value: Any, module: object, name: str) -> bool:
    """Return True for a function or class that its module knows by this name."""
    if type(value) is types.FunctionType:
        return bool(value.__module__ == module and value.__qualname__ == name)
    if issubclass(type(value), type):
        return module_of(value) == module and qualname_of(value) == name
    return False
