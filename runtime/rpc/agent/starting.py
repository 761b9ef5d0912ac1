"""Starting: `init_rpc` and `shutdown`, and who is there in between.

True only here: what the process, or a thread with a seat of its own, is after a call.

Rules: a worker that could not start leaves nothing behind; the seat is taken before
anything is waited for, so that two threads do not start two workers.
"""

from threading import Lock
from typing import Any

from runtime.errors.rpc import AlreadyInitialized
from runtime.locks import renewed
from runtime.rpc.agent.agent import Agent
from runtime.rpc.agent.current import Seat, current_agent, seat
from runtime.rpc.agent.joining import checked_name, checked_rank, join, meeting
from runtime.rpc.agent.options import (
    DEFAULT_SHUTDOWN_TIMEOUT,
    BackendType,
    RpcBackendOptions,
    chosen,
    register_backend,
)
from runtime.rpc.agent.stopping import lives, stop
from runtime.rpc.identities import WorkerInfo

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
        AlreadyInitialized: there is a worker here.
        RpcMisuse: an argument that fits no worker.
        JoinTimeout, NotUnique, NotAdmitted: it is no member.
        AddressUnusable, KeysNeeded, FolderUnsafe, NotAKey: it cannot listen there.
        ExtraMissing: the address takes sockets, and nothing is installed that has any.
    """
    own = seat()
    kind, options = chosen(backend, rpc_backend_options, DEFAULT_BACKEND)
    checked_name(name)
    number, size = checked_rank(rank, world_size)
    with _LOCK:
        if own.agent is not None or own in _STARTING:
            there = own.agent.name if own.agent is not None else name
            raise AlreadyInitialized(name=there)
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
        ShutdownTimeout: not all were done in time; the worker has stopped.
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
