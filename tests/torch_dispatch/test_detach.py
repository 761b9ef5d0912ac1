"""Detaching, `data` and `set_`: who is asked, and who counts versions with whom."""

from functools import partial
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.tensor import NotReplaceable
from everyorder.runtime.errors.torch_dispatch import HandlerError
from everyorder.runtime.keys import DispatchKey, KeySet
from everyorder.runtime.tensors import wrap_number
from everyorder.runtime.torch_dispatch import TorchDispatchMode, no_dispatch
from tests.coded import code, coded
from tests.torch_dispatch.kinds import (
    TENSOR,
    Boxed,
    Counted,
    asked,
    boxed,
    core,
    counted,
    vector,
)

DoesNotFit = coded(NotReplaceable, "DoesNotFit")

DETACH = ["core.detach.default"]


@pytest.mark.spec("dispatch 0.2", "detaching goes to the handler")
@pytest.mark.spec("dispatch 7.7", "how often it is heard")
@pytest.mark.spec("dispatch 8.4", "test_detach_appears_twice_when_called_once")
def test_detach_is_heard_once() -> None:
    """7.7: "`x.detach()` logs 1 detach" (8.4 detach_appears_twice_when_called_once)."""
    for made in (boxed(1.0), counted(1.0)):
        assert asked(made.detach) == DETACH


@pytest.mark.spec("dispatch 7.7", "how often it is heard")
def test_data_is_heard_once() -> None:
    """7.7: "`x.data` logs 1 detach" (8.4 set_data)."""
    for made in (boxed(1.0), counted(1.0), boxed(1.0, requires_grad=True)):
        assert asked(partial(getattr, made, "data")) == DETACH
        assert made.data.requires_grad is False


@pytest.mark.spec("dispatch 7.7", "how often it is heard")
def test_saving_for_backward_is_not_heard() -> None:
    """7.7: "saving for backward of mul logged none" in 2.13."""
    made = boxed(2.0, requires_grad=True)
    found: list[Any] = []
    assert asked(lambda: found.append(made * made)) == ["core.mul.default"]
    assert asked(found[0].sum) == ["core.sum.default"]
    found[0].sum().backward()
    assert made.grad.inner.tolist() == [4.0]


def test_a_saved_result_is_detached() -> None:
    """7.7: what is saved of a result does not keep the result: it is detached."""
    made = boxed(0.0, requires_grad=True)
    found: list[Any] = []
    log = asked(lambda: found.append(made.exp()))
    assert log == ["core.exp.default", *DETACH]
    found[0].sum().backward()
    assert made.grad.inner.tolist() == [1.0]


@pytest.mark.spec("dispatch 7.7", "detach and its result")
def test_detach_has_no_kwargs_and_gives_a_tensor() -> None:
    """7.7: "handler with detach.default, no kwargs; result must be a Tensor"."""
    seen: list[Any] = []

    class Bad(Boxed):
        @classmethod
        def __torch_dispatch__(
            cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append((str(func), args, kwargs))
            return 3

    made = Bad(vector(1.0))
    with pytest.raises(HandlerError, check=code("WrongDetach")) as caught:
        made.data  # noqa: B018  # asked for, not used
    assert seen == [("core.detach.default", (made,), {})]
    assert "Bad.__torch_dispatch__" in caught.value.handler


@pytest.mark.spec("dispatch 7.7", "versions")
@pytest.mark.spec("dispatch 8.4", "test_version")
@pytest.mark.parametrize("made", [boxed, counted], ids=["wrapper", "elements"])
def test_a_detached_tensor_counts_versions_with_its_origin(made: Any) -> None:
    """7.7: "0 -> 1 after `x.detach().add_`", `.data` does not (8.4 version)."""
    tensor = made(1.0)
    assert tensor._version == 0
    tensor.detach().add_(1)
    assert tensor._version == 1
    tensor.data.add_(1)
    assert tensor._version == 1
    tensor.add_(1)
    assert tensor._version == 2
    inner = tensor.inner if isinstance(tensor, Boxed) else tensor.detach()
    assert inner.tolist() == [4.0]


def test_data_of_a_plain_tensor() -> None:
    plain = vector(1.0, 2.0, requires_grad=True)
    data = plain.data
    assert (data.requires_grad, data.is_leaf, data._base) == (False, True, None)
    assert data.data_ptr() == plain.data_ptr()
    data.mul_(3)
    assert (plain.tolist(), plain._version) == ([3.0, 6.0], 0)
    plain.detach().mul_(2)
    assert (data.tolist(), data._version, plain._version) == ([6.0, 12.0], 1, 1)
    # Overlap is noticed although the storages are two.
    ones = runtime.ones(2)
    assert core.add(plain.data, ones).tolist() == [7.0, 13.0]


@pytest.mark.spec("dispatch 8.4", "test_shallow_copy_and_detach")
def test_a_mode_hears_of_data() -> None:
    """7.7: 8.4 shallow_copy_and_detach: no tensor appears that the mode did not see."""
    seen: list[Any] = []

    class Seeing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            seen.append(str(func))
            return func(*args, **kwargs)

    plain = runtime.tensor([1.0], requires_grad=True)
    with Seeing():
        found = plain.data
        with no_dispatch():
            plain.data.add_(1)
    assert seen == DETACH
    assert (found.requires_grad, found._version, found.tolist()) == (False, 0, [2.0])


def test_data_where_dispatch_is_off() -> None:
    made = counted(1.0)
    with no_dispatch():
        assert asked(lambda: made.data) == []
        assert (type(made.data), made.data.tolist()) == (Tensor, [1.0])


@pytest.mark.spec("dispatch 8.4", "test_set_data")
def test_setting_data_asks_nobody() -> None:
    """7.7: 8.4 set_data: "set does not, `set_` does"."""
    # The result of `as_subclass` is a view, whose elements cannot be replaced.
    made = TENSOR._make_subclass(Counted, vector(1.0))
    other = runtime.tensor([3.0, 4.0])

    def replace() -> None:
        made.data = other

    assert asked(replace) == []
    assert (made.shape, made.detach().tolist()) == ((2,), [3.0, 4.0])
    assert made.data_ptr() == other.data_ptr()
    assert type(made).__name__ == "Counted"
    assert asked(lambda: made.set_(runtime.ones(3))) == ["core.set_.source_Tensor"]
    assert made.shape == (3,)


def test_replaced_elements_are_written_elements() -> None:
    """Where upstream computes a gradient of other values than were used, we raise."""
    x = vector(2.0, requires_grad=True)
    y = x * x
    x.data = runtime.tensor([5.0])
    assert x._version == 1
    with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
        y.backward()
    y = x * x
    y.backward()
    assert x.grad.tolist() == [10.0]
    # Neither counts for the other.
    source = vector(1.0)
    x.data = source
    source.add_(1)
    assert (x.tolist(), x._version, source._version) == ([2.0], 2, 1)


def test_set_shares_the_storage() -> None:
    x, source = vector(1.0), runtime.zeros(2, 2).t()
    assert x.set_(source) is x
    assert (x.shape, x.strides, x.storage()) == ((2, 2), (1, 2), source.storage())
    source.add_(1)
    assert (x.tolist(), x._version) == ([[1.0, 1.0], [1.0, 1.0]], source._version)
    number = core.mul(runtime.tensor(2.0), 1)
    number.set_(runtime.ones(1))
    assert number.tolist() == [1.0]
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        runtime.ones(1, requires_grad=True).set_(runtime.ones(1))


def test_a_number_becomes_elements() -> None:
    wrapped: Any = wrap_number(2.5)
    wrapped.data = runtime.tensor([1.5], dtype="float64")
    assert (wrapped.number, wrapped.tolist()) == (None, [1.5])


@pytest.mark.parametrize(
    ("source", "what"),
    [
        (runtime.tensor([1]), "dtype"),
        (runtime.tensor([1.0], device="meta"), "device"),
        ([1.0], "type"),
    ],
    ids=["dtype", "device", "type"],
)
def test_what_does_not_fit(source: Any, what: str) -> None:
    made = vector(1.0)
    with pytest.raises(DoesNotFit) as caught:
        made.data = source
    assert (caught.value.asked, caught.value.what) == ("tensor.data = ...", what)
    with pytest.raises(CallError if what == "type" else DoesNotFit):
        made.set_(source)
    assert made.tolist() == [1.0]


def test_other_keys_do_not_fit() -> None:
    plain = vector(1.0)
    sparse = plain.with_keyset(KeySet([DispatchKey["SparseCPU"]]))
    with pytest.raises(DoesNotFit) as caught:
        plain.data = sparse
    assert caught.value.what == "keys"


def test_a_gradient_keeps_its_shape() -> None:
    leaf = vector(1.0, 1.0, requires_grad=True)
    leaf.sum().backward()
    computed = vector(1.0, 1.0, requires_grad=True) * 2
    for made in (leaf, computed):
        with pytest.raises(DoesNotFit) as caught:
            made.data = runtime.ones(3)
        assert str(caught.value) == (
            "`tensor.data = ...` was given a tensor that does not fit.\n"
            "  shape: (2,), as its gradient, here, (3,) there"
        )
        made.data = runtime.zeros(2)
        assert made.tolist() == [0.0, 0.0]


def test_what_is_not_replaced() -> None:
    view = vector(1.0, 1.0)[0:1]
    with pytest.raises(NotReplaceable) as caught:
        view.data = runtime.ones(1)
    assert str(caught.value) == (
        "`tensor.data = ...` is refused: the tensor is a view, and would stop "
        "being one.\n  to do: use its base, or call `.detach()` on it first"
    )
    with pytest.raises(
        NotReplaceable, match="a `Boxed` is a wrapper, without elements"
    ):
        boxed(1.0).data = boxed(2.0)
    with pytest.raises(
        NotReplaceable, match="a `Boxed` is a wrapper, without elements"
    ):
        vector(1.0).data = boxed(2.0)
    with no_dispatch(), pytest.raises(NotReplaceable, match="without elements"):
        boxed(1.0).set_(runtime.ones(1))
