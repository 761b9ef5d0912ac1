"""Functions with a gradient of their own."""

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.autograd import (
    Function,
    grad,
    gradcheck,
    gradgradcheck,
    is_grad_enabled,
    no_grad,
    once_differentiable,
)
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    BackwardRefused,
    NotImplementedFormula,
    WriteRefused,
)
from tests.autograd.made import grad_of, leaf
from tests.coded import code


class Exp(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        result = x.exp()
        ctx.save_for_backward(result)
        return result

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        (result,) = ctx.saved_tensors
        return grad * result


class Scaled(Function):
    @staticmethod
    def forward(x: Tensor, factor: float, y: Tensor | None) -> Any:
        assert not is_grad_enabled()
        return x * factor if y is None else x * factor + y

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        assert ctx.needs_input_grad[1] is False
        return grad * ctx.factor, None, grad if ctx.needs_input_grad[2] else None


class Product(Function):
    @staticmethod
    def forward(ctx: Any, a: Tensor, b: Tensor) -> Any:
        ctx.save_for_backward(a, b)
        return a * b, a + b

    @staticmethod
    def backward(ctx: Any, by_product: Tensor, by_sum: Tensor) -> Any:
        a, b = ctx.saved_tensors
        return by_product * b + by_sum, by_product * a + by_sum


def test_gradients_of_any_order() -> None:
    assert gradcheck(Exp.apply, [leaf(0.1, 0.7)])
    assert gradgradcheck(Exp.apply, [leaf(0.1, 0.7)])
    assert gradcheck(Product.apply, [leaf(0.1, 0.7), leaf(2, 3)])
    assert gradgradcheck(Product.apply, [leaf(0.1, 0.7), leaf(2, 3)])


def test_setup_context_and_other_arguments() -> None:
    x, y = leaf(1, 2), leaf(5, 6)
    Scaled.apply(x, 3.0, y).sum().backward()
    assert (grad_of(x).tolist(), grad_of(y).tolist()) == ([3, 3], [1, 1])
    assert Scaled.apply(x, 3.0, None).grad_fn.name() == "ScaledBackward"
    assert not Scaled.apply(x.detach(), 3.0, None).requires_grad
    with no_grad():
        assert not Scaled.apply(x, 3.0, y).requires_grad


class Power(Function):
    """Has an argument with a default."""

    @staticmethod
    def forward(x: Tensor, exponent: float = 2.0) -> Any:
        return x**exponent

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> None:
        x, ctx.exponent = inputs
        ctx.save_for_backward(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        assert len(ctx.needs_input_grad) == 2
        (x,) = ctx.saved_tensors
        return grad * ctx.exponent * x ** (ctx.exponent - 1), None


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [((), {}, 6), ((3.0,), {}, 27), ((), {"exponent": 3.0}, 27)],
)
def test_setup_context_sees_the_defaults_of_forward(
    args: tuple[Any, ...], kwargs: dict[str, Any], expected: float
) -> None:
    x = leaf(3)
    Power.apply(x, *args, **kwargs).backward(tensor([1.0]))
    assert grad_of(x).tolist() == [expected]


class ByKeyword(Function):
    """Has an argument that is passed by keyword only."""

    setup_context = Power.setup_context

    @staticmethod
    def forward(x: Tensor, *, exponent: float = 2.0) -> Any:
        return x**exponent


def test_arguments_that_forward_does_not_take() -> None:
    x = leaf(3)
    cases: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: Power.apply(x, 1.0, 2.0, 3.0), "too many positional arguments"),
        (lambda: Power.apply(x, base=2.0), "unexpected keyword argument 'base'"),
        (lambda: ByKeyword.apply(x), "accepts exponent by keyword only"),
        (lambda: Exp.apply(x=x), "is called with x by keyword"),
    )
    for call, fault in cases:
        with pytest.raises(AutogradMisuse, check=code("FunctionMisuse")) as refused:
            call()
        assert fault in refused.value.fault


def test_missing_gradients_are_zeros_or_none() -> None:
    seen: list[Any] = []

    class Two(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor, materialize: bool) -> Any:
            ctx.set_materialize_grads(materialize)
            return x * 1, x * 2

        @staticmethod
        def backward(ctx: Any, first: Any, second: Any) -> Any:
            seen.append(second if second is None else second.tolist())
            return first, None

    x = leaf(1, 2)
    Two.apply(x, True)[0].sum().backward()
    Two.apply(x, False)[0].sum().backward()
    assert seen == [[0, 0], None]


def test_results_without_a_gradient() -> None:
    class Parts(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            marked = x * 2
            ctx.mark_non_differentiable(marked)
            return x * 1, marked, x > 1

        @staticmethod
        def backward(ctx: Any, grad: Tensor, *others: Any) -> Any:
            return grad

    first, marked, flags = Parts.apply(leaf(1, 2))
    assert first.requires_grad
    assert (marked.requires_grad, flags.requires_grad) == (False, False)


def test_an_input_returned_is_another_tensor() -> None:
    class Same(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad * 2

    x = leaf(1)
    y = Same.apply(x)
    assert y is not x
    assert y.data_ptr() == x.data_ptr()
    y.sum().backward()
    assert grad_of(x).tolist() == [2]


class Doubled(Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        x.mul_(2)
        ctx.mark_dirty(x)
        return x

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * 2


def test_writing_to_an_input() -> None:
    x = leaf(1, 2)
    y = x * 1
    assert Doubled.apply(y) is y
    part = y[1:]
    assert Doubled.apply(part) is part
    (y * 1).sum().backward()
    assert y.tolist() == [2, 8]
    assert grad_of(x).tolist() == [2, 4]
    with pytest.raises(WriteRefused, check=code("LeafModified")):
        Doubled.apply(leaf(1))


def test_a_view_from_forward_cannot_follow() -> None:
    class Head(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x[:1]

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad

    y = leaf(1, 2) * 1
    y[0:1]
    view = Head.apply(y)
    with pytest.raises(WriteRefused, check=code("ViewModified")) as refused:
        view.add_(1)
    assert refused.value.made == "it was made by a Function"


def test_misuse() -> None:
    class Lost(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.mark_dirty(x)
            return x + 1

    class Foreign(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            made = x + 1
            ctx.mark_dirty(made)
            return made

    class Numbers(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(3)
            return x

    for wrong in (Lost, Foreign, Numbers, Function):
        with pytest.raises(AutogradMisuse, check=code("FunctionMisuse")):
            wrong.apply(leaf(1))


@pytest.mark.parametrize("count", [0, 2])
def test_a_gradient_for_each_argument(count: int) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return (grad,) * count

    with pytest.raises(AutogradMisuse) as mismatch:
        Wrong.apply(leaf(1)).sum().backward()
    assert mismatch.value.fields() == {
        "where": "The backward of `Wrong`",
        "what": "number",
        "expected": "1, one for each argument of forward",
        "found": str(count),
    }


def test_a_gradient_of_another_shape_is_refused() -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return tensor([1.0, 2.0, 3.0], dtype="float64")

    with pytest.raises(AutogradMisuse) as mismatch:
        Wrong.apply(leaf(1, 2)).sum().backward()
    assert (mismatch.value.what, mismatch.value.found) == ("shape", "(3,)")


@pytest.mark.parametrize("returned", [1.0, np.ones(1), (), "none", True])
def test_what_is_no_tensor_is_no_gradient(returned: Any) -> None:
    class Wrong(Function):
        @staticmethod
        def forward(ctx: Any, factor: float, x: Tensor, y: Tensor) -> Any:
            return x * factor + y

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return None, grad, returned

    x, y = leaf(1), leaf(1)
    with pytest.raises(AutogradMisuse, check=code("NotAGradient")) as caught:
        Wrong.apply(2.0, x, y).sum().backward()
    assert caught.value.fields() == {
        "node": "Wrong",
        "position": 2,
        "type": type(returned).__name__,
    }
    assert isinstance(caught.value, TypeError)
    assert x.grad is None


def test_saved_tensors_are_checked_and_let_go() -> None:
    a, b = leaf(1), leaf(2)
    y = Product.apply(a, b)[0]
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(BackwardRefused, check=code("GraphFreed")):
        y.backward()
    z = Product.apply(a, b)[0]
    with no_grad():
        a.add_(1)
    with pytest.raises(BackwardRefused) as modified:
        z.backward()
    assert (modified.value.operator, modified.value.argument) == (
        "Product",
        "saved_tensors[0]",
    )


def test_once_differentiable() -> None:
    class Once(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x * x

        @staticmethod
        @once_differentiable
        def backward(ctx: Any, grad: Tensor) -> Any:
            assert not is_grad_enabled()
            return grad * 2

    x = leaf(3)
    Once.apply(x).sum().backward()
    assert grad_of(x).tolist() == [2]
    outer = leaf(1)
    (first,) = grad(Once.apply(x), x, outer, create_graph=True)
    assert first is not None
    with pytest.raises(
        NotImplementedFormula, check=code("DifferentiatedOnce")
    ) as refused:
        first.sum().backward()
    assert refused.value.function == "Once"


def test_backward_inside_of_backward() -> None:
    class Inner(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, gradient: Tensor) -> Any:
            from everyorder.runtime.autograd import enable_grad

            (x,) = ctx.saved_tensors
            with enable_grad():
                again = x.detach().requires_grad_()
                (slope,) = grad((again * again).sum(), again)
            assert slope is not None
            return gradient * slope

    x = leaf(3, 4)
    Inner.apply(x).sum().backward()
    assert grad_of(x).tolist() == [6, 8]


class Into(Function):
    """Writes the first argument into the second."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, target: Tensor) -> Any:
        ctx.mark_dirty(target)
        return target.copy_(x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad, None


def test_a_view_that_is_written_to_comes_first() -> None:
    base = tensor([0.0, 0.0], dtype="float64")
    x = leaf(3)
    with pytest.raises(AutogradMisuse, check=code("FunctionMisuse")) as refused:
        Into.apply(x, base[1:])
    assert refused.value.fault == "wrote to a view that is not its first tensor"
    whole = tensor([0.0], dtype="float64")
    assert Into.apply(x, whole) is whole
    whole.sum().backward()
    assert grad_of(x).tolist() == [1]


def test_nothing_may_be_saved() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(None, x)
            assert ctx.saved_tensors[1] is x
            return x * 0.5

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            nothing, x = ctx.saved_tensors
            assert nothing is None
            assert x.tolist() == [4]
            return grad * 0.5, None, None

    x = leaf(4)
    Half.apply(x).sum().backward()
    assert grad_of(x).tolist() == [0.5]


def test_calls_die_without_the_collector() -> None:
    gc.disable()
    try:
        y = Exp.apply(leaf(1))
        held = weakref.ref(y), weakref.ref(y.grad_fn)
        del y
        assert [each() for each in held] == [None, None]
    finally:
        gc.enable()
