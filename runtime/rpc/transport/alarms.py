"""Alarms: when a thread that waits for others wakes by itself.

True only here: how any thread sets the time at which another one, asleep, wakes;
without a lock, as it is set once or twice in every call.

Rules: who sets an alarm writes it, then looks what the thread sleeps towards; the
thread says that it is about to sleep, then reads the alarm, then says how long.  So one
of the two sees the other.  An alarm goes off once, perhaps early, never not at all.
"""

from math import inf
from time import monotonic

# Busy: it looks at the alarm before it sleeps.  About to: whatever is set wakes it.
_BUSY, _ABOUT = -inf, inf


class Alarm:
    """The alarm of one thread, in seconds of the monotonic clock."""

    __slots__ = ("_asleep", "_at")

    def __init__(self) -> None:
        self._at: float | None = None
        # Before the thread is there, nobody has to be woken.
        self._asleep = _BUSY

    def set(self, seconds_from_now: float | None) -> bool:
        """Whether the thread must be woken, as it sleeps for longer."""
        if seconds_from_now is None:
            self._at = None
            return False
        at = self._at = monotonic() + seconds_from_now
        return at < self._asleep

    def sleep(self) -> float | None:
        """How many seconds the thread may sleep now; None: until it is woken."""
        self._asleep = _ABOUT
        at = self._at
        if at is None:
            return None
        self._asleep = at
        return max(0.0, at - monotonic())

    def awake(self) -> None:
        """Say that the thread does not sleep any more."""
        self._asleep = _BUSY

    def rings(self) -> bool:
        """Whether it goes off now; if so, it is off from now on."""
        at = self._at
        if at is None or at > monotonic():
            return False
        self._at = None
        return True
