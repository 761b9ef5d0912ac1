"""References in programs of workers: RRefAPITest, RRefTypingTest, LocalRRefTest."""

import io
import pickle

import pytest

from everyorder import runtime
from everyorder.runtime import jit, rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.errors.script import ArchiveError
from everyorder.runtime.script import archive
from tests.coded import code
from tests.rpc.api.bodies import OTHER, in_world
from tests.rpc.script import remote_programs as remote

SELF = "worker0"


def x() -> runtime.Tensor:
    return runtime.tensor([1.0, 2.0])


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_rref_is_owner() -> None:
    assert not remote.is_owner(rpc.remote(OTHER, remote.plus, (x(),)))
    assert remote.is_owner(rpc.RRef(x()))


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_rref_local_value() -> None:
    r = rpc.remote(OTHER, remote.plus, (x(),))
    with pytest.raises(RpcMisuse, check=code("NotTheOwner")):
        remote.local_value(r)
    assert rpc.rpc_sync(OTHER, remote.local_value, (r,)).tolist() == [2.0, 3.0]
    assert remote.there_local_value(r).tolist() == [2.0, 3.0]


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_local_rref_local_value() -> None:
    assert remote.of_myself(SELF) == 5
    with pytest.raises(RuntimeError):
        remote.of_myself(OTHER)


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_user_rrefs_confirmed() -> None:
    r = rpc.remote(OTHER, remote.plus, (x(),))
    assert rpc.rpc_sync("worker2", remote.confirmed, (r,))
    assert rpc.rpc_sync(OTHER, remote.confirmed, (r,))


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_user_rrefs_confirmed_remote() -> None:
    r = rpc.remote(OTHER, remote.plus, (x(),))
    assert rpc.remote("worker2", remote.confirmed, (r,)).to_here()


@pytest.mark.spec("rpc 3.10 RRefAPITest")
@in_world
def test_rref_list_mutate() -> None:
    r = rpc.remote(OTHER, remote.a_list)
    assert remote.appended(r) == 3
    assert rpc.rpc_sync(OTHER, remote.add_to, (r, True)) == [1, 2, 3, 4]
    assert rpc.rpc_sync(OTHER, remote.add_to, (r, False)) == [1, 2, 3, 4, 5]
    assert rpc.rpc_sync(OTHER, remote.appended, (r,)) == 6
    assert r.to_here() == [1, 2, 3, 4, 5, 6]


@pytest.mark.spec("rpc 3.10 RRefTypingTest")
@in_world
def test_rref_as_arg_and_return() -> None:
    r = rpc.remote(OTHER, remote.plus, (x(),))
    for to in (SELF, OTHER, "worker2"):
        assert rpc.rpc_sync(to, remote.one_more, (r,)).tolist() == [3.0, 4.0]
        assert rpc.rpc_async(to, remote.one_more, (r,)).wait().tolist() == [3.0, 4.0]
        assert rpc.remote(to, remote.one_more, (r,)).to_here().tolist() == [3.0, 4.0]
        back = rpc.rpc_sync(to, remote.itself, (r,))
        assert back.to_here().tolist() == [2.0, 3.0]
        made = rpc.rpc_sync(to, remote.a_reference, ("worker2", x()))
        assert made.owner_name() == "worker2"
        assert remote.one_more(made).tolist() == [3.0, 4.0]
        outer = rpc.remote(to, remote.a_reference, ("worker2", x()))
        assert remote.twice_to_here(outer).tolist() == [2.0, 3.0]
        assert outer.to_here().to_here().tolist() == [2.0, 3.0]


@pytest.mark.spec("rpc 3.10 RRefTypingTest")
@in_world
def test_my_script_module_with_rrefs() -> None:
    rrefs = [rpc.remote(OTHER, remote.plus, (x(),)), rpc.RRef(x())]
    assert jit.script(remote.Summing(rrefs))().tolist() == [3.0, 5.0]


@pytest.mark.spec("rpc 3.10 RRefTypingTest")
@in_world
def test_rref_python_annotation() -> None:
    r = rpc.remote(OTHER, remote.plus, (x(),))
    assert remote.through_python(r).tolist() == [3.0, 4.0]
    assert rpc.rpc_sync(OTHER, remote.through_python, (r,)).tolist() == [3.0, 4.0]


@pytest.mark.spec("rpc 3.10 LocalRRefTest")
@in_world
def test_create_local_script_class_rref_in_py() -> None:
    r = rpc.RRef(remote.Pair(3))
    assert r.to_here().total(4) == 7
    assert remote.pair_total(r, 4) == 7


@pytest.mark.spec("rpc 3.10 LocalRRefTest")
@in_world
def test_create_local_script_module_rref_in_py() -> None:
    module = jit.script(remote.Adding(2))
    with pytest.raises(RpcMisuse, match="type_hint"):
        rpc.RRef(module)
    with pytest.raises(RpcMisuse, match="type_hint"):
        rpc.RRef(3, type_hint=remote.Adds)
    with pytest.raises(RpcMisuse, match="type_hint"):
        rpc.RRef(module, type_hint=int)
    r = rpc.RRef(module, type_hint=remote.Adds)
    assert remote.module_here(r, x()).tolist() == [6.0, 8.0]


@pytest.mark.spec("rpc 3.10 LocalRRefTest")
@in_world
def test_return_local_script_class_rref_in_py_and_use_in_script() -> None:
    r = rpc.rpc_sync(OTHER, remote.make_pair, (5,))
    assert remote.there_pair_total(r, 1) == 6
    assert rpc.rpc_sync(OTHER, remote.pair_total, (r, 2)) == 7


@pytest.mark.spec("rpc 3.10 LocalRRefTest")
@in_world
def test_return_local_script_module_rref_in_py_and_use_in_script() -> None:
    r = rpc.rpc_sync(OTHER, remote.make_module, (1,))
    assert remote.module_there(r, x()).tolist() == [4.0, 6.0]
    assert rpc.rpc_sync(OTHER, remote.module_here, (r, x())).tolist() == [4.0, 6.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_remote_script_module() -> None:
    """A reference to a module by its interface; nothing of it travels."""
    r = rpc.rpc_sync(OTHER, remote.make_module, (2,))
    assert remote.module_there(r, x()).tolist() == [6.0, 8.0]
    mine = remote.make_module(3)
    assert remote.module_there(mine, x()).tolist() == [8.0, 10.0]
    assert rpc.rpc_sync(SELF, remote.module_here, (mine, x())).tolist() == [8.0, 10.0]
    # Its owner may send it to others, too.
    assert rpc.rpc_sync(OTHER, remote.module_there, (mine, x())).tolist() == [8.0, 10.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_create_script_module_on_remote() -> None:
    """A module travels as an archive; proxies call its methods where it is."""
    r = rpc.remote(OTHER, remote.give_module, (2,))
    assert r.rpc_sync().forward(x()).tolist() == [3.0, 4.0]
    assert r.rpc_async().custom_func(x(), 2).wait().tolist() == [6.0, 8.0]
    assert r.remote().custom_func(x(), times=3).to_here().tolist() == [9.0, 12.0]
    copy = r.to_here()
    copy.n = 5
    assert copy(x()).tolist() == [6.0, 7.0]
    assert r.rpc_sync().forward(x()).tolist() == [3.0, 4.0]


@pytest.mark.spec("rpc 3.10 JitRpcTest")
@in_world
def test_rref_jit_pickle_not_supported() -> None:
    """A reference is in no file: neither by itself, nor within a module."""
    r = rpc.remote(OTHER, remote.plus, (x(),))
    module = jit.script(remote.Summing([r]))
    with pytest.raises(
        ArchiveError, check=code("NotSaveable"), match="An RRef cannot be saved"
    ):
        jit.save(module, io.BytesIO())
    with pytest.raises(
        ArchiveError, check=code("NotSaveable"), match="An RRef cannot be saved"
    ):
        archive.save([r], io.BytesIO())
    with pytest.raises(RpcMisuse, check=code("ReferenceNotSent")):
        pickle.dumps(r)


@pytest.mark.spec("script 6.4", "a reference of another process")
@pytest.mark.spec("rpc 3.7", "which reference is of a type")
@in_world
def test_the_types_of_references_are_known() -> None:
    """3.7: what a program makes, and what the owner knows of its value."""
    for r, wanted in (
        (rpc.RRef(x()), "RRef(Tensor)"),
        (rpc.RRef([1, 2]), "RRef(int[])"),
        (remote.a_reference(OTHER, x()), "RRef(Tensor)"),
    ):
        from everyorder.runtime.script.ir.program import inferred_type

        assert str(inferred_type(r)) == wanted
    with pytest.raises(TypeError):
        remote.one_more(rpc.RRef(3))
