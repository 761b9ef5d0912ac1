"""Observers of calls, and the dispatch trace.

Watching is not part of a dispatcher's state.  One flag is true if there is any watcher,
so that an unwatched call costs one attribute access.

Observers are notified of `call` and `call_boxed`, not of redispatches; `before` gets
the operator, its schema, the bound arguments and the keyset, and returns a context that
`after` gets back, together with the outcome or the exception; `after` is always called.

The trace writes one line for every call and redispatch: a space for each level of
nesting, the entry point, the operator and the key of the slot that runs.
`EVERYORDER_TRACE=1` in the environment traces to standard error.
"""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.schema import Schema

# Too frequent and too cheap for an observation to be useful; upstream omits the same
# operators.
UNOBSERVED = frozenset(
    {
        *("core::size", "core::is_leaf", "core::output_nr"),
        *("core::_version", "core::is_complex"),
    }
)


class Observer(Protocol):
    """Is notified of every observed call."""

    def before(
        self, operator: str, schema: Schema, arguments: tuple[Any, ...], keyset: KeySet
    ) -> object:
        """Handle the start of a call and return a context for `after`."""

    def after(self, context: object, outcome: object) -> None:
        """Handle the end of a call; `outcome` is its result or the exception."""


class _Depth(threading.local):
    level: int = 0


class TraceSinks:
    """The observers and trace sinks of the process; `active` if there are any."""

    __slots__ = ("_lock", "active", "observers", "sinks")

    def __init__(self) -> None:
        self._lock = reentered()
        self.observers: tuple[Observer, ...] = ()
        self.sinks: tuple[list[str] | None, ...] = ()
        self.active = False

    def replace(
        self,
        observers: tuple[Observer, ...] | None = None,
        sinks: tuple[list[str] | None, ...] | None = None,
    ) -> None:
        """Publish new observers and sinks; None keeps the current ones."""
        # Set before the change and again after it: other threads read it at any time.
        self.active = True
        self.observers = self.observers if observers is None else observers
        self.sinks = self.sinks if sinks is None else sinks
        self.active = bool(self.observers or self.sinks)

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Notify `observer` of the calls of every thread, while the block runs."""
        with self._lock:
            self.replace(observers=(*self.observers, observer))
        try:
            yield
        finally:
            with self._lock:
                left = list(self.observers)
                # The last one entered; by identity, as `==` may run foreign code.
                last = max(at for at, each in enumerate(left) if each is observer)
                self.replace(observers=(*left[:last], *left[last + 1 :]))

    @contextmanager
    def tracing(self, to_stderr: bool = False) -> Iterator[list[str]]:
        """Collect the trace of every thread's calls while the block runs."""
        lines: list[str] = []
        sinks = (lines, None) if to_stderr else (lines,)
        with self._lock:
            self.replace(sinks=(*self.sinks, *sinks))
        try:
            yield lines
        finally:
            with self._lock:
                left = [sink for sink in self.sinks if sink is not lines]
                if to_stderr:
                    left.remove(None)
                self.replace(sinks=tuple(left))

    def write(self, label: str, operator: str, key: str) -> None:
        """Trace one call at the current level of nesting."""
        line = f"{' ' * DEPTH.level}[{label}] op=[{operator}], key=[{key}]"
        for sink in self.sinks:
            if sink is None:
                print(line, file=sys.stderr)
            else:
                sink.append(line)


DEPTH = _Depth()
WATCH = TraceSinks()
if os.environ.get("EVERYORDER_TRACE", "0") not in ("", "0"):
    WATCH.replace(sinks=(None,))
