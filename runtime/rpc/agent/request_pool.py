"""Thread pool that runs the requests of other workers.

Rules:
- the pool has at most `size` threads, started on demand, plus one for each thread that
  waits for a future: the answer may need a thread of this very worker, and would never
  arrive without one;
- a waiting thread is recognised by its innermost function, one of `WAITS`.  A watcher
  checks every few milliseconds, only while requests queue up and all threads are busy;
- tasks of the worker itself (reading answers, handling events) do not wait for
  requests: if all threads are busy, each task runs on an additional thread;
- a request may also run on the thread that received it, while a thread here is free
  (`has_room`); that thread is not counted in `size`;
- a task is a function and its argument; an exception of a task is logged as a defect;
- a surplus thread ends after a second without a task;
- threads are daemons: they do not keep a process alive.
"""

import sys
from collections.abc import Callable
from logging import getLogger
from queue import Empty, SimpleQueue
from threading import Event, Thread, current_thread
from types import CodeType
from typing import Any

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.futures import Future

Task = tuple[Callable[[Any], object], Any]

# Code of the functions in which a thread only waits for another thread.
WAITS: Registry[CodeType, str] = Registry(
    "functions that wait", {Future._wait_outcome.__code__: "Future.wait"}
)

# Seconds between two checks while all threads are busy: a nested call beyond `size`
# waits half of that for a thread, on average.
_LOOK_SECONDS = 0.004
# Seconds without use after which a surplus thread, and the watcher, end.
_IDLE_SECONDS = 1.0
# Threads for tasks of the worker itself, which may be callbacks that wait.
MOST_OWN = 16
# More threads than a recursion of calls needs, fewer than the system refuses.
MOST = 4096


class RequestPool:
    """Threads that run requests; each thread calls `enter` first."""

    def __init__(
        self, name: str, size: int, enter: Callable[[], object] = lambda: None
    ) -> None:
        self._name = name
        self._size = size
        self._enter = enter
        self._queue: SimpleQueue[Task | None] = SimpleQueue()
        self._lock = reentered()
        # Number of idle threads, less the requests that wait for a thread.
        self._free = 0
        self._threads: set[Thread] = set()
        # Threads that run one task of the worker itself, then end.
        self._own: set[Thread] = set()
        self._started = 0
        self._closed = False
        self._watcher: Thread | None = None
        self._ending = Event()

    def put(self, function: Callable[[Any], object], argument: Any) -> None:
        """Queue `function(argument)` for a thread; tasks start in order."""
        with self._lock:
            if self._closed:
                return
            self._free -= 1
            short = self._free < 0
        self._queue.put((function, argument))
        if short:
            self._grow()

    def put_own(self, function: Callable[[Any], object], argument: Any) -> None:
        """Run a task as `put` does, but do not let it wait for requests."""
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
        """Return True if another request may run outside of the pool.

        No request may be waiting, and a thread must be idle.  A pool of a single thread
        means one request at a time.
        """
        with self._lock:
            free = self._free
            busy = len(self._threads) - free
            return self._size > 1 and free >= 0 and busy < self._size - 1

    def counts(self) -> tuple[int, int, int]:
        """Return the number of threads, of idle threads, and of waiting requests."""
        with self._lock:
            free = self._free
            return len(self._threads), max(free, 0), max(-free, 0)

    def close(self, timeout: float = 1.0) -> bool:
        """End the threads after the queued tasks; return True if they end in time.

        Later tasks are dropped.  `timeout` is in seconds.
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
                # After one late thread, do not wait for the others.
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
            # Started under the lock, so that `close` joins it.
            thread.start()

    def _new_thread(self) -> Thread:
        """Return an additional thread, counted but not started."""
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
                    # Otherwise a queued request relies on this thread.
                    if self._free > 0 and len(self._threads) > self._size:
                        self._free -= 1
                        self._threads.discard(current_thread())
                        return
                continue
            if task is None:
                self._threads.discard(current_thread())
                return
            self._run(*task)
            # The task may hold the last reference to objects of users.
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
            log = getLogger("everyorder.runtime.rpc")
            try:
                log.exception("a request ended by a defect")
            except BaseException:  # the error cannot be formatted; the thread goes on
                log.error("a request ended by a defect, which has no text")

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
        """Start threads to replace waiting ones, at most one per queued request."""
        frames, waits = sys._current_frames(), WAITS.rows
        with self._lock:
            waiting = 0
            for thread in self._threads:
                frame = frames.get(thread.ident or 0)
                waiting += frame is not None and frame.f_code in waits
            del frames
            room = min(self._size + waiting, MOST) - len(self._threads)
            for _ in range(min(room, -self._free)):
                self._new_thread().start()
