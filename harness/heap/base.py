"""The part of a state that stays as it is, described once.

Most of what a registry reaches are classes, functions, their code and the globals that
these read.  No operation changes them in most scenarios, so the walk through them from
the roots that every state has is kept, and the next one goes on from where it ended:
"base containers" are not described again as long as a scan finds the same references.

True only here: this is the one place that keeps objects of a program alive between two
looks.  It does so only while the state reaches no weak reference and no finalizer, by
which somebody could notice, and only until a fresh system is made.  A weak reference
that stands elsewhere could tell.

Rules:
- a walk that goes on from a base writes the same tokens as one that begins anew
  (`tests/heap/test_base.py` compares both over all registries of the zoo);
- kinds of which the scan might miss anything are not kept: `_KEPT` and `_KEPT_BASES`
  list the others.  Anything else in reach means that there is no base;
- what is read by name, without a reference (globals, `sys.modules`, whether a name
  yields this very object), is read again each time.
"""

import gc
import operator
import re
import types
from collections import OrderedDict, defaultdict, deque
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta, timezone
from functools import partial
from typing import Any

from harness.heap import abstract
from harness.heap.accessors import known_of
from harness.heap.arrange import room_of
from harness.heap.flat import Scan
from harness.heap.form import Walk
from harness.heap.known import ABSENT
from harness.heap.layout import (
    Getter,
    changeable,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)
from harness.heap.scope import Scope, resolve
from harness.heap.tokens import Plan, Space, Written

# Kinds that are written by a handler, and whose state the scan sees: all references,
# and what classes keep in C.  Code and descriptors of C never change.
_KEPT = frozenset(
    map(
        id,
        (
            Written,
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
# Of instances that are read by their layout: what their nearest known type may be.
_KEPT_BASES = frozenset(
    id(known_of(kind))
    for kind in (
        # Values, which never change, and their subclasses.
        *(int, str, float, complex, bytes, range, slice, re.Pattern),
        *(date, datetime, time, timedelta, timezone),
        # Nothing but references.
        *(list, tuple, dict, defaultdict, deque, OrderedDict, frozenset, set),
        *(types.MappingProxyType, types.SimpleNamespace, types.MethodType),
        *(partial, property, classmethod, staticmethod),
        *(types.GenericAlias, types.UnionType),
    )
)


class Base:
    """A walk from some roots, as it stood when all that they reach was described."""

    def __init__(self, scope: Scope, roots: Mapping[str, object], walk: Walk) -> None:
        self._scope = scope
        self._names, self._roots = list(roots), list(roots.values())
        self.done = len(walk.order)
        self._walk = _copied(scope, walk)
        self._read_names = walk.read_names[:]
        self._resolved = walk.resolved[:]
        outside = set(walk.outside)
        inside = [o for n, o in enumerate(walk.order) if n not in outside]
        classes = [o for o in inside if issubclass(type(o), type)]
        # Classes that are mere names as long as they have these.
        self._named = [
            (o, module_of(o), qualname_of(o))
            for o in map(walk.order.__getitem__, walk.outside)
            if issubclass(type(o), type) and changeable(o)
        ]
        self._abstract = [each for each in classes if abstract.abstract(each)]
        self._empty = [each for _, each in walk.empty]
        self._room = [(o, room_of(o)) for o in map(walk.order.__getitem__, walk.sets)]
        self._plans = 0
        self._scan = Scan([*inside, *_attributes(walk, inside)])

    @classmethod
    def of(cls, scope: Scope, roots: Mapping[str, object], walk: Walk) -> "Base | None":
        """A base, if all that a walk met up to now may be kept and scanned."""
        if (
            scope.ignore
            or walk.waiting
            or walk.groups
            or walk.opaque
            or not all(_is_kept(walk, each) for each in walk.order)
        ):
            return None
        return cls(scope, roots, walk)

    def holds(self, roots: Mapping[str, object]) -> bool:
        """Whether a walk from these roots would be the same."""
        return (
            list(roots) == self._names
            and all(map(operator.is_, roots.values(), self._roots))
            and all(
                dict.get(values, name, ABSENT) is value
                for values, name, value in self._read_names
            )
            and all(resolve(*told) is found for *told, found in self._resolved)
            and not any(self._empty)
            and all(
                module_of(kind) == module and qualname_of(kind) is name
                for kind, module, name in self._named
            )
            and self._scan.same()
            and all(room_of(o) == room for o, room in self._room)
            and all(not any(abstract.answers(kind)) for kind in self._abstract)
        )

    def walk(self) -> Walk:
        """A walk that goes on from here, at `done`."""
        return _copied(self._scope, self._walk)

    def learn(self, walk: Walk) -> None:
        """Keep how types are read that are part of this base, or never change."""
        mine = self._walk
        if len(walk.plans) == self._plans:
            return
        self._plans = len(walk.plans)
        mine.plans |= {
            key: plan
            for key, plan in walk.plans.items()
            if key in mine.seen or not changeable(plan.kind)
        }


def _copied(scope: Scope, walk: Walk) -> Walk:
    copy = Walk(scope, None)
    copy.out = walk.out[:]
    copy.order = walk.order[:]
    copy.seen = walk.seen.copy()
    copy.orders = walk.orders[:]
    copy.variants = walk.variants[:]
    copy.sets = walk.sets[:]
    copy.outside = walk.outside[:]
    copy.addresses = walk.addresses[:]
    copy.empty = walk.empty[:]
    copy.functions = walk.functions[:]
    copy.inside = walk.inside
    copy.plans = walk.plans.copy()
    copy.spaces = {
        key: Space(space.number, space.values, space.done.copy())
        for key, space in walk.spaces.items()
    }
    return copy


def _is_kept(walk: Walk, o: Any) -> bool:
    kind = type(o)
    if id(kind) in _KEPT:
        return True
    if issubclass(kind, type):
        return not walk.plan(kind).opaque
    plan: Plan = walk.plan(kind)
    if plan.opaque or any("__del__" in namespace_of(each) for each in mro_of(kind)):
        return False
    if plan.known is not None and id(plan.known) not in _KEPT_BASES:
        return False
    return all(map(partial(_is_set, o), plan.slots))


def _is_set(o: Any, slot: tuple[str, Getter]) -> bool:
    """Whether a slot refers to something: empty ones have no place in a scan."""
    try:
        slot[1](o)
    except AttributeError:
        return False
    return True


def _attributes(walk: Walk, inside: list[Any]) -> list[dict[Any, Any]]:
    """Dicts that are written with their owners, not by themselves."""
    found = [space.values for space in walk.spaces.values() if "*" in space.done]
    for o in inside:
        kind = type(o)
        if issubclass(kind, type):
            found += [each for each in gc.get_referents(o) if type(each) is dict]
        elif id(kind) not in _KEPT:
            dict_of = walk.plan(kind).dict_of
            if dict_of is not None:
                found.append(dict_of(o))
    return found
