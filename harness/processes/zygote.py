"""Children forked from one process that stays as it was, and their channels.

The zygote is a process in which no operation has run yet.  It is forked before the
first operation, so each child starts from the same clean process; it waits for requests
on a socket, keeps the next child ready, and reaps children that ended.

Rules:
- tracing is off while a process is forked, and in the child: a tracer (coverage) has
  locks, which another thread may hold at that time, and the child would wait for ever;
- the zygote has one thread and runs no code of a scenario;
- it answers a request for a child with the process id and a descriptor, or, if the
  system refuses a new process, with the negative number of the error;
- it ends with its socket, or within a second of its parent, and its children with it.
"""

import errno
import gc
import os
import select
import signal
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from everyorder.harness.processes.fork import end_with_parent, fork, kill, reap
from everyorder.harness.processes.messages import PipeEnd

# Seconds until a dead parent is detected if another process holds its socket open.
_PATIENCE = 1.0
# A child that closed its socket and still runs after so many seconds is killed.
_GRACE = 2.0
_PID_BYTES = 8


class Zygote:
    """The parent's side: returns children, and their exit statuses."""

    def __init__(
        self, serve: Callable[[PipeEnd], None], *, collects: bool = True
    ) -> None:
        ours, theirs = socket.socketpair()
        parent = os.getpid()

        def run() -> None:
            ours.close()
            _ZygoteProcess(theirs, serve, parent).run(collects=collects)

        try:
            self.pid = fork(run, traced=False)
        except BaseException:  # no fork, or Ctrl-C
            ours.close()
            raise
        finally:
            theirs.close()
        self._own_status: int | None = None
        self._socket = ours
        self._channel = PipeEnd(ours.fileno(), ours.fileno())

    def child(self, ended: list[int]) -> tuple[int, PipeEnd]:
        """Return a fresh child: process id and channel; `ended` may be reaped.

        Raises:
            EOFError: the zygote is gone.
            OSError: the system refuses a process, or a descriptor for its channel.
        """
        data, descriptors, flags = b"", list[int](), 0
        with suppress(OSError):
            self._channel.send(("fork", ended))
            data, descriptors, flags, _ = socket.recv_fds(self._socket, _PID_BYTES, 1)
        if not data:
            raise EOFError("the zygote is gone")
        pid = int.from_bytes(data, signed=True)
        if pid < 0:
            raise OSError(-pid, os.strerror(-pid))
        if not descriptors:
            assert flags & socket.MSG_CTRUNC, "the zygote sends a descriptor"
            # The child ends, because the other end of its channel is lost.
            self.status(pid)
            self._raise_refusal()
        (descriptor,) = descriptors
        os.set_inheritable(descriptor, False)
        return pid, PipeEnd(descriptor, descriptor)

    def _raise_refusal(self) -> NoReturn:
        """Raise the error for which the system has dropped a received descriptor."""
        # The flag of the message has no reason; usually, another descriptor is refused
        # for the same one.
        os.close(os.dup(self._socket.fileno()))
        raise OSError(errno.EIO, "the system has dropped a descriptor")

    def status(self, pid: int) -> int:
        """Return the exit status of a child, as `os.waitstatus_to_exitcode` does.

        It is that of the zygote, if this is gone: the child has ended with it.  `pid`
        is 0 if the zygote ended before there was a child.
        """
        if pid:
            with suppress(EOFError, OSError):
                self._channel.send(("wait", pid))
                status: int = self._channel.receive()
                return status
        if self._own_status is None:
            self._own_status = kill(self.pid)
        return self._own_status

    def close(self) -> None:
        """End the zygote and its children."""
        with suppress(OSError):
            self._channel.send(("end", None))
        self._socket.close()
        if self._own_status is None:
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

    def run(self, *, collects: bool) -> None:
        """Answer requests until the parent ends; never returns."""
        try:
            threading.settrace(None)
            # Existing objects stay: a child's collector need not scan them, or copy
            # their pages.
            gc.disable()
            if collects:
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
                self._send_child()
            elif what == "wait":
                self._channel.send(self._reap(argument))
        except (EOFError, OSError):
            return False
        return bool(what != "end")

    def _send_child(self) -> None:
        """Send a child, or the error of the system, and prepare the next child."""
        try:
            pid, theirs = self._spare or self._fork_child()
        except OSError as error:
            number = -(error.errno or errno.EIO)
            self._control.sendall(number.to_bytes(_PID_BYTES, signed=True))
            return
        self._spare = None
        with theirs:
            socket.send_fds(
                self._control, [pid.to_bytes(_PID_BYTES)], [theirs.fileno()]
            )
        with suppress(OSError):  # the next request reports it, if it lasts
            self._spare = self._fork_child()

    def _fork_child(self) -> tuple[int, socket.socket]:
        """Fork a child that waits for a request; return it with the parent's end.

        Raises:
            OSError: the system refuses a socket or a process.
        """
        theirs, ours = socket.socketpair()
        zygote = os.getpid()

        def run() -> None:
            end_with_parent(zygote)
            self._control.close()
            theirs.close()
            if self._spare is not None:
                self._spare[1].close()
            descriptor = ours.detach()
            self._serve(PipeEnd(descriptor, descriptor))

        try:
            pid = fork(run, traced=False)
        except BaseException:
            theirs.close()
            raise
        finally:
            ours.close()
        self._children.add(pid)
        return pid, theirs

    def _reap(self, pid: int) -> int:
        """Wait for a child for a limited time, and return its exit status."""
        self._children.discard(pid)
        try:
            code = reap(pid, _GRACE)
        except ChildProcessError:
            return 0
        return kill(pid) if code is None else code
