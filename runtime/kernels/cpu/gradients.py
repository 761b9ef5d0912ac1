"""Kernels of derivatives: a gradient times the slope of an activation.

True only here: the slope is computed from the result where that is all it takes (relu,
sigmoid, tanh), and from the input otherwise.  Of complex numbers the slope's conjugate
is taken, as autograd defines the gradient of a holomorphic function.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels import math
from runtime.kernels.cpu.elementwise import HEAVIEST, HEAVY, Binary, Scalar
from runtime.kernels.cpu.unary import complex_divide
from runtime.kernels.math import like
from runtime.tensors.tensor import Tensor


def _relu(grad: Any, result: Any) -> Any:
    # NaN passed relu, and so does its gradient.
    return like(grad, 0) if result <= 0 else grad


def _sigmoid(grad: Any, result: Any) -> Any:
    return grad * ((like(result, 1) - result) * result)


def _tanh(grad: Any, result: Any) -> Any:
    return grad * (like(result, 1) - result * result)


def _complex_sigmoid(grad: Any, result: Any) -> Any:
    return grad * np.conj((like(result, 1) - result) * result)


def _complex_tanh(grad: Any, result: Any) -> Any:
    return grad * np.conj(like(result, 1) - result * result)


def _complex_silu(grad: Any, x: Any) -> Any:
    # The slope is s + x s (1 - s), where s is the sigmoid.
    one = like(x, 1)
    sigmoid = complex_divide(one, one + np.exp(-x))
    return grad * np.conj(sigmoid * (one + x * (one - sigmoid)))


def _by_slope(slope: Scalar) -> Scalar:
    def scalar(grad: Any, x: Any) -> Any:
        return grad * slope(x)

    return scalar


RELU = Binary("relu_backward", _relu)
SIGMOID = Binary("sigmoid_backward", _sigmoid)
TANH = Binary("tanh_backward", _tanh)
COMPLEX_SIGMOID = Binary("sigmoid_backward_complex", _complex_sigmoid)
COMPLEX_TANH = Binary("tanh_backward_complex", _complex_tanh)
GELU = {
    "none": Binary("gelu_backward", _by_slope(math.gelu_slope), grain=HEAVIEST),
    "tanh": Binary(
        "gelu_tanh_backward", _by_slope(math.gelu_tanh_slope), grain=HEAVIEST
    ),
}
COMPLEX_SILU = Binary("silu_backward_complex", _complex_silu)
SILU = Binary("silu_backward", _by_slope(math.silu_slope), grain=HEAVY)


def sigmoid_backward(out: Tensor, grad: Tensor, result: Tensor) -> None:
    """The gradient of the input of `sigmoid`."""
    (COMPLEX_SIGMOID if out.dtype.is_complex else SIGMOID)(out, grad, result)


def tanh_backward(out: Tensor, grad: Tensor, result: Tensor) -> None:
    """The gradient of the input of `tanh`."""
    (COMPLEX_TANH if out.dtype.is_complex else TANH)(out, grad, result)


def silu_backward(out: Tensor, grad: Tensor, x: Tensor) -> None:
    """The gradient of the input of `silu`."""
    (COMPLEX_SILU if out.dtype.is_complex else SILU)(out, grad, x)


def gelu_backward(out: Tensor, grad: Tensor, x: Tensor, approximate: str) -> None:
    """The gradient of the input of `gelu`."""
    GELU[approximate](out, grad, x)


KERNELS: dict[str, Callable[..., None]] = {
    "relu_backward": RELU,
    "sigmoid_backward": sigmoid_backward,
    "tanh_backward": tanh_backward,
    "gelu_backward": gelu_backward,
    "silu_backward": silu_backward,
}
