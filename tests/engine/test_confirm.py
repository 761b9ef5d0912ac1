"""What fails now and then is called so, never a dependence on order."""

from collections.abc import Hashable, Sequence
from dataclasses import replace
from random import Random

import pytest

from everyorder.harness.engine import Budget, Exploration, StateForm, explore, replay
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.protocol import UNORDERED, History, operations_of
from everyorder.harness.engine.refutation import (
    FORKED,
    TIMES,
    Flake,
    find_flake,
    without_unreliable,
)
from everyorder.harness.engine.result import Violation
from everyorder.harness.engine.session import ExplorationSession, Meter
from tests.engine.related import digest
from tests.engine.toys import Refused, Toy

SEEDS = range(20)

# Verdicts about histories, which nothing follows for where these are not reliable.
NAMED = {"order", "use", "cold", "wedged", "hidden", "error", "undo", "unpinned"}


class Unreliable(Toy):
    """Sound, but that one operation is wrong now and then.

    The generator is the toy's own and goes on from one fresh system to the next.
    """

    def __init__(self, seed: int, chance: float, what: str, *, kind: str) -> None:
        self.random = Random(seed)
        self.chance = chance
        self.what = what
        self.settled = kind != "form"
        super().__init__(3, 1, printed=kind != "opaque")

    def wrong(self, what: str) -> bool:
        return what == self.what and self.random.random() < self.chance

    def refuses(self, step: int) -> str:
        return "not now" if step == 1 and self.wrong("do") else ""

    def undo(self, step: int, handle: object) -> None:
        if step == 1 and self.wrong("undo"):
            raise Refused("not now")
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        return super().use(use) != self.wrong("use")

    def flaw(self) -> Hashable:
        return ""

    def observe(self) -> Hashable:
        return super().observe(), self.wrong("look")

    def state(self, handles: Sequence[object] = ()) -> Hashable | None:
        if self.settled or not self.printed:
            return super().state()
        text = repr(self.concrete())
        return StateForm(digest(text), digest(text), objects=10)


WHATS = ("do", "undo", "use", "look")


def explored(
    seed: int, chance: float, what: str, kind: str, strategy: str, stop: int = 1
) -> Exploration:
    system = Unreliable(seed, chance, what, kind=kind)
    budget = Budget(steps=4_000)
    return explore(system, strategy, budget=budget, stop_after=stop)


@pytest.mark.parametrize("kind", ["opaque", "settled", "form"])
@pytest.mark.parametrize("chance", [0.01, 0.5])
@pytest.mark.parametrize("what", WHATS)
def test_what_fails_now_and_then_is_flaky(what: str, chance: float, kind: str) -> None:
    told = []
    for seed in SEEDS:
        stop = 1 + 2 * (seed % 2)
        found = explored(seed, chance, what, kind, "auto", stop)
        told += [(seed, each.kind) for each in found.violations]
    assert [each for each in told if each[1] in NAMED] == []
    assert {kind for _, kind in told} == {"nondeterminism"}
    # One in two is noticed at once; of one in a hundred some may pass.
    assert len({seed for seed, _ in told}) == 20 or chance < 0.5


def test_a_pair_of_long_histories_says_nothing_of_what_is_flaky() -> None:
    """One exploration in fifty of a registry that fails one time in a hundred."""
    flaky = Violation("nondeterminism", (0,), None, "not now", (0,))
    pair = Violation("hidden", (0,), None, None, (0, 1, 0), other=(0,))
    short = replace(pair, shortest=(0,))
    assert without_unreliable((pair, flaky)) == (flaky,)
    assert without_unreliable((short, flaky)) == (short, flaky)
    assert without_unreliable((pair, short)) == (pair, short)


def test_how_often_it_was_wrong_is_told() -> None:
    class Seventh(Toy):
        def flaw(self) -> Hashable:
            return "!" if self.lives % 7 == 0 else ""

    system = Seventh(2)
    judge = Judge(system, {}, ordering=UNORDERED, proving=False)
    first = replay(system, (0, 1))
    # Lives 2 to 21 follow.
    right, wrong = ((0, 1), ""), ((0, 1), "!")
    assert find_flake(judge, (0, 1), first) == Flake((0, 1), right, wrong, 3, TIMES + 1)
    assert (
        find_flake(Judge(Toy(2), {}, ordering=UNORDERED, proving=False), (0, 1), first)
        == TIMES
    )


def test_long_histories_are_replayed_less_often() -> None:
    system = Toy(2)
    judge = Judge(system, {}, ordering=UNORDERED, proving=False)
    for length, times in ((400, 20), (998, 10), (4_000, 2), (40_000, 2)):
        history = (0,) * length
        assert find_flake(judge, history, replay(system, history)) == times


def test_a_law_that_breaks_now_and_then() -> None:
    class Unlawful(Unreliable):
        def laws(self) -> Sequence[Hashable]:
            return ["no"] if self.order == [2] and self.wrong("law") else []

    kinds = set()
    for seed in SEEDS:
        found = explore(Unlawful(seed, 0.1, "law", kind="form"), "walk:2+histories:2")
        kinds |= {violation.kind for violation in found.violations}
    assert kinds == {"nondeterminism"}


def test_a_law_that_always_breaks_is_one() -> None:
    class Unlawful(Unreliable):
        def laws(self) -> Sequence[Hashable]:
            return ["no"] if self.order == [2, 1] else []

    (violation,) = explore(Unlawful(0, 0.0, "", kind="form"), "graph").violations
    assert (violation.kind, violation.shortest) == ("law", (2, 1))
    assert violation.replayed == TIMES


class Counting(Unreliable):
    """From its third removal on a flag is set, which the state shows; not the count."""

    def __init__(self, *, seen: bool, chance: float = 1.0) -> None:
        self.seen = seen
        super().__init__(0, chance, "flag", kind="form")

    def clear(self) -> None:
        super().clear()
        self.removed = 0
        self.flag = False

    def undo(self, step: int, handle: object) -> None:
        super().undo(step, handle)
        self.removed += 1
        if self.removed > 2 and self.wrong("flag"):
            self.flag = True

    def concrete(self) -> Hashable:
        return super().concrete(), self.flag

    def portrait(self, handles: Sequence[object]) -> object | None:
        return self.concrete() if self.seen else None

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        return () if one == other else (f"flag: {one} / {other}",)


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("stop", [1, 3])
def test_equal_states_that_lead_to_two_are_hidden_state(seen: bool, stop: int) -> None:
    (violation,) = explore(Counting(seen=seen), "graph", stop_after=stop).violations
    assert violation.kind == "hidden"
    assert violation.replayed == FORKED
    assert violation.frequency is None
    state = (violation.state, "")
    path = f"flag: {(state, False)} / {(state, True)}"
    assert violation.paths == ((path,) if seen else ())
    # The states before the last operation are equal, those after it are not.
    assert violation.other is not None
    before, after = (
        [forms_of(history[:-1]), forms_of(history)]
        for history in (violation.other, violation.history)
    )
    assert before[0] == after[0]
    assert before[1] != after[1]


def forms_of(history: History) -> Hashable:
    """Return the state at the end of a history of a counting registry."""
    system = Counting(seen=True)
    operations = operations_of(system)
    session = ExplorationSession(
        *(system, operations, Meter(Budget(), None)),
        ordering=UNORDERED,
        stop_after=1,
    )
    session.check_history(history)
    return session.player.state()


def test_equal_states_that_led_to_two_once_are_flaky() -> None:
    (violation,) = explore(Counting(seen=True, chance=0.2), "graph").violations
    assert violation.kind == "nondeterminism"
    assert violation.frequency is not None


class Answering(Counting):
    """What is asked tells the hidden count."""

    def concrete(self) -> Hashable:
        return Toy.concrete(self)

    def use(self, use: int) -> Hashable:
        return self.removed > 2


@pytest.mark.parametrize("seen", [True, False])
@pytest.mark.parametrize("stop", [1, 3])
def test_equal_states_that_answer_differently_are_hidden_state(
    seen: bool, stop: int
) -> None:
    for violation in explore(Answering(seen=seen), "graph", stop_after=stop).violations:
        assert violation.kind == "hidden"
        assert (violation.expected, violation.found) == (False, True)
        assert violation.shortest is not None
        assert len(violation.shortest) == 7
        assert violation.other == violation.shortest[-1:]


class Late(Answering):
    """The answer turns so late that no shorter history is looked for."""

    def use(self, use: int) -> Hashable:
        return self.removed > 5


def test_the_two_answers_of_equal_states_are_told() -> None:
    (violation,) = explore(Late(seen=True), "graph").violations
    assert (violation.kind, violation.hidden) == ("hidden", False)
    assert {violation.expected, violation.found} == {False, True}
    assert violation.other is not None
    assert violation.other[-1] == violation.history[-1]


class Refusing(Counting):
    """Step 0 is refused once something was removed, or until then."""

    def __init__(self, *, until: bool) -> None:
        self.until = until
        super().__init__(seen=True)

    def refuses(self, step: int) -> str:
        return "no" if step == 0 and (self.removed > 0) != self.until else ""

    def concrete(self) -> Hashable:
        return Toy.concrete(self), self.removed > 0


@pytest.mark.parametrize("until", [True, False])
def test_a_step_that_fails_by_history_is_laid_beside_one_that_does_not(
    until: bool,
) -> None:
    (violation,) = explore(Refusing(until=until), "graph").violations
    assert (violation.kind, violation.state) == ("error", ())
    assert violation.shortest == ((1, 1, 0) if until else (0, 0, 0))
    # What differs before the step, not what the step does.
    nothing = ((), "")
    assert violation.paths == (f"flag: {(nothing, False)} / {(nothing, True)}",)


class Kept(Toy):
    """What was done in its first lives is seen in all later ones."""

    def __init__(self, lives: int, *, settled: bool) -> None:
        self.most = lives
        self.settled = settled
        super().__init__(2)

    def flaw(self) -> Hashable:
        return self.lives > self.most


def test_what_has_changed_for_good_is_not_fresh() -> None:
    for settled, most in ((True, 2), (False, 4), (False, 6)):
        found = explore(Kept(most, settled=settled), "walk:1")
        (violation,) = found.violations
        assert violation.kind == "not fresh"
        assert not found.complete


class Elsewhere(Toy):
    """What is active is kept for the process, and taken back by undoing alone."""

    def __init__(self, *, grows: bool = False) -> None:
        self.elsewhere: list[int] = []
        self.grows = grows
        super().__init__(2, 1)

    def do(self, step: int) -> object:
        handle = super().do(step)
        if self.grows or step not in self.elsewhere:
            self.elsewhere.append(step)
        return handle

    def undo(self, step: int, handle: object) -> None:
        super().undo(step, handle)
        if not self.grows:
            self.elsewhere.remove(step)


class Seen(Elsewhere):
    def observe(self) -> Hashable:
        return tuple(sorted(self.elsewhere))


class Answered(Elsewhere):
    def use(self, use: int) -> Hashable:
        return tuple(sorted(self.elsewhere))


@pytest.mark.parametrize("kind", [Seen, Answered])
@pytest.mark.parametrize("grows", [True, False])
def test_what_the_system_before_left_is_not_fresh(
    kind: type[Elsewhere], grows: bool
) -> None:
    """No history has changed for good: the next may take it back."""
    system = kind(grows=grows)
    system.settled = False
    for strategy in ("auto", "walk:1"):
        (violation,) = explore(system, strategy).violations
        assert violation.kind == "not fresh"


def test_one_history_alone_may_have_gone_wrong_once() -> None:
    class Slip(Kept):
        def flaw(self) -> Hashable:
            return self.lives == self.most

    (violation,) = explore(Slip(2, settled=False), "walk:1").violations
    assert (violation.kind, violation.history) == ("nondeterminism", ())
    assert (violation.expected, violation.found) == (((), True), ((), False))
