"""Calls of functions on other workers.

    rpc_sync     return the result
    rpc_async    return a future of the result
    remote       return a reference to the result, which stays on the other worker
    _wait_all    wait for several calls

The functions work with values, futures and references; the agent transports requests.

Rules:
- the function is an operator, a compiled function, or any Python function that the
  other worker can import, or that can be pickled by value;
- arguments and results are copies, on the same worker too; references are not copied;
- a call has a deadline, 60 seconds unless the call or the worker sets another; a late
  call fails at the caller, and may continue at the other worker;
- `_wait_all()` waits at the end of its block for all calls that its thread made there.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import local
from typing import Any, TypeVar, overload

from everyorder.runtime.base.hooks import ready
from everyorder.runtime.futures import Future, wait_all
from everyorder.runtime.rpc.agent import (
    Agent,
    CallRequest,
    current_agent,
    timeout_seconds,
)
from everyorder.runtime.rpc.agent.options import UNSET_RPC_TIMEOUT
from everyorder.runtime.rpc.api.profiling import (
    PROFILERS,
    call,
    call_and_wait,
    create,
)
from everyorder.runtime.rpc.api.rref import RRef, reference_of
from everyorder.runtime.rpc.codec.callables import result_type
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
    return agent, agent.find(to, departed=True), request, seconds


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
    agent, node, request, seconds = prepared(
        "rpc_sync", to, func, args, kwargs, timeout
    )
    if PROFILERS.get():
        return call_and_wait(agent, node, request, seconds)
    return agent.call_and_wait(node, request, timeout=seconds)


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
    agent, node, request, seconds = prepared(
        "rpc_async", to, func, args, kwargs, timeout
    )
    if PROFILERS.get():
        future = call(agent, node, request, seconds, mode="async")
    else:
        future = agent.call(node, request, timeout=seconds)
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
    agent, node, request, seconds = prepared("remote", to, func, args, kwargs, timeout)
    if PROFILERS.get():
        handle = create(agent, node, request, seconds)
    else:
        handle = agent.remote(node, request, timeout=seconds)
    return reference_of(agent, handle, result_type(func))


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


ready(__name__)
