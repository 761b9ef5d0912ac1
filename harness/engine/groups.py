"""`groups`: independent groups of steps, explored one at a time.

With 20 steps there are a million sets, and with 20 steps in groups of four there are
80.  If no step of one group writes a place that a step of another group writes, each
group can be explored to closure separately.

Writes do not show reads.  A step may read what another group writes, and the writes do
not reveal that.  So the groups are checked, and the result holds only as far as the
check goes.  It is never a proof.

How it works:
- *Writes*: portraits before and after a step is done and undone on a fresh system,
  without undo handles, show the paths that the step writes.  Steps whose paths overlap
  (one is a prefix of the other) are one group, and so are steps of one relation.  An
  operation that ends steps makes them one group, and a step also writes the paths that
  a use writes when it ends the step.
- *Uses join no groups.*  A use writes caches.  A step that invalidates a warm cache
  writes it as well, but invalidating twice is the same as once; a missing invalidation
  shows within each group, where every use is played.  Every other path that a step
  writes, warm or not, counts as a write.
- *Check*: every two steps of different groups are done and undone in both orders.  With
  the same steps active, the blind forms and the results must be equal, and each step
  must write the same paths with and without the other one active; else the two groups
  are joined.  That is not a fault: faults are differences in looks and answers, which
  are compared in both orders, too.
- *Use*: the complete states of each group are explored until no new state is found
  (`states.py`), uses and looks included, once with no other step active and once with
  all of them.

The system names the paths, and may leave out some if very many differ at once; the
check of the pairs does not depend on paths.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

from everyorder.harness.engine.limits import OBJECTS_PER_STEP, remaining, shared
from everyorder.harness.engine.parts import joined
from everyorder.harness.engine.proof import (
    not_closed,
    require_states,
    searched,
)
from everyorder.harness.engine.protocol import History, Key, StateForm
from everyorder.harness.engine.session import ExplorationSession
from everyorder.harness.engine.states import LEAST, SearchPart

# Prefixes of lines that report an order, or hits of a cache: these are not writes.
_NO_WRITES: Final = ("order of ", "set order of ", "hits of ")

# Steps per group when the size of a plan is estimated: larger groups are rare.
TYPICAL = 4

# Cost of reaching a state, as a factor of the search; 1.1 to 3.5 were measured.
TRAVEL = 2

# Forms that are built to check one pair of steps.
FORMS = 12

_Form: TypeAlias = tuple[Key, bytes]


def size(steps: int, uses: int) -> int:
    """Return the operations for groups of `TYPICAL` steps with one state a set."""
    checks = uses + 1
    writes = steps * (5 + 2 * checks)
    pairs = steps * (steps - 1) // 2 * (16 + 2 * (4 + 3 * checks))
    typical = min(TYPICAL, steps)
    searches = 2 * -(-steps // typical)
    searched = searches * (1 << typical) * (typical + checks) * LEAST * TRAVEL
    return writes + pairs + searched


def run(session: ExplorationSession) -> None:
    """Find the groups, check them, and explore each of them.

    Sets `session.groups` to the explored groups.

    Raises:
        BadScenario: the system shows no complete state.
    """
    if session.system.settled:
        session.skipped.append(
            "groups: only for systems with several states for one set of active "
            "steps; here each set has one, which walks compare"
        )
        return
    player = session.player
    player.watching = False
    try:
        require_states(session, "groups")
        partition = _Groups(session)
        if not _is_small_enough(session):
            return
        if partition.join_all():
            _explore(session, partition.groups())
    finally:
        player.watching = True
        player.reset()


def _is_small_enough(session: ExplorationSession) -> bool:
    """Return True if states are small enough to compare all pairs; else report."""
    form = session.player.state()
    steps = session.operations.steps
    pairs = steps * (steps - 1) // 2
    objects = form.objects if isinstance(form, StateForm) else 0
    needed = pairs * FORMS * objects // OBJECTS_PER_STEP
    if needed <= remaining(session):
        return True
    session.skipped.append(
        f"groups: comparing {pairs:,} pairs of steps, at states of {objects:,} "
        f"objects, takes {needed:,} steps of the budget (--steps raises it)"
    )
    return False


@dataclass(slots=True)
class _Writes:
    """The paths that doing and undoing a step writes."""

    do: frozenset[str]
    all: frozenset[str]


class _Groups:
    """A partition of the steps: a forest, and the reason for the last join."""

    def __init__(self, session: ExplorationSession) -> None:
        self._session = session
        self._player = session.player
        operations = session.operations
        self._steps = range(operations.steps)
        self._probes = (*operations.questions, operations.look)
        self._nothing = [None] * operations.steps
        self._parents = list(self._steps)
        self._why = ""

    def join_all(self) -> bool:
        """Join dependent steps; return True if several groups are left, else report."""
        if not self._join_by_relations():
            return self._report_one_group()
        if not self._join_by_writes() or len(self.groups()) == 1:
            return self._report_one_group()
        for one, other in combinations(self._steps, 2):
            if self._root(one) != self._root(other) and not self._is_independent(
                one, other
            ):
                self._why = (
                    f"played in both orders, steps {one + 1} and {other + 1} differ"
                )
                self._join(one, other)
        return len(self.groups()) > 1 or self._report_one_group()

    def groups(self) -> tuple[tuple[int, ...], ...]:
        """Return the groups, each ascending."""
        members: dict[int, list[int]] = {}
        for step in self._steps:
            members.setdefault(self._root(step), []).append(step)
        return tuple(map(tuple, members.values()))

    def _report_one_group(self) -> bool:
        self._session.skipped.append(f"groups: all steps are one group: {self._why}")
        return False

    def _root(self, step: int) -> int:
        while self._parents[step] != step:
            step = self._parents[step]
        return step

    def _join(self, one: int, other: int) -> None:
        first, second = sorted((self._root(one), self._root(other)))
        self._parents[second] = first

    def _join_by_relations(self) -> bool:
        """Join steps of one relation; return True if several groups are left."""
        ordering = self._session.ordering
        if ordering.pairs is None:
            self._why = "the order of all of them may show"
            return False
        relations = self._session.operations.relations
        self._why = "their relations join them"
        for relation in (relations.requires, relations.after, relations.excludes):
            for step, others in relation.items():
                for other in others:
                    self._join(step, other)
        for operation, ended in relations.ends.items():
            several = sorted(ended | {operation} & set(self._steps))
            for other in several[1:]:
                self._join(several[0], other)
        for one, other in ordering.pairs:
            self._join(one, other)
        return len(self.groups()) > 1

    def _join_by_writes(self) -> bool:
        """Join steps with overlapping paths; return False if no writes are visible."""
        self._writes = [self._writes_of(step) for step in self._steps]
        if not any(each.all for each in self._writes):
            self._why = "the system does not show their writes"
            return False
        touched: dict[str, set[int]] = {}
        for one, other in combinations(self._steps, 2):
            for place in self._shared(one, other):
                self._join(one, other)
                touched.setdefault(place, set()).update((one, other))
        if touched:
            place = max(sorted(touched), key=lambda each: len(touched[each]))
            number = len(touched[place])
            who = "all steps" if number == len(self._steps) else f"{number} of them"
            self._why = f"{who} touch {place}"
        return True

    def _shared(self, one: int, other: int) -> Iterator[str]:
        """Yield the places that both steps write, each by its shorter path."""
        left, right = self._writes[one].all, self._writes[other].all
        yield from left & right
        for path in left - right:
            for twin in right - left:
                short, long = sorted((path, twin), key=len)
                if is_within(long, short):
                    yield short

    def _writes_of(self, step: int) -> _Writes:
        """Return the paths that a step writes cold, and warm without those of uses."""
        lead = self._lead(step)
        fresh = self._stage(lead)
        done = self._stage((*lead, step))
        undone = self._stage((*lead, step, step))
        do = self._paths(fresh, done)
        cold = do | self._paths(done, undone)
        for operation, ended in self._session.operations.relations.ends.items():
            if step in ended and operation not in self._steps:
                cold |= self._paths(done, self._stage((*lead, step, operation)))
        warm = self._stage((*lead, *self._probes))
        forgotten = self._stage((*lead, *self._probes, step))
        done_warm = self._stage((*lead, step, *self._probes))
        over = self._stage((*lead, step, *self._probes, step))
        caches = self._paths(fresh, warm) | self._paths(done, done_warm)
        warm_writes = self._paths(warm, forgotten) | self._paths(done_warm, over)
        return _Writes(
            do,
            cold
            | {
                path
                for path in warm_writes
                if not any(
                    is_within(path, cache) or is_within(cache, path) for cache in caches
                )
            },
        )

    def _is_independent(self, one: int, other: int) -> bool:
        """Return True if no result shows the order of doing and undoing two steps."""
        lead = (*self._lead(one), *self._lead(other))
        for first, second in ((one, other), (other, one)):
            # The player compares looks and answers by key.
            warm_both = (
                *lead,
                first,
                second,
                *self._probes,
                first,
                *self._probes,
                second,
            )
            self._player.reset()
            self._play((*warm_both, *self._probes))
        forms, results = self._played(lead, (one, other, one, other))
        turned, told_too = self._played(lead, (other, one, other, one))
        # With both active, and with none.
        if (forms[0], forms[2], results) != (turned[0], turned[2], told_too):
            return False
        # With one active, where the other was done first or last.
        one_left, _ = self._played(lead, (one, other, other, one))
        other_left, _ = self._played(lead, (other, one, one, other))
        if one_left[1:] != [turned[1], turned[2]]:
            return False
        if other_left[1:] != [forms[1], forms[2]]:
            return False
        return self._writes_alike(lead, one, other) and self._writes_alike(
            lead, other, one
        )

    def _played(
        self, lead: History, order: History
    ) -> tuple[list[_Form], dict[int, list[Hashable]]]:
        """Return the forms from the second step on, and the results of each step."""
        self._player.reset()
        self._play(lead)
        forms: list[_Form] = []
        results: dict[int, list[Hashable]] = {step: [] for step in sorted(order)}
        for number, step in enumerate(order):
            results[step].append(self._play((step,)))
            if number:
                forms.append(self._form())
        return forms, results

    def _writes_alike(self, lead: History, step: int, other: int) -> bool:
        """Return True if a step writes the same with and without the other active."""
        before = self._stage((*lead, other))
        self._play((step,))
        return self._paths(before, self._portrait()) == self._writes[step].do

    def _lead(self, step: int) -> History:
        """Return the steps that must be done before `step` can be done."""
        way = self._session.operations.history_to((step,))
        return way[: way.index(step)]

    def _stage(self, history: History) -> object:
        """Return the portrait after a history, without undo handles."""
        self._player.reset()
        self._play(history)
        return self._portrait()

    def _play(self, history: Sequence[int]) -> Hashable:
        """Play operations of the plan; return the result of the last one."""
        value: Hashable = None
        for operation in history:
            self._session.meter.count()
            value = self._player.play(operation)
        return value

    def _portrait(self) -> object:
        return self._session.system.portrait(self._nothing)

    def _form(self) -> _Form:
        form = self._player.state()
        assert isinstance(form, StateForm), "the fresh system had one"
        return self._player.key, form.blind

    def _paths(self, one: object, other: object) -> frozenset[str]:
        if one is None or other is None:
            return frozenset()
        lines = self._session.system.paths(one, other)
        return frozenset(
            line.partition(": ")[0] for line in lines if not line.startswith(_NO_WRITES)
        )


def is_within(path: str, place: str) -> bool:
    """Return True if a path equals a place or is below it."""
    below = path[len(place) :]
    return path.startswith(place) and not (below[:1].isalnum() or below[:1] == "_")


def _explore(session: ExplorationSession, groups: tuple[tuple[int, ...], ...]) -> None:
    """Explore each group with no other step active, and with all of them."""
    operations = session.operations
    closed = True
    for group in groups:
        others = [step for step in range(operations.steps) if step not in group]
        for leading in ((), operations.history_to(others)):
            part = SearchPart(frozenset(group), leading, LEAST)
            search, _ = searched(session, shared(remaining(session)), part)
            if not search.exact:
                session.variants += search.variants
            if search.closed and search.covered >= LEAST:
                continue
            closed = False
            steps = " ".join(str(step + 1) for step in group)
            company = "all others" if leading else "no other"
            where = f"groups, steps {steps} with {company} active"
            session.skipped.append(not_closed(session, search, where))
    if closed:
        session.groups = groups


def run_parts(session: ExplorationSession) -> None:
    """Do the same, and prove that the groups are independent parts, if that is so.

    Groups are joined as far as necessary.  Sets `session.parts` if the parts are
    proven.

    Raises:
        BadScenario: the system shows no complete state.
    """
    run(session)
    player = session.player
    player.watching = False
    try:
        while session.groups and not session.parts:
            groups = joined(session, session.groups)
            if groups is None or groups == session.groups:
                return
            session.groups = ()
            _explore(session, groups)
    finally:
        player.watching = True
        player.reset()


def describe(groups: Sequence[Sequence[int]]) -> str:
    """Return the groups in words, steps counted from 1."""
    several = [
        f"steps {' '.join(str(step + 1) for step in group)}"
        for group in groups
        if len(group) > 1
    ]
    single = len(groups) - len(several)
    if single:
        several.append(f"{single} {'others' if several else 'steps'}, each by itself")
    return "; ".join(several)
