"""`groups`: steps that have nothing to do with each other, explored apart.

With 20 steps there are a million sets, and with 20 steps in groups of four 80: where no
step of one group writes what a step of another one writes, each group can be explored
to closure by itself.

Writes do not show reads.  A step may read what another group writes, and nobody sees
it in what is written; so the groups are checked, and what follows "holds", as far as
the check goes.  It is never a proof.

How it works:
- *Writes*: portraits before and after a step is done and undone on a fresh system,
  undo handles left aside, tell the paths that it writes.  Steps whose paths overlap
  (one begins the other) are one group, and so are steps of which a relation speaks.
- *Uses join nothing.*  What uses write is a cache.  A step that forgets it when it is
  warm writes it as well, but forgetting twice is forgetting once; and whether it is
  forgotten too rarely shows within each group, where every use is played.  What a step
  writes beside it, warm or not, counts as any other write.
- *Check*: every two steps of different groups are done and undone in both orders.  The
  same steps must be active, with equal blind forms and the same outcomes, and each
  must write with the other one active what it writes without; else the two groups are
  one.  That is no fault: faults are what looks and answers tell, which are taken in
  both orders, too.
- *Use*: the complete states of each group are explored until nothing new is found
  (`states.py`), uses and looks included, once with no other step active and once with
  all of them.

Paths are those that the system names, of which it may leave out some where very much
differs at once; the check of the pairs does not depend on them.
"""

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final, TypeAlias

from everyorder.harness.engine.proof import (
    MOST_OBJECTS,
    affordable,
    not_closed,
    searched,
)
from everyorder.harness.engine.protocol import History, Key, StateForm
from everyorder.harness.engine.session import ExplorationSession
from everyorder.harness.engine.states import LEAST, SearchPart

# How a path begins that tells of an order, or of hits of a cache: no write.
_NO_WRITES: Final = ("order of ", "set order of ", "hits of ")

# Steps of a group, for the size of a plan: what is larger is seldom a group.
TYPICAL = 4

# What travelling costs beside the operations of a search; 1.1 to 3.5 were measured.
TRAVEL = 2

# Forms that are taken to check one pair of steps.
FORMS = 12

_Form: TypeAlias = tuple[Key, bytes]


def size(steps: int, uses: int) -> int:
    """Operations, if the steps make groups of `TYPICAL` whose sets have one state."""
    asked = uses + 1
    writes = steps * (5 + 2 * asked)
    pairs = steps * (steps - 1) // 2 * (16 + 2 * (4 + 3 * asked))
    typical = min(TYPICAL, steps)
    searches = 2 * -(-steps // typical)
    searched = searches * (1 << typical) * (typical + asked) * LEAST * TRAVEL
    return writes + pairs + searched


def run(session: ExplorationSession) -> None:
    """Find the groups, check them, and explore each of them.

    Sets `session.groups` to those that were explored.  Raises `BadScenario` where the
    system shows no complete state.
    """
    if session.system.settled:
        session.skipped.append(
            "groups: only where steps may leave more than one state behind; each set "
            "of active steps has one here, which walks compare"
        )
        return
    player = session.player
    player.watching = False
    try:
        most = affordable(session, "groups")
        found = _Groups(session)
        if not _is_small_enough(session):
            return
        if found.join_all():
            _explore(session, found.groups(), most)
    finally:
        player.watching = True
        player.reset()


def _is_small_enough(session: ExplorationSession) -> bool:
    """Whether states are small enough to compare every two steps; reports it if not."""
    form = session.player.state()
    steps = session.operations.steps
    pairs = steps * (steps - 1) // 2
    objects = form.objects if isinstance(form, StateForm) else 0
    if pairs * FORMS * objects <= MOST_OBJECTS:
        return True
    session.skipped.append(
        f"groups: {pairs:,} pairs of steps, at states of {objects:,} objects, are too "
        "many to compare"
    )
    return False


@dataclass(slots=True)
class _Writes:
    """The paths that doing and undoing a step writes."""

    do: frozenset[str]
    all: frozenset[str]


class _Groups:
    """Which steps belong together: a forest of steps, and why they were joined."""

    def __init__(self, session: ExplorationSession) -> None:
        self._session = session
        self._player = session.player
        operations = session.operations
        self._steps = range(operations.steps)
        self._asked = (
            *range(operations.steps, operations.actions),
            operations.look,
        )
        self._nothing = [None] * operations.steps
        self._parents = list(self._steps)
        self._why = ""

    def join_all(self) -> bool:
        """Join whatever belongs together; whether groups are left, reported if not."""
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
        """The groups, each ascending."""
        found: dict[int, list[int]] = {}
        for step in self._steps:
            found.setdefault(self._root(step), []).append(step)
        return tuple(map(tuple, found.values()))

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
        """Join what relations speak of; whether there is more than one group then."""
        ordering = self._session.ordering
        if ordering.pairs is None:
            self._why = "the order of all of them may show"
            return False
        relations = self._session.operations.relations
        self._why = "their relations join them"
        for relation in (relations.requires, relations.after):
            for step, others in relation.items():
                for other in others:
                    self._join(step, other)
        for one, other in ordering.pairs:
            self._join(one, other)
        return len(self.groups()) > 1

    def _join_by_writes(self) -> bool:
        """Join steps whose paths overlap; False where nobody sees what they write."""
        self._writes = [self._writes_of(step) for step in self._steps]
        if not any(each.all for each in self._writes):
            self._why = "the system does not tell what they write"
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
        """The places that both steps write, each by the shorter of its two paths."""
        left, right = self._writes[one].all, self._writes[other].all
        yield from left & right
        for path in left - right:
            for twin in right - left:
                short, long = sorted((path, twin), key=len)
                if is_within(long, short):
                    yield short

    def _writes_of(self, step: int) -> _Writes:
        """The paths that a step writes cold, and warm without those that uses write."""
        lead = self._lead(step)
        fresh = self._stage(lead)
        done = self._stage((*lead, step))
        undone = self._stage((*lead, step, step))
        do = self._paths(fresh, done)
        cold = do | self._paths(done, undone)
        warm = self._stage((*lead, *self._asked))
        forgotten = self._stage((*lead, *self._asked, step))
        asked = self._stage((*lead, step, *self._asked))
        over = self._stage((*lead, step, *self._asked, step))
        caches = self._paths(fresh, warm) | self._paths(done, asked)
        beside = self._paths(warm, forgotten) | self._paths(asked, over)
        return _Writes(
            do,
            cold
            | {
                path
                for path in beside
                if not any(
                    is_within(path, cache) or is_within(cache, path) for cache in caches
                )
            },
        )

    def _is_independent(self, one: int, other: int) -> bool:
        """Whether nothing tells in which order two steps were done and undone."""
        lead = (*self._lead(one), *self._lead(other))
        for first, second in ((one, other), (other, one)):
            # What looks and answers tell is compared by key, in the player.
            asked = (*lead, first, second, *self._asked, first, *self._asked, second)
            self._player.reset()
            self._play((*asked, *self._asked))
        shown, told = self._played(lead, (one, other, one, other))
        turned, told_too = self._played(lead, (other, one, other, one))
        # With both active, and with none.
        if (shown[0], shown[2], told) != (turned[0], turned[2], told_too):
            return False
        # With one active, where the other was done first or last.
        one_left, _ = self._played(lead, (one, other, other, one))
        other_left, _ = self._played(lead, (other, one, one, other))
        if one_left[1:] != [turned[1], turned[2]]:
            return False
        if other_left[1:] != [shown[1], shown[2]]:
            return False
        return self._writes_alike(lead, one, other) and self._writes_alike(
            lead, other, one
        )

    def _played(
        self, lead: History, order: History
    ) -> tuple[list[_Form], dict[int, list[Hashable]]]:
        """The forms from the second step on, and the results of each step."""
        self._player.reset()
        self._play(lead)
        shown: list[_Form] = []
        told: dict[int, list[Hashable]] = {step: [] for step in sorted(order)}
        for number, step in enumerate(order):
            told[step].append(self._play((step,)))
            if number:
                shown.append(self._form())
        return shown, told

    def _writes_alike(self, lead: History, step: int, other: int) -> bool:
        """Whether a step writes beside another one what it writes without."""
        before = self._stage((*lead, other))
        self._play((step,))
        return self._paths(before, self._portrait()) == self._writes[step].do

    def _lead(self, step: int) -> History:
        """The steps that must be done before a step can be."""
        way = self._session.operations.history_to((step,))
        return way[: way.index(step)]

    def _stage(self, history: History) -> object:
        """The portrait of a fresh system after a history, undo handles left aside."""
        self._player.reset()
        self._play(history)
        return self._portrait()

    def _play(self, history: Sequence[int]) -> Hashable:
        """Play operations of the plan; the result of the last one."""
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
    """Whether a path is a place or lies below it."""
    below = path[len(place) :]
    return path.startswith(place) and not (below[:1].isalnum() or below[:1] == "_")


def _explore(
    session: ExplorationSession, groups: tuple[tuple[int, ...], ...], most: int
) -> None:
    """Explore each group with no other step active, and with all of them."""
    operations, meter = session.operations, session.meter
    # What strategies after this one are planned to take.
    planned = size(operations.steps, operations.uses)
    later = max(meter.planned - meter.transitions - planned, 0)
    closed = True
    for group in groups:
        others = [step for step in range(operations.steps) if step not in group]
        for leading in ((), operations.history_to(others)):
            left = most if meter.left is None else max(meter.left - later, 0)
            part = SearchPart(frozenset(group), leading, LEAST)
            search, _ = searched(session, min(most, left), part)
            if search.closed and search.covered >= LEAST:
                continue
            closed = False
            steps = " ".join(str(step + 1) for step in group)
            beside = "all others" if leading else "no other"
            where = f"groups, steps {steps} with {beside} active"
            session.skipped.append(not_closed(session, search, where))
    if closed:
        session.groups = groups


def describe(groups: Sequence[Sequence[int]]) -> str:
    """The groups in words, steps counted from 1."""
    several = [
        f"steps {' '.join(str(step + 1) for step in group)}"
        for group in groups
        if len(group) > 1
    ]
    alone = len(groups) - len(several)
    if alone:
        several.append(f"{alone} {'others' if several else 'steps'}, each by itself")
    return "; ".join(several)
