"""Child processes by `multiprocessing`, for systems that cannot fork.

`harness.processes.child` starts one.  The child is a fresh interpreter that imports its
code; its output is written to the parent's streams; the stack of one that hangs is
unavailable, because there is no signal that requests it.
"""

import os
import signal
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing import get_context, parent_process
from multiprocessing.connection import Connection, wait
from threading import Thread
from typing import Any

from everyorder.harness.engine import progress
from everyorder.harness.processes.excerpt import Excerpt
from everyorder.harness.processes.fork import exit_text

# As for a forked child: a child that should end has no work left.
END_SECONDS = 2.0


class SpawnedChild:
    """A spawned child."""

    def __init__(self, main: Callable[..., None], arguments: tuple[Any, ...]) -> None:
        context = get_context("spawn")
        memory = context.RawArray("Q", progress.CELLS)
        self.cells = memoryview(memory).cast("B").cast("Q")
        self._line, theirs = context.Pipe()
        self._closed = False
        # Its output is that of its parent's own streams.
        self.excerpt: Excerpt | None = None
        self._process = context.Process(
            target=_run_child, args=(main, theirs, memory, arguments), daemon=True
        )
        self._process.start()
        self.pid = self._process.pid or 0
        theirs.close()

    def sources(self) -> Sequence[Any]:
        """Return the pipe, and the sentinel of the process."""
        line = () if self._closed else (self._line,)
        return (*line, self._process.sentinel)

    def send(self, request: object) -> None:
        """Send a request; a child that has ended is ignored."""
        with suppress(OSError):
            self._line.send(request)

    def read(self) -> list[Any]:
        """Return the messages that have arrived."""
        messages = []
        while not self._closed:
            try:
                if not self._line.poll():
                    break
                messages.append(self._line.recv())
            except (EOFError, OSError):
                self._closed = True
        return messages

    def termination(self) -> str | None:
        """Return the exit code or signal; None while it lives."""
        code = self._process.exitcode
        return None if code is None else exit_text(code)

    def stack(self, *, living: bool) -> str:
        """Return "": there is no signal that requests the stack of a spawned child."""
        return ""

    def interrupt(self) -> None:
        """Do nothing: not every system can interrupt a single process."""

    def finish(self) -> None:
        """End the child in order, without further requests."""
        self._line.close()
        self._closed = True
        self._process.join(END_SECONDS)
        self.kill()

    def kill(self) -> None:
        """Kill the child, and close all handles."""
        self._process.kill()
        self._process.join()
        self._closed = True
        self._line.close()


class _SpawnedParentPipe:
    """The pipe of a spawned child to its parent."""

    def __init__(self, line: Connection, cells: memoryview) -> None:
        self.cells = cells
        self._line = line

    def send(self, message: object) -> None:
        """Send a message.  Raises OSError if the parent is gone."""
        self._line.send(message)

    def receive(self) -> Any:
        """Wait for a request.  Raises EOFError if there will be none."""
        return self._line.recv()


def _run_child(
    main: Callable[..., None], line: Connection, memory: Any, arguments: tuple[Any, ...]
) -> None:
    """Run the child; the main function of its process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    Thread(target=_end_with_parent, name="everyorder-lifeline", daemon=True).start()
    cells = memoryview(memory).cast("B").cast("Q")
    with suppress(EOFError, OSError):  # the parent is gone
        main(_SpawnedParentPipe(line, cells), *arguments)


def _end_with_parent() -> None:
    parent = parent_process()
    assert parent is not None, "it was spawned by one"
    wait([parent.sentinel])
    os._exit(1)
