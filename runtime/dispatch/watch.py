"""Who watches calls: observers and the dispatch trace.

Watching is no state of a dispatcher.  One flag says whether anybody watches at all, so
that an unwatched call pays for one attribute.

Observers hear of `call` and `call_boxed`, not of redispatches; `before` gets the
operator, its schema, the bound arguments and the keyset, and what it returns is handed
to `after`, which is called whatever happens, with the outcome or the exception.

The trace writes one line for every call and redispatch: a space for each level of
nesting, the entry point, the operator and the key that its kernel was found under.
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

# Asked for so often, and so cheap, that watching them says nothing; the operators that
# upstream leaves out too.
UNOBSERVED = frozenset(
    {
        *("core::size", "core::is_leaf", "core::output_nr"),
        *("core::_version", "core::is_complex"),
    }
)


class Observer(Protocol):
    """Hears of every observed call."""

    def before(
        self, operator: str, schema: Schema, arguments: tuple[Any, ...], keyset: KeySet
    ) -> object:
        """The call is about to run its kernel; returns a context for `after`."""

    def after(self, context: object, outcome: object) -> None:
        """The call is over; `outcome` is its result or the exception."""


class _Depth(threading.local):
    level: int = 0


class TraceSinks:
    """The observers and trace sinks of the process; `active` is any of them."""

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
        """Publish other watchers; None leaves a kind as it is."""
        # First, and again at the end: whoever watches is asked at every moment.
        self.active = True
        self.observers = self.observers if observers is None else observers
        self.sinks = self.sinks if sinks is None else sinks
        self.active = bool(self.observers or self.sinks)

    @contextmanager
    def observing(self, observer: Observer) -> Iterator[None]:
        """Let `observer` hear of the calls of every thread, while the block runs."""
        with self._lock:
            self.replace(observers=(*self.observers, observer))
        try:
            yield
        finally:
            with self._lock:
                left = list(self.observers)
                # The last one entered; by identity, as `==` is code of anybody.
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
                kept = [s for s in self.sinks if s is not lines]
                if to_stderr:
                    kept.remove(None)
                self.replace(sinks=tuple(kept))

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
