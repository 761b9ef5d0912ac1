"""In-place views: the tensor itself is shown another way, and autograd follows."""

from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, inference_mode, no_grad, ops, tensor
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.tensor import (
    IndexOutOfRange,
    OperandError,
    ShapesDoNotFit,
)
from everyorder.runtime.torch_dispatch.wrappers import return_and_correct_aliasing
from tests.coded import code, coded
from tests.operators.refusals import assert_refused
from tests.torch_dispatch.kinds import Boxed

InferenceTensorUsed = coded(WriteRefused, "InferenceTensorUsed")

core: Any = ops.core
ROWS = [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]

Call = Callable[[Any], Any]
# The call, the shape of what it is called on, and the shape and strides afterwards.
CALLS: dict[str, tuple[Call, tuple[int, ...], tuple[int, ...], tuple[int, ...]]] = {
    "t_": (core.t_, (2, 3), (3, 2), (1, 3)),
    "t_ of a vector": (core.t_, (3,), (3,), (1,)),
    "transpose_": (
        lambda x: core.transpose_(x, 0, -1),
        (1, 2, 3),
        (3, 2, 1),
        (1, 3, 6),
    ),
    "squeeze_": (core.squeeze_, (1, 3, 1), (3,), (1,)),
    "squeeze_ one": (lambda x: core.squeeze_(x, -1), (1, 3, 1), (1, 3), (3, 1)),
    "squeeze_ some": (lambda x: core.squeeze_(x, [0, 2]), (1, 3, 1), (3,), (1,)),
    "squeeze_ none": (lambda x: core.squeeze_(x, 1), (1, 3, 1), (1, 3, 1), (3, 1, 1)),
    "unsqueeze_": (lambda x: core.unsqueeze_(x, 1), (2, 3), (2, 1, 3), (3, 3, 1)),
    "unsqueeze_ last": (lambda x: core.unsqueeze_(x, -1), (3,), (3, 1), (1, 1)),
}
EACH = pytest.mark.parametrize("name", CALLS)


def leaf(values: Any = ROWS) -> Tensor:
    return tensor(values, requires_grad=True)


def facts(x: Tensor) -> Any:
    return x.shape, x.strides, x.offset, x._version, x.storage(), x.grad_fn


@EACH
@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_the_tensor_is_shown_another_way(name: str, device: str) -> None:
    call, given, shape, strides = CALLS[name]
    x = runtime.zeros(given, device=device)
    storage = x.storage()
    other = x[:]
    assert call(x) is x
    assert facts(x) == (shape, strides, 0, 1, storage, None)
    assert facts(other)[:4] == (given, core.zeros(given).strides, 0, 1)


@EACH
def test_elements_move_with_it(name: str) -> None:
    call, given, _, _ = CALLS[name]
    x = runtime.arange(6.0)[: 6 if 2 in given else 3].clone().view(given)
    expected = x.clone().numpy()
    other = x.detach()
    call(x)
    if name in ("t_", "transpose_"):
        expected = expected.T
    assert x.tolist() == expected.reshape(x.shape).tolist()
    x.fill_(7)
    assert other.tolist() == core.full(given, 7.0).tolist()


def test_a_tensor_without_a_storage_of_its_own_yet() -> None:
    x = tensor(ROWS)
    assert x.is_contiguous()
    assert core.t_(x).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert not x.is_contiguous()
    assert (x * 2).tolist() == [[0, 6], [2, 8], [4, 10]]
    assert x.numpy().strides == (4, 12)


BAD: dict[str, tuple[Call, type[OperandError]]] = {
    "t_": (lambda x: core.t_(x.unsqueeze_(0)), ShapesDoNotFit),
    "transpose_": (lambda x: core.transpose_(x, 0, 3), IndexOutOfRange),
    "squeeze_": (lambda x: core.squeeze_(x, [0, 0]), IndexOutOfRange),
    "unsqueeze_": (lambda x: core.unsqueeze_(x, -4), IndexOutOfRange),
}


@pytest.mark.parametrize("name", BAD)
def test_refused_by_its_own_name(name: str) -> None:
    call, kind = BAD[name]
    for x in (tensor(ROWS), leaf() * 1):
        with pytest.raises(kind) as caught:
            call(x)
        assert caught.value.operator == f"core::{name}"
        if name != "t_":
            assert facts(x)[:4] == ((2, 3), (3, 1), 0, 0)
            assert x.tolist() == ROWS


@EACH
def test_refused_on_leaves_and_on_their_views(name: str) -> None:
    call, given, _, _ = CALLS[name]
    x = runtime.ones(given, requires_grad=True)
    for target in (x, x[:], x.view(given)):
        before = facts(target)
        with pytest.raises(WriteRefused, check=code("LeafModified")) as caught:
            call(target)
        assert caught.value.is_view == (target is not x)
        assert facts(target) == before


@EACH
def test_taken_on_leaves_where_nothing_is_recorded(name: str) -> None:
    call, given, shape, _ = CALLS[name]
    x = runtime.ones(given, requires_grad=True)
    with no_grad():
        call(x)
    assert (x.is_leaf, x.shape) == (True, shape)
    x.sum().backward()
    assert x.grad is not None
    assert x.grad.shape == shape


def test_refused_on_views_that_cannot_follow() -> None:
    y = leaf() * 1
    with no_grad():
        silent = y[:]
    for view in (core.split(y, 1)[0], silent):
        before = facts(view)
        with pytest.raises(WriteRefused, check=code("ViewModified")):
            core.t_(view)
        assert facts(view) == before


def test_refused_on_inference_tensors() -> None:
    with inference_mode():
        x = tensor(ROWS)
        core.t_(x)
    assert_refused(
        lambda: core.t_(x),
        InferenceTensorUsed,
        "A tensor of shape (3, 2) was made in inference_mode() and cannot be modified "
        "by `core::t_` outside of that mode. to do: use a clone() of it, made outside "
        "of inference_mode()",
    )
    assert x.shape == (3, 2)


def test_it_is_an_output_of_its_node() -> None:
    x = leaf()
    y = x * 2
    assert core.t_(y) is y
    assert y.grad_fn.name() == "TBackward"
    (y * tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[0, 4, 8], [2, 6, 10]]


@EACH
def test_gradients_of_gradients(name: str) -> None:
    call, given, _, _ = CALLS[name]
    values = (runtime.arange(6.0)[: 6 if 2 in given else 3] + 1).view(given)
    x = values.to(dtype=runtime.float64).requires_grad_()
    assert runtime.autograd.gradgradcheck(lambda a: call(a * a), [x])


def test_a_tensor_that_keeps_its_gradient() -> None:
    """Upstream leaves it in the shape from before."""
    y = leaf() * 1
    y.retain_grad()
    core.t_(y)
    (y * tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert y.grad is not None
    assert y.grad.tolist() == [[0, 1], [2, 3], [4, 5]]


def test_who_saved_it_hears_of_it() -> None:
    y = leaf() * 1
    z = y.sin()
    core.t_(y)
    with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
        z.sum().backward()


def test_views_of_it_follow() -> None:
    x = leaf()
    base = x * 1
    row = base[0]
    core.t_(base)
    assert (row.shape, row.tolist()) == ((3,), [0, 1, 2])
    (row * tensor([1.0, 2.0, 3.0])).sum().backward(retain_graph=True)
    assert x.grad is not None
    assert x.grad.tolist() == [[1, 2, 3], [0, 0, 0]]
    # Unstructured to, it takes the base along, as that is now.
    row.mul_(5)
    (base * tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert x.grad.tolist() == [[1, 12, 23], [1, 3, 5]]


def test_the_base_of_a_view_stays_as_it_was() -> None:
    x = leaf()
    base = x * 1
    node = base.grad_fn
    view = base[:]
    core.t_(view)
    assert (base.shape, base.grad_fn, view.grad_fn.name()) == (
        (2, 3),
        node,
        "TBackward",
    )
    core.mul_(view, tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]))
    assert base.grad_fn.name() == "CopySlices"
    base.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [[1, 3, 5], [2, 4, 6]]


def test_a_view_follows_a_write_to_its_base() -> None:
    w = leaf([2.0])
    base = tensor(ROWS)
    view = base[:]
    core.t_(view)
    base.mul_(w)
    assert view.requires_grad
    (view * tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [50]


def test_elements_that_share_memory_may_be_shown_another_way() -> None:
    x = leaf([0.0, 1.0, 2.0])
    y = (x * 1).expand(2, 3)
    core.t_(y)
    assert y.strides == (1, 0)
    (y * tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [1, 5, 9]


class Correct(Boxed):
    """Wraps, and corrects what it returns."""

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        out = super().__torch_dispatch__(func, types, args, kwargs)
        return return_and_correct_aliasing(func, args, kwargs, out)


@EACH
def test_wrappers_change_with_what_they_wrap(name: str) -> None:
    """7.12 step 2, of operators of `core`."""
    call, given, shape, strides = CALLS[name]
    made: Any = Correct(runtime.ones(given))
    assert call(made) is made
    assert (made.shape, made.stride()) == (shape, strides)
    assert (made.inner.shape, made.inner.strides) == (shape, strides)
    assert made._version == 1


def test_a_wrapper_with_a_history() -> None:
    made: Any = Correct(tensor(ROWS)).requires_grad_()
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        core.t_(made)
    assert (made.shape, made.inner.shape) == ((2, 3), (2, 3))
    y = made * 2
    core.t_(y)
    assert (y.shape, y.inner.shape, y.grad_fn.name()) == ((3, 2), (3, 2), "TBackward")
    y.sum().backward()
    assert made.grad.shape == (2, 3)
