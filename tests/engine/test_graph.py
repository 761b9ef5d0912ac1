"""The proof on complete states, and fingerprints that cannot be complete."""

from collections.abc import Hashable

import pytest

from harness.engine import explore
from harness.errors import BadScenario
from tests.coded import code
from tests.engine.toys import Toy


class Printed(Toy):
    """A sound toy with a fingerprint that a test chooses."""

    def __init__(self, uses: int = 0) -> None:
        super().__init__(2, uses, printed=True)


class Live(Printed):
    """Hands out its own list, which changes under the hands of the engine."""

    def concrete(self) -> Hashable:
        return self.order  # type: ignore[return-value]  # the fault


class Blind(Printed):
    """Shows nothing of what is active."""

    def concrete(self) -> Hashable:
        return "here"


class BlindToAnswers(Blind):
    """Looks alike everywhere; a use tells the states apart."""

    def observe(self) -> Hashable:
        return "same"


class BlindToAll(BlindToAnswers):
    """A registry of which nothing can be seen."""

    def use(self, use: int) -> Hashable:
        return "same"


class Fading(Printed):
    """Has a fingerprint only while nothing is active."""

    def concrete(self) -> Hashable:
        return None if self.order else ()


def test_a_fingerprint_that_can_change_later_is_refused() -> None:
    with pytest.raises(BadScenario, check=code("BadFingerprint")) as caught:
        explore(Live(), "graph")
    assert str(caught.value) == (
        "the system's state() cannot be a complete state: this list is not "
        "hashable. Return all that later steps may read, copied into tuples and "
        "texts, or None where that cannot be had."
    )


@pytest.mark.parametrize(
    ("system", "what"), [(Blind(), "look"), (BlindToAnswers(1), "answer")]
)
def test_states_that_differ_under_one_fingerprint_void_the_proof(
    system: Toy, what: str
) -> None:
    with pytest.raises(BadScenario, check=code("BadFingerprint")) as caught:
        explore(system, "graph")
    assert caught.value.reason == (
        "it is the same with [] and with [1] active (steps counted from 0), which "
        f"{what} differently"
    )


def test_a_fingerprint_that_vanishes_is_none() -> None:
    with pytest.raises(BadScenario, check=code("NoFingerprint")):
        explore(Fading(), "graph")


def test_it_is_told_when_nothing_shows() -> None:
    found = explore(BlindToAll(1), "graph")
    assert found.holds
    assert found.skipped == (
        "graph: all 4 states have one fingerprint; nothing that a step does shows in "
        "it",
    )


def test_an_error_of_the_harness_is_no_failing_step() -> None:
    class Misused(Toy):
        def refuses(self, step: int) -> str:
            raise BadScenario(code="NoFingerprint", strategy="graph")

    with pytest.raises(BadScenario, check=code("NoFingerprint")):
        explore(Misused(2), "walk:0")
