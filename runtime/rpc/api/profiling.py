"""Profiling: the calls of a thread, the time it waits, and the time they run.

`profile` collects, during its block, the scopes (`record_function`) and calls of the
thread that entered the block.  A call is measured from its sending until its future is
complete.  If the caller profiles, the request is wrapped (`run_profiled`): the callee
measures the function, and sends the events with the answer.  The other modules are
independent of profiling: a worker runs the wrapped function like any other function.

    rpc_sync#demo.add(w0 -> w1)                      a call, at the caller
    rpc_sync#demo.add(w0 -> w1)#remote_op: demo.add  the function, at the callee
    to_here#(w0)->(w1)                               a fetched value

Rules:
- without a profiler, events are neither measured nor sent, and calls do not pass
  through this module;
- clocks of two workers are not compared: events of the callee are centred in their
  call;
- a call that is not complete when the block ends is added on its completion;
- an error belongs to the call, and arrives without events of the callee;
- of a registered function, and of a value that stays at the callee (`remote`), only the
  time of the call is measured; fetches are measured at the caller only;
- a call on a referenced value is named by its class and method; the request for its
  class is not measured.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from threading import get_ident
from time import perf_counter_ns
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar

from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.futures import Future, call_end_callbacks
from everyorder.runtime.rpc.agent import Agent, CallRequest, ReferenceHandle
from everyorder.runtime.rpc.codec.callables import REGISTERED, Invocation, call_of
from everyorder.runtime.rpc.codec.named_functions import MARK, is_async
from everyorder.runtime.rpc.protocol.identities import WorkerNode

T = TypeVar("T")

# The ways to make a call.
MODES = ("sync", "async", "async_jit", "remote")
# Separates the key of a call from the name of the function at the callee.
REMOTE_OP = "#remote_op: "

# The width of a terminal by convention.
_COLUMNS = 80
_NANOSECONDS_IN_MS = 1e6


def call_key(mode: str, function: str, source: str, target: str) -> str:
    """Return the name of a call: `rpc_async#name(source -> target)`."""
    assert mode in MODES, "modes are those of the functions that call"
    return f"rpc_{mode}#{function}({source} -> {target})"


def to_here_key(source: str, target: str) -> str:
    """Return the name of a fetch."""
    return f"to_here#({source})->({target})"


@dataclass(frozen=True, slots=True)
class ProfileEvent:
    """A measurement: a name, and its times on a clock in nanoseconds.

    `worker` is the worker that ran it, "" for the profiling worker.  `ran` is the time
    of a call at the callee, in nanoseconds; None if it is unknown.  `whole` marks the
    callee's outermost event.
    """

    name: str
    start: int
    end: int
    thread: int
    worker: str = ""
    ran: int | None = None
    whole: bool = False

    @property
    def duration(self) -> int:
        """Return the duration in nanoseconds."""
        return self.end - self.start


class profile:  # noqa: N801  # the name in torch
    """Profiler that collects events of this thread during its block.

        with profile() as p:
            rpc_sync("w1", work)
        print(p.table())

    If one profiler runs inside of another, both collect.  `clock` returns nanoseconds.
    """

    def __init__(self, *, clock: Callable[[], int] = perf_counter_ns) -> None:
        self.clock = clock
        self._events: list[ProfileEvent] = []
        self._token: Token[tuple[profile, ...]] | None = None

    def __enter__(self) -> Self:
        if self._token is not None:
            raise RpcMisuse(
                call="profile",
                found="a profiler that is at work",
                wanted="one block at a time",
            )
        self._token = PROFILERS.set((*self._around(), self))
        return self

    def _around(self) -> "tuple[profile, ...]":
        """Return the outer profilers that continue to collect."""
        return PROFILERS.get()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._token is not None, "the block was entered"
        token, self._token = self._token, None
        PROFILERS.reset(token)

    @property
    def events(self) -> tuple[ProfileEvent, ...]:
        """Return the events in the order of their starts; of equal starts, longest
        first.
        """
        return tuple(sorted(self._events, key=lambda e: (e.start, -e.end)))

    def add(self, event: ProfileEvent) -> None:
        """Add an event."""
        self._events.append(event)

    def table(self) -> str:
        """Return calls and scopes by name, the longest first, as text of 80 columns."""
        return _table(_rows(self.events))

    def chrome_trace(self) -> dict[str, Any]:
        """Return the events in the format that chrome://tracing and Perfetto open."""
        return {"traceEvents": [*_trace(self.events)], "displayTimeUnit": "ms"}

    def export_chrome_trace(self, path: str | Path) -> None:
        """Write `chrome_trace()` to a file as JSON."""
        text = json.dumps(self.chrome_trace(), indent=1)
        Path(path).write_text(text, encoding="utf-8")


# The profilers of this thread.  Callers read it before they call this module: a call
# that is not profiled does not pass through it.
PROFILERS: ContextVar[tuple[profile, ...]] = ContextVar("profilers", default=())


def is_profiling() -> bool:
    """Return True if this thread is profiled."""
    return bool(PROFILERS.get())


class record_function:  # noqa: N801  # the name in torch
    """A scope that profilers measure: `with record_function("name"): ...`.

    The scope ends with its block, or with a future passed to `ends_with`.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self.args = args
        self._open: tuple[tuple[profile, int], ...] = ()
        self._thread = 0
        self._future = False

    def __enter__(self) -> Self:
        profilers = PROFILERS.get()
        if profilers:
            self._thread = get_ident()
            self._open = tuple((each, each.clock()) for each in profilers)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # After an error there is no future that ends the scope.
        if not self._future or error is not None:
            self._end()

    def _end(self, future: object = None) -> None:
        opened, self._open = self._open, ()
        for profiler, start in opened:
            profiler.add(self._event(profiler, start, profiler.clock()))

    def _event(self, profiler: profile, start: int, end: int) -> ProfileEvent:
        return ProfileEvent(self.name, start, end, self._thread)

    def _call_end_callbacks_on_future(self, fut: Future[T]) -> Future[T]:
        """Return a future of the same outcome, completed after the scope has ended.

        Raises:
            RpcMisuse: the scope has a future already.
            FutureMisuse: `fut` is not a future.
        """
        if self._future:
            raise RpcMisuse(
                call="_call_end_callbacks_on_future",
                found="a second future",
                wanted="one: it can only be called once",
            )
        after = call_end_callbacks(fut, self._end)
        self._future = True
        return after

    # The same method under a public name, for internal use.
    ends_with = _call_end_callbacks_on_future


class call_scope(record_function):  # noqa: N801  # as its base
    """The scope of a call: `with call_scope("async", name, source, target) as scope:`.

    The scope ends with the future of the call (`ends_with`), after the callee's events,
    if any, were added (`add_remote`).
    """

    def __init__(self, mode: str, function: str, source: str, target: str) -> None:
        super().__init__(call_key(mode, function, source, target))
        self.function = function
        self.target = target
        self._remote: tuple[tuple[Any, ...], ...] = ()

    def add_remote(self, events: Iterable[Sequence[Any]]) -> None:
        """Add the callee's `CalleeProfiler.as_tuples()`, before the call ends."""
        self._remote = tuple(tuple(each) for each in events)

    def split(self, both: Future[Any]) -> Future[Any]:
        """Return a future of the value in a `run_profiled` result; add its events."""

        def take(future: Future[Any]) -> Any:
            value, events = future.value()
            self.add_remote(events)
            return value

        return both._map(take)

    def _event(self, profiler: profile, start: int, end: int) -> ProfileEvent:
        remote = [ProfileEvent(*each) for each in self._remote]
        if not remote:
            return super()._event(profiler, start, end)
        # The outermost event started first; a future in it may have ended later.
        whole = min(remote, key=lambda each: (each.start, -each.end))
        # Centred, because the time of each direction is unknown.
        shift = (start + end - whole.start - whole.end) // 2
        for each in remote:
            moved = replace(
                each,
                name=f"{self.name}{REMOTE_OP}{each.name}",
                start=each.start + shift,
                end=each.end + shift,
                worker=each.worker or self.target,
                whole=each is whole,
            )
            profiler.add(moved)
        return replace(super()._event(profiler, start, end), ran=whole.duration)


class CalleeProfiler(profile):
    """The profiler at a callee: `value = collector.run(name, function)`.

    Other profilers of the thread do not receive its events, which belong to the caller.
    """

    def _around(self) -> tuple[profile, ...]:
        return ()

    def run(self, name: str, function: Callable[[], Any]) -> Any:
        """Return the function's result; of a future, one that completes after the
        scope.

        Raises:
            BaseException: the exception of the function.
        """
        with self, record_function(name) as scope:
            value = function()
            if isinstance(value, Future):
                value = scope.ends_with(value)
        return value

    def as_tuples(self) -> tuple[tuple[Any, ...], ...]:
        """Return the events as plain values, for `call_scope.add_remote`."""
        return tuple((e.name, e.start, e.end, e.thread, e.worker) for e in self.events)


def run_profiled(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> tuple[Any, tuple[Any, ...]]:
    """Run a function at the callee; return its result and the events.

    Raises:
        BaseException: the exception of the function.
    """
    collector = CalleeProfiler()
    value = collector.run(name, partial(function, *args, **kwargs))
    return value, collector.as_tuples()


def run_profiled_later(
    name: str, function: Callable[..., Any], args: Sequence[Any], kwargs: dict[str, Any]
) -> Any:
    """Run a function that returns a future; return a future of result and events."""
    collector = CalleeProfiler()
    value = collector.run(name, partial(function, *args, **kwargs))
    if not isinstance(value, Future):
        # The agent reports the error.
        return value
    return value._map(lambda future: (future.value(), collector.as_tuples()))


run_profiled_later.__dict__[MARK] = run_profiled_later


# The table.

# Name, times, and milliseconds: 80 columns.
_HEAD = ("what", "times", "waited ms", "ran ms", "ms a time")
_WIDTHS = (41, 6, 11, 11, 11)


class _Row(NamedTuple):
    name: str
    times: int
    # Total nanoseconds; `ran` is None for scopes.
    waited: int
    ran: int | None


def _rows(events: Sequence[ProfileEvent]) -> list[_Row]:
    """Return a row for each name, longest first; a call includes the callee's time."""
    rows: dict[str, _Row] = {}
    for each in events:
        if each.whole:
            continue
        last = rows.get(each.name, _Row(each.name, 0, 0, None))
        ran = last.ran if each.ran is None else (last.ran or 0) + each.ran
        waited = last.waited + each.duration
        rows[each.name] = _Row(each.name, last.times + 1, waited, ran)
    return sorted(rows.values(), key=lambda row: (-row.waited, row.name))


def _table(rows: Sequence[_Row]) -> str:
    lines = [_line(*_HEAD), "-" * _COLUMNS]
    for row in rows:
        figures = (
            str(row.times),
            _milliseconds(row.waited),
            "" if row.ran is None else _milliseconds(row.ran),
            _milliseconds(row.waited / row.times),
        )
        if len(row.name) <= _WIDTHS[0]:
            lines.append(_line(row.name, *figures))
        else:
            lines += [_cut(row.name), _line("", *figures)]
    return "\n".join(line.rstrip() for line in lines)


def _line(name: str, *figures: str) -> str:
    fields = (each.rjust(w) for each, w in zip(figures, _WIDTHS[1:], strict=True))
    return name.ljust(_WIDTHS[0]) + "".join(fields)


def _cut(name: str) -> str:
    """Return a name shortened in its middle to one line."""
    if len(name) <= _COLUMNS:
        return name
    half = (_COLUMNS - 3) // 2
    return f"{name[:half]}...{name[-half:]}"


def _milliseconds(nanoseconds: float) -> str:
    return f"{nanoseconds / _NANOSECONDS_IN_MS:.3f}"


# The trace.


def _trace(events: Sequence[ProfileEvent]) -> Iterator[dict[str, Any]]:
    """Yield events as complete events ("X"): a process is a worker, a thread a lane.

    In a lane, events follow each other or are nested, as viewers require; overlapping
    calls are in several lanes.  Times are in microseconds.
    """
    workers = {each.worker: None for each in events}
    processes = {worker: place for place, worker in enumerate(workers, start=1)}
    for worker, process in processes.items():
        yield _metadata("process_name", process, 0, worker or "this worker")
    lanes: dict[tuple[str, int], list[list[int]]] = {}
    numbers: dict[tuple[str, int, int], int] = {}
    for each in events:
        thread = each.worker, each.thread
        lane = _lane(lanes.setdefault(thread, []), each)
        process = processes[each.worker]
        if (*thread, lane) not in numbers:
            number = 1 + sum(worker == each.worker for worker, *_ in numbers)
            numbers[*thread, lane] = number
            which = 1 + [t for w, t in lanes if w == each.worker].index(each.thread)
            name = f"thread {which}" + (f", overlapping {lane}" if lane else "")
            yield _metadata("thread_name", process, number, name)
        yield {
            "name": each.name,
            "cat": "remote" if each.worker else "here",
            "ph": "X",
            "ts": each.start / 1000,
            "dur": each.duration / 1000,
            "pid": process,
            "tid": numbers[*thread, lane],
            "args": {} if each.ran is None else {"ran_us": each.ran / 1000},
        }


def _metadata(kind: str, process: int, lane: int, name: str) -> dict[str, Any]:
    return {
        "name": kind,
        "ph": "M",
        "pid": process,
        "tid": lane,
        "args": {"name": name},
    }


def _lane(lanes: list[list[int]], event: ProfileEvent) -> int:
    """Return the first lane with room for an event; a lane lists the open ends."""
    for place, ends in enumerate(lanes):
        while ends and ends[-1] <= event.start:
            ends.pop()
        if not ends or event.end <= ends[-1]:
            ends.append(event.end)
            return place
    lanes.append([event.end])
    return len(lanes) - 1


# Calls, measured if the thread is profiled.


def call(
    agent: Agent,
    node: WorkerNode,
    request: CallRequest,
    timeout: float | None,
    *,
    mode: str,
) -> Future[Any]:
    """Make a measured call, as `Agent.call`; `mode` is one of `MODES`.

    Raises:
        NotInitialized: the worker has stopped.
        RpcError, Exception: the request cannot be encoded.
    """
    invocation, scope = _measured(agent, node, request, mode)
    with scope:
        if invocation.kind == REGISTERED:
            return scope.ends_with(agent.call(node, request, timeout=timeout))
        later = is_async(invocation.function)
        function = run_profiled_later if later else run_profiled
        args = (scope.function, invocation.function, invocation.args, invocation.kwargs)
        both = agent.call(
            node, CallRequest(function, args, {}, request.text()), timeout=timeout
        )
        return scope.ends_with(scope.split(both))


def call_and_wait(
    agent: Agent, node: WorkerNode, request: CallRequest, timeout: float | None
) -> Any:
    """Make a measured call and wait, as `Agent.call_and_wait`.

    Raises:
        NotInitialized, RpcError, Exception: as `call`, and exceptions of the function.
    """
    return call(agent, node, request, timeout, mode="sync").wait()


def create(
    agent: Agent, node: WorkerNode, request: CallRequest, timeout: float | None
) -> ReferenceHandle:
    """Create a value as `Agent.remote` does; measured until the creation is confirmed.

    Raises:
        NotInitialized, RpcError, Exception: as `call`.
    """
    _, scope = _measured(agent, node, request, "remote")
    with scope:
        handle = agent.remote(node, request, timeout=timeout)
        scope.ends_with(handle.created)
    return handle


def _measured(
    agent: Agent, node: WorkerNode, request: CallRequest, mode: str
) -> tuple[Invocation, call_scope]:
    invocation = call_of(request.function, request.args, request.kwargs)
    name = request.name or invocation.name
    return invocation, call_scope(mode, name, agent.name, node.name)
