"""What relations say is played and nothing else; orders that are pinned, no more."""

from collections.abc import Hashable

import pytest

from everyorder.harness.engine import (
    Action,
    Budget,
    Exploration,
    Relations,
    State,
    explore,
    operations_of,
    ordering_of,
    replay,
)
from everyorder.harness.engine.histories import run_full
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.player import Player
from everyorder.harness.engine.protocol import UNORDERED
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.session import ExplorationSession, Meter
from tests.engine.related import Holding, Related
from tests.engine.toys import Handle, Refused, Toy

CHAIN = Relations(requires={1: frozenset({0}), 2: frozenset({1})})
AFTER = Relations(after={0: frozenset({1})})
LASTING = Relations(lasting=frozenset({0, 2}))
AGAIN = Relations(lasting=frozenset({0, 2}), again=frozenset({0}))
AGAIN_AFTER = Relations(
    lasting=frozenset({2}), again=frozenset({2}), after={2: frozenset({0})}
)
EXCLUDES = Relations(excludes={0: frozenset({1}), 1: frozenset({0})})
RADIO = Relations(
    excludes={
        each: frozenset(other for other in range(3) if other != each)
        for each in range(3)
    }
)
EXCLUDES_AFTER = Relations(
    after={2: frozenset({0})}, excludes={0: frozenset({1}), 1: frozenset({0})}
)
REFUSABLE = Relations(refusable=frozenset({0}))
ALL = {
    "requires": (CHAIN, [(), (0,), (0, 1), (0, 1, 2)]),
    "after": (AFTER, [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
    "lasting": (LASTING, [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
    "again": (AGAIN, [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]),
    "again, after": (
        AGAIN_AFTER,
        [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)],
    ),
    "excludes": (EXCLUDES, [(), (0,), (1,), (2,), (0, 2), (1, 2)]),
    "all exclude each other": (RADIO, [(), (0,), (1,), (2,)]),
    "excludes, after": (EXCLUDES_AFTER, [(), (0,), (1,), (2,), (0, 2), (1, 2)]),
}

STRATEGIES = (
    *("auto", "graph", "walk:0", "walk:1", "stale", "histories:4", "arrangements"),
    *("kA:1", "sca:2", "random:1", "full"),
)


def kinds(found: Exploration) -> list[str]:
    return [violation.kind for violation in found.violations]


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", ALL)
def test_nothing_is_played_against_the_relations(name: str, strategy: str) -> None:
    relations, _ = ALL[name]
    for settled in (True, False):
        registry = Related(relations, 3, 1, printed=True, settled=settled)
        found = explore(registry, strategy)
        assert kinds(found) == []
        assert registry.misused == []


@pytest.mark.parametrize("strategy", ["auto", "graph", "histories:4", "arrangements"])
@pytest.mark.parametrize("name", ALL)
def test_all_that_can_be_reached_is_reached(name: str, strategy: str) -> None:
    relations, states = ALL[name]
    for settled in (True, False):
        registry = Related(relations, printed=True, settled=settled)
        found = explore(registry, strategy)
        assert list(found.states) == states
        assert found.holds
        assert found.proven == (strategy in ("auto", "graph"))


def test_where_an_operation_makes_sense() -> None:
    def sensible(relations: Relations, active: State) -> list[int]:
        registry = Related(relations, 3, 1)
        operations = operations_of(registry)
        player = Player(
            *(registry, operations, ObservationRecord(), never), ordering=UNORDERED
        )
        mask = sum(1 << step for step in active)
        return [each for each in range(6) if player.sensible(each, mask)]

    # Uses, the look and collecting garbage always do.
    assert sensible(Relations(), (0,)) == [0, 1, 2, 3, 4, 5]
    assert sensible(CHAIN, ()) == [0, 3, 4, 5]
    assert sensible(CHAIN, (0,)) == [0, 1, 3, 4, 5]
    assert sensible(CHAIN, (0, 1)) == [1, 2, 3, 4, 5]
    assert sensible(CHAIN, (0, 1, 2)) == [2, 3, 4, 5]
    assert sensible(AFTER, ()) == [1, 2, 3, 4, 5]
    assert sensible(AFTER, (0,)) == [0, 1, 2, 3, 4, 5]
    assert sensible(LASTING, (0, 1, 2)) == [1, 3, 4, 5]
    assert sensible(AGAIN, (0, 1, 2)) == [0, 1, 3, 4, 5]
    # Doing it again is doing it: what it comes after must be there.
    assert sensible(AGAIN_AFTER, (0, 2)) == [0, 1, 2, 3, 4, 5]
    assert sensible(AGAIN_AFTER, (2,)) == [0, 1, 3, 4, 5]


def never(*told: object) -> None:
    raise AssertionError(told)


def test_what_makes_no_sense_is_no_part_of_a_history() -> None:
    registry = Related(CHAIN, 3)
    player = Player(
        *(registry, operations_of(registry), ObservationRecord(), never),
        ordering=UNORDERED,
    )
    player.reset()
    for operation in (2, 1, 0, 2, 1, 0, 3, 1, 0):
        player.play(operation)
    assert player.history() == (0, 1, 3, 1, 0)
    assert (player.adds, player.removes, registry.order) == (2, 2, [])


def test_a_replay_tells_what_it_skipped() -> None:
    assert replay(Related(CHAIN), (1, 0, 1, 0)).actions == (
        Action(1, "skipped", (), None, None),
        Action(0, "add", (0,), None, None),
        Action(1, "add", (0, 1), None, None),
        Action(0, "skipped", (0, 1), None, None),
        Action(3, "look", (0, 1), ((0, 1), ""), None),
    )
    kinds = [action.kind for action in replay(Related(AGAIN), (2, 2, 0, 0)).actions]
    assert kinds == ["add", "skipped", "add", "repeat", "look"]


def test_what_is_left_is_undone_from_above() -> None:
    registry = Related(Relations(requires={0: frozenset({1}), 1: frozenset({2})}))
    explore(registry, "histories:3")
    assert registry.order == []


class Counted(Related):
    """A flaw once 2 was done while 0 and 1 are active; who requires it hides it."""

    def flaw(self) -> Hashable:
        return "!" if self.history[-3:] == [2, 2, 1] else ""


@pytest.mark.parametrize("strategy", ["auto", "walk:2", "histories:4", "random:1"])
def test_a_fault_under_relations_is_shown_by_what_makes_sense(strategy: str) -> None:
    registry = Counted(Relations(requires={2: frozenset({0})}))
    found = explore(registry, strategy)
    (violation,) = found.violations
    assert violation.shortest == (0, 2, 2, 1)
    assert violation.proven_shortest
    assert registry.misused == []


class Twice(Related):
    """Does not forget that it was done twice."""

    def flaw(self) -> Hashable:
        return self.history.count(0) > 1


@pytest.mark.parametrize("settled", [True, False])
def test_done_again_is_a_transition_to_the_same_steps(settled: bool) -> None:
    found = explore(Twice(AGAIN, printed=True, settled=settled), "graph")
    (violation,) = found.violations
    assert (violation.kind, violation.state) == ("order", (0,))
    assert (violation.shortest, violation.proven_shortest) == ((0, 0), True)


def test_what_fails_when_it_is_done_again_is_expected_there() -> None:
    class Once(Related):
        def refuses(self, step: int) -> str:
            return "there" if step in self.order else ""

    for settled in (True, False):
        registry = Once(AGAIN, printed=True, settled=settled)
        found = explore(registry)
        assert found.proven
        assert found.failures == {
            (state, 0): ("Refused", "there") for state in found.states if 0 in state
        }
        assert found.refusals == {}


def test_steps_that_grow_when_they_are_done_again_do_not_take_all_operations() -> None:
    class Piling(Related):
        def concrete(self) -> Hashable:
            return super().concrete(), self.history.count(0)

    found = explore(Piling(AGAIN, printed=True, settled=False), "graph+histories:3")
    assert (found.proven, kinds(found)) == (False, [])
    assert found.executed.transitions < 5_000
    (told,) = found.skipped
    assert told.startswith("graph: the states did not close: ")
    assert "; two of them differ in: registry: " in told


# A removal that is refused is a transition, and the step stays.


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_refused_undo_is_a_transition(strategy: str, settled: bool) -> None:
    registry = Holding(REFUSABLE, printed=True, settled=settled)
    found = explore(registry, strategy)
    assert found.holds
    assert found.failures == {}
    refused = ("Refused", "held by 1")
    if strategy in ("sca:2", "stale"):
        assert set(found.refusals) <= {((0, 1), 0), ((0, 1, 2), 0)}
        assert set(found.refusals.values()) <= {refused}
    else:
        assert found.refusals == {((0, 1), 0): refused, ((0, 1, 2), 0): refused}
        assert found.executed.failing > 0
    assert registry.order == []


def test_a_refused_undo_in_a_replay() -> None:
    assert replay(Holding(REFUSABLE, 2), (0, 1, 0, 1, 0)).actions == (
        Action(0, "add", (0,), None, None),
        Action(1, "add", (0, 1), None, None),
        Action(0, "refused", (0, 1), ("Refused", "held by 1"), None),
        Action(1, "remove", (0,), None, None),
        Action(0, "remove", (), None, None),
        Action(2, "look", (), ((), ""), None),
    )


class Letting(Holding):
    """A refusal leaves something behind."""

    def clear(self) -> None:
        super().clear()
        self.left = False

    def undo(self, step: int, handle: object) -> None:
        try:
            super().undo(step, handle)
        except Refused:
            self.left = True
            raise

    def flaw(self) -> Hashable:
        return self.left


class LettingUnseen(Letting):
    """The same, where no look shows it."""

    def observe(self) -> Hashable:
        return tuple(sorted(self.order))


@pytest.mark.parametrize("settled", [True, False])
def test_a_refused_undo_leaves_the_state_as_it_is(settled: bool) -> None:
    for strategy in ("graph", "walk:0", "histories:3"):
        found = explore(Letting(REFUSABLE, settled=settled, printed=True), strategy)
        (violation,) = found.violations
        assert violation.kind == "wedged"
        assert violation.shortest in {(0, 1, 0), (1, 0, 0)}
        assert violation.state == (0, 1)


@pytest.mark.parametrize("strategy", ["graph", "walk:0", "histories:3"])
def test_what_a_refused_undo_leaves_is_seen_in_the_state(strategy: str) -> None:
    found = explore(LettingUnseen(REFUSABLE, printed=True), strategy)
    (violation,) = found.violations
    assert (violation.kind, violation.hidden) == ("wedged", True)
    assert violation.shortest == (0, 1, 0)


def test_the_reason_of_a_refusal_must_not_vary() -> None:
    class Moody(Holding):
        def reason(self) -> str:
            return f"held by 1, asked {len(self.history)} times"

    for strategy in ("walk:2", "histories:5"):
        (violation,) = explore(Moody(REFUSABLE, 2), strategy).violations
        assert (violation.kind, violation.state) == ("error", (0, 1))
        assert violation.expected == ("Refused", "held by 1, asked 2 times")
        assert violation.found == ("Refused", "held by 1, asked 4 times")
        assert violation.proven_shortest


class Sometimes(Holding):
    """Refuses once, and gives in the second time; or the other way round."""

    def __init__(self, first: bool) -> None:
        self.first = first
        super().__init__(REFUSABLE, 2)

    def undo(self, step: int, handle: object) -> None:
        assert isinstance(handle, Handle)
        again = self.history.count(1) > 1
        if step == 0 and 1 in self.order and again != self.first:
            raise Refused("held by 1")
        Toy.undo(self, step, handle)


@pytest.mark.parametrize("first", [True, False])
def test_a_refusal_must_not_depend_on_the_history(first: bool) -> None:
    found = explore(Sometimes(first), "walk:2")
    (violation,) = found.violations
    expected, told = violation.expected, violation.found
    assert violation.kind == "error"
    assert {expected, told} == {None, ("Refused", "held by 1")}
    assert (told is None) == first
    assert violation.shortest == (1, 0, 1, 1, 0)
    assert violation.proven_shortest


def test_an_undo_that_must_not_be_refused_still_breaks_the_run() -> None:
    found = explore(Holding(Relations(refusable=frozenset({1})), 2), "histories:3")
    assert kinds(found) == ["undo"]


# Pairs: exactly these orders may show.


class Shown(Related):
    """Shows the order of some of its steps, in looks or only in what it answers."""

    def __init__(
        self,
        *pairs: tuple[int, int],
        shown: tuple[tuple[int, int], ...] = (),
        steps: int = 3,
        by: str = "look",
        settled: bool = True,
    ) -> None:
        self.shown = shown
        self.by = by
        relations = Relations(pairs=frozenset(pairs))
        super().__init__(
            relations, steps, int(by == "use"), printed=True, settled=settled
        )

    def orders(self) -> Hashable:
        place = {step: at for at, step in enumerate(self.order)}
        return tuple(
            place[one] < place[other]
            for one, other in self.shown
            if one in place and other in place
        )

    def observe(self) -> Hashable:
        return super().observe(), self.orders() if self.by == "look" else ""

    def use(self, use: int) -> Hashable:
        return self.orders()

    def refuses(self, step: int) -> str:
        if self.by == "failure" and step == self.steps - 1:
            return str(self.orders())
        return ""

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order)), self.orders()


@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("by", ["look", "use", "failure"])
@pytest.mark.parametrize(
    "strategy", ["auto", "graph", "walk:1", "histories:4", "arrangements", "random:1"]
)
def test_a_pinned_order_may_show(strategy: str, by: str, settled: bool) -> None:
    registry = Shown((0, 1), shown=((0, 1),), by=by, settled=settled)
    found = explore(registry, strategy)
    assert kinds(found) == []
    assert found.holds
    assert found.assumptions[-1] == (
        "states are compared by active steps and by the order of the pairs that are "
        "pinned (ordered)"
    )
    if by != "failure":
        assert set(found.states) == {
            *((), (0,), (1,), (2,), (0, 1), (1, 0), (0, 2), (1, 2), (0, 1, 2)),
            (1, 0, 2),
        }


@pytest.mark.parametrize("by", ["look", "use", "failure"])
@pytest.mark.parametrize("other", [(0, 2), (1, 2)])
def test_every_other_order_still_must_not_show(other: tuple[int, int], by: str) -> None:
    for settled in (True, False):
        steps = 4 if by == "failure" else 3
        shown = ((0, 1), other)
        registry = Shown((0, 1), shown=shown, by=by, steps=steps, settled=settled)
        found = explore(registry)
        (violation,) = found.violations
        # The states of a settled registry tell it before anybody asks.
        told = "look" if settled else by
        kind = {"look": "order", "use": "use", "failure": "error"}[told]
        assert (violation.kind, violation.hidden) == (kind, settled and by != "look")
        assert violation.shortest is not None
        assert violation.shortest[:2] == other[::-1]
        assert len(violation.shortest) == (2 if told == "look" else 3)
        assert violation.proven_shortest


def test_registering_again_must_not_show_beside_a_pinned_order() -> None:
    class Worse(Shown):
        def flaw(self) -> Hashable:
            return self.history[-2:] == [2, 2]

    found = explore(Worse((0, 1), shown=((0, 1),)), "walk:2")
    (violation,) = found.violations
    assert (violation.kind, violation.shortest) == ("order", (2, 2))


@pytest.mark.parametrize("by", ["look", "use", "failure"])
@pytest.mark.parametrize(
    ("shown", "unpinned"),
    [
        (((0, 1), (2, 3)), []),
        (((0, 1),), [(2, 3)]),
        (((2, 3),), [(0, 1)]),
        ((), [(0, 1), (2, 3)]),
    ],
)
def test_each_pinned_pair_must_show(
    shown: tuple[tuple[int, int], ...], unpinned: list[tuple[int, int]], by: str
) -> None:
    steps = 5 if by == "failure" else 4
    registry = Shown((0, 1), (2, 3), shown=shown, by=by, steps=steps)
    found = explore(registry, "arrangements")
    assert [(each.kind, each.expected) for each in found.violations] == [
        (
            "unpinned",
            f"two orders of steps {one + 1} and {other + 1} with different results",
        )
        for one, other in unpinned
    ]
    assert not found.proven
    for violation in found.violations:
        assert registry.steps - 1 <= len(violation.state)


def test_orders_of_all_steps_may_show_in_a_failure_alone() -> None:
    class Choosy(Toy):
        def refuses(self, step: int) -> str:
            return "too late" if step == 2 and self.order[:1] == [1] else ""

    found = explore(Choosy(), "arrangements", order_dependent=True)
    assert found.holds
    assert found.failures == {
        ((1,), 2): ("Refused", "too late"),
        ((1, 0), 2): ("Refused", "too late"),
    }


def test_pairs_that_overlap() -> None:
    pairs = ((0, 1), (1, 2))
    assert explore(Shown(*pairs, shown=pairs), "auto").proven
    found = explore(Shown(*pairs, shown=((0, 1), (1, 2), (0, 2))), "auto")
    # Of 0 1 2, each order of 0 and 2 is told by the two others, but where 1 is least
    # or most.
    (violation,) = found.violations
    assert violation.shortest == (2, 0)


# The reference of a history is made of what makes sense.


@pytest.mark.parametrize(
    ("relations", "state", "way"),
    [
        (Relations(requires={0: frozenset({2})}), (0, 2), (2, 0)),
        (
            Relations(requires={0: frozenset({1}), 1: frozenset({2})}),
            (0, 1, 2),
            (2, 1, 0),
        ),
        (AFTER, (0,), (1, 0, 1)),
        (AFTER, (0, 1), (1, 0)),
        (
            Relations(after={0: frozenset({1}), 1: frozenset({2})}),
            (0,),
            (2, 1, 0, 1, 2),
        ),
        (Relations(), (1, 2), (1, 2)),
    ],
)
def test_the_way_to_steps_of_which_no_history_is_known(
    relations: Relations, state: State, way: tuple[int, ...]
) -> None:
    registry = Related(relations)
    ordering = ordering_of(registry, order_dependent=False)
    judge = Judge(registry, {}, ordering=ordering, proving=False)
    assert judge.canonical(state) == way
    assert replay(registry, way).state == state


@pytest.mark.parametrize(
    ("relations", "added"),
    [
        (Relations(), 6),
        (LASTING, 6),
        (AGAIN, 6),
        (CHAIN, 1),
        (Relations(requires={1: frozenset({0})}), 3),
    ],
)
def test_full_adds_in_every_order_that_makes_sense(
    relations: Relations, added: int
) -> None:
    orders = set()

    class Noting(Related):
        def do(self, step: int) -> object:
            handle = super().do(step)
            if len(self.order) == 3:
                orders.add(tuple(self.order))
            return handle

    registry = Noting(relations)
    session = ExplorationSession(
        *(registry, operations_of(registry), Meter(Budget(), None)),
        ordering=UNORDERED,
        stop_after=1,
    )
    run_full(session)
    assert len(orders) == added
    assert registry.misused == []


def test_a_walk_over_steps_that_stay_says_that_it_cannot_come_back() -> None:
    found = explore(Related(LASTING), "walk:1")
    assert (found.complete, found.holds, kinds(found)) == (False, False, [])
    (told,) = found.skipped
    assert "because some steps cannot be undone: " in told
