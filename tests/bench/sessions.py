"""A row about sessions: what a call costs before anything is sent.

True only here: two sessions in one thread, whose packets are handed over; no transport,
no values.  What it costs to wake a process is not in it.
"""

from collections.abc import Iterator
from functools import partial

from everyorder.runtime.rpc.protocol.events import Answered, Called
from everyorder.runtime.rpc.protocol.session import Session
from tests.bench.row import Row, beside_fixed_work, limited, processor_seconds

SESSIONS = "a small call and its answer, by two sessions in one thread"
# Calls of one measurement; the best of so many measurements counts.
CALLS = 2000
TIMES = 7
MOST = 60


class Pair:
    """Two workers of one group, whose clock is driven by the calls."""

    def __init__(self) -> None:
        self.now = 0.0
        self.caller = Session("a", incarnation=1, endpoint="a")
        self.callee = Session("b", incarnation=2, endpoint="b")
        self.caller.keep(world_size=2)
        self.callee.join("a", id=None, now=self.now)
        self.settle()

    def settle(self) -> None:
        """Hand packets over until there are none."""
        sides = {"a": self.caller, "b": self.callee}
        moved = True
        while moved:
            packets = self.caller.take_packets() + self.callee.take_packets()
            moved = bool(packets)
            for packet in packets:
                sides[packet.endpoint].receive(packet.frames, "", self.now)
        for side in sides.values():
            side.take_events()

    def calls(self, count: int) -> None:
        """So many calls, each after the answer to the one before."""
        caller, callee = self.caller, self.callee
        payload = [bytes(100)]
        for number in range(count):
            self.now += 1e-4
            now = self.now
            caller.call(callee.node, payload, deadline=now + 60, now=now)
            for packet in caller.take_packets():
                callee.receive(packet.frames, "", now)
            (called,) = callee.take_events()
            assert isinstance(called, Called), "it was asked"
            callee.reply(called.peer, called.call, payload, now=now)
            for packet in callee.take_packets():
                caller.receive(packet.frames, "", now)
            (answered,) = caller.take_events()
            assert isinstance(answered, Answered), "it was answered"
            if not number % 100:
                caller.tick(now)
                callee.tick(now)
                self.settle()


def sessions() -> Iterator[Row]:
    """Microseconds of processor time, both sides together."""
    pair = Pair()
    pair.calls(CALLS)
    calls = partial(pair.calls, CALLS)
    best, slow = beside_fixed_work(
        lambda: min(processor_seconds(calls) for _ in range(TIMES)) / CALLS * 1e6
    )
    yield limited(SESSIONS, best, MOST, slow, unit="µs")


SESSION_ROWS = (sessions,)
