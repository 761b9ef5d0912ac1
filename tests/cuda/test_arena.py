"""The arena on a device that is made of numbers."""

import gc
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

from everyorder.runtime.errors.tensor import OutOfMemory
from everyorder.runtime.kernels.cuda.arena import (
    GRAIN,
    LARGE_SEGMENT,
    PAGE,
    SMALL,
    SMALL_SEGMENT,
    Arena,
    BlockLease,
    OutOfDeviceMemory,
)


@dataclass
class Segment:
    pointer: int
    size: int


@dataclass
class Mark:
    passed: bool = False

    def query(self) -> bool:
        return self.passed


@dataclass
class Device:
    """A source of `capacity` bytes that remembers what happened."""

    capacity: int = 1 << 40
    given: list[Segment] = field(default_factory=list)
    marks: list[tuple[Any, Mark]] = field(default_factory=list)
    taken: list[int] = field(default_factory=list)
    address: int = 1 << 20

    def take(self, nbytes: int) -> Segment:
        if nbytes > self.capacity:
            raise OutOfDeviceMemory
        self.capacity -= nbytes
        self.taken.append(nbytes)
        segment = Segment(self.address, nbytes)
        self.address += nbytes + PAGE
        return segment

    def give(self, segments: list[Segment]) -> None:
        self.given += segments
        self.capacity += sum(segment.size for segment in segments)

    def free(self) -> int:
        return self.capacity

    def mark(self, stream: Any) -> Mark:
        mark = Mark()
        self.marks.append((stream, mark))
        return mark


def place(lease: BlockLease) -> tuple[int, int]:
    return lease.pointer - (1 << 20), lease.size


def test_small_requests_share_a_segment() -> None:
    device = Device()
    arena = Arena(device, "cuda:0")
    leases = [arena.lend(nbytes, "s") for nbytes in (1, 512, 513, 0)]
    assert [place(lease) for lease in leases] == [
        (0, 512),
        (512, 512),
        (1024, 1024),
        (2048, 512),
    ]
    assert device.taken == [SMALL_SEGMENT]


def test_sizes_of_segments() -> None:
    device = Device()
    arena = Arena(device, "cuda:0")
    kept = [arena.lend(n, "s") for n in (SMALL, SMALL + 1, (25 << 20) + 1)]
    assert device.taken == [SMALL_SEGMENT, LARGE_SEGMENT, 26 << 20]
    assert [lease.size for lease in kept] == [SMALL, SMALL + GRAIN, 26 << 20]


def test_what_comes_back_is_joined_and_lent_again() -> None:
    arena = Arena(Device(), "cuda:0")
    one, two, three = (arena.lend(1024, "s") for _ in range(3))
    at = place(one)[0]
    del one, three
    whole = arena.lend(4096, "s")
    assert place(whole) == (2048, 4096)
    del two
    joined = arena.lend(2048, "s")
    assert place(joined) == (at, 2048)


def test_the_tightest_block_is_taken_and_of_equals_the_lowest() -> None:
    arena = Arena(Device(), "cuda:0")
    leases: list[BlockLease | None] = [
        arena.lend(n, "s") for n in (2048, 512, 1024, 512, 1024)
    ]
    for at in (0, 2, 4):
        leases[at] = None
    # The last one went into what was left of the segment.
    assert place(arena.lend(1024, "s")) == (2560, 1024)


def test_streams_do_not_share_blocks() -> None:
    device = Device()
    arena = Arena(device, "cuda:0")
    first = arena.lend(512, "a")
    at = place(first)[0]
    del first
    other = arena.lend(512, "b")
    assert place(other)[0] != at
    assert place(arena.lend(512, "a"))[0] == at
    assert device.taken == [SMALL_SEGMENT] * 2


def test_a_block_waits_for_the_other_streams_that_used_it() -> None:
    device = Device()
    arena = Arena(device, "cuda:0")
    lease = arena.lend(512, "a")
    at = place(lease)[0]
    lease.used_on("b")
    lease.used_on("b")
    lease.used_on("a")
    del lease
    assert place(arena.lend(512, "a"))[0] != at
    assert [stream for stream, _ in device.marks] == ["b"]
    assert arena.statistics().allocated == 0
    device.marks[0][1].passed = True
    kept = arena.lend(512, "a")
    assert place(kept)[0] == at


def test_the_numbers() -> None:
    arena = Arena(Device(), "cuda:0")
    kept = arena.lend(1000, "s")
    gone = arena.lend(3 << 20, "s")
    del gone
    found = arena.statistics()
    assert (found.allocated, found.max_allocated) == (1024, 1024 + (3 << 20))
    assert found.reserved == found.max_reserved == SMALL_SEGMENT + LARGE_SEGMENT
    assert (found.requests, found.segments, found.taken, found.flushed) == (2, 2, 2, 0)
    assert arena.empty_cache() == LARGE_SEGMENT
    arena.reset_peak()
    found = arena.statistics()
    assert (found.max_allocated, found.max_reserved) == (1024, SMALL_SEGMENT)
    assert (found.segments, found.taken, found.flushed) == (1, 2, 1)
    assert kept.size == 1024


def test_segments_with_a_lent_block_stay() -> None:
    device = Device()
    arena = Arena(device, "cuda:0")
    kept, gone = arena.lend(512, "s"), arena.lend(512, "s")
    del gone
    assert arena.empty_cache() == 0
    assert device.given == []
    del kept
    assert arena.empty_cache() == SMALL_SEGMENT
    assert [segment.size for segment in device.given] == [SMALL_SEGMENT]


def test_the_cache_is_given_back_before_giving_up() -> None:
    device = Device(capacity=22 << 20)
    arena = Arena(device, "cuda:0")
    lease = arena.lend(2 << 20, "s")
    del lease
    assert arena.lend(22 << 20, "s").size == 22 << 20
    assert device.taken == [LARGE_SEGMENT, 22 << 20]


def test_no_memory_says_who_has_it() -> None:
    device = Device(capacity=SMALL_SEGMENT + 1000)
    arena = Arena(device, "cuda:1")
    kept = arena.lend(4096, "s")
    with pytest.raises(OutOfMemory) as caught:
        arena.lend(5 << 20, "s")
    assert caught.value.fields() == {
        "device": "cuda:1",
        "asked": 5 << 20,
        "allocated": 4096,
        "reserved": SMALL_SEGMENT,
        "free": 1000,
    }
    assert str(caught.value) == (
        "`cuda:1` has no room for 5.0 MiB (5242880 bytes).\n"
        "  tensors hold:    4.0 KiB (4096 bytes)\n"
        "  arena holds:     2.0 MiB (2097152 bytes)\n"
        "  device has left: 1000 bytes\n"
        "  to do:           release tensors that are not needed, or work on smaller\n"
        "                   pieces; the cache of the arena is empty already"
    )
    # It still works.
    assert arena.lend(512, "s").size == 512
    assert kept.size == 4096


def test_a_lease_that_dies_while_the_arena_is_locked_does_no_harm() -> None:
    arena = Arena(Device(), "cuda:0")
    ring: list[Any] = [arena.lend(512, "s")]
    ring.append(ring)
    del ring
    with arena._lock:
        gc.collect()
    assert arena.statistics().allocated == 0


def test_threads_never_get_overlapping_blocks() -> None:
    arena = Arena(Device(), "cuda:0")
    lent: list[tuple[int, int]] = []
    faults: list[str] = []
    guard = threading.Lock()

    def work(seed: int) -> None:
        for turn in range(150):
            size = 512 * (1 + (seed * 7 + turn) % 5)
            lease = arena.lend(size, "s")
            span = (lease.pointer, lease.pointer + lease.size)
            with guard:
                if any(low < span[1] and span[0] < high for low, high in lent):
                    faults.append(f"{span} overlaps")
                lent.append(span)
            with guard:
                lent.remove(span)
            del lease

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    assert arena.statistics().allocated == 0
    assert arena.empty_cache() == arena.statistics().max_reserved
