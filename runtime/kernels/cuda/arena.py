"""The arena: device memory is allocated in segments and lent in blocks.

It follows common caching allocators (Bonwick's slabs for the sizes, PyTorch's for the
streams): a request to the driver synchronises the whole device, so segments are cached.

Rules:
- sizes are multiples of `GRAIN`; a small request is served from a segment of
  `SMALL_SEGMENT`, a middle one from `LARGE_SEGMENT`, a larger one from a separate
  segment;
- a block belongs to the stream it was lent on, and is reused on that stream only:
  there, later work runs later.  If other streams used it too (`used_on`), it waits,
  after its return, until events on those streams have passed;
- the best-fitting free block is used, the lowest address among equals; the rest is
  split off; a returned block is joined with its free neighbours;
- if the device has no memory left, all wholly free segments are returned to it and the
  request is repeated once; then `OutOfMemory` is raised;
- finalizers only append to a queue, which the next caller of `lend` drains: they run
  anywhere, and the same thread could already hold a lock that they acquire.

An array keeps its `BlockLease` alive; when it dies, its block is returned. This module
does not know CUDA: `DeviceAllocator` is the device's own allocator.
"""

import threading
from bisect import bisect_left, insort
from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

from everyorder.runtime.errors.tensor import OutOfMemory

# The driver's alignment, which suffices for every vector load.
GRAIN = 512
# Requests up to SMALL use segments of SMALL_SEGMENT, those up to LARGE segments of
# LARGE_SEGMENT (sizes as in PyTorch's allocator: many small ones share).
SMALL, SMALL_SEGMENT = 1 << 20, 2 << 20
LARGE, LARGE_SEGMENT = 10 << 20, 20 << 20
# Larger segments are multiples of this, the driver's page size for device memory.
PAGE = 2 << 20


class OutOfDeviceMemory(Exception):
    """A device has no memory left; only the arena handles this."""


class DeviceAllocator(Protocol):
    """A device's own allocator; `take` raises `OutOfDeviceMemory`."""

    def take(self, nbytes: int) -> Any:
        """Return a segment, with its address as `pointer`."""

    def give(self, segments: list[Any]) -> None:
        """Return segments to the device, after all work on it is done."""

    def free(self) -> int:
        """Return the number of free bytes of the device."""

    def mark(self, stream: Any) -> Any:
        """Return an event, with `query()`, at the current point of a stream."""


@dataclass(frozen=True, slots=True)
class Statistics:
    """Current and peak bytes, and counts of events."""

    allocated: int
    reserved: int
    max_allocated: int
    max_reserved: int
    requests: int
    segments: int
    taken: int
    flushed: int


class MemoryBlock:
    """A run of bytes of one segment; neighbours are linked while they exist."""

    __slots__ = (
        "after",
        "before",
        "free",
        "offset",
        "others",
        "segment",
        "size",
        "small",
        "stream",
    )

    def __init__(
        self, segment: Any, offset: int, size: int, stream: Any, small: bool
    ) -> None:
        self.segment = segment
        self.offset = offset
        self.size = size
        self.stream = stream
        self.small = small
        self.free = False
        self.before: MemoryBlock | None = None
        self.after: MemoryBlock | None = None
        self.others: list[Any] = []

    @property
    def pointer(self) -> int:
        """Return the address of the first byte."""
        return int(self.segment.pointer) + self.offset

    def __lt__(self, other: "MemoryBlock") -> bool:
        return (self.size, self.pointer) < (other.size, other.pointer)


class BlockLease:
    """The lease of a block, which is returned when the last reference is gone."""

    __slots__ = ("__weakref__", "_arena", "block")

    def __init__(self, arena: "Arena", block: MemoryBlock) -> None:
        self._arena = arena
        self.block = block

    @property
    def pointer(self) -> int:
        """Return the address of the first byte."""
        return self.block.pointer

    @property
    def size(self) -> int:
        """Return the bytes lent; at least the requested number."""
        return self.block.size

    def used_on(self, stream: Any) -> None:
        """Record that another stream uses the block, too."""
        self._arena.used_on(self.block, stream)

    def __del__(self) -> None:
        self._arena.returned.append(self.block)


class Arena:
    """The memory of one device; safe to use from all threads."""

    def __init__(self, source: DeviceAllocator, name: str) -> None:
        self.name = name
        # Blocks whose leases died: filled by finalizers, drained under the lock.
        self.returned: deque[MemoryBlock] = deque()
        self._source = source
        self._lock = threading.Lock()
        self._free: dict[tuple[Any, bool], list[MemoryBlock]] = {}
        self._waiting: list[tuple[MemoryBlock, list[Any]]] = []
        self._allocated = self._reserved = 0
        self._peak_allocated = self._peak_reserved = 0
        self._requests = self._segments = self._taken = self._flushed = 0

    def lend(self, nbytes: int, stream: Any) -> BlockLease:
        """Lend a block of at least `nbytes` on a stream.  Raises `OutOfMemory`."""
        size = -(-max(nbytes, 1) // GRAIN) * GRAIN
        with self._lock:
            self._drain()
            small = size <= SMALL
            block = self._fitting(size, stream, small) or self._fresh(
                nbytes, size, stream, small
            )
            block.free = False
            self._split(block, size)
            self._requests += 1
            self._allocated += block.size
            self._peak_allocated = max(self._peak_allocated, self._allocated)
            return BlockLease(self, block)

    def used_on(self, block: MemoryBlock, stream: Any) -> None:
        """Record that a stream other than the block's own uses it."""
        with self._lock:
            if stream is not block.stream and stream not in block.others:
                block.others.append(stream)

    def empty_cache(self) -> int:
        """Return wholly free segments to the device; return their total bytes."""
        with self._lock:
            self._drain()
            return self._flush()

    def reset_peak(self) -> None:
        """Set the peak values to the current ones."""
        with self._lock:
            self._drain()
            self._peak_allocated = self._allocated
            self._peak_reserved = self._reserved

    def statistics(self) -> Statistics:
        """Return all numbers at once, after returned blocks were processed."""
        with self._lock:
            self._drain()
            return Statistics(
                allocated=self._allocated,
                reserved=self._reserved,
                max_allocated=self._peak_allocated,
                max_reserved=self._peak_reserved,
                requests=self._requests,
                segments=self._segments,
                taken=self._taken,
                flushed=self._flushed,
            )

    def _drain(self) -> None:
        while self.returned:
            block = self.returned.popleft()
            self._allocated -= block.size
            if block.others:
                events = [self._source.mark(stream) for stream in block.others]
                block.others = []
                self._waiting.append((block, events))
            else:
                self._release(block)
        if self._waiting:
            waiting, self._waiting = self._waiting, []
            for block, events in waiting:
                if all(event.query() for event in events):
                    self._release(block)
                else:
                    self._waiting.append((block, events))

    def _fitting(self, size: int, stream: Any, small: bool) -> MemoryBlock | None:
        pool = self._free.get((stream, small), [])
        at = bisect_left(pool, size, key=lambda block: block.size)
        return pool.pop(at) if at < len(pool) else None

    def _fresh(
        self, requested: int, size: int, stream: Any, small: bool
    ) -> MemoryBlock:
        if small:
            length = SMALL_SEGMENT
        elif size <= LARGE:
            length = LARGE_SEGMENT
        else:
            length = -(-size // PAGE) * PAGE
        segment = self._take(length)
        if segment is None:
            self._flush()
            segment = self._take(length)
        if segment is None:
            raise OutOfMemory(
                device=self.name,
                asked=requested,
                allocated=self._allocated,
                reserved=self._reserved,
                free=self._source.free(),
            )
        self._reserved += length
        self._peak_reserved = max(self._peak_reserved, self._reserved)
        self._segments += 1
        self._taken += 1
        return MemoryBlock(segment, 0, length, stream, small)

    def _take(self, length: int) -> Any:
        try:
            return self._source.take(length)
        except OutOfDeviceMemory:
            return None

    def _split(self, block: MemoryBlock, size: int) -> None:
        # A large block keeps a rest that is too small for a large request.
        if block.size - size < (GRAIN if block.small else SMALL + 1):
            return
        rest = MemoryBlock(
            block.segment,
            block.offset + size,
            block.size - size,
            block.stream,
            block.small,
        )
        block.size = size
        rest.before, rest.after = block, block.after
        if rest.after is not None:
            rest.after.before = rest
        block.after = rest
        self._pool(rest)

    def _release(self, block: MemoryBlock) -> None:
        before, after = block.before, block.after
        if after is not None and after.free:
            self._unpool(after)
            _join(block, after)
        if before is not None and before.free:
            self._unpool(before)
            _join(before, block)
            block = before
        self._pool(block)

    def _pool(self, block: MemoryBlock) -> None:
        block.free = True
        insort(self._free.setdefault((block.stream, block.small), []), block)

    def _unpool(self, block: MemoryBlock) -> None:
        pool = self._free[block.stream, block.small]
        del pool[bisect_left(pool, block)]

    def _flush(self) -> int:
        gone: list[MemoryBlock] = []
        for key, pool in self._free.items():
            whole = [b for b in pool if b.before is None and b.after is None]
            gone += whole
            self._free[key] = [b for b in pool if b not in whole]
        if gone:
            self._source.give([block.segment for block in gone])
        freed = sum(block.size for block in gone)
        self._reserved -= freed
        self._segments -= len(gone)
        self._flushed += len(gone)
        return freed


def _join(first: MemoryBlock, second: MemoryBlock) -> None:
    """Merge the block directly after the first into it."""
    first.size += second.size
    first.after = second.after
    if second.after is not None:
        second.after.before = first
