"""Collective operations: what several workers do together.

    _all_gather    the objects of all workers of a group
    _barrier       the same without objects

The first worker of a group by name leads it: it collects the objects of each gathering,
and answers all members when it has all of them.

Rules:
- the gatherings of a group are numbered.  Each call of a worker takes the next number,
  so the calls of several threads of a worker are different gatherings, which may end in
  any order.  Which threads of two workers meet in one gathering is not defined;
- a call that timed out returns its number, and the next call of that worker takes it
  again: the others may still wait for that gathering, or may have completed it;
- a member reports, with each arrival, below which number all of its gatherings have
  ended.  The leader stores complete objects until all members have reported more;
- a restarted worker takes part as a new member.
"""

from collections.abc import Iterable
from heapq import heappop, heappush
from logging import getLogger
from math import inf
from time import monotonic
from typing import Any
from weakref import WeakKeyDictionary

from everyorder.runtime.base.locks import reentered
from everyorder.runtime.errors.future import FutureTimeout
from everyorder.runtime.errors.rpc import RpcMisuse, RpcTimeout, Unsendable
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import Agent, current_agent, timeout_seconds
from everyorder.runtime.rpc.agent.options import UNSET_RPC_TIMEOUT
from everyorder.runtime.rpc.api.remote_calls import rpc_sync
from everyorder.runtime.rpc.codec.named_functions import async_execution
from everyorder.runtime.rpc.protocol.identities import WorkerNode

Names = tuple[str, ...]


class _Numbers:
    """The numbers of the gatherings of one group, as one member takes them."""

    def __init__(self) -> None:
        self.last = 0
        # Taken and not ended; those that timed out, which the next calls take again.
        self._open: set[int] = set()
        self._again: list[int] = []

    def take(self) -> int:
        """Return the number of the next gathering."""
        if self._again:
            return heappop(self._again)
        self.last += 1
        self._open.add(self.last)
        return self.last

    def repeat(self, number: int) -> None:
        """Return a number whose gathering timed out."""
        heappush(self._again, number)

    def end(self, number: int) -> None:
        """Mark a gathering as ended."""
        self._open.discard(number)

    def settled(self) -> int:
        """Return the number below which all gatherings have ended."""
        return min(self._open, default=self.last + 1)


class _Gathering:
    """The objects of several workers, until all workers have contributed."""

    def __init__(self, names: Names) -> None:
        self.names = names
        # By name of the worker: its object, and the time at which the worker gives up.
        self.objects: dict[str, tuple[Any, float]] = {}
        self.complete: Future[dict[str, Any]] = Future()

    def missing(self) -> Names:
        """Return the workers without an object, and those whose wait timed out."""
        now = monotonic()
        late = [name for name, (_, until) in self.objects.items() if until < now]
        for name in late:
            del self.objects[name]
        return tuple(name for name in self.names if name not in self.objects)


class _Led:
    """The gatherings of one group, at the worker that leads it, by their numbers."""

    def __init__(self, names: Names) -> None:
        self.names = names
        self.open: dict[int, _Gathering] = {}
        # For members that timed out and try again: the lives that took part, and the
        # objects.
        self.complete: dict[int, tuple[set[WorkerNode], dict[str, Any]]] = {}
        # By name: the life of a member, and the number below which all have ended.
        self._settled: dict[str, tuple[WorkerNode | None, int]] = {}

    def settle(self, name: str, life: WorkerNode | None, number: int) -> int:
        """Store how far a member has come, and return it; drop what all have."""
        before, last = self._settled.get(name, (life, 0))
        number = max(number, last) if before == life else number
        self._settled[name] = life, number
        least = min(self._settled.get(each, (None, 0))[1] for each in self.names)
        for done in [each for each in self.complete if each < least]:
            del self.complete[done]
        return number


class _Gatherings:
    """The gatherings of one worker, by the names of a group: those that it takes part
    in, and those that it leads.
    """

    def __init__(self) -> None:
        self.numbers: dict[Names, _Numbers] = {}
        self.led: dict[Names, _Led] = {}


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
    number: int,
    names: Names,
    name: str,
    obj: Any,
    seconds: float | None,
    settled: int = 0,
) -> Future[dict[str, Any]]:
    """Pass an object to the worker that leads a gathering; return a future of all.

    `settled` is the number below which all gatherings have ended at the member.
    """
    agent = current_agent("_all_gather")
    until = inf if seconds is None else monotonic() + seconds
    life = next((node for node in agent.nodes() if node.name == name), None)
    with _LOCK:
        led = _gatherings(agent).led.setdefault(names, _Led(names))
        settled = led.settle(name, life, settled)
        lives, objects = led.complete.get(number, (set(), {}))
        if number < settled or life in lives:
            # The first attempt of the member arrived after its timeout, and was
            # counted; or this is the first attempt, and the second was complete before.
            return _repeated(objects if life in lives else None)
        gathering = led.open.setdefault(number, _Gathering(names))
        gathering.objects[name] = obj, until
        complete = not gathering.missing()
        if complete:
            del led.open[number]
            each = {name: gathering.objects[name][0] for name in names}
            members = {node for node in agent.nodes() if node.name in names}
            led.complete[number] = members, each
    if complete:
        gathering.complete.set_result(each)
    return gathering.complete


def _repeated(objects: dict[str, Any] | None) -> Future[dict[str, Any]]:
    """Return the future of an arrival at a gathering that is complete; None: that has
    ended at the member, too.
    """
    future: Future[dict[str, Any]] = Future()
    if objects is not None:
        future.set_result(objects)
    else:
        late = RpcTimeout(
            code="GatherTimeout", call="_all_gather", missing=(), seconds=0.0
        )
        future.set_exception(late)
    return future


def _all_gather(
    obj: Any,
    worker_names: Iterable[str] | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> dict[str, Any]:
    """Return the objects of several workers by name; by default, of all workers.

    Each worker calls this function equally often, on any of its threads.  The first
    worker by name leads.

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
    with _LOCK:
        gatherings = _gatherings(agent)
        numbers = gatherings.numbers.setdefault(names, _Numbers())
        number = numbers.take()
        settled = numbers.settled()
    ended = True
    try:
        if me == names[0]:
            return _lead(gatherings, number, names, obj, seconds, settled)
        args = (number, names, me, obj, seconds, settled)
        gathered: dict[str, Any] = rpc_sync(
            names[0], _arrive, args, timeout=seconds or 0
        )
        return gathered
    except (Unsendable, RpcMisuse):
        # The others did not hear of it.
        ended = False
        raise
    except TimeoutError as error:
        ended = False
        if getattr(error, "code", "") == "GatherTimeout" or seconds is None:
            raise
        raise RpcTimeout(
            code="GatherTimeout", call="_all_gather", missing=(), seconds=seconds
        ) from error
    finally:
        with _LOCK:
            (numbers.end if ended else numbers.repeat)(number)


def _lead(
    gatherings: _Gatherings,
    number: int,
    names: Names,
    obj: Any,
    seconds: float | None,
    settled: int,
) -> dict[str, Any]:
    complete = _arrive(number, names, names[0], obj, None, settled)
    try:
        return {**complete.wait(seconds)}
    except FutureTimeout as error:
        assert seconds is not None, "only a wait with a timeout ends so"
        with _LOCK:
            gathering = gatherings.led[names].open.pop(number, None)
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
        getLogger("everyorder.runtime.rpc").error("a barrier timed out: %s", error)
