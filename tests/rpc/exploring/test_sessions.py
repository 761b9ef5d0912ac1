"""Two whole sessions in every world that lost, doubled and late packets lead to."""

import pytest

from runtime.rpc.session.channel import Channel
from runtime.rpc.session.references import References
from tests.rpc.exploring.sessions import Limits, explore
from tests.rpc.exploring.world import Broken

FEW = {
    "nothing is lost": (Limits(), 4),
    "one packet is lost": (Limits(lost=1), 21),
    "a worker crashes": (Limits(crashes=1), 8),
}


@pytest.mark.parametrize("name", FEW)
def test_every_world_is_at_rest_in_the_end(name: str) -> None:
    limits, rests = FEW[name]
    states, steps, at_rest = explore(limits)
    assert at_rest == rests
    assert states < steps


MANY = {
    "one is doubled": Limits(doubled=1),
    "two are lost": Limits(lost=2),
    "one is lost, and a worker crashes": Limits(lost=1, crashes=1),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MANY)
def test_every_world_of_more_faults(name: str) -> None:
    states, steps, _ = explore(MANY[name])
    print(f"{name}: {states:,} states, {steps:,} steps")


@pytest.mark.whole
def test_every_world_of_two_losses_a_doubled_packet_and_a_crash() -> None:
    states, steps, _ = explore(Limits(lost=2, doubled=1, crashes=1))
    print(f"two sessions: {states:,} states, {steps:,} steps")


def test_packets_that_are_not_sent_again_are_missed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Channel, "_lost_ones", lambda self, beat, now: None)
    explore(Limits())
    with pytest.raises(Broken, match="everything can come to rest"):
        explore(Limits(lost=1))


def test_what_is_not_unlisted_is_missed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(References, "_unpinned", lambda self, used: None)
    with pytest.raises(Broken, match="everything can come to rest"):
        explore(Limits())
