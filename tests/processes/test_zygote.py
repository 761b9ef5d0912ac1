"""The zygote: what it survives, and what it leaves behind."""

import os
import resource
import signal
import time
from collections.abc import Collection, Iterator
from contextlib import suppress

import pytest

from everyorder.harness.processes.fork import fork
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.processes.zygote import Zygote
from tests.forking import needs_fork
from tests.processes.samples import is_alive

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


def test_a_parent_without_descriptors_says_so(zygote: Zygote) -> None:
    """The zygote is alive: it is neither reported as dead, nor asked for child 0."""
    first, channel = zygote.child([])
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    used = max(int(name) for name in os.listdir("/proc/self/fd")) + 1
    resource.setrlimit(resource.RLIMIT_NOFILE, (used, hard))
    fillers = []
    try:
        with suppress(OSError):
            while True:
                fillers.append(os.dup(0))
        with pytest.raises(OSError, match="Too many open files"):
            zygote.child([])
    finally:
        for each in fillers:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    channel.send("still here")
    assert channel.receive() == "still here"
    channel.send(0)
    assert zygote.status(first) == 0


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
