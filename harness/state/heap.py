"""States as forms and portraits, their caveats, and the cached walk of constant parts.

Most objects that a registry reaches are classes, functions, their code and the globals
that these read.  In most scenarios no operation changes them, so the walk through them
from the roots that every state has is cached (`BaseForm`), and the next walk continues
from its end: "base containers" are not described again as long as a scan finds the same
references.

That cache is the one place that keeps objects of a program alive between two scans.  It
does so only while the state reaches no weak reference and no finalizer, which could
make that observable, and only until a fresh system is made.  A weak reference outside
of the state could still observe it.

Rules:
- a walk that continues from a base writes the same tokens as one from the start
  (`tests/state/test_base.py` compares both over all registries of the zoo);
- kinds of which the scan might miss state are not cached: `_KEPT` and `_KEPT_BASES`
  list the others.  If any other kind is reachable, there is no base;
- objects that are read by name, without a reference (globals, `sys.modules`, the
  resolution of a name), are read again each time.
"""

import gc
import hashlib
import marshal
import operator
import re
import types
import weakref
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, time, timedelta, timezone
from functools import partial
from types import CodeType, MappingProxyType
from typing import Any

from everyorder.harness.engine.protocol import Caveat, StateForm
from everyorder.harness.state.accessors import accessor_of
from everyorder.harness.state.c_call_audit import names_of
from everyorder.harness.state.code_references import names_in
from everyorder.harness.state.decode import Portrait, Records
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.layout import (
    ABSENT,
    Getter,
    cached_answers,
    changeable,
    exact_name,
    forget_answers,
    is_abstract,
    module_of,
    mro_of,
    namespace_of,
    qualname_of,
)
from everyorder.harness.state.noise import paths_named
from everyorder.harness.state.scan import ChangeDetector
from everyorder.harness.state.scope import (
    FollowedScope,
    IgnorePatterns,
    join,
    resolve,
)
from everyorder.harness.state.tokens import InstancePlan, Placeholder, Space, room_of
from everyorder.harness.state.unique_values import UniqueValues
from everyorder.harness.state.untracked_writes import Extent

# Kinds that are written by a handler, and whose whole state the scan sees: references,
# and the state of classes in C.  Code and descriptors of C never change.
_KEPT = frozenset(
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
_KEPT_BASES = frozenset(
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
        self._detector = ChangeDetector([*inside, *_attributes(walk, inside)])

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
            or not all(_is_kept(walk, each) for each in walk.order)
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


def _is_kept(walk: HeapWalk, o: Any) -> bool:
    kind = type(o)
    if id(kind) in _KEPT:
        return True
    if issubclass(kind, type):
        return not walk.plan(kind).opaque
    plan: InstancePlan = walk.plan(kind)
    if plan.opaque or any("__del__" in namespace_of(each) for each in mro_of(kind)):
        return False
    if plan.accessor is not None and id(plan.accessor) not in _KEPT_BASES:
        return False
    return all(map(partial(_is_set, o), plan.slots))


def _is_set(o: Any, slot: tuple[str, Getter]) -> bool:
    """Return True if a slot is set: unset ones have no place in a scan."""
    try:
        slot[1](o)
    except AttributeError:
        return False
    return True


def _attributes(walk: HeapWalk, inside: list[Any]) -> list[dict[Any, Any]]:
    """Return the dicts that are written with their owners, not by themselves."""
    dicts = [space.values for space in walk.spaces.values() if "*" in space.done]
    for o in inside:
        kind = type(o)
        if issubclass(kind, type):
            dicts += [each for each in gc.get_referents(o) if type(each) is dict]
        elif id(kind) not in _KEPT:
            dict_of = walk.plan(kind).dict_of
            if dict_of is not None and (own := dict_of(o)) is not None:
                dicts.append(own)
    return dicts


# Number of paths that a caveat names before it counts the rest.
_NAMED = 3
# Limit of states with the same unread numbers whose paths are determined: that takes as
# long as some twenty forms.
_NOTED_STATES = 8
# Longest wait, in forms, until the common part of all states is tried as a base again.
_LONGEST_WAIT = 64
_NO_ROOTS: Mapping[str, object] = MappingProxyType({})


class Heap:
    """Canonical forms of everything that some roots reach within a scope.

    Two states with equal forms are isomorphic: an isomorphism of their object graphs
    fixes roots and values.  `caveats` returns the limits of that.
    """

    def __init__(self, scope: FollowedScope, excluded: object = None) -> None:
        self.scope = scope
        self._unique = UniqueValues(scope.unique)
        # An object that is numbered, but not described.
        self._excluded = excluded
        self._opaque: dict[str, tuple[int, str]] = {}
        self._sets: dict[str, None] = {}
        self._counters: dict[str, None] = {}
        self._traces: dict[str, None] = {}
        self._frames: dict[str, None] = {}
        self._ignored: dict[str, None] = {}
        self._impure_functions: set[str] = set()
        # States whose paths were noted, by the numbers of their unread objects.
        self._noted: dict[tuple[tuple[int, ...], ...], set[bytes]] = {}
        # Ids of the path tables above that may be incomplete: some states were not
        # noted.
        self._uncounted: set[int] = set()
        self._abstract: dict[int, weakref.ref[type]] = {}
        self._base: BaseForm | None = None
        # How often in a row a base was invalid, and how many forms to wait for the
        # next.
        self._missed = self._wait = 0
        # True if a weak reference or a finalizer was ever reachable.
        self._watched = False

    def form(
        self, roots: Mapping[str, object], lasting: Mapping[str, object] = _NO_ROOTS
    ) -> StateForm:
        """Return the state that the roots reach, as digests of 16 bytes.

        `lasting` are roots that every state has: what they reach is described first,
        and not again as long as it stays the same.  Equal states have equal forms if
        both were computed with the same lasting roots.
        """
        with pause_collector():
            walk = self._walk(roots, lasting)
            tokens = marshal.dumps(self._named(walk.out), 2)
            orders = marshal.dumps(walk.orders, 2)
            variants = marshal.dumps(walk.variants, 2)
            objects = len(walk.order) - walk.described
            weak = walk.weak
            blind = hashlib.blake2b(tokens, digest_size=16).digest()
            if walk.sets or walk.counters or walk.traces or walk.frames:
                self._note_unread(walk, blind)
            del walk
        exact = hashlib.blake2b(blind + orders, digest_size=16).digest()
        variant = hashlib.blake2b(exact + variants, digest_size=16).digest()
        return StateForm(blind, exact, weak, objects, variant)

    def portrait(self, roots: Mapping[str, object]) -> Portrait:
        """Return the state that the roots reach, as a value for `differences`."""
        with pause_collector():
            walk = self._walk(roots)
            tokens = marshal.dumps(self._named(walk.out), 2)
            orders = walk.orders + walk.variants
            return Portrait(tokens, marshal.dumps(orders, 2))

    def extent(self, roots: Mapping[str, object]) -> Extent:
        """Return the members and the limits of the state that the roots reach.

        A walk creates objects, such as copies of the rest of an iterator: two walks at
        the same time create different ones, so their common members are those of the
        state.
        """
        with pause_collector():
            one, other = self._walk(roots), self._walk(roots)
            outside = {id(one.order[number]) for number in one.outside}
            return Extent(
                members=frozenset(one.seen.keys() & other.seen.keys() - outside),
                names=frozenset(
                    (id(space.values), name)
                    for space in one.spaces.values()
                    for name in space.done
                    if type(name) is str
                ),
                modules=frozenset(
                    name for name, followed in one.inside.items() if not followed
                ),
                noise=paths_named(
                    names_in(each) for each in one.order if type(each) is CodeType
                ),
            )

    def _named(self, tokens: list[Any]) -> list[Any]:
        """Return tokens with numbers in the place of values that are new each time."""
        return self._unique.renamed(tokens) if self.scope.unique else tokens

    @property
    def is_complete(self) -> bool:
        """Return True if no form made so far met an opaque object."""
        return not self._opaque

    @property
    def impure_functions(self) -> frozenset[str]:
        """Return names of C functions that hide state, held by objects met so far.

        C code may call them where no audit records it: a `partial`, `map`, `reduce`.
        Names that code reads are not included; `CallAudit` records their calls.
        """
        return frozenset(self._impure_functions)

    def caveats(self) -> tuple[Caveat, ...]:
        """Return the limits of the forms made so far, opaque objects first.

        Calls are separate (`impure_functions`): one caveat names them together with
        those that an audit recorded.
        """
        caveats = [
            Caveat("opaque", f"what {_article(name)} holds ({path}{_more(count)})")
            for name, (count, path) in sorted(self._opaque.items())
        ]
        assumed = (
            (self._sets, "the order of a set of 2 or more ({}) is not read"),
            (self._counters, "how often a cache was hit ({}) is not read"),
            (self._traces, "the frames of a traceback ({}) are not read"),
            (self._frames, "who called a frame ({}) is not read"),
            (self._ignored, "{} is ignored"),
        )
        for paths, text in assumed:
            if paths:
                listed = _listed(list(paths), exact=id(paths) not in self._uncounted)
                caveats.append(Caveat("assumed", text.format(listed)))
        return tuple(caveats)

    def forget(self) -> None:
        """Drop all objects of the program that this heap keeps alive."""
        self._base = None

    def empty_caches(self) -> bool:
        """Empty the caches of subclass answers of the abstract classes met so far.

        The answers are state within the life of one registry, but outlive it.  Returns
        True if some answer did not follow from the bases.
        """
        kinds = [
            kind for each in self._abstract.values() if (kind := each()) is not None
        ]
        mattered = any(any(cached_answers(kind)) for kind in kinds)
        for kind in kinds:
            forget_answers(kind)
        return mattered

    def _walk(
        self, roots: Mapping[str, object], lasting: Mapping[str, object] = _NO_ROOTS
    ) -> HeapWalk:
        patterns = self.scope.ignore
        walk = HeapWalk(self.scope, IgnorePatterns(patterns) if patterns else None)
        if self.scope.unique:
            walk.unique = self._unique
        if self._excluded is not None:
            walk.exclude(self._excluded)
        if lasting:
            walk = self._run(walk, roots, lasting)
        else:
            walk.run(roots)
        if walk.opaque or walk.left_out:
            self._note(walk)
        for kind in walk.abstract:
            self._abstract[id(kind)] = weakref.ref(kind)
        if walk.functions:
            self._impure_functions |= names_of(walk.functions)
        if id(operator.methodcaller) in walk.seen:
            self._impure_functions |= names_of([operator.methodcaller])
        return walk

    def _run(
        self, walk: HeapWalk, roots: Mapping[str, object], lasting: Mapping[str, object]
    ) -> HeapWalk:
        base = self._base
        if base is not None and base.is_valid(lasting):
            self._missed = 0
            walk, done = base.walk(), base.done
            walk.described = done
        else:
            done = walk.open(lasting)
            self._base = None
            if self._wait:
                self._wait -= 1
            elif not self._watched:
                self._base = BaseForm.build(self.scope, lasting, walk)
                self._missed += 1
                self._wait = min(self._missed**2, _LONGEST_WAIT)
        walk.close(done, roots)
        if walk.weak:  # the lifetime of a base would be observable
            self._base, self._watched = None, True
        elif self._base is not None:
            self._base.learn(walk)
        return walk

    def _note(self, walk: HeapWalk) -> None:
        """Record the limits of this walk; paths are determined only for new ones."""
        records = Records(walk.out)
        counted: dict[str, list[int]] = {}
        for number in walk.opaque:
            name = exact_name(type(walk.order[number]))
            counted.setdefault(name, []).append(number)
        news = {
            name: numbers
            for name, numbers in counted.items()
            if len(numbers) > self._opaque.get(name, (0, ""))[0]
        }
        if not news and not walk.left_out:
            return
        records.read()
        for name, numbers in news.items():
            path = self._opaque.get(name, (0, records.path(numbers[0])))[1]
            self._opaque[name] = (len(numbers), path)
        for number, label in walk.left_out:
            path = label if number < 0 else join(records.path(number), label)
            self._ignored[path] = None

    def _note_unread(self, walk: HeapWalk, blind: bytes) -> None:
        """Record the paths of objects whose properties are in no form.

        One number may belong to different paths in different states, so several of the
        states with the same numbers are examined.
        """
        unread = walk.sets, walk.counters, walk.traces, walk.frames
        noted = self._noted.setdefault(tuple(map(tuple, unread)), set())
        kinds = self._sets, self._counters, self._traces, self._frames
        if blind in noted:
            return
        if len(noted) == _NOTED_STATES:
            pairs = zip(unread, kinds, strict=True)
            self._uncounted |= {id(paths) for numbers, paths in pairs if numbers}
            return
        noted.add(blind)
        records = Records(walk.out)
        records.read()
        for numbers, paths in zip(unread, kinds, strict=True):
            paths.update(dict.fromkeys(map(records.path, numbers)))


@contextmanager
def pause_collector() -> Iterator[None]:
    """Disable the cycle collector, which could run finalizers during a walk."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _article(name: str) -> str:
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


def _more(count: int) -> str:
    return f", and {count - 1} more" if count > 1 else ""


def _listed(paths: list[str], *, exact: bool) -> str:
    rest = len(paths) - _NAMED
    count = f"{rest}" if exact else f"at least {rest}"
    return ", ".join(paths[:_NAMED]) + (f" and {count} more" if rest > 0 else "")
