"""Writing in place: versions, refusals, and how histories change."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.autograd import grad, gradcheck, gradgradcheck, no_grad
from everyorder.runtime.errors.autograd import BackwardRefused, WriteRefused
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.operators.declare.handles import core
from tests.autograd.made import grad_of, leaf
from tests.coded import code, coded

ViewModified = coded(WriteRefused, "ViewModified")


def test_every_write_raises_the_version_once() -> None:
    x = tensor([1.0, 2.0])
    view = x[1:]
    assert (x._version, view._version) == (0, 0)
    x.add_(1)
    view.mul_(2)
    core.exp_out(x.clone(), out=x)
    x.zero_()
    x[0] = 5.0
    assert (x._version, view._version) == (5, 5)
    assert x.detach()._version == 5


def test_a_write_that_fails_raises_no_version() -> None:
    x = tensor([1.0, 2.0])
    with pytest.raises(ValueError, match="core::add_"):
        x.add_(tensor([1.0, 2.0, 3.0]))
    assert x._version == 0


def test_leaves_and_their_views_are_refused() -> None:
    x = leaf(1, 2)
    for target, is_view in ((x, False), (x[0:1], True), (x.view(2, 1)[1], True)):
        with pytest.raises(WriteRefused, check=code("LeafModified")) as refused:
            target.add_(1)
        assert refused.value.is_view is is_view
        assert refused.value.operator == "core::add_"
    assert x.tolist() == [1, 2]
    assert x._version == 0
    with no_grad():
        x.add_(1)
        x[0:1].add_(1)
    assert x.tolist() == [3, 3]


def test_a_leaf_becomes_part_of_the_graph() -> None:
    x, total = leaf(1, 2), tensor([0.0, 0.0], dtype="float64")
    total.add_(x)
    total.mul_(x)
    assert not total.is_leaf
    total.sum().backward()
    assert grad_of(x).tolist() == [2, 4]


@pytest.mark.parametrize(
    "write",
    [
        lambda y, w: y.mul_(w),
        lambda y, w: y.add_(w),
        lambda y, w: y.exp_(),
        lambda y, w: y.tanh_(),
        lambda y, w: y.div_(w),
        lambda y, w: y.pow_(2),
        lambda y, w: core.copy_(y, w),
        lambda y, w: y.fill_(3),
        lambda y, w: core.clamp_(y, 0.5, 1.5),
        lambda y, w: y.mul_(y),
    ],
)
def test_writes_to_tensors_and_to_views(write: object) -> None:
    def whole(x: Tensor, w: Tensor) -> Any:
        y = x * 1.5
        write(y, w)  # type: ignore[operator]
        return y * y

    def part(x: Tensor, w: Tensor) -> Any:
        y = x * 1.5
        write(y[1:3], w[1:3])  # type: ignore[operator]
        return y * y

    def of_view(x: Tensor, w: Tensor) -> Any:
        y = (x * 1.5).view(2, 2)
        before = y * 2
        write(y.t()[1], w[:2])  # type: ignore[operator]
        return (y * y).sum() + before.sum()

    given = leaf(0.4, 0.9, 0.7, 1.2), leaf(1.1, 0.8, 0.6, 0.5)
    for function in (whole, part, of_view):
        assert gradcheck(function, given)
        assert gradgradcheck(function, given)


def test_views_follow_their_base_and_each_other() -> None:
    x = leaf(1, 2, 3)
    y = x * 1
    first, second = y[:2], y[1:]
    first.mul_(10)
    assert (y * 1).tolist() == [10, 20, 3]
    assert second.grad_fn.name() == "AsStridedBackward"
    assert y.grad_fn.name() == "CopySlices"
    second.sum().backward()
    assert grad_of(x).tolist() == [0, 10, 1]


def test_a_view_starts_to_require_grad_with_its_base() -> None:
    base = core.zeros([3, 2])
    views = [base[row] for row in range(3) for _ in range(20)]
    weight = core.ones([3, 2]).requires_grad_()
    assert not views[0].requires_grad
    base.add_(weight)
    assert all(view.requires_grad for view in views)
    (views[25] * 2).sum().backward()
    assert grad_of(weight).tolist() == [[0, 0], [2, 2], [0, 0]]


def test_a_write_by_a_view_reaches_the_base() -> None:
    base, weight = core.zeros([3]), leaf(5, dtype="float32")
    other = base[0:1]
    base[1:2].add_(weight)
    assert (base.requires_grad, other.requires_grad) == (True, True)
    (base * tensor([1.0, 2.0, 3.0])).sum().backward()
    assert grad_of(weight).tolist() == [2]


def test_views_know_their_base() -> None:
    x = tensor([[1.0, 2.0]])
    view = x[0][1:]
    assert view._base is x
    assert x._base is None
    assert x.detach()._base is None


def test_what_cannot_follow_is_refused() -> None:
    x = leaf(1, 2, 3, 4)
    pieces = core.split(x * 1, 2)
    with pytest.raises(ViewModified) as several:
        pieces[0].add_(1)
    assert str(several.value) == (
        "A view of shape (2,) is modified in place, by `core::add_`; it was made "
        "together\n"
        "with others by one call, so gradients cannot follow.\n"
        "  to do: make the view where it is modified, or modify a clone()"
    )
    y = x * 1
    with no_grad():
        quiet = y[:2]
    with pytest.raises(ViewModified) as unrecorded:
        quiet.add_(1)
    assert unrecorded.value.made == "it was made in no_grad()"
    with no_grad():
        quiet.add_(1)
    assert y.tolist() == [2, 3, 3, 4]


def test_several_views_cannot_follow_their_base() -> None:
    base = leaf(1, 2) * 1
    pieces = core.split(base, 1)
    base.mul_(2)
    with pytest.raises(ViewModified) as refused:
        pieces[0] * 2
    assert refused.value.indirect


def test_elements_that_share_memory_are_not_written_to() -> None:
    x = leaf(1)
    wide = core.expand(x * 1, [3])
    with pytest.raises(WriteRefused, check=code("OverlappingWrite")) as refused:
        wide.add_(x)
    assert refused.value.fields() == {
        "operator": "core::add_",
        "shape": (3,),
        "strides": (0,),
    }


def test_out_records_nothing() -> None:
    x, out = leaf(1), tensor([0.0], dtype="float64")
    with pytest.raises(WriteRefused, check=code("OutRequiresGrad")) as refused:
        core.add_out(out.clone(), x, out=out)
    assert refused.value.fields() == {"operator": "core::add.out", "argument": "other"}
    with pytest.raises(WriteRefused, check=code("OutRequiresGrad")) as target:
        core.add_out(out, out, out=x)
    assert target.value.argument == "out"
    with no_grad():
        core.add_out(x, x, out=out)
    assert out.tolist() == [2]


def test_a_result_overwritten_is_noticed() -> None:
    x = leaf(1, 2)
    y = x.sigmoid()
    z = y * 1
    y.zero_()
    with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
        z.sum().backward()


def test_constant_writes_stop_the_gradient() -> None:
    x = leaf(1, 2)
    y = x * 2
    core.ge_(y, 3)
    assert y.requires_grad
    y.sum().backward()
    assert grad_of(x).tolist() == [0, 0]


def test_detaching_in_place() -> None:
    x = leaf(1, 2)
    y = x * 2
    assert y.detach_() is y
    assert (y.requires_grad, y.is_leaf) == (False, True)
    with pytest.raises(WriteRefused, check=code("NotDetachable")):
        (x * 2)[0:1].detach_()


def test_requires_grad_is_of_leaves_and_of_floats() -> None:
    x = leaf(1)
    with pytest.raises(NotShareable, check=code("NotALeaf")):
        (x * 2).requires_grad_(False)
    with pytest.raises(UnfitValue, check=code("NoGradient")):
        tensor([1]).requires_grad_()
    assert x.requires_grad_(False) is x
    x.requires_grad = True
    assert x.requires_grad


def test_second_derivative_through_a_saved_view() -> None:
    """The result of `exp_` on a view is saved as a part of the new base."""
    x = leaf(0.5, 0.25)
    y = x * 2
    y[0:1].exp_()
    (first,) = grad(y.sum(), x, create_graph=True)
    assert first is not None
    (second,) = grad(first.sum(), x)
    assert second is not None
    np.testing.assert_allclose(second.numpy(), [4 * np.exp(1), 0])
