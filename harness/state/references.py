"""The references of an object, and whether these are all that can change in it."""

import ctypes
import gc
import re
import sys
import types
import weakref
from collections import (  # type: ignore[attr-defined]  # it is not in its stub
    OrderedDict,
    _tuplegetter,
    defaultdict,
    deque,
)
from collections.abc import Iterable, Iterator, Mapping, Set
from datetime import (
    date,
    datetime,
    datetime_CAPI,
    time,
    timedelta,
    timezone,
)
from functools import partial
from typing import Any

from everyorder.harness.state.accessors import accessor_of, exact_accessor
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.layout import (
    ABSENT,
    Getter,
    changeable,
    module_dict,
    mro_of,
    namespace_of,
    qualname_of,
    raw_module_of,
)
from everyorder.harness.state.scope import package_of
from everyorder.harness.state.tokens import ATOM_IDS, InstancePlan, Placeholder

# Kinds that are written by a handler, and whose whole state the scan sees: references,
# and the state of classes in C.  Code and descriptors of C never change.
SCANNED = frozenset(
    map(
        id,
        (
            Placeholder,
            _tuplegetter,
            dict,
            list,
            tuple,
            set,
            frozenset,
            type,
            types.BuiltinFunctionType,
            types.CellType,
            types.ClassMethodDescriptorType,
            types.CodeType,
            types.FunctionType,
            types.GetSetDescriptorType,
            types.MemberDescriptorType,
            types.MethodDescriptorType,
            types.MethodWrapperType,
            types.ModuleType,
            types.WrapperDescriptorType,
        ),
    )
)
# For instances that are read by their layout: their nearest known type.
_SCANNED_BASES = frozenset(
    id(accessor_of(kind))
    for kind in (
        # Values, which never change, and their subclasses.
        *(int, str, float, complex, bytes, range, slice, re.Pattern),
        *(date, datetime, time, timedelta, timezone),
        # References only.
        *(list, tuple, dict, defaultdict, deque, OrderedDict, frozenset, set),
        *(types.MappingProxyType, types.SimpleNamespace, types.MethodType),
        *(partial, property, classmethod, staticmethod),
        *(types.GenericAlias, types.UnionType),
    )
)
# Types of C, by package, whose instances own memory only: how long they live cannot be
# observed.  An instance of any other opaque type may own a file or a connection.
INERT: Mapping[str, frozenset[str]] = {
    "builtins": frozenset({"instancemethod"}),
    # The signatures and addresses of bound C++ functions.
    "pybind11_builtins": frozenset({"*"}),
    # Parsed schemas, values, and classes of tensors, which live for ever.
    "torch": frozenset(
        (
            *("DispatchKeySet", "FunctionSchema", "Size", "device", "dtype", "layout"),
            *("memory_format", "qscheme", "_TensorMeta", "tensortype"),
        )
    ),
}
# Members of an enumeration of C++, which that library binds.
_PYBIND, _ENUMERATION = "pybind11_builtins", {"__entries", "__members__"}
# An address that C code shares, and its destructor: None for the functions of a module,
# which live for ever.
_CAPSULE = type(datetime_CAPI)
_destructor_of = ctypes.pythonapi.PyCapsule_GetDestructor
_destructor_of.argtypes, _destructor_of.restype = [ctypes.py_object], ctypes.c_void_p
_subclasses_of = type.__dict__["__subclasses__"]


def is_scanned(walk: HeapWalk, o: Any) -> bool:
    """Return True if a scan of references shows every change of an object."""
    if not owns_memory_only(walk, o):
        return False
    kind = type(o)
    if id(kind) in SCANNED or issubclass(kind, type):
        return True
    # Unset slots have no place in a scan.
    return all(map(partial(_is_set, o), walk.plan(kind).slots))


def owns_memory_only(walk: HeapWalk, o: Any) -> bool:
    """Return True for objects whose end only frees memory and drops references."""
    kind = type(o)
    if id(kind) in SCANNED:
        return True
    plan: InstancePlan = walk.plan(kind)
    if issubclass(kind, type):
        return not plan.opaque or _is_named(kind)
    if _is_inert(kind, plan):
        return True
    if kind is _CAPSULE:
        return not _destructor_of(o)
    if issubclass(kind, weakref.finalize):
        return False
    opaque = plan.opaque and not _is_named(kind)
    if opaque or any("__del__" in namespace_of(each) for each in mro_of(kind)):
        return False
    return (
        plan.accessor is None
        or id(plan.accessor) in _SCANNED_BASES
        # Its globals are verified one by one.
        or issubclass(kind, types.ModuleType)
    )


def has_lasting_plan(kind: type, verified: Set[int]) -> bool:
    """Return True if the plan of a type is the same as long as classes are verified.

    A plan follows from the class and its bases, by ids those that are verified.  A walk
    notes by itself that it meets a weak reference.
    """
    return exact_accessor(kind) is None and not any(
        each is weakref.ReferenceType or (changeable(each) and id(each) not in verified)
        for each in mro_of(kind)
    )


def _is_inert(kind: type, plan: InstancePlan) -> bool:
    """Return True for objects of which all forms have the same record (`INERT`)."""
    if plan.accessor is not None or plan.slots or plan.dict_of is not None:
        return False
    if _is_named(kind):
        return True
    of_library = raw_module_of(type(kind)) == _PYBIND
    return of_library and {*namespace_of(kind)} >= _ENUMERATION


def _is_named(kind: type) -> bool:
    module = raw_module_of(kind)
    names = INERT.get(package_of(module)) if type(module) is str else None
    return names is not None and ("*" in names or qualname_of(kind) in names)


def _is_set(o: Any, slot: tuple[str, Getter]) -> bool:
    """Return True if a slot is set."""
    try:
        slot[1](o)
    except AttributeError:
        return False
    return True


def children_of(o: Any) -> list[Any]:
    """Return the objects that an object refers to, with those of its attributes."""
    kind = type(o)
    if kind is types.FunctionType:
        spaces = o.__globals__, o.__builtins__
        referents = [
            each
            for each in gc.get_referents(o)
            if each is not spaces[0] and each is not spaces[1]
        ]
        referents += gc.get_referents(
            *(each for each in referents if type(each) in (tuple, dict))
        )
    elif issubclass(kind, types.ModuleType):
        return []
    else:
        referents = gc.get_referents(o)
        if issubclass(kind, type):
            referents += gc.get_referents(dict_of_class(o))
            referents += _subclasses_of(o)
        elif kind is not dict:
            inner = [each for each in referents if type(each) is dict]
            referents += gc.get_referents(*inner)
    return [each for each in referents if not _is_value(each)]


def dict_of_class(kind: type) -> Any:
    """Return the dict of a class, which it does not give away."""
    (namespace,) = gc.get_referents(namespace_of(kind))
    return namespace


def _is_value(o: Any) -> bool:
    kind = type(o)
    return id(kind) in ATOM_IDS or kind is int


def attribute_dicts(walk: HeapWalk, o: Any) -> Iterable[Any]:
    """Return the dicts that are written with their owner, not by themselves."""
    kind = type(o)
    if issubclass(kind, type):
        return [dict_of_class(o)]
    if id(kind) in SCANNED or issubclass(kind, types.ModuleType):
        return ()
    dict_of = walk.plan(kind).dict_of
    own = None if dict_of is None else dict_of(o)
    return () if own is None else [own]


def older_objects(objects: Iterable[Any]) -> dict[int, Any]:
    """Return those of some objects that are older than the first system, by ids.

    An exploration freezes what it begins with (`explorer._collector_off`).  This must
    be called in the first system, before anything else is frozen.
    """
    later = set(map(id, gc.get_objects()))
    return {id(o): o for o in objects if gc.is_tracked(o) and id(o) not in later}


def lookups_of(
    resolved: tuple[str, str, object],
) -> Iterator[tuple[dict[str, Any], str, Any]]:
    """Yield the look-ups that resolve a dotted name."""
    module, qualname, _ = resolved
    value: Any = dict.get(sys.modules, module, ABSENT)
    yield sys.modules, module, value
    if value is ABSENT or not issubclass(type(value), types.ModuleType):
        return
    space: Any = module_dict(value)
    for piece in qualname.split("."):
        value = dict.get(space, piece, ABSENT)
        yield space, piece, value
        if value is ABSENT or not issubclass(type(value), type):
            return
        space = dict_of_class(value)
