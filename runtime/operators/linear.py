"""The linear layer: every row of the input by the transposed weight, plus the bias.

True only here: how an input with any number of dimensions becomes the rows that the
kernel takes, and the shape of the result.
"""

from typing import Any

from runtime.operators.agreement import (
    computing,
    misfit,
    one_dtype,
    require_ndim,
    require_shape,
)
from runtime.operators.plan import (
    NUMBERS,
    KernelTable,
    Plan,
    same_device,
)
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
    kernel = None if len(x.shape) == 2 else _run
    arguments = (x, weight, bias)
    return Plan(outputs, device, arguments, computing(dtype), kernel=kernel)


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
        remembers=True,
        says="`input @ weight.T + bias`.",
        autocast="low",
    ),
)
