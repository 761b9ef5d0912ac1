"""Schedulers: jobs by the time of their next run, the earliest first, then by name.

`due(time)` lists the jobs that run until then.  The time is an argument, so that
nothing depends on a clock.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from tests.zoo.realistic.specimen import (
    Interface,
    Registration,
    Specimen,
    specimens_of,
)


class Scheduler:
    """Sorts the jobs when it is asked."""

    def __init__(self) -> None:
        self._jobs: dict[str, int] = {}

    def add(self, name: str, time: int) -> Callable[[], None]:
        self._jobs[name] = time
        return lambda: self._cancel(name)

    def _cancel(self, name: str) -> None:
        del self._jobs[name]

    def due(self, time: int) -> list[str]:
        jobs = sorted((when, name) for name, when in self._jobs.items())
        return [name for when, name in jobs if when <= time]

    def size(self) -> int:
        return len(self._jobs)


class SortedScheduler(Scheduler):
    """Keeps a sorted list of times and names."""

    def __init__(self) -> None:
        super().__init__()
        self._queue: list[tuple[int, str]] = []

    def add(self, name: str, time: int) -> Callable[[], None]:
        insort(self._queue, (time, name))
        return super().add(name, time)

    def _cancel(self, name: str) -> None:
        entry = (self._jobs.pop(name), name)
        del self._queue[bisect_left(self._queue, entry)]

    def due(self, time: int) -> list[str]:
        return [name for when, name in self._queue if when <= time]


class HeapScheduler(Scheduler):
    """Has a heap; a cancelled job leaves it, and the heap is restored."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, str]] = []

    def add(self, name: str, time: int) -> Callable[[], None]:
        heapq.heappush(self._heap, (time, name))
        return super().add(name, time)

    def _cancel(self, name: str) -> None:
        self._heap.remove((self._jobs.pop(name), name))
        heapq.heapify(self._heap)

    def due(self, time: int) -> list[str]:
        heap, names = list(self._heap), []
        while heap and heap[0][0] <= time:
            names.append(heapq.heappop(heap)[1])
        return names


class TombstoneScheduler(Scheduler):
    """Leaves cancelled jobs in the heap until they are on top."""

    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, str, int]] = []
        self._live: dict[str, int] = {}
        self._cancelled = 0

    def add(self, name: str, time: int) -> Callable[[], None]:
        entry = (time, name, self._number(name))
        self._live[name] = entry[2]
        heapq.heappush(self._heap, entry)
        return super().add(name, time)

    def _number(self, name: str) -> int:
        taken = {number for _, other, number in self._heap if other == name}
        return next(number for number in count() if number not in taken)

    def _cancel(self, name: str) -> None:
        del self._jobs[name], self._live[name]
        self._cancelled += 1
        if self._cancelled * 2 > len(self._heap):
            self._compact()

    def _compact(self) -> None:
        self._heap = [each for each in self._heap if self._is_live(each)]
        heapq.heapify(self._heap)
        self._cancelled = 0

    def _is_live(self, entry: tuple[int, str, int]) -> bool:
        return self._live.get(entry[1]) == entry[2]

    def due(self, time: int) -> list[str]:
        live = sorted(entry for entry in self._heap if self._is_live(entry))
        return [name for when, name, _ in live if when <= time]


class BucketScheduler(Scheduler):
    """Has a bucket for each time; an empty bucket is removed."""

    def __init__(self) -> None:
        super().__init__()
        self._buckets: dict[int, set[str]] = {}

    def add(self, name: str, time: int) -> Callable[[], None]:
        self._buckets.setdefault(time, set()).add(name)
        return super().add(name, time)

    def _cancel(self, name: str) -> None:
        time = self._jobs.pop(name)
        self._buckets[time].discard(name)
        if not self._buckets[time]:
            del self._buckets[time]

    def due(self, time: int) -> list[str]:
        return [
            name
            for when in sorted(self._buckets)
            if when <= time
            for name in sorted(self._buckets[when])
        ]

    def size(self) -> int:
        return len(self._buckets)


class WakeScheduler(Scheduler):
    """Caches the time of the first run, and finds it again if that job leaves."""

    def __init__(self) -> None:
        super().__init__()
        self._wake: int | None = None

    def add(self, name: str, time: int) -> Callable[[], None]:
        if self._wake is None or time < self._wake:
            self._wake = time
        return super().add(name, time)

    def _cancel(self, name: str) -> None:
        time = self._jobs.pop(name)
        if time == self._wake:
            self._wake = min(self._jobs.values(), default=None)

    def due(self, time: int) -> list[str]:
        if self._wake is None or self._wake > time:
            return []
        return super().due(time)


class CountedTiesScheduler(Scheduler):
    def __init__(self) -> None:
        super().__init__()
        self._heap: list[tuple[int, int, str]] = []

    def add(self, name: str, time: int) -> Callable[[], None]:
        heapq.heappush(self._heap, (time, len(self._heap), name))
        return super().add(name, time)

    def _cancel(self, name: str) -> None:
        del self._jobs[name]
        self._heap = [entry for entry in self._heap if entry[2] != name]
        heapq.heapify(self._heap)

    def due(self, time: int) -> list[str]:
        return [name for when, _, name in sorted(self._heap) if when <= time]


class UnheapedScheduler(HeapScheduler):
    def _cancel(self, name: str) -> None:
        position = self._heap.index((self._jobs.pop(name), name))
        last = self._heap.pop()
        if position < len(self._heap):
            self._heap[position] = last

    def due(self, time: int) -> list[str]:
        if self._heap and self._heap[0][0] > time:
            return []
        return super().due(time)


class RevivedScheduler(TombstoneScheduler):
    def _number(self, name: str) -> int:
        return 0


class LateWakeScheduler(WakeScheduler):
    """Wakes too early after a cancellation, which does not show."""

    def _cancel(self, name: str) -> None:
        del self._jobs[name]
        if not self._jobs:
            self._wake = None


class ForgottenWakeScheduler(WakeScheduler):
    def _cancel(self, name: str) -> None:
        time = self._jobs.pop(name)
        if time == self._wake:
            self._wake = max(self._jobs.values(), default=None)


class LeftBucketScheduler(BucketScheduler):
    def _cancel(self, name: str) -> None:
        self._buckets[self._jobs.pop(name)].discard(name)


class SharedBucketScheduler(BucketScheduler):
    def _cancel(self, name: str) -> None:
        self._buckets.pop(self._jobs.pop(name), None)


class EarlierScheduler(SortedScheduler):
    def _cancel(self, name: str) -> None:
        position = bisect_left(self._queue, (self._jobs.pop(name), ""))
        del self._queue[position]


class ConsumingScheduler(HeapScheduler):
    def due(self, time: int) -> list[str]:
        names = []
        while self._heap and self._heap[0][0] <= time:
            names.append(heapq.heappop(self._heap)[1])
        return names

    def _cancel(self, name: str) -> None:
        self._jobs.pop(name)
        self._heap = [entry for entry in self._heap if entry[1] != name]
        heapq.heapify(self._heap)


class CompactingScheduler(TombstoneScheduler):
    def _compact(self) -> None:
        super()._compact()
        # The jobs of the first time only are kept up to date.
        first = self._heap[:1]
        self._heap = [e for e in self._heap if not first or e[0] <= first[0][0] + 1]


class BorrowedTimeScheduler(Scheduler):
    def add(self, name: str, time: int) -> Callable[[], None]:
        # Two jobs never run at the same time.
        while time in self._jobs.values():
            time += 1
        return super().add(name, time)


def scheduled(name: str, time: int) -> Callable[[Any], Callable[[], None]]:
    return lambda scheduler: scheduler.add(name, time)


SCHEDULER = Interface(
    "scheduler",
    (
        Registration('scheduler.add("backup", 5)', scheduled("backup", 5)),
        Registration('scheduler.add("mail", 5)', scheduled("mail", 5)),
        Registration('scheduler.add("clean", 2)', scheduled("clean", 2)),
        Registration('scheduler.add("vacuum", 9)', scheduled("vacuum", 9)),
    ),
    (("scheduler.due(6)", lambda scheduler: scheduler.due(6)),),
    lambda scheduler: f"{scheduler.size()} jobs",
)


def specimens() -> Iterator[Specimen]:
    """Yield all schedulers."""
    yield from specimens_of(
        SCHEDULER,
        (
            Scheduler,
            SortedScheduler,
            HeapScheduler,
            TombstoneScheduler,
            BucketScheduler,
            WakeScheduler,
            LateWakeScheduler,
        ),
        {
            CountedTiesScheduler: "jobs of one time run in the order of adding",
            UnheapedScheduler: "a job leaves the heap, which is not restored",
            RevivedScheduler: "adding a job again revives its tombstone",
            ForgottenWakeScheduler: "the last job of all is waited for",
            LeftBucketScheduler: "an empty bucket is counted",
            SharedBucketScheduler: "a job takes the others of its time with it",
            EarlierScheduler: "cancelling takes the first job of that time",
            ConsumingScheduler: "asking for the jobs removes them",
            CompactingScheduler: "compacting loses later jobs",
            BorrowedTimeScheduler: "a job is put off if its time is taken",
        },
    )
