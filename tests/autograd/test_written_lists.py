"""Operators of others that write to lists of tensors, under autograd."""

from collections.abc import Iterator
from typing import Any

import pytest

from runtime import Tensor, tensor
from runtime.autograd import GradientMissing, no_grad, set_fallback_mode
from runtime.custom import custom_op
from runtime.errors.autograd import NotImplementedFormula, WriteRefused
from tests.coded import code

CALLS: list[int] = []


@custom_op("written_lists::double_", mutates_args=("xs",))
def double_(xs: list[Tensor]) -> None:
    """Doubles each."""
    CALLS.append(len(xs))
    for x in xs:
        x.add_(x)


@custom_op("written_lists::pair_", mutates_args=("x", "ys"))
def pair_(x: Tensor, ys: list[Tensor | None]) -> Tensor:
    """Clears all, returns a new one."""
    for each in (x, *ys):
        if each is not None:
            each.zero_()
    made: Tensor = x.detach() + 1
    return made


def leaf(*values: float) -> Tensor:
    return tensor([*values], requires_grad=True)


def test_a_leaf_in_a_list_is_refused() -> None:
    x, y, plain = leaf(1.0, 2.0), leaf(3.0) * 1, tensor([4.0])
    CALLS.clear()
    for xs in ([plain, x], [y, x], [x]):
        with pytest.raises(WriteRefused, check=code("LeafModified")) as caught:
            double_(xs)
        assert caught.value.operator == "written_lists::double_"
    assert CALLS == []
    assert (plain.tolist(), y.tolist(), x.tolist()) == ([4], [3], [1, 2])
    assert (plain._version, y._version, x._version) == (0, 0, 0)
    with pytest.raises(WriteRefused, check=code("OverlappingWrite")):
        double_([x * 1, plain.expand(3)])
    with no_grad():
        double_([plain, x])
    assert x.tolist() == [2, 4]


def test_what_was_written_to_has_the_history_of_the_call() -> None:
    y, plain, whole = leaf(1.0) * 1, tensor([2.0]), tensor([3])
    double_([plain, y, whole, y])
    assert (plain.tolist(), y.tolist(), whole.tolist()) == ([4], [4], [6])
    for each in (plain, y):
        assert each.requires_grad
        with pytest.raises(NotImplementedFormula) as caught:
            each.sum().backward()
        assert caught.value.operator == "written_lists::double_"
    assert not whole.requires_grad


def test_beside_a_tensor_and_with_gaps() -> None:
    x, y = leaf(1.0) * 1, leaf(2.0) * 1
    made = pair_(x, [None, y])
    assert (x.tolist(), y.tolist(), made.tolist()) == ([0], [0], [1])
    for each in (x, y, made):
        with pytest.raises(NotImplementedFormula, check=code("NotImplementedFormula")):
            each.sum().backward()
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        pair_(x, [None, leaf(1.0)])


@pytest.fixture
def warning() -> Iterator[None]:
    before = set_fallback_mode("warn")
    yield
    set_fallback_mode(before)


@pytest.mark.usefixtures("warning")
@pytest.mark.parametrize("whole", [False, True])
def test_several_views_of_one_base(whole: bool) -> None:
    """The gradient ends in every part that was written to, and passes elsewhere."""
    x = leaf(1.0, 2.0, 3.0)
    base = x * 1
    parts: list[Any] = [base[:1], base[2:]]
    double_([*parts, base] if whole else parts)
    with pytest.warns(GradientMissing):
        (base * tensor([5.0, 6.0, 7.0])).sum().backward()
    if whole:
        assert x.grad is None or x.grad.tolist() == [0, 0, 0]
    else:
        assert x.grad is not None
        assert x.grad.tolist() == [0, 6, 0]
