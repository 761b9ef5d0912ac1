"""A channel in every state that lost, doubled and late packets, cuts and crashes reach.

The numbers of states are what they are: one that changes tells that the channel does.
"""

from typing import Any

import pytest

from everyorder.runtime.rpc.protocol.channel import Channel
from everyorder.runtime.rpc.protocol.liveness import LeaseTimes
from tests.rpc.exploring.channels import Limits, Wire
from tests.rpc.exploring.search import Found, explore_to_rest


def explore(says: tuple[int, int], **limits: int) -> Found:
    """Every state within some limits."""
    return explore_to_rest(Wire(Limits(says, **limits)))


FEW = {
    "nothing is lost": (Limits((2, 1)), 780),
    "one is lost": (Limits((1, 1), lost=1), 1085),
    "two are lost": (Limits((1, 0), lost=2), 153),
    "a crash": (Limits((1, 1), crashes=1), 662),
    "a cut": (Limits((1, 0), cuts=1), 486),
}


@pytest.mark.parametrize("name", FEW)
def test_every_state_of_a_channel(name: str) -> None:
    limits, states = FEW[name]
    found = explore_to_rest(Wire(limits))
    assert (found.fault, found.history, found.states) == (None, (), states)
    assert found.rests > 0


MANY = {
    "two of many are lost": (Limits((2, 1), lost=2), 26_697),
    "one of many is doubled": (Limits((2, 1), doubled=1), 20_684),
    "both talk, and are cut off": (Limits((1, 1), cuts=1), 16_572),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MANY)
def test_every_state_of_a_channel_that_talks_more(name: str) -> None:
    limits, states = MANY[name]
    found = explore_to_rest(Wire(limits))
    assert (found.fault, found.history, found.states) == (None, (), states)


WHOLE = {
    "two are lost, one is doubled": Limits((1, 1), lost=2, doubled=1),
    "two are lost, and a side crashes": Limits((2, 1), lost=2, crashes=1),
    "one is late, and both are cut off": Limits((1, 1), late=1, cuts=1),
    "one is late, one is lost": Limits((1, 1), late=1, lost=1),
}


@pytest.mark.nightly
@pytest.mark.parametrize("name", WHOLE)
def test_every_state_of_a_channel_with_all_faults(name: str) -> None:
    found = explore_to_rest(Wire(WHOLE[name]))
    print(f"{name}: {found.states:,} states, {found.steps:,} steps")
    assert (found.fault, found.history) == (None, ())


def test_packets_that_are_not_sent_again_are_missed_where_one_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Channel, "_resend_missing", lambda self, beat, now: None)
    assert explore((1, 0)).fault is None
    assert explore((1, 0), lost=1).fault == "not everything can come to rest"


def test_what_comes_twice_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = Channel.data

    def twice(
        self: Channel, found: Any, frames: Any, decode: Any, now: float
    ) -> object:
        came = kept(self, found, frames, decode, now)
        return (decode(frames),) if came == () and not self._early else came

    monkeypatch.setattr(Channel, "data", twice)
    assert explore((1, 0)).fault is None
    assert explore((1, 0), doubled=1).fault == "message 0 comes after 0"


def test_a_lease_that_ends_before_the_other_gives_up_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(LeaseTimes, "expires", lambda self: self.heard + self._dead / 2)
    assert explore((1, 0)).fault is None
    assert explore((1, 0), cuts=1).fault == "what has expired is counted on"
