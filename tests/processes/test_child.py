"""A child process: what comes back, how it ends, and what it leaves behind."""

import os
import random
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.base.errors import ProcessError
from everyorder.harness.engine import progress
from everyorder.harness.processes import child as module
from everyorder.harness.processes.child import Parent, start, wait
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.processes.watch import Subject, crash_of
from tests.processes.samples import echo, ends, is_alive, sleeps

FORKS = pytest.mark.skipif(not CAN_FORK, reason="this system cannot fork")
BOTH = pytest.mark.parametrize(
    "fork",
    [pytest.param(True, marks=FORKS, id="fork"), pytest.param(False, id="spawn")],
)

# Nothing here takes longer, however loaded the machine is.
PATIENCE = 60.0


@pytest.fixture
def started() -> Iterator[Callable[..., Any]]:
    """Starts children, and ends those that a test leaves."""
    children = []

    def begin(*arguments: Any, fork: bool = True) -> Any:
        children.append(start(*arguments, fork=fork))
        return children[-1]

    yield begin
    for each in children:
        each.kill()


def answers(child: Any, count: int = 1) -> list[Any]:
    """So many messages of a child; fewer if it ends before."""
    found: list[Any] = []
    until = time.monotonic() + PATIENCE
    while len(found) < count and time.monotonic() < until:
        wait((child,), 0.1)
        how = child.termination()
        found += child.read()
        if how is not None:
            break
    return found


def end_of(child: Any) -> tuple[str, list[Any]]:
    """How it ended, and all that it had to say."""
    found = answers(child, sys.maxsize)
    return child.termination(), found


@BOTH
def test_requests_and_answers(started: Callable[..., Any], fork: bool) -> None:
    child = started(echo, "first", fork=fork)
    child.send({"a": (1, None)})
    child.send(b"x" * 3_000_000)
    assert answers(child, 3) == ["first", {"a": (1, None)}, b"x" * 3_000_000]
    assert child.termination() is None
    child.finish()
    assert child.termination() == "exit code 0"


@BOTH
def test_what_was_sent_before_the_end_arrives(
    started: Callable[..., Any], fork: bool
) -> None:
    child = started(ends, 7, fork=fork)
    assert end_of(child) == ("exit code 7", ["last words"])


@BOTH
def test_the_pulse_is_shared(started: Callable[..., Any], fork: bool) -> None:
    child = started(sleeps, fork=fork)
    assert answers(child) == ["sleeping"]
    trail = progress.read(child.cells)
    assert [beat.operation for beat in trail.beats] == [progress.RESET, 3]
    assert (trail.done, trail.planned) == (5, 9)


@BOTH
def test_a_killed_child_is_gone(started: Callable[..., Any], fork: bool) -> None:
    child = started(sleeps, fork=fork)
    answers(child)
    child.kill()
    assert child.termination() == f"signal 9, {signal.strsignal(9)}"


@FORKS
def test_how_it_ended(started: Callable[..., Any]) -> None:
    def quits(parent: Parent) -> None:
        os._exit(0)

    def raises(parent: Parent) -> None:
        raise ValueError("a defect")

    def terminates(parent: Parent) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    assert end_of(started(quits)) == ("exit code 0", [])
    assert end_of(started(raises)) == ("exit code 1", [])
    assert end_of(started(terminates)) == (f"signal 15, {signal.strsignal(15)}", [])


@FORKS
def test_what_it_prints_is_printed_here(
    started: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def prints(parent: Parent) -> None:
        print("from Python, ü")
        print("to stderr", file=sys.stderr)
        subprocess.run(["/bin/sh", "-c", "echo from below"], check=True)
        os.write(1, b"half a letter: \xc3")
        time.sleep(0.2)
        os.write(1, b"\xbc, and no letter: \xff\n")
        os._exit(3)

    assert end_of(started(prints)) == ("exit code 3", [])
    printed = capsys.readouterr()
    assert printed.out == (
        "from Python, ü\nfrom below\nhalf a letter: ü, and no letter: \ufffd\n"
    )
    assert printed.err == "to stderr\n"


@FORKS
def test_the_stack_of_one_that_stands_still(started: Callable[..., Any]) -> None:
    child = started(sleeps)
    answers(child)
    stack = child.stack(living=True)
    assert "samples.py" in stack
    assert " in sleeps\n" in stack


@FORKS
def test_the_stack_of_one_that_crashed(started: Callable[..., Any]) -> None:
    def crashes(parent: Parent) -> None:
        os.kill(os.getpid(), signal.SIGSEGV)

    child = started(crashes)
    assert end_of(child)[0].startswith("signal 11")
    assert " in crashes\n" in child.stack(living=False)


@FORKS
def test_a_crash_in_another_thread_shows_the_thread_of_the_scenario(
    started: Callable[..., Any],
) -> None:
    def crashes(parent: Parent) -> None:
        thread = threading.Thread(target=time.sleep, args=(1000,), daemon=True)
        thread.start()
        assert thread.ident is not None
        signal.pthread_kill(thread.ident, signal.SIGSEGV)
        time.sleep(1000)

    child = started(crashes)
    how, _ = end_of(child)
    assert "Current thread" in child.stack(living=False)
    subject = Subject("", "", (), (), Path(__file__).parent)
    stack = crash_of(subject, child, how).stack
    assert [line.rpartition(" ")[2] for line in stack][:1] == ["crashes"]


@FORKS
def test_half_a_message_is_not_waited_for(started: Callable[..., Any]) -> None:
    """A child may stop anywhere: its parent has to measure the time."""

    def stops(parent: Any) -> None:
        os.write(parent.writer, (1000).to_bytes(8, "big") + b"x" * 500)
        os.kill(os.getpid(), signal.SIGSTOP)

    child = started(stops)
    until = time.monotonic() + PATIENCE
    while not child._line._parts and time.monotonic() < until:
        wait((child,), 0.1)
        assert child.read() == []
    assert child.read() == []
    assert child.termination() is None


@FORKS
def test_a_child_that_floods_its_output_is_read(
    started: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    def floods(parent: Parent) -> None:
        for _ in range(1000):
            os.write(2, b"x" * 1000)
        parent.send("done")
        os.kill(os.getpid(), signal.SIGKILL)

    how, messages = end_of(started(floods))
    assert (how, messages) == (f"signal 9, {signal.strsignal(9)}", ["done"])
    assert len(capsys.readouterr().err) == 1_000_000


@FORKS
def test_one_that_hears_no_signal_has_no_stack(
    started: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "STACK_SECONDS", 0.2)

    def deaf(parent: Parent) -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, signal.NSIG))
        parent.send("deaf")
        time.sleep(1000)

    child = started(deaf)
    answers(child)
    assert child.stack(living=True) == ""
    child.kill()


@FORKS
def test_a_pipe_that_somebody_else_holds_open(started: Callable[..., Any]) -> None:
    """A step has forked, and its child lives on when it is dead."""

    def forks(parent: Parent) -> None:
        pid = os.fork()
        if pid == 0:
            time.sleep(1000)
        parent.send(pid)
        os._exit(5)

    child = started(forks)
    how, (pid,) = end_of(child)
    os.kill(pid, signal.SIGKILL)
    assert how == "exit code 5"


@FORKS
def test_what_it_has_started_is_killed_with_it(started: Callable[..., Any]) -> None:
    def begins(parent: Parent) -> None:
        started = subprocess.Popen(["sleep", "1000"])
        parent.send(started.pid)
        started.wait()

    child = started(begins)
    (pid,) = answers(child)
    assert is_alive(pid)
    child.kill()
    until = time.monotonic() + PATIENCE
    while is_alive(pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(pid)


@FORKS
def test_a_fork_of_the_child_says_nothing(started: Callable[..., Any]) -> None:
    def goes_on_twice(parent: Parent) -> None:
        pid = os.fork()
        if pid:
            os.waitpid(pid, 0)
        parent.send("once")

    assert end_of(started(goes_on_twice)) == ("exit code 0", ["once"])


@FORKS
def test_an_exit_status_that_somebody_took(started: Callable[..., Any]) -> None:
    def quits(parent: Parent) -> None:
        pass

    child = started(quits)
    os.waitpid(child.pid, 0)
    assert child.termination() == "exit status unknown: another process read it"


@FORKS
def test_its_signals_are_its_own(started: Callable[..., Any]) -> None:
    """Nothing of the parent's handlers is left, and nothing is blocked."""

    def tells(parent: Parent) -> None:
        handlers = [signal.getsignal(n) for n in (signal.SIGINT, signal.SIGTERM)]
        parent.send(
            (
                handlers == [signal.default_int_handler, signal.SIG_DFL],
                signal.pthread_sigmask(signal.SIG_BLOCK, ()),
                os.getpgid(0) == os.getpid(),
            )
        )

    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _: heard.append(number))
    try:
        child = started(tells)
        assert answers(child) == [(True, set(), True)]
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == []
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()


@FORKS
def test_it_draws_what_its_parent_would_draw(started: Callable[..., Any]) -> None:
    def draws(parent: Parent) -> None:
        parent.send(random.random())

    random.seed(12)
    child = started(draws)
    assert answers(child) == [random.random()]


@FORKS
def test_input_is_empty_and_a_debugger_is_refused(started: Callable[..., Any]) -> None:
    def asks(parent: Parent) -> None:
        parent.send(os.read(0, 10))
        try:
            breakpoint()
        except ProcessError as error:
            parent.send(str(error))

    child = started(asks)
    assert answers(child, 2) == [
        b"",
        "breakpoint() was called in a child process, which has no terminal; explore "
        "with --in-process (pytest: --everyorder-in-process, or --pdb)",
    ]


@FORKS
def test_beside_a_thread_nothing_is_warned_of(started: Callable[..., Any]) -> None:
    over = threading.Event()
    thread = threading.Thread(target=over.wait)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            child = started(echo, 1)
        assert answers(child) == [1]
    finally:
        over.set()
        thread.join()


# A process that starts two children which sleep, tells their numbers, and sleeps.
MOTHER = """
import sys, time
from everyorder.harness.processes import child, fork as forking
from tests.processes.samples import sleeps

if __name__ == "__main__":  # what is spawned imports this again
    if "pipe" in sys.argv:
        forking.prctl = lambda: None
    fork = "spawn" not in sys.argv
    children = [child.start(sleeps, fork=fork) for _ in range(2)]
    print(*(each.pid for each in children), flush=True)
    time.sleep(1000)
"""


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("kernel", marks=FORKS),
        pytest.param("pipe", marks=FORKS),
        pytest.param("spawn"),
    ],
)
def test_it_dies_with_its_parent(tmp_path: Path, way: str) -> None:
    file = tmp_path / "mother.py"
    file.write_text(MOTHER)
    root = str(Path(__file__).parents[2])
    mother = subprocess.Popen(
        [sys.executable, str(file), way],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": root},
    )
    assert mother.stdout is not None
    pids = [int(pid) for pid in mother.stdout.readline().split()]
    assert len(pids) == 2
    assert all(map(is_alive, pids))
    mother.kill()
    mother.wait()
    mother.stdout.close()
    until = time.monotonic() + PATIENCE
    while any(map(is_alive, pids)) and time.monotonic() < until:
        time.sleep(0.01)
    assert not any(map(is_alive, pids))


@FORKS
def test_no_file_stays_open(started: Callable[..., Any]) -> None:
    def opened() -> set[str]:
        return set(os.listdir("/dev/fd"))

    before = opened()
    for _ in range(3):
        child = start(echo, 1)
        answers(child)
        child.finish()
    assert len(opened()) == len(before)


@FORKS
def test_a_fork_that_fails_leaves_nothing_open(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> int:
        raise BlockingIOError("no process is left")

    before = set(os.listdir("/dev/fd"))
    monkeypatch.setattr(os, "fork", fails)
    with pytest.raises(BlockingIOError):
        start(echo, 1)
    assert len(os.listdir("/dev/fd")) == len(before)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
