"""Stopping: how a worker leaves, whatever the others do.

True only here: the order of a shutdown.

    agreed     graceful only: every member is done and nothing is in flight; in an open
               group, where nobody waits for others, nothing of this worker's is
    released   graceful only: references that are left are given up, and a moment is
               waited until the others have given up theirs
    left       the others are told; what is there is closed, always

Rules:
- what is waited for has an end: the timeout, or the end of those who are missing; who
  they are is told while one waits, and in the error;
- whatever was raised on the way, the worker is closed after it, and the seat is free;
- a process that ends says good-bye, without waiting for anybody.
"""

import atexit
from contextlib import suppress
from logging import INFO, WARNING
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

from runtime.errors.rpc import ReferencesLeaked, ShutdownTimeout
from runtime.rpc.agent.options import timeout_seconds
from runtime.rpc.transport.interface import LOG

if TYPE_CHECKING:
    from runtime.rpc.agent.agent import Agent

# Who is missing is told so often.
_TELL_SECONDS = 10.0
# The others need a round trip to give up their references; a frozen one never does.
_RELEASE_SECONDS = 5.0

# Those who have not stopped, for the end of the process.
_LIVING: "WeakSet[Agent]" = WeakSet()


def lives(agent: "Agent") -> None:
    """Have an agent say good-bye at the end of the process, at the latest."""
    _LIVING.add(agent)


def stop(
    agent: "Agent",
    graceful: bool = True,
    timeout: float = 0.0,
    *,
    ignore_leaks: bool = True,
    serves: bool = False,
) -> None:
    """Stop a worker; `timeout` is in seconds, 0 for as long as the others live.

    One that `serves` is there to wait for the others: it does not tell that it does.

    Raises:
        ShutdownTimeout: not all were done in time; the worker has stopped.
        ReferencesLeaked: unless leaks are ignored; the worker has stopped.
        RpcMisuse: `timeout` is no number of seconds.
    """
    seconds = timeout_seconds(timeout, 0.0, "shutdown")
    end = None if seconds is None else monotonic() + seconds
    leaks: tuple[str, ...] = ()
    try:
        if graceful:
            _agree(agent, end, seconds, INFO if serves else WARNING)
            leaks = _release(agent, end)
    finally:
        _LIVING.discard(agent)
        try:
            agent.close()
        finally:
            if agent.seat.agent is agent:
                agent.seat.agent = None
    if leaks:
        error = ReferencesLeaked(name=agent.name, lines=leaks)
        LOG.warning("Detected RRef Leaks during shutdown: %s", error)
        if not ignore_leaks:
            raise error


def _agree(
    agent: "Agent", end: float | None, seconds: float | None, level: int
) -> None:
    """Wait until all are done.

    Raises:
        ShutdownTimeout: the time is over first.
    """
    if agent.is_static:
        agent.finish()

    def is_over() -> bool:
        return bool(agent.ended) or (
            agent.finished if agent.is_static else agent.is_idle()
        )

    while True:
        left = _TELL_SECONDS
        if end is not None:
            left = min(left, end - monotonic())
        if agent.wait_until(is_over, max(left, 0.0)):
            return
        missing = agent.missing()
        if end is not None and monotonic() >= end:
            assert seconds is not None, "an end comes of a timeout"
            raise ShutdownTimeout(name=agent.name, seconds=seconds, missing=missing)
        LOG.log(
            level,
            "%s waits to shut down for %s",
            agent.name,
            ", ".join(missing) or "calls in flight",
        )


def _release(agent: "Agent", end: float | None) -> tuple[str, ...]:
    """Give up every reference, and wait for the others; the lines of those left."""
    agent.give_up_references()
    until = monotonic() + _RELEASE_SECONDS
    if end is not None:
        until = min(until, end)
    agent.wait_until(lambda: not agent.leaks(), max(until - monotonic(), 0.0))
    return agent.leaks()


def stop_all() -> None:
    """Stop what lives, at once."""
    for agent in [*_LIVING]:
        with suppress(Exception):
            stop(agent, graceful=False)


# Before transports are closed: those were imported earlier.
atexit.register(stop_all)
