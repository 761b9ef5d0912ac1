# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""What is written to: versions rise by one (a decided deviation), views follow."""

from typing import Any

import pytest

from runtime import Tensor, inference_mode, no_grad, tensor
from runtime.errors.autograd import InferenceTensorUsed, SavedTensorModified
from runtime.library import custom_op
from tests.custom.functions import CALLS, add_one, repeatedly


def by_many(x: Tensor) -> None:
    x.add_(1)
    x.mul_(2)
    x[0].zero_()


def through_numpy(x: Tensor) -> None:
    x.numpy()[...] = 0


def by_none(x: Tensor) -> None:
    """Declares a write, and does not write."""


@pytest.mark.parametrize("function", [add_one, by_many, through_numpy, by_none])
def test_a_call_is_one_version(function: Any) -> None:
    with custom_op("mine::f_", function, mutates_args=("x",)) as made:
        x = tensor([1.0, 2.0])
        view = x[:]
        repeatedly(lambda: made(x))
        assert (x._version, view._version) == (CALLS, CALLS)


def test_only_what_is_written() -> None:
    def first(x: Tensor, y: Tensor) -> None:
        x.add_(y)

    with custom_op("mine::f_", first, mutates_args=("x",)) as made:
        x, y = tensor([1.0]), tensor([1.0])
        made(x, y)
        assert (x._version, y._version) == (1, 0)


def test_two_arguments_of_one_storage() -> None:
    def both(x: Tensor, y: Tensor) -> None:
        x.add_(1)
        y.add_(1)

    with custom_op("mine::f_", both, mutates_args=("x", "y")) as made:
        x = tensor([1.0, 2.0])
        made(x[:1], x[1:])
        assert (x.tolist(), x._version) == ([2.0, 3.0], 1)


def test_lists_and_what_may_be_absent() -> None:
    def all_of(xs: list[Tensor], y: Tensor | None = None) -> None:
        for x in xs:
            x.add_(1)
            x.add_(1)
        if y is not None:
            y.add_(1)

    with custom_op("mine::f_", all_of, mutates_args=("xs", "y")) as made:
        x, y = tensor([1.0]), tensor([1.0])
        repeatedly(lambda: made([x]))
        made([], y)
        assert (x._version, y._version) == (CALLS, 1)


def test_a_call_that_raises() -> None:
    def fails(x: Tensor) -> None:
        x.add_(1)
        raise ValueError("as planned")

    def fails_at_once(x: Tensor) -> None:
        raise ValueError("as planned")

    x = tensor([1.0])
    for function, version in ((fails_at_once, 0), (fails, 1)):
        with custom_op("mine::f_", function, mutates_args=("x",)) as made:
            with pytest.raises(ValueError, match="as planned"):
                made(x)
            assert x._version == version


def test_a_gradient_that_needs_the_old_values_is_refused() -> None:
    with custom_op("mine::f_", by_none, mutates_args=("x",)) as made:
        x, y = tensor([1.0], requires_grad=True), tensor([2.0])
        product = (x * y).sum()
        made(y)
        with pytest.raises(SavedTensorModified):
            product.backward()


@pytest.mark.parametrize("several", [False, True])
def test_inference_tensors(several: bool) -> None:
    def each(xs: list[Tensor]) -> None:
        for x in xs:
            x.add_(1)

    function, name = (each, "xs") if several else (add_one, "x")
    with custom_op("mine::f_", function, mutates_args=(name,)) as made:
        with inference_mode():
            x = tensor([1.0])
            given: Any = [x] if several else x
            made(given)
        assert x.tolist() == [2.0]
        # Outside, ADInplaceOrView is among the keys of every call.
        with pytest.raises(InferenceTensorUsed) as refused:
            made(given)
        assert (refused.value.use, refused.value.operator) == ("modified", "mine::f_")
        assert x.tolist() == [2.0]


VIEW = "(Tensor(a) x) -> Tensor(a)"


def test_a_view_follows_its_base() -> None:
    with custom_op("mine::v", lambda x: x[0], mutates_args=(), schema=VIEW) as made:
        made.register_autograd(lambda ctx, g: g.reshape(1, 2))
        for _ in range(CALLS):
            leaf = tensor([[1.0, 2.0]], requires_grad=True)
            base = leaf * 1
            view = made(base)
            base.mul_(3)
            view.mul_(5)
            base.sum().backward()
            assert leaf.grad is not None
            assert leaf.grad.tolist() == [[15.0, 15.0]]


def test_views_that_are_made_together_or_unrecorded() -> None:
    schema = "(Tensor(a) x) -> (Tensor(a), Tensor(a))"
    x = tensor([1.0, 2.0], requires_grad=True)
    with custom_op(
        "mine::v", lambda x: (x[:1], x[1:]), mutates_args=(), schema=schema
    ) as made:
        first, _ = made(x * 1)
        assert "together with others" in first._history.view.made
    with custom_op("mine::v", lambda x: x[:], mutates_args=(), schema=VIEW) as made:
        with no_grad():
            view = made(x)
        assert "no_grad" in view._history.view.made


def test_what_may_be_a_view_and_is_none() -> None:
    with custom_op("mine::v", lambda x: x * 1, mutates_args=(), schema=VIEW) as made:
        made.register_autograd(lambda ctx, g: g)
        result = made(tensor([1.0], requires_grad=True))
        assert result._history.view is None
        assert made(tensor([1.0]))._history is None


def test_other_operators_pay_nothing() -> None:
    def plain(x: Tensor) -> Tensor:
        return x * 2

    with custom_op("mine::f", plain, mutates_args=()) as made:
        assert not made.handle.has_kernel("ADInplaceOrView")
