"""The cached walk of the part that small states have in common.

The walk from the roots that every state has is cached (`BaseForm`), and the next walk
continues from its end: "base containers" are not described again as long as a scan
finds the same references.

The cache keeps objects of a program alive between two scans.  It does so only while the
state reaches no weak reference and no finalizer, which could make that observable, and
only until a fresh system is made.  A weak reference outside of the state could still
observe it.

Rules:
- a walk that continues from a base writes the same tokens as one from the start
  (`tests/state/test_base.py` compares both over all registries of the zoo);
- kinds of which the scan might miss state are not cached: `SCANNED` of `fixed_part.py`
  lists the others.  If any other kind is reachable, there is no base;
- objects that are read by name, without a reference (globals, `sys.modules`, the
  resolution of a name), are read again each time.
"""

import operator
from collections.abc import Mapping

from everyorder.harness.state.change_detector import ChangeDetector
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.fixed_part import attribute_dicts, is_scanned
from everyorder.harness.state.layout import (
    ABSENT,
    cached_answers,
    changeable,
    is_abstract,
    module_of,
    qualname_of,
)
from everyorder.harness.state.scope import FollowedScope, resolve
from everyorder.harness.state.tokens import Space, room_of


class BaseForm:
    """A walk from some roots, as it was when all that they reach was described."""

    def __init__(
        self, scope: FollowedScope, roots: Mapping[str, object], walk: HeapWalk
    ) -> None:
        self._scope = scope
        self._names, self._roots = list(roots), list(roots.values())
        self.done = len(walk.order)
        self._walk = _copied(scope, walk)
        self._read_names = walk.read_names[:]
        self._resolved = walk.resolved[:]
        outside = set(walk.outside)
        inside = [o for n, o in enumerate(walk.order) if n not in outside]
        classes = [o for o in inside if issubclass(type(o), type)]
        # Classes that are written as names as long as they have these names.
        self._named = [
            (o, module_of(o), qualname_of(o))
            for o in map(walk.order.__getitem__, walk.outside)
            if issubclass(type(o), type) and changeable(o)
        ]
        self._abstract = [each for each in classes if is_abstract(each)]
        self._empty = [each for _, each in walk.empty]
        self._room = [(o, room_of(o)) for o in map(walk.order.__getitem__, walk.sets)]
        self._plans = 0
        spaces = [each.values for each in walk.spaces.values() if "*" in each.done]
        owned = [each for o in inside for each in attribute_dicts(walk, o)]
        self._detector = ChangeDetector([*inside, *spaces, *owned])

    @classmethod
    def build(
        cls, scope: FollowedScope, roots: Mapping[str, object], walk: HeapWalk
    ) -> "BaseForm | None":
        """Return a base, if every object that a walk met may be cached and scanned."""
        if (
            scope.ignore
            or walk.waiting
            or walk.groups
            or walk.opaque
            or not all(is_scanned(walk, each) for each in walk.order)
        ):
            return None
        return cls(scope, roots, walk)

    def is_valid(self, roots: Mapping[str, object]) -> bool:
        """Return True if a walk from these roots would be the same."""
        return (
            list(roots) == self._names
            and all(map(operator.is_, roots.values(), self._roots))
            and all(
                dict.get(values, name, ABSENT) is value
                for values, name, value in self._read_names
            )
            and all(resolve(*name) is target for *name, target in self._resolved)
            and not any(self._empty)
            and all(
                module_of(kind) == module and qualname_of(kind) is name
                for kind, module, name in self._named
            )
            and self._detector.unchanged()
            and all(room_of(o) == room for o, room in self._room)
            and all(not any(cached_answers(kind)) for kind in self._abstract)
        )

    def walk(self) -> HeapWalk:
        """Return a walk that continues from here, at `done`."""
        return _copied(self._scope, self._walk)

    def learn(self, walk: HeapWalk) -> None:
        """Store the plans of types that are part of this base, or never change."""
        mine = self._walk
        if len(walk.plans) == self._plans:
            return
        self._plans = len(walk.plans)
        mine.plans |= {
            key: plan
            for key, plan in walk.plans.items()
            if key in mine.seen or not changeable(plan.kind)
        }


def _copied(scope: FollowedScope, walk: HeapWalk) -> HeapWalk:
    copy = HeapWalk(scope, None)
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
    copy.unique = walk.unique
    copy.plans = walk.plans.copy()
    copy.spaces = {
        key: Space(space.number, space.values, space.done.copy())
        for key, space in walk.spaces.items()
    }
    return copy
