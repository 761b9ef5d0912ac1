"""Softmax and its logarithm, with their gradients.

True only here: over which dimension, in which dtype.  A wanted dtype is converted to
before anything is computed; without one the input has to be of floating-point numbers.
"""

from typing import Any

from runtime.operators.agreement import computing, one_dtype, require_shape
from runtime.operators.plan import (
    ALL,
    FLOATS,
    Plan,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.operators.structured import Structured
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype
from runtime.tensors.tensor import Tensor

_FITS = "floating-point numbers; ask for one by dtype="


def plan_softmax(call: str, self: Tensor, dim: int, dtype: DType | None) -> Plan:
    """Of every line along `dim`."""
    wanted = self.dtype if dtype is None else dtype
    require_dtype(call, "self", self.dtype, ALL if dtype else FLOATS, _FITS)
    require_dtype(call, "dtype", wanted, FLOATS, "floating-point numbers")
    place = one_dim(call, dim, self.shape)
    outputs = ((self.shape, wanted),)
    computed = compute_dtype(wanted)
    if self.dtype is computed is wanted:
        return Plan(outputs, self.device, (self, place))
    return Plan(outputs, self.device, (self, place), computed, (0,))


def plan_backward(call: str, grad: Tensor, result: Tensor, dim: int) -> Plan:
    """From the gradient and the result of the same shape."""
    device = same_device(call, grad, result)
    dtype = one_dtype(call, FLOATS, _FITS, ("result", result), ("grad", grad))
    require_shape(call, ("grad", grad), result.shape)
    place = one_dim(call, dim, result.shape)
    arguments = (grad, result, place)
    outputs = ((result.shape, dtype),)
    return Plan(outputs, device, arguments, computing(dtype), (0, 1))


def _both(name: str, says: str) -> tuple[Any, ...]:
    return (
        Structured(
            name,
            "Tensor self, int dim, ScalarType? dtype=None",
            plan_softmax,
            remembers=True,
            says=says,
            autocast="float32",
        ),
        Structured(
            f"{name}_backward",
            "Tensor grad, Tensor result, int dim",
            plan_backward,
            out=False,
            remembers=True,
        ),
    )


OPERATORS = (
    *_both("softmax", "Exponentials along a dimension, scaled to sum up to 1."),
    *_both("log_softmax", "The logarithm of `softmax`."),
)
