"""Softmax and its logarithm along one dimension on CUDA, and their gradients.

True only here: a row is read three times: greatest element, sum of exponentials,
result; the exponentials are made twice rather than stored and read again.

Rules
- the dimension is seen as (outer, length, inner); where its elements are neighbours
  and many, a block takes a row, and threads join in a tree in shared memory; else a
  thread takes a row by itself, so that neighbours read neighbours;
- the greatest element may miss a NaN, which then comes back through the sum; a row of
  -inf gives NaN, as inf - inf is.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.reduce_axis import around
from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.block import block_greatest, block_sum
from runtime.kernels.cuda.jit import Body, Family, Maker
from runtime.kernels.cuda.launch import rows, spread
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.reduce import SHORT
from runtime.kernels.cuda.toolkit import BLOCK, cuda
from runtime.kernels.cuda.unary import FLOATS
from runtime.tensors.tensor import Tensor

_I = np.int64


def _rows(logarithm: bool) -> Maker:
    def make(kind: Any) -> Body:
        zero, one = kind(0), kind(1)
        exp, log = scalars.exp, scalars.log

        def body(out, x, tasks, length):  # type: ignore[no-untyped-def]  # compiled for the device
            shared = cuda.shared.array(BLOCK, kind)
            thread = cuda.threadIdx.x
            row = cuda.blockIdx.x
            while row < tasks:
                base = row * length
                peak = x[base]
                i = thread
                while i < length:
                    value = x[base + i]
                    peak = value if value > peak else peak
                    i += BLOCK
                peak = block_greatest(shared, peak)
                total = zero
                i = thread
                while i < length:
                    total += exp(x[base + i] - peak)
                    i += BLOCK
                total = block_sum(shared, total)
                i = thread
                if logarithm:
                    shift = log(total)
                    while i < length:
                        out[base + i] = (x[base + i] - peak) - shift
                        i += BLOCK
                else:
                    scale = one / total
                    while i < length:
                        out[base + i] = exp(x[base + i] - peak) * scale
                        i += BLOCK
                row += cuda.gridDim.x

        return body

    return make


def _columns(logarithm: bool) -> Maker:
    def make(kind: Any) -> Body:
        zero, one = kind(0), kind(1)
        exp, log = scalars.exp, scalars.log

        def body(out, x, tasks, length, inner):  # type: ignore[no-untyped-def]  # as above
            task = cuda.grid(1)
            step = cuda.gridsize(1)
            while task < tasks:
                outer = task // inner
                base = _I(outer * length * inner + (task - outer * inner))
                end = base + length * inner
                peak = x[base]
                at = base
                while at < end:
                    value = x[at]
                    peak = value if value > peak else peak
                    at += inner
                total = zero
                at = base
                while at < end:
                    total += exp(x[at] - peak)
                    at += inner
                at = base
                if logarithm:
                    shift = log(total)
                    while at < end:
                        out[at] = (x[at] - peak) - shift
                        at += inner
                else:
                    scale = one / total
                    while at < end:
                        out[at] = exp(x[at] - peak) * scale
                        at += inner
                task += step

        return body

    return make


def _back_rows(logarithm: bool) -> Maker:
    def make(kind: Any) -> Body:
        zero, exp = kind(0), scalars.exp

        def body(out, grad, result, tasks, length):  # type: ignore[no-untyped-def]  # as above
            shared = cuda.shared.array(BLOCK, kind)
            thread = cuda.threadIdx.x
            row = cuda.blockIdx.x
            while row < tasks:
                base = row * length
                total = zero
                i = thread
                while i < length:
                    if logarithm:
                        total += grad[base + i]
                    else:
                        total += grad[base + i] * result[base + i]
                    i += BLOCK
                total = block_sum(shared, total)
                i = thread
                while i < length:
                    g, y = grad[base + i], result[base + i]
                    if logarithm:
                        out[base + i] = g - exp(y) * total
                    else:
                        out[base + i] = (g - total) * y
                    i += BLOCK
                row += cuda.gridDim.x

        return body

    return make


def _back_columns(logarithm: bool) -> Maker:
    def make(kind: Any) -> Body:
        zero, exp = kind(0), scalars.exp

        def body(  # type: ignore[no-untyped-def]  # as above
            out, grad, result, tasks, length, inner
        ):
            task = cuda.grid(1)
            step = cuda.gridsize(1)
            while task < tasks:
                outer = task // inner
                base = _I(outer * length * inner + (task - outer * inner))
                end = base + length * inner
                total = zero
                at = base
                while at < end:
                    if logarithm:
                        total += grad[at]
                    else:
                        total += grad[at] * result[at]
                    at += inner
                at = base
                while at < end:
                    if logarithm:
                        out[at] = grad[at] - exp(result[at]) * total
                    else:
                        out[at] = (grad[at] - total) * result[at]
                    at += inner
                task += step

        return body

    return make


def _kernel(name: str, by_rows: Maker, by_columns: Maker, arrays: int) -> Any:
    """A kernel of an output, `arrays` inputs of its shape, and a dimension."""
    signature = "T[::1], " * (arrays + 1) + "int64, int64"
    of_rows = Family(f"{name}_rows", by_rows, signature, FLOATS)
    of_columns = Family(f"{name}_columns", by_columns, signature + ", int64", FLOATS)

    def kernel(out: Tensor, *given: Any) -> None:
        *tensors, dim = given
        if not out.numel():
            return
        at, kind = index_of(out), out.dtype.name
        outer, length, inner = around(out.shape, dim)
        read = [flat(tensor) for tensor in tensors]
        if inner == 1 and length >= SHORT:
            of_rows[kind](rows(outer, at), flat(out), *read, outer, length)
            return
        tasks = outer * inner
        shape = spread(tasks, at)
        of_columns[kind](shape, flat(out), *read, tasks, length, inner)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


KERNELS: dict[str, Callable[..., None]] = {
    "softmax": _kernel("softmax", _rows(False), _columns(False), 1),
    "log_softmax": _kernel("log_softmax", _rows(True), _columns(True), 1),
    "softmax_backward": _kernel(
        "softmax_backward", _back_rows(False), _back_columns(False), 2
    ),
    "log_softmax_backward": _kernel(
        "log_softmax_backward", _back_rows(True), _back_columns(True), 2
    ),
}
