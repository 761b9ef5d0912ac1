"""The operators of `core` by attribute, and calls that go on from a kernel."""

import pytest

from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.registration import LookupFailed
from everyorder.runtime.keys import DispatchKey, KeySet, include_keys
from everyorder.runtime.operators import core
from everyorder.runtime.operators.declare.handles import direct_call, handle_of
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.tensors import tensor


def test_handles_by_attribute() -> None:
    assert core.add is core.add
    assert str(core.add.name) == "core::add"
    assert str(core.add_out.name) == "core::add.out"
    assert str(core.add_.name) == "core::add_"
    assert str(core.clamp_Tensor_out.name) == "core::clamp.Tensor_out"
    with pytest.raises(LookupFailed, check=code("UnknownOperator")) as caught:
        core.ad  # noqa: B018  # asked for
    assert "core::add" in caught.value.near
    with pytest.raises(AttributeError):
        core.__wrapped__  # noqa: B018  # asked for


def test_going_on_is_a_call_without_conversions() -> None:
    on = direct_call("select")
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    # The first calls are ordinary; then there is a call stub, and what it has found.
    for _ in range(20):
        assert on(x, 0, 1).tolist() == [3.0, 4.0]
    with pytest.raises(LookupFailed, check=code("UnknownOperator")):
        direct_call("no_such_operator")(x)


def test_what_is_registered_later_is_what_runs() -> None:
    on, x = direct_call("alias"), tensor([1.0])
    for _ in range(20):
        assert on(x).storage() is x.storage()
    other = tensor([7.0])
    with Library("core", "IMPL", "CPU") as library:
        library.impl("alias", lambda self: other)
        assert on(x).tolist() == [7.0]
        assert on(x).tolist() == [7.0]
    assert on(x).storage() is x.storage()


def test_the_threads_keys_count() -> None:
    on, x = direct_call("alias"), tensor([1.0])
    for _ in range(20):
        on(x)
    with Library("core", "IMPL", "Tracer") as library:
        seen: list[str] = []

        def traced(self: Tensor) -> Tensor:
            seen.append("traced")
            return self

        library.impl("alias", traced)
        with include_keys(KeySet(DispatchKey.Tracer)):
            assert on(x) is x
        on(x)
    assert seen == ["traced"]


def test_who_watches_hears_of_it() -> None:
    on, x = direct_call("alias"), tensor([1.0])
    for _ in range(20):
        on(x)
    with default_dispatcher().trace() as lines:
        on(x)
    assert ["op=[core::alias]" in line for line in lines if "call]" in line] == [True]


def test_what_has_kernels_or_rules_alone_is_no_operator() -> None:
    with Library("core", "FRAGMENT") as library:
        library.impl("frobnicate", lambda x: x, "CPU")
        library.rule("mul_out", Tensor, lambda *_: None)
        with pytest.raises(LookupFailed, check=code("UnknownOperator")) as refused:
            handle_of("frobnicate")
        assert "core::frobnicate" not in refused.value.near
        # `core::mul.out`, not the operator of that name that has a rule and no more.
        assert str(handle_of("mul_out").name) == "core::mul.out"
