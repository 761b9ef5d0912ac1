"""Which packages a state is followed into, and what of it is left out.

A class, function or module is written by its name alone if it belongs to a package
outside of the scope and its name yields this very object; all others are followed.
The scope consists of the packages of the registry, the steps, the uses and the handles.
"""

import functools
import gc
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from harness.heap.layout import module_dict, module_of, mro_of, namespace_of

# Their classes wrap what belongs to others, or are the language itself: an instance of
# theirs says nothing about where the state is.
_GLUE = frozenset({"", "builtins", "functools", "types", "typing", "abc", "enum"})

_FUNCTION = types.FunctionType
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


@dataclass(frozen=True)
class Scope:
    """Top-level names of the packages that are followed, and ignored paths.

    In a path of `ignore`, as in `registry._next_id` or `*.hits`, `*` stands for any
    text and `?` for one character.
    """

    packages: frozenset[str] = frozenset()
    ignore: tuple[str, ...] = ()


def scope_of(things: Iterable[object], ignore: Iterable[str] = ()) -> Scope:
    """The scope of a registry, its steps and uses: the packages they come from."""
    packages: set[str] = set()
    pending = list(things)
    known: dict[int, object] = {}
    while pending:
        thing = pending.pop()
        if id(thing) not in known:
            known[id(thing)] = thing
            names, more = _packages(thing)
            packages.update(name.partition(".")[0] for name in names)
            pending += more
    return Scope(frozenset(packages - _GLUE), tuple(ignore))


def _packages(thing: Any) -> tuple[list[str], list[object]]:
    """Modules that a thing belongs to, and things that it wraps."""
    kind = type(thing)
    if kind is _FUNCTION:
        # Reading `__dict__` would make one: a change that is nobody's.
        wrapped = getattr(thing, "__wrapped__", None)
        more = [] if wrapped is None else [wrapped]
        for cell in thing.__closure__ or ():
            try:
                if type(cell.cell_contents) is _FUNCTION:
                    more.append(cell.cell_contents)
            except ValueError:  # an empty cell
                continue
        return [text for text in function_modules(thing) if text], more
    if issubclass(kind, types.ModuleType):
        name = module_dict(thing).get("__name__")
        return [name] if type(name) is str else [], []
    if issubclass(kind, type):
        return [module_of(each) for each in mro_of(thing)], []
    if kind is types.MethodType:
        return [], [thing.__func__, thing.__self__]
    if issubclass(kind, functools.partial):
        bound = functools.partial.__dict__
        args = bound["args"].__get__(thing)
        named = bound["keywords"].__get__(thing)
        return [], [bound["func"].__get__(thing), *args, *named.values()]
    if kind is staticmethod or kind is classmethod:
        return [], [thing.__func__]
    if kind is functools._lru_cache_wrapper:
        return [], [thing.__wrapped__] if "__wrapped__" in thing.__dict__ else []
    if kind is types.BuiltinFunctionType or kind is types.MethodWrapperType:
        owner = thing.__self__
        return [], [] if type(owner) is types.ModuleType else [owner]
    if any(kind is each for each in _SUSPENDED):
        held = gc.get_referents(thing)
        return [], [each for each in held if type(each) is _FUNCTION]
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        return [], list(thing)
    if kind is dict:
        return [], list(thing.values())
    return [module_of(each) for each in mro_of(kind)], []


def function_modules(function: types.FunctionType) -> tuple[str, str]:
    """The module that a function names, and the one whose globals it reads."""
    told = function.__module__
    real = function.__globals__.get("__name__")
    return (
        told if type(told) is str else "",
        real if type(real) is str else "",
    )


def resolve(module: str, qualname: str) -> object:
    """What a module has under a dotted name, without running any code, or None."""
    found: Any = sys.modules.get(module)
    if found is None or not issubclass(type(found), types.ModuleType):
        return None
    space: Any = module_dict(found)
    for piece in qualname.split("."):
        if space is None or piece not in space:
            return None
        found = space[piece]
        space = namespace_of(found) if issubclass(type(found), type) else None
    if type(found) is staticmethod or type(found) is classmethod:
        return found.__func__
    return found


def matcher(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """A pattern for paths: `*` is any text, `?` one character, all else itself."""
    written = [
        re.escape(each).replace(r"\*", ".*").replace(r"\?", ".") for each in patterns
    ]
    return re.compile("|".join(f"(?:{each})" for each in written)) if written else None
