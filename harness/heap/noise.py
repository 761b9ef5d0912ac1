"""What may change without anybody's answer changing: data, each with its reason.

Pure caches, which are filled again with the same, and the tools that look on.  The
canonical form leaves out the attributes; what lies outside is compared without any.
"""

import functools
from collections.abc import Iterable, Mapping

from harness.heap.layout import (
    is_standard,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)
from harness.heap.memo import Memo

# Packages and modules that are not entered, nor the instances of their classes.
NOISE_MODULES: Mapping[str, str] = {
    "harness": "it looks on",
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
LOOKS_ON = frozenset({"_pytest.capture", "_pytest.logging", "everyorder", "harness"})


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
