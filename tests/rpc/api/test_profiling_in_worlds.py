"""Profiling of calls between workers: names, and what comes back."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.rpc.api.profiling import profile, record_function
from tests.rpc.api import remote_functions as remote
from tests.rpc.api import scripted
from tests.rpc.api.bodies import OTHER, THIRD, in_world

SELF = "worker0"


def names(p: profile) -> list[tuple[str, str]]:
    """What was measured, and where."""
    return [(each.name, each.worker) for each in p.events]


@in_world
def test_calls_of_each_kind() -> None:
    """4.10: the key, and `#remote_op` for what ran at the callee."""
    tensor = runtime.ones(2)
    calls: list[tuple[Any, tuple[Any, ...], str, Any]] = [
        (remote.add, (2, 3), "add", 5),
        (runtime.add, (tensor, tensor), "core::add", [2.0, 2.0]),
    ]
    for func, args, name, value in calls:
        for mode in ("sync", "async"):
            with profile() as p:
                if mode == "sync":
                    found = rpc.rpc_sync(OTHER, func, args)
                else:
                    found = rpc.rpc_async(OTHER, func, args).wait()
            assert (found.tolist() if isinstance(value, list) else found) == value
            key = f"rpc_{mode}#{name}({SELF} -> {OTHER})"
            assert names(p) == [(key, ""), (f"{key}#remote_op: {name}", OTHER)]
            call, there = p.events
            assert call.ran == there.duration


@in_world
def test_compiled_functions() -> None:
    with profile() as p:
        assert rpc.rpc_sync(OTHER, scripted.pair, (1, "x")) == (1, "x")
    name = scripted.pair.qualified_name
    key = f"rpc_sync#{name}({SELF} -> {OTHER})"
    assert names(p) == [(key, ""), (f"{key}#remote_op: {name}", OTHER)]
    with profile() as p:
        by_name = rpc._rpc_async_torchscript
        future = by_name(OTHER, name, (1, "x"))
        assert future.wait() == (1, "x")
    key = f"rpc_async_jit#{name}({SELF} -> {OTHER})"
    assert names(p) == [(key, ""), (f"{key}#remote_op: {name}", OTHER)]


@in_world
def test_a_callee_that_calls() -> None:
    with profile() as p:
        assert rpc.rpc_sync(OTHER, remote.call_on, (THIRD, remote.add, 1, 1)) == 2
    outer = f"rpc_sync#call_on({SELF} -> {OTHER})"
    inner = f"{outer}#remote_op: rpc_sync#add({OTHER} -> {THIRD})"
    assert names(p) == [
        (outer, ""),
        (f"{outer}#remote_op: call_on", OTHER),
        (inner, OTHER),
        (f"{inner}#remote_op: add", THIRD),
    ]


@in_world
def test_results_that_come_later() -> None:
    with profile() as p:
        later: Any = rpc.rpc_async(OTHER, remote.async_add, (THIRD, 1, 2))
        assert later.wait() == 3
    key = f"rpc_async#async_add({SELF} -> {OTHER})"
    assert names(p)[0] == (key, "")
    assert (f"{key}#remote_op: async_add", OTHER) in names(p)


@in_world
def test_calls_on_values() -> None:
    """By a proxy: the class and the method, and nothing of how it is found."""
    rref = rpc.remote(OTHER, remote.Account, (5,))
    with profile() as p:
        assert rref.rpc_sync().pay(1) == 6
        assert rref.rpc_async().pay(1, times=2).wait() == 8
        made = rref.remote().pay(2)
        made._get_future().wait()
    assert made.to_here() == 10
    keys = [f"rpc_{mode}#Account.pay({SELF} -> {OTHER})" for mode in ("sync", "async")]
    assert sorted(names(p)) == sorted(
        [
            *((key, "") for key in keys),
            *((f"{key}#remote_op: Account.pay", OTHER) for key in keys),
            (f"rpc_remote#Account.pay({SELF} -> {OTHER})", ""),
        ]
    )


@in_world
def test_references() -> None:
    """Creating is measured until it is confirmed, and so is fetching."""
    with profile() as p:
        rref = rpc.remote(OTHER, remote.add, (1, 1))
        assert rref.to_here() == 2
        rref._get_future().wait()
    assert sorted(names(p)) == [
        (f"rpc_remote#add({SELF} -> {OTHER})", ""),
        (f"to_here#({SELF})->({OTHER})", ""),
    ]


@in_world
def test_errors_are_those_of_the_call() -> None:
    """Nothing that was measured comes with them."""
    for call in (rpc.rpc_sync, lambda *a: rpc.rpc_async(*a).wait()):
        with profile() as p, pytest.raises(ValueError, match="Expected error"):
            call(OTHER, remote.raises, (ValueError, "Expected error"))
        ((name, worker),) = names(p)
        assert name.endswith(f"#raises({SELF} -> {OTHER})")
        assert worker == ""


@in_world
def test_scopes_around_calls() -> None:
    with profile() as p, record_function("outside"):
        rpc.rpc_sync(OTHER, remote.nothing)
    assert [name for name, _ in names(p)][:2] == [
        "outside",
        f"rpc_sync#nothing({SELF} -> {OTHER})",
    ]
    outer, inner, _ = p.events
    assert outer.start <= inner.start <= inner.end <= outer.end


@in_world
def test_without_a_profiler_nothing_is_different() -> None:
    with profile() as p:
        pass
    assert rpc.rpc_sync(OTHER, remote.add, (1, 1)) == 2
    assert names(p) == []
