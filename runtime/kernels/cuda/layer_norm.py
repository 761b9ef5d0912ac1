"""Layer normalisation over the last elements on CUDA, and its gradient.

A block takes a row and reads it three times: mean, squares off the mean, result; so
means far from zero cost no digits.

Rules: `mean` and `rstd` have one element for each row.  The gradients of weight and
bias are sums over rows: a thread adds `TALL` rows of one column, and what that leaves
is summed as columns, in an order that does not depend on the device.
"""

from collections.abc import Callable
from typing import Any

from runtime.kernels.cuda.copy import fill, flat
from runtime.kernels.cuda.device import BLOCK, running
from runtime.kernels.cuda.elementwise import index_of
from runtime.kernels.cuda.jit import Blocks, Elements, block_sum, reals
from runtime.kernels.cuda.reduce import KERNELS as REDUCE
from runtime.kernels.cuda.reduce import TALL
from runtime.kernels.math.complex import Scalar
from runtime.kernels.math.scalars import FLOATS
from runtime.tensors.construction import empty_tensor
from runtime.tensors.tensor import Tensor


def _forward(kind: Any) -> Scalar:
    zero, one, sqrt = kind(0), kind(1), reals(kind).sqrt

    def normalise(  # type: ignore[no-untyped-def]  # compiled for the device
        row, shared, out, means, rstds, x, weight, bias, weighted, shifted, inner, eps
    ):
        thread = running.threadIdx.x
        base = row * inner
        total = zero
        i = thread
        while i < inner:
            total += x[base + i]
            i += BLOCK
        mean = kind(block_sum(shared, total) / kind(inner))
        total = zero
        i = thread
        while i < inner:
            apart = x[base + i] - mean
            total += apart * apart
            i += BLOCK
        variance = kind(block_sum(shared, total) / kind(inner))
        rstd = kind(one / sqrt(kind(variance + kind(eps))))
        if thread == 0:
            means[row] = mean
            rstds[row] = rstd
        i = thread
        while i < inner:
            value = (x[base + i] - mean) * rstd
            if weighted:
                value = value * weight[i]
            if shifted:
                value = value + bias[i]
            out[base + i] = value
            i += BLOCK

    return normalise


def _input(kind: Any) -> Scalar:
    zero = kind(0)

    def slope_of(  # type: ignore[no-untyped-def]  # as above
        row, shared, out, grad, x, means, rstds, weight, weighted, inner
    ):
        thread = running.threadIdx.x
        base = row * inner
        mean, rstd = means[row], rstds[row]
        plain, along = zero, zero
        i = thread
        while i < inner:
            scaled = grad[base + i]
            if weighted:
                scaled = scaled * weight[i]
            plain += scaled
            along += scaled * ((x[base + i] - mean) * rstd)
            i += BLOCK
        shift = kind(block_sum(shared, plain) / kind(inner))
        slope = kind(block_sum(shared, along) / kind(inner))
        i = thread
        while i < inner:
            scaled = grad[base + i]
            if weighted:
                scaled = scaled * weight[i]
            normal = (x[base + i] - mean) * rstd
            out[base + i] = (scaled - shift - normal * slope) * rstd
            i += BLOCK

    return slope_of


def _affine(kind: Any) -> Scalar:
    zero = kind(0)

    def element(  # type: ignore[no-untyped-def]  # as above
        task, by_weight, by_bias, grad, x, means, rstds, count, inner, run
    ):
        block = task // inner
        column = task - block * inner
        row = block * run
        end = min(row + run, count)
        scale, shift = zero, zero
        while row < end:
            g = grad[row * inner + column]
            scale += g * ((x[row * inner + column] - means[row]) * rstds[row])
            shift += g
            row += 1
        by_weight[task] = scale
        by_bias[task] = shift

    return element


_FORWARD = Blocks(
    "layer_norm", _forward, "T[::1], " * 6 + "int64, int64, int64, float64", FLOATS
)
_INPUT = Blocks("layer_norm_input", _input, "T[::1], " * 6 + "int64, int64", FLOATS)
_AFFINE = Elements(
    "layer_norm_affine", _affine, "T[::1], " * 6 + "int64, int64, int64", FLOATS
)


def layer_norm(
    out: Tensor,
    mean: Tensor,
    rstd: Tensor,
    x: Tensor,
    inner: int,
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> None:
    """Normalise the last `inner` elements; scale by `weight`, shift by `bias`."""
    count = mean.numel()
    if not inner:
        fill(mean, float("nan"))
        fill(rstd, float("nan"))
        return
    if not count:
        return
    array = flat(x)
    _FORWARD.run(
        *(out.dtype.name, count, index_of(out)),
        *(flat(out), flat(mean), flat(rstd), array),
        array if weight is None else flat(weight),
        array if bias is None else flat(bias),
        *(int(weight is not None), int(bias is not None), inner, float(eps)),
    )


def layer_norm_backward(
    dx: Tensor | None,
    dw: Tensor | None,
    db: Tensor | None,
    grad: Tensor,
    x: Tensor,
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    inner: int,
) -> None:
    """The gradients of input, weight and bias that are asked for."""
    count, name, where = mean.numel(), x.dtype.name, index_of(x)
    if not count or not inner:
        for gradient in (dw, db):
            if gradient is not None:
                fill(gradient, 0)
        return
    read = (flat(grad), flat(x), flat(mean), flat(rstd))
    if dx is not None:
        scale = read[1] if weight is None else flat(weight)
        given = flat(dx), *read, scale, int(weight is not None), inner
        _INPUT.run(name, count, where, *given)
    if dw is None and db is None:
        return
    blocks = -(-count // TALL)
    # What one block of rows gives is the sum; what nobody asked for is thrown away.
    by_weight, by_bias = (
        wanted
        if blocks == 1 and wanted is not None
        else empty_tensor((blocks, inner), x.dtype, x.device)
        for wanted in (dw, db)
    )
    sums = flat(by_weight), flat(by_bias)
    _AFFINE.run(name, blocks * inner, where, *sums, *read, count, inner, TALL)
    for wanted, partial in ((dw, by_weight), (db, by_bias)):
        if wanted is not None and wanted is not partial:
            REDUCE["sum"](wanted, partial, (0,))


KERNELS: dict[str, Callable[..., None]] = {
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
}
