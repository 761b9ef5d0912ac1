"""Shrinking: histories that fail, proven to be the shortest, within an allowance.

Whether a shorter one fails is computed from the tables of drawn machines: all histories
up to a length lead to finitely many places, and what any two of them show is compared,
with nothing of the engine's own judge.
"""

import random
from collections.abc import Hashable, Iterator
from itertools import product

import pytest

from everyorder.harness.engine import Budget, Square, Violation, explore, replay
from everyorder.harness.engine import oracle as judging
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.protocol import operations_of, ordering_of
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.session import RawViolation
from everyorder.harness.engine.shrink import shrink
from tests.engine.drawn_machines import Machine, Odds, Place, Shown, parts
from tests.engine.toys import Ordered, Stale, Sticky, Suffix, Toy


class Pattern(Toy):
    """A flaw from the moment on that the history holds the history as a subsequence."""

    def __init__(self, pattern: tuple[int, ...], steps: int = 3) -> None:
        super().__init__(steps)
        self.pattern = pattern

    def flaw(self) -> Hashable:
        operations = iter(self.history)
        return "!" if all(one in operations for one in self.pattern) else ""


@pytest.mark.parametrize("pattern", [*product(range(2), repeat=3), (0, 1, 1, 0)])
def test_the_shortest_history_is_as_short_as_a_search_finds(
    pattern: tuple[int, ...],
) -> None:
    (violation,) = explore(Pattern(pattern), "walk:2").violations
    shortest = violation.shortest
    assert shortest is not None
    assert violation.proven_shortest
    assert len(shortest) <= len(violation.history)

    # The first history by length that ends differently from the first to its state.
    first: dict[tuple[int, ...], Hashable] = {}
    for length in range(8):
        for history in product(range(3), repeat=length):
            end = replay(Pattern(pattern), history).actions[-1]
            if first.setdefault(end.state, end.value) != end.value:
                assert len(shortest) == length
                return
    raise AssertionError("the pattern is a fault, so some history shows it")


def test_the_histories_of_planted_orders_are_the_orders() -> None:
    for pattern in ((1, 0), (2, 1), (2, 0, 1), (3, 2, 1, 0)):
        (violation,) = explore(Ordered(pattern, 4), "walk:2").violations
        assert violation.shortest == pattern
        assert violation.proven_shortest


def test_a_long_walk_becomes_a_short_history() -> None:
    (violation,) = explore(Suffix((7, 2, 5), 8), "walk:2").violations
    assert len(violation.history) > 1000
    assert violation.shortest == (7, 2, 5)
    assert violation.square == Square((7,), 2, 5)


def test_the_fingerprint_shortens_the_search() -> None:
    (violation,) = explore(Sticky(6, printed=True), "graph").violations
    assert (violation.shortest, violation.proven_shortest) == ((0, 2, 1), True)


def test_an_exhausted_allowance_leaves_the_history_unproven(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = set()
    for operations in range(0, 700, 23):
        monkeypatch.setattr(
            judging.Judge.__init__, "__kwdefaults__", {"operations": operations}
        )
        (violation,) = explore(Pattern((1, 0, 1, 2)), "walk:2").violations
        outcomes.add((violation.shortest is not None, violation.proven_shortest))
        if violation.shortest is not None:
            kind, state = violation.kind, violation.state
            assert (kind, replay(Pattern((1, 0, 1, 2)), violation.shortest).state) == (
                "order",
                state,
            )
    assert outcomes == {(False, False), (True, False), (True, True)}


def test_a_finding_that_fresh_systems_do_not_show() -> None:
    class Worn(Toy):
        def flaw(self) -> Hashable:
            return "!" if self.lives < 24 and len(self.history) == 20 else ""

    result = explore(Worn(), "walk:1")
    (violation,) = result.violations
    assert (violation.kind, violation.shortest) == ("nondeterminism", None)
    assert not violation.proven_shortest


def test_uses_are_kept_where_they_are_needed() -> None:
    (violation,) = explore(Stale(4, 2), "walk:1").violations
    assert violation.shortest == (4, 0, 4)
    assert violation.square is None


SEEDS = 3_000
PARTS = 10

STRATEGIES = (
    *("walk:0", "walk:1", "walk:2", "histories:3", "arrangements", "stale", "full"),
    *("kA:1", "random:1", "stale+histories:3+walk:1", "graph", "graph+walk:1"),
)


def machine_of(seed: int) -> tuple[Machine, str, int]:
    """The machine of a seed, what explores it, and how many faults are looked for."""
    strategy = STRATEGIES[seed % len(STRATEGIES)]
    printed = "graph" in strategy or seed % 5 == 0
    machine = Machine(seed, Odds(), printed=printed, settled=True)
    return machine, strategy, 1 + 2 * (seed % 2)


def shown_at_end(machine: Machine, place: Place, *, proving: bool) -> Iterator[Shown]:
    """What is seen where a history ends."""
    looked, seen = machine.after(place, machine.look)
    yield ("look", place[0]), seen
    if proving:
        # One state for each set of active steps, before the look and after it.
        yield ("state", place[0]), place
        yield ("state", place[0]), looked


def shown_by(machine: Machine, place: Place, operation: int) -> Iterator[Shown]:
    """What an operation shows that is the last but for the look."""
    after, value = machine.after(place, operation)
    if operation != machine.look:
        yield (operation, place[0]), value
        keeps = operation >= machine.steps or value == "refused"
        if machine.printed and keeps:
            # A use and a refusal leave the state as it is.
            yield (operation, place[0], "keeps"), True
            yield (operation, place[0], "keeps"), after == place


def fails_below(
    machine: Machine, operations: set[int], length: int, *, proving: bool
) -> bool:
    """Whether two histories shorter than this show two things.

    One of the two may be the shortest way to the same active steps, and be longer.
    """
    known: dict[Hashable, Hashable] = {}

    def differs(shown: Iterator[Shown]) -> bool:
        return any(known.setdefault(what, value) != value for what, value in shown)

    for mask, way in machine.ways().items():
        place = machine.end(way)
        known.update({("look", mask): machine.after(place, machine.look)[1]})
        if proving:
            known.update({("state", mask): place})
        for operation in machine.possible(mask):
            if operation != machine.look:
                known[operation, mask] = machine.after(place, operation)[1]
    level, met = {(0, 0)}, set()
    for left in reversed(range(length)):
        met |= level
        following = set()
        for place in level:
            if differs(shown_at_end(machine, place, proving=proving)):
                return True
            for operation in operations.intersection(machine.possible(place[0])):
                if left and differs(shown_by(machine, place, operation)):
                    return True
                following.add(machine.after(place, operation)[0])
        level = following - met
    return False


def fails_below_one_by_one(
    machine: Machine, operations: set[int], length: int, *, proving: bool
) -> bool:
    """The same by playing every history: the truth about the truth."""
    known: dict[Hashable, Hashable] = {}
    for mask, way in machine.ways().items():
        place = machine.end(way)
        known["look", mask] = machine.after(place, machine.look)[1]
        if proving:
            known["state", mask] = place
        for operation in machine.possible(mask):
            if operation != machine.look:
                known[operation, mask] = machine.after(place, operation)[1]
    for size in range(length):
        for history in product(sorted(operations), repeat=size):
            place = (0, 0)
            shown: list[Shown] = []
            for operation in history:
                if operation in set(machine.possible(place[0])):
                    shown += shown_by(machine, place, operation)
                    place, _ = machine.after(place, operation)
            shown += shown_at_end(machine, place, proving=proving)
            if any(known.setdefault(what, value) != value for what, value in shown):
                return True
    return False


def assert_true(machine: Machine, violation: Violation, *, proving: bool) -> None:
    """It fails; no shorter one over its operations and the look does, if so said."""
    history = violation.shortest
    assert history is not None
    operations = {*history, machine.look}
    length = len(history)
    assert fails_below(machine, operations, length + 1, proving=proving)
    if violation.proven_shortest:
        assert not fails_below(machine, operations, length, proving=proving)
        if len(operations) ** length < 500:
            assert not fails_below_one_by_one(
                machine, operations, length, proving=proving
            )
            assert fails_below_one_by_one(
                machine, operations, length + 1, proving=proving
            )


@pytest.mark.parametrize("part", parts(PARTS, 3))
def test_no_shorter_history_is_said_only_where_there_is_none(part: int) -> None:
    counted = {"violations": 0, "proven": 0}
    for seed in range(part, SEEDS, PARTS):
        machine, strategy, stop = machine_of(seed)
        found = explore(machine, strategy, budget=Budget(steps=3_000), stop_after=stop)
        proving = "graph" in strategy
        for violation in found.violations:
            assert violation.kind not in ("nondeterminism", "not fresh"), seed
            counted["violations"] += 1
            counted["proven"] += violation.proven_shortest
            try:
                assert_true(machine, violation, proving=proving)
            except AssertionError as error:
                error.add_note(f"seed {seed}, {strategy}: {violation}")
                raise
    # Machines are small: nearly all can be ruled out.
    assert counted["violations"] > SEEDS // PARTS // 5
    assert counted["proven"] > 0.9 * counted["violations"]


@pytest.mark.parametrize("strategy", ["sca:3", "random:5"])
def test_of_two_lives_the_first_may_be_the_wrong_one(strategy: str) -> None:
    # There are too many sets to look at all of them cold, so that what is known of
    # most comes from the history that happened to be there first.
    draw = random.Random(0)
    patterns = [tuple(draw.sample(range(14), 3)) for _ in range(15)]
    found = 0
    # In rising order the plain ways themselves would show it.
    for pattern in (each for each in patterns if each != (*sorted(each),)):
        violations = explore(Ordered(pattern, 14), strategy).violations
        for violation in violations:
            found += 1
            expected = violation.expected, violation.found
            assert (violation.kind, violation.shortest) == ("order", pattern)
            assert expected == ((violation.state, ""), (violation.state, "!"))
    assert found > 10


def test_a_refutation_is_no_fault_the_other_way_round() -> None:
    class Late(Toy):
        """Step 0 is refused unless the use came first."""

        def use(self, use: int) -> Hashable:
            self.history.append(-1)
            return "used"

        def refuses(self, step: int) -> str:
            return "" if step or -1 in self.history else "not yet"

    for strategy in ("histories:3", "stale+histories:3", "kA:1", "random:1"):
        (violation,) = explore(Late(2, 1), strategy, stop_after=10).violations
        assert (violation.kind, violation.shortest) == ("error", (2, 0))
        assert (violation.expected, violation.found) == (("Refused", "not yet"), None)


@pytest.mark.parametrize("allowance", range(1, 60))
def test_an_allowance_that_is_spent_ends_the_search(allowance: int) -> None:
    """A search for other operations went on for ever if one more was spent."""

    class Faulty(Toy):
        def flaw(self) -> str:
            return "bad" if self.order[-2:] == [1, 0] else ""

    system = Faulty(3, 1)
    ordering = ordering_of(system, order_dependent=False)
    judge = Judge(system, {}, ordering=ordering, proving=False, operations=allowance)
    key = ordering.key((0, 1))
    finding = RawViolation("order", key, ((0, 1), ""), ((0, 1), "bad"), (1, 0))
    shrunk = shrink(
        judge, finding, operations_of(system), ObservationRecord(), ordering
    )
    assert shrunk is None or shrunk.history == (1, 0)
