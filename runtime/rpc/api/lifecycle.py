"""Life cycle of workers: `init_rpc`, `shutdown`, and whole groups on one machine.

Rules of starting: a worker that could not start leaves no state behind; the slot is
reserved before any waiting, so that two threads do not start two workers.

A shutdown has these phases:

    agreed     graceful only: every member has finished and no message is in flight; in
               an open group, which does not end together, no call of this worker is
    released   graceful only: the remaining references are dropped, and the other
               workers have a moment to drop theirs
    left       the other workers are notified; everything is closed, in every case

Rules of stopping:
- every wait is bounded: by the timeout, or by the end of the missing workers; the
  missing workers are named in the log during the wait, and in the error;
- after any exception the worker is closed, and its slot is free;
- a process that ends leaves its groups without waiting.

`local_workers` is a group for the time of a block.  The thread that opens the block is
the first of its workers; the others are threads of this process, or separate processes.

Rules of local groups:
- all workers end with the block: normally the group shuts down together; after an error
  all stop at once, and processes that do not stop are killed;
- a process that is forked in the block is not one of the workers: it leaves the block,
  and ends, without touching the processes of its parent.
"""

import atexit
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from itertools import count
from logging import INFO, WARNING
from shutil import rmtree
from threading import Lock, Thread
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, get_args
from weakref import WeakSet

from everyorder.runtime.base.locks import load, renewed
from everyorder.runtime.errors.rpc import ReferenceDead, RpcError, RpcMisuse, RpcTimeout
from everyorder.runtime.rpc.agent.agent import (
    Agent,
    WorkerSlot,
    current_agent,
    worker_slot,
)
from everyorder.runtime.rpc.agent.driver import DRIVERS
from everyorder.runtime.rpc.agent.options import (
    DEFAULT_SHUTDOWN_TIMEOUT,
    BackendType,
    RpcBackendOptions,
    Settings,
    choose_backend,
    register_backend,
    timeout_seconds,
)
from everyorder.runtime.rpc.agent.rendezvous import (
    check_name,
    check_rank,
    join,
    parse_init_method,
)
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.transport.interface import BEFORE_CLOSING, LOG

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

# The default backend has the name of this project; `TENSORPIPE` is upstream's name.
DEFAULT_BACKEND = "EVERYORDER"
_LOCK: Lock = renewed()
_STARTING: set[WorkerSlot] = set()


def init_rpc(
    name: str,
    backend: BackendType | None = None,
    rank: int = -1,
    world_size: int | None = None,
    rpc_backend_options: RpcBackendOptions | None = None,
) -> None:
    """Become the worker `name`, a member of a group; wait until a static one is
    complete.

    `world_size` is the size of a static group, None or 0 for an open one.  `rank` is
    the number that the worker requests, -1 for any.

    Raises:
        RpcMisuse: this thread is a worker already, an argument is wrong, or the extra
            `rpc` is not installed.
        JoinTimeout, NotAdmitted: the worker did not become a member.
        AddressUnusable, UnsafeKeys: the worker cannot listen at its address.
    """
    own = worker_slot()
    kind, options = choose_backend(backend, rpc_backend_options, DEFAULT_BACKEND)
    check_name(name)
    number, size = check_rank(rank, world_size)
    with _LOCK:
        if own.agent is not None or own in _STARTING:
            there = own.agent.name if own.agent is not None else name
            raise RpcMisuse(code="AlreadyInitialized", name=there)
        _STARTING.add(own)
    try:
        own.agent = kind.handlers.init_backend_handler(
            name=name, rank=number, world_size=size, rpc_backend_options=options
        )
    finally:
        _STARTING.discard(own)


def start(
    name: str,
    rank: int,
    world_size: int | None,
    rpc_backend_options: RpcBackendOptions,
) -> Agent:
    """Start a worker of the default backend."""
    where = parse_init_method(rpc_backend_options.init_method, rank, world_size)
    return join(name, where, rpc_backend_options, worker_slot())


for _name in (DEFAULT_BACKEND, "TENSORPIPE"):
    register_backend(_name, RpcBackendOptions, start)


def shutdown(
    graceful: bool = True,
    timeout: float = DEFAULT_SHUTDOWN_TIMEOUT,
    *,
    ignore_leaks: bool = True,
) -> None:
    """Stop the worker; if graceful, after all members finish and no call is in flight.

    `timeout` is in seconds, 0 for as long as the other members live.

    Raises:
        NotInitialized: this thread has no worker.
        RpcTimeout: a member did not finish in time; the worker has stopped.
        ReferenceDead: references leaked, unless leaks are ignored; the worker has
            stopped.
    """
    stop(current_agent("shutdown"), graceful, timeout, ignore_leaks=ignore_leaks)


def get_worker_info(worker_name: str | int | WorkerInfo | None = None) -> WorkerInfo:
    """Return the worker of a name or a number; by default, this worker.

    Raises:
        NotInitialized: this thread has no worker.
        RpcMisuse: no member matches.
    """
    agent = current_agent("get_worker_info")
    return agent.info if worker_name is None else agent.find(worker_name).info


def get_rpc_timeout() -> float:
    """Return the default timeout of calls in seconds; 0 is for ever."""
    return current_agent("get_rpc_timeout").rpc_timeout


def set_rpc_timeout(rpc_timeout: float) -> None:
    """Set the default timeout of later calls in seconds; 0 is for ever.

    Raises:
        RpcMisuse: `rpc_timeout` is not a number of seconds.
    """
    agent = current_agent("_set_rpc_timeout")
    RpcBackendOptions(rpc_timeout=rpc_timeout)
    agent.rpc_timeout = float(rpc_timeout)


def debug_info() -> dict[str, Any]:
    """Return counts of references, calls and threads, as strings, as upstream does."""
    agent = current_agent("get_debug_info")
    return {name: str(count) for name, count in agent.debug_info().items()}


# In seconds: missing workers are logged at this interval.
_LOG_SECONDS = 10.0
# In seconds: the other workers need a round trip to drop their references; a frozen
# worker never does.
_RELEASE_SECONDS = 5.0


def stop(
    agent: Agent,
    graceful: bool = True,
    timeout: float = 0.0,
    *,
    ignore_leaks: bool = True,
    serves: bool = False,
) -> None:
    """Stop a worker; `timeout` is in seconds, 0 for as long as the others live.

    A worker that `serves` only waits for the others: its waiting is not logged as a
    warning.

    Raises:
        RpcTimeout: a member did not finish in time; the worker has stopped.
        ReferenceDead: references leaked, unless leaks are ignored; the worker has
            stopped.
        RpcMisuse: `timeout` is not a number of seconds.
    """
    seconds = timeout_seconds(timeout, 0.0, "shutdown")
    end = None if seconds is None else monotonic() + seconds
    leaks: tuple[str, ...] = ()
    try:
        if graceful:
            _agree(agent, end, seconds, INFO if serves else WARNING)
            leaks = _release(agent, end)
    finally:
        try:
            agent.close()
        finally:
            if agent.slot.agent is agent:
                agent.slot.agent = None
    if leaks:
        error = ReferenceDead(code="ReferencesLeaked", name=agent.name, lines=leaks)
        LOG.warning("Detected RRef Leaks during shutdown: %s", error)
        if not ignore_leaks:
            raise error


def _agree(agent: Agent, end: float | None, seconds: float | None, level: int) -> None:
    """Wait until all members have finished.

    Raises:
        RpcTimeout: the time was over before.
    """
    if agent.is_static:
        agent.finish()

    def is_over() -> bool:
        return bool(agent.ended) or (
            agent.finished if agent.is_static else agent.is_idle()
        )

    while True:
        left = _LOG_SECONDS
        if end is not None:
            left = min(left, end - monotonic())
        if agent.wait_until(is_over, max(left, 0.0)):
            return
        missing = agent.missing()
        if end is not None and monotonic() >= end:
            assert seconds is not None, "only a timeout sets an end"
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


def _release(agent: Agent, end: float | None) -> tuple[str, ...]:
    """Drop every reference and wait for the others; return a line for each leak."""
    agent.give_up_references()
    until = monotonic() + _RELEASE_SECONDS
    if end is not None:
        until = min(until, end)
    agent.wait_until(lambda: not agent.leaks(), max(until - monotonic(), 0.0))
    return agent.leaks()


def stop_all() -> None:
    """Stop all running workers of this process at once.

    Called at the end of a program, before transports are closed.
    """
    for agent in [*DRIVERS]:
        if isinstance(agent, Agent) and not agent.ended:
            with suppress(Exception):
                stop(agent, graceful=False)


atexit.register(stop_all)
# A transport module that is loaded after this one closes its transports before `atexit`
# calls `stop_all`, and so calls `stop_all` itself.
BEFORE_CLOSING.set(stop_all)


# Local groups ----------------------------------------------------------------------

How = Literal["threads", "spawn", "fork"]

_NUMBERS = count()
# These workers end only with the block, and a busy machine may delay any of them.
_NEAR = Settings(dead=60.0, expire=70.0)
# Seconds within which a process has to end by itself.
_END_SECONDS = 10.0
# Child processes; a forked child of this process must not end them at its exit.
_CHILDREN: "WeakSet[BaseProcess]" = WeakSet()


@contextmanager
def local_workers(
    workers: int | Sequence[str] = 2,
    *,
    how: How = "threads",
    options: RpcBackendOptions | None = None,
) -> Iterator[tuple[WorkerInfo, ...]]:
    """Run a group of workers during a block; this thread is the first of them.

    `workers` are their names, or their number: "worker0", "worker1" and so on.  `how`
    is "threads", or the start method of processes; called functions must then be
    importable from a module, except with "fork".

    Raises:
        RpcMisuse: this thread is a worker already, or an argument is invalid.
        JoinTimeout: not all of the workers joined in time.
    """
    names = _names(workers)
    if how not in get_args(How):
        raise RpcMisuse(
            call="local_workers",
            found=f"how={how!r}",
            wanted=", ".join(map(repr, get_args(How))),
        )
    own = worker_slot()
    if own.agent is not None:
        raise RpcMisuse(code="AlreadyInitialized", name=own.agent.name)
    options = options or RpcBackendOptions(session=_NEAR)
    process = os.getpid()
    with ExitStack() as stack:
        if how == "threads":
            place = f"local://local-{next(_NUMBERS)}"
        else:
            # Not TemporaryDirectory: forked children would remove the folder at their
            # end.
            folder = tempfile.mkdtemp(prefix="rpc-")
            stack.callback(rmtree, folder, ignore_errors=True)
            place = f"ipc://{folder}"
        options = replace(options, init_method=place)
        group = _Threads() if how == "threads" else _Processes(how)
        try:
            group.begin(names, options)
            where = parse_init_method(place, 0, len(names))
            agent = join(names[0], where, options, own, group.is_over)
            yield tuple(node.info for node in agent.nodes())
            if os.getpid() == process:
                group.end(agent)
        except BaseException:
            started = worker_slot().agent
            if started is not None and os.getpid() == process:
                stop(started, graceful=False)
            raise
        finally:
            if os.getpid() == process:
                group.close()
            else:
                # The folder belongs to the parent.
                stack.pop_all()


def _names(workers: int | Sequence[str]) -> tuple[str, ...]:
    names: tuple[str, ...] = ()
    if isinstance(workers, int):
        names = tuple(f"worker{n}" for n in range(workers))
    elif isinstance(workers, Sequence) and not isinstance(workers, str):
        names = tuple(check_name(name) for name in workers)
    if not names or len(set(names)) < len(names):
        raise RpcMisuse(
            call="local_workers",
            found=f"the workers {workers!r}",
            wanted="at least one name, without duplicates; or the number of workers",
        )
    return names


class _Threads:
    """Workers that run as threads of this process."""

    def __init__(self) -> None:
        self._agents: list[Agent] = []
        self._joining: list[Thread] = []
        self._over = False

    def is_over(self) -> bool:
        """Return True if joining has failed, or is not needed any more."""
        return self._over

    def begin(self, names: Sequence[str], options: RpcBackendOptions) -> None:
        """Start all workers but the first."""
        for rank, name in enumerate(names[1:], 1):
            where = parse_init_method(options.init_method, rank, len(names))
            self._run(self._join, name, where, options)

    def _join(self, name: str, where: Any, options: RpcBackendOptions) -> None:
        try:
            agent = join(name, where, options, WorkerSlot(), self.is_over)
        except RpcError as error:
            if not self._over:
                LOG.warning("%s: %s", name, error)
            # Make the first worker stop waiting for the others.
            self._over = True
            return
        self._agents.append(agent)

    def _run(self, target: Callable[..., object], *args: Any) -> None:
        thread = Thread(target=target, args=args, daemon=True)
        self._joining.append(thread)
        thread.start()

    def end(self, first: Agent) -> None:
        """Shut all workers down together."""
        self._wait()
        for agent in self._agents:
            self._run(stop, agent)
        stop(first)

    def _wait(self) -> None:
        for thread in self._joining:
            thread.join()
        self._joining.clear()

    def close(self) -> None:
        """Stop the remaining workers."""
        self._over = True
        self._wait()
        for agent in self._agents:
            if not agent.ended:
                stop(agent, graceful=False)


class _Processes:
    """Workers in separate processes."""

    def __init__(self, how: str) -> None:
        # Imported here: loading it is slow, and most programs use threads.
        from multiprocessing import get_context

        self._context: Any = get_context(how)
        self._processes: list[BaseProcess] = []

    def is_over(self) -> bool:
        """Return True if a process has ended, so that joining fails."""
        return any(each.exitcode is not None for each in self._processes)

    def begin(self, names: Sequence[str], options: RpcBackendOptions) -> None:
        """Start all workers but the first."""
        for rank, name in enumerate(names[1:], 1):
            process = self._context.Process(
                target=_serve, args=(name, rank, len(names), options), daemon=True
            )
            process.start()
            _CHILDREN.add(process)
            self._processes.append(process)

    def end(self, first: Agent) -> None:
        """Shut all workers down together; the processes wait for the first worker."""
        stop(first)
        for process in self._processes:
            process.join(_END_SECONDS)

    def close(self) -> None:
        """Kill the remaining processes."""
        for process in self._processes:
            if process.is_alive():
                process.kill()
            process.join()
            process.close()


def _serve(name: str, rank: int, world_size: int, options: RpcBackendOptions) -> None:
    """Run a worker in a separate process: serve until all members have finished."""
    init_rpc(name, rank=rank, world_size=world_size, rpc_backend_options=options)
    stop(current_agent("local_workers"), serves=True)


def _in_child() -> None:
    # `multiprocessing` does the same in the children that it starts.
    for each in [*_CHILDREN]:
        load("multiprocessing.process")._children.discard(each)


# Some systems do not have fork.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
