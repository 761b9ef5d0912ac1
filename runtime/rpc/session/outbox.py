"""Outbox: what one side of a channel has to send, until it is acknowledged.

True only here: the window.  A message waits until there is room for it, gets the next
number when it is sent, and is kept until the peer acknowledges that number or a later
one.  It is missing if something that was sent after it came, and it did not.

Rules: one message has room always, however large; what waits keeps its order.
"""

from collections import deque
from collections.abc import Collection, Hashable, Sequence

from runtime.rpc.session.events import Buffer
from runtime.rpc.session.settings import Settings


class Sent:
    """A message: its body, the frames that follow, its bytes.

    `stamp` is the number of the last note that was sent before it, `time` when it was
    sent first.
    """

    __slots__ = ("body", "sequence", "size", "stamp", "tail", "time")

    def __init__(self, body: bytes, tail: Sequence[Buffer], size: int) -> None:
        self.body = body
        self.tail = tail
        self.size = size
        self.sequence = 0
        self.stamp = 0
        self.time = 0.0

    def written(self) -> Hashable:
        """What is sent, as a value."""
        return self.body, tuple(map(bytes, self.tail))


class Outbox:
    """Messages that wait in `queue`, and those that are on their way in `flight`."""

    __slots__ = (
        "_bytes",
        "_packets",
        "acked",
        "flight",
        "flying",
        "following",
        "queue",
    )

    def __init__(self, settings: Settings) -> None:
        self._packets = settings.window
        self._bytes = settings.window_bytes
        self.queue: deque[Sent] = deque()
        self.flight: deque[Sent] = deque()
        self.clear()

    def clear(self) -> None:
        """As before the first message."""
        self.queue.clear()
        self.restart()

    def restart(self) -> None:
        """Forget what is on its way; what waits is sent in the next session."""
        self.flight.clear()
        self.flying = 0
        self.following = 1
        self.acked = 0

    def room(self, size: int) -> bool:
        """Whether one more message may be on its way."""
        return not self.flight or (
            len(self.flight) < self._packets and self.flying + size <= self._bytes
        )

    def number(self, message: Sent, now: float) -> None:
        """A message is sent for the first time."""
        message.sequence = self.following
        message.time = now
        self.following += 1
        self.flight.append(message)
        self.flying += message.size

    def acknowledge(self, sequence: int) -> float | None:
        """All up to a number came: when the last of them was sent first.

        None where nothing follows from it, or nothing of that number was sent.
        """
        if not self.acked < sequence < self.following:
            return None
        self.acked = sequence
        flight = self.flight
        time = 0.0
        while flight and flight[0].sequence <= sequence:
            done = flight.popleft()
            self.flying -= done.size
            time = done.time
        return time

    def missing(self, stamp: int, early: Collection[int]) -> list[Sent]:
        """What was sent before a note that came, and did not come."""
        return [
            each
            for each in self.flight
            if each.stamp < stamp and each.sequence not in early
        ]
