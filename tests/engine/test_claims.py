"""No claim is larger than what was shown; states that grow are named."""

from collections.abc import Hashable, Sequence

import pytest

from everyorder.harness.engine import (
    ASSUMPTIONS,
    Budget,
    Caveat,
    Exploration,
    Relations,
    explore,
    plan,
)
from everyorder.harness.engine.strategy import (
    DETERMINISM,
    EQUAL_STATES,
    GUARANTEES,
    OPEN,
    SCOPE,
)
from tests.engine.related import Related

NONE = Relations()


class Seen(Related):
    """A registry with forms; what grows in it, and how that is told."""

    def __init__(
        self, *, grows: str = "", caveats: Sequence[Caveat] = (), lines: bool = True
    ) -> None:
        self.grows = grows
        self.known = caveats
        self.lines = lines
        super().__init__(NONE, 2, 1, printed=True, settled=False)

    def clear(self) -> None:
        super().clear()
        self.log = 0

    def grow(self, what: str) -> None:
        self.log += what == self.grows

    def do(self, step: int) -> object:
        self.grow("do")
        return super().do(step)

    def undo(self, step: int, handle: object) -> None:
        self.grow("undo")
        super().undo(step, handle)

    def use(self, use: int) -> Hashable:
        self.grow("use")
        return super().use(use)

    def observe(self) -> Hashable:
        self.grow("look")
        return super().observe()

    def concrete(self) -> Hashable:
        return super().concrete(), self.log

    def caveats(self) -> Sequence[Caveat]:
        return self.known

    def paths(self, one: object, other: object) -> tuple[str, ...]:
        assert isinstance(one, tuple)
        assert isinstance(other, tuple)
        before, after = one[1][1], other[1][1]
        if before == after:
            return ()
        if self.lines:
            return (f"registry.log[{before}]: <absent> / 'line'",)
        return (f"registry.count: {before} / {after}",)


def claims(found: Exploration) -> tuple[str, tuple[str, ...]]:
    return found.guarantee, found.assumptions


def test_a_proof_says_what_it_assumes_and_what_it_is_about() -> None:
    found = explore(Seen(), "graph+walk:1")
    assert found.proven
    assert found.open_strategies == ()
    assert claims(found) == (
        plan(2, 1, "graph+walk:1").guarantee,
        (
            DETERMINISM,
            f"graph: {EQUAL_STATES}",
            f"graph: {SCOPE}",
            f"walk:1: {ASSUMPTIONS['walk'].format(k=1)}",
        ),
    )


# Those that search for all states can prove.
PROVING = ("graph", "parts")
OTHERS = (
    *("stale", "histories:4", "groups", "walk:2", "kA:2", "arrangements"),
    *("sca:2", "random:2", "full"),
)


@pytest.mark.parametrize("strategy", OTHERS)
@pytest.mark.parametrize("settled", [True, False])
def test_a_strategy_that_finds_no_states_proves_nothing(
    strategy: str, settled: bool
) -> None:
    registry = Seen()
    registry.settled = settled
    found = explore(registry, strategy)
    assert found.holds
    assert not found.proven
    families = {each.partition(":")[0] for each in (*OTHERS, *PROVING)}
    assert families == {each.partition(":")[0] for each in GUARANTEES}


@pytest.mark.parametrize("what", ["do", "undo", "use", "look"])
def test_states_that_do_not_close_prove_nothing(what: str) -> None:
    found = explore(Seen(grows=what), "graph")
    assert found.holds
    assert not found.proven
    assert claims(found) == (f"graph: {OPEN}", (DETERMINISM,))
    assert found.open_strategies == ("graph",)
    found = explore(Seen(grows=what), "graph+histories:1")
    assert not found.proven
    assert found.open_strategies == ("graph",)
    assert claims(found) == (
        plan(2, 1, "histories:1").guarantee,
        (DETERMINISM, f"histories:1: {ASSUMPTIONS['histories'].format(k=1)}"),
    )


@pytest.mark.parametrize(
    "caveat", [Caveat("opaque", "a connection"), Caveat("outside", "sys.path")]
)
def test_states_of_which_something_is_not_seen_prove_nothing(caveat: Caveat) -> None:
    found = explore(Seen(caveats=[caveat]), "graph")
    assert found.holds
    assert found.closure is not None
    assert found.closure.closed
    assert not found.proven
    assert claims(found) == (f"graph: {OPEN}", (DETERMINISM,))
    assert found.caveats == (caveat,)


def test_what_is_assumed_leaves_a_proof_a_proof() -> None:
    found = explore(Seen(caveats=[Caveat("assumed", "no order is read")]), "graph")
    assert found.proven
    assert found.guarantee == plan(2, 1, "graph").guarantee


@pytest.mark.parametrize("what", ["do", "undo", "use", "look"])
def test_what_grows_is_named_and_costs_little(what: str) -> None:
    found = explore(Seen(grows=what), "graph")
    assert found.executed.transitions <= 2_500
    (told,) = found.skipped
    start, path = told.split("; what grows: ")
    assert start.startswith("graph: the states did not close: ")
    # One line more in a list: the list grows.
    assert path.startswith("registry.log[")
    assert path.endswith(
        "]: <absent> / 'line'; if no answer depends on it, ignore=[\"registry.log\"]"
    )
    named = Seen(grows=what)
    # A place that is there in both has another value, and nothing became longer.
    named.paths = lambda one, other: ("registry.log[0]: 'a' / 'b'",)  # type: ignore[method-assign]  # what is seen
    (told,) = explore(named, "graph").skipped
    assert told.endswith("; two of them differ in: registry.log[0]: 'a' / 'b'")
    (told,) = explore(Seen(grows=what, lines=False), "graph").skipped
    assert told.split("; what grows: ")[1].startswith("registry.count: ")
    assert told.endswith('if no answer depends on it, ignore=["registry.count"]')


def test_what_comes_back_is_not_said_to_grow() -> None:
    class Around(Seen):
        """Counts its uses, and begins again at the fifth."""

        def grow(self, what: str) -> None:
            super().grow(what)
            self.log %= 5

    found = explore(Around(grows="use", lines=False), "graph", budget=Budget(steps=90))
    (told,) = [each for each in found.skipped if "did not close" in each]
    assert "; two of them differ in: registry.count: " in told
    assert told.endswith('; if no answer depends on it, ignore=["registry.count"]')


@pytest.mark.parametrize("steps", range(1, 80, 6))
@pytest.mark.parametrize("strategy", ["graph", "auto"])
def test_a_budget_of_few_operations_is_told(strategy: str, steps: int) -> None:
    found = explore(Seen(), strategy, budget=Budget(steps=steps))
    assert not found.proven
    assert found.skipped
