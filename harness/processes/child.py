"""Child processes that explore, and the pipes to them.

A step of a scenario is arbitrary code of a user: it may call `os._exit`, crash in
native code, hang, or print.  So it runs in a child process.  Its messages and its
output are sent through pipes, which the parent reads without ever blocking.

Rules:
- the child is forked if possible (then it has all objects of its parent, at the cost of
  a millisecond), else spawned; it runs the same code;
- it dies with its parent, in whatever way the parent ends: on Linux the kernel ensures
  that, elsewhere a thread waits for the end of a pipe that only the parent holds open;
- it has a separate process group, so only the parent handles Ctrl-C, and processes that
  the steps started are killed with it;
- the parent prints the output of the child, to its own `sys.stdout` and `sys.stderr`,
  so a capture or a progress bar in the parent works;
- the end of a pipe does not mean death (a process that a step forked may hold it open,
  and a step may close it): a child is dead when the system reports it.

Messages that were sent before the child died are read after it, so a result that was
sent is never lost.
"""

import gc
import os
import select
import signal
import sys
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from io import FileIO, TextIOWrapper
from mmap import mmap
from time import monotonic
from typing import IO, Any, NamedTuple, NoReturn, Protocol

from everyorder.harness.base.errors import ProcessError
from everyorder.harness.engine import progress
from everyorder.harness.processes.excerpt import Excerpt
from everyorder.harness.processes.fork import (
    CAN_FORK,
    end_with_parent,
    exit_text,
    fork,
    kill,
    reap,
)
from everyorder.harness.processes.messages import PipeEnd

# Requests the stack of a child.  It has no other use: the last but one of the signals
# for applications (valgrind uses the last one), which macOS does not have.
STACK_SIGNAL = (
    int(signal.SIGRTMAX) - 1
    if hasattr(signal, "SIGRTMAX")
    else int(getattr(signal, "SIGUSR2", signal.SIGTERM))
)

# A stack is written in milliseconds; a child that takes longer will not write one.
STACK_SECONDS = 2.0

# Reports show no more of a stack.
MOST_STACK = 1 << 20

_CHUNK = 1 << 16


class Parent(Protocol):
    """The parent, in the view of a child."""

    cells: memoryview

    def send(self, message: object) -> None:
        """Send a message.  Raises OSError if the parent is gone."""
        ...

    def receive(self) -> Any:
        """Wait for a request.  Raises EOFError if there will be none."""
        ...


class ChildProcess(Protocol):
    """A child, in the view of its parent.  `cells` is its progress.

    `excerpt` limits what is printed of its output, where the parent prints it.
    """

    cells: memoryview
    pid: int
    excerpt: Excerpt | None

    def send(self, request: object) -> None:
        """Send a request; a child that has ended is ignored."""
        ...

    def read(self) -> list[Any]:
        """Return the messages that have arrived; print the output of the child."""
        ...

    def termination(self) -> str | None:
        """Return "exit code 0" or "signal 9, Killed"; None while it lives."""
        ...

    def stack(self, *, living: bool) -> str:
        """Return the stack of its death, or of now, by faulthandler; "" without one."""
        ...

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the child, if the system can."""
        ...

    def finish(self) -> None:
        """End the child in order, without further requests; wait for a limited time."""
        ...

    def kill(self) -> None:
        """Kill the child with all processes that it started, and close all handles."""
        ...

    def sources(self) -> Sequence[Any]:
        """Return handles that become ready when there is something to `read`."""
        ...


Main = Callable[..., None]
"""Runs in the child: (parent, *arguments).  Spawning needs an importable name."""


def start(main: Main, *arguments: Any, fork: bool = CAN_FORK) -> ChildProcess:
    """Start a child that runs `main(parent, *arguments)`."""
    if fork:
        return ForkedChild(main, arguments)
    from everyorder.harness.processes.spawn import SpawnedChild

    return SpawnedChild(main, arguments)


def wait(children: Iterable[ChildProcess], seconds: float) -> None:
    """Wait until one of the children has data or ends, at most this many seconds."""
    sources = [source for child in children for source in child.sources()]
    if not CAN_FORK or any(not isinstance(source, int) for source in sources):
        from multiprocessing.connection import wait as wait_for_any

        wait_for_any(sources, seconds)
        return
    poll = select.poll()
    for source in sources:
        poll.register(source, select.POLLIN)
    poll.poll(seconds * 1000)


class ForkedChild:
    """A forked child; it prints everything, or an `excerpt`."""

    excerpt: Excerpt | None

    def __init__(self, main: Main, arguments: tuple[Any, ...]) -> None:
        self._memory = mmap(-1, progress.BYTES)
        self.cells = memoryview(self._memory).cast("Q")
        self._stack = bytearray()
        self._termination: str | None = None
        pipes = [os.pipe() for _ in range(6)]
        (up, up_end), (down_end, down), (life_end, life) = pipes[:3]
        (out, out_end), (err, err_end), (stack, stack_end) = pipes[3:]
        self._line, self._trace = PipeEnd(up, down), stack
        # A character of several bytes may arrive in two parts.
        decoder = getincrementaldecoder("utf-8")
        self._printed = {
            out: ("stdout", decoder("replace")),
            err: ("stderr", decoder("replace")),
        }
        self.excerpt: Excerpt | None = None
        self._is_interrupted = False
        self._open = {up, down, life, stack, out, err}
        ends = _Ends(up_end, down_end, life_end, out_end, err_end, stack_end)
        for source in (up, out, err, stack):
            os.set_blocking(source, False)
        parent, drawn = os.getpid(), _random_state()

        def run() -> None:
            self._become_child(ends, parent, drawn)
            main(_ForkedParentPipe(self.cells, ends), *arguments)

        self.pid = 0
        try:
            try:
                self.pid = fork(run)
            finally:
                for end in ends:
                    os.close(end)
            # The child does it, too, so that it is done before either continues.
            with suppress(OSError):
                os.setpgid(self.pid, self.pid)
            _children.add(self)
        except BaseException:  # no fork, or Ctrl-C
            if self.pid:
                self.kill()
            self.close()
            raise

    def _become_child(self, ends: "_Ends", parent: int, drawn: Any) -> None:
        os.setpgid(0, 0)
        # Objects of the parent are not garbage of the child.
        gc.freeze()
        for other in (self, *_children):
            other.close()
        _children.clear()
        _become_process(ends, parent)
        if drawn is not None:
            sys.modules["random"].setstate(drawn)

    def sources(self) -> Sequence[int]:
        """Return the open ends of its pipes."""
        return [
            each for each in (self._line.reader, *self._printed) if each in self._open
        ]

    def send(self, request: object) -> None:
        """Send a request; a child that has ended is ignored."""
        with suppress(OSError):
            self._line.send(request)

    def read(self) -> list[Any]:
        """Return the messages that have arrived; print the output of the child."""
        for source in self._printed:
            self._print(source)
        return self._line.complete(self._arrived(self._line.reader))

    def termination(self) -> str | None:
        """Return the exit code or signal; None while it lives."""
        if self._termination is None:
            try:
                code = reap(self.pid)
            except ChildProcessError:  # another caller has waited for it
                self._termination = "exit status unknown: another process read it"
            else:
                self._termination = None if code is None else exit_text(code)
        return self._termination

    def stack(self, *, living: bool) -> str:
        """Return the stack of its death, or of now, as faulthandler writes it."""
        if living and self.termination() is None:
            with suppress(OSError):
                os.kill(self.pid, STACK_SIGNAL)
            self._await_stack()
        self._stack += self._arrived(self._trace)
        return self._stack[:MOST_STACK].decode(errors="replace")

    def _await_stack(self) -> None:
        """Read until the child is silent for a while, or until the time is over."""
        poll = select.poll()
        poll.register(self._trace, select.POLLIN)
        until = monotonic() + STACK_SECONDS
        patience = STACK_SECONDS
        while monotonic() < until and poll.poll(patience * 1000):
            arrived = self._arrived(self._trace)
            if not arrived:
                break
            self._stack += arrived
            patience = 0.1  # a stack is written at once

    def interrupt(self) -> None:
        """Raise KeyboardInterrupt in the child; its end ends what it started, too."""
        if self.termination() is None:
            self._is_interrupted = True
            with suppress(OSError):
                os.kill(self.pid, signal.SIGINT)

    def finish(self) -> None:
        """End the child in order, without further requests."""
        self._close(self._line.writer)
        until = monotonic() + STACK_SECONDS
        while self.termination() is None and monotonic() < until:
            wait([self], 0.01)
            self.read()
        if self._is_interrupted:
            # The group of the child has members if its steps started processes.
            with suppress(OSError):
                os.killpg(self.pid, signal.SIGKILL)
        self.kill()

    def kill(self) -> None:
        """Kill the child with all processes that it started, and close all handles."""
        if self._termination is None:
            self._termination = exit_text(kill(self.pid))
        self.read()
        self.close()
        _children.discard(self)

    def close(self) -> None:
        """Close the parent's ends."""
        for each in tuple(self._open):
            self._close(each)

    def _close(self, end: int) -> None:
        if end in self._open:
            self._open.remove(end)
            os.close(end)

    def _arrived(self, source: int) -> bytes:
        """Return the bytes that can be read at once; close the pipe at its end."""
        parts = []
        while source in self._open:
            try:
                part = os.read(source, _CHUNK)
            except BlockingIOError:
                break
            if not part:
                self._close(source)
            parts.append(part)
        return b"".join(parts)

    def _print(self, source: int) -> None:
        name, decoder = self._printed[source]
        arrived = self._arrived(source)
        shown = decoder.decode(arrived, final=source not in self._open)
        if shown:
            stream: IO[str] | None = getattr(sys, name)
            if self.excerpt is not None:
                shown = self.excerpt.shown(shown)
            if stream is not None:
                stream.write(shown)
                stream.flush()


# Children whose pipes are open in this process: a new child closes them.
_children: set[ForkedChild] = set()


class _Ends(NamedTuple):
    """The child's ends of its pipes."""

    up: int
    down: int
    life: int
    out: int
    err: int
    stack: int


class _ForkedParentPipe(PipeEnd):
    """The pipes of a forked child to its parent; a fork of the child exits instead."""

    def __init__(self, cells: memoryview, ends: _Ends) -> None:
        super().__init__(ends.down, ends.up)
        self.cells = cells
        self._owner = os.getpid()

    def send(self, message: object) -> None:
        """Send a message.  Raises OSError if the parent is gone."""
        self._exit_fork()
        super().send(message)

    def receive(self, seconds: float | None = None) -> Any:
        """Wait for a request.  Raises EOFError if there will be none."""
        self._exit_fork()
        return super().receive(seconds)

    def _exit_fork(self) -> None:
        if os.getpid() != self._owner:
            os._exit(0)


def _random_state() -> Any:
    """Return the state of `random`, which Python reseeds in a fork, or None.

    Steps must draw the same numbers in the child as in the parent.
    """
    module = sys.modules.get("random")
    return None if module is None else module.getstate()


def _become_process(ends: _Ends, parent: int) -> None:
    """Set up the child's streams, signal handlers and end with the parent."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    _follow_parent(parent, ends.life)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    for number, end in ((1, ends.out), (2, ends.err)):
        os.dup2(end, number)
        os.close(end)
    sys.stdout = _stream(1)
    sys.stderr = _stream(2)
    sys.breakpointhook = _no_debugger
    global _stack_end
    _stack_end = ends.stack
    trace_crashes()


# The pipe for stacks, in a forked child.
_stack_end: int | None = None


def trace_crashes() -> None:
    """Have the stack of a crash sent to the parent, again after pytest's own choice."""
    if _stack_end is None:
        return
    import faulthandler

    faulthandler.enable(_stack_end, all_threads=True)
    faulthandler.register(STACK_SIGNAL, _stack_end, all_threads=True, chain=False)


def _stream(number: int) -> TextIOWrapper:
    binary = FileIO(number, "wb", closefd=False)
    return TextIOWrapper(
        binary,  # raw, so that nothing is lost with the process
        encoding="utf-8",
        errors="backslashreplace",
        write_through=True,
    )


def _no_debugger(*_: object, **__: object) -> NoReturn:
    raise ProcessError(code="NoDebugger")


def _follow_parent(parent: int, life: int) -> None:
    if end_with_parent(parent):
        return
    from threading import Thread

    def end() -> None:
        os.read(life, 1)  # returns when the other end is closed
        os._exit(1)

    Thread(target=end, name="everyorder-lifeline", daemon=True).start()
