"""The executor's options, and its pool: forked tasks, and the threads that run them.

Rules of options, which say how programs are run, for the whole process:
- options are a frozen value, replaced as a whole; a plan remembers the value that it
  was made with, and is made anew for another one;
- whatever is chosen, results are the same.

A task lies in a queue until a thread claims it: one of the pool, or the first that
waits for it and finds that it has not begun.  So a fork that is waited for soon costs
no change of threads.

Rules of tasks:
- a task is claimed once, by one step that cannot be cut in two; the thread that claims
  it completes its future, whatever happens;
- a thread that waits for a task that another one runs sleeps; that one waits for tasks
  that it forked or was given, and so on: a circle would be one of the program's own,
  however deeply forks are nested and however few the threads are;
- a thread that has found nothing to do looks again a few times before it sleeps, so
  that a program that forks and waits in turns wakes nobody; a task that finds no thread
  that looks wakes one that sleeps, or starts one, at most as many as the options say;
- threads end when there was nothing to do for a while; they are daemons: a process does
  not wait for tasks that no thread waits for;
- no lock is held while a task runs; in a forked child there are no threads, and a task
  that had not begun runs there when it is waited for.

Rules of what is carried:
- a task runs in the state of the thread that forked it, as of that moment: the keys
  that are included and excluded, whether it records, inference, autocast, the modes
  that dispatch to Python, the run that collects warnings, the variables of its context;
- the thread that runs it has its own state back afterwards, whatever happened;
- inference holds as long as what was carried does: the thread that forked may leave it.

Each part of that state is a `threading.local`, whose `__dict__` is one object for each
thread; a thread remembers those of all parts, so that a copy of its state is a copy of
a few small dictionaries, and a task that runs where it was forked finds it there.
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
from everyorder.runtime.errors.tensor import WrongOption
from everyorder.runtime.futures import Future
from everyorder.runtime.keys import LOCAL
from everyorder.runtime.script.executor.python_interop import RUN, keep_frames
from everyorder.runtime.tensors.keys import INFERRING, Presence, inference
from everyorder.runtime.tensors.keys import STATE as HANDLING

# From so many runs on, the generated text has paid for its compiling, of any size:
# 112 to 169 runs, or 195 to 266 trips of loops; measured.  Who waits that long pays for
# both at most twice what the better of the two costs.
RUNS = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorOptions:
    """The ways in which programs are run.

    `optimize`: whether passes change the copy that runs.  `text_after`: after how many
    runs, trips of loops counted, the program is turned into text of Python's; None for
    never.  `fuse`: whether chains of operators become one kernel, `fuse_after` how many
    runs are looked at before.  `threads`: how many threads run what is forked at most.

    Raises:
        WrongOption: a value is none that the option takes.
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

    def _check(self, option: str, kind: type, least: int, wanted: str) -> None:
        value: Any = getattr(self, option)
        fits = value.__class__ is kind
        if not fits or value < least:
            raise WrongOption(
                code="ExecutorRefused", option=option, found=repr(value), wanted=wanted
            )


class _Executor:
    """The options that hold now."""

    __slots__ = ("options",)

    def __init__(self) -> None:
        self.options = ExecutorOptions()


EXECUTOR = _Executor()


def executor_options() -> ExecutorOptions:
    """The options that hold now."""
    return EXECUTOR.options


def set_executor(
    options: ExecutorOptions | None = None, **changes: object
) -> ExecutorOptions:
    """Choose options, or change some of them; gives those that held before.

    Raises:
        WrongOption: a value is none that the option takes, or there is no such
            option.
    """
    before = EXECUTOR.options
    try:
        chosen = replace(options or before, **changes)  # type: ignore[arg-type]  # checked by the class itself
    except TypeError:
        known = [each.name for each in fields(ExecutorOptions)]
        wrong = next(name for name in changes if name not in known)
        *most, last = known
        wanted = f"{', '.join(most)} and {last}"
        raise WrongOption(
            code="ExecutorRefused", option=wrong, found="", wanted=wanted
        ) from None
    if chosen != before:
        EXECUTOR.options = chosen
    return before


@contextmanager
def executor(**changes: object) -> Iterator[ExecutorOptions]:
    """Change options for a while; raises as `set_executor`."""
    before = set_executor(None, **changes)
    try:
        yield EXECUTOR.options
    finally:
        EXECUTOR.options = before


Dicts = list[dict[str, Any]]


class _ThreadParts(threading.local):
    """The dictionaries of one thread; `own` is what of them is no other thread's."""

    def __init__(self) -> None:
        parts = (LOCAL, GRAD, AUTOCAST, HANDLING, inference, RUN)
        self.dicts: Dicts = [each.__dict__ for each in parts]
        self.own = HANDLING.thread


_PARTS = _ThreadParts()
# The places among them of modes, and of inference.
_MODES, _INFERENCE = 3, 4


class ThreadState:
    """The state of the thread that makes it."""

    __slots__ = ("_dicts", "_presence", "context", "copies")

    def __init__(self) -> None:
        self._dicts = dicts = _PARTS.dicts
        self.copies: Dicts = [each.copy() for each in dicts]
        active = dicts[_INFERENCE].get("active")
        self._presence = Presence(INFERRING) if active else None
        # What areas above keep for a thread, in variables of its context.
        self.context = copy_context()

    def is_current(self) -> bool:
        """Whether the state of this thread is this very one, in the same thread."""
        dicts = _PARTS.dicts
        return dicts is self._dicts and dicts == self.copies

    def restore(self) -> None:
        """Let this thread have the state."""
        for mine, copy in zip(_PARTS.dicts, self.copies, strict=True):
            if mine != copy:
                for name in [*mine]:
                    if name not in copy:
                        del mine[name]
                mine.update(copy)
        _PARTS.dicts[_MODES]["thread"] = _PARTS.own


# Seconds that a thread sleeps for a task before it ends.
IDLE_SECONDS = 5.0
# How often a thread looks for a task before it sleeps, and the seconds in between: who
# forks and waits in turns does so a thousand times as often.
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
        # The thread that claimed it: the first to set this.
        self._claims: dict[str, object] = {}

    def wait(self, timeout: float | None = None) -> Any:
        """As of any future; without a timeout a task that has not begun runs here."""
        if timeout is None and not self._claims:
            self.run()
        return super().wait(timeout)

    def is_claimed(self) -> bool:
        """Whether a thread runs it, or has run it."""
        return bool(self._claims)

    def run(self) -> None:
        """Run the task here, unless a thread has claimed it.

        Raises:
            BaseException: no `Exception`: what interrupted the task.  Its future is
                complete with that, too.
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
        """Complete the future with an error; whether that is all there is to do."""
        self.set_error_if_needed(error)
        return isinstance(error, Exception)

    def _drop(self) -> None:
        """Keep neither the function nor its arguments."""
        self._function, self._arguments, self._state = None, (), None


class TaskPool:
    """Tasks, and the threads that take them."""

    __slots__ = ("_bell", "_looking", "_sleeping", "_tasks", "_threads")

    def __init__(self) -> None:
        self._renew()

    def _renew(self) -> None:
        self._tasks: deque[ForkFuture] = deque()
        # Wakes a thread that sleeps.
        self._bell: SimpleQueue[None] = SimpleQueue()
        # One element for each thread that does so: counted by steps of one.
        self._looking: list[None] = []
        self._sleeping: list[None] = []
        self._threads: set[threading.Thread] = set()

    def fork(self, function: Callable[..., Any], *arguments: Any) -> ForkFuture:
        """The future of `function(*arguments)`, which runs some time, somewhere."""
        task = ForkFuture(function, arguments)
        # First of all: a thread that goes to sleep looks once more behind that.
        self._tasks.append(task)
        if not self._looking:
            self._wake()
        return task

    @property
    def size(self) -> int:
        """The number of threads."""
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
            # There is no thread to be had: the waiting thread runs the task.
            self._threads.discard(thread)

    def _work(self) -> None:
        """The loop of a thread of the pool."""
        threads = self._threads
        try:
            while self._look() or self._sleep():
                pass
        finally:
            threads.discard(threading.current_thread())

    def _look(self) -> bool:
        """Run tasks as long as there are any; whether there was one."""
        tasks, found = self._tasks, False
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
                # Others may be there, and this may take long.
                if tasks and not self._looking:
                    self._wake()
                _run(task)
                del task
                found = True
                self._looking.append(None)
            if found:
                break
            sleep(POLL_SECONDS)
        self._looking.pop()
        return found

    def _sleep(self) -> bool:
        """Sleep until there is a task; False if there was none for long."""
        self._sleeping.append(None)
        if self._tasks:
            # It came before anybody could see that this thread sleeps.
            with suppress(IndexError):
                self._sleeping.pop()
                return True
        try:
            self._bell.get(timeout=IDLE_SECONDS)
        except Empty:
            with suppress(IndexError):
                self._sleeping.pop()
                return False
            # Another thread is about to ring.
            self._bell.get()
        return True


def _run(task: ForkFuture) -> None:
    """Run a task on a thread of the pool, which no task ends."""
    # The waiting thread raises what the task raised.
    with suppress(BaseException):
        task.run()


fork_pool = TaskPool()

# Some systems have no fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=fork_pool._renew)
