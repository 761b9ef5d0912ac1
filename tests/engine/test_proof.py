"""The proof of settled systems: by fingerprints, which may differ where no look does.

Fingerprints that cannot be complete are refused.
"""

from collections.abc import Hashable, Sequence

import pytest

from everyorder.harness.base.errors import BadScenario, NotAScenario
from everyorder.harness.engine import System, Violation, explore
from everyorder.harness.engine.result import HIDDEN_KINDS, KINDS
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
        "texts, or None if it is unavailable."
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


class Alike(Toy):
    """Looks alike everywhere; its complete state has the order in it."""

    def __init__(self, uses: int = 0) -> None:
        super().__init__(2, uses, printed=True)

    def observe(self) -> Hashable:
        return "same"

    def concrete(self) -> Hashable:
        return tuple(self.order)


class Counting(Alike):
    """Its fingerprint is another one for each fresh system."""

    def concrete(self) -> Hashable:
        return self.lives


class Looked(Alike):
    """A look leaves a mark that no look shows."""

    def clear(self) -> None:
        super().clear()
        self.looks = 0

    def observe(self) -> Hashable:
        self.looks += 1
        return "same"

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order)), min(self.looks, 1)


class Used(Alike):
    """A use leaves a mark that no look shows."""

    def clear(self) -> None:
        super().clear()
        self.used = False

    def use(self, use: int) -> Hashable:
        self.used = True
        return "answer"

    def concrete(self) -> Hashable:
        return tuple(sorted(self.order)), self.used


def found(system: System) -> Violation:
    (violation,) = explore(system, "graph").violations
    return violation


@pytest.mark.parametrize(
    ("system", "kind", "claim"),
    [
        (Alike(), "order", "the fingerprint depends on more than the active steps"),
        (Looked(), "cold", "looking changes the fingerprint"),
        (Used(uses=1), "use", KINDS["use"]),
        (
            Counting(),
            "nondeterminism",
            "the same history, played twice, gave two fingerprints",
        ),
    ],
)
def test_what_only_the_fingerprint_shows(system: Toy, kind: str, claim: str) -> None:
    violation = found(system)
    assert (violation.kind, violation.hidden) == (kind, True)
    assert violation.claim == claim


def test_what_differs_before_a_look_is_told_without_it() -> None:
    assert found(Counting()).history == ()


def test_what_a_look_shows_is_told_as_before() -> None:
    class Seen(Alike):
        def observe(self) -> Hashable:
            return tuple(self.order)

    violation = found(Seen())
    assert (violation.kind, violation.hidden) == ("order", False)
    assert violation.claim == "the observation depends on more than the active steps"


def test_every_kind_has_both_claims() -> None:
    assert HIDDEN_KINDS.keys() == KINDS.keys()


def test_a_use_that_is_no_question_is_no_answer() -> None:
    class Asked(Toy):
        def use(self, use: int) -> Hashable:
            raise NotAScenario(found="this use", wanted="another")

        def laws(self) -> Sequence[Hashable]:
            return ()

    with pytest.raises(NotAScenario):
        explore(Asked(2, 1), "histories:1")
