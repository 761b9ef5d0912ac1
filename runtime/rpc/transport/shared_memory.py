"""Blocks: shared memory for large buffers between processes of one machine.

    Blocks, Borrowed    memory that is lent to others, and borrowed from them
    Lending             which buffers of a payload are lent, and how they come back

The lender copies a buffer into a block, a file in memory without a name, and sends a
token; the borrower maps the block, and reads it without copying.

A block is a `memfd` of a fixed size.  The borrower opens it by way of the lender's open
files, `/proc/PID/fd/N`, which the kernel allows to the same user only, and accepts it
if the kind of file, its owner, number, size and seals and the random number at its
beginning are those of the token.  It maps the block privately: it may write, and no
other process sees that.

Rules of blocks:
- the memory of a block is allocated before it is written (`posix_fallocate`) and cannot
  shrink (`F_SEAL_SHRINK`), so no access to it kills a process;
- a returned block is lent again: fresh memory costs three times as much;
- a block is lent to one peer at a time; a block that was lent to a lost peer is closed,
  and never lent again, as that peer may live and read it still;
- all blocks together have at most `most` bytes, and free ones at most `idle`; where a
  block cannot be had, nothing is lent, and buffers travel as frames;
- when the last view of a block dies, its token is put into a queue, and nothing else is
  done, as that happens inside of arbitrary code; so is the token of a block that cannot
  be mapped, as nobody else would return it;
- without `memfd` and `/proc` (systems other than Linux) nothing is lent.

Rules of payloads:
- a payload of several frames ends with one more, which lists the frames that are
  tokens; a payload of a single frame is unchanged;
- the first large buffer to a peer travels as a frame, and a request asks whether that
  peer can open the blocks of this worker; when the last view of a block dies, its
  number is returned by a request.  These requests are recognised by the last byte of
  their only frame, which payloads of values do not use;
- lent bytes count towards the limits of sizes as if they were sent.
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

# Larger buffers are lent: mapping a block costs as much as sending so much.
WORTH = 256 * 1024
# Bytes of all blocks of a process, and of those that wait to be lent again.
MOST, IDLE = 2 << 30, 256 << 20

_PAGE = mmap.PAGESIZE
_NAME = "everyorder-rpc"
# Bytes of the random number at the beginning; the buffer follows at the next page.
_NONCE = 16
# Process, file, lending, device, inode, bytes of the block, bytes lent, random number.
_TOKEN = Struct(f"<IIQQQQQ{_NONCE}s")
_SEALS = ("F_SEAL_SHRINK", "F_SEAL_GROW", "F_SEAL_SEAL")
# Of Linux 6.3 on (`linux/memfd.h`); Python has no name for it.
_MFD_NOEXEC_SEAL = 0x8

# Errors that a resource of this process is exhausted.
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
    """The bytes of a block for so many: pages, in steps of at most an eighth."""
    pages = -(-size // _PAGE) + 1
    step = 1 << max(0, pages.bit_length() - 4)
    return -(-pages // step) * step * _PAGE


def _figure(path: str, name: str) -> int:
    """A figure of a file that has one on each line, by name; 0 if it is not there."""
    with open(path, encoding="ascii") as file:
        for line in file:
            first, *rest = line.replace(":", " ").split()
            if first == name:
                return int(rest[0])
    return 0


def _available() -> int:
    """Bytes of memory that are available; 0 if that is unknown."""
    # The process may have no file left to open.
    try:
        found = _figure("/proc/meminfo", "MemAvailable") * 1024
    except OSError:
        return 0
    for folder, limit, usage, idle in _GROUPS:
        # Without a limit the file has a word, or a huge number.
        with suppress(OSError, ValueError):
            most = int(Path(folder, limit).read_text("ascii"))
            used = int(Path(folder, usage).read_text("ascii"))
            used -= _figure(f"{folder}/memory.stat", idle)
            found = min(found, max(0, most - used))
    return found


@dataclass(slots=True, eq=False)
class _Block:
    """A block of this process: its file, and its memory."""

    file: int
    memory: mmap.mmap
    nonce: bytes
    size: int

    @classmethod
    def of(cls, size: int) -> "_Block":
        """A new one.

        Raises:
            OSError: there is no memory, or no more files.
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
        """Copy a buffer behind the first page; other threads run meanwhile."""
        target = np.frombuffer(self.memory, np.uint8, len(buffer), _PAGE)
        np.copyto(target, np.frombuffer(buffer, np.uint8))

    def token(self, lending: int, length: int) -> bytes:
        """What the borrower needs to find and to verify the block."""
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
        # A thread that was copying when the process was forked is in the parent.
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
        """The token of an empty block: a peer that can open it, can open all.

        b"" where no blocks can be had.
        """
        with self._lock:
            if self._sample is None and SUPPORTED:
                try:
                    self._sample = _Block.of(_class_of(0))
                except OSError:
                    return b""
            return b"" if self._sample is None else self._sample.token(0, 0)

    def lend(self, buffers: Sequence[Buffer], peer: PeerT) -> list[bytes] | None:
        """Copy buffers into blocks: their tokens; None if not all of them fit."""
        flats = [flat(each) for each in buffers]
        taken: list[_Block] = []
        # A block that is not in `_lent` yet belongs to this thread.
        try:
            for each in flats:
                block = self._taken(len(each))
                if block is None:
                    self._release(taken)
                    return None
                taken.append(block)
                block.fill(each)
        except BaseException:
            self._release(taken)
            raise
        tokens = []
        with self._lock:
            for block, each in zip(taken, flats, strict=True):
                self._lendings += 1
                self._lent[self._lendings] = peer, block
                tokens.append(block.token(self._lendings, len(each)))
        return tokens

    def _release(self, blocks: list[_Block]) -> None:
        with self._lock:
            self._free += blocks
            self._trim(self.idle)

    def returned(self, lending: int, peer: PeerT) -> bool:
        """Take a block back from its borrower; False: it was not lent to it."""
        with self._lock:
            if self._lent.get(lending, (None, None))[0] != peer:
                return False
            _, block = self._lent.pop(lending)
            self._free.append(block)
            self._trim(self.idle)
        return True

    def lost(self, peer: PeerT) -> None:
        """Close what was lent to a peer that is lost."""
        with self._lock:
            for lending, (borrower, block) in [*self._lent.items()]:
                if borrower == peer:
                    del self._lent[lending]
                    self._close(block)

    def counts(self) -> dict[str, int]:
        """Bytes of all blocks now and at most, and how many are lent and free."""
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
            # From now on nothing fits.
            self.most = -1

    def in_child(self) -> None:
        """Close the child's copies of the files; the parent's stay open."""
        self.close()

    def _taken(self, length: int) -> _Block | None:
        """A block for so many bytes, owned by the caller; None: there is none."""
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
        """Close free blocks, the oldest first, down to so many bytes."""
        waiting = sum(each.size for each in self._free)
        while self._free and waiting > most:
            block = self._free.pop(0)
            waiting -= block.size
            self._close(block)

    def _close(self, block: _Block) -> None:
        self._bytes -= block.size
        block.close()


class MappedBlocks(Generic[PeerT]):
    """The blocks of others that this process has mapped."""

    def __init__(self) -> None:
        self._dead: deque[tuple[PeerT, int]] = deque()

    def reaches(self, sample: Buffer) -> bool:
        """Whether the blocks of the sender of a sample can be opened here."""
        try:
            os.close(_opened(sample)[0])
        except BlockGone:
            return False
        return True

    def open(self, token: Buffer, lender: PeerT) -> memoryview:
        """The lent bytes; writing to them is private to this process.

        Raises:
            BlockGone: the block is not there any more, never was, or cannot be had.
        """
        try:
            return self._map(token, lender)
        except BlockGone as error:
            cause = error.__cause__
            if isinstance(cause, OSError) and cause.errno in _FULL:
                self._dead.append((lender, _TOKEN.unpack(token)[2]))
            raise

    def _map(self, token: Buffer, lender: PeerT) -> memoryview:
        file, lending, length = _opened(token)
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
        """Whether `take_returns` would give any."""
        return bool(self._dead)

    def take_returns(self) -> list[tuple[PeerT, int]]:
        """Lenders and lendings whose last view has died since this was last asked."""
        dead = self._dead
        # Finalizers may append meanwhile.
        return [dead.popleft() for _ in range(len(dead))]


def _opened(token: Buffer) -> tuple[int, int, int]:
    """The file of a block, the lending and its bytes.

    Raises:
        BlockGone: it is not the block that was lent.
    """
    if not SUPPORTED or len(token) != _TOKEN.size:
        raise BlockGone(why="it is no token")
    pid, number, lending, device, inode, size, length, nonce = _TOKEN.unpack(token)
    path = f"/proc/{pid}/fd/{number}"
    known = device, inode, size
    try:
        # Before opening, which may have effects on devices and pipes.
        _check(os.stat(path), known)
        flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
        file = os.open(path, flags)
    except BlockGone:
        raise
    except OSError as error:
        why = f"the lender has closed it, or is closed to this process: {error}"
        raise BlockGone(why=why) from error
    try:
        _check(os.fstat(file), known)
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


def _check(status: os.stat_result, known: tuple[int, int, int]) -> None:
    found = status.st_dev, status.st_ino, status.st_size
    if not stat.S_ISREG(status.st_mode) or found != known:
        raise BlockGone(why="another file is in its place")
    if status.st_uid != os.geteuid():
        raise BlockGone(why=f"it belongs to the user {status.st_uid}")


# The last bytes of requests; those of values are small.
SAMPLE, RETURNS = 0xF0, 0xF1
_KINDS = (bytes((SAMPLE,)), bytes((RETURNS,)))
_PLACE = Struct("<I")
_NUMBER = Struct("<Q")
# No frame of it is a token.
_NONE = b""

Payload: TypeAlias = Sequence[Buffer]
Ask: TypeAlias = Callable[[WorkerNode, bytes], Future[Payload]]


def _bytes(buffer: Buffer) -> int:
    return buffer.nbytes if isinstance(buffer, memoryview) else len(buffer)


class BufferSharing:
    """Lends and borrows for one worker; `largest` bytes at most in a payload.

    `me` is its incarnation; `ask` sends a request, whose answer is a payload.
    """

    def __init__(self, me: int, ask: Ask, *, wanted: bool, largest: int) -> None:
        self._me = me
        self._ask = ask
        self._largest = largest
        self._wanted = wanted
        self._blocks: LentBlocks[WorkerNode] = LentBlocks()
        self._borrowed: MappedBlocks[WorkerNode] = MappedBlocks()
        # Whether a peer can open blocks of this worker; None until it has answered.
        self._reaches: dict[WorkerNode, bool | None] = {}

    def outgoing(self, to: WorkerNode, payload: Payload) -> Payload:
        """A payload for a peer, with large buffers lent if possible."""
        if len(payload) == 1:
            return payload
        # Return borrowed blocks first, so that peers can reuse theirs.
        self.give_back()
        if not self._wanted or to.incarnation == self._me:
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
        """A payload of a peer, with all its buffers.

        Raises:
            BlockGone: a lent block cannot be had; the others are returned.
            Undecodable: it is malformed, or larger than is taken here.
        """
        if len(payload) < 2:
            return payload
        mark = bytes(payload[-1])
        found = [*payload[:-1]]
        if not mark:
            return found
        if len(mark) % _PLACE.size:
            raise Undecodable(found="A payload", reason="its tokens are cut")
        gone: BlockGone | None = None
        for (place,) in _PLACE.iter_unpack(mark):
            if not 0 < place < len(found):
                raise Undecodable(found="A payload", reason="a token is not in it")
            try:
                found[place] = self._borrowed.open(found[place], peer)
            except BlockGone as error:
                # The others are opened all the same: dropping a view returns the block.
                gone = gone or error
        if gone is not None:
            try:
                raise gone
            finally:
                # The traceback would keep the views.
                del gone, found
        if sum(map(_bytes, found)) > self._largest:
            raise Undecodable(found="A payload", reason="it is too large")
        return found

    def drop(self, peer: WorkerNode, payload: Payload) -> None:
        """Return the blocks of a payload that is not read."""
        if len(payload) > 1 and payload[-1]:
            # The lender may have ended, or sent garbage: nothing is to be returned.
            with suppress(BlockGone, Undecodable):
                self.incoming(peer, payload)

    def _may_lend(self, to: WorkerNode) -> bool:
        known = self._reaches.get(to)
        if known is None and to not in self._reaches:
            self._reaches[to] = None
            sample = self._blocks.sample()
            if sample:
                answer = self._ask(to, sample + bytes((SAMPLE,)))
                answer.add_done_callback(lambda told: self._learn_reach(to, told))
        return bool(known)

    def _learn_reach(self, to: WorkerNode, answer: Future[Payload]) -> None:
        if answer.error() is None:
            self._reaches[to] = bytes(answer.value()[0]) == b"\1"

    # Requests about memory.

    def is_asked(self, payload: Payload) -> bool:
        """Whether a request is about lending."""
        return len(payload) == 1 and bytes(payload[0][-1:]) in _KINDS

    def answer(self, peer: WorkerNode, payload: Payload) -> bytes:
        """The answer to a request about lending."""
        said = bytes(payload[0])
        body, kind = said[:-1], said[-1]
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
        """Whether `give_back` would return blocks."""
        return self._borrowed.waiting()

    def lost(self, peer: WorkerNode) -> None:
        """A peer is lost, with the blocks that it borrowed."""
        self._reaches.pop(peer, None)
        self._blocks.lost(peer)

    def counts(self) -> dict[str, int]:
        """Bytes of shared memory, and how many blocks are lent and free."""
        return self._blocks.counts()

    def close(self) -> None:
        """Close all blocks; borrowers keep their mappings."""
        self._blocks.close()
