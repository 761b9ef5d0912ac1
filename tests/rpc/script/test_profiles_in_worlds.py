"""What profilers measure of programs that call: 4.10, and the rows of 3.10."""

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.rpc.api.profiling import profile, record_function
from tests.rpc.api.bodies import OTHER, in_world
from tests.rpc.script import remote_programs as remote
from tests.rpc.script.test_calls_in_worlds import x

SELF = "worker0"
PATH = "__torch__.tests.rpc.script.remote_programs"


def names(p: profile) -> list[tuple[str, str]]:
    """What was measured, and where."""
    return [(each.name, each.worker) for each in p.events]


def call_of(mode: str, function: str) -> list[tuple[str, str]]:
    """What is measured of a call: at its caller, and where it ran."""
    name = f"{PATH}.{function}"
    key = f"rpc_{mode}#{name}({SELF} -> {OTHER})"
    return [(key, ""), (f"{key}#remote_op: {name}", OTHER)]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_call_rpc_with_profiling() -> None:
    """A compiled function that Python calls, in a scope of Python's."""
    with profile() as p, record_function("outer") as scope:
        future = rpc.rpc_async(OTHER, remote.plus, (x(),))
        scope._call_end_callbacks_on_future(future).wait()
    assert names(p) == [("outer", ""), *call_of("async", "plus")]
    (outer, call, _) = p.events
    assert outer.end >= call.end


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_rpc_async_jit_profiled() -> None:
    """What a program begins has a key of its own."""
    with profile() as p:
        assert remote.begins(OTHER, x()).wait().tolist() == [2.0, 3.0]
    assert names(p) == call_of("async_jit", "plus")


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_record_function_on_caller_rpc_async() -> None:
    """A scope of the program, with two calls in it."""
    with profile() as p:
        assert remote.scoped(OTHER, x()).tolist() == [4.0, 6.0]
    found = names(p)
    assert found[0] == ("a scope", "")
    assert sorted(found[1:]) == sorted(2 * call_of("async_jit", "plus"))


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_rpc_torchscript_record_function() -> None:
    """A scope of the program that is called, seen by the caller."""
    with profile() as p:
        rpc.rpc_sync(OTHER, remote.scoped_there, (x(),))
    call, there = call_of("sync", "scoped_there")
    assert names(p) == [call, there, (f"{call[0]}#remote_op: inside", OTHER)]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_record_function_jit_end_callbacks_with_fork() -> None:
    """A scope that ends with the future of a forked task."""
    with profile() as p, record_function("forked") as scope:
        future = remote.forked_plus(x())
        after = scope._call_end_callbacks_on_future(future)
        with pytest.raises(RpcMisuse, match="only be called once"):
            scope._call_end_callbacks_on_future(future)
    assert after.wait().tolist() == [2.0, 3.0]
    assert names(p) == [("forked", "")]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_call_fork_in_jit_with_profiling() -> None:
    """A task is measured by whoever profiles the one that forked it."""
    with profile() as p, record_function("outer"):
        found = remote.forks_a_call(OTHER, x())
    assert found.tolist() == [2.0, 3.0]
    assert names(p) == [("outer", ""), *call_of("sync", "plus")]
