"""Tracing, as those below it know it: whether the thread is traced, and who is told.

True only here: the key that says so, and what is told beside the operators, which the
tracer sees at its key: calls that run Python of their own.

Rules:
- a thread is traced while it includes the key `Tracer`, and nothing else says so;
- who tells is below the tracer, which puts itself into `WATCHERS` when it is imported.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from runtime.keys import LOCAL, DispatchKey

TRACER = DispatchKey.Tracer.bits


class Watcher(Protocol):
    """What a tracer is told; a call is made by it, and its result returned."""

    def read(self, tensor: Any, asked: str) -> None:
        """Something was asked of a tensor that no operator sees."""

    def applied(self, function: type, args: tuple[Any, ...]) -> Any:
        """`function.apply(*args)`, of an autograd function."""

    def called(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A call of a compiled function."""

    def forked(
        self, function: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> Any:
        """A fork; returns a future."""


# The tracer is the last one.
WATCHERS: list[Watcher] = []


def tell(tensor: Any, asked: str) -> None:
    """Something is asked of a tensor that no operator sees."""
    told = watcher()
    if told is not None:
        told.read(tensor, asked)


def watcher() -> Watcher | None:
    """Who is to be told of what the thread does now, or None."""
    view = LOCAL.view
    if view.included & ~view.excluded & TRACER and WATCHERS:
        return WATCHERS[-1]
    return None
