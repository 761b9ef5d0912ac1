"""Operations that end steps: what makes sense, what is reached, and by which way."""

from collections.abc import Hashable

import pytest

from everyorder.harness.engine import (
    Budget,
    Relations,
    State,
    explore,
    operations_of,
    ordering_of,
    replay,
)
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.player import Player
from everyorder.harness.engine.protocol import UNORDERED, Operations
from everyorder.harness.engine.record import ObservationRecord
from everyorder.harness.engine.reference import map_states
from everyorder.harness.engine.result import Kind
from everyorder.harness.engine.session import ExplorationSession, Meter, RawViolation
from everyorder.harness.engine.shrink import _keys
from everyorder.harness.engine.warm_up import rehearsal
from tests.engine.related import Related
from tests.engine.test_relations import RADIO, STRATEGIES, kinds, never
from tests.engine.toys import Refused

# Of three steps and a use.
REPLACED = Relations(ends={2: frozenset({0, 1})})
ONE_OF_ALL = Relations(ends=RADIO.excludes)
ENDED_LASTING = Relations(lasting=frozenset({0, 1}), ends={2: frozenset({0})})
CLEARED = Relations(ends={3: frozenset({0, 1, 2})})
CLEARED_LASTING = Relations(
    lasting=frozenset({0, 1, 2}), after={1: frozenset({0})}, ends={3: frozenset({0})}
)
CLEARED_CHAIN = Relations(
    requires={1: frozenset({0}), 2: frozenset({1})}, ends={3: frozenset({1, 2})}
)
NOT_CLEARED_ALONE = Relations(requires={1: frozenset({0})}, ends={3: frozenset({0})})
CLEARED_AGAIN = Relations(
    lasting=frozenset({0, 2}),
    again=frozenset({0}),
    ends={0: frozenset({1}), 3: frozenset({0, 2})},
)
EVERY_SET = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
CHAINED = [(), (0,), (0, 1), (0, 1, 2)]
WITH_USE = {
    "replaced": (REPLACED, EVERY_SET),
    "one of all": (ONE_OF_ALL, EVERY_SET[:4]),
    "ended and lasting": (ENDED_LASTING, EVERY_SET),
    "cleared": (CLEARED, EVERY_SET),
    "cleared and lasting": (CLEARED_LASTING, EVERY_SET),
    "cleared chain": (CLEARED_CHAIN, CHAINED),
    "not cleared alone": (
        NOT_CLEARED_ALONE,
        [(), (0,), (2,), (0, 1), (0, 2), (0, 1, 2)],
    ),
    "cleared, again": (CLEARED_AGAIN, EVERY_SET),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("name", WITH_USE)
def test_nothing_is_played_against_the_relations(name: str, strategy: str) -> None:
    relations, _ = WITH_USE[name]
    for settled in (True, False):
        registry = Related(relations, 3, 1, printed=True, settled=settled)
        found = explore(registry, strategy)
        assert kinds(found) == []
        assert registry.misused == []


@pytest.mark.parametrize(
    "strategy", ["auto", "graph", "histories:4", "arrangements", "walk:1", "kA:1"]
)
@pytest.mark.parametrize("name", WITH_USE)
def test_all_that_is_left_by_what_ends_steps_is_reached(
    name: str, strategy: str
) -> None:
    relations, states = WITH_USE[name]
    for settled in (True, False):
        registry = Related(relations, 3, 1, printed=True, settled=settled)
        found = explore(registry, strategy)
        assert list(found.states) == states
        # A walk may not come back to where steps that stay were not done.
        assert kinds(found) == []
        assert found.holds or strategy == "walk:1"
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

    # What an active step requires is not ended alone.
    assert sensible(NOT_CLEARED_ALONE, (0, 1)) == [1, 2, 4, 5]
    assert sensible(NOT_CLEARED_ALONE, (0,)) == [0, 1, 2, 3, 4, 5]
    assert sensible(CLEARED_CHAIN, (0, 1, 2)) == [2, 3, 4, 5]


@pytest.mark.parametrize(
    ("relations", "state", "way"),
    [
        # What ends another is done before it.
        (REPLACED, (0, 2), (2, 0)),
        (REPLACED, (0, 1, 2), (2, 0, 1)),
        (Relations(after={2: frozenset({0})}, ends={2: frozenset({0})}), (2,), (0, 2)),
        (
            Relations(after={2: frozenset({0})}, ends={2: frozenset({0})}),
            (0, 2),
            (0, 2, 0),
        ),
        (
            Relations(after={2: frozenset({0, 1})}, ends={2: frozenset({0})}),
            (2,),
            (0, 1, 2, 1),
        ),
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


@pytest.mark.parametrize("name", WITH_USE)
def test_the_warm_up_does_undoes_and_ends_every_step(name: str) -> None:
    relations, _ = WITH_USE[name]
    registry = Related(relations, 3, 1)
    performed: dict[int, set[str]] = {}
    for history in rehearsal(operations_of(registry)):
        before: State = ()
        for action in replay(registry, history).actions:
            performed.setdefault(action.operation, set()).add(action.kind)
            for step in {*before} - {*action.state} - {action.operation}:
                performed.setdefault(step, set()).add("ended")
            before = action.state
    for step in range(3):
        kinds_of_step = performed[step]
        assert "add" in kinds_of_step
        assert (step in relations.lasting) != ("remove" in kinds_of_step)
        if any(step in ended for ended in relations.ends.values()):
            assert "ended" in kinds_of_step


def test_the_warm_up_of_other_scenarios_is_as_it_was() -> None:
    assert rehearsal(Operations(2, 1)) == (
        (2, 3, 0, 2, 3, 1, 2, 3, 0, 2, 3, 1, 2, 3),
        (2, 3, 1, 2, 3, 0, 2, 3, 1, 2, 3, 0, 2, 3),
    )


@pytest.mark.parametrize(
    "relations",
    [
        Relations(requires={1: frozenset({0}), 2: frozenset({1})}),
        Relations(requires={0: frozenset({2}), 1: frozenset({0})}),
        Relations(requires={0: frozenset({1, 2})}, after={1: frozenset({2})}),
    ],
)
def test_the_warm_up_undoes_steps_that_others_require(relations: Relations) -> None:
    """None of the long histories undid what another step requires."""
    registry = Related(relations, 3, 1)
    performed = {
        (action.operation, action.kind)
        for history in rehearsal(operations_of(registry))
        for action in replay(registry, history).actions
    }
    for step in range(3):
        assert {(step, "add"), (step, "remove")} <= performed


def session_of(registry: Related) -> ExplorationSession:
    return ExplorationSession(
        *(registry, operations_of(registry), Meter(Budget(), None)),
        ordering=UNORDERED,
        stop_after=1,
    )


def test_states_that_only_an_ending_leads_to_have_canonical_histories() -> None:
    session = session_of(Related(CLEARED_LASTING, 3, 1))
    map_states(session)
    assert session.record.canonical == {
        0b000: (),
        0b001: (0,),
        0b010: (0, 1, 3),
        0b011: (0, 1),
        0b100: (2,),
        0b101: (0, 2),
        0b110: (0, 1, 2, 3),
        0b111: (0, 1, 2),
    }


def test_arrangements_are_those_that_are_left() -> None:
    registry = Related(ONE_OF_ALL, 3, 1)
    found = explore(registry, "arrangements")
    # Four operations after nothing, and after each of three steps.
    assert found.executed.transitions == 4 * 1 + 3 * 4 * 2


def test_uses_that_end_steps_leave_every_set_possible() -> None:
    """The number of sets is then a lower bound for the states."""
    assert not operations_of(Related(CLEARED, 3, 1)).combined
    assert operations_of(Related(REPLACED, 3, 1)).combined
    assert operations_of(Related(CLEARED_CHAIN, 3, 1)).combined


def test_many_steps_of_which_one_is_active_are_proven() -> None:
    """The number of sets is no reason to give up: most of them cannot be active."""
    steps = frozenset(range(24))
    relations = Relations(ends={step: steps - {step} for step in steps})
    found = explore(Related(relations, 24, 1, settled=False), "graph")
    assert found.proven
    assert found.closure is not None
    assert found.closure.states == 25


class Flawed(Related):
    """It shows that it was cleared; with a lock it cannot be cleared."""

    cleared = ""

    def use(self, use: int) -> Hashable:
        if 2 in self.order:
            raise Refused("locked")
        self.cleared = "cleared"
        return super().use(use)

    def flaw(self) -> Hashable:
        return self.cleared


def test_a_look_after_an_ending_depends_on_the_order() -> None:
    registry = Flawed(CLEARED, 3, 1)
    reports: list[str] = []

    def report(kind: Kind, *details: object) -> None:
        reports.append(kind)

    player = Player(
        *(registry, operations_of(registry), ObservationRecord(), report),
        ordering=UNORDERED,
    )
    player.reset()
    for operation in (4, 0, 3, 4):
        player.play(operation)
    assert reports == ["order"]
    assert (player.mask, player.handles) == (0, [None, None, None])


def test_the_states_of_a_long_history_know_what_was_not_ended() -> None:
    registry = Flawed(CLEARED, 3, 1)
    session = session_of(registry)
    history = (0, 2, 3, 1, 2, 3)
    session.check_history((*history[:3],))
    finding = RawViolation("order", 0, None, None, history)
    keys = _keys(finding, session.operations, session.record, UNORDERED)
    assert keys == [0, 0b001, 0b101, 0b101, 0b111, 0b011, 0]
