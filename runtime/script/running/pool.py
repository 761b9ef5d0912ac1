"""The pool: tasks that are forked, and the threads that run them.

True only here: who runs a task, and when.  A task lies in a queue until somebody claims
it: a thread of the pool, or the first who waits for it and finds that it has not begun.
So a fork that is waited for soon costs no change of threads.

Rules:
- a task is claimed once, by one step that cannot be cut in two; whoever claims it
  completes its future, whatever happens;
- who waits for a task that another thread runs sleeps; that thread waits for tasks that
  it forked or was given, and so on: a circle would be one of the program's own, however
  deeply forks are nested and however few the threads are;
- threads start when a task finds none idle, at most as many as the options say, and end
  when there was nothing to do for a while; they are daemons: a process does not wait
  for tasks that nobody waits for;
- no lock is held while a task runs; in a forked child there are no threads, and a task
  that had not begun runs there when it is waited for;
- a task runs in the state of the thread that forked it (`carried`).
"""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import Any

from runtime.futures import Future
from runtime.script.running.backtrace import keep
from runtime.script.running.carried import Carried, carried, carry
from runtime.script.running.options import CHOSEN

# Seconds that a thread waits for a task before it ends.
IDLE = 5.0


class Forked(Future[Any]):
    """The future of a task; who waits for it first may run it."""

    __slots__ = ("_arguments", "_claims", "_function", "_state")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        super().__init__()
        self._function: Callable[..., Any] | None = function
        self._arguments = arguments
        self._state: Carried | None = carried()
        # Who claimed it; whoever is first to set it did.
        self._claims: dict[str, object] = {}

    def wait(self, timeout: float | None = None) -> Any:
        """As of any future; without a timeout a task that has not begun runs here."""
        if timeout is None and not self._claims:
            self.run()
        return super().wait(timeout)

    def run(self) -> None:
        """Run the task here, unless somebody has claimed it.

        Raises:
            BaseException: no `Exception`: what interrupted the task.  Its future is
                complete with that, too.
        """
        me = object()
        before = None
        try:
            if self._claims.setdefault("owner", me) is not me:
                return
            function, arguments, state = self._function, self._arguments, self._state
            assert function is not None, "it is dropped by whoever claimed the task"
            before = carried()
            carry(state or before)
            value = function(*arguments)
            carry(before)
            self._drop()
            self.set_result(value)
        except BaseException as error:
            if before is not None:
                carry(before)
            if self._claims.get("owner") is me:
                self._drop()
                keep(error)
                if not self._failed(error):
                    raise

    def _failed(self, error: BaseException) -> bool:
        """Complete the future with an error; whether that is all there is to do."""
        self.set_error_if_needed(error)
        return isinstance(error, Exception)

    def _drop(self) -> None:
        """Keep neither the function nor its arguments."""
        self._function, self._arguments, self._state = None, (), None


class Pool:
    """A queue of tasks, and the threads that take them."""

    __slots__ = ("_idle", "_queue", "_threads")

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._queue: SimpleQueue[Forked] = SimpleQueue()
        # Threads that are waiting; one permit each.
        self._idle: list[None] = []
        self._threads: set[threading.Thread] = set()

    def fork(self, function: Callable[..., Any], *arguments: Any) -> Forked:
        """The future of `function(*arguments)`, which runs some time, somewhere."""
        task = Forked(function, arguments)
        self._queue.put(task)
        if not self._idle and len(self._threads) < CHOSEN.options.threads:
            self._start()
        return task

    @property
    def size(self) -> int:
        """How many threads there are."""
        return len(self._threads)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="fork", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # No thread to be had: whoever waits runs the task.
            self._threads.discard(thread)

    def _work(self) -> None:
        queue, threads, idle = self._queue, self._threads, self._idle
        try:
            while True:
                idle.append(None)
                try:
                    task = queue.get(timeout=IDLE)
                except Empty:
                    return
                finally:
                    idle.pop()
                _run(task)
                del task
        finally:
            threads.discard(threading.current_thread())


def _run(task: Forked) -> None:
    """Run a task on a thread of the pool, which no task ends."""
    # Whoever waits for the task gets what it raises.
    with suppress(BaseException):
        task.run()


fork_pool = Pool()

# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fork_pool._renew)
