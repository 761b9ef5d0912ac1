"""The names that code loads: globals, free variables, imports, and their attributes.

Code is read once; the values of the names are looked up for each reading, as a name may
be bound again.  No code of the program is run for that.
"""

import dis
import sys
from collections.abc import Iterator, Mapping
from types import CodeType, ModuleType
from typing import Any, NamedTuple

from everyorder.harness.state.layout import Memo, module_dict, mro_of, namespace_of

UNKNOWN = object()
# Instructions that do nothing.
SILENT = frozenset({"CACHE", "EXTENDED_ARG", "NOP", "RESUME", "PRECALL"})
NAMES = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
ATTRIBUTES = frozenset({"LOAD_ATTR", "LOAD_METHOD"})
_FREE = frozenset({"LOAD_DEREF", "LOAD_CLASSDEREF", "LOAD_FROM_DICT_OR_DEREF"})
_SET = frozenset({"STORE_ATTR", "DELETE_ATTR"})
# Functions that ask for an attribute; those but the first return none.
_ASKERS = ("getattr", "delattr", "hasattr", "setattr")
# By these functions an `assert` that pytest has rewritten shows what it compared.
_SHOWN = ("_should_repr_global_name", "_saferepr")


class Load(NamedTuple):
    """One instruction that loads a name, the first or a later one of a chain.

    `begins` is where the first name is bound: "global", "free", or "import" for one of
    `sys.modules`; of later names it is empty.  A value `is_passed` if it is neither
    called nor asked for an attribute of a constant name.
    """

    name: str
    begins: str = ""
    is_callee: bool = False
    is_passed: bool = False


class _Reader:
    """Reads the instructions of code one after the other."""

    def __init__(self, code: CodeType) -> None:
        self.loads: list[Load] = []
        # The variables that hold something imported; what is being imported.
        self._imported: dict[str, tuple[str, ...]] = {}
        self._module: tuple[str, ...] = ()
        self._to_store: tuple[str, ...] = ()
        # True while an attribute of the last load may follow, and if it was pushed to
        # be called; the name that was loaded directly before its chain.
        self._attached = self._pushed = False
        self._asker = ""
        self._shown = False
        self._constant: Any = None
        for kind, value, is_called in _simplified(code):
            self._read(kind, value, is_called=is_called)

    def _read(self, kind: str, value: Any, *, is_called: bool) -> None:
        if kind == "attribute" and self._attached:
            self._pushed = self._pushed or is_called
            self.loads.append(Load(value, is_callee=self._pushed))
            return
        before = self.loads[-1].name if self._attached else ""
        if self._attached:
            self._end(kind, value)
        self._attached = False
        if kind in ("global", "free", "local"):
            self._begin(kind, value, is_called=is_called)
            self._asker = before if before in _ASKERS else ""
            self._shown = before in _SHOWN
        elif kind == "constant":
            self._constant = value
        elif kind == "import":
            # Without names to import from it, the outermost package is bound.
            module = value if self._constant else value.partition(".")[0]
            self._module = self._to_store = (module,)
            self._add(self._module)
        elif kind == "from":
            self._to_store = (*self._module, value)
            self._add(self._to_store)
        elif kind == "store" and self._to_store:
            self._imported[value] = self._to_store
            self._to_store = ()

    def _begin(self, kind: str, name: str, *, is_called: bool) -> None:
        self._attached, self._pushed = True, is_called
        if name in self._imported:
            self._add(self._imported[name])
        elif kind == "local":
            self._attached = False
        else:
            self.loads.append(Load(name, kind, is_callee=is_called))

    def _add(self, chain: tuple[str, ...]) -> None:
        """Add loads of something imported; it is taken as called, as most of it is."""
        self.loads.append(Load(chain[0], "import", is_callee=True))
        self.loads += [Load(each, is_callee=True) for each in chain[1:]]

    def _end(self, kind: str, value: Any) -> None:
        if self._asker and kind == "constant" and type(value) is str:
            if self._asker == _ASKERS[0]:
                self.loads.append(Load(value))
        elif kind != "set" and not self._shown:
            self.loads[-1] = self.loads[-1]._replace(is_passed=True)


def _simplified(code: CodeType) -> Iterator[tuple[str, Any, bool]]:
    """Yield the kind of each instruction, its argument, and True if it is for a call.

    One that loads and stores several variables is yielded as so many.
    """
    for instruction in dis.get_instructions(code):
        name, value = instruction.opname, instruction.argval
        if name in SILENT or name == "PUSH_NULL":
            continue
        if name in ATTRIBUTES:
            called = name == "LOAD_METHOD" or "NULL" in instruction.argrepr
            yield "attribute", value, called
        elif name in NAMES or name in _FREE:
            # A callee is paired with NULL, before its chain or by its instruction.
            kind = "global" if name in NAMES else "free"
            yield kind, value, "NULL" in instruction.argrepr
        elif name == "LOAD_CONST":
            yield "constant", value, False
        elif name == "IMPORT_NAME":
            yield "import", value, False
        elif name == "IMPORT_FROM":
            yield "from", value, False
        elif name in _SET:
            yield "set", value, False
        elif name.startswith(("LOAD_FAST", "STORE_")) and name != "STORE_SUBSCR":
            several = value if type(value) is tuple else (value,)
            for at, each in enumerate(several):
                stores = name.startswith("STORE_") and (at == 0 or "LOAD" not in name)
                yield "store" if stores else "local", each, False
        else:
            yield "other", value, False


def _read_loads(code: CodeType) -> list[Load]:
    return _Reader(code).loads


_loads_of = Memo(_read_loads)


def resolved(
    code: CodeType,
    names: dict[str, Any],
    outer: dict[str, Any],
    free: Mapping[str, Any],
) -> Iterator[tuple[Load, Any]]:
    """Yield the loads of code with their values, or with `UNKNOWN`.

    The names are bound in dicts: global ones, builtins, and free variables.
    """
    value: Any = UNKNOWN
    for load in _loads_of(code):
        if load.begins == "import":
            value = sys.modules.get(load.name, UNKNOWN)
        elif load.begins == "free":
            value = free.get(load.name, UNKNOWN)
        elif load.begins:
            value = bound(load.name, names, outer)
        else:
            value = attribute_of(value, load.name)
        yield load, value


def bound(name: str, names: dict[str, Any], outer: dict[str, Any]) -> Any:
    """Return the value of a global name or else of a builtin one, or `UNKNOWN`."""
    value = dict.get(names, name, UNKNOWN)
    return dict.get(outer, name, UNKNOWN) if value is UNKNOWN else value


def attribute_of(value: Any, name: str) -> Any:
    """Return an attribute of a module or class, or `UNKNOWN`; runs no code."""
    if issubclass(type(value), ModuleType):
        return module_dict(value).get(name, UNKNOWN)
    if issubclass(type(value), type):
        for base in mro_of(value):
            if name in namespace_of(base):
                return namespace_of(base)[name]
    return UNKNOWN
