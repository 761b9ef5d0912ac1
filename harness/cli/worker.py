"""Scenarios explored by several processes at once.

True only here: processes and pipes.  Each worker has one pipe and one task at a time,
so a worker that dies (a crash in native code, a kill) loses that task only and is told
of by name; a fresh worker takes its place.

Rules:
- workers are spawned, not forked: no lock or thread of ours is copied;
- Ctrl-C is the parent's affair; it ends the workers it started, whatever happens;
- progress is sent at most ten times a second, so pipes never fill.
"""

import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from time import monotonic

from harness.cli.task import Effort, Outcome, Task, perform
from harness.report import Unexplored

# Ten pictures a second look alive; more only cost time.
TELL_EVERY = 0.1


@dataclass(frozen=True, slots=True)
class Started:
    """A task was begun."""

    index: int


@dataclass(frozen=True, slots=True)
class Advanced:
    """A task has executed some of its planned letters."""

    index: int
    done: int
    planned: int


@dataclass(frozen=True, slots=True)
class Finished:
    """A task is over."""

    index: int
    outcome: Outcome


Event = Started | Advanced | Finished


def explore_all(
    tasks: Sequence[Task], effort: Effort, jobs: int
) -> Generator[Event, None, None]:
    """Perform the tasks in at most `jobs` processes and tell what happens.

    Tasks are begun in order and end in any order; each ends exactly once.
    """
    waiting = list(reversed(range(len(tasks))))
    busy: dict[Connection, tuple[BaseProcess, int]] = {}
    try:
        for _ in range(min(jobs, len(tasks))):
            yield _begin(*_spawn(effort), waiting.pop(), tasks, busy)
        while busy:
            for connection in wait(list(busy)):
                assert isinstance(connection, Connection), "only pipes are waited for"
                worker, index = busy[connection]
                try:
                    message = connection.recv()
                except (EOFError, ConnectionError):
                    del busy[connection]
                    worker.join()
                    yield Finished(index, _died(tasks[index], worker.exitcode))
                    if waiting:
                        yield _begin(*_spawn(effort), waiting.pop(), tasks, busy)
                    continue
                if isinstance(message, tuple):
                    yield Advanced(index, *message)
                    continue
                yield Finished(index, message)
                if waiting:
                    yield _begin(worker, connection, waiting.pop(), tasks, busy)
                else:
                    del busy[connection]
                    _end(worker, connection)
    finally:
        for connection, (worker, _) in busy.items():
            worker.terminate()
            _end(worker, connection)


def _spawn(effort: Effort) -> tuple[BaseProcess, Connection]:
    context = get_context("spawn")
    ours, theirs = context.Pipe()
    worker = context.Process(target=serve, args=(theirs, effort), daemon=True)
    with _deaf():
        worker.start()
    theirs.close()
    return worker, ours


@contextmanager
def _deaf() -> Iterator[None]:
    """Let Ctrl-C wait; a process begun meanwhile never hears it, its parent does.

    Without that, one that is still being imported would tell of it with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):  # there is none on Windows
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin(
    worker: BaseProcess,
    connection: Connection,
    index: int,
    tasks: Sequence[Task],
    busy: dict[Connection, tuple[BaseProcess, int]],
) -> Started:
    busy[connection] = (worker, index)
    with suppress(OSError):  # a worker that is dead already is told by its pipe's end
        connection.send(tasks[index])
    return Started(index)


def _end(worker: BaseProcess, connection: Connection) -> None:
    connection.close()
    worker.join()


def _died(task: Task, exitcode: int | None) -> Unexplored:
    how = f"exit code {exitcode}"
    if exitcode is not None and exitcode < 0:
        how = f"signal {-exitcode}, {signal.strsignal(-exitcode)}"
    return Unexplored(task.path, "", f"the process that explored it ended ({how})")


def serve(connection: Connection, effort: Effort) -> None:
    """Perform tasks from the pipe until it is closed; the worker's main function."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    last = 0.0

    def tell(done: int, planned: int) -> None:
        nonlocal last
        now = monotonic()
        if now - last >= TELL_EVERY:
            last = now
            connection.send((done, planned))

    with suppress(EOFError, ConnectionError):  # the parent is done, or gone
        while True:
            connection.send(perform(connection.recv(), effort, tell))
