"""Values that may change without a change of any answer: functions of their inputs.

A cache is filled again with the same values, so its entries are not state.  This is
checked by value: an entry of the cache of `re` is a pattern compiled from its key, and
whatever else is put there is state, as is any other attribute of `re`.

Two tables list such values.  `NOISE_PATHS` has the caches of modules, by path, for the
comparison of untracked state; `NOISE_ATTRIBUTES` those of instances and classes, which
the canonical form leaves out as well.  Each entry has its reason, and the predicate
that says which values are meant.  It is not a filter of entries: one foreign entry
makes the whole container state.

Rules:
- no predicate runs code of the program;
- a predicate that cannot decide says no.
"""

import _abc  # type: ignore[import-not-found]  # typeshed leaves it out
import enum
import functools
import itertools
import re
import struct
import threading
import types
import weakref
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from everyorder.harness.state.layout import (
    Memo,
    is_standard,
    layout_of,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)


class Noise(NamedTuple):
    """Why a value is not state, and which values are meant."""

    reason: str
    covers: Callable[[Any], bool]


def _entries(
    covers: Callable[[Any, Any], bool], kinds: tuple[type, ...] = (dict,)
) -> Callable[[Any], bool]:
    """Return a predicate of dicts of which all entries are covered."""

    def table(value: Any) -> bool:
        return type(value) in kinds and all(
            covers(key, each) for key, each in list(dict.items(value))
        )

    return table


def _one_of(*kinds: type) -> Callable[[Any], bool]:
    return lambda value: type(value) in kinds


def _is_pending(value: Any) -> bool:
    """Return True for the chunks that a text stream has not written yet."""
    chunks = list(value) if type(value) is list else [value]
    return all(type(each) is bytes or type(each) is str for each in chunks)


def _is_compiled(key: Any, value: Any) -> bool:
    """Return True for an entry of the cache of `re`."""
    if type(key) is not tuple or len(key) != 3 or type(value) is not re.Pattern:
        return False
    kind, pattern, flags = key
    plain = type(pattern) is kind and kind in (str, bytes) and type(flags) is int
    return plain and value.pattern == pattern and value.flags | flags == value.flags


def _is_finder(key: Any, value: Any) -> bool:
    kinds = ("FileFinder", "zipimporter", "NoneType")
    return type(key) is str and qualname_of(type(value)) in kinds


def _is_warning(key: Any, value: Any) -> bool:
    if key == "version" or type(key) is str:
        return key == "version" and type(value) is int
    return (
        type(key) is tuple
        and len(key) in (2, 3)
        and issubclass(type(key[1]), type)
        and (value is True or value == 1)
    )


def _is_format(key: Any, value: Any) -> bool:
    return type(value) is struct.Struct and type(key) in (str, bytes)


def _is_lines(key: Any, value: Any) -> bool:
    return type(key) is str and type(value) is tuple and len(value) in (1, 4)


def _is_thread(key: Any, value: Any) -> bool:
    bases = mro_of(type(value))
    return type(key) is int and any(each is threading.Thread for each in bases)


def _is_text(value: Any) -> bool:
    kind = type(value)
    if kind is tuple or issubclass(kind, tuple):
        return all(map(_is_text, tuple.__iter__(value)))
    return kind is str or kind is bool or value is None


def _is_weak(value: Any) -> bool:
    return any(each is weakref.ReferenceType for each in mro_of(type(value)))


def _is_dispatched(value: Any) -> bool:
    """Return True for a cache of a single dispatch: functions by weak classes."""
    if type(value) is weakref.WeakKeyDictionary:
        value = value.__dict__.get("data")
    return type(value) is dict and all(
        _is_weak(key) and callable_kind(each) for key, each in list(value.items())
    )


def callable_kind(value: Any) -> bool:
    """Return True for functions and classes, which a single dispatch returns."""
    kinds = types.FunctionType, types.BuiltinFunctionType, types.MethodType
    return type(value) in kinds or issubclass(type(value), type)


# The counter of registrations of all abstract classes, which never decreases.
_FIRST_TOKEN: int = _abc.get_cache_token()


def is_token(value: Any) -> bool:
    """Return True for the number of registrations that a single dispatch last saw."""
    return value is None or (
        type(value) is int and _FIRST_TOKEN <= value <= _abc.get_cache_token()
    )


def _anything(_value: Any) -> bool:
    return True


# By paths (as of fnmatch), of a value and of all below it.  Code that names the whole
# path may read it, so for such code nothing is noise.
NOISE_PATHS: Mapping[str, Noise] = {
    "re._cache": Noise("patterns compiled from their keys", _entries(_is_compiled)),
    "re._cache2": Noise("patterns compiled from their keys", _entries(_is_compiled)),
    "*.__warningregistry__": Noise(
        "which warnings were shown once", _entries(_is_warning)
    ),
    "warnings.onceregistry": Noise(
        "which warnings were shown once", _entries(_is_warning)
    ),
    "sys.path_importer_cache": Noise(
        "finders are equal whenever they are made", _entries(_is_finder)
    ),
    "linecache.cache": Noise(
        "lines of files, read again when they are missing", _entries(_is_lines)
    ),
    "importlib._bootstrap._module_locks": Noise(
        "locks of imports", _entries(lambda key, value: _is_weak(value))
    ),
    "importlib._bootstrap._blocking_on": Noise(
        "locks of imports", _entries(lambda key, value: type(key) is int and not value)
    ),
    "threading._active": Noise("threads are not operations", _entries(_is_thread)),
    "threading._limbo": Noise(
        "threads are not operations", _entries(lambda key, value: key is value)
    ),
    "threading._dangling": Noise(
        "threads are not operations",
        _one_of(weakref.WeakSet),
    ),
    "threading._shutdown_locks": Noise("threads are not operations", _one_of(set)),
    "threading._counter": Noise(
        "threads are not operations", _one_of(types.MethodWrapperType)
    ),
    "weakref.finalize._registry": Noise(
        "finalizers belong to the objects they watch",
        _entries(lambda key, value: type(key) is weakref.finalize),
    ),
    "weakref.finalize._index_iter": Noise(
        "only orders finalizers by age", _one_of(itertools.count)
    ),
    "weakref.finalize._dirty": Noise("only orders finalizers by age", _one_of(bool)),
    "asyncio.tasks._all_tasks": Noise(
        "tasks of the loop that plays the operations", _one_of(weakref.WeakSet)
    ),
    "asyncio.tasks._scheduled_tasks": Noise(
        "tasks of the loop that plays the operations", _one_of(weakref.WeakSet)
    ),
    "asyncio.tasks._eager_tasks": Noise(
        "tasks of the loop that plays the operations", _one_of(set)
    ),
    "asyncio.tasks._current_tasks": Noise(
        "tasks of the loop that plays the operations", _one_of(dict)
    ),
    "asyncio.events._running_loop": Noise(
        "the loop that plays the operations", _anything
    ),
    "asyncio.coroutines._iscoroutine_typecache": Noise(
        "which classes are coroutines",
        lambda value: (
            type(value) is set
            and all(issubclass(type(each), type) for each in list(value))
        ),
    ),
    "platform._os_release_cache": Noise(
        "the machine stays the same",
        lambda value: (
            value is None or _entries(lambda key, each: _is_text((key, each)))(value)
        ),
    ),
    "platform._platform_cache": Noise(
        "the machine stays the same",
        _entries(lambda key, value: type(key) is tuple and _is_text((key, value))),
    ),
    "platform._sys_version_cache": Noise(
        "the machine stays the same", _entries(lambda key, value: type(value) is tuple)
    ),
    "platform._uname_cache": Noise(
        "the machine stays the same",
        lambda value: value is None or qualname_of(type(value)) == "uname_result",
    ),
    "sys.*std*.<list>": Noise("text to be written, which nobody can read", _is_pending),
    "_struct.<dict>": Noise(
        "compiled formats are equal whenever they are made", _entries(_is_format)
    ),
    "*._clear_cache.__self__.data": Noise(
        "a single dispatch forgets it when it registers", _is_dispatched
    ),
}

# The table of the combined members of a flag, at the place of a path of noise.
FLAG_TABLE = "_value2member_map_"
# Attributes that are state if code of the registry names them.  Not the cache of a
# logger: too many others have this name.
STATE_IF_NAMED = frozenset(
    {FLAG_TABLE, "__slotnames__", "_inverted_", "_iterating", "_pending_removals"}
)
_PIECES = {
    path: frozenset(path.split(".")) - {"*"} for path in (*NOISE_PATHS, FLAG_TABLE)
}


def paths_named(names: Iterable[frozenset[str]]) -> frozenset[str]:
    """Return the noise paths that some code names, by the names in each code object."""
    noise_names = frozenset().union(*_PIECES.values())
    named = {each & noise_names for each in names}
    return frozenset(
        path
        for path, pieces in _PIECES.items()
        if any(pieces <= each for each in named)
    )


def is_noise_path(path: str, value: Any, named: frozenset[str]) -> bool:
    """Return True if the value at a path is noise, unless `named` has its entry."""
    return any(
        noise.covers(value)
        for place, noise in NOISE_PATHS.items()
        if place not in named and fnmatchcase(path, place)
    )


def _are_removals(_owner: Any, value: Any) -> bool:
    """Return True for the guards and late removals of a weak collection."""
    return type(value) in (list, set) and all(
        _is_weak(each) or qualname_of(type(each)) == "_IterationGuard"
        for each in list(value)
    )


def _are_levels(owner: Any, value: Any) -> bool:
    """Return True for answers of a logger that follow from the levels."""
    if type(value) is not dict:
        return False
    logger, level = _attributes(owner), 0
    manager = _attributes(_class_or_own(owner, "manager"))
    while logger and not level:
        own = logger.get("level")
        level = own if type(own) is int else 0
        logger = _attributes(logger.get("parent"))
    disabled = manager.get("_disable", manager.get("disable"))
    if type(disabled) is not int:
        return False
    return all(
        type(key) is int and answer is (disabled < key and key >= level)
        for key, answer in list(value.items())
    )


def _attributes(owner: Any) -> dict[str, Any]:
    dict_of = layout_of(type(owner)).dict_of
    attributes: dict[str, Any] | None = dict_of(owner) if dict_of is not None else None
    # The own dict of an object is also returned if it is empty: it may be filled.
    return {} if attributes is None else attributes


def _class_or_own(owner: Any, name: str) -> Any:
    own = _attributes(owner)
    if name in own:
        return own[name]
    for base in mro_of(type(owner)):
        if name in namespace_of(base):
            return namespace_of(base)[name]
    return None


def _is_inverted(owner: Any, value: Any) -> bool:
    """Return True for a member that has no bit of its inverted one."""
    if value is None:
        return True
    mine, other = _attributes(owner).get("_value_"), _attributes(value).get("_value_")
    return (
        type(value) is type(owner)
        and type(mine) is int
        and type(other) is int
        and not mine & other
    )


# Attributes of instances, by the class; and those of classes.
_Attribute = Callable[[Any, Any], bool]
NOISE_ATTRIBUTES: Mapping[str, Mapping[str, _Attribute]] = {
    # They only record when members are removed.
    "_weakrefset.WeakSet": dict.fromkeys(
        ("_iterating", "_pending_removals"), _are_removals
    ),
    "weakref.WeakKeyDictionary": dict.fromkeys(
        ("_iterating", "_pending_removals"), _are_removals
    ),
    "weakref.WeakValueDictionary": dict.fromkeys(
        ("_iterating", "_pending_removals"), _are_removals
    ),
    # Levels, looked up again when any of them changes.
    "logging.Logger": {"_cache": _are_levels},
    # Combined members are equal whenever they are created.
    "enum.Enum": {"_inverted_": _is_inverted},
}


def _noise_of(kind: type) -> frozenset[str]:
    names: frozenset[str] = frozenset()
    for base in mro_of(kind):
        name = f"{module_of(base)}.{str.__str__(qualname_of(base))}"
        names |= NOISE_ATTRIBUTES.get(name, {}).keys()
    return names | _cached_in(kind)


noise_of = Memo(_noise_of)
"""The attributes of the instances of a class that may be noise."""


def _cached_properties(kind: type) -> frozenset[str]:
    """Return the names of cached properties of a class of the standard library."""
    if not is_standard(module_of(kind)):  # sources of others may change
        return frozenset()
    return frozenset(
        name
        for base in mro_of(kind)
        for name, value in namespace_of(base).items()
        if type(value) is functools.cached_property and type(name) is str
    )


_cached_in = Memo(_cached_properties)


def _is_computed(owner: Any, name: str, value: Any) -> bool:
    """Return True if a cached property has the value that its function returns.

    The function is one of the standard library, and is called with a copy.
    """
    kind = type(owner)
    if not is_standard(module_of(type(value))):
        return False
    cached = _cached_in(kind)
    try:
        twin = object.__new__(kind)
        own = _attributes(twin)
        for key, each in list(_attributes(owner).items()):
            if key not in cached:
                own[key] = each
        computed = getattr(twin, name)
    except Exception:
        return False
    return type(computed) is type(value) and bool(computed == value)


def is_noise_attribute(owner: Any, name: str, value: Any) -> bool:
    """Return True if an attribute of an instance is not state, with this value."""
    if name in _cached_in(type(owner)):
        return _is_computed(owner, name, value)
    for base in mro_of(type(owner)):
        attributes = NOISE_ATTRIBUTES.get(
            f"{module_of(base)}.{str.__str__(qualname_of(base))}", {}
        )
        if name in attributes:
            return attributes[name](owner, value)
    return False


def is_noise_of_class(
    owner: type, name: str, value: Any, named: frozenset[str] = frozenset()
) -> bool:
    """Return True if an attribute of a class is not state, with this value.

    `named` are the paths of noise that some code names.
    """
    if name == "__slotnames__":  # copyreg remembers the slots of a class
        return type(value) is list and set(value) <= _slots_of(owner)
    if name == FLAG_TABLE and any(each is enum.Flag for each in mro_of(owner)):
        if FLAG_TABLE in named:
            return False
        # Other enumerations have all their members from the beginning: adding to the
        # table is a registration.
        return type(value) is dict and all(
            issubclass(type(each), owner)
            and _is_member(key, _attributes(each).get("_value_"))
            for key, each in list(value.items())
        )
    return False


def _is_member(key: Any, value: Any) -> bool:
    """Return True if a flag is in its table under its value, or its complement's."""
    if type(key) is not int or type(value) is not int:
        return False
    bits = value - key
    return not bits or (key < 0 < bits and not bits & (bits - 1))


def _slots_of(owner: type) -> set[str]:
    return {
        name
        for base in mro_of(owner)
        for name, value in namespace_of(base).items()
        if type(value) is types.MemberDescriptorType
    }


# Variables of closures in `functools`: a single dispatch empties its cache when it
# registers, or when any ABC does.
NOISE_IN_FUNCTOOLS: Mapping[str, Callable[[Any], bool]] = {
    "dispatch_cache": _is_dispatched,
    "cache_token": is_token,
}

# Packages and modules that are not entered, nor the instances of their classes: what
# observes the operations changes by observing.  The names in their modules are compared
# all the same (`container_changes.py`).
NOISE_MODULES: Mapping[str, str] = {
    "everyorder.harness": "observing tool",
    "everyorder": "observing tool",
    "everyorder.coded_error": "its cache has the sentences of error classes",
}

# The same, as long as no followed code names them.
NOISE_UNLESS_NAMED: Mapping[str, str] = {
    "_pytest": "observing tool",
    "pytest": "observing tool",
    "xdist": "observing tool",
    "execnet": "observing tool",
    "coverage": "observing tool",
    "hypothesis": "observing tool",
    "_hypothesis_pytestplugin": "observing tool",
    "tracemalloc": "observing tool",
    "pdb": "observing tool",
    "bdb": "observing tool",
}

# A module may hold records about a scenario, or handlers of logged or written output;
# neither is state of the scenario.
ONLOOKERS = frozenset(
    {"_pytest.capture", "_pytest.logging", "everyorder", "everyorder.harness"}
)
