"""Calls of programs between workers: the rest of 3.10, and 3.11."""

# mypy: disable-error-code="no-any-return"
# Remote calls of Python give what they give.

import io
from threading import Event
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import jit, rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.errors.script import IllTyped, NotSupported
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.api.lifecycle import set_rpc_timeout
from tests.coded import code
from tests.rpc.api.bodies import OTHER, in_world, until
from tests.rpc.script import remote_programs as remote

SELF = "worker0"
WAYS = range(3)
# Whoever calls it elsewhere gets what its future has.
PASSES_ON: Any = remote.passes_on


# What is said of a marked function whose result is none.
NO_FUTURE = r"must return a torch\.futures\.Future object"


def x() -> runtime.Tensor:
    return runtime.tensor([1.0, 2.0])


# JitRpcOpTest -----------------------------------------------------------------------


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_all_kwargs_are_populated_by_defaults() -> None:
    for way in WAYS:
        assert remote.all_by_name(OTHER, {}, way) == 13


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_some_kwargs_are_populated_by_defaults() -> None:
    for way in WAYS:
        assert remote.all_by_name(OTHER, {"third": 2}, way) == 9
        assert remote.all_by_name(OTHER, {"fourth": 2}, way) == 7


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_no_kwargs_are_populated_by_defaults() -> None:
    for way in WAYS:
        assert remote.all_by_name(OTHER, {"third": 2, "fourth": 1}, way) == 3


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_args_and_kwargs_contain_different_types() -> None:
    a, b, c = remote.mixed_there(OTHER, x())
    assert (a.tolist(), b, c) == ([2.0, 4.0], "b_e", 5)


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_kwargs_not_passed() -> None:
    for way in WAYS:
        assert remote.nothing_by_name(OTHER, way) == 13


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_args_kwargs_are_neither_passed() -> None:
    for way in WAYS:
        assert remote.nothing_at_all(OTHER, way) == 5


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@pytest.mark.spec(
    "rpc 10", "D10 what has no default is given by place, or in the very call"
)
@in_world
def test_less_than_needed_args_are_specified() -> None:
    """D10: what has no default is given by place, whatever the dictionary has."""

    def f(to: str) -> int:
        kwargs: dict[str, int] = {}
        return rpc.rpc_async(to, remote.weighted, (1,), kwargs).wait()

    def g(to: str) -> int:
        return rpc.rpc_sync(to, remote.weighted, (1,), {"second": 2})

    with pytest.raises(IllTyped, check=code("NoSuchCall"), match="`second` is missing"):
        jit.script(f)
    assert jit.script(g)(OTHER) == 25


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_more_than_needed_args_are_specified() -> None:
    def f(to: str) -> int:
        return rpc.rpc_async(to, remote.weighted, (1, 2, 3, 4, 5), {}).wait()

    with pytest.raises(
        IllTyped,
        check=code("NoSuchCall"),
        match="4 arguments by place, and 5 are given",
    ):
        jit.script(f)


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_unexepected_kwarg_is_specified() -> None:
    with pytest.raises(
        RpcMisuse,
        check=code("UnfitArguments"),
        match="Unknown keyword argument 'fifth'",
    ):
        remote.unexpected(OTHER)


@pytest.mark.spec("rpc 0.6", "by fork and by spawn")
@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_call_python_function_remotely_from_script_not_supported() -> None:
    """It is compiled here, so the other worker looks for it, and has it not."""
    f = jit.script(remote.calls_what_is_only_here)
    with pytest.raises(RuntimeError, match="attempted to get undefined function"):
        f(OTHER)
    # Where it was compiled, it is there.
    assert f(SELF) == 1


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_call_script_function_that_raises_remotely_from_script() -> None:
    for way in WAYS:
        for to in (OTHER, SELF):
            with pytest.raises(ValueError, match="Expected error") as caught:
                remote.calls_what_raises(to, way)
            assert isinstance(caught.value, RuntimeError)
            note = "".join(caught.value.__notes__)
            assert "in calls_what_raises" in note


@pytest.mark.spec("rpc 3.10 JitRpcOpTest")
@in_world
def test_call_script_function_that_not_exists_remotely_from_script() -> None:
    words = "attempted to get undefined function nonexisting_script"
    with pytest.raises(RuntimeError, match=words):
        remote.calls_by_name(OTHER, "__torch__.nobody.nonexisting_script", 1)


@pytest.mark.spec("rpc 0.1", "the listing of document 000")
@in_world
def test_document_000() -> None:
    """0.1 to 0.4: its program, to the letter, and the call arrives."""
    from tests.rpc.script.test_document import send_rpc_async

    f = jit.script(send_rpc_async())
    name = "__torch__.tests.rpc.script.remote_programs.noted"
    assert f(OTHER, name, x()) is None
    there: list[list[float]] = []

    def arrived() -> bool:
        # Nobody waits for the call itself.
        there.extend(rpc.rpc_sync(OTHER, remote.take_notes))
        return bool(there)

    assert until(arrived)
    assert there == [[1.0, 2.0]]


@pytest.mark.spec("rpc 3.6", "a worker that nobody is")
@in_world
def test_a_worker_that_nobody_is() -> None:
    """3.6: it is told by the worker that asks, with the frames of the program."""
    words = "could not find destination name nope"
    with pytest.raises(RpcMisuse, check=code("UnknownWorker"), match=words) as caught:
        remote.held_default("nope")
    assert "in held_default" in "".join(caught.value.__notes__)


@in_world
def test_a_program_that_was_loaded_calls() -> None:
    """D8: it calls by names, of functions that the other worker has."""
    buffer = io.BytesIO()
    jit.save(remote.mixed_there, buffer)
    buffer.seek(0)
    a, b, c = jit.load(buffer)(OTHER, x())
    assert (a.tolist(), b, c) == ([2.0, 4.0], "b_e", 5)


# FutureTypingTest -------------------------------------------------------------------


@pytest.mark.spec("rpc 3.10 FutureTypingTest")
@in_world
def test_future_passed_between_python_and_jit() -> None:
    future = rpc.rpc_async(OTHER, remote.plus, (x(),))
    assert remote.waits(future).tolist() == [3.0, 4.0]
    given = remote.begins(OTHER, x())
    assert isinstance(given, Future)
    assert given.wait().tolist() == [2.0, 3.0]
    assert remote.waits(remote.begins(OTHER, x())).tolist() == [3.0, 4.0]


@pytest.mark.spec("rpc 3.10 FutureTypingTest")
@in_world
def test_future_python_annotation() -> None:
    assert remote.waits_for_python(OTHER, x()).tolist() == [2.0, 3.0]


# JitRpcTest -------------------------------------------------------------------------


@pytest.mark.spec("rpc 0.6", "by fork and by spawn")
@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_torchscript_function() -> None:
    local = remote.plus(x()).tolist()
    for to in (OTHER, SELF):
        assert rpc.rpc_sync(to, remote.plus, (x(),)).tolist() == local
        assert rpc.remote(to, remote.plus, (x(),)).to_here().tolist() == local


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_torchscript_function_exception() -> None:
    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        with pytest.raises(TypeError, match="at most 1"):
            call(OTHER, remote.plus, (10, 20))


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_torchscript_functions_not_supported() -> None:
    pair = rpc.rpc_sync(OTHER, remote.Pair, (4,))
    assert pair.total(1) == 5
    module = jit.script(remote.Adding(1))
    with pytest.raises(TypeError, match="pickle") as caught:
        rpc.rpc_sync(OTHER, module.forward, (x(),))
    assert isinstance(caught.value, RuntimeError)


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_remote_script_throw() -> None:
    r = rpc.remote(OTHER, remote.raises, (1,))
    with pytest.raises(RuntimeError, match="Expected error"):
        r.to_here()


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_remote_script_udf() -> None:
    r = rpc.remote(OTHER, remote.forks, (x(),))
    assert r.to_here().tolist() == [4.0, 8.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_script_udf() -> None:
    future = rpc.rpc_async(OTHER, remote.forks, (x(),))
    assert future.wait().tolist() == [4.0, 8.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_callback_simple() -> None:
    future = rpc.rpc_async(OTHER, remote.plus, (x(),))
    assert future.then(lambda f: f.wait() + 1).wait().tolist() == [3.0, 4.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_callback_chain() -> None:
    future = rpc.rpc_async(OTHER, remote.plus, (x(),))
    for _ in range(20):
        future = future.then(lambda f: f.wait() + 1)
    assert future.wait().tolist() == [22.0, 23.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_add_done_callback() -> None:
    told, there = Event(), []
    future = rpc.rpc_async(OTHER, remote.plus, (x(),))

    def tell(settled: Future[Any]) -> None:
        there.append(settled.wait().tolist())
        told.set()

    future.add_done_callback(tell)
    future.wait()
    assert told.wait(60)
    assert there == [[2.0, 3.0]]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_script_throw() -> None:
    with pytest.raises(RuntimeError, match="Expected error"):
        rpc.rpc_async(OTHER, remote.raises, (1,)).wait()


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_callback_with_exception() -> None:
    def callback(future: Future[Any]) -> Any:
        with pytest.raises(RuntimeError, match="Expected error"):
            future.wait()
        raise RuntimeError("Another expected error")

    future = rpc.rpc_async(OTHER, remote.raises, (1,)).then(callback)
    with pytest.raises(RuntimeError, match="Another expected error"):
        future.wait()


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_simple() -> None:
    found = rpc.rpc_sync(OTHER, PASSES_ON, ("worker2", x(), x()))
    assert found.tolist() == [2.0, 4.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_wrong_return_type() -> None:
    with pytest.raises(RpcMisuse, check=code("NotAFuture"), match=NO_FUTURE):
        rpc.rpc_sync(OTHER, remote.no_future, (x(),))


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_wrong_decorator_order() -> None:
    """`jit.script` over the mark finds a function that no program is."""
    with pytest.raises(RuntimeError) as caught:

        @jit.script
        @rpc.functions.async_execution
        def wrong(to: str) -> Future[int]:
            return rpc.rpc_async(to, remote.five)

    assert isinstance(caught.value, NotSupported)


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_remote() -> None:
    r = rpc.remote(OTHER, PASSES_ON, ("worker2", x(), x()))
    assert r.to_here().tolist() == [2.0, 4.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_remote_multi() -> None:
    rrefs = [rpc.remote(OTHER, PASSES_ON, ("worker2", x(), x() + n)) for n in range(20)]
    assert [r.to_here().tolist() for r in rrefs] == [
        [2.0 + n, 4.0 + n] for n in range(20)
    ]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_async_function_wrong_return_type_remote() -> None:
    r = rpc.remote(OTHER, remote.no_future, (x(),))
    with pytest.raises(RpcMisuse, check=code("NotAFuture"), match=NO_FUTURE):
        r.to_here()


# 3.11, late and lost ----------------------------------------------------------------


def release() -> None:
    rpc.rpc_sync(OTHER, remote.let_go)


@pytest.mark.spec("rpc 3.11")
@in_world
def test_timeout_in_torchscript_function() -> None:
    """An explicit one, the default, and 0, which is for ever."""
    rpc.rpc_sync(OTHER, remote.keep)
    default = rpc.get_rpc_timeout()
    try:
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            remote.held_there(OTHER, 0.05)
        set_rpc_timeout(0.05)
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            remote.held_default(OTHER)
        # A number of Python's is a float for the program.
        future = remote.held_future(OTHER, 0)
    finally:
        set_rpc_timeout(default)
        release()
    assert future.wait() == 7


@pytest.mark.spec("rpc 3.11")
@in_world
def test_timeout_in_python() -> None:
    """The same of a future that a program gives, and that Python waits for."""
    rpc.rpc_sync(OTHER, remote.keep)
    default = rpc.get_rpc_timeout()
    try:
        future = remote.held_future(OTHER, 0.05)
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            future.wait()
        set_rpc_timeout(0.05)
        future = remote.begins_held(OTHER)
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            future.wait()
        longer = [remote.held_future(OTHER, timeout) for timeout in (50.0, 0)]
    finally:
        set_rpc_timeout(default)
        release()
    assert [each.wait() for each in longer] == [7, 7]


@pytest.mark.spec("rpc 3.11")
@in_world
def test_remote_timeout_to_here_in_jit() -> None:
    rpc.rpc_sync(OTHER, remote.keep)
    try:
        r = remote.held_reference(OTHER, 0.05)
        with pytest.raises(RuntimeError):
            r._get_future().wait()
        with pytest.raises(RuntimeError, match="RRef creation"):
            remote.fetched(r, 50.0)
    finally:
        release()


@pytest.mark.spec("rpc 3.11")
@in_world
def test_rref_to_here_timeout_in_jit() -> None:
    rpc.rpc_sync(OTHER, remote.keep)
    try:
        r = remote.held_reference(OTHER, 50.0)
        with pytest.raises(RuntimeError, match="RPC ran for more than set timeout"):
            remote.fetched(r, 0.05)
    finally:
        release()
    assert remote.fetched(r, 100.0) == 7


@pytest.mark.spec("rpc 3.11")
@in_world
def test_rref_timeout_pickle_in_jit() -> None:
    rpc.rpc_sync(OTHER, remote.keep)
    try:
        r = remote.held_reference(OTHER, 0.05)
        with pytest.raises(RuntimeError):
            r._get_future().wait()
        with pytest.raises(RuntimeError, match="RRef creation"):
            remote.sent_on("worker2", r)
    finally:
        release()


@pytest.mark.spec("rpc 3.11")
@in_world
def test_rref_timeout_pickle_script_func() -> None:
    rpc.rpc_sync(OTHER, remote.keep)
    try:
        r = remote.held_reference(OTHER, 0.05)
        with pytest.raises(RuntimeError):
            r._get_future().wait()
        with pytest.raises(RuntimeError, match="RRef creation"):
            rpc.rpc_sync("worker2", remote.taken, (r,))
    finally:
        release()
