"""Liveness: when a worker decides that another one is dead.

A worker has a lease on each of its peers, and the peer one on it.

Rules:
- an answer proves that the peer was alive when the packet that it answers was sent, not
  when the answer arrives: `proven`.  The peer received a packet of this side then or
  later, and releases nothing until `expire` after that;
- this side gives up `dead` after `proven`, which is earlier, however long the answer
  took;
- this side keeps the peer's holds until `expire` after `heard`, the time of the last
  packet;
- a process whose interpreter is busy sends and answers nothing, and is not dead.  The
  transport knows when the process of a peer was running last (`reached`), by an answer
  that needs no interpreter.  Both times above count from then, if that is later: a busy
  peer is neither given up nor forgotten, and one that was stopped, killed or cut off
  ends after the same time as without such answers;
- two workers may disagree about what their transports know.  A side that has given up
  resets the peer at its next packet, which an open channel sends at each heartbeat: a
  worker relies on a session that has ended for that long at most, and is refused there;
- a note has a stamp, and the next packet of the peer that echoes the stamp proves the
  time of that note; echoes of late or duplicated packets prove an older time.
"""

from collections import deque
from collections.abc import Hashable
from math import inf

from everyorder.runtime.rpc.protocol.events import Settings

# The number of notes whose times are stored; answers to older ones prove nothing.
_REMEMBERED = 8


class LeaseTimes:
    """Times of one session; `stamp` is that of the last note, `echo` the peer's."""

    __slots__ = (
        "_dead",
        "_expire",
        "_notes",
        "echo",
        "heard",
        "proven",
        "reached",
        "stamp",
    )

    def __init__(self, settings: Settings) -> None:
        self._dead = settings.dead
        self._expire = settings.expire
        self._notes: deque[tuple[int, float]] = deque(maxlen=_REMEMBERED)
        self.clear()

    def clear(self) -> None:
        """Reset to the state before a session."""
        self._notes.clear()
        self.stamp = 0
        self.echo = 0
        self.heard = -inf
        self.proven = -inf
        self.reached = -inf

    def note(self, now: float) -> int:
        """Store the time of a note that is sent, and return its stamp."""
        self.stamp += 1
        self._notes.append((self.stamp, now))
        return self.stamp

    def echoed(self, stamp: int) -> None:
        """Handle an echo: the peer has received the note of a stamp."""
        for number, time in self._notes:
            if number == stamp:
                self.prove(time)

    def prove(self, time: float) -> None:
        """Record that the peer has received a packet that was sent at a time."""
        if time > self.proven:
            self.proven = time

    def reach(self, time: float) -> None:
        """Record that the process of the peer was running at a time."""
        if time > self.reached:
            self.reached = time

    def seen(self) -> float:
        """Return the time of the last packet or answer of the peer's process."""
        return max(self.heard, self.reached)

    def ends(self) -> float:
        """Return the time at which this side gives up."""
        return max(self.proven, self.reached) + self._dead

    def expires(self) -> float:
        """Return the time at which the peer has given up for certain."""
        return self.seen() + self._expire

    def is_dead(self, now: float) -> bool:
        """Return True if this side gives up: nothing was proven for too long."""
        return now >= self.ends()

    def is_expired(self, now: float) -> bool:
        """Return True if the peer has given up, and its holds can be released."""
        return now >= self.expires()

    def picture(self, now: float) -> Hashable:
        """Return the times relative to now, and the stamps relative to the last one."""
        return (
            None if self.heard == -inf else round(self.heard - now, 6),
            None if self.proven == -inf else round(self.proven - now, 6),
            None if self.reached == -inf else round(self.reached - now, 6),
            tuple(
                (self.stamp - stamp, round(time - now, 6))
                for stamp, time in self._notes
            ),
        )
