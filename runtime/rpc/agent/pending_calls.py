"""Calls without an answer: what was asked, who waits for it, and why it failed.

CallRequest    a call to make
PendingCall    a call that was sent, until its answer
failure        the error for each reason of a session
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Any

from everyorder.runtime.errors.future import callable_name
from everyorder.runtime.errors.rpc import (
    ReferenceDead,
    RpcError,
    RpcTimeout,
    Unsendable,
    WorkerLost,
)
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent.owned_values import NOT_CREATED, ReferenceHandle
from everyorder.runtime.rpc.protocol.events import Answered, Failed, Reason
from everyorder.runtime.rpc.protocol.identities import WorkerNode


@dataclass(frozen=True, slots=True)
class CallRequest:
    """A call to make: `function(*args, **kwargs)`; `name` is for messages."""

    function: Callable[..., Any]
    args: Sequence[Any] = ()
    kwargs: dict[str, Any] = field(default_factory=dict)
    name: str = ""

    def text(self) -> str:
        """Return the name of the function, for messages."""
        function = self.function
        if isinstance(function, type):
            return self.name or function.__qualname__
        return self.name or callable_name(function)


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call without an answer yet; `name()` is the function's name, for messages.

    One receives the answer: `future`, the `handle` of a created reference, or `waiter`,
    the queue of a thread that reads the answer.  `target` is the reference to
    fetch.  `piggyback_waiters` are the queues of threads that wait for the created
    value; `maker` identifies the function that creates it.  `until` is the deadline, if
    it differs from `seconds` from now; with `raw` the answer is a payload, not a value.
    """

    to: WorkerNode
    name: Callable[[], str]
    seconds: float | None
    future: Future[Any] | None = None
    handle: ReferenceHandle | None = None
    target: ReferenceHandle | None = None
    waiter: "SimpleQueue[Answered | Failed] | None" = None
    piggyback_waiters: "list[SimpleQueue[Answered | Failed]]" = field(
        default_factory=list
    )
    maker: int = 0
    until: float | None = None
    raw: bool = False


def failure(pending: PendingCall, event: Failed) -> RpcError:
    """Return the error of a call that has no answer."""
    name, worker, detail = pending.name(), pending.to.name, event.detail
    if event.reason is Reason.DEADLINE:
        milliseconds = round((pending.seconds or 0.0) * 1000)
        return RpcTimeout(call=name, worker=worker, milliseconds=milliseconds)
    if event.reason is Reason.TOO_LARGE:
        return Unsendable(
            code="PayloadTooLarge", call=name, worker=worker, detail=detail
        )
    if event.reason is Reason.REFERENCE:
        reference = detail or "(one that was sent)"
        reason = event.reason.value
        target = pending.target
        if target is not None:
            reference = target.text()
            reason = target.death or ("it is gone" if target.confirmed else NOT_CREATED)
        return ReferenceDead(call=name, reference=reference, reason=reason)
    reason = event.reason.value + (f" ({detail})" if detail else "")
    return WorkerLost(call=name, worker=worker, reason=reason)
