"""Softmax and its logarithm, with their gradients.

True only here: over which dimension, in which dtype.  A wanted dtype is converted to
before anything is computed; without one the input has to be of floating-point numbers.
"""

from collections.abc import Callable
from typing import Any

from runtime.operators.agreement import computing, one_dtype, require_shape
from runtime.operators.backends import table_of
from runtime.operators.plan import (
    ALL,
    CPU,
    FLOATS,
    PLAIN,
    Plan,
    one_dim,
    require_dtype,
    same_device,
)
from runtime.operators.produce import fresh
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


def short_softmax(name: str) -> Callable[..., Any]:
    """Plain tensors need no plan."""
    call = f"core::{name}"

    def wrap(general: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(self: Tensor, dim: int, dtype: DType | None) -> Any:
            kind, shape = self.dtype, self.shape
            if dtype is not None or kind not in PLAIN or self.device is not CPU:
                return general(self, dim, dtype)
            place = one_dim(call, dim, shape)
            result = fresh(shape, kind, CPU)
            table_of("CPU")[name](result, self, place)
            return result

        return kernel

    return wrap


def short_backward(name: str) -> Callable[..., Any]:
    """Plain tensors that fit need no plan."""
    call = f"core::{name}"

    def wrap(general: Callable[..., Any]) -> Callable[..., Any]:
        def kernel(grad: Tensor, result: Tensor, dim: int) -> Any:
            kind, shape = result.dtype, result.shape
            if (
                kind not in PLAIN
                or grad.dtype is not kind
                or grad.shape != shape
                or grad.device is not CPU
                or result.device is not CPU
            ):
                return general(grad, result, dim)
            place = one_dim(call, dim, shape)
            made = fresh(shape, kind, CPU)
            table_of("CPU")[name](made, grad, result, place)
            return made

        return kernel

    return wrap


def _both(name: str, says: str) -> tuple[Any, ...]:
    return (
        Structured(
            name,
            "Tensor self, int dim, ScalarType? dtype=None",
            plan_softmax,
            fast=short_softmax(name),
            says=says,
            autocast="float32",
        ),
        Structured(
            f"{name}_backward",
            "Tensor grad, Tensor result, int dim",
            plan_backward,
            out=False,
            fast=short_backward(f"{name}_backward"),
        ),
    )


OPERATORS = (
    *_both("softmax", "Exponentials along a dimension, scaled to sum up to 1."),
    *_both("log_softmax", "The logarithm of `softmax`."),
)
