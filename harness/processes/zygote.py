"""Children forked from one process that stays as it was, and their channels.

The zygote is a process in which no operation has run yet.  It is forked before the
first operation, so each child starts from the same clean process; it waits for requests
on a socket, always has the next child ready, and reaps children that ended.

Rules:
- tracing is off while a process is forked, and in the child: a tracer (coverage) has
  locks, which another thread may hold at that time, and the child would wait for ever;
- the zygote has one thread and runs no code of a scenario;
- it ends with its socket, or within a second of its parent, and its children with it.
"""

import gc
import os
import select
import signal
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

from everyorder.harness.processes.child import (
    end_with_parent,
    flush_streams,
    prctl,
    receive_message,
    send_message,
    without_fork_warning,
)


class PipeEnd:
    """One end of a channel; owns the file descriptors `reader` and `writer`."""

    def __init__(self, reader: int, writer: int) -> None:
        self.reader = reader
        self.writer = writer

    def send(self, message: Any) -> None:
        """Send a value.

        Raises:
            OSError: the other side is gone.
            pickle.PicklingError: or another error of pickling; then nothing was sent.
        """
        send_message(self.writer, message)

    def receive(self) -> Any:
        """Return the next value.  Raises `EOFError` if the other side is gone."""
        return receive_message(self.reader)

    def close(self) -> None:
        """Close both descriptors; the other side receives the end."""
        for descriptor in {self.reader, self.writer}:
            if descriptor >= 0:
                os.close(descriptor)
        self.reader = self.writer = -1


# Seconds until a dead parent is detected if another process holds its socket open.
_PATIENCE = 1.0
# A child that closed its socket and still runs after so many seconds is killed.
_GRACE = 2.0
_PID_BYTES = 8


class Zygote:
    """The parent's side: returns children, and their exit statuses."""

    def __init__(self, serve: Callable[[PipeEnd], None]) -> None:
        flush_streams()
        ours, theirs = socket.socketpair()
        parent = os.getpid()
        self.pid = _fork()
        if not self.pid:
            ours.close()
            _ZygoteProcess(theirs, serve, parent).run()
        theirs.close()
        self._socket = ours
        self._channel = PipeEnd(ours.fileno(), ours.fileno())

    def child(self, ended: list[int]) -> tuple[int, PipeEnd]:
        """Return a fresh child: process id and channel; `ended` may be reaped.

        Raises:
            OSError: the zygote is gone.
            EOFError: the zygote is gone.
        """
        self._channel.send(("fork", ended))
        data, descriptors, _, _ = socket.recv_fds(self._socket, _PID_BYTES, 1)
        if not descriptors:
            raise EOFError("the zygote is gone")
        return int.from_bytes(data), PipeEnd(descriptors[0], descriptors[0])

    def status(self, pid: int) -> int:
        """Return the exit status of a child, as `os.waitstatus_to_exitcode` does."""
        self._channel.send(("wait", pid))
        status: int = self._channel.receive()
        return status

    def close(self) -> None:
        """End the zygote and its children."""
        with suppress(OSError):
            self._channel.send(("end", None))
        self._socket.close()
        with suppress(ChildProcessError):
            os.waitpid(self.pid, 0)


class _ZygoteProcess:
    """The zygote's own side."""

    def __init__(
        self, control: socket.socket, serve: Callable[[PipeEnd], None], parent: int
    ) -> None:
        self._control = control
        self._channel = PipeEnd(control.fileno(), control.fileno())
        self._serve = serve
        self._parent = parent
        self._children: set[int] = set()
        self._spare: tuple[int, socket.socket] | None = None

    def run(self) -> None:
        """Answer requests until the parent ends; never returns."""
        try:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            threading.settrace(None)
            prctl()  # loaded once, before the first fork
            # Existing objects stay: a child's collector need not scan them, or copy
            # their pages.
            gc.disable()
            gc.collect()
            gc.freeze()
            while self._answer_request():
                pass
        finally:
            for pid in self._children:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            os._exit(0)

    def _answer_request(self) -> bool:
        """Answer one request; return True if there may be more."""
        while not select.select([self._control], [], [], _PATIENCE)[0]:
            if os.getppid() != self._parent:
                return False
        try:
            what, argument = self._channel.receive()
            if what == "fork":
                for pid in argument:
                    self._reap(pid)
                pid, theirs = self._spare or self._fork_child()
                socket.send_fds(
                    self._control, [pid.to_bytes(_PID_BYTES)], [theirs.fileno()]
                )
                theirs.close()
                self._spare = self._fork_child()
            elif what == "wait":
                self._channel.send(self._reap(argument))
        except (EOFError, OSError):
            return False
        return bool(what != "end")

    def _fork_child(self) -> tuple[int, socket.socket]:
        """Fork a child that waits for a request; return it with the parent's end."""
        theirs, ours = socket.socketpair()
        zygote = os.getpid()
        pid = _fork()
        if not pid:
            end_with_parent(zygote)
            self._control.close()
            theirs.close()
            if self._spare is not None:
                self._spare[1].close()
            descriptor = ours.detach()
            self._serve(PipeEnd(descriptor, descriptor))
            os._exit(0)
        ours.close()
        self._children.add(pid)
        return pid, theirs

    def _reap(self, pid: int) -> int:
        """Wait for a child for a limited time, and return its exit status."""
        self._children.discard(pid)
        end = monotonic() + _GRACE
        with suppress(ChildProcessError):
            while True:
                reaped, status = os.waitpid(pid, os.WNOHANG)
                if reaped:
                    return os.waitstatus_to_exitcode(status)
                if monotonic() > end:
                    os.kill(pid, signal.SIGKILL)
                    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
                sleep(0.001)
        return 0


def _fork() -> int:
    """Call `os.fork` without tracing, and restore the tracer in the parent."""
    tracer, profiler = sys.gettrace(), sys.getprofile()
    sys.settrace(None)
    sys.setprofile(None)
    with without_fork_warning():
        pid = os.fork()
    if pid:
        sys.settrace(tracer)
        sys.setprofile(profiler)
    return pid
