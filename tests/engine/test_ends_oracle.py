"""Operations that end steps: a proof is given exactly where the law is true.

The drawn registries of `test_states_oracle` with operations that end steps: steps, and
uses that may be refused.  Some steps last until they are ended, and some are required
by others.  What makes sense, and what an operation does to the active steps, is said
here once more, without the engine.
"""

import random
from collections.abc import Hashable

import pytest

from everyorder.harness.engine import Exploration, Relations, explore, replay
from tests.engine.drawn_machines import parts
from tests.engine.test_states_oracle import Concrete, Drawn, kinds, reached, shows
from tests.engine.toys import Refused

MACHINES = 240
PARTS = 6

FAULTS = {"order", "use", "cold", "wedged", "error"}


class Ending(Drawn):
    """A drawn registry in which some operations end steps."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        draw = random.Random(f"ends {seed}")
        steps = range(self.steps)
        ends: dict[int, frozenset[int]] = {}
        requires: dict[int, frozenset[int]] = {}
        if self.steps > 1 and draw.random() < 0.2:
            step, needed = draw.sample(steps, 2)
            requires[step] = frozenset({needed})
        for operation in range(self.look):
            others = [step for step in steps if step != operation]
            odds = 0.7 if operation >= self.steps else 0.25
            if others and draw.random() < odds:
                many = draw.choice([len(others), len(others), 1])
                ended = frozenset(draw.sample(others, many))
                if not ended & requires.get(operation, frozenset()):
                    ends[operation] = ended
        lasting = frozenset(step for step in steps if draw.random() < 0.2)
        self.relations = Relations(ends=ends, requires=requires, lasting=lasting)
        self.refused = {
            (operation, mask): draw.random() < 0.15
            for operation in ends
            for mask in range(1 << self.steps)
        }
        # A refusal that depends on the number, not on the steps.
        self.grudge = draw.random() < 0.1

    def makes_sense(self, state: Concrete, operation: int) -> bool:
        """Whether an operation is played with these steps active."""
        there = set(state.steps)
        relations = self.relations
        if operation in there:
            if operation in relations.lasting:
                return False
            left = there - {operation}
        else:
            if not relations.requires.get(operation, frozenset()) <= there:
                return False
            left = there - relations.ends.get(operation, frozenset())
        return all(relations.requires.get(each, frozenset()) <= left for each in left)

    def after(self, state: Concrete, operation: int) -> tuple[Concrete, Hashable]:
        if not self.makes_sense(state, operation):
            return state, "senseless"
        ended = self.relations.ends.get(operation, frozenset())
        if not ended or operation in state.steps:
            return super().after(state, operation)
        refused = self.refused[operation, state.mask]
        if refused != (self.grudge and state.number == 1):
            _, number = super().after(state, operation)[0]
            return Concrete(state.active, number), "refused"
        (active, number), told = super().after(state, operation)
        if told == "refused":
            return Concrete(active, number), told
        left = tuple(each for each in active if each[0] not in ended)
        return Concrete(left, number), told

    def use(self, use: int) -> Hashable:
        told = super().use(use)
        if told == "refused":
            raise Refused(use)
        return told

    def holds_by_order(self) -> bool:
        """Whether what is told depends on the active steps in their order alone."""
        known: dict[Hashable, Hashable] = {}
        states = [Concrete((), 0)]
        for state in states:
            for operation in range(self.look + 1):
                after, told = self.after(state, operation)
                if known.setdefault((operation, state.steps), told) != told:
                    return False
                if after not in states:
                    states.append(after)
        return True


@pytest.mark.parametrize("part", parts(PARTS, 2, rest=pytest.mark.nightly))
def test_a_proof_is_given_exactly_where_the_law_holds(part: int) -> None:
    told = {True: 0, False: 0}
    ended = 0
    for seed in range(part, MACHINES, PARTS):
        machine = Ending(seed)
        if not machine.relations.ends:
            continue
        true = machine.holds()
        told[true] += 1
        found = explore(machine, "graph")
        assert kinds(found) <= FAULTS, seed
        assert bool(found.violations) != true, seed
        assert found.proven == true, seed
        if true:
            assert found.closure is not None
            assert found.closure.states <= reached(machine), seed
        for violation in found.violations:
            assert violation.shortest is not None, seed
            assert shows(machine, violation.shortest), seed
            ended += is_ended_in(machine, found)
    assert min(told.values()) > 2
    assert ended > 0


def is_ended_in(machine: Ending, found: Exploration) -> bool:
    """Whether an operation of the shortest history ended steps."""
    history = found.violations[0].shown
    ends = machine.relations.ends
    played = replay(machine, history).actions
    return any(
        operation in ends and action.kind in ("add", "end")
        for operation, action in zip(history, played, strict=False)
    )


@pytest.mark.parametrize("part", parts(PARTS, 2, rest=pytest.mark.nightly))
def test_the_same_by_order(part: int) -> None:
    told = {True: 0, False: 0}
    for seed in range(part, MACHINES, PARTS):
        machine = Ending(seed)
        if not machine.relations.ends:
            continue
        true = machine.holds_by_order()
        told[true] += 1
        found = explore(machine, "graph", order_dependent=True)
        assert bool(kinds(found) - {"unpinned"}) != true, seed
        for violation in found.violations:
            if violation.kind != "unpinned":
                assert violation.shortest is not None, seed
    assert min(told.values()) > 2


@pytest.mark.parametrize("part", parts(PARTS, 1, rest=pytest.mark.nightly))
@pytest.mark.parametrize(
    "strategy",
    ["auto", "walk:0", "walk:1", "stale", "arrangements", "kA:1", "random:1", "full"],
)
def test_no_strategy_refutes_a_law_that_holds(strategy: str, part: int) -> None:
    refuted = broken = 0
    for seed in range(part, MACHINES, PARTS):
        machine = Ending(seed)
        if not machine.relations.ends:
            continue
        true = machine.holds()
        found = explore(machine, strategy)
        assert not (true and found.violations), seed
        broken += not true
        refuted += bool(found.violations)
        if strategy == "auto":
            assert found.proven == true, seed
        for violation in found.violations:
            if violation.shortest is not None:
                assert shows(machine, violation.shortest), seed
    # The others play no use after another operation on the way, or none at all.
    assert refuted > broken // 5 or strategy in ("arrangements", "full")


@pytest.mark.parametrize("longest", [1, 2, 3])
@pytest.mark.parametrize("part", parts(PARTS, 2, rest=pytest.mark.nightly))
def test_histories_miss_nothing_up_to_their_length(part: int, longest: int) -> None:
    for seed in range(part, MACHINES, PARTS):
        machine = Ending(seed)
        found = explore(machine, f"histories:{longest}")
        if not machine.holds(longest):
            assert found.violations, seed
        assert not (machine.holds() and found.violations), seed
