"""Calls of functions on other workers, and collective operations of a group.

    rpc_sync     return the result
    rpc_async    return a future of the result
    remote       return a reference to the result, which stays on the other worker
    _all_gather, _barrier, _wait_all    operations of several workers, or several calls

The functions work with values, futures and references; the agent transports requests.

Rules:
- the function is an operator, a compiled function, or any Python function that the
  other worker can import, or that can be pickled by value;
- arguments and results are copies, on the same worker too; references are not copied;
- a call has a deadline, 60 seconds unless the call or the worker sets another; a late
  call fails at the caller, and may continue at the other worker;
- `_wait_all()` waits at the end of its block for all calls that its thread made there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from threading import local
from time import monotonic
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.future import FutureTimeout
from everyorder.runtime.errors.rpc import RpcMisuse, RpcTimeout
from everyorder.runtime.futures import Future, wait_all
from everyorder.runtime.rpc.agent import (
    Agent,
    CallRequest,
    current_agent,
    timeout_seconds,
)
from everyorder.runtime.rpc.agent.options import UNSET_RPC_TIMEOUT
from everyorder.runtime.rpc.api.profiling import (
    call,
    call_and_wait,
    create,
)
from everyorder.runtime.rpc.api.rref import RRef, reference_of
from everyorder.runtime.rpc.codec.callables import result_type
from everyorder.runtime.rpc.codec.named_functions import async_execution
from everyorder.runtime.rpc.protocol.identities import WorkerInfo, WorkerNode

T = TypeVar("T")
To = str | int | WorkerInfo
Arguments = Sequence[Any] | None
Named = Mapping[str, Any] | None


class _ThreadLocal(local):
    """The futures of a thread's calls: `future_list`, inside of `_wait_all` only."""

    future_list: list[Future[Any]]


_thread_local_var = _ThreadLocal()


def prepared(
    call: str,
    to: To,
    func: Callable[..., Any],
    args: Arguments,
    kwargs: Named,
    timeout: float,
    name: str = "",
) -> tuple[Agent, WorkerNode, CallRequest, float | None]:
    """Return this agent, the other worker, the request, and its timeout in seconds.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
    """
    agent = current_agent(call)
    seconds = timeout_seconds(timeout, agent.rpc_timeout, call)
    request = CallRequest(func, args or (), kwargs or {}, name)  # type: ignore[arg-type]  # checked when it is encoded
    return agent, agent.find(to), request, seconds


@overload
def rpc_sync(
    to: To,
    func: Callable[..., Future[T]],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> T: ...


@overload
def rpc_sync(
    to: To,
    func: Callable[..., T],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> T: ...


def rpc_sync(
    to: To,
    func: Callable[..., Any],
    args: Arguments = None,
    kwargs: Named = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """Return the result of `func(*args, **kwargs)` on the worker `to`.

    `to` is a name, a number or a `WorkerInfo`.  `timeout` is in seconds; 0 is for ever,
    -1 the default of this worker.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
        RpcTimeout: no answer arrived in time; the other worker may continue.
        WorkerLost: the other worker ended, or was cut off.
        Exception: the exception of the function, also a RuntimeError, with the message
            and the frames of the other worker.
    """
    return call_and_wait(*prepared("rpc_sync", to, func, args, kwargs, timeout))


@overload
def rpc_async(
    to: To,
    func: Callable[..., Future[T]],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> Future[T]: ...


@overload
def rpc_async(
    to: To,
    func: Callable[..., T],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> Future[T]: ...


def rpc_async(
    to: To,
    func: Callable[..., Any],
    args: Arguments = None,
    kwargs: Named = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future[Any]:
    """Return a future of the result of `func(*args, **kwargs)` on the worker `to`.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made; any other exception of
            `rpc_sync` is the future's error.
    """
    future = call(*prepared("rpc_async", to, func, args, kwargs, timeout), mode="async")
    calls = getattr(_thread_local_var, "future_list", None)
    if calls is not None:
        calls.append(future)
    return future


@overload
def remote(
    to: To,
    func: Callable[..., Future[T]],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> RRef[T]: ...


@overload
def remote(
    to: To,
    func: Callable[..., T],
    args: Arguments = ...,
    kwargs: Named = ...,
    timeout: float = ...,
) -> RRef[T]: ...


def remote(
    to: To,
    func: Callable[..., Any],
    args: Arguments = None,
    kwargs: Named = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef[Any]:
    """Return a reference to the result of `func(*args, **kwargs)` on `to`, at once.

    The worker keeps the value as long as a reference exists.  An exception of the
    function is raised where the value is fetched.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
    """
    call = prepared("remote", to, func, args, kwargs, timeout)
    return reference_of(call[0], create(*call), result_type(func))


@contextmanager
def _wait_all() -> Iterator[None]:
    """Wait at the end of the block for this thread's `rpc_async` calls in it.

    Raises:
        BaseException: the first error among them, or an exception of the block.
    """
    outer = getattr(_thread_local_var, "future_list", None)
    calls: list[Future[Any]] = []
    _thread_local_var.future_list = calls
    try:
        yield
        wait_all(calls)
    finally:
        if outer is None:
            del _thread_local_var.future_list
        else:
            _thread_local_var.future_list = outer


# Collective operations ---------------------------------------------------------------


class _Gathering:
    """The objects of several workers, until all workers have contributed."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        # By name of the worker: its object, and the time at which the worker gives up.
        self.objects: dict[str, tuple[Any, float]] = {}
        self.complete: Future[dict[str, Any]] = Future()

    def missing(self) -> tuple[str, ...]:
        """Return the workers without an object, and those whose wait timed out."""
        now = monotonic()
        late = [name for name, (_, until) in self.objects.items() if until < now]
        for name in late:
            del self.objects[name]
        return tuple(name for name in self.names if name not in self.objects)


class _Gatherings:
    """The gatherings of one worker: those it takes part in, and those it leads."""

    def __init__(self) -> None:
        # The number of gatherings of each group, by the names of its members.
        self.counts: dict[tuple[str, ...], int] = {}
        # The last complete gathering of each group, for members that timed out and try
        # again: its number, its members, its objects.
        self.last: dict[
            tuple[str, ...], tuple[int, set[WorkerNode], dict[str, Any]]
        ] = {}
        self.open: dict[tuple[int, tuple[str, ...]], _Gathering] = {}


_LOCK = reentered()
_GATHERINGS: "WeakKeyDictionary[Agent, _Gatherings]" = WeakKeyDictionary()


def _gatherings(agent: Agent) -> _Gatherings:
    # The last objects may hold references, which keep their agent alive.
    for each in [*_GATHERINGS]:
        if each.ended:
            _GATHERINGS.pop(each, None)
    return _GATHERINGS.setdefault(agent, _Gatherings())


@async_execution
def _arrive(
    number: int, names: tuple[str, ...], name: str, obj: Any, seconds: float | None
) -> Future[dict[str, Any]]:
    """Give an object to the worker that leads a gathering; a future of all."""
    agent = current_agent("_all_gather")
    gatherings = _gatherings(agent)
    until = inf if seconds is None else monotonic() + seconds
    # A restarted worker takes part as a new member.
    life = next((node for node in agent.nodes() if node.name == name), None)
    with _LOCK:
        last, lives, objects = gatherings.last.get(names, (0, set(), {}))
        if number <= last and life in lives:
            # The member's first attempt arrived after its timeout, and was counted.
            repeated: Future[dict[str, Any]] = Future()
            if number == last:
                repeated.set_result(objects)
            else:
                repeated.set_exception(
                    RpcTimeout(
                        code="GatherTimeout",
                        call="_all_gather",
                        missing=(),
                        seconds=0.0,
                    )
                )
            return repeated
        gathering = gatherings.open.setdefault((number, names), _Gathering(names))
        gathering.objects[name] = obj, until
        complete = not gathering.missing()
        if complete:
            del gatherings.open[number, names]
            each = {name: gathering.objects[name][0] for name in names}
            members = {node for node in agent.nodes() if node.name in names}
            gatherings.last[names] = number, members, each
    if complete:
        gathering.complete.set_result(each)
    return gathering.complete


def _all_gather(
    obj: Any,
    worker_names: Iterable[str] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> dict[str, Any]:
    """Return the objects of several workers by name; by default, of all workers.

    Each worker calls this function equally often.  The first worker by name leads.

    Raises:
        RpcMisuse: this worker is not in the group.
        RpcTimeout: a worker did not contribute in time; the error names those missing.
    """
    agent = current_agent("_all_gather")
    every = [each.name for each in agent.nodes()]
    names = tuple(sorted(every if worker_names is None else set(worker_names)))
    me = agent.info.name
    if me not in names:
        raise RpcMisuse(
            call="_all_gather",
            found=f"a group without this worker, `{me}`: {', '.join(names)}",
            wanted="the names of a group that this worker is in",
        )
    seconds = timeout_seconds(timeout, agent.rpc_timeout, "_all_gather")
    gatherings = _gatherings(agent)
    with _LOCK:
        number = gatherings.counts[names] = gatherings.counts.get(names, 0) + 1
    try:
        if me == names[0]:
            return _lead(gatherings, number, names, obj, seconds)
        args = (number, names, me, obj, seconds)
        gathered: dict[str, Any] = rpc_sync(
            names[0], _arrive, args, timeout=seconds or 0
        )
        return gathered
    except TimeoutError as error:
        with _LOCK:
            # The next attempt is for the same gathering.
            gatherings.counts[names] = number - 1
        if getattr(error, "code", "") == "GatherTimeout" or seconds is None:
            raise
        raise RpcTimeout(
            code="GatherTimeout", call="_all_gather", missing=(), seconds=seconds
        ) from error


def _lead(
    gatherings: _Gatherings,
    number: int,
    names: tuple[str, ...],
    obj: Any,
    seconds: float | None,
) -> dict[str, Any]:
    complete = _arrive(number, names, names[0], obj, None)
    try:
        return {**complete.wait(seconds)}
    except FutureTimeout as error:
        assert seconds is not None, "only a wait with a timeout ends so"
        with _LOCK:
            gathering = gatherings.open.pop((number, names), None)
        if gathering is None:
            # The gathering was completed at the last moment.
            return {**complete.wait()}
        late = RpcTimeout(
            code="GatherTimeout",
            call="_all_gather",
            missing=gathering.missing(),
            seconds=seconds,
        )
        gathering.complete.set_error_if_needed(late)
        raise late from error


def _barrier(worker_names: Iterable[str]) -> None:
    """Wait until each worker of a group has called this; a timeout is logged.

    Raises:
        RpcMisuse: this worker is not in the group.
    """
    try:
        _all_gather(None, worker_names)
    except TimeoutError as error:
        from logging import getLogger

        getLogger("everyorder.runtime.rpc").error("a barrier timed out: %s", error)


ready(__name__)
