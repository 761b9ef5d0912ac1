"""States as forms and portraits, their caveats, and the parts that all states share.

Most objects that a registry reaches are classes, functions, their code and the globals
that these read.  In most scenarios no operation changes them.  So they are described
once for all systems, and each form continues that walk (`fixed_part.py`).
"""

import gc
import hashlib
import marshal
import operator
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from types import CodeType, MappingProxyType
from typing import Any

from everyorder.harness.base.errors import ExplorationRestart
from everyorder.harness.engine.protocol import Caveat, StateForm
from everyorder.harness.state.c_call_audit import names_of
from everyorder.harness.state.code_value import names_in
from everyorder.harness.state.decode import Portrait, Records
from everyorder.harness.state.encode import HeapWalk
from everyorder.harness.state.executed_code import ExecutedCode
from everyorder.harness.state.fixed_part import ROUNDS, ChangedParts, FixedPart
from everyorder.harness.state.layout import (
    cached_answers,
    exact_name,
    forget_answers,
)
from everyorder.harness.state.noise import paths_named
from everyorder.harness.state.references import older_objects
from everyorder.harness.state.scope import (
    FollowedScope,
    IgnorePatterns,
    is_global,
    join,
)
from everyorder.harness.state.unique_values import UniqueValues, running_ids
from everyorder.harness.state.untracked_writes import Extent

# Number of paths that a caveat names before it counts the rest, and the length of each.
_NAMED = 3
# Number of classes of opaque objects that are told in one line.
_MANY = 3
_LONGEST_PATH, _GAP = 120, " ... "
# Limit of states with the same unread numbers whose paths are determined: that takes as
# long as some twenty forms.
_NOTED_STATES = 8
_NO_ROOTS: Mapping[str, object] = MappingProxyType({})
# The form while changes are only recorded: the exploration will restart.
_NOT_COMPARED = StateForm(b"", b"", False, 0, b"")
# Objects of whole walks for the paths of caveats: they take two seconds; and half a
# second for paths of as many objects as before.
_MOST_NOTED = 200_000
_MOST_NOTED_AGAIN = 50_000


class Heap:
    """Canonical forms of everything that some roots reach within a scope.

    Two states with equal forms are isomorphic: an isomorphism of their object graphs
    fixes roots and values.  `caveats` returns the limits of that.
    """

    def __init__(
        self,
        scope: FollowedScope,
        excluded: object = None,
        *,
        fixed: bool = False,
        changed: ChangedParts | None = None,
        executed: ExecutedCode | None = None,
    ) -> None:
        """Read what the scope follows; with a `fixed` part, but for what `changed`.

        Forms leave out the globals of functions that were not `executed`; portraits,
        which only explain, do not.
        """
        self.scope = scope
        self._executed = executed
        # What changed; None if no state has a fixed part.
        fixed = fixed and all(map(is_global, scope.ignore)) and not scope.unique
        self._changed = (changed or ChangedParts()) if fixed else None
        self._fixed: FixedPart | None = None
        # True while changes are only recorded, and after one was.
        self.learning = self._outdated = False
        # How many opaque and unread objects had paths noted.
        self._noted_opaque: dict[str, int] = {}
        self._noted_unread = [0, 0, 0, 0]
        # The numbers of unread objects and the ignored names that were noted.
        self._noted_numbers: set[tuple[tuple[int, ...], ...]] = set()
        self._noted_ignored: set[str] = set()
        self._notes = 0
        self._unique = UniqueValues(scope.unique)
        # An object that is numbered, but not described.
        self._excluded = excluded
        self._opaque: dict[str, tuple[int, str]] = {}
        self._sets: dict[str, None] = {}
        self._counters: dict[str, None] = {}
        self._traces: dict[str, None] = {}
        self._frames: dict[str, None] = {}
        self._ignored: dict[str, None] = {}
        # Labels that were left out, with the numbers of their objects.
        self._left_out: set[tuple[int, str]] = set()
        self._impure_functions: set[str] = set()
        # States whose paths were noted, by the numbers of their unread objects.
        self._noted: dict[tuple[tuple[int, ...], ...], set[bytes]] = {}
        # Ids of the path tables above that may be incomplete: some states were not
        # noted.
        self._uncounted: set[int] = set()
        # Ids of those to which a state may add a path that is not listed.
        self._unlisted: set[int] = set()
        self._abstract: dict[int, weakref.ref[type]] = {}
        # Names of caches that were full.
        self.full_caches: set[str] = set()

    def form(
        self, roots: Mapping[str, object], lasting: Mapping[str, object] = _NO_ROOTS
    ) -> StateForm:
        """Return the state that the roots reach, as digests of 16 bytes.

        `lasting` are roots that every state has: what they reach is described first,
        and not again as long as it stays the same.  Equal states have equal forms if
        both were computed with the same lasting roots.

        Raises:
            ExplorationRestart: an object changed that was fixed until now; then forms
                from now on cannot be compared with earlier ones.
        """
        with pause_collector():
            walk = self._walk_for_form(roots, lasting)
            if walk is None:
                return _NOT_COMPARED
            tokens = marshal.dumps(self._named(walk.out), 2)
            orders = marshal.dumps(walk.orders, 2)
            variants = marshal.dumps(walk.variants, 2)
            objects = len(walk.order) - walk.described
            weak = walk.weak
            self.full_caches |= walk.full_caches
            blind = hashlib.blake2b(tokens, digest_size=16).digest()
            if self._fixed is not None:
                self._note_large(walk, {**roots, **lasting})
            elif walk.sets or walk.counters or walk.traces or walk.frames:
                self._note_unread(walk, blind)
            del walk
        exact = hashlib.blake2b(blind + orders, digest_size=16).digest()
        variant = hashlib.blake2b(exact + variants, digest_size=16).digest()
        return StateForm(blind, exact, weak, objects, variant)

    def note_changes(self, lasting: Mapping[str, object]) -> None:
        """Record which objects of the fixed part changed; `settle` acts on it."""
        fixed = self._fixed
        if fixed is not None:
            with pause_collector():
                if not fixed.is_valid(lasting):
                    fixed.learn(lasting)
                    self._outdated = True

    def settle(self) -> None:
        """End the time in which changes are only recorded.

        Raises:
            ExplorationRestart: there were some.
        """
        self.learning = False
        if self._outdated:
            self._renew()

    def portrait(self, roots: Mapping[str, object]) -> Portrait:
        """Return the state that the roots reach, as a value for `differences`."""
        with pause_collector():
            walk = self._whole_walk(roots)
            tokens = marshal.dumps(self._named(walk.out), 2)
            orders, variants = (
                marshal.dumps(walk.orders, 2),
                marshal.dumps(walk.variants, 2),
            )
            return Portrait(tokens, orders, variants, running_ids())

    def extent(
        self, roots: Mapping[str, object], lasting: Mapping[str, object] = _NO_ROOTS
    ) -> Extent:
        """Return the members and the limits of the state that the roots reach.

        A walk creates objects, such as copies of the rest of an iterator: two walks at
        the same time create different ones, so their common members are those of the
        state.
        """
        with pause_collector():
            fixed = self._fixed
            if fixed is not None and not self._outdated and fixed.is_valid(lasting):
                one = self._continued(fixed, roots, lasting)
                other = self._continued(fixed, roots, lasting)
                named = fixed.names_of_code
            else:
                every = {**roots, **lasting}
                one, other = self._walk(every), self._walk(every)
                named = frozenset()
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
                    chain(
                        named,
                        (
                            names_in(each)
                            for each in one.order[one.described :]
                            if type(each) is CodeType
                        ),
                    )
                ),
            )

    def _walk_for_form(
        self, roots: Mapping[str, object], lasting: Mapping[str, object]
    ) -> HeapWalk | None:
        """Return the walk that a form is made of; None if it will not be compared."""
        changed = self._changed
        if changed is None or changed.everything or not lasting:
            return self._walk(roots, lasting)
        fixed = self._fixed
        if fixed is None:
            fixed = self._fixed = self._fixed_part(roots, lasting)
            if fixed is None:
                changed.everything = True
                return self._walk(roots, lasting)
        elif self._outdated or not fixed.is_valid(lasting):
            fixed.learn(lasting)
            self._renew()
            return None
        walk = self._continued(fixed, roots, lasting)
        changed.everything = changed.everything or walk.irregular
        if (
            changed.everything
            or fixed.lost(walk)
            or (fixed.targets(walk) and not fixed.releases(walk, late=True))
        ):
            self._renew()
            return None
        return walk

    def _fixed_part(
        self, roots: Mapping[str, object], lasting: Mapping[str, object]
    ) -> FixedPart | None:
        """Return the fixed part; None if there is none that may be held."""
        changed = self._changed
        assert changed is not None, "states have a fixed part"
        met = self._walk({**roots, **lasting})
        older = changed.older
        for number in range(ROUNDS):
            if number == ROUNDS // 2:
                older = {}  # one refers to an observable object, and no scan shows it
            fixed = FixedPart(self._start, lasting, changed, met, older or {})
            if not fixed.is_whole:
                return None
            walk = self._continued(fixed, roots, lasting)
            if walk.irregular:
                return None
            if fixed.releases(walk):
                if older is None:  # once more, with these
                    older = older_objects(met.order)
                    continue
                self._remember(fixed.abstract, fixed.held_functions)
                changed.older = {key: o for key, o in older.items() if fixed.holds(o)}
                return fixed
        return None

    def _continued(
        self,
        fixed: FixedPart,
        roots: Mapping[str, object],
        lasting: Mapping[str, object],
    ) -> HeapWalk:
        walk = fixed.open(lasting)
        walk.close(fixed.done, roots)
        fixed.close(walk)
        self._remember(walk.abstract, walk.functions)
        return walk

    def _renew(self) -> None:
        """Drop the fixed part, which is outdated.

        Raises:
            ExplorationRestart: always, unless changes are only recorded now.
        """
        self._outdated = True
        if not self.learning:
            self._fixed, self._outdated = None, False
            raise ExplorationRestart(code="PartsChanged")

    def _named(self, tokens: list[Any]) -> list[Any]:
        """Return tokens with numbers in the place of values that are new each time."""
        if not self.scope.unique:
            return tokens
        self._unique.note_running()
        return self._unique.renamed(tokens)

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
        caveats = _opaque_caveats(self._opaque)
        assumed = (
            (self._sets, "the order of a set of 2 or more ({}) is not read"),
            (self._counters, "how often a cache was hit ({}) is not read"),
            (self._traces, "the frames of a traceback ({}) are not read"),
            (self._frames, "who called a frame ({}) is not read"),
            (self._ignored, "{} is ignored"),
        )
        for paths, text in assumed:
            if paths:
                more = id(paths) in self._unlisted
                exact = not more and id(paths) not in self._uncounted
                listed = _listed(list(paths), exact=exact)
                if more and len(paths) <= _NAMED:
                    listed += " and perhaps more"
                caveats.append(Caveat("assumed", text.format(listed)))
        return tuple(caveats)

    def forget(self) -> None:
        """Drop the objects that this heap keeps alive: those that all systems share."""
        self._fixed = None

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
        walk = self._start()
        if lasting:
            walk.close(walk.open(lasting), roots)
        else:
            walk.run(roots)
        if walk.opaque or walk.left_out:
            self._note(walk)
        self._remember(walk.abstract, walk.functions)
        if id(operator.methodcaller) in walk.seen:
            self._impure_functions |= names_of([operator.methodcaller])
        return walk

    def _whole_walk(self, roots: Mapping[str, object]) -> HeapWalk:
        """Return a walk that leaves out nothing."""
        if self._executed is None:
            return self._walk(roots)
        walk = self._start()
        walk.executed = None
        walk.run(roots)
        return walk

    def _start(self) -> HeapWalk:
        """Return a walk of this scope that has not begun."""
        patterns = self.scope.ignore
        walk = HeapWalk(self.scope, IgnorePatterns(patterns) if patterns else None)
        walk.executed = self._executed
        if self.scope.unique:
            walk.unique = self._unique
        if self._excluded is not None:
            walk.exclude(self._excluded)
        return walk

    def _remember(self, abstract: Iterable[type], functions: Sequence[Any]) -> None:
        """Remember abstract classes, and the names of C functions, that were met."""
        for kind in abstract:
            self._abstract[id(kind)] = weakref.ref(kind)
        if functions:
            self._impure_functions |= names_of(functions)

    def _note_large(self, walk: HeapWalk, roots: Mapping[str, object]) -> None:
        """Record the limits of a walk that began at the fixed part, by a whole walk."""
        numbers = walk.sets, walk.counters, walk.traces, walk.frames
        if not (walk.opaque or walk.left_out or any(numbers)):
            return
        fixed = self._fixed
        counted = {} if fixed is None or not walk.described else fixed.opaque.copy()
        for number in walk.opaque[sum(counted.values()) :]:
            name = exact_name(type(walk.order[number]))
            counted[name] = counted.get(name, 0) + 1
        unread = list(map(len, numbers))
        ignored = {label for _, label in walk.left_out}
        new_kind = (
            any(name not in self._noted_opaque for name in counted)
            or any(
                now and not before
                for now, before in zip(unread, self._noted_unread, strict=True)
            )
            or not ignored <= self._noted_ignored
        )
        more = any(
            count > self._noted_opaque.get(name, 0) for name, count in counted.items()
        ) or any(map(operator.gt, unread, self._noted_unread))
        # As many as before, but other ones: their paths may be others.
        place = tuple(map(tuple, numbers))
        others = any(unread) and place not in self._noted_numbers
        if not (new_kind or more or others):
            return
        most = _MOST_NOTED if more else _MOST_NOTED_AGAIN
        if not new_kind and self._notes >= most:
            tables = self._sets, self._counters, self._traces, self._frames
            pairs = zip(unread, tables, strict=True)
            self._unlisted |= {id(paths) for count, paths in pairs if count}
            return
        self._notes += len(walk.order)
        self._noted_numbers.add(place)
        self._noted_ignored |= ignored
        for name, count in counted.items():
            self._noted_opaque[name] = max(count, self._noted_opaque.get(name, 0))
        self._noted_unread = list(map(max, unread, self._noted_unread))
        whole = self._walk(roots)
        if any(unread):
            blind = hashlib.blake2b(marshal.dumps(whole.out, 2), digest_size=16)
            self._note_unread(whole, blind.digest())

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
        left_out = [each for each in walk.left_out if each not in self._left_out]
        if not news and not left_out:
            return
        self._left_out.update(left_out)
        records.read()
        for name, numbers in news.items():
            path = self._opaque.get(name, (0, records.path(numbers[0])))[1]
            self._opaque[name] = (len(numbers), path)
        for number, label in left_out:
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


def _opaque_caveats(opaque: Mapping[str, tuple[int, str]]) -> list[Caveat]:
    """Return one caveat for each class of opaque objects, or one for many classes."""
    rows = [(name, count, path) for name, (count, path) in sorted(opaque.items())]
    rows.sort(key=lambda row: not row[2].startswith("registry"))
    texts = [
        f"{_article(name)} holds ({_short(path)}{_more(count)})"
        for name, count, path in rows
    ]
    if len(texts) < _MANY:
        return [Caveat("opaque", f"what {text}") for text in texts]
    line = ", ".join(f"what {text}" for text in texts[:_NAMED])
    rest = len(texts) - _NAMED
    if rest > 0:
        kinds = "class" if rest == 1 else "classes"
        line += f", and what objects of {rest} more {kinds} hold"
    return [Caveat("opaque", line)]


def _short(path: str) -> str:
    """Return a path without its middle if it is long."""
    if len(path) <= _LONGEST_PATH:
        return path
    half = (_LONGEST_PATH - len(_GAP)) // 2
    return f"{path[:half]}{_GAP}{path[-half:]}"


def _listed(paths: list[str], *, exact: bool) -> str:
    rest = len(paths) - _NAMED
    count = f"{rest}" if exact else f"at least {rest}"
    return ", ".join(map(_short, paths[:_NAMED])) + (
        f" and {count} more" if rest > 0 else ""
    )
