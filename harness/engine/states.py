"""`graph` on complete states: from the fresh one until no new state is found.

The nodes are states, not sets of active steps.  A state is the form of everything that
a later operation may read, undo handles included (`protocol.StateForm`); two histories
with equal forms lead to one state, and every operation is played at every state: steps,
uses, the look, and collecting garbage if a weak reference or a finalizer is reachable.
Caches may fill and empty at any time; the player compares observations, answers and
errors by key.  Stateful model checking over canonical heaps: Iosif, "Symmetry
reductions for model checking of concurrent dynamic software" (2004); Visser, Havelund,
Brat, Park and Lerda, "Model checking programs" (2003).

How it works:
- *The walk*: take an operation that was not taken yet at the current state; else follow
  known transitions to the nearest such state among `NEAR`; else start from a fresh
  system and follow the shortest known history.  No state is restored: a real history
  leads to each state, and its form is compared on arrival.
- *Close*: every operation is taken once at every state (limits: `limits.py`).
- *Cover*: round by round every operation is taken again at every state, each time after
  another history, and from another variant in the order of dicts.  The answer and the
  target state must be the same.
- *Blind, then exact*: forms that ignore the order of dicts are far fewer.  If one of
  them leads to two futures, the order is read somewhere, and the exact forms are
  explored.  If the blind forms close without a finding, the exact ones are explored as
  well if that is cheap, and else the proof assumes that the order is never read.
- *Random walk*: after that, operations drawn at random, in histories of hundreds, with
  every result and form compared.  The cover takes the shortest histories; a counter
  that is hidden in C shows after many.
- *Hidden state*: two equal exact forms with two futures.

Rules: a fresh system must always have the first form; a state alone is never a fault:
two states of the same active steps that never answer differently are correct.
"""

from collections import Counter, deque
from collections.abc import Hashable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import cycle, product
from random import Random
from typing import Final

from everyorder.harness.base.errors import BadScenario
from everyorder.harness.engine.limits import (
    OBJECTS_PER_STEP,
    SearchLimits,
    interleaved,
)
from everyorder.harness.engine.protocol import History, Key, StateForm
from everyorder.harness.engine.session import ExplorationSession
from everyorder.harness.engine.symmetry import Orbits

# States that are searched for an open operation before a fresh system is created; 64
# known transitions cost less than the reset of most registries.
NEAR = 64

# Histories from which each operation is taken at each state, if there are so many.  Of
# 34 registries made to deceive, plain search wrongly proves 27 to 30, two histories
# leave 12, four leave 3.
COVER = 4

# Fewer histories are not a proof: one history does not reveal hidden state.
LEAST = 2

# Later rounds may take at most so many times the operations of the first.
ROUNDS = 6

# Operations that were repeated so often without returning to a known state are taken
# for ones that count or log.
GROWTH = 6

# The random walk begins from a fresh system after so many operations, in turn.
LEGS = (8, 32, 128, 512)

# A state reached so often with no open operation has only one history of steps.
MOST_IDLE = 8

_MARK: Final = 0x9E3779B97F4A7C15


class OrderRead(Exception):
    """Two exact forms of one blind form have two futures."""


class VariantRead(Exception):
    """Two variants of one exact form have two futures (`StateForm.variant`)."""


class _Stop(Exception):
    """The steps of a stage are spent."""


@dataclass(slots=True)
class _Transition:
    """The result of an operation at a state, and the histories that it was taken from.

    `life` and `length` are the place of the first of them among all plays; `marks`
    identify the histories, and `turns` identify their steps.
    """

    target: int
    value: Hashable
    life: int
    length: int
    exacts: set[bytes]
    variants: set[bytes]
    marks: set[int]
    turns: set[int]


@dataclass(frozen=True, slots=True)
class SearchPart:
    """The operations of a search: these steps, all uses, and looks.

    `leading` is played on each fresh system before the search begins, and every
    operation is taken from `cover` histories, if there are so many.
    """

    steps: frozenset[int]
    leading: History = ()
    cover: int = COVER


class Search:
    """One stage: the states by one kind of form."""

    def __init__(
        self,
        session: ExplorationSession,
        *,
        exact: bool,
        limits: SearchLimits,
        part: SearchPart | None = None,
    ) -> None:
        self._session = session
        self._player = session.player
        operations = session.operations
        self._part = part = part or SearchPart(frozenset(range(operations.steps)))
        self._operations = (
            *sorted(part.steps),
            *range(operations.steps, operations.look + 1),
        )
        self._changes = frozenset(operations.changes)
        self.exact = exact
        self._limits = limits
        # Covering all operations takes as many steps as closing the states.
        self._most = limits.total // LEAST
        # Steps of the budget, and the operations among them.
        self.spent = self.played = 0
        # True if more operations are left to take than steps of the budget.
        self.too_many = False
        self.repeated: History = ()
        self.walked = 0
        # The operations that are possible at the known states, and those taken.
        self.possible = self.transitions = 0
        self._repeated_two = False
        # True if a variant, which is not part of a state, decides the future.
        self.variant_read = False
        self._index: dict[tuple[bytes, int], int] = {}
        self.keys: list[Key] = []
        self._masks: list[int] = []
        self._ways: list[list[tuple[int, int]]] = []
        self._depth: list[int] = []
        self.weak: list[bool] = []
        self._out: list[dict[int, _Transition]] = []
        self._exacts: list[set[bytes]] = []
        # Steps that are replaced by symmetric ones, by state, once that is known.
        self._redundant: dict[int, frozenset[int]] = {}
        self._orbits = Orbits(session, part.steps, exact=exact)
        # Histories to two variants of one blind form, for the text of the assumption.
        self.variants: list[tuple[History, History]] = []
        self._fresh: StateForm | None = None
        # The traces of the earlier fresh systems.
        self._lives: list[bytes] = []
        self._round = 1
        self.covered = 0
        self.closed = False
        # In this round: states without an open operation, ways tried to the others.
        self._done: set[int] = set()
        self._tried: Counter[int] = Counter()
        # The number of arrivals at a state with no open operation.
        self._idle: Counter[int] = Counter()
        # The current state.
        self._at = 0
        self._form = StateForm(b"", b"")
        self._mark = self._turn = 0

    @property
    def states(self) -> int:
        """Return the number of states."""
        return len(self.keys)

    def run(self) -> None:
        """Explore until all is covered, or the steps are spent.

        Raises:
            OrderRead: in a blind stage, the order of a dict decides a result.
            VariantRead: a variant of an exact form decides a result.
        """
        self._start()
        with suppress(_Stop):
            self._reduce()
            self._probe_growth(1)
            self._take_all()
            self.closed = True
            self.covered = 1
            walked = self._limits.walked
            self._most = min(self._limits.total - walked, self.spent * ROUNDS)
            for number in range(LEAST, self._part.cover + 1):
                self._round = number
                self._take_all()
                self.covered = number

    @property
    def grows(self) -> bool:
        """Return True if some operations give new states whenever they are repeated."""
        return bool(self.repeated)

    def history(self, state: int) -> History:
        """Return the shortest known history to a state."""
        return (*self._part.leading, *self._history(state, 0))

    def _take_all(self) -> None:
        self._done.clear()
        self._tried.clear()
        while True:
            self._reduce()
            self._check_prospect()
            operation = next(self._open(), None)
            if operation is not None:
                self._take(operation)
                continue
            way = self._path_to_open(NEAR)
            if way is None and not self._restart():
                way = self._path_to_open(self.states)
                if way is None:
                    return
            for each in way or ():
                self._take(each)
            if next(self._open(), None) is None:
                self._idle[self._at] += 1

    def _reduce(self) -> None:
        """Find the steps that need not be played at the current state."""
        at = self._at
        if at in self._redundant or self.grows or not self._session.symmetries:
            return
        history = self.history(at)
        reduction = self._orbits.reduction(history)
        if reduction.order_read:
            raise OrderRead
        self._redundant[at] = reduction.redundant
        self._session.symmetry_used |= bool(reduction.redundant)
        few = reduction.twins[: COVER - len(self.variants)]
        self.variants += [(history, twin) for twin in few]
        if reduction.moved:
            self._reset()
            for operation in self._history(at, 0):
                self._take(operation)

    def _open(self) -> Iterator[int]:
        """Yield operations not yet taken often enough at the current state."""
        out, mark, number = self._out[self._at], self._mark, self._round
        variant, turning = _variant(self._form), self._turns(self._at)
        for operation in self._possible(self._at):
            transition = out.get(operation)
            if transition is None or (
                mark not in transition.marks
                and (
                    len(transition.marks) < number
                    or (
                        variant not in transition.variants
                        and len(transition.variants) < number
                    )
                    or (
                        turning
                        and self._turn not in transition.turns
                        and _has_one_turn(transition)
                    )
                )
            ):
                yield operation

    def _has_open(self, state: int) -> bool:
        """Return True if an operation is open at the state, whatever the history."""
        if state in self._done:
            return False
        out, number, turning = self._out[state], self._round, self._turns(state)
        for operation in self._possible(state):
            transition = out.get(operation)
            if transition is None or len(transition.marks) < number:
                return True
            if turning and _has_one_turn(transition):
                return True
        self._done.add(state)
        return False

    def _turns(self, state: int) -> bool:
        """Return True if the state should be reached by other steps than before.

        Histories that differ only in uses and looks are often easier to find.
        """
        return (
            self._round >= LEAST
            and self._session.operations.reversible
            and self._idle[state] < MOST_IDLE
        )

    def _possible(self, state: int) -> Iterator[int]:
        mask, player = self._masks[state], self._player
        redundant = self._redundant.get(state, frozenset())
        for operation in self._operations:
            if operation not in redundant and player.sensible(operation, mask):
                yield operation
        if self.weak[state]:
            yield self._session.operations.collect

    def _start(self) -> None:
        self._reset()
        self._at = self._enter(None)

    def _reset(self) -> None:
        player, session = self._player, self._session
        self._lives.append(bytes(player.trace))
        player.reset()
        leading = self._part.leading
        for operation in leading:
            player.play(operation)
        form = player.state()
        if not isinstance(form, StateForm):
            raise BadScenario(code="NoFingerprint", strategy="graph")
        self._charge(form)
        self._form, self._at = form, 0
        self._mark = self._turn = 1
        if self._fresh is None:
            self._fresh = form
        elif form.exact != self._fresh.exact:
            if not leading:
                session.report_not_fresh()
            session.report_hidden(leading, leading)

    def _enter(self, way: tuple[int, int] | None) -> int:
        """Return the current state, known or new; store one more way to it."""
        form = self._form
        # A lasting step has no handle, so its effect may be missing in the form.
        name = form.exact if self.exact else form.blind, self._player.mask
        state = self._index.get(name)
        if state is None:
            state = self._index[name] = len(self.keys)
            self.keys.append(self._player.key)
            self._masks.append(self._player.mask)
            self._ways.append([] if way is None else [way])
            self._depth.append(0 if way is None else self._depth[way[0]] + 1)
            self.weak.append(form.weak)
            self._out.append({})
            self._exacts.append({form.exact})
            self.possible += sum(1 for _ in self._possible(state))
        else:
            ways = self._ways[state]
            if way is not None and state and len(ways) < COVER and way not in ways:
                ways.append(way)
            exacts = self._exacts[state]
            if form.exact not in exacts and len(exacts) < 2 * COVER:
                exacts.add(form.exact)
                if len(self.variants) < COVER:
                    trace = self._player.trace
                    self.variants.append((self.history(state), tuple(trace)))
        return state

    def _take(self, operation: int) -> None:
        """Play an operation at the current state; compare it with the known result."""
        session, player = self._session, self._player
        if self.spent >= self._most:
            raise _Stop
        self.spent += 1
        self.played += 1
        session.meter.count()
        source, form = self._at, self._form
        mark, turn = self._mark, self._turn
        transition = self._out[source].get(operation)
        count = len(session.findings)
        try:
            value = player.play(operation)
        finally:
            if len(session.findings) > count:
                self._name(transition, form)
        after = player.state()
        assert isinstance(after, StateForm), "the fresh system had one"
        self._charge(after)
        self._form = after
        self._mark = hash((mark, operation, _MARK))
        if operation in self._changes:
            self._turn = hash((turn, operation, _MARK))
        self._at = target = self._enter((source, operation))
        if transition is None:
            self.transitions += 1
            place = len(self._lives), len(player.trace)
            self._out[source][operation] = _Transition(
                *(target, value, *place), {form.exact}, {_variant(form)}, {mark}, {turn}
            )
            return
        if (target, value) != (transition.target, transition.value):
            self._report_difference(transition, form)
        transition.marks.add(mark)
        transition.turns.add(turn)
        transition.exacts.add(form.exact)
        transition.variants.add(_variant(form))

    def _name(self, transition: _Transition | None, form: StateForm) -> None:
        """Change the last finding to hidden state if it contradicts an equal state."""
        findings = self._session.findings
        if transition is not None and _variant(form) in transition.variants:
            finding = findings[-1]
            if finding.kind in ("order", "use", "cold", "wedged", "error"):
                findings[-1] = replace(finding, kind="hidden")

    def _report_difference(self, transition: _Transition, form: StateForm) -> None:
        """Report two futures of equal forms: an order is read, or state is hidden."""
        if not self.exact and form.exact not in transition.exacts:
            raise OrderRead
        if _variant(form) not in transition.variants:
            self.variant_read = True
            self.closed = False
            raise VariantRead
        trace = bytes(self._player.trace)
        life = (*self._lives, trace)[transition.life]
        self._session.report_hidden(tuple(life[: transition.length]), tuple(trace))

    def _path_to_open(self, most: int) -> list[int] | None:
        """Return operations that lead to the nearest state with an open operation."""
        start = self._at
        came: dict[int, tuple[int, int]] = {start: (start, -1)}
        queue = deque([start])
        while queue and len(came) <= most + 1:
            state = queue.popleft()
            if state != start and self._has_open(state):
                way: list[int] = []
                while state != start:
                    state, operation = came[state]
                    way.append(operation)
                return way[::-1]
            for operation, transition in self._out[state].items():
                if transition.target not in came:
                    came[transition.target] = (state, operation)
                    queue.append(transition.target)
        return None

    def _restart(self) -> bool:
        """Lead a fresh system to the shallowest state with an open operation.

        The history is one that no operation there was taken from; False if there is
        none.
        """
        order = sorted(range(self.states), key=self._depth.__getitem__)
        for state in order:
            if not self._has_open(state):
                continue
            # In one round a history that is not new stays so.
            tried = self._tried[state]
            for number in range(tried, max(len(self._ways[state]), 1)):
                self._tried[state] = number + 1
                history = self._history(state, number)
                if self._is_new(state, _mark_of(history)):
                    self._reset()
                    for operation in history:
                        self._take(operation)
                    if self._at == state:
                        return True
        return False

    def _is_new(self, state: int, mark: int) -> bool:
        out, number = self._out[state], self._round
        for operation in self._possible(state):
            transition = out.get(operation)
            if transition is None:
                return True
            if len(transition.marks) < number and mark not in transition.marks:
                return True
        return False

    def _history(self, state: int, number: int) -> History:
        """Return the history to a state by its way `number`, then by first ways."""
        backwards: list[int] = []
        while self._ways[state]:
            state, operation = self._ways[state][number]
            backwards.append(operation)
            number = 0
        return tuple(reversed(backwards))

    def _charge(self, form: StateForm) -> None:
        steps = form.objects // OBJECTS_PER_STEP
        self.spent += steps
        self._session.meter.charge(steps)

    def _probe_growth(self, length: int) -> None:
        """Repeat each sequence of so many operations; limit the search if it grows.

        A sequence grows if it never returns to a known state.  In it a step is done and
        undone, or done again if it cannot be undone.
        """
        operations = self._session.operations
        relations = operations.relations
        turns: list[History] = []
        for operation in self._possible(0):
            if operation < operations.steps and operation not in relations.lasting:
                turns.append((operation, operation))
            elif operation < operations.collect and (
                operation not in relations.lasting or operation in relations.again
            ):
                turns.append((operation,))
            for end, ended in relations.ends.items():
                if operation in ended:
                    turns.append((operation, end))
        for several in product(turns, repeat=length):
            for turn in interleaved(several):
                if self._is_growing(turn):
                    self.repeated = turn
                    self._most = min(self._most, max(self._limits.grown, self.spent))
                    return
                self._reset()

    def _is_growing(self, turn: History) -> bool:
        """Return True if each repetition of some operations ends in a new state."""
        lasting = self._session.operations.relations.lasting
        if not lasting.isdisjoint(turn):
            # The first time it is done, which may only happen once.
            for operation in turn:
                self._take(operation)
        for _ in range(GROWTH):
            states = self.states
            for operation in turn:
                self._take(operation)
            if self._at < states:
                return False
        return True

    def _check_prospect(self) -> None:
        """Give up early if the states cannot all be found.

        Raises:
            _Stop: they grow, or more operations are left to take than steps.
        """
        if self.closed or self.spent < self._limits.unclosed:
            return
        if not self.grows and not self._repeated_two:
            self._repeated_two = True
            self._probe_growth(2)
        if self.grows:
            raise _Stop
        self.too_many = self.least_needed > self._limits.total
        if self.too_many:
            raise _Stop

    @property
    def least_needed(self) -> int:
        """Return how many steps of the budget are needed for a proof.

        It is a lower bound if every set of steps can be active as long as no step was
        refused; 0 if symmetries make the number of states unknown.
        """
        session = self._session
        if session.symmetries:
            return 0
        operations = self.possible
        if not session.record.failures and not session.operations.combined:
            sets = 1 << len(self._part.steps)
            operations = max(operations, sets * len(self._operations))
        return self.spent + LEAST * operations - self.transitions

    def walk_at_random(self, steps: int) -> None:
        """Play operations drawn at random, for so many steps of the budget.

        Raises:
            OrderRead, VariantRead: as `run`.
        """
        # The content of the search is the seed, so that a run can be repeated.
        content = f"{self._session.operations} {self.states} {self.transitions}"
        random = Random(content)  # noqa: S311 - reproducible, not secret
        self._most = self.spent + steps
        with suppress(_Stop):
            for leg in cycle(LEGS):
                self._reset()
                for _ in range(leg):
                    self._reduce()
                    self._take(random.choice([*self._possible(self._at)]))
                    self.walked += 1


def _variant(form: StateForm) -> bytes:
    return form.variant or form.exact


def _has_one_turn(transition: _Transition) -> bool:
    return len(transition.turns) < LEAST


def _mark_of(history: History) -> int:
    mark = 1
    for operation in history:
        mark = hash((mark, operation, _MARK))
    return mark
