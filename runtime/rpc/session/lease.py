"""Lease: since when each side of a channel is known to be there.

True only here: which times count.  What proves that the peer is there is not when its
answer came, but when that was sent to which it is the answer: `proven`.  The peer heard
of this side then or later, and releases nothing until `expire` after that; this side
gives up `dead` after `proven`, which is earlier, however long the answer took.  What
this side keeps for the peer it keeps until `expire` after `heard`, when anything came
last.

Rules: a note has a stamp, and the next packet from the peer that echoes it proves the
time of that note; stamps of late or doubled packets prove what they say, which is less.
"""

from collections import deque
from collections.abc import Hashable
from math import inf

from runtime.rpc.session.settings import Settings

# The times of so many notes are remembered; an answer to an older one proves nothing.
_REMEMBERED = 8


class Lease:
    """Times of one session; `stamp` is that of the last note, `echo` the peer's."""

    __slots__ = ("_dead", "_expire", "_notes", "echo", "heard", "proven", "stamp")

    def __init__(self, settings: Settings) -> None:
        self._dead = settings.dead
        self._expire = settings.expire
        self._notes: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self.clear()

    def clear(self) -> None:
        """As before a session."""
        self._notes.clear()
        self.stamp = 0
        self.echo = 0
        self.heard = -inf
        self.proven = -inf

    def note(self, now: float) -> int:
        """A note is sent: its stamp."""
        self.stamp += 1
        self._notes.append((self.stamp, now))
        return self.stamp

    def echoed(self, stamp: int) -> None:
        """The peer has a note."""
        for number, time in self._notes:
            if number == stamp:
                self.prove(time)

    def prove(self, time: float) -> None:
        """The peer has something that was sent at a time."""
        if time > self.proven:
            self.proven = time

    def ends(self) -> float:
        """When this side gives up."""
        return self.proven + self._dead

    def expires(self) -> float:
        """When the peer has given up for certain."""
        return self.heard + self._expire

    def picture(self, now: float) -> Hashable:
        """The times, relative to now, and the stamps, to the last one."""
        return (
            None if self.heard == -inf else round(self.heard - now, 6),
            None if self.proven == -inf else round(self.proven - now, 6),
            tuple(
                (self.stamp - stamp, round(time - now, 6))
                for stamp, time in self._notes
            ),
        )
