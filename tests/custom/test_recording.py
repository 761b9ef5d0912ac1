# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Recorded calls of any arguments and results."""

from typing import Any

import pytest

from runtime import Tensor, tensor
from runtime.errors.autograd import FunctionMisuse
from runtime.library import custom_op
from tests.custom.functions import double, leaf, repeatedly


def test_keyword_only_arguments_come_as_a_dictionary() -> None:
    def power(x: Tensor, *, val: float, twice: bool = False) -> Tensor:
        return x * val

    seen: list[Any] = []

    def save(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        seen.append((len(inputs), keyword_only_inputs))
        ctx.val = keyword_only_inputs["val"]

    with custom_op("mine::f", power, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * ctx.val, setup_context=save)
        x = leaf(1.0)
        made(x, val=3).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [3.0]
    assert seen == [(1, {"val": 3.0, "twice": False})]


def test_lists_of_tensors() -> None:
    def doubled(xs: list[Tensor], y: Tensor) -> tuple[list[Tensor], Tensor]:
        return [x * 2 for x in xs], y * 3

    needs: list[Any] = []

    def back(ctx: Any, gradients: Any, last: Tensor) -> Any:
        needs.append(ctx.needs_input_grad)
        assert type(gradients) is list
        return [g * 2 for g in gradients], last * 3

    with custom_op("mine::f", doubled, mutates_args=()) as made:
        made.register_autograd(back)
        a, b, y = leaf(1.0), tensor([1.0]), leaf(1.0)
        (first, second), third = made([a, b], y)
        assert [t.requires_grad for t in (first, second, third)] == [True] * 3
        (first.sum() + third.sum()).backward()
        assert needs == [((True, False), True)]
        assert a.grad is not None and y.grad is not None  # noqa: PT018  # for mypy
        assert (a.grad.tolist(), b.grad, y.grad.tolist()) == ([2.0], None, [3.0])


@pytest.mark.parametrize("lists", [False, True])
def test_none_for_a_tensor(lists: bool) -> None:
    function: Any = (lambda x, y: [x * 2]) if lists else (lambda x, y: x * 2)
    schema = f"(Tensor x, Tensor y) -> Tensor{'[]' if lists else ''}"
    with custom_op("mine::f", function, mutates_args=(), schema=schema) as made:
        made.register_autograd(
            lambda ctx, g: ((g[0] if lists else g) * 2, None),
        )
        for given in (tensor([1.0]), leaf(1.0)):
            for found in repeatedly(lambda x=given: made(x, None)):  # type: ignore[misc]  # a bound name
                result = found[0] if lists else found
                assert result.requires_grad is given.requires_grad


def test_optional_tensors_in_a_list() -> None:
    def first(xs: list[Tensor | None]) -> Tensor:
        assert xs[1] is not None
        return xs[1] * 2

    with custom_op("mine::f", first, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: [None, g * 2])
        x = leaf(1.0)
        made([None, x]).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0]


def test_results_that_have_no_gradient() -> None:
    def parts(x: Tensor) -> tuple[Tensor, Tensor, int]:
        return x * 2, x > 0, 7

    with custom_op("mine::f", parts, mutates_args=()) as made:
        seen: list[Any] = []

        def back(ctx: Any, *gradients: Any) -> Any:
            seen.append(gradients)
            return gradients[0] * 2

        made.register_autograd(back)
        x = leaf(1.0)
        for first, flags, count in repeatedly(lambda: made(x)):
            assert (first.requires_grad, flags.requires_grad, count) == (True, False, 7)
        first.sum().backward()
        assert [g if g is None else g.tolist() for g in seen[0]] == [
            [1.0],
            [False],
            None,
        ]


@pytest.mark.parametrize("several", [False, True])
def test_what_is_marked_without_gradient(several: bool) -> None:
    def plain(x: Tensor) -> Tensor:
        return x * 2

    def pair(x: Tensor) -> tuple[Tensor, Tensor]:
        return x * 3, x * 2

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_non_differentiable(output[1] if several else output)

    function: Any = pair if several else plain
    with custom_op("mine::f", function, mutates_args=()) as made:
        made.register_autograd(lambda ctx, *g: g[0], setup_context=save)
        found = made(leaf(1.0))
        assert (found[1] if several else found).requires_grad is False
        if several:
            assert found[0].requires_grad


def test_a_missing_result() -> None:
    made = custom_op(
        "mine::f", lambda x: None, mutates_args=(), schema="(Tensor x) -> Tensor?"
    )
    with made:
        made.register_autograd(lambda ctx, g: g)
        assert repeatedly(lambda: made(leaf(1.0)))[-1] is None


def test_what_is_marked_dirty() -> None:
    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])

    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g, setup_context=save)
        with pytest.raises(FunctionMisuse, match="writes to none by its schema"):
            made(leaf(1.0))
