"""Methods of a value that lies elsewhere."""

import copy
import pickle
from functools import partial
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, THIRD, in_world

SELF = NAMES[0]


@pytest.mark.spec("rpc 8 proxies", "methods of tensors")
@in_world
def test_methods_of_a_tensor() -> None:
    for to in (OTHER, SELF):
        rref = rpc.remote(to, runtime.ones, (2, 2))
        assert rref.rpc_sync().size() == (2, 2)
        assert rref.rpc_async().size().wait() == (2, 2)
        assert rref.remote().size().to_here() == (2, 2)
        assert rref.rpc_sync().add(1).tolist() == [[2, 2], [2, 2]]


@pytest.mark.spec("rpc 8 proxies", "used many times")
@in_world
def test_a_proxy_is_used_many_times() -> None:
    rref = rpc.remote(OTHER, remote.Account)
    sync, later, made = rref.rpc_sync(), rref.rpc_async(), rref.remote()
    assert [sync.pay(1) for _ in range(5)] == [1, 2, 3, 4, 5]
    assert runtime.futures.wait_all([later.pay(0) for _ in range(5)]) == [5] * 5
    assert [made.pay(1).to_here() for _ in range(3)] == [6, 7, 8]


@pytest.mark.spec("rpc 4.7", "proxies")
@pytest.mark.spec("rpc 8 proxies", "class methods")
@in_world
def test_all_kinds_of_methods_with_keywords() -> None:
    rref = rpc.remote(OTHER, remote.Account, (1,))
    ways: tuple[Any, ...] = (
        lambda name, *a, **k: getattr(rref.rpc_sync(), name)(*a, **k),
        lambda name, *a, **k: getattr(rref.rpc_async(), name)(*a, **k).wait(),
        lambda name, *a, **k: getattr(rref.remote(), name)(*a, **k).to_here(),
    )
    for of in ways:
        before = rref.to_here().balance
        assert of("pay", 2, times=3) == before + 6
        assert of("sum", 1, y=2) == 3
        assert of("rated", amount=2) == 6


@pytest.mark.spec("rpc 8 references", "methods")
@in_world
def test_calls_on_a_value_of_this_worker() -> None:
    rref = rpc.RRef(remote.Account(1))
    assert rref.rpc_sync().pay(1) == 2
    assert rref.rpc_async().pay(1).wait() == 3
    assert rref.remote().pay(1).to_here() == 4
    assert rref.local_value().balance == 4


@pytest.mark.spec("rpc 4.7", "proxies")
@pytest.mark.spec("rpc 8 proxies", "no such attribute")
@in_world
def test_a_name_that_the_class_lacks() -> None:
    for rref in (rpc.remote(OTHER, remote.Account), rpc.RRef(remote.Account())):
        # What an object sets is not of its class.
        for name in ("nope", "owned"):
            for ask in (
                partial(lambda r, n: getattr(r.rpc_sync(), n)(), rref, name),
                partial(lambda r, n: getattr(r.rpc_async(), n)().wait(), rref, name),
                partial(lambda r, n: getattr(r.remote(), n)(), rref, name),
            ):
                with pytest.raises(AttributeError, check=code("NoSuchMethod")) as e:
                    ask()
                assert f"`Account` has no attribute `{name}`" in str(e.value)


@in_world
def test_a_method_that_raises() -> None:
    rref = rpc.remote(OTHER, remote.Account)
    asks: tuple[Any, ...] = (
        lambda: rref.rpc_sync().fail(),
        lambda: rref.rpc_async().fail().wait(),
        lambda: rref.remote().fail().to_here(),
    )
    for ask in asks:
        with pytest.raises(ValueError, match="no account"):
            ask()


@in_world
def test_a_value_that_failed() -> None:
    asks: tuple[Any, ...] = (
        lambda rref: rref.rpc_sync().pay(1),
        lambda rref: rref.rpc_async().pay(1).wait(),
        lambda rref: rref.remote().pay(1).to_here(),
    )
    for ask in asks:
        rref = rpc.remote(OTHER, remote.raises, (ValueError, "Expected error"))
        with pytest.raises(ValueError, match="Expected error"):
            ask(rref)


@pytest.mark.spec("rpc 4.7", "proxies")
@pytest.mark.spec("rpc 8 proxies", "timeouts")
@in_world
def test_the_timeout_covers_the_type_and_the_call() -> None:
    rref: Any = rpc.remote(OTHER, remote.slow_account, ("proxy type",))
    asks: tuple[Any, ...] = (
        lambda: rref.rpc_sync(0.05).pay(1),
        lambda: rref.rpc_async(0.05).pay(1).wait(),
        lambda: rref.remote(0.05).pay(1),
    )
    for ask in asks:
        with pytest.raises(RuntimeError, match="RPC ran for more than"):
            ask()
    rpc.rpc_sync(OTHER, remote.open_gate, ("proxy type",))
    assert rref.rpc_sync().pay(1) == 6
    asks = (
        lambda: rref.rpc_sync(0.05).slow("proxy call"),
        lambda: rref.rpc_async(0.05).slow("proxy call").wait(),
    )
    for ask in asks:
        with pytest.raises(RuntimeError, match="RPC ran for more than"):
            ask()
    rpc.rpc_sync(OTHER, remote.open_gate, ("proxy call",))


@in_world
def test_an_asynchronous_proxy_does_not_wait_for_the_type() -> None:
    rref: Any = rpc.remote(OTHER, remote.slow_account, ("not waiting",))
    future = rref.rpc_async().pay(1)
    assert not future.done()
    rpc.rpc_sync(OTHER, remote.open_gate, ("not waiting",))
    assert future.wait() == 6


@in_world
def test_calls_on_a_value_that_is_being_made_take_no_thread_of_the_owner() -> None:
    rref: Any = rpc.remote(OTHER, remote.slow_account, ("threads",))
    futures = [rref.rpc_async().pay(1) for _ in range(40)]
    # There are fewer threads than calls, and one is left for this.
    rpc.rpc_sync(OTHER, remote.open_gate, ("threads",))
    assert sorted(runtime.futures.wait_all(futures)) == [*range(6, 46)]


@pytest.mark.spec("rpc 4.7", "proxies")
@pytest.mark.spec("rpc 8 asynchronous execution", "of references")
@in_world
def test_methods_that_are_executed_asynchronously() -> None:
    rref = rpc.remote(OTHER, remote.AsyncAccount, (5,))
    ways: tuple[Any, ...] = (
        lambda name, *a: getattr(rref.rpc_sync(), name)(*a),
        lambda name, *a: getattr(rref.rpc_async(), name)(*a).wait(),
        lambda name, *a: getattr(rref.remote(), name)(*a).to_here(),
    )
    for of in ways:
        assert of("static_add", THIRD, 1, 2) == 103
        assert of("class_add", THIRD, 1, 2) == 15
        assert of("bound_add", THIRD, 1) == 6
        with pytest.raises(ValueError, match="no account"):
            of("fail")


@in_world
def test_a_proxy_stays() -> None:
    proxy = rpc.RRef(1).rpc_sync()
    with pytest.raises(TypeError):
        pickle.dumps(proxy)
    with pytest.raises(TypeError):
        copy.deepcopy(proxy)
