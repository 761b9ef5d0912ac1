"""How long a call has, and what becomes of it afterwards."""

import math
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import ReferenceDead, RpcMisuse, RpcTimeout
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, in_world, until

SELF = NAMES[0]
LATE = "RPC ran for more than set timeout"


@pytest.mark.spec("rpc 4.6", "the text")
@in_world
def test_a_call_that_takes_too_long() -> None:
    asks: tuple[Any, ...] = (
        lambda name: rpc.rpc_sync(OTHER, remote.pass_gate, (name,), timeout=0.05),
        lambda name: rpc.rpc_async(
            OTHER, remote.pass_gate, (name,), timeout=0.05
        ).wait(),
    )
    for number, ask in enumerate(asks):
        name = f"late {number}"
        with pytest.raises(RpcTimeout, match=LATE) as e:
            ask(name)
        assert isinstance(e.value, RuntimeError)
        assert isinstance(e.value, TimeoutError)
        assert e.value.milliseconds == 50
        assert e.value.worker == OTHER
        rpc.rpc_sync(OTHER, remote.open_gate, (name,))


@pytest.mark.spec("rpc 4.6", "the callee goes on, the answer is dropped")
@in_world
def test_the_other_worker_goes_on_and_its_answer_is_dropped() -> None:
    future = rpc.rpc_async(OTHER, keep_after_gate, ("dropped",), timeout=0.05)
    with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
        future.wait()
    rpc.rpc_sync(OTHER, remote.open_gate, ("dropped",))
    assert until(lambda: rpc.rpc_sync(OTHER, remote.kept, ("dropped",)) == 1)
    with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
        future.wait()
    rpc.rpc_sync(OTHER, remote.forget, ("dropped",))


def keep_after_gate(name: str) -> None:
    remote.pass_gate(name)
    remote.keep(name, 1)


@pytest.mark.spec("rpc 4.6", "-1, 0, and fractions of a millisecond")
@pytest.mark.spec("rpc 8 ends and timeouts", "default, explicit, for ever")
@in_world
def test_the_default_is_for_calls_that_name_none() -> None:
    assert rpc.get_rpc_timeout() == 60
    rpc._set_rpc_timeout(0.05)
    try:
        assert rpc.get_rpc_timeout() == 0.05
        with pytest.raises(RpcTimeout, match=r"\(50 ms\)"):
            rpc.rpc_sync(OTHER, remote.pass_gate, ("default",))
        # What is said in a call comes first, and 0 is for ever.
        for timeout in (60, 0):
            future = rpc.rpc_async(
                OTHER, remote.pass_gate, ("other", timeout), timeout=timeout
            )
            rpc.rpc_sync(OTHER, remote.open_gate, ("other",), timeout=60)
            assert future.wait() == timeout
    finally:
        rpc._set_rpc_timeout(60)
        rpc.rpc_sync(OTHER, remote.open_gate, ("default",))


@pytest.mark.spec("rpc 4.6", "a new default")
@in_world
def test_a_new_default_is_for_later_calls() -> None:
    future = rpc.rpc_async(OTHER, remote.pass_gate, ("earlier", 1))
    rpc._set_rpc_timeout(0.05)
    try:
        with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
            rpc.rpc_sync(OTHER, remote.pass_gate, ("later",))
        assert not future.done()
    finally:
        rpc._set_rpc_timeout(60)
    for name in ("earlier", "later"):
        rpc.rpc_sync(OTHER, remote.open_gate, (name,))
    assert future.wait() == 1


@pytest.mark.spec("rpc 4.6", "-1, 0, and fractions of a millisecond")
@pytest.mark.spec("rpc 10", "D11 timeouts below a millisecond, negative timeouts")
@in_world
def test_less_than_a_millisecond_is_one() -> None:
    for timeout in (0.0001, 0.001, 1e-9):
        with pytest.raises(RpcTimeout) as e:
            rpc.rpc_sync(OTHER, remote.pass_gate, ("least",), timeout=timeout)
        assert e.value.milliseconds == 1
    for _ in range(3):
        rpc.rpc_sync(OTHER, remote.open_gate, ("least",))


@pytest.mark.spec("rpc 4.6", "what is no timeout")
@pytest.mark.spec("rpc 10", "D11 timeouts below a millisecond, negative timeouts")
@in_world
def test_what_is_no_timeout() -> None:
    for wrong in (-5, -0.5, "1", None, True, math.nan):
        for ask in (
            lambda wrong=wrong: rpc.rpc_sync(OTHER, remote.nothing, timeout=wrong),
            lambda wrong=wrong: rpc.rpc_async(OTHER, remote.nothing, timeout=wrong),
            lambda wrong=wrong: rpc.remote(OTHER, remote.nothing, timeout=wrong),
            lambda wrong=wrong: rpc.RRef(1).to_here(wrong),
            lambda wrong=wrong: rpc.RRef(1).rpc_sync(wrong).bit_length(),
            lambda wrong=wrong: rpc._set_rpc_timeout(wrong),
        ):
            with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
                ask()
    assert rpc.rpc_sync(OTHER, remote.add, (1, 1), timeout=math.inf) == 2
    assert rpc.get_rpc_timeout() == 60


@in_world
def test_a_fetch_that_takes_too_long() -> None:
    rref = rpc.remote(OTHER, remote.pass_gate, ("fetch", 2))
    with pytest.raises(RpcTimeout, match=LATE):
        rref.to_here(0.05)
    rpc.rpc_sync(OTHER, remote.open_gate, ("fetch",))
    assert rref.to_here() == 2


@pytest.mark.spec("rpc 4.7", "dead ones, also several")
@pytest.mark.spec("rpc 10", "D13 each reference that was not made in time is dead")
@in_world
def test_a_reference_whose_making_was_not_answered_in_time_is_dead() -> None:
    """Two of them: each is marked."""
    for name in ("dead 1", "dead 2"):
        rref = rpc.remote(OTHER, remote.pass_gate, (name, 1), timeout=0.02)
        with pytest.raises(RpcTimeout, match=LATE):
            rref._get_future().wait()
        asks: tuple[Any, ...] = (
            rref.to_here,
            lambda rref=rref: rpc.rpc_sync(OTHER, remote.fetch, (rref,)),
            rref._serialize,
            rref.rpc_sync().bit_length,
        )
        for ask in asks:
            with pytest.raises(
                ReferenceDead, check=code("ReferenceDead"), match="RRef creation"
            ):
                ask()
        rpc.rpc_sync(OTHER, remote.open_gate, (name,))


@in_world
def test_a_fetch_that_is_under_way_when_the_making_is_given_up() -> None:
    rref = rpc.remote(OTHER, remote.pass_gate, ("under way", 1), timeout=0.1)
    with pytest.raises(RuntimeError):
        rref.to_here(0.05)
    with pytest.raises(RpcTimeout, check=code("RpcTimeout")):
        rref._get_future().wait()
    rpc.rpc_sync(OTHER, remote.open_gate, ("under way",))
    with pytest.raises(ReferenceDead, check=code("ReferenceDead")):
        rref.to_here()
