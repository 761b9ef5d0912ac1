"""Faults that no look shows: what is told is that the fingerprint differs."""

from collections.abc import Hashable, Sequence

import pytest

from harness.engine import System, Violation, explore
from harness.engine.result import HIDDEN_KINDS, KINDS
from harness.errors import NotAScenario
from tests.engine.toys import Toy


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
