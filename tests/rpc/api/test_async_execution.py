"""Functions whose results come later, from whichever thread."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.futures import Future
from tests.rpc.api import remote_functions as remote
from tests.rpc.api import scripted
from tests.rpc.api.bodies import OTHER, THIRD, in_world, until

WAYS: tuple[Callable[..., Any], ...] = (
    lambda func, *args: rpc.rpc_sync(OTHER, func, args),
    lambda func, *args: rpc.rpc_async(OTHER, func, args).wait(),
    lambda func, *args: rpc.remote(OTHER, func, args).to_here(),
)


@pytest.mark.spec("rpc 4.8", "the mark")
def test_here_a_marked_function_gives_its_future() -> None:
    @rpc.functions.async_execution
    def constant(x: int) -> Future[int]:
        """The words of the function."""
        future: Future[int] = Future()
        future.set_result(x)
        return future

    assert constant(3).wait() == 3
    assert constant.__doc__ == "The words of the function."
    assert constant._wrapped_async_rpc_function(4).wait() == 4  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match="under staticmethod"):
        rpc.functions.async_execution(3)  # type: ignore[arg-type]


@pytest.mark.spec(
    "rpc 0.12", "programs complete futures of functions executed asynchronously"
)
@pytest.mark.spec("rpc 8 asynchronous execution", "simple, made")
@in_world
def test_the_caller_gets_the_value() -> None:
    for way in WAYS:
        assert way(remote.async_add, THIRD, 1, 2) == 3
        assert way(remote.async_constructed, "made") == "made"
        assert way(remote.async_constructed, None) is None


@pytest.mark.spec("rpc 4.8", "whoever completes the future answers")
@pytest.mark.spec("rpc 8 asynchronous execution", "chained")
@in_world
def test_chains_of_callbacks() -> None:
    for way in WAYS:
        assert way(remote.async_chained, THIRD, 1, 2, 3) == 6
        assert way(remote.async_chained_far, THIRD, 1, 20) == 22


@pytest.mark.spec("rpc 8 asynchronous execution", "nested, fanned out")
@in_world
def test_marked_functions_that_call_marked_functions() -> None:
    for way in WAYS:
        assert way(remote.async_nested, THIRD, 1, 2) == 3
        assert way(remote.async_fanout, THIRD, 1, 10) == 55


@pytest.mark.spec("rpc 4.8", "under static and class methods, over scripts")
@pytest.mark.spec("rpc 8 asynchronous execution", "methods")
@in_world
def test_static_and_class_methods() -> None:
    for way in WAYS:
        assert way(remote.AsyncAccount.static_add, THIRD, 1, 2) == 103
        assert way(remote.AsyncAccount.class_add, THIRD, 1, 2) == 15
        assert way(remote.AsyncAccount(5).bound_add, THIRD, 1) == 6


@in_world
def test_values_of_all_kinds() -> None:
    x = runtime.ones(2)
    for way in WAYS:
        assert way(remote.async_add, THIRD, x, 1).tolist() == [2, 2]
        assert way(remote.async_constructed, {"x": [x]})["x"][0].tolist() == [1, 1]


@in_world
def test_a_reference_as_the_value() -> None:
    for way in WAYS:
        assert way(remote.async_add, THIRD, 1, 2) == 3
    given = rpc.rpc_sync(OTHER, remote.async_constructed, (rpc.RRef(5),))
    assert given.is_owner()
    assert given.to_here() == 5


@pytest.mark.spec("rpc 4.8", "errors before")
@pytest.mark.spec("rpc 8 asynchronous execution", "raising")
@in_world
def test_errors_before_there_is_a_future() -> None:
    for way in WAYS:
        with pytest.raises(RuntimeError, match="Expected error"):
            way(remote.async_raises)


@pytest.mark.spec("rpc 4.8", "errors of the future")
@pytest.mark.spec("rpc 10", "D5 an error is not a value")
@in_world
def test_a_future_that_is_completed_with_an_error_raises_it() -> None:
    for way in WAYS:
        with pytest.raises(ValueError, match="told later"):
            way(remote.async_raises_later)


@pytest.mark.spec("rpc 4.8", "errors of callbacks")
@in_world
def test_a_callback_that_raises() -> None:
    for way in WAYS:
        with pytest.raises(RuntimeError, match=r"in a\s+callback"):
            way(remote.async_callback_raises, THIRD)


@pytest.mark.spec("rpc 4.8", "no future")
@pytest.mark.spec("rpc 8 asynchronous execution", "no future")
@in_world
def test_a_result_that_is_no_future() -> None:
    for way in WAYS:
        with pytest.raises(RuntimeError) as e:
            way(remote.async_wrong)
        text = " ".join(str(e.value).split())
        assert "must return a torch.futures.Future object" in text
        assert "`async_wrong` returned an object of type int" in text


@pytest.mark.spec(
    "rpc 0.12", "programs complete futures of functions executed asynchronously"
)
@pytest.mark.spec("rpc 4.8", "whoever completes the future answers")
@in_world
def test_no_thread_waits_for_what_comes_later() -> None:
    # More than there are threads.
    count = 40
    futures = [rpc.rpc_async(OTHER, remote.park) for _ in range(count)]
    assert until(lambda: rpc.rpc_sync(OTHER, remote.parked) == count)
    assert not any(each.done() for each in futures)
    assert rpc.rpc_sync(OTHER, remote.release, ("here",)) == count
    told = runtime.futures.wait_all(futures)
    assert {value for value, _ in told} == {"here"}
    # All were told from the thread of one call.
    assert len({thread for _, thread in told}) == 1


@pytest.mark.spec("rpc 4.8", "a future of an unmarked function")
@in_world
def test_a_future_of_an_unmarked_function_is_refused() -> None:
    for way in WAYS:
        with pytest.raises(RuntimeError, match="Future objects cannot be pickled"):
            way(remote.a_future)


@pytest.mark.spec("rpc 4.8", "under static and class methods, over scripts")
@in_world
def test_over_a_compiled_function() -> None:
    x = runtime.ones(2)
    for way in WAYS:
        assert way(scripted.later, x).tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="Tensor"):
            way(scripted.not_later, x)


@pytest.mark.spec("rpc 4.8", "under static and class methods, over scripts")
def test_a_marked_function_is_not_compiled() -> None:
    with pytest.raises(RuntimeError):
        runtime.jit.script(remote.async_wrong)
