"""The worker that a thread speaks for: one for the process, or one of its own.

True only here: where `init_rpc` puts a worker, and where everybody finds it.  A seat
holds one worker at a time.  A process has a seat; a thread may have one of its own, and
then is, with all that it calls, a worker beside others in the same process.

Rules: request threads sit where their worker sits; threads that a program starts itself
have the seat of the process, unless it passes its own on; a forked child has no worker.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING

from runtime.errors.rpc import NotInitialized

if TYPE_CHECKING:
    from runtime.rpc.agent.agent import Agent


class Seat:
    """The place of one worker; `agent` is None where there is none."""

    __slots__ = ("__weakref__", "agent", "parent")

    def __init__(self) -> None:
        self.agent: Agent | None = None
        # The worker that sat here when this process was forked.
        self.parent = ""


_PROCESS = Seat()
_OWN: ContextVar[Seat | None] = ContextVar("runtime.rpc.agent.current", default=None)


def seat() -> Seat:
    """The seat of this thread."""
    return _OWN.get() or _PROCESS


def current_agent(call: str) -> "Agent":
    """The worker that this thread speaks for; `call` is what needs it.

    Raises:
        NotInitialized: there is none, or none any more.
    """
    own = _OWN.get() or _PROCESS
    agent = own.agent
    if agent is None:
        raise NotInitialized(call=call, parent=own.parent)
    return agent


def is_initialized() -> bool:
    """Whether this thread speaks for a worker."""
    return seat().agent is not None


def sit(own: Seat) -> None:
    """Have this thread speak for whoever sits there, from now on."""
    _OWN.set(own)


@contextmanager
def seated(own: Seat | None = None) -> Iterator[Seat]:
    """Have this thread speak for a seat of its own while a block runs."""
    own = own or Seat()
    before = _OWN.set(own)
    try:
        yield own
    finally:
        _OWN.reset(before)


def _in_child() -> None:
    for own in (seat(), _PROCESS):
        if own.agent is not None:
            own.parent = own.agent.name
            own.agent = None


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
