# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Recorded calls, and how gradients come and go: of one tensor, and of lists."""

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import pytest

from everyorder.runtime import Tensor, inference_mode, no_grad, tensor
from everyorder.runtime.autograd import gradcheck
from everyorder.runtime.custom.gradient import CallNode, _recording
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    BackwardRefused,
    WriteRefused,
)
from everyorder.runtime.errors.call import KernelError
from everyorder.runtime.library import custom_op
from tests.coded import code
from tests.custom.functions import double, grad, leaf, repeatedly


def test_only_the_gradients_that_are_wanted() -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def back(ctx: Any, g: Tensor) -> Any:
        assert ctx.needs_input_grad == (False, True)
        return None, g * ctx.saved_tensors[0]

    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save_both)
        y = leaf(1.0)
        made(tensor([4.0]), y).sum().backward()
        assert y.grad is not None
        assert y.grad.tolist() == [4.0]


def test_an_integer_result() -> None:
    def count(x: Tensor) -> Tensor:
        return (x > 0).sum()

    with custom_op("mine::f", count, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g)
        assert not made(leaf(1.0)).requires_grad


def test_an_output_that_is_saved() -> None:
    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(output)

    def exponential(x: Tensor) -> Tensor:
        return x.exp()

    with custom_op("mine::f", exponential, mutates_args=()) as made:
        made.register_autograd(
            lambda ctx, g: g * ctx.saved_tensors[0], setup_context=save
        )
        x = tensor([0.5], dtype="float64", requires_grad=True)
        assert gradcheck(made, (x,))
        y = made(x)
        gone = ref(y.grad_fn)
        del y
        # No circle: the node goes with its tensor.
        assert gone() is None
        z = made(x)
        with no_grad():
            z.mul_(2)
        with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
            z.sum().backward()


def test_a_tensor_that_the_kernel_keeps() -> None:
    kept = tensor([1.0])

    def cached(x: Tensor) -> Tensor:
        return kept

    with custom_op("mine::f", cached, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 2)
        x = leaf(1.0)
        first, second = made(x), made(x)
        assert first.grad_fn is not second.grad_fn
        (first + second).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [4.0]


def test_a_kernel_that_raises_leaves_the_thread_as_it_was() -> None:
    def fails(x: Tensor) -> Tensor:
        raise ValueError("as planned")

    with custom_op("mine::f", fails, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g)
        x = leaf(1.0)
        for _ in range(12):
            with pytest.raises(ValueError, match="as planned"):
                made(x)
        assert (x * 2).requires_grad


def product(x: Tensor, y: Tensor) -> Tensor:
    return x * y


def save_both(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(*inputs)


def by_the_other(ctx: Any, g: Tensor) -> Any:
    x, y = ctx.saved_tensors
    return g * y, g * x


def test_every_edge() -> None:
    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(by_the_other, setup_context=save_both)
        x, plain = leaf(2.0, 3.0), tensor([5.0, 7.0])
        inner, view = x * 1, leaf(1.0, 2.0, 9.0)[:2]
        for one, other in ((x, plain), (plain, x), (x, inner), (inner, view), (x, x)):
            wanted = [each for each in (one, other) if each.requires_grad]
            for y in repeatedly(lambda a=one, b=other: made(a, b)):  # type: ignore[misc]  # bound names
                assert type(y.grad_fn) is CallNode
            mine, core = (
                grad(z.sum(), *wanted, create_graph=True) for z in (y, one * other)
            )
            assert [g.tolist() for g in mine] == [g.tolist() for g in core]


def test_an_edge_into_a_view_that_was_written_to() -> None:
    base = leaf(1.0, 2.0) * 1
    view = base[:1]
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 2)
        base.mul_(3)
        (found,) = grad(made(view).sum(), base)
        assert found.tolist() == [2.0, 0.0]
        first, _ = base.split(1)
        base.mul_(3)
        with pytest.raises(WriteRefused, check=code("ViewModified")):
            made(first)


def test_which_arguments_require_grad() -> None:
    needs = []

    def back(ctx: Any, g: Tensor) -> Any:
        needs.append(ctx.needs_input_grad)
        return g, g

    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(back)
        x, plain = leaf(1.0), tensor([1.0])
        for one, other in ((x, plain), (plain, x), (x, x), (x, plain)):
            made(one, other).sum().backward()
    assert needs == [(True, False), (False, True), (True, True), (True, False)]


def test_nothing_and_a_result_are_saved_beside_an_argument() -> None:
    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(None, output, inputs[0])

    def back(ctx: Any, g: Tensor) -> Tensor:
        nothing, result, x = ctx.saved_tensors
        assert nothing is None
        return g * result / x

    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save)
        x = leaf(4.0)
        y = made(x)
        (found,) = grad(y.sum(), x)
        assert found.tolist() == [2.0]
        gone = ref(y)
        del y
        assert gone() is None


def test_an_argument_that_is_written_to_after_it_was_saved() -> None:
    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(by_the_other, setup_context=save_both)
        x, y = leaf(1.0), tensor([2.0])
        result = made(x, y)
        y.add_(1)
        with pytest.raises(BackwardRefused, check=code("SavedTensorModified")):
            result.sum().backward()


def test_what_cannot_be_saved() -> None:
    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.save_for_backward(3.0)

    with inference_mode():
        untracked = tensor([2.0])
    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(by_the_other, setup_context=save_both)
        with pytest.raises(WriteRefused, check=code("InferenceTensorUsed")):
            made(leaf(1.0), untracked)
        made.register_autograd(by_the_other, setup_context=save)
        with pytest.raises(
            AutogradMisuse, check=code("FunctionMisuse"), match="saves a float"
        ):
            made(leaf(1.0), leaf(1.0))


def test_nothing_of_a_call_stays_behind() -> None:
    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(by_the_other, setup_context=save_both)
        x, other = leaf(1.0), tensor([2.0])
        y = made(x, other)
        node, gone = ref(y.grad_fn), ref(other)
        gc.disable()
        try:
            del y, other
            assert (node(), gone()) == (None, None)
        finally:
            gc.enable()


class Foreign:
    """A tensor of somebody's: it has keys, and knows nothing of gradients."""

    def __init__(self, keys: int) -> None:
        self.key_bits = keys


def test_a_tensor_that_says_nothing_of_gradients() -> None:
    foreign: Any = Foreign(tensor([1.0]).key_bits)
    schema = "(Tensor x, Tensor y) -> Tensor"
    made = custom_op("mine::f", lambda x, y: x * 2, mutates_args=(), schema=schema)
    with made:
        made.register_autograd(lambda ctx, g: (g * 2, None))
        for result in repeatedly(lambda: made(tensor([3.0]), foreign)):
            assert (result.tolist(), result.requires_grad) == ([6.0], False)
        x = leaf(3.0)
        with no_grad():
            assert not made(x, foreign).requires_grad
        (found,) = grad(made(x, foreign).sum(), x)
        assert found.tolist() == [2.0]


def test_one_text_for_operators_that_look_alike() -> None:
    _recording.cache_clear()
    for name in ("f", "g"):
        with custom_op(f"mine::{name}", double, mutates_args=()) as made:
            made.register_autograd(lambda ctx, g: g)
            assert made(leaf(1.0)).requires_grad
    found = _recording.cache_info()
    assert (found.misses, found.hits) == (1, 1)


def test_a_tensor_that_somebody_else_makes_requires_grad_in_inference() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 2)
        with inference_mode():
            found = made(leaf(1.0))
        assert (found.requires_grad, found.is_inference()) == (False, True)


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
        with pytest.raises(
            AutogradMisuse,
            check=code("FunctionMisuse"),
            match="does not write to any by its schema",
        ):
            made(leaf(1.0))


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
        with pytest.raises(KernelError, check=code("GradientStructure")) as refused:
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
