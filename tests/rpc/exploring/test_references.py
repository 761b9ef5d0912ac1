"""Every world of a few workers and references is reached, and keeps the laws.

The numbers of worlds are what they are: one that changes tells that the machine does.
"""

import pytest

from everyorder.runtime.rpc.protocol.ownership import (
    TABLE,
    CarrierEvent,
    ReferenceChange,
    Use,
    Used,
    Users,
)
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from tests.rpc.exploring.faults import (
    FAULTS,
    TWO,
    AcceptsWholeCarriers,
    ExpiresAnew,
)
from tests.rpc.exploring.search import explore
from tests.rpc.exploring.world import Bounds

ONE = ((0, 2),)

SMALL = {
    "two workers": (Bounds(2, ((0, 1),), 1), 51),
    "a crash": (Bounds(3, ONE, 1, crashes=1), 1114),
    "a cut": (Bounds(3, ONE, 1, cuts=1), 1435),
    "strangers": (Bounds(3, ONE, 1, strangers=True), 292),
    "two carriers": (Bounds(3, ONE, 2), 1186),
    "an own value": (Bounds(3, ((2, 2),), 1, crashes=1), 390),
    "two values, one owner": (Bounds(3, TWO, 1, many=2), 3571),
    "fetched and given up": (Bounds(2, ((0, 1),), 1, timeouts=1, fetches=1), 256),
    "created with references": (
        Bounds(2, ((0, 1), (0, 1)), 0, fetches=1, mixed=True),
        1531,
    ),
}


@pytest.mark.parametrize("name", SMALL)
def test_every_world_of_small_bounds(name: str) -> None:
    bounds, states = SMALL[name]
    found = explore(bounds)
    assert (found.fault, found.history, found.states) == (None, (), states)
    assert found.rests > 0


LARGER = {
    "two values, a crash": Bounds(3, TWO, 1, many=2, crashes=1),
    "two owners, a crash": Bounds(3, ((0, 2), (0, 1)), 1, many=2, crashes=1),
    "two carriers, a cut": Bounds(3, ONE, 2, cuts=1),
    "strangers, a crash": Bounds(3, ONE, 1, crashes=1, strangers=True),
    "all at once": Bounds(3, ONE, 1, crashes=1, cuts=1, timeouts=1, fetches=1),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", LARGER)
def test_every_world_of_larger_bounds(name: str) -> None:
    found = explore(LARGER[name])
    assert (found.fault, found.history) == (None, ())
    print(f"{name}: {found.states:,} states, {found.steps:,} steps")


# What is lost for good is lost with an end: two of them are two cuts.
WHOLE = {
    "two ends": (
        Bounds(3, ((0, 2), (1, 2)), 1, many=2, crashes=1, cuts=2),
        902_582,
    ),
    "one owner": (Bounds(3, ((0, 2), (1, 2)), 2, many=2, crashes=1), 391_024),
    "two owners": (Bounds(3, ((0, 2), (2, 1)), 2, many=2, crashes=1), 251_872),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", WHOLE)
def test_every_world_of_three_workers_two_values_and_a_crash(name: str) -> None:
    bounds, states = WHOLE[name]
    found = explore(bounds)
    assert (found.fault, found.history, found.states) == (None, (), states)
    print(f"{name}: {found.states:,} states, {found.steps:,} steps, {found.depth} deep")


@pytest.mark.parametrize(
    ("machine", "bounds"), FAULTS, ids=[machine.__name__ for machine, _ in FAULTS]
)
def test_a_planted_fault_is_found_and_is_none_of_the_machine(
    machine: type[ReferenceMachine], bounds: Bounds
) -> None:
    assert explore(bounds).fault is None
    found = explore(bounds, machine)
    assert found.fault is not None
    assert len(found.history) == found.depth > 0


def test_one_fault_needs_three_workers_and_two_values() -> None:
    assert (
        explore(Bounds(2, ((0, 1), (0, 1)), 1, many=2), AcceptsWholeCarriers).fault
        is None
    )
    assert explore(Bounds(3, ONE, 1, many=2), AcceptsWholeCarriers).fault is None
    found = explore(Bounds(3, TWO, 1, many=2), AcceptsWholeCarriers)
    assert found.fault is not None
    assert "is refused" in found.fault
    assert found.depth == 17


def test_one_fault_needs_a_lost_message() -> None:
    assert explore(Bounds(2, ((1, 1),), 1, crashes=1), ExpiresAnew).fault is None
    found = explore(Bounds(2, ((1, 1),), 1, cuts=1), ExpiresAnew)
    assert found.fault is not None
    assert "does not list" in found.fault or "has freed" in found.fault


def unseen(
    monkeypatch: pytest.MonkeyPatch, *many: Bounds
) -> set[tuple[Use, ReferenceChange]]:
    """The rows of the table of references that are not reached within some bounds."""
    seen = set()

    def change(
        self: Users, used: Used, what: ReferenceChange
    ) -> tuple[CarrierEvent, ...]:
        seen.add((used.use, what))
        return kept(self, used, what)

    kept = Users.change
    monkeypatch.setattr(Users, "change", change)
    for bounds in many:
        explore(bounds)
    return set(TABLE) - seen


FEW = (
    Bounds(2, ((0, 1), (0, 1)), 0, crashes=1, timeouts=1, mixed=True),
    Bounds(3, ONE, 1, crashes=1, strangers=True),
)


def test_rows_of_the_table_of_references_are_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # What is listed and not told is one of two that came together.
    assert unseen(monkeypatch, *FEW) == {
        (Use.LISTED, ReferenceChange.FORGOTTEN),
        (Use.LISTED, ReferenceChange.LOST),
    }


@pytest.mark.slow
def test_every_row_of_the_table_of_references_is_reached(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert unseen(monkeypatch, *FEW, LARGER["two owners, a crash"]) == set()
