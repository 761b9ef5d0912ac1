"""Which packages a state is followed into, and what of it is left out.

A class, function or module is written by its name alone if it belongs to a package
outside of the scope and its name yields this very object; all others are followed.  The
scope consists of the packages of the registry, the steps, the uses and the handles.

Left out are the paths that a user declares to be no state (`registry._next_id`,
`*.hits`) and noise, which may change without anybody's answer changing: pure caches,
which are filled again with the same, and the tools that look on.  Noise is data, each
entry with its reason; the canonical form leaves out the attributes, and what lies
outside is compared without any.

Of an ignored path the last piece is compared with every label that is written, which is
cheap; only where it fits the path is worked out, from what has been written so far, and
compared as a whole.
"""

import functools
import gc
import re
import sys
import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from everyorder.harness.state.decode import Records
from everyorder.harness.state.layout import (
    Memo,
    is_standard,
    module_dict,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)

# Their classes wrap what belongs to others, or are the language itself: an instance of
# theirs says nothing about where the state is.
# This package, whose parts are followed, or not, each for itself.
FACE = "everyorder"

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
    """Names of the packages that are followed (see `package_of`), and ignored paths.

    In a path of `ignore`, as in `registry._next_id` or `*.hits`, `*` stands for any
    text and `?` for one character.
    """

    packages: frozenset[str] = frozenset()
    ignore: tuple[str, ...] = ()


def scope_of(things: Iterable[object], ignore: Iterable[str] = ()) -> FollowedScope:
    """The scope of a registry, its steps and uses: the packages they come from."""
    packages: set[str] = set()
    pending = list(things)
    known: dict[int, object] = {}
    while pending:
        thing = pending.pop()
        if id(thing) not in known:
            known[id(thing)] = thing
            names, more = _packages(thing)
            packages.update(map(package_of, names))
            pending += more
    return FollowedScope(frozenset(packages - _GLUE), tuple(ignore))


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
        self._records: Records | None = None

    def concerns(self, keys: Iterable[Any]) -> bool:
        """Whether one of these attributes or keys may be the end of a pattern."""
        return any(type(key) is str and self.ends(key) for key in keys)

    def ends(self, label: str) -> bool:
        """Whether a label, or a key in brackets, fits the end of a pattern."""
        fits = self._last.fullmatch
        return bool(fits(label) or fits(f"[{label!r}]"))

    def path(self, text: str) -> bool:
        """Whether a whole path is ignored."""
        return bool(self._whole.fullmatch(text))

    def matches(self, tokens: list[Any], number: int, label: str) -> bool:
        """Whether something in the object of a number is ignored."""
        if self._records is None:
            self._records = Records(tokens)
        self._records.read()
        return self.path(join(self._records.path(number), label))


def join(path: str, label: str) -> str:
    """A path, and what is below it."""
    return path + (label if label.startswith("[") else f".{label}")


# Packages and modules that are not entered, nor the instances of their classes.
NOISE_MODULES: Mapping[str, str] = {
    "everyorder.harness": "it looks on",
    "everyorder": "it looks on",
    "_pytest": "it looks on",
    "pytest": "it looks on",
    "_frozen_importlib": "an import is told by its name",
    "_frozen_importlib_external": "an import is told by its name",
    "importlib._bootstrap": "an import is told by its name",
    "importlib._bootstrap_external": "an import is told by its name",
    "zipimport": "an import is told by its name",
    "tokenize": "compiled patterns",
    "traceback": "keeps nothing of its own",
    "re": "compiled patterns are equal whenever they are made",
    "sre_compile": "compiled patterns are equal whenever they are made",
    "sre_parse": "compiled patterns are equal whenever they are made",
}

# The same, as long as nothing that is followed speaks of them.
NOISE_UNLESS_NAMED: Mapping[str, str] = {
    "xdist": "it looks on",
    "execnet": "it looks on",
    "coverage": "it looks on",
    "hypothesis": "it looks on",
    "_hypothesis_pytestplugin": "it looks on",
    "tracemalloc": "it looks on",
    "pdb": "it looks on",
    "bdb": "it looks on",
    "linecache": "lines of files, read again when they are missing",
}

# Paths (as of fnmatch) of what may change, it and all below, without anybody's answer
# changing: anybody's whose code does not name it, module and all.
NOISE_PATHS: Mapping[str, str] = {
    "*.__warningregistry__": "which warnings were shown once",
    "warnings.onceregistry": "which warnings were shown once",
    "*.__slotnames__": "copyreg remembers the slots of a class",
    "sys.path_importer_cache": "finders are equal whenever they are made",
    "sys.last_*": "what an interactive interpreter showed last",
    "threading._active": "threads are not operations",
    "threading._limbo": "threads are not operations",
    "threading._dangling": "threads are not operations",
    "threading._shutdown_locks": "threads are not operations",
    "threading._counter": "threads are not operations",
    "weakref.finalize._registry": "finalizers belong to the objects they watch",
    "weakref.finalize._index_iter": "only orders finalizers by age",
    "weakref.finalize._dirty": "only orders finalizers by age",
    "asyncio.tasks._*tasks": "tasks of the loop that plays the operations",
    "asyncio.events._running_loop": "the loop that plays the operations",
    "asyncio.coroutines._iscoroutine_typecache": "which classes are coroutines",
    "platform._os_release_cache": "the machine stays the same",
    "platform._platform_cache": "the machine stays the same",
    "platform._sys_version_cache": "the machine stays the same",
    "platform._uname_cache": "the machine stays the same",
    "_struct.<dict>": "compiled formats are equal whenever they are made",
    "*._clear_cache.__self__.data": "a single dispatch forgets it when it registers",
}

_PIECES = {path: frozenset(path.split(".")) for path in NOISE_PATHS}


def paths_named(names: Iterable[frozenset[str]]) -> frozenset[str]:
    """The paths of noise that some code names, given the names in each code."""
    known = frozenset().union(*_PIECES.values())
    told = {each & known for each in names}
    return frozenset(
        path for path, pieces in _PIECES.items() if any(pieces <= each for each in told)
    )


# Attributes of the instances of a class that may change in the same way, by the class.
NOISE_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    # Only say when members are removed.
    "_weakrefset.WeakSet": frozenset({"_iterating", "_pending_removals"}),
    "weakref.WeakKeyDictionary": frozenset({"_iterating", "_pending_removals"}),
    "weakref.WeakValueDictionary": frozenset({"_iterating", "_pending_removals"}),
    # Levels, looked up again when any of them changes.
    "logging.Logger": frozenset({"_cache"}),
    # Members put together are equal whenever they are made.
    "enum.Enum": frozenset({"_inverted_"}),
}

# The same of all classes, and of flags.  Other enumerations have all their members from
# the beginning: who adds to the table registers something.
NOISE_OF_CLASSES = frozenset({"__slotnames__"})
NOISE_OF_FLAGS = frozenset({"_value2member_map_"})

# Variables of closures in `functools`: a single dispatch forgets what it found when it
# registers, or when any ABC does.
NOISE_IN_FUNCTOOLS = frozenset({"dispatch_cache", "cache_token"})

# What they remember of a scenario, which a module may hold, is no state of it; nor is
# what hears all that is logged, or written.
ONLOOKERS = frozenset(
    {"_pytest.capture", "_pytest.logging", "everyorder", "everyorder.harness"}
)


def _noise_of(kind: type) -> frozenset[str]:
    found: frozenset[str] = frozenset()
    for base in mro_of(kind):
        module = module_of(base)
        name = f"{module}.{str.__str__(qualname_of(base))}"
        found |= NOISE_ATTRIBUTES.get(name, frozenset())
        if is_standard(module):  # what it is computed from does not change
            found |= {
                key
                for key, value in namespace_of(base).items()
                if type(value) is functools.cached_property
            }
    return found


noise_of = Memo(_noise_of)
"""The attributes of the instances of a class that are no state."""
