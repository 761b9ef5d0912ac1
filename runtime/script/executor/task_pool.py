"""The executor's options, and the pool of threads that run forked tasks.

Rules of options, which control the execution of programs in the whole process:
- options are a frozen value, replaced as a whole; a plan stores the value that it was
  built for, and is rebuilt for another one;
- options do not change results.

A task is queued until a thread claims it: a thread of the pool, or the first thread
that waits for the task before it has begun. So a fork that is waited for soon costs no
switch of threads.

Rules of tasks:
- a task is claimed once, by an atomic step; the thread that claims it completes its
  future in every case;
- a thread that waits for a running task sleeps; the running thread waits only for tasks
  that it forked or received, and so on: a deadlock is possible only if the program
  itself has a cycle, however deeply forks are nested and however few the threads are;
- a thread without a task polls a few times before it sleeps, so that a program that
  forks and waits in turns need not wake threads; if no thread is polling, a new task
  wakes a sleeping thread, or starts one, up to the limit of the options;
- threads end after some idle time; they are daemons: a process does not wait for tasks
  that no thread waits for;
- no lock is held while a task runs; in a forked child there are no threads, and a task
  that had not begun runs there when it is waited for.

Rules of the carried state:
- a task runs in the state of the thread that forked it, as of that moment: the keys
  that are included and excluded, grad mode, inference mode, autocast, the modes that
  dispatch to Python, hooks of saved tensors, the run that collects warnings, the
  context variables;
- the thread that runs it restores its own state afterwards, in every case;
- inference mode and hooks last as long as the carried state: the thread that forked
  may leave them.

Each part of that state is a `threading.local`, whose `__dict__` is one object for each
thread; a thread holds those of all parts, so that a copy of its state is a copy of a
few small dictionaries, and a task that runs on the forking thread need not restore it.
"""

import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, fields, replace
from queue import Empty, SimpleQueue
from time import sleep
from typing import Any

from everyorder.runtime.autograd.autocast import STATE as AUTOCAST
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.saved_hooks import HOOKS, PACKING
from everyorder.runtime.errors.tensor import WrongOption
from everyorder.runtime.futures import Future
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.script.executor.python_interop import RUN, keep_frames
from everyorder.runtime.tensors.keys import INFERRING, Presence, inference
from everyorder.runtime.tensors.keys import STATE as HANDLING

# The number of runs after which generated code has paid for its compilation, for
# programs of any size: 112 to 169 runs, or 195 to 266 trips of loops; measured. Waiting
# this long costs at most twice as much as the better of the two executors.
RUNS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """The options for the execution of programs.

    `optimize`: run the passes on the copy that is executed.  `text_after`: the number
    of runs, including trips of loops, after which the program is compiled to Python
    code; None for never.  `fuse`: fuse chains of operators into one kernel, after
    `fuse_after` runs.  `threads`: the maximum number of threads for forked tasks.

    Raises:
        WrongOption: a value is invalid for its option.
    """

    optimize: bool = True
    text_after: int | None = RUNS
    fuse: bool = True
    fuse_after: int = 2
    threads: int = os.cpu_count() or 1

    def __post_init__(self) -> None:
        for option in ("optimize", "fuse"):
            self._check(option, bool, 0, "True or False")
        self._check("fuse_after", int, 0, "a number of runs")
        self._check("threads", int, 1, "a number of threads, from 1 on")
        if self.text_after is not None:
            self._check("text_after", int, 0, "a number of runs, or None for never")

    def _check(self, option: str, kind: type, least: int, expected: str) -> None:
        value: Any = getattr(self, option)
        fits = value.__class__ is kind
        if not fits or value < least:
            raise WrongOption(
                code="ExecutorRefused",
                option=option,
                found=repr(value),
                wanted=expected,
            )


class _Executor:
    """The current options."""

    __slots__ = ("options",)

    def __init__(self) -> None:
        self.options = ExecutorOptions()


EXECUTOR = _Executor()


def executor_options() -> ExecutorOptions:
    """Return the current options."""
    return EXECUTOR.options


def set_executor(
    options: ExecutorOptions | None = None, **changes: object
) -> ExecutorOptions:
    """Replace the options, or change some of them; return the previous options.

    Raises: WrongOption: a value is invalid for its option, or the option does not
    exist.
    """
    before = EXECUTOR.options
    try:
        chosen = replace(options or before, **changes)  # type: ignore[arg-type]  # checked by the class itself
    except TypeError:
        names = [each.name for each in fields(ExecutorOptions)]
        wrong = next(name for name in changes if name not in names)
        *most, last = names
        expected = f"{', '.join(most)} and {last}"
        raise WrongOption(
            code="ExecutorRefused", option=wrong, found="", wanted=expected
        ) from None
    if chosen != before:
        EXECUTOR.options = chosen
    return before


@contextmanager
def executor(**changes: object) -> Iterator[ExecutorOptions]:
    """Change options within a `with` block; raises as `set_executor`."""
    before = set_executor(None, **changes)
    try:
        yield EXECUTOR.options
    finally:
        EXECUTOR.options = before


Dicts = list[dict[str, Any]]


class _ThreadParts(threading.local):
    """The dictionaries of one thread; other threads must not share `own`."""

    def __init__(self) -> None:
        parts = (LOCAL, GRAD, AUTOCAST, HANDLING, inference, HOOKS, RUN)
        self.dicts: Dicts = [each.__dict__ for each in parts]
        self.own = HANDLING.thread


_PARTS = _ThreadParts()
# The indexes of the modes, of inference mode, and of hooks, among the parts.
_MODES, _INFERENCE, _HOOKS = 3, 4, 5


class ThreadState:
    """The state of the thread that creates it."""

    __slots__ = ("_dicts", "_packing", "_presence", "context", "copies")

    def __init__(self) -> None:
        self._dicts = dicts = _PARTS.dicts
        self.copies: Dicts = [each.copy() for each in dicts]
        active = dicts[_INFERENCE].get("active")
        self._presence = Presence(INFERRING) if active else None
        hooks = dicts[_HOOKS].get("active")
        self._packing = None if hooks is None else Presence(PACKING)
        # Context variables hold the thread state of higher layers.
        self.context = copy_context()

    def is_current(self) -> bool:
        """Return True if this thread has this very state, and created it."""
        dicts = _PARTS.dicts
        return dicts is self._dicts and dicts == self.copies

    def restore(self) -> None:
        """Give this thread the state."""
        for mine, copy in zip(_PARTS.dicts, self.copies, strict=True):
            if mine != copy:
                for name in [*mine]:
                    if name not in copy:
                        del mine[name]
                mine.update(copy)
        _PARTS.dicts[_MODES]["thread"] = _PARTS.own


# Seconds that a thread sleeps before it ends.
IDLE_SECONDS = 5.0
# The number of polls before a thread sleeps, and the seconds between them. Programs
# that fork and wait in turns do so a thousand times as often.
POLLS, POLL_SECONDS = 20, 0.0005


class ForkFuture(Future[Any]):
    """The future of a task; the first thread that waits for it may run it."""

    __slots__ = ("_arguments", "_claims", "_function", "_state")

    def __init__(
        self, function: Callable[..., Any], arguments: tuple[Any, ...]
    ) -> None:
        super().__init__()
        self._function: Callable[..., Any] | None = function
        self._arguments = arguments
        self._state: ThreadState | None = ThreadState()
        # The thread that set "owner" first has claimed the task.
        self._claims: dict[str, object] = {}

    def wait(self, timeout: float | None = None) -> Any:
        """Wait for the result; without a timeout an unclaimed task runs here."""
        if timeout is None and not self._claims:
            self.run()
        return super().wait(timeout)

    def is_claimed(self) -> bool:
        """Return True if a thread runs the task, or has run it."""
        return bool(self._claims)

    def run(self) -> None:
        """Run the task here, unless a thread has claimed it.

        Raises: BaseException: the interruption of the task, if it is not an
        `Exception`. The future is completed with it, too.
        """
        me = object()
        before: ThreadState | None = None
        try:
            if self._claims.setdefault("owner", me) is not me:
                return
            function, arguments, state = self._function, self._arguments, self._state
            assert function is not None, "the thread that claimed the task drops it"
            assert state is not None, "the thread that claimed the task drops it"
            before = state
            if not state.is_current():
                before = ThreadState()
                state.restore()
            if before is state:
                value = function(*arguments)
            else:
                value = state.context.run(function, *arguments)
            if not before.is_current():
                before.restore()
            self._drop()
            self.set_result(value)
        except BaseException as error:
            if before is not None and not before.is_current():
                before.restore()
            if self._claims.get("owner") is me:
                self._drop()
                keep_frames(error)
                if not self._failed(error):
                    raise

    def _failed(self, error: BaseException) -> bool:
        """Complete the future with an error; return False if it must be raised."""
        self.set_error_if_needed(error)
        return isinstance(error, Exception)

    def _drop(self) -> None:
        """Release the function and its arguments."""
        self._function, self._arguments, self._state = None, (), None


class TaskPool:
    """The queue of tasks, and the threads that run them."""

    __slots__ = ("_bell", "_looking", "_sleeping", "_tasks", "_threads")

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._tasks: deque[ForkFuture] = deque()
        # Wakes a sleeping thread.
        self._bell: SimpleQueue[None] = SimpleQueue()
        # One element for each polling, or sleeping, thread: append and pop are atomic.
        self._looking: list[None] = []
        self._sleeping: list[None] = []
        self._threads: set[threading.Thread] = set()

    def fork(self, function: Callable[..., Any], *arguments: Any) -> ForkFuture:
        """Return the future of `function(*arguments)`, which runs on some thread."""
        task = ForkFuture(function, arguments)
        # Append before testing: a thread that goes to sleep checks the queue once more.
        self._tasks.append(task)
        if not self._looking:
            self._wake()
        return task

    @property
    def size(self) -> int:
        """Return the number of threads."""
        return len(self._threads)

    def _wake(self) -> None:
        """Wake a thread, or start one."""
        try:
            self._sleeping.pop()
        except IndexError:
            if len(self._threads) < EXECUTOR.options.threads:
                self._start()
        else:
            self._bell.put(None)

    def _start(self) -> None:
        thread = threading.Thread(target=self._work, name="fork", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:
            # No thread can be started: the waiting thread runs the task.
            self._threads.discard(thread)

    def _work(self) -> None:
        """Run the loop of a thread of the pool."""
        threads = self._threads
        try:
            while self._look() or self._sleep():
                pass
        finally:
            threads.discard(threading.current_thread())

    def _look(self) -> bool:
        """Run all queued tasks; return True if there was one."""
        tasks, has_run = self._tasks, False
        self._looking.append(None)
        for _ in range(POLLS):
            while True:
                try:
                    task = tasks.popleft()
                except IndexError:
                    break
                if task.is_claimed():
                    continue
                self._looking.pop()
                # There may be more tasks, and this one may take long.
                if tasks and not self._looking:
                    self._wake()
                _run(task)
                del task
                has_run = True
                self._looking.append(None)
            if has_run:
                break
            sleep(POLL_SECONDS)
        self._looking.pop()
        return has_run

    def _sleep(self) -> bool:
        """Sleep until there is a task; return False after a timeout."""
        self._sleeping.append(None)
        if self._tasks:
            # The task was queued before this thread was visible as sleeping.
            with suppress(IndexError):
                self._sleeping.pop()
                return True
        try:
            self._bell.get(timeout=IDLE_SECONDS)
        except Empty:
            with suppress(IndexError):
                self._sleeping.pop()
                return False
            # Another thread has removed the entry and is about to ring.
            self._bell.get()
        return True


def _run(task: ForkFuture) -> None:
    """Run a task on a thread of the pool; no error ends the thread."""
    # The waiting thread raises the error.
    with suppress(BaseException):
        task.run()


fork_pool = TaskPool()

# Not all systems have `fork`.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fork_pool._renew)
