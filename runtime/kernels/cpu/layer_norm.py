"""Layer normalisation over the last elements on the CPU, and its gradient.

A row is swept three times while it is in the cache: mean, squared differences from the
mean, result.  Sums are added leaf by leaf to a float64, and the second sweep computes
the error of the first mean (Chan, Golub, LeVeque 1983); so neither long rows nor means
far from zero cost digits.

Rules: `mean` and `rstd` have one element for each row.  The gradients of weight and
bias are sums over rows: block by block of rows, the blocks again as columns of a sum,
in an order that does not depend on threads.
"""

from collections.abc import Callable
from functools import lru_cache
from math import prod, sqrt
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.axis import REMEMBERED, by_rows, grain_of, result
from everyorder.runtime.kernels.cpu.reduce import SUM, planned
from everyorder.runtime.kernels.math import like
from everyorder.runtime.kernels.shared.operands import Operand, Run, dense, in_rows
from everyorder.runtime.kernels.shared.reduction_passes import (
    LEAF,
    Array,
    ReductionPass,
)
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.tensor import Tensor

# Rows that are added to one row of partial gradients: few enough for threads to share
# work, enough for the partial rows to be small compared with the input.
BLOCK = 64

# input, weight, bias, output, mean, rstd, elements of a row, epsilon
FORWARD = "void(T[::1], T[::1], T[::1], T[::1], T[::1], T[::1], int64, float64)"

# input's gradient, gradient, input, mean, rstd, weight, elements of a row
INPUT = "void(T[::1], T[::1], T[::1], T[::1], T[::1], T[::1], int64)"

# partial gradients of weight and bias, gradient, input, mean, rstd, first block, row
AFFINE = "void(T[::1], T[::1], T[::1], T[::1], T[::1], T[::1], int64, int64)"


def forward_of(affine: bool) -> Any:
    """Return the body that normalises rows; `affine` ones are scaled and shifted."""

    def body(
        x: Any,
        weight: Any,
        bias: Any,
        out: Any,
        means: Any,
        rstds: Any,
        inner: int,
        eps: float,
    ) -> None:
        for k in range(len(means)):
            row = x[k * inner : (k + 1) * inner]
            to = out[k * inner : (k + 1) * inner]
            total = 0.0
            for first in range(0, inner, LEAF):
                part = row[first : first + LEAF]
                block_sum = like(row[0], 0.0)
                for i in range(len(part)):
                    block_sum += part[i]
                total += block_sum
            mean = like(row[0], total / inner)
            squares, rest = 0.0, 0.0
            for first in range(0, inner, LEAF):
                part = row[first : first + LEAF]
                block_sum, more = like(row[0], 0.0), like(row[0], 0.0)
                for i in range(len(part)):
                    off = part[i] - mean
                    block_sum += off * off
                    more += off
                squares += block_sum
                rest += more
            variance = (squares - rest * rest / inner) / inner
            variance = 0.0 if variance < 0.0 else variance  # NaN stays
            rstd = like(row[0], 1.0 / sqrt(variance + eps))
            mean = like(row[0], mean + rest / inner)
            means[k] = mean
            rstds[k] = rstd
            for i in range(inner):
                normal = (row[i] - mean) * rstd
                to[i] = normal * weight[i] + bias[i] if affine else normal

    return body


def input_of(affine: bool) -> Any:
    """Return the body of the gradient of rows; `affine` ones were scaled."""

    def body(
        out: Any, grad: Any, x: Any, means: Any, rstds: Any, weight: Any, inner: int
    ) -> None:
        for k in range(len(means)):
            g = grad[k * inner : (k + 1) * inner]
            row = x[k * inner : (k + 1) * inner]
            to = out[k * inner : (k + 1) * inner]
            mean, rstd = means[k], rstds[k]
            plain, along = 0.0, 0.0
            for first in range(0, inner, LEAF):
                p = g[first : first + LEAF]
                q = row[first : first + LEAF]
                w = weight[first : first + LEAF]
                block_sum, more = like(mean, 0.0), like(mean, 0.0)
                for i in range(len(p)):
                    scaled = p[i] * w[i] if affine else p[i]
                    block_sum += scaled
                    more += scaled * ((q[i] - mean) * rstd)
                plain += block_sum
                along += more
            shift = like(mean, plain / inner)
            slope = like(mean, along / inner)
            for i in range(inner):
                scaled = g[i] * weight[i] if affine else g[i]
                to[i] = (scaled - shift - (row[i] - mean) * rstd * slope) * rstd

    return body


def affine_gradients(
    by_weight: Any,
    by_bias: Any,
    grad: Any,
    x: Any,
    means: Any,
    rstds: Any,
    task: int,
    inner: int,
) -> None:
    """Compute sums over blocks of rows of `grad * normal` and of `grad`."""
    for b in range(len(by_weight) // inner):
        dw = by_weight[b * inner : (b + 1) * inner]
        db = by_bias[b * inner : (b + 1) * inner]
        for i in range(inner):
            dw[i] = 0
            db[i] = 0
        first = (task + b) * BLOCK
        for k in range(first, min(first + BLOCK, len(means))):
            g = grad[k * inner : (k + 1) * inner]
            row = x[k * inner : (k + 1) * inner]
            mean, rstd = means[k], rstds[k]
            for i in range(inner):
                dw[i] += g[i] * ((row[i] - mean) * rstd)
                db[i] += g[i]


_FORWARD = {
    False: Family("layer_norm_plain", forward_of(False), FORWARD, fastmath=True),
    True: Family("layer_norm_affine", forward_of(True), FORWARD, fastmath=True),
}
_INPUT = {
    False: Family("layer_norm_input_plain", input_of(False), INPUT, fastmath=True),
    True: Family("layer_norm_input_affine", input_of(True), INPUT, fastmath=True),
}
_AFFINE = Family("layer_norm_gradients", affine_gradients, AFFINE)


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
    parameters = [dense(each) for each in (weight, bias) if each is not None]
    run = _ready(out, mean, rstd, x, inner, weight, bias, eps)
    run(dense(x), *parameters, result(out), result(mean), result(rstd))


def _ready(
    out: Operand,
    mean: Operand,
    rstd: Operand,
    x: Operand,
    inner: int,
    weight: Operand | None,
    bias: Operand | None,
    eps: float,
) -> Run:
    if not inner:
        return _of_nothing
    affine = weight is not None or bias is not None
    entry = _FORWARD[affine][out.dtype.name]
    form, sizes = numpy_dtype(out.dtype), (inner, 0, 0, inner, 1, 1)
    normalise = by_rows(entry, prod(mean.shape), grain_of(inner), sizes, inner, eps)
    if weight is not None and bias is not None:
        return normalise
    if weight is not None:
        zeros = np.zeros(inner, form)
        return lambda a, w, to, means, rstds: normalise(a, w, zeros, to, means, rstds)
    if bias is not None:
        ones = np.ones(inner, form)
        return lambda a, b, to, means, rstds: normalise(a, ones, b, to, means, rstds)

    def plain(a: Array, to: Array, means: Array, rstds: Array) -> None:
        row = a[:inner]
        normalise(a, row, row, to, means, rstds)

    return plain


def _of_nothing(*arrays: Array) -> None:
    for each in arrays[-2:]:
        each.fill(np.nan)


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
    """Write those gradients of input, weight and bias that are not None."""
    g, a, means, rstds = dense(grad), dense(x), dense(mean), dense(rstd)
    if dx is not None and a.size:
        _input_gradient(dx, g, a, means, rstds, weight, inner)
    if dw is not None or db is not None:
        _sum_gradients(dw, db, x.dtype.name, g, a, means, rstds, inner)


def _input_gradient(
    dx: Tensor,
    g: Array,
    a: Array,
    means: Array,
    rstds: Array,
    weight: Tensor | None,
    inner: int,
) -> None:
    to, name = result(dx), dx.dtype.name
    w = a[:inner] if weight is None else dense(weight)
    _input_run(name, weight is not None, means.size, inner)(to, g, a, means, rstds, w)


@lru_cache(REMEMBERED)
def _input_run(name: str, affine: bool, count: int, inner: int) -> Run:
    sizes = inner, inner, inner, 1, 1, 0
    return by_rows(_INPUT[affine][name], count, grain_of(inner), sizes, inner)


def _sum_gradients(
    dw: Tensor | None,
    db: Tensor | None,
    name: str,
    g: Array,
    a: Array,
    means: Array,
    rstds: Array,
    inner: int,
) -> None:
    blocks = -(-means.size // BLOCK)
    if not blocks or not inner:
        for gradient in (dw, db):
            if gradient is not None:
                result(gradient).fill(0)
        return
    once = blocks == 1
    size = blocks * inner
    by_weight = result(dw) if once and dw is not None else np.empty(size, a.dtype)
    by_bias = result(db) if once and db is not None else np.empty(size, a.dtype)
    entry = _AFFINE[name]

    def run(lo: int, hi: int) -> None:
        part = slice(lo * inner, hi * inner)
        entry(by_weight[part], by_bias[part], g, a, means, rstds, lo, inner)

    if once:
        entry(by_weight, by_bias, g, a, means, rstds, 0, inner)
        return
    parallel_for(blocks, grain_of(BLOCK * inner), run)
    plan = (ReductionPass(1, 0, blocks, inner, inner),)
    sums = planned(SUM, name, a.dtype, plan)
    for gradient, partial in ((dw, by_weight), (db, by_bias)):
        if gradient is not None:
            sums(partial, result(gradient))


KERNELS: dict[str, Callable[..., None]] = {
    "layer_norm": layer_norm,
    "layer_norm_backward": layer_norm_backward,
}
READY = {"layer_norm": in_rows(_ready, outputs=3)}
