"""Blocks of memory that processes lend to each other, and what could go wrong."""

import errno
import fcntl
import gc
import mmap
import os
import signal
import struct
from collections.abc import Iterator
from contextlib import ExitStack, closing, suppress
from pathlib import Path

import pytest

from everyorder.runtime.errors import BlockGone
from everyorder.runtime.rpc.transport import shared_memory as module
from everyorder.runtime.rpc.transport.shared_memory import (
    SUPPORTED,
    LentBlocks,
    MappedBlocks,
)
from tests.forking import in_child, needs_fork
from tests.rpc.transport.inbox import Process, process

pytestmark = pytest.mark.skipif(not SUPPORTED, reason="there is no memfd here")

PAGE = mmap.PAGESIZE
SIZE = 300_000


@pytest.fixture
def blocks() -> Iterator[LentBlocks[str]]:
    with closing(LentBlocks[str](most=64 << 20, idle=8 << 20)) as made:
        yield made


@pytest.fixture
def borrowed() -> MappedBlocks[str]:
    return MappedBlocks()


def lent(blocks: LentBlocks[str], *buffers: bytes, peer: str = "peer") -> list[bytes]:
    tokens = blocks.lend(buffers, peer)
    assert tokens is not None
    return tokens


def test_what_is_lent_is_read(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    buffers = [bytes([n]) * size for n, size in enumerate([SIZE, 1, 0, PAGE, PAGE + 1])]
    views = [borrowed.open(token, "me") for token in lent(blocks, *buffers)]
    assert [bytes(view) for view in views] == buffers
    assert blocks.counts()["lent"] == 5


def test_what_is_borrowed_may_be_written(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    """Nobody else sees it, not even one who opens it again."""
    (token,) = lent(blocks, b"a" * SIZE)
    one, two = borrowed.open(token, "me"), borrowed.open(token, "me")
    assert not one.readonly
    one[:] = b"b" * SIZE
    assert bytes(two) == b"a" * SIZE
    assert bytes(borrowed.open(token, "me")) == b"a" * SIZE


def test_a_block_is_lent_again(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    (first,) = lent(blocks, b"a" * SIZE)
    view = borrowed.open(first, "lender")
    part = view[100:200]
    del view
    assert not borrowed.waiting()
    assert borrowed.take_returns() == []
    del part
    assert borrowed.waiting()
    (back,) = borrowed.take_returns()
    assert borrowed.take_returns() == []
    assert back[0] == "lender"
    assert blocks.returned(back[1], "peer")
    held = blocks.counts()["bytes"]
    (second,) = lent(blocks, b"b" * (SIZE - 5000))
    assert blocks.counts() == {"bytes": held, "peak": held, "lent": 1, "free": 0}
    assert bytes(borrowed.open(second, "lender")) == b"b" * (SIZE - 5000)


def test_a_view_in_a_circle(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    """The garbage collector gives it back."""
    circle: list[object] = [borrowed.open(lent(blocks, b"a" * SIZE)[0], "lender")]
    circle.append(circle)
    del circle
    gc.collect()
    assert borrowed.take_returns() == [("lender", 1)]


def test_only_who_has_a_block_gives_it_back(blocks: LentBlocks[str]) -> None:
    lent(blocks, b"a" * SIZE, peer="one")
    assert not blocks.returned(1, "two")
    assert not blocks.returned(2, "one")
    assert blocks.returned(1, "one")
    assert not blocks.returned(1, "one")


def test_what_a_lost_peer_has_is_closed(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    """And is never lent again: that one may read it still."""
    (mapped, unread), (other,) = (
        lent(blocks, b"a" * SIZE, b"a"),
        lent(blocks, b"o" * SIZE, peer="other"),
    )
    view = borrowed.open(mapped, "lender")
    blocks.lost("peer")
    with pytest.raises(BlockGone):
        borrowed.open(unread, "lender")
    for _ in range(3):
        lent(blocks, b"b" * SIZE)
    assert bytes(view) == b"a" * SIZE
    assert bytes(borrowed.open(other, "lender")) == b"o" * SIZE
    assert blocks.counts()["lent"] == 4
    assert not blocks.returned(1, "peer")


def test_the_most(blocks: LentBlocks[str]) -> None:
    """What does not fit is not lent, wholly or in part; the peak is told."""
    buffer = b"x" * (20 << 20)
    lent(blocks, buffer, buffer)
    assert blocks.lend([b"y", buffer, buffer], "peer") is None
    assert blocks.counts()["lent"] == 2
    assert blocks.counts()["free"] == 1
    assert blocks.counts()["peak"] <= 64 << 20
    assert blocks.returned(1, "peer")
    assert lent(blocks, buffer)


def test_the_idle(blocks: LentBlocks[str]) -> None:
    """More than that is not kept for later."""
    for number in range(20):
        lent(blocks, b"x" * (1 << 20))
        assert blocks.returned(number + 1, "peer")
    assert blocks.counts()["free"] == 1
    for _ in range(20):
        lent(blocks, b"x" * (1 << 20))
    for number in range(20, 40):
        assert blocks.returned(number + 1, "peer")
    counts = blocks.counts()
    assert counts["free"] == 7
    assert (7 << 20) < counts["bytes"] <= 8 << 20


def test_idle_blocks_make_room(blocks: LentBlocks[str]) -> None:
    """One that is too small is closed before nothing can be lent."""
    blocks.idle = 64 << 20
    for _ in range(6):
        lent(blocks, b"x" * (5 << 20))
    for number in range(6):
        assert blocks.returned(number + 1, "peer")
    assert lent(blocks, b"x" * (50 << 20))
    assert blocks.counts()["bytes"] <= 64 << 20


def test_idle_blocks_make_room_beside_lent_ones(blocks: LentBlocks[str]) -> None:
    blocks.idle = 64 << 20
    lent(blocks, *[b"x" * (5 << 20)] * 6, b"x" * (15 << 20))
    for number in range(6):
        assert blocks.returned(number + 1, "peer")
    assert lent(blocks, b"x" * (40 << 20))
    assert blocks.counts()["bytes"] <= 64 << 20


def test_what_could_not_be_copied_is_not_lent(
    blocks: LentBlocks[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = module._Block.fill

    def fails(block: module._Block, buffer: bytes) -> None:
        if buffer[:1] == b"b":
            raise MemoryError
        fill(block, buffer)

    monkeypatch.setattr(module._Block, "fill", fails)
    with pytest.raises(MemoryError):
        blocks.lend([b"a" * SIZE, b"b" * SIZE], "peer")
    counts = blocks.counts()
    assert (counts["lent"], counts["free"]) == (0, 2)


def test_the_memory_that_can_be_had() -> None:
    with open("/proc/meminfo", encoding="ascii") as file:
        total = int(file.readline().split()[1]) * 1024
    assert 0 < module._available() < total


@pytest.mark.parametrize(
    ("limit", "available"),
    [("max\n", "all"), (f"{1 << 62}\n", "all"), ("1000000\n", 400_000), ("5\n", 0)],
)
def test_the_memory_that_a_container_may_have(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, available: int | str
) -> None:
    """What it has of files counts as memory that can be had."""
    (tmp_path / "memory.max").write_text(limit)
    (tmp_path / "memory.current").write_text("700000\n")
    (tmp_path / "memory.stat").write_text("anon 600000\ninactive_file 100000\n")
    known, *_ = module._GROUPS
    elsewhere = ("/nowhere", *known[1:])
    monkeypatch.setattr(module, "_GROUPS", (elsewhere,))
    whole = module._figure("/proc/meminfo", "MemTotal") * 1024
    monkeypatch.setattr(module, "_GROUPS", (elsewhere, (str(tmp_path), *known[1:])))
    found = module._available()
    if available == "all":
        assert 0 < found < whole
    else:
        assert found == available


def test_no_memory(blocks: LentBlocks[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_available", lambda: 4 * SIZE)
    assert blocks.lend([b"x" * SIZE], "peer") is None
    monkeypatch.setattr(module, "_available", lambda: 8 * SIZE)
    assert blocks.lend([b"x" * SIZE], "peer") is not None


def test_no_more_files(
    blocks: LentBlocks[str],
    borrowed: MappedBlocks[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who lends does not; who borrows says so, and gives back what it cannot have."""
    (token,) = lent(blocks, b"x" * SIZE)

    def refuse(*_arguments: object, **_more: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr("builtins.open", refuse)
        patch.setattr(os, "open", refuse)
        assert blocks.lend([b"x" * SIZE], "peer") is None
        with pytest.raises(BlockGone, match="Too many open files"):
            borrowed.open(token, "lender")
    with monkeypatch.context() as patch:
        patch.setattr(mmap, "mmap", refuse)
        with pytest.raises(BlockGone, match="cannot be mapped"):
            borrowed.open(token, "lender")
    assert borrowed.take_returns() == [("lender", 1)] * 2
    assert blocks.lend([b"x" * SIZE], "peer") is not None


def open_files() -> set[tuple[str, str]]:
    """Numbers and names of what is open; others may close theirs meanwhile."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        # That of the folder is closed by now.
        with suppress(FileNotFoundError):
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def test_full(blocks: LentBlocks[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the kernel refuses, files or memory, nothing is left open."""
    files = open_files()

    def refuse(*_arguments: object) -> None:
        raise OSError(28, "No space left on device")

    for name in ("posix_fallocate", "memfd_create"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, refuse)
            assert blocks.lend([b"x" * SIZE], "peer") is None
            assert LentBlocks[str]().sample() == b""
    assert open_files() <= files
    assert blocks.counts() == {"bytes": 0, "peak": 0, "lent": 0, "free": 0}


def test_systems_without(
    blocks: LentBlocks[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    sample, token = blocks.sample(), lent(blocks, b"x" * SIZE)[0]
    monkeypatch.setattr(module, "SUPPORTED", False)
    other = LentBlocks[str]()
    assert (other.sample(), other.lend([b"x" * SIZE], "peer")) == (b"", None)
    assert not MappedBlocks[str]().reaches(sample)
    with pytest.raises(BlockGone):
        MappedBlocks[str]().open(token, "lender")


def test_closed(blocks: LentBlocks[str], borrowed: MappedBlocks[str]) -> None:
    files = open_files()
    token, _ = lent(blocks, b"a" * SIZE, b"b" * SIZE)
    assert blocks.returned(2, "peer")
    view = borrowed.open(token, "lender")
    sample = blocks.sample()
    blocks.close()
    blocks.close()
    assert bytes(view) == b"a" * SIZE
    assert blocks.lend([b"a"], "peer") is None
    assert not borrowed.reaches(sample)
    del view
    assert open_files() <= files


TOKEN = struct.Struct("<IIQQQQQ16s")
FIELDS = ["pid", "file", "lending", "device", "inode", "size", "length", "nonce"]


@pytest.mark.parametrize("field", [each for each in FIELDS if each != "lending"])
def test_a_token_that_was_changed(
    blocks: LentBlocks[str], borrowed: MappedBlocks[str], field: str
) -> None:
    """Each thing that it says is checked."""
    (token,) = lent(blocks, b"a" * SIZE)
    files = open_files()
    parts = [*TOKEN.unpack(token)]
    place = FIELDS.index(field)
    value = parts[place]
    others = [bytes(16)] if field == "nonce" else [value + 1000, 0, 2**32 - 1]
    if field == "length":
        room = parts[FIELDS.index("size")] - PAGE
        others = [room + 1, 2**63]
    for other in others:
        parts[place] = other
        with pytest.raises(BlockGone):
            borrowed.open(TOKEN.pack(*parts), "lender")
    assert borrowed.take_returns() == []
    assert open_files() <= files


@pytest.mark.parametrize(
    "token",
    [b"", b"x", bytes(64), b"\xff" * 64, bytes(65)],
    ids=["empty", "short", "zeros", "ones", "long"],
)
def test_what_is_no_token(borrowed: MappedBlocks[str], token: bytes) -> None:
    assert TOKEN.size == 64
    with pytest.raises(BlockGone):
        borrowed.open(token, "lender")
    assert not borrowed.reaches(token)


def forged(file: int, size: int, length: int) -> bytes:
    status = os.fstat(file)
    nonce = bytes(16)
    where = os.getpid(), file, 1, status.st_dev, status.st_ino
    return TOKEN.pack(*where, size, length, nonce)


def test_files_of_other_kinds(
    borrowed: MappedBlocks[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is opened that is no block: a pipe would wait, a device would act."""
    with ExitStack() as ends:
        kinds = [*os.pipe(), os.open("/dev/null", os.O_RDWR), os.open("/", os.O_RDONLY)]
        for file in kinds:
            ends.callback(os.close, file)

        def opened(*_: object) -> int:
            raise AssertionError("it was opened")

        monkeypatch.setattr(os, "open", opened)
        for file in kinds:
            for size in (0, os.fstat(file).st_size):
                with pytest.raises(BlockGone):
                    borrowed.open(forged(file, size, 0), "lender")


@pytest.mark.parametrize(
    "names", [(), ("F_SEAL_GROW", "F_SEAL_SEAL"), ("F_SEAL_SHRINK",)]
)
def test_memory_that_could_shrink(
    borrowed: MappedBlocks[str], names: tuple[str, ...]
) -> None:
    """Reading what was cut off would end this process, so it is not mapped."""
    file = os.memfd_create("false", os.MFD_ALLOW_SEALING)
    try:
        os.truncate(file, 10 * PAGE)
        seals = sum(int(getattr(fcntl, name)) for name in names)
        fcntl.fcntl(file, fcntl.F_ADD_SEALS, seals)
        with pytest.raises(BlockGone, match="its size is not that of a block"):
            borrowed.open(forged(file, 10 * PAGE, PAGE), "lender")
    finally:
        os.close(file)


def test_a_plain_file_is_not_mapped(
    borrowed: MappedBlocks[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("plain") / "file"
    path.write_bytes(bytes(10 * PAGE))
    file = os.open(path, os.O_RDWR)
    try:
        with pytest.raises(BlockGone):
            borrowed.open(forged(file, 10 * PAGE, PAGE), "lender")
    finally:
        os.close(file)


def test_blocks_cannot_be_cut(blocks: LentBlocks[str]) -> None:
    pid, file, *_ = TOKEN.unpack(lent(blocks, b"a" * SIZE)[0])
    assert pid == os.getpid()
    assert not os.get_inheritable(file)
    for size in (0, PAGE, 100 * SIZE):
        with pytest.raises(PermissionError):
            os.truncate(file, size)


def test_somebody_elses(
    blocks: LentBlocks[str],
    borrowed: MappedBlocks[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (token,) = lent(blocks, b"a" * SIZE)
    me = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: me + 1)
    with pytest.raises(BlockGone) as raised:
        borrowed.open(token, "lender")
    assert raised.value.why == f"it belongs to the user {me}"


@pytest.fixture
def other() -> Iterator[Process]:
    with process(module="tests.rpc.transport.lending") as made:
        yield made


def ask(other: Process, line: str) -> str:
    other.say(line)
    return other.line()


def test_between_processes(
    other: Process, blocks: LentBlocks[str], borrowed: MappedBlocks[str]
) -> None:
    assert ask(other, f"reaches {blocks.sample().hex()}") == "True"
    assert borrowed.reaches(bytes.fromhex(ask(other, "sample")))
    (token,) = lent(blocks, b"a" * SIZE, peer="other")
    assert ask(other, f"borrow {token.hex()}") == f"97 97 {SIZE}"
    assert ask(other, f"write {token.hex()}") == f"99 97 {SIZE}"
    assert ask(other, f"borrow {token.hex()}") == f"97 97 {SIZE}"
    assert ask(other, "drop") == "1 1 1"
    theirs = bytes.fromhex(ask(other, f"lend 5 {SIZE}"))
    view = borrowed.open(theirs, "other")
    assert bytes(view) == bytes([5]) * SIZE
    shared = os.listdir("/dev/shm")
    assert not [each for each in shared if "everyorder" in each]
    # What was mapped outlives its lender; what was not is gone with it.
    late = bytes.fromhex(ask(other, f"lend 6 {SIZE}"))
    other.run.send_signal(signal.SIGKILL)
    other.run.wait()
    assert bytes(view) == bytes([5]) * SIZE
    with pytest.raises(BlockGone, match="the lender has closed it"):
        borrowed.open(late, "other")


def test_a_process_without_room(other: Process, borrowed: MappedBlocks[str]) -> None:
    """Where a file of that size cannot be, nothing is lent and nothing dies."""
    assert ask(other, f"limit {1 << 20}") == "limited"
    assert ask(other, f"lend 1 {2 << 20}") == "none"
    token = bytes.fromhex(ask(other, "lend 2 1000"))
    assert bytes(borrowed.open(token, "other")) == b"\2" * 1000
    assert other.ended() == 0


@needs_fork
def test_forked(blocks: LentBlocks[str], borrowed: MappedBlocks[str]) -> None:
    """A child lends blocks of its own; the parent's stay, and keep what they hold."""
    (token,) = lent(blocks, b"a" * SIZE)
    view = borrowed.open(token, "lender")

    def child() -> bool:
        view[:1] = b"c"
        mine = LentBlocks[str]()
        (own,) = lent(mine, b"b" * SIZE)
        return (
            blocks.lend([b"x"], "peer") is None
            and bytes(borrowed.open(own, "me")) == b"b" * SIZE
            and bytes(borrowed.open(token, "parent")) == b"a" * SIZE
        )

    assert in_child(child)
    assert bytes(view) == b"a" * SIZE
    assert blocks.returned(1, "peer")
    lent(blocks, b"d" * SIZE)
