"""Programs: the functions and types that belong together, by their names.

True only here: who owns the names of functions.  The names of types are owned by the
namespace (see `runtime.schema.declaration`); methods lie with the declaration of their
class, module or interface: `declaration.functions`.

Rules:
- the name of a function is unique in its program, by the smallest free number, as the
  names of types are;
- what nobody discards lives as long as the program, and no longer, but for the
  functions of `SHARED_PROGRAM`, that of whoever names none: they live as long as
  somebody has them (the Python function that `jit.script` was given, a graph that calls
  them), and their names are free again then; its types live as long as the process;
- `compiled` is for who compiles: which function a function of Python became; nothing
  lives by that.  What else others find by a program, or by a declaration, lies in its
  `memo`: in a table with weak keys a value that leads to its key would keep both.
"""

from collections.abc import Mapping, MutableMapping
from types import MappingProxyType
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, WeakValueDictionary

from runtime.schema.declaration import SHARED, Namespace, unmangled
from runtime.schema.python_classes import PythonClasses
from runtime.script.program.function import Function


class Program:
    """Functions by their full names, a namespace of types, and the Python classes."""

    __slots__ = (
        "__weakref__",
        "_functions",
        "classes",
        "compiled",
        "memo",
        "namespace",
    )

    def __init__(
        self, namespace: Namespace | None = None, *, keeps: bool = True
    ) -> None:
        self.namespace = Namespace() if namespace is None else namespace
        self.classes = PythonClasses(self.namespace)
        self._functions: MutableMapping[str, Function] = (
            {} if keeps else WeakValueDictionary()
        )
        self.memo: dict[str, Any] = {}
        self.compiled: WeakKeyDictionary[Any, ReferenceType[Function]] = (
            WeakKeyDictionary()
        )

    @property
    def functions(self) -> Mapping[str, Function]:
        """The functions by their full names, in the order in which they came."""
        return MappingProxyType(self._functions)

    def free_name(self, qualname: str) -> str:
        """The name, with a number in it if it is taken."""
        plain = unmangled(qualname)
        path, _, name = plain.rpartition(".")
        free, number = plain, 0
        while free in self._functions or self.namespace.find(free) is not None:
            free, number = f"{path}.___torch_mangle_{number}.{name}", number + 1
        return free

    def add(self, function: Function) -> None:
        """Keep a function; an assertion fails if its name is taken."""
        kept = self._functions.setdefault(function.qualname, function)
        assert kept is function, "a name is asked for, and given once"

    def discard(self, function: Function) -> None:
        """Give the name of a function back; doing so again is harmless."""
        if self._functions.get(function.qualname) is function:
            del self._functions[function.qualname]


SHARED_PROGRAM = Program(SHARED, keeps=False)
