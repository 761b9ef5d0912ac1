"""Two whole sessions in every world that lost, doubled and late packets lead to."""

import pytest

from everyorder.runtime.rpc.protocol.channel import Channel
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from tests.rpc.exploring.search import Found, explore_to_rest
from tests.rpc.exploring.sessions import Limits, World


def explore(**limits: int) -> Found:
    """Every world within some limits."""
    return explore_to_rest(World(Limits(**limits)))


FEW = {
    "nothing is lost": (Limits(), 192, 4),
    "one packet is lost": (Limits(lost=1), 649, 21),
    "a worker crashes": (Limits(crashes=1), 548, 8),
}


@pytest.mark.parametrize("name", FEW)
def test_every_world_is_at_rest_in_the_end(name: str) -> None:
    limits, states, rests = FEW[name]
    found = explore_to_rest(World(limits))
    assert (found.fault, found.history) == (None, ())
    assert (found.states, found.rests) == (states, rests)


MANY = {
    "one is doubled": (Limits(doubled=1), 5_400),
    "two are lost": (Limits(lost=2), 1_578),
    "one is lost, and a worker crashes": (Limits(lost=1, crashes=1), 1_614),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_every_world_of_more_faults(name: str) -> None:
    limits, states = MANY[name]
    found = explore_to_rest(World(limits))
    assert (found.fault, found.history, found.states) == (None, (), states)


@pytest.mark.nightly
def test_every_world_of_two_losses_a_doubled_packet_and_a_crash() -> None:
    found = explore(lost=2, doubled=1, crashes=1)
    print(f"two sessions: {found.states:,} states, {found.steps:,} steps")
    assert (found.fault, found.history) == (None, ())


def test_packets_that_are_not_sent_again_are_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Channel, "_resend_missing", lambda self, beat, now: None)
    assert explore().fault is None
    assert explore(lost=1).fault == "not everything can come to rest"


def test_what_is_not_unlisted_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ReferenceMachine, "_unpinned", lambda self, used: None)
    assert explore().fault == "not everything can come to rest"
