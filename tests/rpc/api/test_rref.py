"""References: who has a value, who may fetch it, and how long it lives."""

import copy
import gc
import pickle
import re
import weakref
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import rpc
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.errors.script import NotScriptable
from tests.coded import code
from tests.rpc.api import remote_functions as remote
from tests.rpc.api.bodies import NAMES, OTHER, THIRD, in_world, quiet, until

SELF = NAMES[0]
USER = re.compile(
    r"UserRRef\(RRefId = GloballyUniqueId\(created_on=0, local_id=(\d+)\), "
    r"ForkId = GloballyUniqueId\(created_on=0, local_id=(\d+)\)\)"
)


@pytest.mark.spec("rpc 0.10", "the owner's future is complete when the value is there")
@pytest.mark.spec("rpc 4.7", "remote to another worker and to itself")
@in_world
def test_a_value_is_made_on_its_owner_and_fetched() -> None:
    rref = rpc.remote(OTHER, remote.add, (1, 2))
    assert (rref.is_owner(), rref.owner_name()) == (False, OTHER)
    assert rref.owner() == rpc.get_worker_info(OTHER)
    assert [rref.to_here(), rref.to_here()] == [3, 3]


@pytest.mark.spec("rpc 4.7", "to_here and local_value")
@in_world
def test_each_fetch_is_a_copy_of_then() -> None:
    rref = rpc.remote(OTHER, remote.Account, (1,))
    first, second = rref.to_here(), rref.to_here()
    assert first == second
    assert first is not second
    rpc.rpc_sync(OTHER, remote.pay_here, (rref, 5))
    assert (first.balance, rref.to_here().balance) == (1, 6)


@pytest.mark.spec("rpc 8 references", "of values of this worker")
@in_world
def test_a_reference_to_a_value_of_this_worker() -> None:
    value = remote.Account(1)
    rref = rpc.RRef(value)
    assert rref.is_owner()
    assert rref.confirmed_by_owner()
    assert rref.local_value() is value
    assert rref.to_here() is value
    assert rref.owner_name() == SELF


@pytest.mark.spec("rpc 4.7", "remote to another worker and to itself")
@in_world
def test_remote_to_itself_keeps_a_value_here() -> None:
    rref = rpc.remote(SELF, remote.Account, (2,))
    assert rref.is_owner()
    assert rref.to_here() == remote.Account(2)
    assert rref.to_here() is rref.local_value()
    failed = rpc.remote(SELF, remote.raises, (ValueError, "Expected error"))
    for ask in (failed.to_here, failed.local_value):
        with pytest.raises(ValueError, match="Expected error"):
            ask()


@pytest.mark.spec("rpc 4.7", "to_here and local_value")
@pytest.mark.spec("rpc 8 references", "local_value elsewhere")
@in_world
def test_the_value_itself_is_asked_of_its_owner_only() -> None:
    rref = rpc.remote(OTHER, remote.add, (1, 2))
    with pytest.raises(RpcMisuse, check=code("NotTheOwner")) as e:
        rref.local_value()
    assert (e.value.worker, e.value.owner) == (SELF, OTHER)
    assert e.value.reference == repr(rref)
    with pytest.raises(RuntimeError, match="local_value"):
        rref.local_value()
    assert rpc.rpc_sync(OTHER, remote.local, (rref,)) == 3


@pytest.mark.spec("rpc 4.7", "text")
@pytest.mark.spec("rpc 8 references", "text")
@in_world
def test_the_text_of_a_reference_is_its_numbers() -> None:
    first, second = rpc.remote(OTHER, remote.nothing), rpc.remote(OTHER, remote.nothing)
    ids = [USER.fullmatch(repr(each)) for each in (first, second)]
    numbers = [int(n) for each in ids if each for n in each.groups()]
    start = numbers[0]
    assert numbers == [start, start + 1, start + 2, start + 3]
    own = rpc.RRef(1)
    assert (
        repr(own) == f"OwnerRRef(GloballyUniqueId(created_on=0, local_id={start + 4}))"
    )
    assert str(own) == repr(own)


@pytest.mark.spec("rpc 8 references", "as arguments of all")
@in_world
def test_references_as_arguments() -> None:
    for to in (OTHER, THIRD, SELF):
        for rref in (rpc.remote(OTHER, remote.add, (1, 2)), rpc.RRef(3)):
            assert rpc.rpc_sync(to, remote.fetch, (rref,)) == 3
            assert rpc.rpc_async(to, remote.fetch, (rref,)).wait() == 3
            assert rpc.remote(to, remote.fetch, (rref,)).to_here() == 3


@pytest.mark.spec("rpc 4.12", "references at any depth")
@in_world
def test_references_deep_in_arguments_and_results() -> None:
    rrefs = [rpc.remote(OTHER, remote.add, (n, 1)) for n in range(3)]
    assert rpc.rpc_sync(THIRD, remote.fetch_all, (rrefs,)) == [1, 2, 3]
    back = rpc.rpc_sync(THIRD, remote.identity, ({"a": [(rrefs[2],)]},))
    assert back["a"][0][0].to_here() == 3
    assert rpc.rpc_sync(THIRD, remote.add_references, (rrefs[0], rrefs[2])) == 4


@pytest.mark.spec("rpc 8 references", "as arguments of all")
@in_world
def test_a_reference_comes_back() -> None:
    rref = rpc.remote(OTHER, remote.add, (1, 2))
    for to in (OTHER, THIRD, SELF):
        back = rpc.rpc_sync(to, remote.give_back, (rref,))
        assert (back.owner_name(), back.to_here()) == (OTHER, 3)
        assert back.confirmed_by_owner()
    own = rpc.RRef(remote.Account(1))
    back = rpc.rpc_sync(OTHER, remote.give_back, (own,))
    assert back.is_owner()
    assert back.local_value() is own.local_value()


@pytest.mark.spec("rpc 8 references", "nested")
@in_world
def test_references_of_references() -> None:
    nested = rpc.remote(OTHER, remote.make_on, (THIRD, remote.add, 1, 2))
    inner = nested.to_here()
    assert (inner.owner_name(), inner.to_here()) == (THIRD, 3)
    assert rpc.rpc_sync(THIRD, remote.fetch_nested, (nested,)) == 3
    assert rpc.remote(SELF, remote.fetch_nested, (nested,)).to_here() == 3


@pytest.mark.spec("rpc 8 references", "nested")
@in_world
def test_a_tree_of_references() -> None:
    rref = rpc.remote(OTHER, remote.tree, (3, [OTHER, THIRD]))
    assert remote.leaves_of(rref.to_here()) == 8


@pytest.mark.spec("rpc 4.7", "one value, any number of users")
@pytest.mark.spec("rpc 8 references", "many")
@in_world
def test_many_references_at_once() -> None:
    rrefs = [rpc.remote(OTHER, remote.add, (n, n)) for n in range(20)]
    fetched = [rpc.remote(THIRD, remote.fetch, (each,)) for each in rrefs]
    assert [each.to_here() for each in fetched] == [2 * n for n in range(20)]


@pytest.mark.spec("rpc 8 references", "of values of this worker")
@in_world
def test_values_of_other_workers_are_given_by_reference() -> None:
    rref = rpc.rpc_sync(OTHER, remote.own, (7,))
    assert (rref.is_owner(), rref.owner_name(), rref.to_here()) == (False, OTHER, 7)
    assert rpc.rpc_sync(THIRD, remote.fetch, (rref,)) == 7
    assert rpc.remote(OTHER, remote.own, (8,)).to_here().to_here() == 8


@pytest.mark.spec("rpc 8 references", "chains")
@in_world
def test_a_reference_passes_along_chains() -> None:
    rref = rpc.RRef(5)
    for length in range(2, 11):
        names = [NAMES[place % len(NAMES)] for place in range(length)]
        assert rpc.rpc_sync(OTHER, remote.forward, (rref, names)) == 5


@pytest.mark.spec("rpc 4.7", "owner and confirmation")
@in_world
def test_users_are_confirmed_when_the_function_runs() -> None:
    made = rpc.remote(OTHER, remote.add, (1, 2))
    for to in (OTHER, THIRD):
        assert rpc.rpc_sync(to, remote.confirmed, (made,)) is True
        assert rpc.remote(to, remote.confirmed, (made,)).to_here() is True
        assert rpc.rpc_sync(to, remote.confirmed, (rpc.RRef(1),)) is True


@pytest.mark.spec("rpc 4.7", "owner and confirmation")
@in_world
def test_a_user_is_confirmed_when_the_owner_has_answered() -> None:
    rref = rpc.remote(OTHER, remote.pass_gate, ("confirmation", 3))
    future = rref._get_future()
    rpc.rpc_sync(OTHER, remote.open_gate, ("confirmation",))
    assert future.wait(60) is None
    assert until(rref.confirmed_by_owner)
    assert rref.to_here() == 3


@pytest.mark.spec("rpc 0.10", "the owner's future is complete when the value is there")
@pytest.mark.spec("rpc 4.7", "fetched before it is made")
@in_world
def test_a_fetch_waits_for_the_value_to_be_made() -> None:
    rref = rpc.remote(OTHER, remote.pass_gate, ("making", 4))
    fetched = rpc.rpc_async(THIRD, remote.fetch, (rref,))
    local = rpc.rpc_async(OTHER, remote.local, (rref,))
    assert (fetched.done(), local.done()) == (False, False)
    rpc.rpc_sync(OTHER, remote.open_gate, ("making",))
    assert (fetched.wait(), local.wait(), rref.to_here()) == (4, 4, 4)


@pytest.mark.spec("rpc 4.7", "to_here and local_value")
@in_world
def test_the_owner_changes_what_others_fetch() -> None:
    rref = rpc.remote(OTHER, remote.identity, ([1, 2],))
    assert rpc.rpc_sync(OTHER, append_here, (rref, 3)) == 3
    assert rref.to_here() == [1, 2, 3]


def append_here(rref: "rpc.RRef[list[int]]", value: int) -> int:
    rref.local_value().append(value)
    # The owner fetches the value itself.
    assert rref.to_here() is rref.local_value()
    return len(rref.to_here())


@pytest.mark.spec("rpc 4.7", "one value, any number of users")
@pytest.mark.spec("rpc 8 references", "leaks")
@in_world
def test_a_value_lives_as_long_as_somebody_refers_to_it() -> None:
    quiet()
    rref = rpc.remote(OTHER, remote.add, (1, 2))
    assert rref.to_here() == 3
    assert rpc.rpc_sync(OTHER, remote.owners) == 1
    rpc.rpc_sync(THIRD, remote.keep_reference, ("kept", rref))
    del rref
    gc.collect()
    assert rpc.rpc_sync(THIRD, remote.fetch_kept, ("kept",)) == 3
    assert rpc.rpc_sync(OTHER, remote.owners) == 1
    rpc.rpc_sync(THIRD, remote.forget, ("kept",))
    assert until(lambda: rpc.rpc_sync(OTHER, remote.owners) == 0)


@pytest.mark.spec("rpc 4.7", "a reference of its own")
@in_world
def test_a_value_of_its_own_is_the_owners_until_it_is_shared() -> None:
    quiet()
    value = remote.Account(1)
    gone = weakref.ref(value)
    rref = rpc.RRef(value)
    assert rpc.get_debug_info()["num_forks"] == "0"
    rpc.rpc_sync(OTHER, remote.keep_reference, ("shared", rref))
    assert until(lambda: rpc.get_debug_info()["num_forks"] == "1")
    del rref, value
    gc.collect()
    assert rpc.rpc_sync(OTHER, remote.fetch_kept, ("shared",)) == remote.Account(1)
    assert gone() is not None
    rpc.rpc_sync(OTHER, remote.forget, ("shared",))
    assert until(lambda: (gc.collect(), gone() is None)[1])
    assert remote.owners() == 0


@pytest.mark.spec("rpc 4.7", "a reference of its own")
@in_world
def test_one_that_is_never_shared_is_freed_without_the_collector() -> None:
    value = remote.Account(1)
    gone = weakref.ref(value)
    rref = rpc.RRef(value)
    gc.disable()
    try:
        del rref, value
        assert until(lambda: gone() is None)
    finally:
        gc.enable()


@pytest.mark.spec("rpc 4.7", "deleting")
@pytest.mark.spec("rpc 8 references", "circles")
@in_world
def test_circles_of_references_and_of_objects_are_collected() -> None:
    quiet()

    class Holder:
        def __init__(self) -> None:
            self.rref = rpc.remote(OTHER, remote.add, (1, 2))
            self.holder = self

    gone = weakref.ref(Holder())
    assert rpc.rpc_sync(OTHER, remote.owners) <= 1
    gc.collect()
    assert gone() is None
    assert until(lambda: rpc.rpc_sync(OTHER, remote.owners) == 0)


@pytest.mark.spec("rpc 4.7", "deleting")
@in_world
def test_dropped_at_once() -> None:
    quiet()
    for n in range(20):
        rpc.remote(OTHER, remote.add, (n, 1))
    assert until(lambda: rpc.rpc_sync(OTHER, remote.owners) == 0)


@pytest.mark.spec("rpc 4.7", "debug info")
@pytest.mark.spec("rpc 8 references", "debug info")
@in_world
def test_debug_info_counts_what_is_there() -> None:
    quiet()

    def counts() -> list[str]:
        info = rpc.get_debug_info()
        keys = ("owner_rrefs", "pending_futures", "pending_users", "forks")
        return [info[f"num_{key}"] for key in keys]

    assert counts() == ["0", "0", "0", "0"]
    rref = rpc.RRef(1)
    rpc.rpc_sync(OTHER, remote.keep_reference, ("counted", rref))
    assert until(lambda: counts() == ["1", "0", "0", "1"])
    waiting = rpc.remote(SELF, remote.pass_gate, ("counted",))
    assert until(lambda: counts()[:2] == ["2", "1"])
    remote.open_gate("counted")
    waiting.to_here()
    del waiting
    assert until(lambda: counts() == ["1", "0", "0", "1"])
    info = rpc.get_debug_info()
    rpc.rpc_sync(OTHER, remote.forget, ("counted",))
    assert until(lambda: counts()[3] == "0")
    agents = {key for key in info if key.startswith("agent.")}
    assert {
        "agent.client_active_calls",
        "agent.num_idle_threads",
        "agent.server_active_async_calls",
        "agent.server_active_calls",
        "agent.thread_pool_size",
    } <= agents


@pytest.mark.spec("rpc 4.7", "pickling")
@pytest.mark.spec("rpc 8 references", "pickling")
@in_world
def test_nothing_but_calls_may_pickle_or_copy_it() -> None:
    import io

    for rref in (rpc.RRef(1), rpc.remote(OTHER, remote.nothing)):
        for ask in (
            lambda rref=rref: pickle.dumps(rref),
            lambda rref=rref: pickle.dumps([rref]),
            lambda rref=rref: copy.copy(rref),
            lambda rref=rref: copy.deepcopy(rref),
            lambda rref=rref: rref._serialize(),
            lambda: rpc.RRef._deserialize(b""),
        ):
            with pytest.raises(RpcMisuse, check=code("ReferenceNotSent")):
                ask()
        with pytest.raises(NotScriptable, check=code("NotScriptable")):
            runtime.jit.save(rref, io.BytesIO())


@pytest.mark.spec("rpc 4.7", "the type of the value")
@pytest.mark.spec("rpc 8 references", "type: waiting or not, slow, late")
@in_world
def test_types_of_values() -> None:
    assert rpc.remote(OTHER, remote.add, (1, 2))._get_type() is int
    assert rpc.RRef(remote.Account(1))._get_type() is remote.Account
    assert rpc.remote(SELF, remote.Account)._get_type() is remote.Account
    future = rpc.remote(OTHER, remote.Account)._get_type(blocking=False)
    assert future.wait() is remote.Account


@pytest.mark.spec("rpc 4.7", "the type of the value")
@pytest.mark.spec("rpc 10", "D14 the type is cached, never a future")
@in_world
def test_a_type_is_kept_and_never_a_future() -> None:
    rref = rpc.remote(OTHER, remote.Account)
    assert rref._get_type(blocking=False).wait() is remote.Account
    assert rref._get_type() is remote.Account
    assert rref._get_type(blocking=False).wait() is remote.Account


@pytest.mark.spec("rpc 8 references", "type: waiting or not, slow, late")
@in_world
def test_the_type_of_a_value_that_is_still_made() -> None:
    rref = rpc.remote(OTHER, remote.slow_account, ("type",))
    with pytest.raises(RuntimeError, match="RPC ran for more than"):
        rref._get_type(timeout=0.05)
    future = rref._get_type(blocking=False)
    assert not future.done()
    rpc.rpc_sync(OTHER, remote.open_gate, ("type",))
    assert future.wait() is remote.Account
    assert rref._get_type() is remote.Account


@pytest.mark.spec("rpc 8 errors", "the type of a value that failed, in both ways")
@in_world
def test_the_type_of_a_value_that_failed() -> None:
    for blocking in (True, False):
        rref = rpc.remote(OTHER, remote.raises, (ValueError, "Expected error"))
        with pytest.raises(ValueError, match="Expected error"):
            rref._get_type(blocking=blocking).wait()


@pytest.mark.spec("rpc 4.7", "what scripts see of a value")
def test_what_scripts_see_of_a_value() -> None:
    from everyorder.runtime.rpc.api.rref import type_of

    assert [type_of(each) for each in (1, 1.5, True, "a")] == [
        *("int", "float", "bool", "str")
    ]
    assert type_of(runtime.ones(2)) == "Tensor"
    assert type_of([1, 2]) == "int[]"
    assert type_of((1, "a")) == "(int, str)"
    assert type_of({"a": [1]}) == "Dict(str, int[])"
    # Nothing is compiled for it.
    assert type_of(remote.Account(1)) == "PyObject"
    assert type_of([1, "a"]) == type_of([]) == "PyObject"


@pytest.mark.spec("rpc 4.7", "what scripts see of a value")
def test_a_hint_belongs_to_compiled_modules() -> None:
    from everyorder.runtime.rpc.api.rref import type_of

    with pytest.raises(RuntimeError, match="nowhere else"):
        type_of(1, int)
    module = runtime.jit.script(Doubling())
    with pytest.raises(RuntimeError, match="type_hint"):
        type_of(module)
    with pytest.raises(RuntimeError, match="an interface that"):
        type_of(module, Other)
    assert type_of(module, Doubles).endswith("Doubles")


class Doubling(runtime.Module):
    def forward(self, x: runtime.Tensor) -> runtime.Tensor:
        return x * 2


@runtime.jit.interface
class Doubles(runtime.Module):
    def forward(self, x: runtime.Tensor) -> runtime.Tensor:  # type: ignore[empty-body]
        pass


@runtime.jit.interface
class Other(runtime.Module):
    def other(self, x: runtime.Tensor) -> runtime.Tensor:  # type: ignore[empty-body]
        pass


@pytest.mark.spec("rpc 8 references", "backward")
@in_world
def test_backward_on_the_owner() -> None:
    x = runtime.ones(2, requires_grad=True)
    rref = rpc.RRef((x * 3).sum())
    rref.backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3, 3]
    with pytest.raises(RuntimeError, match="context"):
        rpc.RRef((x * 3).sum()).backward(7)
    with pytest.raises(RuntimeError):
        rpc.RRef(runtime.ones(1)).backward()


@pytest.mark.spec("rpc 8 references", "backward")
@in_world
def test_backward_for_a_user_runs_on_the_owner() -> None:
    loss = rpc.rpc_sync(OTHER, own_loss)
    loss.backward()
    assert rpc.rpc_sync(OTHER, own_gradient) == [2, 2]


def own_loss() -> "rpc.RRef[runtime.Tensor]":
    x = runtime.ones(2, requires_grad=True)
    remote.KEPT["leaf"] = x
    return rpc.RRef((x * x).sum())


def own_gradient() -> Any:
    return remote.KEPT.pop("leaf").grad.tolist()


@pytest.mark.spec("rpc 4.7", "classes")
@in_world
def test_annotations_name_the_type_of_a_value() -> None:
    assert rpc.PyRRef is rpc.RRef
    assert rpc.RRef[int].__args__ == (int,)  # type: ignore[attr-defined]
    assert isinstance(rpc.RRef[int](1), rpc.RRef)
    assert isinstance(rpc.remote(OTHER, remote.nothing), rpc.RRef)


@pytest.mark.spec("rpc 10", "D17 a reference to a tuple")
@in_world
def test_a_reference_to_a_tuple_is_sent() -> None:
    value = (1, "a", runtime.ones(1))
    for rref in (rpc.RRef(value), rpc.remote(OTHER, remote.identity, (value,))):
        back = rpc.rpc_sync(THIRD, remote.fetch, (rref,))
        assert (back[:2], back[2].tolist()) == ((1, "a"), [1])
