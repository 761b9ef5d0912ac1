"""The stages of an exploration and its frozen result."""

import gc
import pickle
from collections.abc import Hashable, Sequence

import pytest

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.engine import (
    KINDS,
    Budget,
    Counts,
    Relations,
    Square,
    Violation,
    explore,
    plan,
)
from everyorder.harness.engine.explorer import SELDOM, executed_text
from everyorder.harness.engine.session import Meter
from tests.coded import code
from tests.engine.related import Related
from tests.engine.test_states import Registry
from tests.engine.toys import (
    Exclusive,
    Flaky,
    FlakyError,
    Handle,
    Knotted,
    Leaking,
    Meddling,
    Newest,
    Ordered,
    Readded,
    Refused,
    Sometimes,
    Stale,
    StaleLook,
    Stuck,
    Toy,
    Unlawful,
    Wedged,
)


def test_the_whole_result_of_a_small_system() -> None:
    result = explore(Exclusive(2), "walk:0")
    assert result.strategy == "walk:0"
    assert result.guarantee == (
        "walk:0: every operation was taken from every reachable state, in one run"
    )
    assert result.assumptions == (
        "the system is deterministic (some histories were played twice to check it)",
        "walk:0: only the active steps of a history matter",
    )
    assert result.skipped == ()
    assert dict(result.states) == {
        (): ((), ""),
        (0,): ((0,), ""),
        (1,): ((1,), ""),
    }
    assert list(result.states) == [(), (0,), (1,)]
    assert dict(result.failures) == {
        ((0,), 1): ("Refused", "taken by 0"),
        ((1,), 0): ("Refused", "taken by 1"),
    }
    # The cold pass: histories (), 0, 1, 01, 10; the walk: six transitions from a fresh
    # system.
    assert result.executed == Counts(
        transitions=6, adds=6, removes=2, failing=4, uses=0, observations=13, resets=6
    )
    assert (result.planned, result.violations, result.complete) == (6, (), True)
    assert result.holds
    assert result.seconds >= 0.0
    assert pickle.loads(pickle.dumps(result)) == result


def test_states_are_in_order_of_size_then_members() -> None:
    states = list(explore(Toy(3), "walk:1").states)
    assert states == [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]


def only(toy: Toy, strategy: str) -> Violation:
    result = explore(toy, strategy)
    assert not result.holds
    (violation,) = result.violations
    assert violation.kind in KINDS
    return violation


def test_order() -> None:
    assert only(Ordered((2, 0, 1)), "histories:3") == Violation(
        kind="order",
        state=(0, 1, 2),
        expected=((0, 1, 2), ""),
        found=((0, 1, 2), "!"),
        history=(2, 0, 1),
        shortest=(2, 0, 1),
        square=Square((2,), 0, 1),
        proven_shortest=True,
        replayed=20,
        undos=frozenset(),
        reference=(0, 1, 2),
        reference_undos=frozenset(),
    )


def test_readding() -> None:
    violation = only(Readded(1, 4), "walk:0")
    assert violation.shortest == (1, 1, 1, 1, 1, 1, 1)
    assert violation.square == Square((1,), 1, 1)
    assert len(violation.history) > 20


def test_a_wedged_system() -> None:
    for printed in (False, True):
        violation = only(Wedged(printed=printed), "walk:1")
        assert violation.kind == "wedged"
        assert violation.state == (0,)
        assert (violation.expected, violation.found) == (((0,), ()), ((0,), (1,)))
        assert violation.shortest == (0, 1)
        assert violation.square is None


def test_a_leak() -> None:
    violation = only(Leaking(), "walk:1")
    assert (violation.kind, violation.found) == ("leak", "Handle")
    assert (violation.shortest, violation.proven_shortest) == ((1, 1), True)


@pytest.mark.parametrize("strategy", ["auto", "graph", "walk:1"])
@pytest.mark.parametrize("settled", [True, False])
@pytest.mark.parametrize("stop_after", [1, 10])
def test_a_fresh_system_that_breaks_a_law(
    strategy: str, stop_after: int, *, settled: bool
) -> None:
    class Broken(Related):
        def laws(self) -> tuple[str, ...]:
            return () if self.order else ("not empty",)

    registry = Broken(Relations(), 2, printed=True, settled=settled)
    found = explore(registry, strategy, stop_after=stop_after)
    (violation,) = found.violations
    assert (violation.kind, violation.found) == ("law", ("not empty",))
    assert (violation.state, violation.history) == ((), ())
    assert not found.proven


def test_a_leak_of_an_error_traceback_is_not_one() -> None:
    class Chained(Toy):
        def do(self, step: int) -> object:
            kept = super().do(step)
            if step == 1:
                self.undo(step, kept)
                try:
                    raise Refused("first")
                except Refused as error:
                    raise Refused("second") from error
            return kept

    result = explore(Chained(), "walk:1")
    assert result.violations == ()
    assert set(result.failures.values()) == {("Refused", "second")}


def test_handles_that_are_cycles_are_told() -> None:
    result = explore(Knotted(2), "walk:0")
    assert result.holds
    assert result.skipped == (
        "leaks of Knot: these handles are freed by the cycle collector only, so they "
        "were not watched after the first",
    )


def test_an_undo_that_raises() -> None:
    assert only(Stuck(2), "histories:3") == Violation(
        kind="undo",
        state=(0, 1),
        expected=None,
        found=("Refused", "held by 0"),
        history=(0, 1, 1),
        shortest=(0, 1, 1),
        proven_shortest=True,
        replayed=20,
        undos=frozenset({2}),
    )


def test_a_broken_law() -> None:
    violation = only(Unlawful(), "walk:1")
    assert (violation.kind, violation.found) == ("law", ("2 needs 0",))
    assert (violation.expected, violation.shortest) == ((), (2,))


def test_a_law_broken_at_the_start() -> None:
    class Lawless(Toy):
        def laws(self) -> Sequence[Hashable]:
            return ("always",)

    violation = only(Lawless(1), "walk:0")
    assert (violation.kind, violation.state, violation.shortest) == ("law", (), ())


def test_errors_that_drift() -> None:
    violation = only(FlakyError(), "histories:3")
    assert violation.kind == "error"
    assert violation.expected == ("Refused", "taken by 0 at 2")
    assert violation.found == ("Refused", "taken by 0 at 3")
    assert violation.shortest == (0, 1, 1)


def test_a_step_that_fails_only_sometimes() -> None:
    violation = only(Sometimes(), "walk:1")
    assert (violation.kind, violation.expected) == ("error", None)
    assert violation.found == ("Refused", "again")
    assert violation.shortest == (0, 0, 0)


def test_a_step_that_succeeds_only_sometimes() -> None:
    class Second(Toy):
        def refuses(self, step: int) -> str:
            return "" if step or self.history.count(0) != 1 else "not at first"

    violation = only(Second(2), "walk:1")
    assert (violation.kind, violation.found) == ("error", None)
    assert violation.expected == ("Refused", "not at first")
    assert violation.shortest == (0, 0)


def test_a_stale_cache_is_found_only_by_its_use() -> None:
    assert explore(Stale(3, 0), "walk:2").holds
    violation = only(Stale(3, 1), "walk:0")
    assert (violation.kind, violation.state) == ("use", (0,))
    assert (violation.expected, violation.found) == (True, False)
    assert violation.shortest == (3, 0, 3)


def test_a_stale_cache_seen_by_the_look() -> None:
    class Shown(Stale):
        def observe(self) -> Hashable:
            return super().observe(), self.use(0)

    violation = only(Shown(2, 1), "histories:3")
    assert (violation.kind, violation.shortest) == ("use", (2, 0))


def test_a_look_that_changes_what_is_seen_later() -> None:
    violation = only(StaleLook(2), "walk:0")
    assert violation.kind == "cold"
    assert violation.expected == (((1,), ""), (1,))
    assert violation.found == (((1,), ""), ())
    assert violation.shortest == (2, 1)


def test_a_look_that_changes_the_fingerprint() -> None:
    class Counting(Toy):
        looks = 0

        def clear(self) -> None:
            super().clear()
            self.looks = 0

        def observe(self) -> Hashable:
            self.looks = 1
            return super().observe()

        def concrete(self) -> Hashable:
            return super().concrete(), self.looks

    violation = only(Counting(2, printed=True), "graph")
    assert violation.kind == "cold"


def test_a_use_that_meddles() -> None:
    violation = only(Meddling(), "walk:0")
    assert (violation.kind, violation.state) == ("use", (0,))
    assert violation.expected == (((0,), ""), False)
    assert violation.found == (((0,), ""), True)
    assert violation.shortest == (0, 2)


def test_a_use_that_raises_answers_with_the_fields() -> None:
    class Raising(Toy):
        def use(self, use: int) -> Hashable:
            if not self.order:
                raise Refused("nothing there")
            return len(self.order)

    assert explore(Raising(2, 1), "walk:1").holds


def test_nondeterminism_ends_everything() -> None:
    result = explore(Flaky(), "walk:1")
    assert not result.complete
    assert result.skipped == ("everything else: no history can be relied on",)
    assert result.violations == (
        Violation(
            kind="nondeterminism",
            state=(0, 1),
            expected=((0, 1), 1),
            found=((0, 1), 3),
            history=(3, 0, 3, 1, 3),
            undos=frozenset(),
        ),
    )


def test_an_undo_that_raises_in_every_other_life() -> None:
    class Moody(Toy):
        def undo(self, step: int, handle: object) -> None:
            if self.lives % 2:
                raise Refused("not today")
            super().undo(step, handle)

    violation = only(Moody(1), "walk:0")
    assert violation.kind == "nondeterminism"
    assert violation.history == (1, 0, 1, 0, 1)


def test_a_fingerprint_with_an_address_in_it() -> None:
    class Addressed(Toy):
        def concrete(self) -> Hashable:
            return super().concrete(), self.lives

    violation = only(Addressed(1, printed=True), "graph")
    assert violation.kind == "nondeterminism"
    assert (violation.expected, violation.found) == ((((), ""), 1), (((), ""), 2))


def test_the_proof_by_arrangements_within_a_budget() -> None:
    budget = Budget(steps=50)
    result = explore(
        Newest(7, printed=True), "graph", order_dependent=True, budget=budget
    )
    size = plan(7, 0, "graph", order_dependent=True).size
    assert (result.complete, result.planned) == (False, size)


class Faulty(Toy):
    """Two orders show, each for itself."""

    def flaw(self) -> Hashable:
        found = tuple(self.order)
        return found if found in ((1, 0), (2, 0)) else ""


def test_stopping_after_more_than_one() -> None:
    # What comes down to one history is told once.
    result = explore(Ordered((1, 0)), "walk:2", stop_after=3)
    assert [violation.shortest for violation in result.violations] == [(1, 0)]
    two = explore(Faulty(3), "histories:3", stop_after=3)
    assert [violation.shortest for violation in two.violations] == [(1, 0), (2, 0)]
    whole = explore(Ordered((1, 0)), "walk:0", stop_after=10**6)
    assert whole.complete
    assert not whole.holds
    assert whole.executed.transitions == 24


def test_a_pin_that_holds() -> None:
    for strategy in ("auto", "graph", "arrangements", "walk:1", "histories:3", "full"):
        result = explore(Newest(printed=True), strategy, order_dependent=True)
        assert result.holds
        assert len(result.states) == 16
        assert result.states[2, 0, 1] == ((0, 1, 2), 1)
        assert result.assumptions[-1] == (
            "states are compared by order of activation, not by active steps "
            "(order_dependent)"
        )


def test_a_pin_that_pins_nothing() -> None:
    assert explore(Toy(2), "walk:1", order_dependent=True).violations == (
        Violation(
            kind="unpinned",
            state=(0, 1),
            expected=(
                "two orders of the same steps that look different (order_dependent)"
            ),
            found=((0, 1), ""),
            history=(0, 1),
        ),
    )


def test_a_pinned_system_may_still_be_faulty() -> None:
    class Worse(Newest):
        def flaw(self) -> Hashable:
            return super().flaw(), self.history[-2:] == [2, 2]

    violation = explore(Worse(), "walk:1", order_dependent=True).violations[0]
    assert violation.kind == "order"
    assert violation.shortest == (2, 2)


def test_a_budget_of_steps_ends_the_run() -> None:
    result = explore(Toy(4), "walk:2", budget=Budget(steps=100))
    assert (result.holds, result.executed.transitions) == (False, 100)
    assert result.skipped == (
        "the budget of 100 steps is spent (--steps raises it): "
        "100 of 1,024 operations executed",
    )


def test_a_budget_of_seconds_ends_the_run() -> None:
    result = explore(Toy(4), "walk:2", budget=Budget(seconds=-1.0))
    assert not result.complete
    assert result.skipped == (
        "the budget of -1.0 seconds is spent (--budget raises it): "
        "0 of 1,024 operations executed",
    )


def test_progress_is_exact() -> None:
    told: list[tuple[int, int]] = []
    explore(Toy(4), "walk:2", progress=lambda done, all_: told.append((done, all_)))
    assert told[-1] == (1024, 1024)
    assert told == sorted(told)
    assert {planned for _, planned in told} == {1024}
    assert len(told) > 10


def test_progress_where_steps_fail_is_exact_too() -> None:
    told: list[tuple[int, int]] = []
    explore(
        Exclusive(4), "walk:1", progress=lambda done, all_: told.append((done, all_))
    )
    assert {planned for _, planned in told} == {12 * 16}


def test_large_systems_say_what_was_not_looked_at_cold() -> None:
    result = explore(Toy(14), "sca:2")
    assert result.holds
    assert result.skipped == (
        "cold looks: of 16,384 states only the corners (none, singles, pairs, all) "
        "were also looked at cold (--steps raises it)",
    )
    much = Budget(steps=30 * 2**14)
    assert explore(Toy(14), "sca:2", budget=much).skipped == ()


def test_large_systems_are_shrunk_without_cold_references() -> None:
    result = explore(Ordered((5, 3, 1), 14), "sca:3")
    assert [violation.shortest for violation in result.violations] == [(5, 3, 1)]


def test_a_large_system_whose_first_visit_was_the_fault() -> None:
    class Late(Toy):
        def flaw(self) -> Hashable:
            return "!" if self.order[:3] == [3, 1, 0] else ""

    result = explore(Late(14), "walk:0", budget=Budget(steps=60_000))
    for violation in result.violations:
        assert violation.shortest == (3, 1, 0)


def test_the_corners_where_steps_fail() -> None:
    result = explore(Exclusive(14, 1), "sca:2")
    assert result.holds
    assert result.states[(0,)] == ((0,), "")


def test_nothing_is_left_active() -> None:
    toy = Exclusive(3)
    explore(toy, "histories:2")
    assert toy.order == []


def test_an_unknown_strategy() -> None:
    for name in ("wlak:1", "walk", "walk:x", "walk:100", "graph:1", "sca:0", "", "a+b"):
        with pytest.raises(BadStrategy, check=code("UnknownStrategy")) as caught:
            explore(Toy(), name)
        assert caught.value.name == name
    assert str(caught.value) == (
        "no strategy is called 'a+b'; there are auto, graph, walk:N, stale, "
        "histories:N, groups, parts, arrangements, kA:N, sca:N, random:N, full. Join "
        "several by '+', as in 'graph+walk:2'."
    )


def test_handles_are_watched() -> None:
    assert Handle.__weakrefoffset__ != 0


@pytest.mark.parametrize("often", [700, 0, 100_000])
def test_the_collector_looks_seldom_while_a_settled_system_is_explored(
    often: int,
) -> None:
    met = set()

    class Asking(Toy):
        def do(self, step: int) -> object:
            met.add(gc.get_threshold()[0])
            return super().do(step)

    before = gc.get_threshold()
    gc.set_threshold(often, *before[1:])
    try:
        explore(Asking(2), "walk:0")
        assert gc.get_threshold() == (often, *before[1:])
    finally:
        gc.set_threshold(*before)
    assert met == {often and max(often, SELDOM)}


@pytest.mark.parametrize(
    ("planned", "text"),
    [
        (82, "649 operations executed"),
        (649, "649 operations executed"),
        (1_000, "649 of 1,000 operations executed"),
    ],
)
def test_no_more_operations_are_executed_than_a_text_says_were_planned(
    planned: int, text: str
) -> None:
    """A report said "649 of 82 operations executed"."""
    meter = Meter(Budget(), None)
    meter.count(649)
    meter.planned = planned
    assert executed_text(meter) == text


def test_no_more_operations_are_told_than_are_planned() -> None:
    """A search may take more than its plan: 1,039 of 1,014 were told."""
    told: list[tuple[int, int]] = []
    explore(Registry(3, 1), progress=lambda done, planned: told.append((done, planned)))
    assert told
    assert [each for each in told if each[0] > each[1]] == []
