"""What the names of modules are bound to whose contents nobody looks at.

Of a module that only caches, like `re`, the contents are noise.  Its functions are not:
whoever puts others in their place (`re.compile = traced`) and back again keeps a stack
of his own, and forgets it in the wrong order.

True only here: modules and their classes are looked at by name, one level deep, by ids.
What is no function or class, and begins with an underscore, is a cache or a flag.
"""

import sys
import types
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeAlias

from harness.heap.layout import (
    HEAP_TYPE,
    flags_of,
    module_dict,
    module_of,
    namespace_of,
)

# Those of `noise.py`, without the tools that look on.
_MODULES = (
    "_frozen_importlib",
    "_frozen_importlib_external",
    "linecache",
    "re",
    "re._compiler",
    "re._parser",
    "tokenize",
    "traceback",
    "zipimport",
)
_CALLED = (types.FunctionType, types.BuiltinFunctionType)


class Binding(NamedTuple):
    """The ids of a namespace and of what a name in it is bound to."""

    space: int
    value: int


Bindings: TypeAlias = Mapping[str, Binding]


def bindings() -> Bindings:
    """All names, as in `{"re.compile": ...}`; nothing is kept alive."""
    found: dict[str, Binding] = {}
    for name in _MODULES:
        module = dict.get(sys.modules, name)
        if not issubclass(type(module), types.ModuleType):
            continue
        space = module_dict(module)
        for key, value in _bound(space):
            found[f"{name}.{key}"] = Binding(id(space), id(value))
            if issubclass(type(value), type) and _belongs(value, name):
                inner = namespace_of(value)
                for own, each in _bound(inner):
                    found[f"{name}.{key}.{own}"] = Binding(id(value), id(each))
    return found


def _bound(space: Mapping[Any, Any]) -> Iterator[tuple[str, Any]]:
    """The names that mean something to others, with what they are bound to."""
    for key, value in list(space.items()):
        if type(key) is str and (
            not key.startswith("_")
            or type(value) in _CALLED
            or issubclass(type(value), type)
        ):
            yield key, value


def _belongs(kind: type, module: str) -> bool:
    """Whether a class is one of the module's own, and can be changed."""
    home = module_of(kind).replace("importlib._bootstrap", "_frozen_importlib")
    return home == module and bool(flags_of(kind) & HEAP_TYPE)


def rebound(before: Bindings, now: Bindings) -> Iterator[tuple[str, int]]:
    """The names that are bound to something else, each with the id of its namespace."""
    for name in sorted(before.keys() | now.keys()):
        if before.get(name) != now.get(name):
            yield name, (now.get(name) or before[name]).space
