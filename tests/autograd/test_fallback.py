"""Operators that nobody wrote a gradient for."""

from collections.abc import Iterator
from typing import Any

import pytest

from everyorder.runtime import Dispatcher, Library, Tensor, direct, tensor
from everyorder.runtime.autograd import (
    GradientMissing,
    fallback_mode,
    install_fallbacks,
    set_fallback_mode,
)
from everyorder.runtime.dispatch.dispatcher import release
from everyorder.runtime.errors.autograd import (
    AutogradMisuse,
    NotImplementedFormula,
    WriteRefused,
)
from everyorder.runtime.operators.declare.handles import core
from tests.autograd.made import grad_of
from tests.coded import code

TWICE = "mine::twice(Tensor self) -> Tensor"


@pytest.fixture
def dispatcher() -> Iterator[Dispatcher]:
    made = Dispatcher()
    release(made, "Autograd")
    with Library("mine", dispatcher=made) as library:
        library.define(TWICE)
        library.impl("twice", direct(lambda x: x.detach() * 2, "twice"), "CPU")
        library.define("mine::clear_(Tensor(a!) self) -> Tensor(a!)")
        library.impl("clear_", direct(core.zero_, "clear"), "CPU")
        library.define("mine::pair(Tensor[] xs) -> (Tensor, Tensor)")
        library.impl("pair", direct(lambda xs: (xs[0] * 1, xs[0] > 0), "pair"), "CPU")
        library.define("mine::same(Tensor self) -> Tensor")
        library.impl("same", direct(lambda x: x, "same"), "CPU")
        yield made


def installed(dispatcher: Dispatcher, mode: str | None) -> Library:
    library = Library("_", "IMPL", dispatcher=dispatcher)
    install_fallbacks(library, mode)
    return library


def call(dispatcher: Dispatcher, name: str, *args: Any) -> Any:
    operator = dispatcher.find_op(f"mine::{name}")
    assert operator is not None
    return operator.call(*args)


def leaf() -> Tensor:
    return tensor([1.0, 2.0], requires_grad=True)


def test_running_backwards_is_refused_by_name(dispatcher: Dispatcher) -> None:
    with installed(dispatcher, "error-on-backward"):
        y = call(dispatcher, "twice", leaf())
        assert y.requires_grad
        assert y.grad_fn.name() == "TwiceBackward"
        with pytest.raises(NotImplementedFormula) as refused:
            y.sum().backward()
    assert str(refused.value) == (
        "`mine::twice` has no formula for its gradient.\n"
        "  wanted: `self`\n"
        "  to do:  use register_autograd (custom operators), a kernel at the key\n"
        "          Autograd, a runtime.autograd.Function, or no_grad()"
    )


def test_without_a_gradient_nothing_is_recorded(dispatcher: Dispatcher) -> None:
    with installed(dispatcher, None):
        assert not call(dispatcher, "twice", leaf().detach()).requires_grad


def test_lists_and_results_that_have_no_gradient(dispatcher: Dispatcher) -> None:
    with installed(dispatcher, None):
        first, flags = call(dispatcher, "pair", [leaf(), leaf()])
    assert (first.requires_grad, flags.requires_grad) == (True, False)


def test_an_argument_returned_keeps_its_own_history(dispatcher: Dispatcher) -> None:
    x = leaf()
    with installed(dispatcher, None):
        y = call(dispatcher, "same", x)
    assert (x.is_leaf, y.is_leaf) == (True, False)


def test_writing_in_place(dispatcher: Dispatcher) -> None:
    x = leaf()
    with installed(dispatcher, None):
        with pytest.raises(WriteRefused, check=code("LeafModified")):
            call(dispatcher, "clear_", x)
        y = x * 2
        assert call(dispatcher, "clear_", y) is y
        with pytest.raises(NotImplementedFormula, check=code("NotImplementedFormula")):
            y.sum().backward()
    assert x.tolist() == [1, 2]


def test_warning(dispatcher: Dispatcher) -> None:
    x = leaf()
    with installed(dispatcher, "warn"):
        y = call(dispatcher, "twice", x) + x
        with pytest.warns(GradientMissing, match="`mine::twice` has no formula"):
            y.sum().backward()
    assert grad_of(x).tolist() == [1, 1]


def test_falling_through(dispatcher: Dispatcher) -> None:
    with installed(dispatcher, "fallthrough"):
        assert not call(dispatcher, "twice", leaf()).requires_grad


def test_the_mode_of_the_process(dispatcher: Dispatcher) -> None:
    assert fallback_mode() == "error-on-backward"
    assert set_fallback_mode("fallthrough") == "error-on-backward"
    try:
        with installed(dispatcher, None):
            assert not call(dispatcher, "twice", leaf()).requires_grad
    finally:
        set_fallback_mode("error-on-backward")
    with pytest.raises(AutogradMisuse, check=code("UnknownMode")) as unknown:
        set_fallback_mode("error")
    assert unknown.value.known == ("error-on-backward", "warn", "fallthrough")
    library = Library("_", "IMPL", dispatcher=Dispatcher())
    with pytest.raises(AutogradMisuse, check=code("UnknownMode")):
        install_fallbacks(library, "never")


def test_an_operator_of_core_without_formulas() -> None:
    x = leaf()
    grad, mean, rstd = tensor([[1.0, 2.0]]), tensor([[0.5]]), tensor([[1.0]])
    by_input, _, none = core.native_layer_norm_backward(
        grad, x.view(1, 2), [2], mean, rstd, None, None, [True, False, False]
    )
    assert none is None
    with pytest.raises(NotImplementedFormula) as refused:
        by_input.sum().backward()
    assert refused.value.operator == "core::native_layer_norm_backward"
