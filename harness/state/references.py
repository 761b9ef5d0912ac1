"""The references of an object, and whether these are all that can change in it."""

import gc
import re
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterable
from datetime import date, datetime, time, timedelta, timezone
from functools import partial
from typing import Any

from everyorder.harness.state.accessors import accessor_of
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.layout import Getter, mro_of, namespace_of
from everyorder.harness.state.tokens import ATOM_IDS, InstancePlan, Placeholder

# Kinds that are written by a handler, and whose whole state the scan sees: references,
# and the state of classes in C.  Code and descriptors of C never change.
SCANNED = frozenset(
    map(
        id,
        (
            Placeholder,
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
_subclasses_of = type.__dict__["__subclasses__"]


def is_scanned(walk: HeapWalk, o: Any) -> bool:
    """Return True if a scan of references shows every change of an object."""
    kind = type(o)
    if id(kind) in SCANNED:
        return True
    if issubclass(kind, type):
        return not walk.plan(kind).opaque
    plan: InstancePlan = walk.plan(kind)
    if plan.opaque or any("__del__" in namespace_of(each) for each in mro_of(kind)):
        return False
    if plan.accessor is not None and id(plan.accessor) not in _SCANNED_BASES:
        return False
    return all(map(partial(_is_set, o), plan.slots))


def _is_set(o: Any, slot: tuple[str, Getter]) -> bool:
    """Return True if a slot is set: unset ones have no place in a scan."""
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
    if id(kind) in SCANNED:
        return ()
    dict_of = walk.plan(kind).dict_of
    own = None if dict_of is None else dict_of(o)
    return () if own is None else [own]
