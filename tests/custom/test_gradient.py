# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""`register_autograd`: spec 3.13.3 and 3.13.4."""

import gc
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

from runtime import Tensor, from_numpy, no_grad, ops, tensor
from runtime.autograd import gradcheck
from runtime.errors.autograd import (
    FunctionMisuse,
    GradientMismatch,
    NotImplementedFormula,
    OutRequiresGrad,
    SavedTensorModified,
)
from runtime.errors.custom_op import GradientStructure, NotFunctional
from runtime.errors.registration import WrongArgument
from runtime.library import custom_op
from tests.custom.functions import add_one, double, repeatedly


def leaf(*values: float) -> Tensor:
    return tensor([*values], requires_grad=True)


def sine(x: Tensor) -> Tensor:
    return from_numpy(np.sin(x.numpy()))


def save_input(ctx: Any, inputs: Any, output: Any) -> None:
    ctx.save_for_backward(inputs[0])


def cosine(ctx: Any, gradient: Tensor) -> Tensor:
    (x,) = ctx.saved_tensors
    return gradient * x.cos()


def test_a_formula() -> None:
    with custom_op("mine::sine", sine, mutates_args=()) as made:
        made.register_autograd(cosine, setup_context=save_input)
        x = tensor([0.5, 1.0], dtype="float64", requires_grad=True)
        for result in repeatedly(lambda: made(x)):
            assert result.grad_fn.name() == "SineBackward"
        assert gradcheck(made, (x,))
        # The formula is made of operators, so that it has a gradient itself.
        (first,) = grad(made(x).sum(), x, create_graph=True)
        (second,) = grad(first.sum(), x)
        assert np.allclose(second.numpy(), -np.sin(x.detach().numpy()))


def grad(output: Tensor, *inputs: Tensor, create_graph: bool = False) -> Any:
    from runtime.autograd import grad as gradient

    return gradient(output, inputs, create_graph=create_graph)


def test_nothing_is_recorded_where_nothing_requires_grad() -> None:
    def never(*args: Any) -> None:
        raise AssertionError("nothing was to be saved")

    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(cosine, setup_context=never)
        assert not any(r.requires_grad for r in repeatedly(lambda: made(tensor([1.0]))))
        with no_grad():
            assert not made(leaf(1.0)).requires_grad


def test_without_a_formula_backward_names_the_operator() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        for result in repeatedly(lambda: made(leaf(1.0))):
            assert result.requires_grad
            with pytest.raises(NotImplementedFormula) as refused:
                result.sum().backward()
        assert str(refused.value).startswith(
            "`mine::f` has no formula for its gradient.\n  wanted: `x`\n"
        )


def test_a_formula_in_place_of_another_one() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 2)
        made.register_autograd(lambda ctx, g: g * 5)
        x = leaf(1.0)
        made(x).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [5.0]
        assert made.handle.dump_state().count("\nAutograd[alias]") == 1


def test_everything_positional_with_defaults_filled_in() -> None:
    def weighted(x: Tensor, n: int, w: Tensor | None = None, f: float = 2.0) -> Tensor:
        return x * f if w is None else x * w

    seen: list[Any] = []

    def save(ctx: Any, inputs: Any, output: Any) -> None:
        seen.append((inputs[1:], output.tolist(), ctx.needs_input_grad))
        ctx.f = inputs[3]

    def back(ctx: Any, g: Tensor) -> Any:
        return g * ctx.f, None, None, None

    with custom_op("mine::f", weighted, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save)
        x = leaf(1.0)
        made(x, 3).sum().backward()
        assert x.grad is not None
        assert x.grad.tolist() == [2.0]
    assert seen == [((3, None, 2.0), [2.0], (True, False, False, False))]


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


def test_only_the_gradients_that_are_wanted() -> None:
    def product(x: Tensor, y: Tensor) -> Tensor:
        return x * y

    def back(ctx: Any, g: Tensor) -> Any:
        assert ctx.needs_input_grad == (False, True)
        return None, g * ctx.saved_tensors[0]

    with custom_op("mine::f", product, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save_input)
        y = leaf(1.0)
        made(tensor([4.0]), y).sum().backward()
        assert y.grad is not None
        assert y.grad.tolist() == [4.0]


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


def test_an_integer_result() -> None:
    def count(x: Tensor) -> Tensor:
        return (x > 0).sum()

    with custom_op("mine::f", count, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g)
        assert not made(leaf(1.0)).requires_grad


def test_a_missing_result() -> None:
    made = custom_op(
        "mine::f", lambda x: None, mutates_args=(), schema="(Tensor x) -> Tensor?"
    )
    with made:
        made.register_autograd(lambda ctx, g: g)
        assert repeatedly(lambda: made(leaf(1.0)))[-1] is None


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
        with pytest.raises(SavedTensorModified):
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


def test_what_runs_below_records_nothing() -> None:
    inner: list[bool] = []

    def looked(x: Tensor) -> Tensor:
        made = x * 2
        inner.append(made.requires_grad)
        return made

    with custom_op("mine::f", looked, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 2)
        repeatedly(lambda: made(leaf(1.0)))
    assert not any(inner)


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


def test_a_gradient_of_another_shape() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: ops.core.zeros([3]))
        with pytest.raises(GradientMismatch):
            made(leaf(1.0, 2.0)).sum().backward()


def test_an_operator_that_writes() -> None:
    with custom_op("mine::f_", add_one, mutates_args=("x",)) as made:
        with pytest.raises(NotFunctional) as refused:
            made.register_autograd(cosine)
        assert str(refused.value) == (
            "`mine::f_` writes to `x`; formulas of gradients are for operators that "
            "only\nreturn new tensors.\n"
            "  schema: mine::f_(Tensor(a0!) x) -> ()\n"
            "  to do:  give the formula to an operator that returns the result "
            "instead, and\n          copy that over"
        )
        assert not made.handle.has_kernel("Autograd")


@pytest.mark.parametrize(
    ("back", "save", "argument"), [(3, None, "backward"), (cosine, 3, "setup_context")]
)
def test_what_cannot_be_called(back: Any, save: Any, argument: str) -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        with pytest.raises(WrongArgument) as refused:
            made.register_autograd(back, setup_context=save)
        assert str(refused.value) == f"`{argument}` is a function; found int."


def test_what_is_marked_dirty() -> None:
    def save(ctx: Any, inputs: Any, output: Any) -> None:
        ctx.mark_dirty(inputs[0])

    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(cosine, setup_context=save)
        with pytest.raises(FunctionMisuse, match="writes to none by its schema"):
            made(leaf(1.0))


def test_an_operator_of_no_tensors() -> None:
    def zeros(n: int) -> Tensor:
        return ops.core.zeros([n])

    with custom_op("mine::f", zeros, mutates_args=()) as made:
        made.register_autograd(cosine)
        assert made(1).tolist() == [0.0]


def copied(x: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(x)


def test_an_out_form_takes_no_gradient() -> None:
    made = custom_op("mine::f", copied, mutates_args=("out",), tags="out")
    with made:
        for _ in range(12):
            with pytest.raises(OutRequiresGrad) as refused:
                made(leaf(1.0), out=tensor([0.0]))
            assert (refused.value.operator, refused.value.argument) == ("mine::f", "x")
        with no_grad():
            assert made(leaf(1.0), out=tensor([0.0])).tolist() == [1.0]


def test_a_graph_keeps_the_formula_and_nothing_else_does() -> None:
    def back(ctx: Any, g: Tensor) -> Tensor:
        return g

    gone = ref(back)
    made = custom_op("mine::f", double, mutates_args=())
    made.register_autograd(back)
    y = made(leaf(1.0))
    made.close()
    del made, back
    gc.collect()
    assert gone() is not None
    y.sum().backward()
    del y
    gc.collect()
    assert gone() is None
