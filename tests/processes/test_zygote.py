"""The zygote: what it survives, and what it leaves behind."""

import errno
import os
import signal
import socket
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.processes.fork import fork
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.processes.zygote import Zygote
from tests.forking import needs_fork
from tests.processes.samples import is_alive, without_descriptors

pytestmark = needs_fork

# Nothing here takes longer, however loaded the machine is.
PATIENCE = 60.0


def serve(channel: PipeEnd) -> None:
    """Answer with the request; end when told a number."""
    while not isinstance(request := channel.receive(), int):
        channel.send(request)
    os._exit(request)


@pytest.fixture
def zygote() -> Iterator[Zygote]:
    made = Zygote(serve)
    yield made
    made.close()


def test_children_answer_and_end(zygote: Zygote) -> None:
    first, channel = zygote.child([])
    channel.send({"a": 1})
    assert channel.receive() == {"a": 1}
    channel.send(7)
    assert zygote.status(first) == 7
    channel.close()
    second, channel = zygote.child([])
    assert second != first
    os.kill(second, signal.SIGKILL)
    assert zygote.status(second) == -signal.SIGKILL
    channel.close()


def test_a_channel_is_not_inherited(zygote: Zygote) -> None:
    """A program that this process starts would hold it open."""
    _, channel = zygote.child([])
    assert not os.get_inheritable(channel.reader)
    channel.close()


def test_signals_are_for_the_parent_only() -> None:
    """Nothing of its handlers is left, and nothing is blocked."""

    def report(channel: PipeEnd) -> None:
        handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        channel.send((handlers == [signal.SIG_IGN, signal.SIG_DFL], mask))

    before = signal.signal(signal.SIGTERM, lambda *_: None)
    zygote = Zygote(report)
    try:
        _, channel = zygote.child([])
        assert channel.receive() == (True, set())
        channel.close()
    finally:
        signal.signal(signal.SIGTERM, before)
        zygote.close()


def test_a_zygote_that_is_killed(zygote: Zygote) -> None:
    pid, channel = zygote.child([])
    os.kill(zygote.pid, signal.SIGKILL)
    until = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(pid)
    with pytest.raises(EOFError):
        channel.receive()
    assert zygote.status(pid) == zygote.status(pid) == -signal.SIGKILL
    with pytest.raises(EOFError, match="the zygote is gone"):
        zygote.child([])
    channel.close()


def test_an_interrupt_while_it_is_forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """It reaches both, and the zygote must not return to the code of its parent."""
    fork, tester, pids = os.fork, os.getpid(), list[int]()

    def interrupted() -> int:
        pids.append(fork())
        os.kill(os.getpid(), signal.SIGINT)
        return pids[0]

    before = set(os.listdir("/dev/fd"))
    monkeypatch.setattr(os, "fork", interrupted)
    try:
        Zygote(serve)
    except KeyboardInterrupt:
        if os.getpid() != tester:
            os._exit(99)
    else:
        pytest.fail("the interrupt is lost")
    assert pids[0]
    with pytest.raises(ChildProcessError):
        os.waitpid(pids[0], 0)
    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_parent_without_descriptors_says_so(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The zygote is alive, and has reaped the children that nobody can reach."""
    first, channel = zygote.child([])
    receive, pids = socket.recv_fds, list[int]()

    def receiving(*arguments: Any) -> Any:
        answer = receive(*arguments)
        pids.append(int.from_bytes(answer[0]))
        return answer

    monkeypatch.setattr(socket, "recv_fds", receiving)
    with without_descriptors():
        for _ in range(3):
            with pytest.raises(OSError, match="Too many open files"):
                zygote.child([])
    assert len({*pids, first}) == 4
    for pid in pids:
        with pytest.raises(ProcessLookupError):  # a zombie would receive it
            os.kill(pid, 0)
    channel.send("still here")
    assert channel.receive() == "still here"
    channel.send(0)
    assert zygote.status(first) == 0
    channel.close()


def test_a_descriptor_that_was_dropped_for_another_reason(
    zygote: Zygote, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A security module may refuse it: the limit is not blamed."""
    receive = socket.recv_fds

    def dropping(*arguments: Any) -> Any:
        data, descriptors, _, address = receive(*arguments)
        os.close(*descriptors)
        return data, [], socket.MSG_CTRUNC, address

    monkeypatch.setattr(socket, "recv_fds", dropping)
    with pytest.raises(OSError, match="has dropped a descriptor") as caught:
        zygote.child([])
    assert caught.value.errno == errno.EIO


def test_a_zygote_that_may_not_fork_says_so(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It lives on, and forks when the system allows it."""
    fork, tester, allowed = os.fork, os.getpid(), tmp_path / "allowed"

    def refused() -> int:
        if os.getpid() != tester and not allowed.exists():
            raise OSError(errno.EAGAIN, os.strerror(errno.EAGAIN))
        return fork()

    monkeypatch.setattr(os, "fork", refused)
    zygote = Zygote(serve)
    try:
        for _ in range(2):
            with pytest.raises(BlockingIOError):
                zygote.child([])
        allowed.touch()
        pid, channel = zygote.child([])
        channel.send(5)
        assert zygote.status(pid) == 5
        channel.close()
    finally:
        zygote.close()


def test_a_handler_that_raises_leaves_no_signal_blocked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`pthread_sigmask` runs handlers after it has changed the mask."""

    class Interrupted(Exception):
        pass

    change = signal.pthread_sigmask
    before = change(signal.SIG_BLOCK, ())

    def interrupted(how: int, mask: Collection[int]) -> set[int]:
        old = change(how, mask)
        if how == signal.SIG_BLOCK and mask:
            raise Interrupted
        return {*old}

    monkeypatch.setattr(signal, "pthread_sigmask", interrupted)
    with pytest.raises(Interrupted):
        fork(lambda: None)
    after = change(signal.SIG_SETMASK, before)
    assert after == before
