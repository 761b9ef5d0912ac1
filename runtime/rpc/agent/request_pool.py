"""Threads: the pool that runs requests of other workers.

Rules:
- there are `size` threads at most, started when they are first needed, and one more for
  each thread that waits for a future: its answer may need a thread of this very worker,
  and would never come;
- a waiting thread is recognised by its innermost function, one of `WAITS`.  A watcher
  looks every few milliseconds, only while requests queue up and all threads are busy;
- tasks of the worker itself (reading answers, handling events) do not wait for
  requests: with all threads busy each has a thread of its own;
- a request may also run on the thread that received it, while a thread here is free
  (`has_room`); that one is not counted in `size`;
- a task is a function and its argument; an exception of it is logged as a defect;
- a surplus thread ends after a second without a task;
- threads are daemons: none keeps a process from ending.
"""

import sys
from collections.abc import Callable
from logging import getLogger
from queue import Empty, SimpleQueue
from threading import Event, Thread, current_thread
from types import CodeType
from typing import Any

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.futures import Future

Task = tuple[Callable[[Any], object], Any]

# The functions in which a thread only waits for another thread.
WAITS: set[CodeType] = {Future._wait_outcome.__code__}

# Between two looks while all threads are busy: a nested call beyond `size` waits half
# of it for its thread.
_LOOK_SECONDS = 0.004
# A surplus thread, and the watcher, end after so long without use.
_IDLE_SECONDS = 1.0
# Threads for tasks of the worker itself, which may be callbacks that wait.
MOST_OWN = 16
# More threads than a recursion of calls needs, fewer than a system refuses.
MOST = 4096


class RequestPool:
    """Threads that run requests; `enter` is called first in each of them."""

    def __init__(
        self, name: str, size: int, enter: Callable[[], object] = lambda: None
    ) -> None:
        self._name = name
        self._size = size
        self._enter = enter
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = reentered()
        # Idle threads, less the requests that no thread has taken.
        self._free = 0
        self._threads: set[Thread] = set()
        # Threads that run one task of the worker itself, and end.
        self._own: set[Thread] = set()
        self._started = 0
        self._closed = False
        self._watcher: Thread | None = None
        self._ending = Event()

    def put(self, function: Callable[[Any], object], argument: Any) -> None:
        """Have a thread call `function(argument)`; tasks start in order."""
        with self._lock:
            if self._closed:
                return
            self._free -= 1
            short = self._free < 0
        self._queue.put((function, argument))
        if short:
            self._grow()

    def put_own(self, function: Callable[[Any], object], argument: Any) -> None:
        """As `put`, for a task that must not wait for requests."""
        with self._lock:
            if self._closed:
                return
            busy = self._free <= 0 and len(self._threads) >= self._size
            if busy and len(self._own) < MOST_OWN:
                self._started += 1
                thread = Thread(
                    target=self._work_once,
                    args=(function, argument),
                    name=f"{self._name} own {self._started}",
                    daemon=True,
                )
                self._own.add(thread)
                thread.start()
                return
        self.put(function, argument)

    def has_room(self) -> bool:
        """Whether one more request may run elsewhere: none waits, a thread is idle.

        A pool of a single thread means one request at a time.
        """
        with self._lock:
            free = self._free
            busy = len(self._threads) - free
            return self._size > 1 and free >= 0 and busy < self._size - 1

    def counts(self) -> tuple[int, int, int]:
        """How many threads there are, how many are idle, how many requests wait."""
        with self._lock:
            free = self._free
            return len(self._threads), max(free, 0), max(-free, 0)

    def close(self, timeout: float = 1.0) -> bool:
        """Let the threads end after the queued tasks; whether they did in time.

        Later tasks are dropped.
        """
        self._ending.set()
        with self._lock:
            self._closed = True
            threads = [*self._threads]
            own = [*self._own]
        for _ in threads:
            self._queue.put(None)
        threads += own
        share = timeout
        for thread in threads:
            if thread is not current_thread():
                thread.join(share)
                # After one that is late, the others get no time.
                share = share if not thread.is_alive() else 0.0
        watcher = self._watcher
        if watcher is not None and watcher is not current_thread():
            watcher.join(timeout)
        return not any(
            each.is_alive() for each in threads if each is not current_thread()
        )

    def _grow(self) -> None:
        with self._lock:
            if self._closed or self._free >= 0:
                return
            if len(self._threads) < self._size:
                thread = self._new_thread()
            elif self._watcher is None:
                thread = Thread(
                    target=self._watch, name=f"{self._name} watcher", daemon=True
                )
                self._watcher = thread
            else:
                return
            # Under the lock, so that `close` joins it.
            thread.start()

    def _new_thread(self) -> Thread:
        """One more thread, not started; it counts from now on."""
        self._started += 1
        thread = Thread(
            target=self._work, name=f"{self._name} request {self._started}", daemon=True
        )
        self._threads.add(thread)
        self._free += 1
        return thread

    def _work(self) -> None:
        self._enter()
        get = self._queue.get
        while True:
            surplus = len(self._threads) > self._size
            try:
                task = get(timeout=_IDLE_SECONDS) if surplus else get()
            except Empty:
                with self._lock:
                    # Else a queued request counts on this thread.
                    if self._free > 0 and len(self._threads) > self._size:
                        self._free -= 1
                        self._threads.discard(current_thread())
                        return
                continue
            if task is None:
                self._threads.discard(current_thread())
                return
            self._run(*task)
            # It may be the last reference to objects of users.
            del task
            with self._lock:
                self._free += 1

    def _work_once(self, function: Callable[[Any], object], argument: Any) -> None:
        self._enter()
        self._run(function, argument)
        with self._lock:
            self._own.discard(current_thread())

    @staticmethod
    def _run(function: Callable[[Any], object], argument: Any) -> None:
        try:
            function(argument)
        except BaseException:
            getLogger("everyorder.runtime.rpc").exception("a request ended by a defect")

    def _watch(self) -> None:
        idle = 0.0
        while not self._ending.wait(_LOOK_SECONDS):
            if self._free < 0:
                idle = 0.0
                self._replace()
                continue
            idle += _LOOK_SECONDS
            if idle >= _IDLE_SECONDS:
                with self._lock:
                    if self._free >= 0:
                        self._watcher = None
                        return

    def _replace(self) -> None:
        """Start threads in place of waiting ones, as many as there are requests."""
        frames = sys._current_frames()
        with self._lock:
            waiting = 0
            for thread in self._threads:
                frame = frames.get(thread.ident or 0)
                waiting += frame is not None and frame.f_code in WAITS
            del frames
            room = min(self._size + waiting, MOST) - len(self._threads)
            for _ in range(min(room, -self._free)):
                self._new_thread().start()
