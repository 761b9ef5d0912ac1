"""Answers: what a call of ours waits for, and what is raised where none comes.

True only here: which error stands for which reason of a session.
"""

from collections.abc import Callable
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Any

from runtime.errors.rpc import (
    PayloadTooLarge,
    ReferenceDead,
    RpcError,
    RpcTimeout,
    WorkerLost,
)
from runtime.futures import Future
from runtime.rpc.agent.handles import NOT_CREATED, Handle
from runtime.rpc.agent.pool import WAITS
from runtime.rpc.identities import Node
from runtime.rpc.session.events import Answered, Failed, Reason

# Seconds after which Ctrl-C is heard in any case.
SLICE = 1.0


class Pending:
    """A call of ours without an answer; `name()` is what is called, for texts.

    One of three gets the answer: `future`, the `handle` of a reference, or `waiter`, of
    a thread that waits and reads it.  `target` is whose value is fetched; `early` are
    of threads that wait for what `handle` stands for, `maker` is who makes it.
    """

    __slots__ = (
        "early",
        "future",
        "handle",
        "maker",
        "name",
        "raw",
        "seconds",
        "target",
        "to",
        "until",
        "waiter",
    )

    def __init__(
        self, to: Node, name: Callable[[], str], seconds: float | None
    ) -> None:
        self.to = to
        self.name = name
        self.seconds = seconds
        self.future: Future[Any] | None = None
        self.handle: Handle | None = None
        self.target: Handle | None = None
        self.waiter: SimpleQueue[Answered | Failed] | None = None
        self.early: list[SimpleQueue[Answered | Failed]] = []
        self.maker = 0
        # When it is too late, if that is not so many seconds from now.
        self.until: float | None = None
        # Whether the answer is a payload, and no value.
        self.raw = False


def wait_for(
    waiter: "SimpleQueue[Answered | Failed]", until: float | None = None
) -> Answered | Failed | None:
    """The end of a call, which always comes; None: not until then."""
    while True:
        left = SLICE if until is None else min(SLICE, until - monotonic())
        try:
            # In slices: a signal that comes just before it sleeps would not be heard.
            return waiter.get(timeout=max(left, 0.0))
        except Empty:
            if left < SLICE:
                return None


WAITS.add(wait_for.__code__)


def failure(pending: Pending, event: Failed) -> RpcError:
    """The error of a call that has no answer."""
    name, worker, detail = pending.name(), pending.to.name, event.detail
    if event.reason is Reason.DEADLINE:
        milliseconds = round((pending.seconds or 0.0) * 1000)
        return RpcTimeout(call=name, worker=worker, milliseconds=milliseconds)
    if event.reason is Reason.TOO_LARGE:
        return PayloadTooLarge(call=name, worker=worker, detail=detail)
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
