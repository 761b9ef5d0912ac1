"""Workers, as programs know them."""

import pickle
from typing import Any

import pytest

from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, in_world


@pytest.mark.spec("rpc 8 identity", "infos")
@in_world
def test_each_worker_knows_itself_and_all_others() -> None:
    for number, name in enumerate(NAMES):
        assert rpc.get_worker_info(name) == rpc.WorkerInfo(name, number)
        told = rpc.rpc_sync(name, rpc.get_worker_info)
        assert told == rpc.WorkerInfo(name, number)
    assert rpc.get_worker_info() == rpc.WorkerInfo(NAMES[0], 0)


@pytest.mark.spec("rpc 8 identity", "no such destination")
@in_world
def test_who_is_no_member() -> None:
    with pytest.raises(
        RpcMisuse,
        check=code("UnknownWorker"),
        match="could not find destination name nope",
    ):
        rpc.get_worker_info("nope")
    with pytest.raises(
        RpcMisuse, check=code("UnknownWorker"), match="could not find destination id 99"
    ):
        rpc.get_worker_info(99)
    with pytest.raises(RpcMisuse, check=code("UnknownWorker")) as e:
        rpc.get_worker_info("worker")
    assert set(e.value.near) == set(NAMES)


@pytest.mark.spec("rpc 8 identity", "infos")
def test_an_info_is_a_value() -> None:
    info = rpc.WorkerInfo("a", 1)
    assert repr(info) == "WorkerInfo(id=1, name=a)"
    assert (info.name, info.id) == ("a", 1)
    assert info == rpc.WorkerInfo("a", 1)
    assert info not in (rpc.WorkerInfo("a", 2), rpc.WorkerInfo("b", 1))
    assert {info: "x"}[rpc.WorkerInfo("a", 1)] == "x"
    assert pickle.loads(pickle.dumps(info)) == info
    with pytest.raises(AttributeError):
        info.name = "b"  # type: ignore[misc]


@pytest.mark.spec("rpc 8 identity", "initialized twice")
@in_world
def test_a_second_worker_in_one_process_is_refused() -> None:
    with pytest.raises(
        RpcMisuse, check=code("AlreadyInitialized"), match="RPC is already initialized"
    ):
        rpc.init_rpc("worker0", rank=0, world_size=len(NAMES))
    assert rpc.rpc_sync(OTHER, remote.worker_name) == OTHER


@pytest.mark.spec("rpc 4.7", "owner and confirmation")
@pytest.mark.spec("rpc 8 identity", "owners")
@in_world
def test_owners_of_references_are_infos() -> None:
    first = rpc.remote(OTHER, remote.nothing)
    second = rpc.remote(OTHER, remote.nothing)
    own = rpc.RRef(1)
    assert first.owner() == second.owner() == rpc.get_worker_info(OTHER)
    assert hash(first.owner()) == hash(second.owner())
    assert own.owner() == rpc.get_worker_info()
    assert {first.owner(): 1}[second.owner()] == 1
    assert first.owner() != own.owner()


@pytest.mark.parametrize("name", ["abc*", "", "a b", "x" * 128, "\u00e9", None, b"a"])
def test_what_is_no_name_of_a_worker(name: Any) -> None:
    with pytest.raises(RpcMisuse, match="Worker name must match") as error:
        rpc.WorkerInfo(name, 0)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize("number", [-1, 1 << 15, 1.0, True, "0", None])
def test_what_is_no_id_of_a_worker(number: Any) -> None:
    with pytest.raises(RpcMisuse, match="out of bound of int16_t"):
        rpc.WorkerInfo("abc", number)
