"""Products of matrices on the CPU: BLAS for floats, a blocked kernel for integers.

True only here: the delegation.  `np.matmul` with a given output takes 358 us for 256 by
256 float32 where our best kernel takes 1,283, and 22 ms against 63 ms for 1,024.  BLAS
knows no integers; NumPy's loop for them strides through memory, the one here does not.

Rules: what BLAS takes as it is (one of the two strides is 1, the other no less than the
row) is passed as a view: a transposed operand costs no copy; anything else is copied.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.reduce_axis import grain_of, result
from runtime.kernels.cpu.reduce_layout import Array
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import array_of
from runtime.tensors.tensor import Tensor

# Rows of the right operand that stay in the cache while rows of the output pass: 64
# rows of 256 int64 are 128 KiB.
DEPTH = 64
WIDTH = 256

# What BLAS multiplies.
BLAS = frozenset(("float32", "float64", "complex64", "complex128"))

# output, left operand by rows, right operand by rows, inner size, columns
INTEGERS = "void(T[::1], T[::1], T[::1], int64, int64)"


def integer_rows(out: Any, a: Any, b: Any, depth: int, columns: int) -> None:
    """Rows of a product of integer matrices, modulo the type's range."""
    rows = len(out) // columns
    for i in range(len(out)):
        out[i] = 0
    for column in range(0, columns, WIDTH):
        width = min(WIDTH, columns - column)
        for first in range(0, depth, DEPTH):
            last = min(first + DEPTH, depth)
            for i in range(rows):
                to = out[i * columns + column : i * columns + column + width]
                row = a[i * depth : (i + 1) * depth]
                k = first
                while k + 4 <= last:
                    at = k * columns + column
                    p = b[at : at + width]
                    q = b[at + columns : at + columns + width]
                    r = b[at + 2 * columns : at + 2 * columns + width]
                    s = b[at + 3 * columns : at + 3 * columns + width]
                    f, g, h, m = row[k], row[k + 1], row[k + 2], row[k + 3]
                    for j in range(width):
                        to[j] += (f * p[j] + g * q[j]) + (h * r[j] + m * s[j])
                    k += 4
                while k < last:
                    factor = row[k]
                    right = b[k * columns + column : k * columns + column + width]
                    for j in range(width):
                        to[j] += factor * right[j]
                    k += 1


_INTEGERS = Family("integer_matmul", integer_rows, INTEGERS)


def _readable(a: Array) -> Array:
    """The matrices as BLAS takes them: a view if that is possible."""
    rows, columns = a.strides[-2:]
    size = a.itemsize
    height, width = a.shape[-2:]
    by_rows = columns == size and rows >= width * size
    by_columns = rows == size and columns >= height * size
    return a if by_rows or by_columns else np.ascontiguousarray(a)


def _product(out: Array, a: Array, b: Array) -> None:
    """The product of two matrices, or of as many pairs of them."""
    if out.dtype.kind in "fc":
        np.matmul(_readable(a), _readable(b), out=out)
        return
    if not out.size:
        return
    if out.ndim == 3:
        for k in range(out.shape[0]):
            _product(out[k], a[k], b[k])
        return
    depth, columns = b.shape
    left = np.ascontiguousarray(a).reshape(-1)
    right = np.ascontiguousarray(b).reshape(-1)
    to = out.reshape(-1)
    if to.dtype == np.bool_:
        left, right, to = (x.view(np.uint8) for x in (left, right, to))
    entry = _INTEGERS[to.dtype.name]

    def run(lo: int, hi: int) -> None:
        part = to[lo * columns : hi * columns]
        entry(part, left[lo * depth : hi * depth], right, depth, columns)

    parallel_for(out.shape[0], grain_of(depth * columns), run)


def mm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The product of two matrices."""
    x, y = a._flat, b._flat
    if x is not None and y is not None and out.dtype.name in BLAS:
        to = result(out).reshape(out.shape)
        np.matmul(x.reshape(a.shape), y.reshape(b.shape), to)
        return
    _product(array_of(out), array_of(a), array_of(b))


def bmm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The products of as many pairs of matrices."""
    _product(array_of(out), array_of(a), array_of(b))


def dot(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The sum of products of two vectors."""
    to = result(out)
    _product(to.reshape(1, 1), array_of(a)[None, :], array_of(b)[:, None])


def linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Rows of `x` by the transposed `weight`, plus `bias`."""
    left, right = x._flat, weight._flat
    to = result(out).reshape(out.shape)
    if left is not None and right is not None and out.dtype.name in BLAS:
        np.matmul(left.reshape(x.shape), right.reshape(weight.shape).T, to)
    else:
        _product(to, array_of(x), array_of(weight).T)
    if bias is not None:
        np.add(to, array_of(bias), to)


KERNELS = {"mm": mm, "bmm": bmm, "dot": dot, "linear": linear}
