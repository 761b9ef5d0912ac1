"""The packages that a state is followed into, and the exceptions: ignored paths, noise.

A class, function or module is written by its name alone if it belongs to a package
outside of the scope and its name resolves to this very object; all others are followed.
The scope is the set of packages of the registry, the steps, the uses and the handles.

Two kinds of state are left out.  *Ignored* paths are declared by a user
(`registry._next_id`, `*.hits`).  *Noise* may change without a change of any answer: see
`noise.py`.

The last piece of an ignored path is compared with every label that is written, which is
cheap; only if it matches, the whole path is determined, from the records written so
far, and compared.
"""

import functools
import gc
import re
import sys
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary, WeakSet, WeakValueDictionary

from everyorder.harness.state.decode import Records
from everyorder.harness.state.layout import (
    module_dict,
    module_of,
    mro_of,
    namespace_of,
)

# This package, whose parts are followed, or not, each by itself.
FACE = "everyorder"

# Packages whose classes wrap objects of others, or are the language itself: an instance
# of such a class does not show the package of the state.
_GLUE = frozenset({"", "builtins", "functools", "types", "typing", "abc", "enum"})

_FUNCTION = types.FunctionType
_SUSPENDED = (types.GeneratorType, types.CoroutineType, types.AsyncGeneratorType)


def package_of(module: str) -> str:
    """Return the name of the package that a module is followed with.

    It is the top-level package, except inside of `everyorder`, whose runtime may be a
    registry under exploration while its harness never is.
    """
    top, _, below = module.partition(".")
    if top == FACE and below:
        return f"{FACE}.{below.partition('.')[0]}"
    return top


@dataclass(frozen=True)
class FollowedScope:
    """Names of the packages that are followed (see `package_of`), and what is not.

    In a path of `ignore`, as in `registry._next_id` or `*.hits`, `*` stands for any
    text and `?` for one character.  Values of the kinds in `unique` are replaced by
    numbers (see `unique_values`).  `full` are names of functions whose caches were full
    in some state (see `encoders.py`).
    """

    packages: frozenset[str] = frozenset()
    ignore: tuple[str, ...] = ()
    unique: frozenset[str] = frozenset()
    full: frozenset[str] = frozenset()


def scope_of(things: Iterable[object], ignore: Iterable[str] = ()) -> FollowedScope:
    """Return the scope of a registry, steps and uses: the packages that define them."""
    packages: set[str] = set()
    pending = list(things)
    visited: dict[int, object] = {}
    while pending:
        thing = pending.pop()
        if id(thing) not in visited:
            visited[id(thing)] = thing
            names, more = _packages(thing)
            packages.update(map(package_of, names))
            pending += more
    return FollowedScope(frozenset(packages - _GLUE), tuple(ignore))


def _packages(thing: Any) -> tuple[list[str], list[object]]:
    """Return the modules that a thing belongs to, and the things that it wraps."""
    # By the exact type: `isinstance` may call a `__class__` of the user's.
    kind = type(thing)
    if kind is _FUNCTION:
        # Reading `__dict__` would create one: a change caused by the harness.
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
        referents = gc.get_referents(thing)
        return [], [each for each in referents if type(each) is _FUNCTION]
    if kind is list or kind is tuple or kind is set or kind is frozenset:
        return [], list(thing)
    if kind is dict:
        return [], list(thing.values())
    return [module_of(each) for each in mro_of(kind)], []


def function_modules(function: types.FunctionType) -> tuple[str, str]:
    """Return the module that a function names, and the one whose globals it reads."""
    module = function.__module__
    real = dict.get(function.__globals__, "__name__")
    return (
        module if type(module) is str else "",
        real if type(real) is str else "",
    )


def resolve(module: str, qualname: str) -> object:
    """Return the object of a dotted name in a module, or None; runs no code."""
    value: Any = sys.modules.get(module)
    if value is None or not issubclass(type(value), types.ModuleType):
        return None
    space: Any = module_dict(value)
    for piece in qualname.split("."):
        if space is None or piece not in space:
            return None
        value = space[piece]
        space = namespace_of(value) if issubclass(type(value), type) else None
    if type(value) is staticmethod or type(value) is classmethod:
        return value.__func__
    return value


def matcher(patterns: Iterable[str]) -> re.Pattern[str] | None:
    """Return a pattern for paths: `*` is any text, `?` is one character."""
    written = [
        re.escape(each).replace(r"\*", ".*").replace(r"\?", ".") for each in patterns
    ]
    return re.compile("|".join(f"(?:{each})" for each in written)) if written else None


def is_global(pattern: str) -> bool:
    """Return True if an ignored path is a name in a module or in one of its classes."""
    module = pattern.rpartition(".")[0]
    while module and module not in sys.modules:
        module = module.rpartition(".")[0]
    return bool(module) and not {"*", "?", "["}.intersection(pattern)


_LAST_PIECE = re.compile(r"(\[[^\[\]]*\]|[^.\[\]]*)$")


class IgnorePatterns:
    """The ignored paths of a scope, for one walk."""

    def __init__(self, patterns: tuple[str, ...]) -> None:
        self.patterns = patterns
        whole = matcher(patterns)
        last = matcher(
            {_LAST_PIECE.search(each).group() for each in patterns}  # type: ignore[union-attr]  # it may be empty, but it is there
        )
        if whole is None or last is None:
            raise AssertionError("made only where there are patterns")
        self._whole = whole
        self._last = last
        literal = not {"*", "?"}.intersection("".join(patterns))
        self._literal = frozenset(patterns) if literal else None
        self._records: Records | None = None

    def concerns(self, keys: Iterable[Any]) -> bool:
        """Return True if one of these attributes or keys can end an ignored path."""
        return any(type(key) is str and self.ends(key) for key in keys)

    def ends(self, label: str) -> bool:
        """Return True if a label, or a key in brackets, can end an ignored path."""
        fits = self._last.fullmatch
        return bool(fits(label) or fits(f"[{label!r}]"))

    def path(self, text: str) -> bool:
        """Return True if a whole path is ignored."""
        if self._literal is not None:
            return text in self._literal
        return bool(self._whole.fullmatch(text))

    def covering(self, path: str) -> str | None:
        """Return the ignored path that a path is, or is below; None if there is none.

        The shortest one is returned.
        """
        ends = [at for at, sign in enumerate(path) if at and sign in ".["]
        return next(
            (path[:end] for end in (*ends, None) if self.path(path[:end])), None
        )

    def matches(self, tokens: list[Any], number: int, label: str) -> bool:
        """Return True if a label of a numbered object is ignored."""
        if self._records is None:
            self._records = Records(tokens)
        self._records.read()
        return self.path(join(self._records.path(number), label))


def join(path: str, label: str) -> str:
    """Return a path extended by a label."""
    return path + (label if label.startswith("[") else f".{label}")


_WEAK = (WeakSet, WeakKeyDictionary, WeakValueDictionary)
# Pending tasks are roots of a state; asyncio's own set of them tells nothing more.
_LISTED_TASKS = ("asyncio.", "_asyncio.")


def weak_containers(changes: Iterable[str]) -> dict[str, object]:
    """Return the weak containers whose members changed, by their paths.

    A package that tracks objects of its users (locks, instances) changes its set with
    each fresh registry.  Which of them are members may be read, so the set is state.
    """
    containers: dict[str, object] = {}
    for change in changes:
        path, data, _ = change.partition(".data")
        if not data or path.startswith(_LISTED_TASKS):
            continue
        module, _, name = path.rpartition(".")
        while module and module not in sys.modules:
            module, _, first = module.rpartition(".")
            name = f"{first}.{name}"
        container = resolve(module, name) if module else None
        if any(type(container) is each for each in _WEAK):
            containers[path] = container
    return containers
