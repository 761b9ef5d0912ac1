"""Shared memory for large buffers between processes of one machine.

    LentBlocks, MappedBlocks    blocks lent to other processes, and borrowed from them
    BufferSharing               lends buffers of payloads, and returns borrowed blocks

The lender copies a buffer into a block, an anonymous file in memory, and sends a token;
the borrower maps the block, and reads it without copying.

A block is a `memfd` of a fixed size.  The borrower opens it through the lender's open
files, `/proc/PID/fd/N`, which the kernel allows to the same user only, and accepts it
if the kind of file, its owner, number, size and seals and the random number at its
beginning match the token.  It maps the block privately: it may write, and other
processes do not see the change.

Rules of blocks:
- the memory of a block is allocated before it is written (`posix_fallocate`) and cannot
  shrink (`F_SEAL_SHRINK`), so an access to it never kills a process;
- a returned block is lent again: fresh memory costs three times as much;
- a block is lent to one peer at a time; a block that was lent to a lost peer is closed,
  and never lent again, as that peer may be alive and still read it;
- all blocks together have at most `most` bytes, and free ones at most `idle`; if a
  block cannot be allocated, buffers are sent as frames instead;
- when the last view of a block dies, its token is put into a queue, and no other work
  is done, as that happens inside of arbitrary code; the token of a block that cannot be
  mapped is queued too, as it would never be returned otherwise;
- without `memfd` and `/proc` (systems other than Linux) blocks are not lent.

Rules of payloads:
- a payload of several frames ends with an additional frame, which lists the frames that
  are tokens; a payload of a single frame is unchanged;
- the first large buffer to a peer is sent as a frame, and a request asks if that peer
  can open the blocks of this worker; when the last view of a block dies, its number is
  returned by a request.  These requests are recognised by the last byte of their only
  frame, which payloads of values do not use;
- lent bytes count towards the limits of sizes like sent bytes.
"""

import errno
import fcntl
import mmap
import os
import stat
from collections import defaultdict, deque
from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from struct import Struct
from typing import Generic, TypeAlias, TypeVar
from weakref import finalize

import numpy as np

from everyorder.runtime.base.locks import renewed
from everyorder.runtime.errors.rpc import BlockGone, Undecodable
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.protocol.identities import WorkerNode
from everyorder.runtime.rpc.transport.interface import Buffer, closed_in_child, flat

# In bytes: larger buffers are lent; mapping a block costs as much as sending this many.
WORTH = 256 * 1024
# Bytes of all blocks of a process, and of those that wait to be lent again.
MOST, IDLE = 2 << 30, 256 << 20

_PAGE = mmap.PAGESIZE
_NAME = "everyorder-rpc"
# Bytes of the random number at the beginning; the buffer begins at the next page.
_NONCE = 16
# Process, file, lending, device, inode, bytes of the block, bytes lent, random number.
_TOKEN = Struct(f"<IIQQQQQ{_NONCE}s")
_SEALS = ("F_SEAL_SHRINK", "F_SEAL_GROW", "F_SEAL_SEAL")
# Since Linux 6.3 (`linux/memfd.h`); Python does not define it.
_MFD_NOEXEC_SEAL = 0x8

# Errors of an exhausted resource of this process.
_FULL = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}

# The memory limit of this process's control group, of version 2 and of version 1.  A
# process that exceeds it is killed, however much memory the machine has.
_GROUPS = (
    ("/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"),
    (
        "/sys/fs/cgroup/memory",
        *("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ),
)

SUPPORTED = hasattr(os, "memfd_create") and all(hasattr(fcntl, s) for s in _SEALS)

PeerT = TypeVar("PeerT", bound=Hashable)


def _seals() -> int:
    return sum(int(getattr(fcntl, each)) for each in _SEALS)


def _class_of(size: int) -> int:
    """Return the block size in bytes for a buffer: pages, in steps of at most an
    eighth.
    """
    pages = -(-size // _PAGE) + 1
    step = 1 << max(0, pages.bit_length() - 4)
    return -(-pages // step) * step * _PAGE


def _figure(path: str, name: str) -> int:
    """Return a number of a file with lines `name number`; 0 if the name is missing."""
    with open(path, encoding="ascii") as file:
        for line in file:
            first, *rest = line.replace(":", " ").split()
            if first == name:
                return int(rest[0])
    return 0


def _available() -> int:
    """Return the available memory in bytes; 0 if it is unknown."""
    # The process may have too many open files.
    try:
        available = _figure("/proc/meminfo", "MemAvailable") * 1024
    except OSError:
        return 0
    for folder, limit, usage, idle in _GROUPS:
        # Without a limit the file holds a word, or a huge number.
        with suppress(OSError, ValueError):
            most = int(Path(folder, limit).read_text("ascii"))
            used = int(Path(folder, usage).read_text("ascii"))
            used -= _figure(f"{folder}/memory.stat", idle)
            available = min(available, max(0, most - used))
    return available


@dataclass(slots=True, eq=False)
class _Block:
    """A block of this process: its file, and its memory."""

    file: int
    memory: mmap.mmap
    nonce: bytes
    size: int

    @classmethod
    def of(cls, size: int) -> "_Block":
        """Return a new block.

        Raises:
            OSError: the memory, or the number of open files, is exhausted.
        """
        flags = os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING
        try:
            file = os.memfd_create(_NAME, flags | _MFD_NOEXEC_SEAL)
        except OSError:
            file = os.memfd_create(_NAME, flags)
        try:
            os.posix_fallocate(file, 0, size)
            fcntl.fcntl(file, fcntl.F_ADD_SEALS, _seals())
            memory = mmap.mmap(file, size)
        except BaseException:
            os.close(file)
            raise
        nonce = os.urandom(_NONCE)
        memory[:_NONCE] = nonce
        return cls(file, memory, nonce, size)

    def fill(self, buffer: Buffer) -> None:
        """Copy a buffer after the first page; other threads run during the copy."""
        target = np.frombuffer(self.memory, np.uint8, len(buffer), _PAGE)
        np.copyto(target, np.frombuffer(buffer, np.uint8))

    def token(self, lending: int, length: int) -> bytes:
        """Return the token by which the borrower finds and verifies the block."""
        status = os.fstat(self.file)
        return _TOKEN.pack(
            os.getpid(),
            self.file,
            lending,
            status.st_dev,
            status.st_ino,
            self.size,
            length,
            self.nonce,
        )

    def close(self) -> None:
        """Close it; a process that has mapped it keeps the memory."""
        os.close(self.file)
        # After a fork, the child may have a buffer of a copy that only the parent
        # continues.
        with suppress(BufferError):
            self.memory.close()


class LentBlocks(Generic[PeerT]):
    """The blocks that this process lends, each to a `peer`."""

    def __init__(self, *, most: int = MOST, idle: int = IDLE) -> None:
        self.most = most
        self.idle = idle
        self._lock = renewed()
        self._free: list[_Block] = []
        self._lent: dict[int, tuple[PeerT, _Block]] = {}
        self._lendings = 0
        self._bytes = 0
        self._peak = 0
        self._sample: _Block | None = None
        closed_in_child(self)

    def sample(self) -> bytes:
        """Return the token of an empty block: a peer that can open it, can open all.

        Return b"" if blocks cannot be allocated.
        """
        with self._lock:
            if self._sample is None and SUPPORTED:
                try:
                    self._sample = _Block.of(_class_of(0))
                except OSError:
                    return b""
            return b"" if self._sample is None else self._sample.token(0, 0)

    def lend(self, buffers: Sequence[Buffer], peer: PeerT) -> list[bytes] | None:
        """Copy buffers into blocks and return their tokens; None if not all of them
        fit.
        """
        flats = [flat(each) for each in buffers]
        blocks: list[_Block] = []
        # A block that is not in `_lent` yet belongs to this thread.
        try:
            for each in flats:
                block = self._take(len(each))
                if block is None:
                    self._release(blocks)
                    return None
                blocks.append(block)
                block.fill(each)
        except BaseException:
            self._release(blocks)
            raise
        tokens = []
        with self._lock:
            for block, each in zip(blocks, flats, strict=True):
                self._lendings += 1
                self._lent[self._lendings] = peer, block
                tokens.append(block.token(self._lendings, len(each)))
        return tokens

    def _release(self, blocks: list[_Block]) -> None:
        with self._lock:
            self._free += blocks
            self._trim(self.idle)

    def returned(self, lending: int, peer: PeerT) -> bool:
        """Accept a block from its borrower; return False if it was not lent to it."""
        with self._lock:
            if self._lent.get(lending, (None, None))[0] != peer:
                return False
            _, block = self._lent.pop(lending)
            self._free.append(block)
            self._trim(self.idle)
        return True

    def lost(self, peer: PeerT) -> None:
        """Close the blocks that were lent to a lost peer."""
        with self._lock:
            for lending, (borrower, block) in [*self._lent.items()]:
                if borrower == peer:
                    del self._lent[lending]
                    self._close(block)

    def counts(self) -> dict[str, int]:
        """Return the bytes of all blocks, now and at most, and the lent and free
        blocks.
        """
        with self._lock:
            return {
                "bytes": self._bytes,
                "peak": self._peak,
                "lent": len(self._lent),
                "free": len(self._free),
            }

    def close(self) -> None:
        """Close all blocks; lent ones stay mapped at their borrowers."""
        with self._lock:
            for block in (*self._free, *(block for _, block in self._lent.values())):
                self._close(block)
            if self._sample is not None:
                self._sample.close()
                self._sample = None
            self._free.clear()
            self._lent.clear()
            # From now on no buffer fits.
            self.most = -1

    def in_child(self) -> None:
        """Close the child's copies of the files; the parent's stay open."""
        self.close()

    def _take(self, length: int) -> _Block | None:
        """Return a block of that size, owned by the caller; None if there is none."""
        size = _class_of(length)
        with self._lock:
            fitting = [each for each in self._free if size <= each.size <= 2 * size]
            if fitting:
                block = min(fitting, key=lambda each: each.size)
                self._free.remove(block)
                return block
            if not SUPPORTED or self.most < size:
                return None
            self._trim(min(self.idle, self.most - size - self._lent_bytes()))
            if self._bytes + size > self.most or size > _available() // 4:
                return None
            self._bytes += size
        try:
            block = _Block.of(size)
        except OSError:
            with self._lock:
                self._bytes -= size
            return None
        with self._lock:
            self._peak = max(self._peak, self._bytes)
        return block

    def _lent_bytes(self) -> int:
        return self._bytes - sum(each.size for each in self._free)

    def _trim(self, most: int) -> None:
        """Close free blocks, the oldest first, down to `most` bytes."""
        waiting = sum(each.size for each in self._free)
        while self._free and waiting > most:
            block = self._free.pop(0)
            waiting -= block.size
            self._close(block)

    def _close(self, block: _Block) -> None:
        self._bytes -= block.size
        block.close()


class MappedBlocks(Generic[PeerT]):
    """The blocks of other processes that this process has mapped."""

    def __init__(self) -> None:
        self._dead: deque[tuple[PeerT, int]] = deque()

    def reaches(self, sample: Buffer) -> bool:
        """Return True if this process can open the blocks of the sender of a sample."""
        try:
            os.close(_open_block(sample)[0])
        except BlockGone:
            return False
        return True

    def open(self, token: Buffer, lender: PeerT) -> memoryview:
        """Map a block and return the lent bytes; writing to them is private.

        Raises:
            BlockGone: the block does not exist any more, never did, or cannot be
                opened.
        """
        try:
            return self._map(token, lender)
        except BlockGone as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _FULL:
                self._dead.append((lender, _TOKEN.unpack(token)[2]))
            raise

    def _map(self, token: Buffer, lender: PeerT) -> memoryview:
        file, lending, length = _open_block(token)
        try:
            memory = mmap.mmap(
                file,
                _PAGE + length,
                flags=mmap.MAP_PRIVATE,
                prot=mmap.PROT_READ | mmap.PROT_WRITE,
            )
        except (OSError, ValueError) as error:
            raise BlockGone(why=f"it cannot be mapped: {error}") from error
        finally:
            os.close(file)
        finalize(memory, self._dead.append, (lender, lending)).atexit = False
        return memoryview(memory)[_PAGE:]

    def waiting(self) -> bool:
        """Return True if blocks wait to be returned."""
        return bool(self._dead)

    def take_returns(self) -> list[tuple[PeerT, int]]:
        """Return lenders and lendings whose last view has died since the last call."""
        dead = self._dead
        # Finalizers may append in the meantime.
        return [dead.popleft() for _ in range(len(dead))]


def _open_block(token: Buffer) -> tuple[int, int, int]:
    """Open the file of a block; return it with the lending and its bytes.

    Raises:
        BlockGone: the file is not the lent block.
    """
    if not SUPPORTED or len(token) != _TOKEN.size:
        raise BlockGone(why="malformed block token")
    pid, number, lending, device, inode, size, length, nonce = _TOKEN.unpack(token)
    path = f"/proc/{pid}/fd/{number}"
    expected = device, inode, size
    try:
        # Before opening, which may have effects on devices and pipes.
        _check(os.stat(path), expected)
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        file = os.open(path, flags)
    except BlockGone:
        raise
    except OSError as error:
        why = f"the lender has closed it, or is closed to this process: {error}"
        raise BlockGone(why=why) from error
    try:
        _check(os.fstat(file), expected)
        try:
            sealed = fcntl.fcntl(file, fcntl.F_GET_SEALS)
        except OSError:
            sealed = 0
        if sealed & _seals() != _seals() or length > size - _PAGE:
            raise BlockGone(why="its size is not that of a block")
        if os.pread(file, _NONCE, 0) != nonce:
            raise BlockGone(why="another block is in its place")
    except BaseException:
        os.close(file)
        raise
    return file, lending, length


def _check(status: os.stat_result, expected: tuple[int, int, int]) -> None:
    identity = status.st_dev, status.st_ino, status.st_size
    if not stat.S_ISREG(status.st_mode) or identity != expected:
        raise BlockGone(why="another file is in its place")
    if status.st_uid != os.geteuid():
        raise BlockGone(why=f"it belongs to the user {status.st_uid}")


# The last bytes of requests; those of values are small.
SAMPLE, RETURNS = 0xF0, 0xF1
_KINDS = (bytes((SAMPLE,)), bytes((RETURNS,)))
_PLACE = Struct("<I")
_NUMBER = Struct("<Q")
# Lists no tokens.
_NONE = b""

Payload: TypeAlias = Sequence[Buffer]
Ask: TypeAlias = Callable[[WorkerNode, bytes], Future[Payload]]


def _bytes(buffer: Buffer) -> int:
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)


class BufferSharing:
    """Lending and borrowing of one worker; `largest` limits a payload, in bytes.

    `me` is its incarnation; `ask` sends a request, whose answer is a payload.  Without
    `enabled` it does not lend.
    """

    def __init__(self, me: int, ask: Ask, *, enabled: bool, largest: int) -> None:
        self._me = me
        self._ask = ask
        self._largest = largest
        self._enabled = enabled
        self._blocks: LentBlocks[WorkerNode] = LentBlocks()
        self._borrowed: MappedBlocks[WorkerNode] = MappedBlocks()
        # True if a peer can open blocks of this worker; None until it has answered.
        self._reaches: dict[WorkerNode, bool | None] = {}

    def outgoing(self, to: WorkerNode, payload: Payload) -> Payload:
        """Return a payload for a peer, with large buffers lent if possible."""
        if len(payload) == 1:
            return payload
        # Return borrowed blocks first, so that peers can reuse theirs.
        self.give_back()
        if not self._enabled or to.incarnation == self._me:
            return [*payload, _NONE]
        places = [n for n, each in enumerate(payload) if n and _bytes(each) >= WORTH]
        if not places or not self._may_lend(to):
            return [*payload, _NONE]
        if sum(map(_bytes, payload)) > self._largest:
            # The session refuses it.
            return payload
        tokens = self._blocks.lend([payload[n] for n in places], to)
        if tokens is None:
            return [*payload, _NONE]
        sent = [*payload]
        for place, token in zip(places, tokens, strict=True):
            sent[place] = token
        return [*sent, b"".join(map(_PLACE.pack, places))]

    def incoming(self, peer: WorkerNode, payload: Payload) -> Payload:
        """Return a payload of a peer, with all its buffers.

        Raises:
            BlockGone: a lent block cannot be opened; the others are returned.
            Undecodable: it is malformed, or larger than this worker accepts.
        """
        if len(payload) < 2:
            return payload
        mark = bytes(payload[-1])
        frames = [*payload[:-1]]
        if not mark:
            return frames
        if len(mark) % _PLACE.size:
            raise Undecodable(
                found="A payload", reason="its list of tokens is truncated"
            )
        gone: BlockGone | None = None
        for (place,) in _PLACE.iter_unpack(mark):
            if not 0 < place < len(frames):
                raise Undecodable(
                    found="A payload", reason="it lacks a frame for a token"
                )
            try:
                frames[place] = self._borrowed.open(frames[place], peer)
            except BlockGone as error:
                # Open the others in any case: dropping a view returns the block.
                gone = gone or error
        if gone is not None:
            try:
                raise gone
            finally:
                # The traceback would keep the views.
                del gone, frames
        if sum(map(_bytes, frames)) > self._largest:
            raise Undecodable(found="A payload", reason="it is too large")
        return frames

    def drop(self, peer: WorkerNode, payload: Payload) -> None:
        """Return the blocks of a payload that is not read."""
        if len(payload) > 1 and payload[-1]:
            # The lender may have ended, or sent garbage: then there is no block to
            # return.
            with suppress(BlockGone, Undecodable):
                self.incoming(peer, payload)

    def _may_lend(self, to: WorkerNode) -> bool:
        reaches = self._reaches.get(to)
        if reaches is None and to not in self._reaches:
            self._reaches[to] = None
            sample = self._blocks.sample()
            if sample:
                answer = self._ask(to, sample + bytes((SAMPLE,)))
                answer.add_done_callback(lambda answer: self._learn_reach(to, answer))
        return bool(reaches)

    def _learn_reach(self, to: WorkerNode, answer: Future[Payload]) -> None:
        if answer.error() is None:
            self._reaches[to] = bytes(answer.value()[0]) == b"\1"

    # Requests about memory.

    def is_request(self, payload: Payload) -> bool:
        """Return True if a request is about lending."""
        return len(payload) == 1 and bytes(payload[0][-1:]) in _KINDS

    def answer(self, peer: WorkerNode, payload: Payload) -> bytes:
        """Answer a request about lending."""
        request = bytes(payload[0])
        body, kind = request[:-1], request[-1]
        if kind == SAMPLE:
            return b"\1" if self._borrowed.reaches(body) else b"\0"
        if len(body) % _NUMBER.size == 0:
            for (lending,) in _NUMBER.iter_unpack(body):
                self._blocks.returned(lending, peer)
        return b"\1"

    def give_back(self) -> None:
        """Return blocks without views; called with each payload, and periodically."""
        returns = self._borrowed.take_returns()
        if not returns:
            return
        lenders: defaultdict[WorkerNode, list[int]] = defaultdict(list)
        for peer, lending in returns:
            lenders[peer].append(lending)
        for peer, lendings in lenders.items():
            body = b"".join(map(_NUMBER.pack, lendings))
            self._ask(peer, body + bytes((RETURNS,)))

    def has_returns(self) -> bool:
        """Return True if `give_back` would return blocks."""
        return self._borrowed.waiting()

    def lost(self, peer: WorkerNode) -> None:
        """Forget a lost peer, and close the blocks that it borrowed."""
        self._reaches.pop(peer, None)
        self._blocks.lost(peer)

    def counts(self) -> dict[str, int]:
        """Return the bytes of shared memory, and the counts of lent and free blocks."""
        return self._blocks.counts()

    def close(self) -> None:
        """Close all blocks; borrowers keep their mappings."""
        self._blocks.close()
