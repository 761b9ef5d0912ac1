# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""`register_autograd`: spec 3.13.3 and 3.13.4."""

import gc
from typing import Any
from weakref import ref

import numpy as np
import pytest

from everyorder.runtime import (
    DispatchKey,
    KeySet,
    Library,
    Tensor,
    direct,
    from_numpy,
    no_grad,
    ops,
    tensor,
)
from everyorder.runtime.autograd import gradcheck
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    NotImplementedFormula,
    WriteRefused,
)
from everyorder.runtime.errors.custom import DefinitionRefused
from everyorder.runtime.errors.registration import LibraryMisuse
from everyorder.runtime.library import custom_op, register_autograd
from tests.coded import code
from tests.custom.functions import add_one, double, grad, leaf, repeatedly


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


def test_a_gradient_of_another_shape() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: ops.core.zeros([3]))
        with pytest.raises(AutogradMisuse, check=code("GradientMismatch")):
            made(leaf(1.0, 2.0)).sum().backward()


def test_an_operator_that_writes() -> None:
    with custom_op("mine::f_", add_one, mutates_args=("x",)) as made:
        with pytest.raises(DefinitionRefused, check=code("NotFunctional")) as refused:
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
        with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as refused:
            made.register_autograd(back, setup_context=save)
        assert str(refused.value) == f"`{argument}` is a function; found int."


def test_an_operator_of_no_tensors() -> None:
    def zeros(n: int) -> Tensor:
        return ops.core.zeros([n])

    with custom_op("mine::f", zeros, mutates_args=()) as made:
        made.register_autograd(cosine)
        assert made(1).tolist() == [0.0]
        keys = KeySet([DispatchKey.AutogradCPU, DispatchKey.CPU])
        assert made.handle.redispatch(keys, 1).tolist() == [0.0]


def copied(x: Tensor, *, out: Tensor) -> Tensor:
    return out.copy_(x)


def test_an_out_form_takes_no_gradient() -> None:
    made = custom_op("mine::f", copied, mutates_args=("out",), tags="out")
    with made:
        for _ in range(12):
            with pytest.raises(WriteRefused, check=code("OutRequiresGrad")) as refused:
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


def by_name(ctx: Any, output: Any, inputs: Any) -> None:
    ctx.seen = output.tolist(), len(inputs)


def by_name_only(*, inputs: Any, ctx: Any, output: Any) -> None:
    ctx.seen = output.tolist(), len(inputs)


def by_place(c: Any, given: Any, made: Any) -> None:
    c.seen = made.tolist(), len(given)


def by_any_place(ctx: Any, *rest: Any) -> None:
    ctx.seen = rest[1].tolist(), len(rest[0])


@pytest.mark.parametrize("save", [by_name, by_name_only, by_place, by_any_place])
@pytest.mark.parametrize("lists", [False, True])
def test_the_order_of_setup_context_is_its_own(save: Any, lists: bool) -> None:
    def several(xs: list[Tensor]) -> Tensor:
        return xs[0] * 2

    seen = []

    def back(ctx: Any, g: Tensor) -> Any:
        seen.append(ctx.seen)
        return ([g],) if lists else g

    function: Any = several if lists else double
    with custom_op("mine::f", function, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save)
        x = leaf(1.0)
        made([x] if lists else x).sum().backward()
    assert seen == [([2.0], 1)]


def save_the_name(ctx: Any, output: Any, keyword_only_inputs: Any, inputs: Any) -> None:
    ctx.factor = keyword_only_inputs["factor"], len(inputs)


def save_the_place(c: Any, given: Any, named: Any, made: Any) -> None:
    c.factor = named["factor"], len(given)


@pytest.mark.parametrize("save", [save_the_name, save_the_place])
def test_keyword_only_inputs_by_name_and_by_place(save: Any) -> None:
    def scaled(x: Tensor, *, factor: float = 2.0) -> Tensor:
        return x * factor

    seen = []

    def back(ctx: Any, g: Tensor) -> Tensor:
        seen.append(ctx.factor)
        return g

    with custom_op("mine::f", scaled, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save)
        made(leaf(1.0), factor=3.0).sum().backward()
    assert seen == [(3.0, 1)]


@pytest.mark.parametrize(
    ("back", "save", "text"),
    [
        (
            lambda ctx: None,
            None,
            "`backward` is a function that is called with (ctx, grad); found one that "
            "is not: too many positional arguments.",
        ),
        (
            lambda ctx, a, b: None,
            None,
            "`backward` is a function that is called with (ctx, grad); found one that "
            "is not: missing a required argument: 'b'.",
        ),
        (
            cosine,
            lambda ctx, inputs: None,
            "`setup_context` is a function that is called with (ctx, inputs, output); "
            "found one that is not: too many positional arguments.",
        ),
        (
            cosine,
            lambda ctx, inputs, keyword_only_inputs, output: None,
            "`setup_context` is a function that is called with (ctx, inputs, output); "
            "found one that is not: missing a required argument: 'output'.",
        ),
    ],
)
def test_what_cannot_be_called_so(back: Any, save: Any, text: str) -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(lambda ctx, g: g * 5)
        with pytest.raises(LibraryMisuse, check=code("WrongArgument")) as refused:
            made.register_autograd(back, setup_context=save)
        assert str(refused.value) == text
        # The formula that was there stays.
        x = leaf(1.0)
        (found,) = grad(made(x).sum(), x)
        assert found.tolist() == [5.0]


class Silent:
    """A function that shows no signature."""

    __signature__ = "none"

    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, *given: Any) -> Any:
        self.calls.append(len(given))
        return given[-1]


def test_a_function_without_a_signature_is_believed() -> None:
    back, save = Silent(), Silent()
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autograd(back, setup_context=save)
        made(leaf(1.0)).sum().backward()
    assert (back.calls, save.calls) == ([2], [3])


def test_any_number_of_results() -> None:
    def both(x: Tensor) -> Any:
        return x * 2, x * 3

    with Library("mine", "FRAGMENT") as library:
        library.define("f(Tensor x) -> ...")
        library.impl("f", direct(both), "CompositeExplicitAutograd")
        register_autograd("mine::f", lambda ctx, *gs: gs[0] * 2, lib=library)
        first, second = ops.mine.f(leaf(1.0))
        assert (first.tolist(), second.tolist()) == ([2.0], [3.0])
