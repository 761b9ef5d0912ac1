"""Gradients at the wrong key, of the wrong shape, missing or wrong are found.

Whether they are missing or wrong is a question of numbers, which only the check
`test_gradients` asks.
"""

from functools import partial
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import (
    Dispatcher,
    DType,
    Function,
    Library,
    direct,
    fallthrough,
    linked,
    ops,
    tensor,
)
from everyorder.runtime.autograd import no_grad
from everyorder.runtime.autograd.install import not_implemented
from everyorder.runtime.custom.opcheck import opcheck
from everyorder.runtime.tensors.construction import from_numpy
from tests.custom.opcheck import planted
from tests.custom.opcheck.planted import Planted, found

core = ops.core
TEST = "test_autograd_registration"
GRADIENTS = "test_gradients"
says = partial(planted.says, test=TEST)
miscounts = partial(planted.says, test=GRADIENTS)
registered = partial(found, test=TEST)


def agrees(handle: Any, *args: Any) -> dict[str, str]:
    """What both checks find, by name."""
    return registered(handle, *args) | found(handle, *args, test=GRADIENTS)


def leaf(*values: float, dtype: str = "float64") -> Any:
    return tensor([*values], dtype=dtype, requires_grad=True)


def square(x: Any) -> Any:
    return core.mul(x, x)


class Square(Function):
    """x * x, with the gradient that `slope` gives."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return core.mul(x, x)

    @classmethod
    def backward(cls, ctx: Any, grad: Any) -> Any:
        (x,) = ctx.saved_tensors
        return cls.slope(grad, x)

    @staticmethod
    def slope(grad: Any, x: Any) -> Any:
        return grad * x * 2


class Wrong(Square):
    @staticmethod
    def slope(grad: Any, x: Any) -> Any:
        return grad * x


class Misshapen(Square):
    @staticmethod
    def slope(grad: Any, x: Any) -> Any:
        return core.cat([grad, grad])


class Raising(Square):
    @staticmethod
    def slope(grad: Any, x: Any) -> Any:
        raise ValueError("not today")


F = "f(Tensor x) -> Tensor"


def test_the_right_gradient(define: Planted) -> None:
    assert agrees(define(F, square, Autograd=Square.apply), leaf(1, 2)) == {}


def test_nothing_requires_grad(define: Planted) -> None:
    assert agrees(define(F, square), tensor([1.0])) == {}


def test_no_gradient(define: Planted) -> None:
    assert (
        miscounts(define(F, square), leaf(1, 2))
        == """\
test_gradients: `check::f` has no gradient for `x`.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   nothing is registered at Autograd
  to do:  register one: register_autograd, or impl(..., "Autograd"); if it is a
          constant on purpose, register fallthrough at Autograd"""
    )


def test_no_gradient_on_an_own_dispatcher() -> None:
    made = Planted(Dispatcher())
    with made.library:
        assert "nothing is registered at Autograd" in miscounts(
            made(F, square), leaf(1)
        )


def test_no_gradient_in_no_grad(define: Planted) -> None:
    with no_grad():
        assert "nothing is registered" in miscounts(define(F, square), leaf(1, 2))


def test_no_gradient_of_what_is_written(define: Planted) -> None:
    def add(x: Any, y: Any) -> None:
        core.add_(x, y)

    handle = define("f(Tensor(a!) x, Tensor y) -> ()", add)
    assert (
        miscounts(handle, tensor([1.0]), leaf(2, dtype="float32"))
        == """\
test_gradients: `check::f` has no gradient for `y`.
  call:   check::f(<Tensor>, <Tensor>)
  schema: check::f(Tensor(a!) x, Tensor y) -> ()
  seen:   nothing is registered at Autograd
  to do:  register one: register_autograd, or impl(..., "Autograd"); if it is a
          constant on purpose, register fallthrough at Autograd"""
    )


def test_no_gradient_is_possible(define: Planted) -> None:
    handle = define("f(Tensor x) -> Tensor", lambda x: core.isnan(x))
    assert agrees(handle, leaf(1, 2)) == {}


def test_no_gradient_on_purpose(define: Planted) -> None:
    handle = define(F, square)
    with Library("check", "IMPL", "Autograd") as library:
        library.impl("f", fallthrough)
        assert agrees(handle, leaf(1, 2)) == {}


def test_a_composite(define: Planted) -> None:
    define.library.define(F)
    define.library.impl("f", direct(square, "f"), "CompositeImplicitAutograd")
    assert agrees(define.dispatcher.find_op("check::f"), leaf(1, 2)) == {}


def test_a_kernel_of_one_backend(define: Planted) -> None:
    assert agrees(define(F, square, AutogradCPU=Square.apply), leaf(1, 2)) == {}
    handle = define("g(Tensor x) -> Tensor", square, AutogradCUDA=Square.apply)
    assert "nothing is registered" in miscounts(handle, leaf(1, 2))


def test_a_gradient_at_a_backend(define: Planted) -> None:
    assert (
        says(define(F, Square.apply), leaf(1, 2))
        == """\
test_autograd_registration: The kernel of `check::f` at CPU records a gradient
itself.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   below Autograd, result 0 requires grad
  to do:  compute at CPU, and register the gradient at Autograd:
          register_autograd, or impl(..., "Autograd")"""
    )


def test_a_kernel_that_has_no_formula(define: Planted) -> None:
    handle = define(F, square)
    with Library("check", "IMPL", "Autograd") as library:
        library.impl("f", linked(not_implemented(), "f_autograd"))
        assert (
            says(handle, leaf(1, 2))
            == """\
test_autograd_registration: `check::f` has no gradient for `x`.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   run backwards, `check::f` says that it has no formula
  to do:  register one: register_autograd, or impl(..., "Autograd"); if it is a
          constant on purpose, register fallthrough at Autograd"""
        )


def test_a_kernel_that_records_nothing(define: Planted) -> None:
    handle = define(F, square, Autograd=lambda x: core.mul(x.detach(), x.detach()))
    assert (
        miscounts(handle, leaf(1, 2))
        == """\
test_gradients: `check::f` has no gradient for `x`.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   the registered kernel records nothing of result 0
  to do:  register one: register_autograd, or impl(..., "Autograd"); if it is a
          constant on purpose, register fallthrough at Autograd"""
    )
    assert "records nothing" in miscounts(handle, leaf(1, 2, dtype="float32"))


def test_a_kernel_that_records_nothing_of_a_constant(define: Planted) -> None:
    ones = core.ones_like
    handle = define(F, ones.default, Autograd=lambda x: ones(x.detach()))
    assert agrees(handle, leaf(1, 2, dtype="float32")) == {}


def test_a_kernel_that_does_not_take_wide_numbers(define: Planted) -> None:
    def narrow(x: Any) -> Any:
        assert x.dtype.name == "float32"
        return x.detach().clone()

    handle = define(F, narrow, Autograd=narrow)
    assert agrees(handle, leaf(1, 2, dtype="float32")) == {}


def test_a_wrong_gradient(define: Planted) -> None:
    handle = define(F, square, Autograd=Wrong.apply)
    assert (
        miscounts(handle, leaf(1, 2))
        == """\
test_gradients: The gradient of `check::f` is wrong, for result 0 by argument
`x`.
  call:       check::f(<Tensor>)
  schema:     check::f(Tensor x) -> Tensor
  seen:       the gradient is not that of finite differences
  entry:      element 1 of the input, 1 of the output
  analytical: 2
  numerical:  4"""
    )
    # Narrow numbers are made wide for that.
    assert miscounts(handle, leaf(1, 2, dtype="float32")) == miscounts(
        handle, leaf(1, 2)
    )
    right = define("g(Tensor x) -> Tensor", square, Autograd=Square.apply)
    assert agrees(right, leaf(1, 2, dtype="float32")) == {}


class Narrowing(Wrong):
    """Its result is float32, whatever it is given."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return core.to(Square.forward(ctx, x), dtype=DType.named("float32"))


class Refusing(Wrong):
    """It takes float32 only."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        assert x.dtype.name == "float32"
        return Square.forward(ctx, x)


class Inside(Square):
    """Right, and it computes in float32, whatever it is given and returns."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        narrow = core.to(x, dtype=DType.named("float32"))
        return core.to(Square.forward(ctx, narrow), dtype=x.dtype)


class Otherwise(Square):
    """Right for float32, and something else for float64."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        found = Square.forward(ctx, x)
        return found if x.dtype.name == "float32" else found * 3


@pytest.mark.parametrize("wrong", [Narrowing, Refusing, Inside, Otherwise])
def test_what_stays_narrow_is_not_compared(define: Planted, wrong: Any) -> None:
    """Finite differences of narrow numbers say nothing.

    Nor do wide ones of an operator that does something else with them.
    """
    handle = define(F, square, Autograd=wrong.apply)
    assert agrees(handle, leaf(1, 2, dtype="float32")) == {}


def test_a_wrong_gradient_of_many_elements(define: Planted) -> None:
    x = from_numpy(np.linspace(-1, 1, 60 * 40).reshape(60, 40)).requires_grad_()
    assert agrees(define(F, square, Autograd=Square.apply), x) == {}
    handle = define("g(Tensor x) -> Tensor", square, Autograd=Wrong.apply)
    assert (
        miscounts(handle, x)
        == """\
test_gradients: The gradient of `check::g` is wrong, for result 0 by argument
`x`.
  call:       check::g(<Tensor>)
  schema:     check::g(Tensor x) -> Tensor
  seen:       the gradient is not that of finite differences
  entry:      along one direction
  analytical: 0.667404438
  numerical:  1.33480888"""
    )


def test_many_complex_elements() -> None:
    values = np.exp(1j * np.linspace(-1, 1, 2400))
    x = from_numpy(values).requires_grad_()
    assert agrees(core.sin.default, x) == {}


def test_a_gradient_of_the_wrong_shape(define: Planted) -> None:
    handle = define(F, square, Autograd=Misshapen.apply)
    assert (
        says(handle, leaf(1, 2, dtype="float32"))
        == """\
test_autograd_registration: Running `check::f` backwards to `x` raised
GradientMismatch.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  error:  `Misshapen` gave a gradient of the wrong shape. expected: (2,) found:
          (4,)"""
    )


def test_a_backward_that_raises(define: Planted) -> None:
    handle = define(F, square, Autograd=Raising.apply)
    assert (
        says(handle, leaf(1, 2))
        == """\
test_autograd_registration: Running `check::f` backwards to `x` raised
ValueError.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  error:  not today"""
    )


def test_a_kernel_that_cannot_be_called_with_gradients(define: Planted) -> None:
    def by_numpy(x: Any) -> Any:
        return from_numpy(x.numpy() * 2)

    def constant(x: Any) -> Any:
        if x.requires_grad:
            raise ValueError("only constants")
        return x.clone()

    assert (
        says(define(F, constant), leaf(1))
        == """\
test_autograd_registration: `check::f` has no gradient for `x`.
  call:   check::f(<Tensor>)
  schema: check::f(Tensor x) -> Tensor
  seen:   called with them, it raises ValueError: only constants
  to do:  register one: register_autograd, or impl(..., "Autograd"); if it is a
          constant on purpose, register fallthrough at Autograd"""
    )
    handle = define("g(Tensor x) -> Tensor", square, Autograd=by_numpy)
    assert "called with them, it raises NeedsDetach" in says(handle, leaf(1))


def test_a_call_that_never_works(define: Planted) -> None:
    handle = define(F, lambda x: 1 // 0)
    with pytest.raises(ZeroDivisionError):
        agrees(handle, leaf(1))


def test_tolerances(define: Planted) -> None:
    handle = define(F, square, Autograd=Wrong.apply)
    assert opcheck(handle, [leaf(1, 2)], test_utils=GRADIENTS, rtol=0.9, atol=3.0) == {
        GRADIENTS: "SUCCESS"
    }


def test_what_is_written_in_place() -> None:
    x, y = leaf(1, 2), leaf(3, 4)
    assert agrees(core.mul_.default, x, y) == {}


def test_inputs_whose_elements_share_memory() -> None:
    row = leaf(1, 2).detach().expand([3, 2]).requires_grad_()
    assert agrees(core.sin.default, row) == {}


def test_one_tensor_twice() -> None:
    x = leaf(1, 2)
    assert agrees(core.mul.default, x, x) == {}


def test_a_list_of_tensors() -> None:
    assert agrees(core.cat.default, [leaf(1, 2), tensor([1.0]), leaf(3)]) == {}


class Through(Square):
    """Rounds, and passes the gradient on as it is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return core.round(x)

    @staticmethod
    def slope(grad: Any, x: Any) -> Any:
        return grad


class Quantised(Square):
    """Right, but for the 256 levels that its result has, as that of an image."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return core.floor(Square.forward(ctx, x) * 255) / 255


@pytest.mark.parametrize("meant", [Through, Quantised, Wrong])
def test_a_gradient_may_differ_from_the_slope(define: Planted, meant: Any) -> None:
    def kernel(x: Any) -> Any:
        with no_grad():
            return meant.apply(x)

    handle = define(F, kernel, Autograd=meant.apply)
    x = leaf(0.25, 0.5)
    assert registered(handle, x) == {}
    assert "is not that of finite differences" in miscounts(handle, x)


def test_a_constant_for_training_is_registered(define: Planted) -> None:
    """A kernel at Autograd that records nothing is how one registers a constant."""
    handle = define(F, square, Autograd=lambda x: core.mul(x.detach(), x.detach()))
    assert registered(handle, leaf(1, 2)) == {}
    assert registered(define("g(Tensor x) -> Tensor", square), leaf(1, 2)) == {}


def test_findings_of_registration_are_findings_of_numbers(define: Planted) -> None:
    handle = define(F, square, Autograd=Misshapen.apply)
    assert "GradientMismatch" in miscounts(handle, leaf(1, 2))
    handle = define("g(Tensor x) -> Tensor", Square.apply)
    assert "records a gradient" in miscounts(handle, leaf(1, 2))


def test_a_device_whose_numbers_are_not_at_hand(define: Planted) -> None:
    handle = define(F, square, Meta=square, Autograd=Wrong.apply)
    x = core.zeros([2], device="meta").requires_grad_()
    assert agrees(handle, x) == {}
