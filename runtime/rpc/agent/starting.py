"""Starting and stopping: `init_rpc`, `shutdown`, and who is there in between.

Rules of starting: a worker that could not start leaves nothing behind; the seat is
taken before anything is waited for, so that two threads do not start two workers.

A shutdown goes in this order:

    agreed     graceful only: every member is done and nothing is in flight; in an open
               group, where nobody waits for others, nothing of this worker's is
    released   graceful only: references that are left are given up, and a moment is
               waited until the others have given up theirs
    left       the others are told; what is there is closed, always

Rules of stopping:
- what is waited for has an end: the timeout, or the end of those who are missing; who
  they are is told while one waits, and in the error;
- whatever was raised on the way, the worker is closed after it, and the seat is free;
- a process that ends says good-bye, without waiting for anybody.
"""

import atexit
from contextlib import suppress
from logging import INFO, WARNING
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from runtime.errors.rpc import ReferencesLeaked, RpcMisuse, RpcTimeout
from runtime.locks import renewed
from runtime.rpc.agent.agent import Agent
from runtime.rpc.agent.joining import checked_name, checked_rank, join, meeting
from runtime.rpc.agent.options import (
    DEFAULT_SHUTDOWN_TIMEOUT,
    BackendType,
    RpcBackendOptions,
    chosen,
    register_backend,
    timeout_seconds,
)
from runtime.rpc.agent.threads import Seat, current_agent, seat
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.transport.interface import LOG

if TYPE_CHECKING:
    from runtime.rpc.agent.agent import Agent


# Of this project; the other name is the one that programs for torch give.
DEFAULT_BACKEND = "EVERYORDER"
_LOCK: Lock = renewed()
_STARTING: set[Seat] = set()


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Become the worker `name`: a member of a group, of a complete one if it is static.

    `world_size` is the size of a static group, None or 0 for an open one.  `rank` is
    the number that the worker wants, -1 for any.

    Raises:
        RpcMisuse: there is a worker here.
        RpcMisuse: an argument that fits no worker.
        JoinTimeout, NotAdmitted, NotAdmitted: it is no member.
        AddressUnusable, UnsafeKeys, UnsafeKeys, NotAKey: it cannot listen there.
        ExtraMissing: the address takes sockets, and nothing is installed that has any.
    """
    own = seat()
    kind, options = chosen(backend, rpc_backend_options, DEFAULT_BACKEND)
    checked_name(name)
    number, size = checked_rank(rank, world_size)
    with _LOCK:
        if own.agent is not None or own in _STARTING:
            there = own.agent.name if own.agent is not None else name
            raise RpcMisuse(code="AlreadyInitialized", name=there)
        _STARTING.add(own)
    try:
        own.agent = agent = kind.handlers.init_backend_handler(
            name=name, rank=number, world_size=size, rpc_backend_options=options
        )
        lives(agent)
    finally:
        _STARTING.discard(own)


def start(
    name: str,
    rank: int,
    world_size: int | None,
    rpc_backend_options: RpcBackendOptions,
) -> Agent:
    """A worker of the default backend."""
    where = meeting(rpc_backend_options.init_method, rank, world_size)
    return join(name, where, rpc_backend_options, seat())


for _name in (DEFAULT_BACKEND, "TENSORPIPE"):
    register_backend(_name, RpcBackendOptions, start)


def shutdown(
    graceful: bool = True,
    timeout: float = DEFAULT_SHUTDOWN_TIMEOUT,
    *,
    ignore_leaks: bool = True,
) -> None:
    """Stop the worker; gracefully, when all members want to and nothing is in flight.

    `timeout` is in seconds, 0 for as long as the others live.

    Raises:
        NotInitialized: there is none.
        RpcTimeout: not all were done in time; the worker has stopped.
        ReferencesLeaked: unless leaks are ignored; the worker has stopped.
    """
    stop(current_agent("shutdown"), graceful, timeout, ignore_leaks=ignore_leaks)


def get_worker_info(worker_name: str | int | WorkerInfo | None = None) -> WorkerInfo:
    """The worker of a name or a number; without one, this worker.

    Raises:
        NotInitialized: there is no worker here.
        UnknownWorker: there is none such.
    """
    agent = current_agent("get_worker_info")
    return agent.info if worker_name is None else agent.find(worker_name).info


def get_rpc_timeout() -> float:
    """The seconds that calls have which name none; 0 is for ever."""
    return current_agent("get_rpc_timeout").rpc_timeout


def set_rpc_timeout(rpc_timeout: float) -> None:
    """Have later calls take so many seconds where they name none; 0 is for ever.

    Raises:
        RpcMisuse: it is no number of seconds.
    """
    agent = current_agent("_set_rpc_timeout")
    RpcBackendOptions(rpc_timeout=rpc_timeout)
    agent.rpc_timeout = float(rpc_timeout)


def debug_info() -> dict[str, Any]:
    """Counts of what there is, as texts, as programs for torch read them."""
    agent = current_agent("get_debug_info")
    return {name: str(count) for name, count in agent.debug_info().items()}


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
        RpcTimeout: not all were done in time; the worker has stopped.
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
        RpcTimeout: the time is over first.
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
            raise RpcTimeout(
                code="ShutdownTimeout",
                name=agent.name,
                seconds=seconds,
                missing=missing,
            )
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
