"""Profiling: what is measured, what comes back with an answer, tables and traces."""

import itertools
import json
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime import rpc
from everyorder.runtime.errors import FutureMisuse, RpcMisuse
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import in_worker_slot
from everyorder.runtime.rpc.api.profiling import (
    CalleeProfiler,
    ProfileEvent,
    call_key,
    call_scope,
    is_profiling,
    profile,
    record_function,
    to_here_key,
)
from tests.coded import code
from tests.rpc.worlds import threads

MILLISECOND = 1_000_000


def clock(start: int = 0, step: int = 1) -> Callable[[], int]:
    """Each look is so many milliseconds later."""
    counter = itertools.count(start * MILLISECOND, step * MILLISECOND)
    return lambda: next(counter)


def spans(profiler: profile) -> list[tuple[str, int, int]]:
    """Names and times in milliseconds."""
    return [
        (each.name, each.start // MILLISECOND, each.end // MILLISECOND)
        for each in profiler.events
    ]


def answer() -> tuple[Any, tuple[Any, ...]]:
    """What a callee gives: the result, and what it measured."""

    def work() -> int:
        with record_function("inner"):
            return 3

    collector = CalleeProfiler(clock=clock(start=500))
    return collector.run("demo.add", work), collector.as_tuples()


def test_names() -> None:
    """4.10."""
    assert call_key("async", "f", "w0", "w1") == "rpc_async#f(w0 -> w1)"
    assert to_here_key("w0", "w1") == "to_here#(w0)->(w1)"
    with pytest.raises(AssertionError):
        call_key("later", "f", "w0", "w1")


def test_scopes_nest_and_end_with_errors_too() -> None:
    with profile(clock=clock()) as p:
        with (
            record_function("outer"),
            pytest.raises(KeyError),
            record_function("inner"),
        ):
            raise KeyError
        with record_function("next", args="ignored"):
            pass
    with record_function("not measured"):
        assert not is_profiling()
    assert spans(p) == [("outer", 0, 3), ("inner", 1, 2), ("next", 4, 5)]


def test_a_call_is_measured_until_its_future_is_complete() -> None:
    """Of any type, whoever completes it; the outcome is that of the future."""
    values: list[Any] = [3, "text", None, [Future()]]
    for value in values:
        future: Future[Any] = Future()
        with profile(clock=clock()) as p:
            with call_scope("async", "f", "w0", "w1") as scope:
                after = scope.ends_with(future)
            assert spans(p) == []
        thread = threading.Thread(target=future.set_result, args=(value,))
        thread.start()
        thread.join()
        assert after.wait() is value
        assert spans(p) == [("rpc_async#f(w0 -> w1)", 0, 1)]
        # Of the thread that called.
        assert p.events[0].thread == threading.get_ident()


def test_events_are_there_when_the_value_is() -> None:
    """4.10: the future that is returned completes after the callbacks."""
    future: Future[int] = Future()
    seen = []
    with profile(clock=clock()) as p, call_scope("async", "f", "a", "b") as scope:
        after = scope.ends_with(future)
        after.add_done_callback(lambda f: seen.append(len(p.events)))
        future.set_result(1)
    assert seen == [1]


def test_a_call_that_fails() -> None:
    """The error stays what it is; nothing that was measured there comes back."""
    error = ValueError("there")
    future: Future[int] = Future()
    with profile(clock=clock()) as p:
        with call_scope("sync", "f", "a", "b") as scope:
            after = scope.ends_with(future)
        future.set_exception(error)
    with pytest.raises(ValueError, match="there") as caught:
        after.wait()
    assert caught.value is error
    assert spans(p) == [("rpc_sync#f(a -> b)", 0, 1)]


def test_a_call_that_is_not_sent() -> None:
    with (
        profile(clock=clock()) as p,
        pytest.raises(KeyError),
        call_scope("sync", "f", "a", "b"),
    ):
        raise KeyError
    assert spans(p) == [("rpc_sync#f(a -> b)", 0, 1)]


def test_one_future_for_a_scope() -> None:
    future: Future[int] = Future()
    with profile(), record_function("x") as scope:
        scope._call_end_callbacks_on_future(future)
        with pytest.raises(RpcMisuse, match="can only be called once"):
            scope._call_end_callbacks_on_future(future)
    with (
        record_function("y") as other,
        pytest.raises(FutureMisuse, check=code("FutureMisuse")),
    ):
        other._call_end_callbacks_on_future(3)  # type: ignore[arg-type]  # no future
    future.set_result(1)


def test_what_was_measured_there_comes_back() -> None:
    """In the middle of the call: no two clocks are compared."""
    with profile(clock=clock(step=10)) as p:
        with call_scope("sync", "demo.add", "w0", "w1") as scope:
            future: Future[int] = Future()
            after = scope.ends_with(future)
            value, events = answer()
            scope.add_remote(json.loads(json.dumps(events)))
            future.set_result(value)
        assert after.wait() == 3
    key = "rpc_sync#demo.add(w0 -> w1)"
    assert spans(p) == [
        (key, 0, 10),
        (f"{key}#remote_op: demo.add", 3, 6),
        (f"{key}#remote_op: inner", 4, 5),
    ]
    assert [each.worker for each in p.events] == ["", "w1", "w1"]
    assert (p.events[0].ran, p.events[1].whole) == (3 * MILLISECOND, True)


def test_calls_of_calls() -> None:
    """What w1 asked of w2 comes back to w0 with the names of both calls."""
    collector = CalleeProfiler(clock=clock(step=100))

    def on_w1() -> None:
        with call_scope("sync", "g", "w1", "w2") as inner:
            done: Future[int] = Future()
            inner.ends_with(done)
            inner.add_remote(answer()[1])
            done.set_result(1)

    collector.run("f", on_w1)
    with (
        profile(clock=clock(step=1000)) as p,
        call_scope("sync", "f", "w0", "w1") as scope,
    ):
        scope.add_remote(collector.as_tuples())
    outer, inner = "rpc_sync#f(w0 -> w1)", "rpc_sync#g(w1 -> w2)"
    names = [(each.name, each.worker) for each in p.events]
    assert names == [
        (outer, ""),
        (f"{outer}#remote_op: f", "w1"),
        (f"{outer}#remote_op: {inner}", "w1"),
        (f"{outer}#remote_op: {inner}#remote_op: demo.add", "w2"),
        (f"{outer}#remote_op: {inner}#remote_op: inner", "w2"),
    ]


def test_a_function_that_gives_a_future_runs_until_it_is_complete() -> None:
    collector = CalleeProfiler(clock=clock())
    future: Future[int] = Future()
    after = collector.run("f", lambda: future)
    assert collector.as_tuples() == ()
    future.set_result(4)
    assert after.wait() == 4
    assert [event[:3] for event in collector.as_tuples()] == [("f", 0, MILLISECOND)]


def test_a_collector_collects_for_the_caller_alone() -> None:
    """A worker that profiles itself does not hear of what others ask of it."""
    with profile(clock=clock()) as p:
        answer()
        with profile(clock=clock()) as inner, record_function("both"):
            pass
    assert spans(p) == spans(inner) == [("both", 0, 1)]


def test_without_a_profiler_nothing_is_measured() -> None:
    future: Future[int] = Future()
    with call_scope("sync", "f", "a", "b") as scope:
        after = scope.ends_with(future)
        future.set_result(3)
    assert after.wait() == 3
    assert not is_profiling()


def test_a_profiler_is_of_its_thread() -> None:
    seen = []
    with profile() as p:
        thread = threading.Thread(target=lambda: seen.append(is_profiling()))
        thread.start()
        thread.join()
        assert is_profiling()
    assert seen == [False]
    assert p.events == ()


def test_a_profiler_is_entered_once_at_a_time() -> None:
    p = profile(clock=clock())
    with p, pytest.raises(RpcMisuse, check=code("RpcMisuse")), p:
        raise AssertionError("entered")
    with p, record_function("again"):
        pass
    assert spans(p) == [("again", 0, 1)]


# What is shown.


def profiled() -> profile:
    """Two calls that overlap, with what they did, and a scope."""
    with profile(clock=clock(step=7)) as p:
        futures: list[Future[int]] = [Future(), Future()]
        targets = "w1", "a_worker_with_a_long_name"
        with record_function("both"):
            for target, future in zip(targets, futures, strict=True):
                name = "demo.add" if target == "w1" else "package.module.function_of_it"
                with call_scope("async", name, "w0", target) as scope:
                    scope.ends_with(future)
                    if target == "w1":
                        scope.add_remote(answer()[1])
        for future in futures:
            future.set_result(1)
    return p


TABLE = """\
what                                      times  waited ms     ran ms  ms a time
--------------------------------------------------------------------------------
both                                          1     21.000                21.000
rpc_async#demo.add(w0 -> w1)                  1     21.000      3.000     21.000
rpc_async#package.module.function_of_it(w0 -> a_worker_with_a_long_name)
                                              1     21.000                21.000
rpc_async#demo.add(w0 -> w1)#remote_op: inner
                                              1      1.000                 1.000"""


def test_the_table() -> None:
    table = profiled().table()
    assert table == TABLE
    assert max(map(len, table.splitlines())) == 80


def test_the_table_adds_up_what_has_one_name() -> None:
    with profile(clock=clock()) as p:
        for _ in range(3):
            with call_scope("sync", "f", "a", "b") as scope:
                scope.add_remote(answer()[1])
    (head, _, row, *rest) = p.table().splitlines()
    assert row.split() == ["rpc_sync#f(a", "->", "b)", "3", "3.000", "9.000", "1.000"]
    assert rest[-1].split()[-3:] == ["3", "3.000", "1.000"]
    assert profile().table().splitlines() == [head, "-" * 80]


def test_names_of_any_length_fit() -> None:
    with profile(clock=clock()) as p, record_function("x" * 500 + "end"):
        pass
    lines = p.table().splitlines()
    assert max(map(len, lines)) == 80
    assert lines[2].endswith("end")


def check_trace(trace: dict[str, Any]) -> list[dict[str, Any]]:
    """The rules of the Trace Event Format, as far as they matter here."""
    assert set(trace) == {"traceEvents", "displayTimeUnit"}
    assert trace["displayTimeUnit"] in ("ms", "ns")
    named: set[tuple[str, int, int]] = set()
    lanes: dict[tuple[int, int], list[tuple[int, int]]] = {}
    shown = []
    for each in trace["traceEvents"]:
        assert type(each["pid"]) is type(each["tid"]) is int
        assert type(each["name"]) is str
        if each["ph"] == "M":
            assert each["name"] in ("process_name", "thread_name")
            assert list(each["args"]) == ["name"]
            named.add((each["name"], each["pid"], each["tid"]))
            continue
        assert each["ph"] == "X"
        assert each["dur"] >= 0
        assert ("process_name", each["pid"], 0) in named
        assert ("thread_name", each["pid"], each["tid"]) in named
        lane = lanes.setdefault((each["pid"], each["tid"]), [])
        # In nanoseconds: sums of fractions are not exact.
        lane.append(
            (round(each["ts"] * 1000), round((each["ts"] + each["dur"]) * 1000))
        )
        shown.append(each)
    for lane in lanes.values():
        for (a, b), (c, d) in itertools.combinations(lane, 2):
            apart, within = b <= c or d <= a, a <= c <= d <= b or c <= a <= b <= d
            assert apart or within
    return shown


def test_the_trace(tmp_path: Path) -> None:
    p = profiled()
    path = tmp_path / "trace.json"
    p.export_chrome_trace(path)
    trace = json.loads(path.read_text(encoding="utf-8"))
    assert trace == p.chrome_trace()
    shown = check_trace(trace)
    assert sorted(each["name"] for each in shown) == sorted(e.name for e in p.events)
    processes = {
        each["args"]["name"]: each["pid"]
        for each in trace["traceEvents"]
        if each["name"] == "process_name"
    }
    assert processes == {"this worker": 1, "w1": 2}
    call = next(
        each for each in shown if each["name"] == "rpc_async#demo.add(w0 -> w1)"
    )
    assert (call["ts"], call["dur"], call["args"]) == (7000, 21000, {"ran_us": 3000})
    assert check_trace(profile().chrome_trace()) == []


EVENTS = st.builds(
    lambda start, length, thread, worker: ProfileEvent(
        "e", start, start + length, thread, worker
    ),
    st.integers(0, 20),
    st.integers(0, 20),
    st.integers(1, 2),
    st.sampled_from(["", "w"]),
)


@given(st.lists(EVENTS, max_size=12))
def test_any_events_make_a_trace(events: list[ProfileEvent]) -> None:
    """In each lane they follow each other, or lie within each other."""
    p = profile()
    for each in events:
        p.add(each)
    assert len(check_trace(p.chrome_trace())) == len(events)


def test_a_planted_fault_is_seen() -> None:
    """A trace whose lanes overlap is none."""
    trace = profiled().chrome_trace()
    for each in trace["traceEvents"]:
        if each["tid"]:
            each["tid"] = 1
    with pytest.raises(AssertionError):
        check_trace(trace)


def test_a_call_that_nobody_profiles_does_not_pass_through_profilers() -> None:
    """Neither on the caller's thread, nor on those of both workers."""
    ran: set[str] = set()
    before, of_threads = sys.getprofile(), threading.getprofile()

    def watch(frame: Any, event: str, _: object) -> None:
        if event == "call":
            ran.add(frame.f_code.co_filename)

    threading.setprofile(watch)
    with threads("a", "b") as (a, _), in_worker_slot(a.slot):
        assert rpc.rpc_sync("b", max, (1, 2)) == 2
        ran.clear()
        sys.setprofile(watch)
        try:
            assert rpc.rpc_sync("b", max, (1, 2)) == 2
            assert rpc.rpc_async("b", max, (1, 2)).wait() == 2
            rref = rpc.remote("b", abs, (-3,))
            assert rref.to_here() == 3
            assert rref.rpc_sync().bit_length() == 2
            assert rref.remote().bit_length().to_here() == 2
        finally:
            sys.setprofile(before)
            threading.setprofile(of_threads)
        assert any(file.endswith("remote_calls.py") for file in ran)
        assert any(file.endswith("request_pool.py") for file in ran)
        assert not [file for file in ran if file.endswith("profiling.py")]
        with rpc.profile() as profiled:
            assert rpc.rpc_sync("b", max, (1, 2)) == 2
    assert profiled.events
