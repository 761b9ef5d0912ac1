"""Reductions, scans and normalisations, each against NumPy's and torch's `out=`."""

from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS
from tests.bench.case import Build, Case, blank, rows_of, values, with_torch
from tests.bench.compare import Trial

# As in torch's modules.
EPSILON = 1e-5


def reduced(name: str, numpy: str, torch_name: str, axis: int | None) -> Build:
    """A reduction of a matrix over all its elements, or over one axis."""

    def build(count: int, dtype: str) -> Trial:
        rows, line = rows_of(count)
        x = values(rows, line, dtype=dtype)
        dims = (0, 1) if axis is None else (axis,)
        to = blank(
            *((), (line,), (rows,))[0 if axis is None else axis + 1], dtype=dtype
        )
        kernel, theirs = KERNELS[name], getattr(np, numpy)

        def of_torch(torch: Any) -> Any:
            function = getattr(torch, torch_name)
            return lambda: function(x.t, dims, out=to.t)

        return Trial(
            lambda: kernel(to.o, x.o, dims),
            lambda: theirs(x.n, axis=axis, out=to.n),
            with_torch(of_torch),
            (to,),
        )

    return build


def cumsum(count: int, dtype: str) -> Trial:
    x, to = values(count, dtype=dtype), blank(count, dtype=dtype)
    kernel = KERNELS["cumsum"]
    return Trial(
        lambda: kernel(to.o, x.o, 0),
        lambda: np.cumsum(x.n, out=to.n),
        with_torch(lambda torch: lambda: torch.cumsum(x.t, 0, out=to.t)),
        (to,),
    )


def softmax(count: int, dtype: str) -> Trial:
    rows, line = rows_of(count)
    x, to = values(rows, line, dtype=dtype), blank(rows, line, dtype=dtype)
    edge, kernel = np.zeros((rows, 1), dtype), KERNELS["softmax"]

    def numpy() -> None:
        np.max(x.n, axis=1, keepdims=True, out=edge)
        np.subtract(x.n, edge, to.n)
        np.exp(to.n, to.n)
        np.sum(to.n, axis=1, keepdims=True, out=edge)
        np.divide(to.n, edge, to.n)

    return Trial(
        lambda: kernel(to.o, x.o, 1),
        numpy,
        with_torch(lambda torch: lambda: torch.softmax(x.t, 1, out=to.t)),
        (to,),
    )


def layer_norm(count: int, dtype: str) -> Trial:
    """Torch's has no `out=`; it makes its outputs, as its callers have it."""
    rows, line = rows_of(count)
    x, to = values(rows, line, dtype=dtype), blank(rows, line, dtype=dtype)
    mean, rstd = blank(rows, dtype=dtype), blank(rows, dtype=dtype)
    weight, bias = values(line, dtype=dtype), values(line, dtype=dtype)
    kernel = KERNELS["layer_norm"]

    def of_torch(torch: Any) -> Any:
        shape = [line]
        return lambda: torch.native_layer_norm(x.t, shape, weight.t, bias.t, EPSILON)

    return Trial(
        lambda: kernel(to.o, mean.o, rstd.o, x.o, line, weight.o, bias.o, EPSILON),
        None,
        with_torch(of_torch),
    )


CASES = (
    Case("sum, all", reduced("sum", "sum", "sum", None), relative=1e-2),
    Case("sum, axis 0", reduced("sum", "sum", "sum", 0), relative=1e-2),
    Case("sum, axis 1", reduced("sum", "sum", "sum", 1), relative=1e-2),
    Case("mean, all", reduced("mean", "mean", "mean", None)),
    Case("max, all", reduced("max", "max", "amax", None)),
    Case("max, axis 1", reduced("max", "max", "amax", 1)),
    Case("cumsum", cumsum, relative=1e-2),
    Case("softmax", softmax),
    Case("layer_norm", layer_norm, always=True),
)
