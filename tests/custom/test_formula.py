# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""What a `backward` returns, and how gradients of lists come and go."""

from collections.abc import Callable
from typing import Any

import pytest

from runtime import Tensor, tensor
from runtime.errors.custom_op import GradientStructure
from runtime.library import custom_op
from tests.custom.functions import double, grad, leaf

Backward = Callable[..., Any]


@pytest.mark.parametrize(
    ("back", "fault"),
    [
        (lambda ctx, g: (g, None), "returned 2 values, not 3"),
        (lambda ctx, g: (g, None, None, g), "returned 4 values, not 3"),
        (lambda ctx, g: (g, g, None), "returned a gradient for `n`, no tensor"),
        (lambda ctx, g: (g, None, g), "returned a Tensor for the list `ys`"),
        (
            lambda ctx, g: (g, None, [g]),
            "returned 1 gradients for `ys`, a list of 2",
        ),
    ],
)
def test_a_backward_that_returns_something_else(back: Backward, fault: str) -> None:
    def mixed(x: Tensor, n: int, ys: list[Tensor]) -> Tensor:
        return x * n

    with custom_op("mine::f", mixed, mutates_args=()) as made:
        made.register_autograd(back)
        result = made(leaf(1.0), 2, [tensor([1.0]), leaf(1.0)])
        with pytest.raises(GradientStructure) as refused:
            result.sum().backward()
    assert refused.value.fields() == {
        "operator": "mine::f",
        "fault": fault,
        "arguments": ("x", "n", "ys"),
    }


def test_the_text_of_a_wrong_structure() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: (g, g))
        with pytest.raises(RuntimeError) as refused:
            made(leaf(1.0)).sum().backward()
    assert str(refused.value) == (
        "The backward of `mine::f` returned 2 values, not 1.\n"
        "  returns: x\n"
        "  that is: a gradient or None for each positional argument, for a list of\n"
        "           tensors a list of its length"
    )


def test_none_for_arguments_that_there_are_not() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: (g, None, None))
        x = leaf(1.0)
        made(x).sum().backward()
        assert x.grad is not None


def test_one_list() -> None:
    def total(xs: list[Tensor]) -> Tensor:
        return xs[0] + xs[1]

    with custom_op("mine::f", total, mutates_args=()) as made:
        a, b = leaf(1.0), leaf(1.0)
        for back in (lambda ctx, g: [g, g * 2], lambda ctx, g: ([g, g * 2],)):
            made.register_autograd(back)
            found = grad(made([a, b]).sum(), a, b)
            assert [each.tolist() for each in found] == [[1.0], [2.0]]
        made.register_autograd(lambda ctx, g: None)
        a.grad = None
        made([a, b]).sum().backward()
        assert a.grad is None
