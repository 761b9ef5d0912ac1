"""What is looked at when all modules of an order are imported.

True only here: which packages are looked at, and what of them is left out.  This runs
in the process that imported them, and nothing of it is imported before they are.

Rules:
- looked at are the packages of the modules that were asked for, those that are to be
  watched, and every other package that these imports brought in, unless it is Python's;
- the state is taken before any use is evaluated, because a use may change it;
- addresses never show: the state is a canonical form (`harness.heap`), and texts of
  errors have theirs blotted out.
"""

import re
import sys
from collections.abc import Mapping
from types import BuiltinFunctionType, FunctionType, ModuleType
from typing import Any

from harness.heap import Answer, Heap, Scope, canonical
from harness.imports.seen import Raised, Seen, Told

# Paths that are not compared; the form leaves out `__spec__`, `__loader__`,
# `__cached__`, `__file__`, `__doc__` and `__builtins__` by itself, as the import
# system's.  The order of `sys.modules` is of no package.
LEFT_OUT: Mapping[str, str] = {
    "*.__warningregistry__": "which warnings were shown already",
    "*.__path__": "folders, which the import system works out again",
    "*._getitem.<cached>.cached": "what of `typing` was subscripted before",
}

# Tools that an environment may import at any time.
_NEVER = frozenset(
    {"__main__", "__mp_main__", "_distutils_hack", "_virtualenv", "coverage"}
)

# What the form tells by name, or by value.
_STATELESS = (
    *(type, ModuleType, FunctionType, BuiltinFunctionType),
    *(int, float, str, bytes, tuple, type(None)),
)

_ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{4,}")


def look(
    request: Mapping[str, Any],
    start: frozenset[str],
    modules: Mapping[str, Any],
    names: dict[str, Any],
    raised: tuple[tuple[str, str, str, str], ...],
) -> bytes:
    """A `Seen` of all that the request asks for, packed.

    `start` names what was there before, `modules` is what is there after the imports,
    and `names` are what they bound; uses may name the other packages as well.
    """
    packages = _packages(request, start, modules)
    roots = {
        name: module
        for name, module in sorted(modules.items())
        if name.partition(".")[0] in packages and isinstance(module, ModuleType)
    }
    left_out = (*LEFT_OUT, *_borrowed(roots, modules))
    scope = Scope(frozenset(packages), left_out)
    heap = Heap(scope)
    form = heap.form(roots)
    state = heap.portrait(roots) if request["whole"] else None
    opaque = tuple(each.text for each in heap.caveats() if each.kind == "opaque")
    for name in packages & modules.keys() - names.keys():
        names[name] = modules[name]
    seen = Seen(
        raised=tuple(_plain(*each) for each in raised),
        answers=tuple(_told(use, dict(names), scope) for use in request["uses"]),
        blind=form.blind,
        exact=form.exact,
        packages=tuple(sorted(packages)),
        loaded=frozenset(name for name in request["watch"] if name in modules),
        opaque=opaque,
        state=state,
    )
    return seen.packed()


def _packages(
    request: Mapping[str, Any], start: frozenset[str], modules: Mapping[str, Any]
) -> set[str]:
    """The top-level names of all that is looked at."""
    asked = {
        name.partition(".")[0] for name in (*request["modules"], *request["watch"])
    }
    brought = {name.partition(".")[0] for name in modules.keys() - start}
    brought = {name for name in brought if not name.startswith("_sysconfigdata")}
    return asked | (brought - sys.stdlib_module_names - _NEVER)


def _borrowed(roots: Mapping[str, ModuleType], modules: Mapping[str, Any]) -> list[str]:
    """Globals that are objects of the standard library: `from os import environ`.

    Their state is that module's, which is compared where it is watched.
    """
    owned = {
        id(value)
        for name, module in modules.items()
        if name not in roots and name.partition(".")[0] in sys.stdlib_module_names
        for value in getattr(module, "__dict__", {}).values()
        if _is_of_python(value)
    }
    return [
        f"{module}.{name}"
        for module, values in roots.items()
        for name, value in vars(values).items()
        if id(value) in owned and _is_of_python(value)
    ]


def _is_of_python(value: object) -> bool:
    """Whether it is an instance with a state, of a class of Python's own."""
    kind = type(value)
    if isinstance(value, _STATELESS):
        return False
    return kind.__module__.partition(".")[0] in sys.stdlib_module_names | {"builtins"}


def _plain(module: str, kind: str, text: str, where: str) -> Raised:
    return Raised(module, kind, _ADDRESS.sub("0x...", text), where)


def _told(use: str, names: dict[str, Any], scope: Scope) -> Told:
    try:
        answer = eval(use, names)  # noqa: S307  # asked for
    except BaseException as error:
        kind = type(error).__name__
        text = _ADDRESS.sub("0x...", f"{kind}: {error}".removesuffix(": "))
        return Told(text, kind=kind)
    value = canonical(answer, scope=scope)
    if isinstance(value, Answer):
        return Told(_ADDRESS.sub("0x...", value.text), value.digest)
    return Told(repr(value))
