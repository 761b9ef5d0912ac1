"""Calls: of what, of whom, with what; results are copies, whoever is called."""

import pickle
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api import scripted
from tests.rpc.api.bodies import OTHER, THIRD, in_world

SELF = "worker0"


def every_way(func: Callable[..., Any], *args: Any, to: Any = OTHER) -> list[Any]:
    """What a call gives in each of the three ways."""
    return [
        rpc.rpc_sync(to, func, args),
        rpc.rpc_async(to, func, args).wait(),
        rpc.remote(to, func, args).to_here(),
    ]


@pytest.mark.spec("rpc 8 calls", "by name, number, info")
@in_world
def test_a_worker_is_named_by_name_by_number_or_by_its_info() -> None:
    info = rpc.get_worker_info(OTHER)
    for to in (OTHER, info.id, info):
        assert every_way(remote.worker_name, to=to) == [OTHER] * 3


@pytest.mark.spec("rpc 8 calls", "itself")
@in_world
def test_a_worker_calls_itself() -> None:
    assert every_way(remote.worker_name, to=SELF) == [SELF] * 3
    assert every_way(remote.add, 2, 3, to=rpc.get_worker_info()) == [5] * 3


@pytest.mark.spec("rpc 8 identity", "no such destination")
@in_world
def test_what_no_worker_is() -> None:
    for to, found in (("nobody", "nobody"), (99, "99")):
        for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
            with pytest.raises(
                RpcMisuse,
                check=code("UnknownWorker"),
                match="could not find destination",
            ) as e:
                call(to, remote.nothing)
            assert found in str(e.value)
    wrong: tuple[Any, ...] = (1.5, None, b"worker1")
    for each in wrong:
        with pytest.raises(ValueError, match="worker"):
            rpc.rpc_sync(each, remote.nothing)


@pytest.mark.spec("rpc 3.8", "keywords")
@in_world
def test_keywords_name_all_arguments_of_a_call() -> None:
    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        given: Any = call(
            to=OTHER,
            func=remote.subtract,
            args=(7, 3),
            kwargs={"times": 2},
            timeout=60.0,
        )
        if call is rpc.rpc_async:
            given = given.wait()
        elif call is rpc.remote:
            given = given.to_here()
        assert given == 8


@pytest.mark.spec("rpc 3.8", "absent and empty arguments, lists")
@in_world
def test_arguments_may_be_absent_empty_or_a_list() -> None:
    absent: tuple[Any, ...] = (None, (), [])
    for args in absent:
        for kwargs in (None, dict[str, Any]()):
            assert rpc.rpc_sync(OTHER, remote.worker_name, args, kwargs) == OTHER
    assert rpc.rpc_sync(OTHER, remote.add, [2, 3]) == 5


@pytest.mark.spec("rpc 3.8", "what cannot be called")
@pytest.mark.spec("rpc 10", "D19 what cannot be called is refused at once")
@in_world
def test_what_cannot_be_called_is_refused_at_once() -> None:
    three: Any = 3
    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        with pytest.raises(TypeError, match="function should be callable"):
            call(OTHER, three)


@pytest.mark.spec("rpc 4.12", "keywords are texts")
@in_world
def test_what_are_no_arguments_is_refused_at_once() -> None:
    for args, kwargs in ((3, None), ("text", None), ((), [1]), ((), {1: 2})):
        with pytest.raises(RpcMisuse, check=code("RpcMisuse")):
            rpc.rpc_sync(OTHER, remote.add, args, kwargs)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="keywords must be strings"):
        rpc.rpc_async(OTHER, remote.add, (1,), {1: 2})  # type: ignore[dict-item]


@pytest.mark.spec(
    "rpc 3.8", "operators, then compiled functions, then functions of Python"
)
@pytest.mark.spec("rpc 8 calls", "operators")
@in_world
def test_operators_are_called_by_their_schema() -> None:
    x, y = runtime.ones(2, 2), runtime.full((2, 2), 3.0)
    for each in every_way(runtime.add, x, y):
        assert each.tolist() == [[4, 4], [4, 4]]
    assert [each.tolist() for each in every_way(runtime.add, x, 1)] == [
        [[2, 2]] * 2
    ] * 3
    places = runtime.tensor([[0, 1], [2, 0]])
    assert rpc.rpc_sync(OTHER, runtime.nonzero, (places,)).tolist() == [[0, 1], [1, 0]]
    assert rpc.rpc_sync(OTHER, runtime.ops.core.add, (x, y)).tolist() == [[4, 4]] * 2


@pytest.mark.spec("rpc 8 calls", "operators")
@in_world
def test_an_operator_may_give_several_tensors() -> None:
    x = runtime.tensor([[1.0, 5.0], [7.0, 2.0]])
    values, places = rpc.rpc_sync(OTHER, runtime.max, (x, 1))
    assert (values.tolist(), places.tolist()) == ([5, 7], [1, 0])


@pytest.mark.spec(
    "rpc 3.8", "operators, then compiled functions, then functions of Python"
)
@pytest.mark.spec("rpc 8 calls", "functions of Python")
@in_world
def test_functions_of_python() -> None:
    assert every_way(remote.add, 2, 3) == [5] * 3
    assert every_way(min, [3, 1, 2]) == [1] * 3
    assert every_way(max, 3, 4) == [4] * 3


@pytest.mark.spec("rpc 8 calls", "no result")
@in_world
def test_no_result_is_none() -> None:
    assert every_way(remote.nothing) == [None] * 3


@pytest.mark.spec("rpc 4.12", "functions, classes, methods, wrappers")
@pytest.mark.spec("rpc 8 calls", "classes")
@in_world
def test_classes_and_their_methods() -> None:
    account = remote.Account(5)
    assert every_way(remote.Account, 5) == [account] * 3
    assert every_way(account.pay, 2) == [7] * 3
    assert every_way(remote.Account.sum, 1, 2) == [3] * 3
    assert every_way(remote.Account.rated, 2) == [6] * 3
    assert account.balance == 5


@pytest.mark.spec("rpc 4.12", "functions, classes, methods, wrappers")
@in_world
def test_a_wrapper_goes_by_the_name_of_what_it_wraps() -> None:
    assert every_way(remote.wrapped, 3) == [40] * 3


@pytest.mark.spec("rpc 4.12", "functions without a name")
@in_world
def test_functions_without_a_name_travel_whole() -> None:
    three = 3
    assert every_way(lambda x: x + three, 4) == [7] * 3


@pytest.mark.spec("rpc 8 calls", "nested", "who called")
@in_world
def test_a_call_may_call_on() -> None:
    assert every_way(remote.call_on, THIRD, remote.worker_name) == [THIRD] * 3
    names = [THIRD, OTHER, THIRD, SELF, OTHER]
    assert rpc.rpc_sync(OTHER, remote.chain, (names, 1)) == 6


@pytest.mark.spec("rpc 8 calls", "nested")
@in_world
def test_calls_in_a_circle_end_though_all_threads_wait() -> None:
    names = [OTHER, SELF] * 12
    assert rpc.rpc_sync(OTHER, remote.chain, (names, 0)) == 24


@pytest.mark.spec("rpc 8 calls", "many at once")
@in_world
def test_many_calls_are_under_way_at_once() -> None:
    futures = [rpc.rpc_async(OTHER, remote.add, (n, n)) for n in range(200)]
    assert [each.wait() for each in futures] == [2 * n for n in range(200)]


@pytest.mark.spec("rpc 4.12", "tensors at any depth, strides, requires_grad")
@pytest.mark.spec("rpc 8 calls", "containers")
@in_world
def test_tensors_in_containers_at_any_depth() -> None:
    x = runtime.arange(3.0)
    value = {"a": [x, (x + 1, {"b": [x * 2]})], "c": "text", "d": None}
    back = rpc.rpc_sync(OTHER, remote.identity, (value,))
    assert back["a"][0].tolist() == [0, 1, 2]
    assert back["a"][1][0].tolist() == [1, 2, 3]
    assert back["a"][1][1]["b"][0].tolist() == [0, 2, 4]
    assert (back["c"], back["d"]) == ("text", None)


@pytest.mark.spec("rpc 4.12", "tensors at any depth, strides, requires_grad")
@in_world
def test_a_tensor_that_occurs_twice_is_one_tensor() -> None:
    x = runtime.zeros(2)
    first, second = rpc.rpc_sync(OTHER, remote.identity, ([x, x],))
    first.add_(1)
    assert second.tolist() == [1, 1]


@pytest.mark.spec("rpc 4.12", "tensors at any depth, strides, requires_grad")
@pytest.mark.spec("rpc 8 calls", "strides")
@in_world
def test_strides_and_requires_grad_are_kept() -> None:
    x = runtime.arange(6.0).reshape(2, 3).t()
    assert rpc.rpc_sync(OTHER, remote.shape_and_strides, (x,)) == (
        [3, 2],
        [1, 3],
        False,
    )
    back = rpc.rpc_sync(OTHER, remote.identity, (x,))
    assert (back.tolist(), [*back.stride()]) == (x.tolist(), [1, 3])
    leaf = runtime.ones(2, requires_grad=True)
    assert rpc.rpc_sync(OTHER, remote.shape_and_strides, (leaf,))[2] is True
    assert rpc.rpc_sync(OTHER, remote.identity, (leaf,)).requires_grad


@pytest.mark.spec("rpc 8 calls", "copies")
@in_world
def test_what_arrives_can_be_written_to() -> None:
    x = runtime.zeros(3)
    for to in (OTHER, SELF):
        assert rpc.rpc_sync(to, remote.write_one, (x,)).tolist() == [1, 1, 1]
        assert rpc.rpc_sync(to, remote.identity, (x,)).add_(2).tolist() == [2, 2, 2]
    assert x.tolist() == [0, 0, 0]


@pytest.mark.spec("rpc 8 calls", "copies")
@in_world
def test_a_call_of_itself_gets_copies() -> None:
    values: list[int] = []
    assert rpc.rpc_sync(SELF, remote.append, (values, 1)) == [1]
    assert values == []
    x = runtime.zeros(2)
    rpc.rpc_sync(SELF, remote.write_one, (x,))
    assert x.tolist() == [0, 0]


@pytest.mark.spec("rpc 8 calls", "pickles within pickles")
@in_world
def test_values_within_values_that_pickle_themselves() -> None:
    inner = pickle.dumps(remote.Account(3))
    assert rpc.rpc_sync(OTHER, pickle.loads, (inner,)) == remote.Account(3)
    nested = [remote.Account(1), {"x": remote.Account(2)}]
    assert rpc.rpc_sync(OTHER, remote.identity, (nested,)) == nested


@pytest.mark.spec("rpc 8 identity", "infos travel")
@in_world
def test_a_worker_info_travels() -> None:
    info = rpc.get_worker_info(THIRD)
    back = rpc.rpc_sync(OTHER, remote.identity, (info,))
    assert (back, hash(back), repr(back)) == (info, hash(info), repr(info))
    assert {info: 1}[back] == 1


@pytest.mark.spec("rpc 4.5", "arguments that cannot be pickled")
@in_world
def test_an_argument_that_cannot_be_pickled_is_refused_at_the_caller() -> None:
    import threading

    for call in (rpc.rpc_sync, rpc.rpc_async, rpc.remote):
        with pytest.raises(TypeError, match="pickle"):
            call(OTHER, remote.identity, (threading.Lock(),))
    assert rpc.rpc_sync(OTHER, remote.add, (1, 1)) == 2


@pytest.mark.spec(
    "rpc 3.8", "operators, then compiled functions, then functions of Python"
)
@in_world
def test_compiled_functions_are_called_by_their_names() -> None:
    x = runtime.ones(2)
    for each in every_way(scripted.doubled_plus, x, 1):
        assert each.tolist() == [3, 3]
    for to in (OTHER, SELF):
        assert every_way(scripted.doubled_plus, x, to=to)[0].tolist() == [4, 4]
    given = rpc.rpc_sync(OTHER, scripted.doubled_plus, (x,), {"y": 5})
    assert given.tolist() == [7, 7]
    assert every_way(scripted.pair, 3, "a") == [(3, "a")] * 3
