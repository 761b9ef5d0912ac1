"""gradcheck finds wrong gradients, and says where."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.autograd import (
    Function,
    InaccurateGradcheck,
    gradcheck,
    gradgradcheck,
)
from everyorder.runtime.errors.autograd import AutogradMisuse, GradcheckFailed
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.construction import from_numpy
from tests.autograd.made import leaf
from tests.coded import code


class Wrong(Function):
    """The gradient of the second element is three times what it should be."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Any:
        return grad * tensor([2.0, 6.0], dtype="float64")


def test_a_wrong_gradient_is_shown() -> None:
    with pytest.raises(GradcheckFailed) as failed:
        gradcheck(lambda x, y: (y * 1, Wrong.apply(x)), [leaf(1, 2), leaf(3)])
    assert str(failed.value) == (
        "gradcheck: the gradient is not that of finite differences, for output 1 by "
        "input\n"
        "0.\n"
        "  entry:      input element 1, output element 1\n"
        "  analytical: 6\n"
        "  numerical:  2\n"
        "  difference: 4"
    )
    assert gradcheck(Wrong.apply, [leaf(1, 2)], raise_exception=False) is False


def test_a_wrong_second_gradient_is_found() -> None:
    class Half(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            (x,) = ctx.saved_tensors
            return grad * 2 * x.detach()

    assert gradcheck(Half.apply, [leaf(1, 2)])
    assert gradgradcheck(Half.apply, [leaf(1, 2)], raise_exception=False) is False


def test_outputs_that_do_not_require_grad_are_left_out() -> None:
    assert gradcheck(lambda x: (x * 2, (x * 3).detach()), [leaf(1, 2)])
    # Alone, they say that nothing depends on the input.
    assert gradcheck(lambda x: tensor([1.0], dtype="float64"), [leaf(1, 2)])
    with pytest.raises(GradcheckFailed) as failed:
        gradcheck(lambda x: (x * 3).detach(), [leaf(1, 2)])
    assert (failed.value.analytical, failed.value.numerical) == ("0", "3")


def test_a_gradient_that_changes_is_found() -> None:
    calls: list[int] = []

    class Restless(Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Any:
            return x * 1

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            calls.append(1)
            return grad * (1 + len(calls) * 1e-9)

    with pytest.raises(GradcheckFailed, match="run backwards twice"):
        gradcheck(Restless.apply, [leaf(1)])
    assert gradcheck(Restless.apply, [leaf(1)], nondet_tol=1e-6)


def test_complex_gradients() -> None:
    z = from_numpy(np.array([1 + 2j, 0.5 - 1j])).requires_grad_()
    x = leaf(1, 2)
    assert gradcheck(lambda z, x: core.mul(core.mul(z, z), x), [z, x])
    assert gradcheck(lambda z: core.abs(core.mul(z, 1j)), [z])

    class Bent(Function):
        @staticmethod
        def forward(ctx: Any, z: Tensor) -> Any:
            return z * 1j

        @staticmethod
        def backward(ctx: Any, grad: Tensor) -> Any:
            return grad * 1j

    with pytest.raises(GradcheckFailed) as failed:
        gradcheck(Bent.apply, [z])
    assert (failed.value.analytical, failed.value.numerical) == ("0+1j", "0-1j")


def test_inputs_of_no_elements_and_of_any_layout() -> None:
    empty = from_numpy(np.zeros((0, 3))).requires_grad_()
    assert gradcheck(lambda x: core.sum(x, [0]), [empty])
    turned = from_numpy(np.arange(1.0, 7).reshape(2, 3).T).requires_grad_()
    assert gradcheck(lambda x: x * x, [turned])


def test_the_inputs_are_as_before() -> None:
    x = leaf(1, 2)
    assert gradcheck(lambda x: x.exp(), x)
    assert (x.tolist(), x._version, x.grad) == ([1, 2], 0, None)


def test_what_cannot_be_checked() -> None:
    overlapping = core.expand(tensor([1.0], dtype="float64"), [3]).requires_grad_()
    for given, fault in (
        ([tensor([1.0])], "no input requires grad"),
        ([overlapping], "share memory"),
    ):
        with pytest.raises(AutogradMisuse, check=code("GradcheckMisuse"), match=fault):
            gradcheck(lambda x: x * 1, given)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16", "complex64"])
def test_narrow_numbers_cause_a_warning(dtype: str) -> None:
    narrow = tensor([1.0], dtype=dtype, requires_grad=True)
    with pytest.warns(InaccurateGradcheck, match=f"an input is {dtype}"):
        assert not gradcheck(lambda x: x * x, narrow, raise_exception=False)
    with pytest.warns(InaccurateGradcheck), pytest.raises(GradcheckFailed):
        gradcheck(lambda x: x * x, narrow)
    with pytest.warns(InaccurateGradcheck):
        assert gradcheck(lambda x: x * x, narrow, eps=0.01, atol=0.1)
