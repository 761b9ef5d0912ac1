"""Circuit breakers: a service is cut off while too many of its checks report a failure.

A step reports that a check fails, and its undo that the check has recovered.  The
circuit is open while two checks or more fail; listeners are told of each change.
"""

from collections import deque
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)

THRESHOLD = 2


class Circuit(Enum):
    """The position of the switch."""

    CLOSED = "closed"
    OPEN = "open"


class Breaker:
    """Computes the position from the set of failing checks."""

    def __init__(self) -> None:
        self._failing: set[str] = set()

    def fail(self, check: str) -> Callable[[], None]:
        self._failing.add(check)
        return lambda: self._recover(check)

    def _recover(self, check: str) -> None:
        self._failing.discard(check)

    def position(self) -> Circuit:
        return Circuit.OPEN if len(self._failing) >= THRESHOLD else Circuit.CLOSED

    def request(self) -> str:
        return "refused" if self.position() is Circuit.OPEN else "served"

    def failing(self) -> list[str]:
        return sorted(self._failing)


class CountingBreaker(Breaker):
    """Counts failures up and down, and switches at the threshold."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0
        self._position = Circuit.CLOSED

    def fail(self, check: str) -> Callable[[], None]:
        self._count += 1
        self._switch()
        return super().fail(check)

    def _recover(self, check: str) -> None:
        super()._recover(check)
        self._count -= 1
        self._switch()

    def _switch(self) -> None:
        over = self._count >= THRESHOLD
        self._position = Circuit.OPEN if over else Circuit.CLOSED

    def position(self) -> Circuit:
        return self._position


class ListeningBreaker(CountingBreaker):
    """Tells listeners of changes; one of them keeps a mirror of the position."""

    def __init__(self) -> None:
        super().__init__()
        self.mirror = Circuit.CLOSED
        self._listeners: list[Callable[[Circuit], None]] = [self._reflect]

    def _reflect(self, position: Circuit) -> None:
        self.mirror = position

    def _switch(self) -> None:
        before = self._position
        super()._switch()
        if before is not self._position:
            for listener in self._listeners:
                listener(self._position)

    def request(self) -> str:
        return "refused" if self.mirror is Circuit.OPEN else "served"


class LazyBreaker(Breaker):
    """Computes the position when it is asked for, and keeps it until a change."""

    def __init__(self) -> None:
        super().__init__()
        self._known: Circuit | None = None

    def fail(self, check: str) -> Callable[[], None]:
        self._known = None
        return super().fail(check)

    def _recover(self, check: str) -> None:
        super()._recover(check)
        self._known = None

    def position(self) -> Circuit:
        if self._known is None:
            self._known = super().position()
        return self._known


class WindowBreaker(Breaker):
    """Keeps the last requests in a window that does not count for the position."""

    def __init__(self) -> None:
        super().__init__()
        self._window: deque[str] = deque(maxlen=2)

    def request(self) -> str:
        self._window.append(super().request())
        return self._window[-1]


class StateBreaker(Breaker):
    """Has an object for each state of the machine; they are created when needed."""

    def __init__(self) -> None:
        super().__init__()
        self._states: dict[int, Circuit] = {}

    def position(self) -> Circuit:
        level = min(len(self._failing), THRESHOLD)
        if level not in self._states:
            self._states[level] = super().position()
        return self._states[level]


class EqualityBreaker(CountingBreaker):
    def _switch(self) -> None:
        if self._count == THRESHOLD:
            self._position = Circuit.OPEN
        elif self._count == THRESHOLD - 1:
            self._position = Circuit(
                "open" if self._position is Circuit.OPEN else "closed"
            )
        else:
            self._position = Circuit.CLOSED if self._count == 0 else self._position


class LatchedBreaker(CountingBreaker):
    def _switch(self) -> None:
        if self._count >= THRESHOLD:
            self._position = Circuit.OPEN


class ResettingBreaker(CountingBreaker):
    def _recover(self, check: str) -> None:
        Breaker._recover(self, check)
        self._count = 0
        self._switch()


class RequestCountingBreaker(CountingBreaker):
    def request(self) -> str:
        answer = super().request()
        if answer == "refused":
            # A refused request is meant to be a probe.
            self._position = Circuit.CLOSED
        return answer


class HalfOpenBreaker(CountingBreaker):
    def __init__(self) -> None:
        super().__init__()
        self._probes = 0

    def request(self) -> str:
        if self._position is Circuit.OPEN:
            self._probes += 1
            if self._probes == 3:
                self._probes = 0
                return "probe"
        return super().request()


class ForgetfulMirrorBreaker(ListeningBreaker):
    def _switch(self) -> None:
        before = self._position
        CountingBreaker._switch(self)
        if before is Circuit.CLOSED and self._position is Circuit.OPEN:
            for listener in self._listeners:
                listener(self._position)
            # It is called once, and should have been armed again.
            self._listeners.clear()
        elif before is Circuit.OPEN and self._position is Circuit.CLOSED:
            self.mirror = Circuit.CLOSED


class ClampedBreaker(CountingBreaker):
    def fail(self, check: str) -> Callable[[], None]:
        undo = super().fail(check)
        self._count = min(self._count, THRESHOLD)
        return undo


class StalePositionBreaker(LazyBreaker):
    def _recover(self, check: str) -> None:
        Breaker._recover(self, check)
        if not self._failing:
            self._known = None


class BoundedWindowBreaker(Breaker):
    """Reads the position from the last two reports."""

    def __init__(self) -> None:
        super().__init__()
        self._reports: deque[int] = deque([0, 0], maxlen=2)

    def fail(self, check: str) -> Callable[[], None]:
        self._reports.append(1)
        return super().fail(check)

    def _recover(self, check: str) -> None:
        super()._recover(check)
        self._reports.append(0)

    def position(self) -> Circuit:
        return Circuit.OPEN if sum(self._reports) == 2 else Circuit.CLOSED


class ReopeningBreaker(LatchedBreaker):
    """Closes only after as many recoveries as there were failures since it opened."""

    def __init__(self) -> None:
        super().__init__()
        self._owed = 0

    def fail(self, check: str) -> Callable[[], None]:
        undo = super().fail(check)
        if self._position is Circuit.OPEN:
            self._owed += 1
        return undo

    def _recover(self, check: str) -> None:
        super()._recover(check)
        if self._position is Circuit.OPEN:
            self._owed -= 1
            if self._owed == 0:
                self._position = Circuit.CLOSED


class SavedPositionBreaker(CountingBreaker):
    def fail(self, check: str) -> Callable[[], None]:
        before = self._position
        undo = super().fail(check)

        def recover() -> None:
            undo()
            self._position = before

        return recover


def failed(check: str) -> Callable[[Any], Callable[[], None]]:
    return lambda breaker: breaker.fail(check)


BREAKER = Interface(
    "circuit breaker",
    (
        Registration('breaker.fail("ping")', failed("ping")),
        Registration('breaker.fail("disk")', failed("disk")),
        Registration('breaker.fail("queue")', failed("queue")),
    ),
    (("breaker.request()", lambda breaker: breaker.request()),),
    lambda breaker: " ".join(breaker.failing()),
)


def specimens() -> Iterator[Specimen]:
    """Yield all circuit breakers."""
    yield from specimens_of(
        BREAKER,
        (
            Breaker,
            CountingBreaker,
            ListeningBreaker,
            LazyBreaker,
            WindowBreaker,
            StateBreaker,
            ReopeningBreaker,
        ),
        {
            EqualityBreaker: "below the threshold an open circuit stays open",
            LatchedBreaker: "an open circuit never closes",
            ResettingBreaker: "one recovery resets the count of failures",
            RequestCountingBreaker: "a refused request closes the circuit",
            HalfOpenBreaker: "each third refused request is a probe",
            ForgetfulMirrorBreaker: "the listener is called for the first opening only",
            ClampedBreaker: "the count stops at the threshold, and goes down from it",
            StalePositionBreaker: "the kept position survives a recovery",
            BoundedWindowBreaker: "the last two reports decide",
            SavedPositionBreaker: "a recovery restores the position before the failure",
        },
    )
