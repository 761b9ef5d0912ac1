"""Random programs over real sessions, under all that a network and workers can do."""

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.runtime.rpc.protocol.call_machine import Calls
from everyorder.runtime.rpc.protocol.channel import Channel
from everyorder.runtime.rpc.protocol.events import Failed, Reason
from everyorder.runtime.rpc.protocol.membership import MembershipMachine
from everyorder.runtime.rpc.protocol.messages import Answer, Delete, MemberLeft
from everyorder.runtime.rpc.protocol.reference_machine import ReferenceMachine
from everyorder.runtime.rpc.protocol.termination import Termination
from tests.rpc.simulator.pairs import (
    UNREACHABLE,
    counted,
    everything,
    table,
)
from tests.rpc.simulator.playing import broken, play
from tests.rpc.simulator.schedule import drawn, named, shrunk
from tests.rpc.simulator.worker import Broken
from tests.rpc.simulator.world import World

# So many parts, and in each so many; of the whole run, so many in all.
PARTS, ORDINARY, LONG, WHOLE = 2, 50, 500, 10_000
# Each pair is seen so often in the whole run, in each part its share.
OFTEN = 100


@pytest.mark.parametrize("part", range(PARTS))
def test_laws_hold_in_some_schedules(part: int) -> None:
    play(range(part * ORDINARY, (part + 1) * ORDINARY))


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_laws_hold_in_many_schedules(part: int) -> None:
    play(range(1000 + part * LONG, 1000 + (part + 1) * LONG))


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_laws_hold_in_ten_thousand_schedules_and_every_pair_is_seen(part: int) -> None:
    many = WHOLE // PARTS
    with counted() as seen:
        play(range(part * many, (part + 1) * many))
    print(table(seen))
    pairs = [pair for pair in everything() if pair not in UNREACHABLE]
    assert {pair: seen[pair] for pair in pairs if seen[pair] < OFTEN // PARTS} == {}
    assert [pair for pair in UNREACHABLE if seen[pair]] == []


# Seeds by which something was found: a worker that came back under another number,
# and two that lost each other when there was no keeper any more.
@pytest.mark.parametrize("seed", [1669, 1897, 2551, 6962, 7494, 9061])
def test_laws_hold_where_they_did_not(seed: int) -> None:
    play([seed])


def test_most_pairs_are_seen_soon() -> None:
    with counted() as seen:
        play(range(20))
    assert len([pair for pair in everything() if seen[pair]]) > 45
    assert set(seen) <= set(everything())


def test_a_schedule_plays_the_same_whenever_it_is_played() -> None:
    def story(name: str) -> list[object]:
        world = World(named(name))
        world.play()
        return [
            world.steps,
            world.network.sent,
            [
                (worker.agent.ended, worker.agent.freed, worker.agent.session.state())
                for worker in world.workers
                if worker.agent is not None
            ],
        ]

    for seed in (3, 4, 5):
        name = drawn(seed).name
        assert story(name) == story(name)


def test_a_schedule_is_made_again_of_its_name() -> None:
    schedule = drawn(71)
    assert named(schedule.name) == schedule
    part = schedule.only(schedule.kept[2:7])
    assert named(part.name) == part
    assert len(part.name) <= 24
    times = [0.0]
    for action in schedule.actions:
        times.append(times[-1] + action.after)
    assert part.actions[0].after == pytest.approx(times[3])
    with pytest.raises(ValueError, match="0-1z is no schedule of version"):
        named("0-1z")


# Faults of sessions: what is planted where, and the law that tells.


def _twice(kept: Callable[..., Any]) -> Callable[..., Any]:
    """What came before is delivered once more."""

    def data(self: Channel, found: Any, frames: Any, decode: Any, now: float) -> Any:
        came = kept(self, found, frames, decode, now)
        return (decode(frames),) if came == () and not self._early else came

    return data


def _without_expiry(kept: Callable[..., Any]) -> Callable[..., Any]:
    """The owner releases what a user has as soon as it loses the user."""

    def lost(self: ReferenceMachine, peer: Any, reason: Reason, now: float) -> None:
        kept(self, peer, reason, now)
        self.owners.expire(peer)
        self._report_freed()

    return lost


def _unpinned(kept: Callable[..., Any]) -> Callable[..., Any]:
    """What is dropped is unlisted, whatever it is pinned by."""

    def unpinned(self: ReferenceMachine, used: Any) -> None:
        used.pins.clear()
        kept(self, used)

    return unpinned


def _undeleted(kept: Callable[..., Any]) -> Callable[..., Any]:
    """What a call was to create is not unlisted when the call fails."""

    def uncreated(self: ReferenceMachine, fork: Any, reason: Reason) -> None:
        kept(self, fork, reason)
        self.out[:] = [step for step in self.out if not isinstance(step[1], Delete)]

    return uncreated


def _endless(kept: Callable[..., Any]) -> Callable[..., Any]:
    """Deadlines pass without an end."""
    return lambda self, now: self._deadlines.clear()


def _hasty(kept: Callable[..., Any]) -> Callable[..., Any]:
    """A call whose deadline has passed is ended, and kept."""

    def give_up(self: Calls, out: Any, reason: Reason, now: float) -> None:
        self.events.append(Failed(out.call, reason))

    return give_up


def _crossed(kept: Callable[..., Any]) -> Callable[..., Any]:
    """An answer goes to the newest call."""

    def answer(self: Calls, peer: Any, said: Answer, now: float) -> None:
        if self._outs:
            said = Answer(max(self._outs), said.payload, said.carries, said.failed)
        kept(self, peer, said, now)

    return answer


def _deaf(kept: Callable[..., Any]) -> Callable[..., Any]:
    """Nobody is told that a member left."""

    def receive(self: MembershipMachine, peer: Any, message: Any, now: float) -> None:
        if not isinstance(message, MemberLeft):
            kept(self, peer, message, now)

    return receive


def _lonely(kept: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever is done has an end, whatever others do."""

    def done(self: Termination) -> None:
        kept(self)
        self._named = ()
        self.status = "FINISHING"

    return done


def _unfinished(kept: Callable[..., Any]) -> Callable[..., Any]:
    """Whoever is done does not say so."""
    return lambda self, me, asks, idle: None


FAULTS: dict[str, tuple[type, str, Callable[..., Any], str]] = {
    "packets are taken twice": (Channel, "data", _twice, "nothing runs twice"),
    "leases are not kept": (
        ReferenceMachine,
        "lost",
        _without_expiry,
        "An owner lists every reference",
    ),
    "pins do not pin": (ReferenceMachine, "_unpinned", _unpinned, ""),
    "failed creations stay": (
        ReferenceMachine,
        "uncreated",
        _undeleted,
        "Nothing is kept that nobody needs",
    ),
    "deadlines pass": (Calls, "tick", _endless, "A call has its end"),
    "calls end twice": (Calls, "_give_up", _hasty, "each call has one end"),
    "answers are mixed up": (Calls, "_answer", _crossed, ""),
    "nobody hears of who leaves": (
        MembershipMachine,
        "receive",
        _deaf,
        "All members of a group",
    ),
    "the end comes early": (Termination, "done", _lonely, "Who is told that all"),
    "the end does not come": (Termination, "_report", _unfinished, "w0 does not end"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    where, method, planted, law = FAULTS[fault]
    monkeypatch.setattr(where, method, planted(getattr(where, method)))
    found = next(filter(None, (broken(drawn(seed)) for seed in range(400))), None)
    assert found is not None
    assert found.startswith(law), found


def test_a_failing_schedule_is_shrunk_and_played_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        ReferenceMachine, "uncreated", _undeleted(ReferenceMachine.uncreated)
    )
    seed = next(seed for seed in range(400) if broken(drawn(seed)))
    law = (broken(drawn(seed)) or "").split(".")[0]
    small = shrunk(drawn(seed), lambda part: (broken(part) or "").startswith(law))
    # It takes a call that creates, and something by which it fails.
    assert 1 <= len(small.actions) <= 4
    assert any(action.kind in ("remote", "scene") for action in small.actions)
    again = named(small.name)
    assert again == small
    with pytest.raises(Broken, match=law):
        World(again).play()
    monkeypatch.undo()
    World(again).play()


def test_what_is_told_of_a_failing_schedule(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Calls, "tick", _endless(Calls.tick))
    seed = next(seed for seed in range(400) if broken(drawn(seed)))
    with pytest.raises(AssertionError) as told:
        play([seed])
    text = str(told.value)
    assert text.startswith("A call has its end when its deadline has passed.")
    assert "\nreplay: World(named('2-" in text


def test_events_of_all_kinds_are_heard() -> None:
    ended: Counter[str] = Counter()
    for seed in range(25):
        world = World(drawn(seed))
        world.play()
        for worker in world.workers:
            if worker.agent is not None:
                ended.update(worker.agent.ended)
    assert {"answered", "failed: DEADLINE", "failed: LOST", "failed: REFERENCE"} <= set(
        ended
    )
