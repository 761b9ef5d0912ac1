"""The linear layer: every row of the input by the transposed weight, plus the bias.

True only here: how an input with any number of dimensions becomes the rows that the
kernel takes, and the shape of the result.
"""

from collections.abc import Callable
from typing import Any

from runtime.operators.agreement import (
    computing,
    misfit,
    one_dtype,
    require_ndim,
    require_shape,
)
from runtime.operators.backends import table_of
from runtime.operators.plan import (
    CPU,
    NUMBERS,
    PLAIN,
    KernelTable,
    Plan,
    same_device,
)
from runtime.operators.produce import fresh
from runtime.operators.rows import as_rows
from runtime.operators.structured import Structured
from runtime.tensors.tensor import Tensor


def plan_linear(call: str, x: Tensor, weight: Tensor, bias: Tensor | None) -> Plan:
    """(..., in) by (out, in), plus (out)."""
    device = same_device(call, x, weight, bias)
    dtype = one_dtype(
        call,
        NUMBERS,
        "integers, floating-point and complex numbers",
        ("input", x),
        ("weight", weight),
        ("bias", bias),
    )
    require_ndim(call, ("weight", weight), 2)
    features, depth = weight.shape
    if not x.shape or x.shape[-1] != depth:
        raise misfit(
            call,
            "the last dimension of input is not that of weight",
            f"input of shape (..., {depth})",
            ("input", x),
            ("weight", weight),
        )
    require_shape(call, ("bias", bias), (features,))
    outputs = (((*x.shape[:-1], features), dtype),)
    arguments = (x, weight, bias)
    return Plan(outputs, device, arguments, computing(dtype), kernel=_run)


def short_linear(general: Callable[..., Any]) -> Callable[..., Any]:
    """Matrices of one plain dtype in host memory need no plan."""

    def kernel(x: Tensor, weight: Tensor, bias: Tensor | None) -> Any:
        dtype, rows, columns = x.dtype, x.shape, weight.shape
        if (
            dtype in PLAIN
            and weight.dtype is dtype
            and x.device is CPU
            and weight.device is CPU
            and len(rows) == 2
            and len(columns) == 2
            and rows[1] == columns[1]
            and (
                bias is None
                or (
                    bias.dtype is dtype
                    and bias.device is CPU
                    and bias.shape == columns[:1]
                )
            )
        ):
            result = fresh((rows[0], columns[0]), dtype, CPU)
            table_of("CPU")["linear"](result, x, weight, bias)
            return result
        return general(x, weight, bias)

    return kernel


def _run(
    table: KernelTable,
    out: Tensor,
    x: Tensor,
    weight: Tensor,
    bias: Any,
) -> None:
    table["linear"](as_rows(table, out), as_rows(table, x), weight, bias)


OPERATORS = (
    Structured(
        "linear",
        "Tensor input, Tensor weight, Tensor? bias=None",
        plan_linear,
        out=False,
        fast=short_linear,
        says="`input @ weight.T + bias`.",
        autocast="low",
    ),
)
