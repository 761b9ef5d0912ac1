"""Threads of tests: started together, joined, and their errors not lost.

True only here: no test sleeps.  Who has to be waiting first is looked for.
"""

import os
import signal
import threading
from collections.abc import Callable
from typing import Any

from everyorder.runtime.futures import Future

# A thread that has not ended by then waits for ever.
SECONDS = 60
# After so many seconds a signal that nobody has heard is sent again.
AGAIN = 5


class Threads:
    """Functions that run at once; leaving the block joins them, and raises errors."""

    def __init__(self, *functions: Callable[[], object]) -> None:
        self.errors: list[BaseException] = []
        self.results: list[object] = [None] * len(functions)
        self._together = threading.Barrier(len(functions))
        self._threads = [
            threading.Thread(target=self._run, args=(place, each), daemon=True)
            for place, each in enumerate(functions)
        ]

    def _run(self, place: int, function: Callable[[], object]) -> None:
        try:
            self._together.wait(SECONDS)
            self.results[place] = function()
        except BaseException as error:
            self.errors.append(error)

    def __enter__(self) -> "Threads":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *raised: object) -> None:
        for thread in self._threads:
            thread.join(SECONDS)
            assert not thread.is_alive(), "a thread waits for ever"
        for error in self.errors:
            raise error


def main_thread() -> int:
    """The thread that handles signals, for `signal.pthread_kill`."""
    ident = threading.main_thread().ident
    assert ident is not None, "it runs"
    return ident


def signalled(number: int, heard: threading.Event) -> None:
    """Send a signal to the main thread, again until it was heard.

    One that comes right before the thread sleeps in C wakes nobody.
    """
    while True:
        signal.pthread_kill(main_thread(), number)
        if heard.wait(AGAIN):
            return


def at_once(*functions: Callable[[], object]) -> list[Any]:
    """What they return, run at once, each in its thread."""
    with Threads(*functions) as threads:
        pass
    return threads.results


def until(condition: Callable[[], object]) -> None:
    """Let other threads run until something is so."""
    while not condition():
        os.sched_yield()


def until_waited_for(future: Future[Any], waiting: int = 1) -> None:
    """Let other threads run until so many wait for a future."""
    until(lambda: len(future._waiters) == waiting)
