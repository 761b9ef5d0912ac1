"""Calls of functions on other workers, and what all workers do together.

They give values, futures and references; how a worker gets a request to another one is
the agent's affair.

    rpc_sync     the result
    rpc_async    a future of the result
    remote       a reference to the result, which stays where it was made

Rules:
- what is called: an operator, a compiled function, or any function of Python that the
  other worker can import, or that can be sent whole;
- arguments and results are copies, on the same worker too; references are references;
- a call has a deadline, 60 seconds unless it or the worker says otherwise; a call that
  is late fails at the caller, and may go on at the other worker;
- in `_wait_all()` a thread waits at the end for all that it began there.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import inf
from threading import local
from time import monotonic
from typing import Any, TypeVar, overload
from weakref import WeakKeyDictionary

from runtime.errors.future import FutureTimeout
from runtime.errors.rpc import RpcMisuse, RpcTimeout
from runtime.futures import Future, wait_all
from runtime.locks import reentered
from runtime.rpc.agent import (
    Agent,
    Request,
    current_agent,
    timeout_seconds,
)
from runtime.rpc.agent.options import UNSET_RPC_TIMEOUT
from runtime.rpc.functions import async_execution
from runtime.rpc.identities import Node, WorkerInfo
from runtime.rpc.profiling import call, call_and_wait, create
from runtime.rpc.references import RRef, reference_of
from runtime.rpc.values.callables import result_type
from runtime.script.plug_ins import ready

T = TypeVar("T")
To = str | int | WorkerInfo
Arguments = Sequence[Any] | None
Named = Mapping[str, Any] | None


class _OfThread(local):
    """What a thread has begun: `future_list`, inside of `_wait_all` only."""

    future_list: list[Future[Any]]


_thread_local_var = _OfThread()


def _asked(
    name: str,
    to: To,
    func: Callable[..., Any],
    args: Arguments,
    kwargs: Named,
    timeout: float,
) -> tuple[Agent, Node, Request, float | None]:
    """The worker here, the one there, what is asked, and how long that may take."""
    agent = current_agent(name)
    seconds = timeout_seconds(timeout, agent.rpc_timeout, name)
    request = Request(func, args or (), kwargs or {})  # type: ignore[arg-type]  # it is looked at when it is written
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
    """What `func(*args, **kwargs)` gives on the worker `to`.

    `to` is a name, a number or an info.  `timeout` is in seconds; 0 is for ever, -1 the
    default of this worker.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
        RpcTimeout: no answer came in time; the other worker may go on.
        WorkerLost: the other worker ended, or was cut off.
        Exception: what the function raised, also a RuntimeError, with the text and the
            frames that it had there.
    """
    return call_and_wait(*_asked("rpc_sync", to, func, args, kwargs, timeout))


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
    """A future of what `func(*args, **kwargs)` gives on the worker `to`.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made; anything else
            that `rpc_sync` raises is the future's error.
    """
    asked = _asked("rpc_async", to, func, args, kwargs, timeout)
    future = call(*asked, mode="async")
    begun = getattr(_thread_local_var, "future_list", None)
    if begun is not None:
        begun.append(future)
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
    """A reference to what `func(*args, **kwargs)` gives on the worker `to`, at once.

    The worker keeps the value as long as anybody refers to it.  What the function
    raises is raised where the value is asked for.

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
    """
    asked = _asked("remote", to, func, args, kwargs, timeout)
    return reference_of(asked[0], create(*asked), result_type(func))


@contextmanager
def _wait_all() -> Iterator[None]:
    """Wait at the end for all that this thread began by `rpc_async` inside.

    Raises:
        BaseException: the first error among them; or what was raised inside.
    """
    outer = getattr(_thread_local_var, "future_list", None)
    begun: list[Future[Any]] = []
    _thread_local_var.future_list = begun
    try:
        yield
        wait_all(begun)
    finally:
        if outer is None:
            del _thread_local_var.future_list
        else:
            _thread_local_var.future_list = outer


# Together ---------------------------------------------------------------------------


class _Gathering:
    """What several workers gave, until all of them have."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        # By name: what was given, and until when its worker waits.
        self.given: dict[str, tuple[Any, float]] = {}
        self.complete: Future[dict[str, Any]] = Future()

    def missing(self) -> tuple[str, ...]:
        """Who has not come, or has gone again."""
        now = monotonic()
        gone = [name for name, (_, until) in self.given.items() if until < now]
        for name in gone:
            del self.given[name]
        return tuple(name for name in self.names if name not in self.given)


class _Gatherings:
    """The gatherings of one worker: those that it is in, and those that it keeps."""

    def __init__(self) -> None:
        # How many a group had, by who is in it.
        self.counts: dict[tuple[str, ...], int] = {}
        # The last one that was whole, for who gave it up and tries again: its number,
        # who was in it, and what it gave.
        self.last: dict[tuple[str, ...], tuple[int, set[Node], dict[str, Any]]] = {}
        self.kept: dict[tuple[int, tuple[str, ...]], _Gathering] = {}


_LOCK = reentered()
_GATHERINGS: "WeakKeyDictionary[Agent, _Gatherings]" = WeakKeyDictionary()


def _gatherings(agent: Agent) -> _Gatherings:
    # What was given last may hold references, and they their worker.
    for each in [*_GATHERINGS]:
        if each.ended:
            _GATHERINGS.pop(each, None)
    return _GATHERINGS.setdefault(agent, _Gatherings())


@async_execution
def _arrive(
    number: int, names: tuple[str, ...], name: str, obj: Any, seconds: float | None
) -> Future[dict[str, Any]]:
    """Give an object to the worker that keeps a gathering; a future of all."""
    agent = current_agent("_all_gather")
    found = _gatherings(agent)
    until = inf if seconds is None else monotonic() + seconds
    # An earlier life of a worker gathered for itself.
    life = next((node for node in agent.nodes() if node.name == name), None)
    with _LOCK:
        last, lives, told = found.last.get(names, (0, set(), {}))
        if number <= last and life in lives:
            # What it gave first came late, and the others have gone on with that.
            again: Future[dict[str, Any]] = Future()
            if number == last:
                again.set_result(told)
            else:
                again.set_error_if_needed(
                    RpcTimeout(
                        code="GatherTimeout",
                        call="_all_gather",
                        missing=(),
                        seconds=0.0,
                    )
                )
            return again
        gathering = found.kept.setdefault((number, names), _Gathering(names))
        gathering.given[name] = obj, until
        whole = not gathering.missing()
        if whole:
            del found.kept[number, names]
            each = {name: gathering.given[name][0] for name in names}
            there = {node for node in agent.nodes() if node.name in names}
            found.last[names] = number, there, each
    if whole:
        gathering.complete.set_result(each)
    return gathering.complete


def _all_gather(
    obj: Any,
    worker_names: Iterable[str] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> dict[str, Any]:
    """What each of several workers gave, by their names; all workers without names.

    Each of them calls it as often as the others do.  The first by name keeps what is
    given.

    Raises:
        RpcMisuse: this worker is none of them.
        RpcTimeout: not all of them came in time; says who is missing.
    """
    agent = current_agent("_all_gather")
    every = [each.name for each in agent.nodes()]
    names = tuple(sorted(every if worker_names is None else set(worker_names)))
    me = agent.info.name
    if me not in names:
        raise RpcMisuse(
            code="RpcMisuse",
            call="_all_gather",
            found=f"a group without this worker, `{me}`: {', '.join(names)}",
            wanted="the names of a group that this worker is in",
        )
    seconds = timeout_seconds(timeout, agent.rpc_timeout, "_all_gather")
    found = _gatherings(agent)
    with _LOCK:
        number = found.counts[names] = found.counts.get(names, 0) + 1
    try:
        if me == names[0]:
            return _kept_here(found, number, names, obj, seconds)
        asked = (number, names, me, obj, seconds)
        told: dict[str, Any] = rpc_sync(names[0], _arrive, asked, timeout=seconds or 0)
        return told
    except TimeoutError as error:
        with _LOCK:
            # Whoever tries again means the same gathering.
            found.counts[names] = number - 1
        if getattr(error, "code", "") == "GatherTimeout" or seconds is None:
            raise
        raise RpcTimeout(
            code="GatherTimeout", call="_all_gather", missing=(), seconds=seconds
        ) from error


def _kept_here(
    found: _Gatherings,
    number: int,
    names: tuple[str, ...],
    obj: Any,
    seconds: float | None,
) -> dict[str, Any]:
    complete = _arrive(number, names, names[0], obj, None)
    try:
        return {**complete.wait(seconds)}
    except FutureTimeout as error:
        assert seconds is not None, "it had a deadline"
        with _LOCK:
            gathering = found.kept.pop((number, names), None)
        if gathering is None:
            # The last one came just now.
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
    """Wait until each of several workers came here; what fails is logged.

    Raises:
        RpcMisuse: this worker is none of them.
    """
    try:
        _all_gather(None, worker_names)
    except TimeoutError as error:
        from logging import getLogger

        getLogger("runtime.rpc").error("a barrier was given up: %s", error)


ready(__name__)
