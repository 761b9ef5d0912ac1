"""Products of matrices on the CPU: BLAS for floats, a blocked kernel for integers.

True only here: the delegation.  `np.matmul` with a given output takes 358 us for 256 by
256 float32 where our best kernel takes 1,283, and 22 ms against 63 ms for 1,024.  BLAS
knows no integers; NumPy's loop for them strides through memory, the one here does not.

Threads: products of floats run on threads of ours, as many as `set_num_threads` says,
see `runtime.kernels.cpu.blas`.

Rules: what BLAS takes as it is (one of the two strides is 1, the other no less than the
row) is passed as a view: a transposed operand costs no copy; anything else is copied.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.blas import GEMM, SMALL, multiply
from runtime.kernels.cpu.gemm import entry
from runtime.kernels.cpu.operand import Geometry, Run, viewer
from runtime.kernels.cpu.reduce_axis import grain_of, result
from runtime.kernels.cpu.reduce_layout import Array
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.schema.codes import DType
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.tensor import Tensor

# Rows of the right operand that stay in the cache while rows of the output pass: 64
# rows of 256 int64 are 128 KiB.
DEPTH = 64
WIDTH = 256

# What BLAS multiplies on one thread up to `SMALL`.
REAL = frozenset((DType.named("float32"), DType.named("float64")))

# What the loop for integers takes without a view.
WHOLE = frozenset(
    DType.named(name) for name in ("uint8", "int8", "int16", "int32", "int64")
)

# What stands where no bias is added.
_NONE = {dtype: np.empty(0, dtype.name) for dtype in REAL}

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


def add_rows(out: Any, row: Any) -> None:
    """Add one row to each."""
    width = len(row)
    if width:
        for i in range(len(out) // width):
            to = out[i * width : i * width + width]
            for j in range(width):
                to[j] += row[j]


_ROWS = Family("add_rows", add_rows, "void(T[::1], T[::1])")

# Elements that a thread adds a row to at least: 10 us.
ADDED = 1 << 16


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
        if out.size and a.shape[-1]:
            multiply(out, _readable(a), _readable(b))
        else:
            out.fill(0)
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
    loop = _INTEGERS[to.dtype.name]

    def run(lo: int, hi: int) -> None:
        part = to[lo * columns : hi * columns]
        loop(part, left[lo * depth : hi * depth], right, depth, columns)

    parallel_for(out.shape[0], grain_of(depth * columns), run)


def _small(out: Tensor, left: Tensor, right: Tensor) -> bool:
    """Whether one thread does it, from arrays as they lie."""
    if left._flat is None or right._flat is None or out._flat is None:
        return False
    rows, columns = out.shape
    return rows > 1 and columns > 1 and 0 < left.shape[1] * rows * columns <= SMALL


def mm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The product of two matrices."""
    dtype = out.dtype
    if _small(out, a, b):
        to, x, y = out._flat, a._flat, b._flat
        rows, inner = a.shape
        columns = b.shape[1]
        if dtype in WHOLE:
            _INTEGERS[dtype.name](to, x, y, inner, columns)
            return
        found = entry(dtype.name) if dtype in REAL else None
        if found is not None:
            gemm, address = found
            gemm(to, x, y, _NONE[dtype], rows, columns, inner, False, address)
            return
    _product(array_of(out), array_of(a), array_of(b))


def _ready_mm(out: Geometry, a: Geometry, b: Geometry) -> Run:
    rows, inner = a.shape
    columns, dtype = b.shape[1], out.dtype
    if _is_small(out, a, b):
        if dtype in WHOLE:
            loop = _INTEGERS[dtype.name]
            return lambda x, y, to: loop(to, x, y, inner, columns)
        found = entry(dtype.name) if dtype in REAL else None
        if found is not None:
            gemm, address = found
            none = _NONE[dtype]
            return lambda x, y, to: gemm(
                to, x, y, none, rows, columns, inner, False, address
            )
    return _ready_product(out, a, b)


def _is_small(out: Geometry, *operands: Geometry) -> bool:
    """As `_small`, of matrices that lie row by row."""
    rows, columns = out.shape
    work = operands[0].shape[1] * rows * columns
    in_order = all(each.strides is None for each in operands)
    return in_order and rows > 1 and columns > 1 and 0 < work <= SMALL


def _ready_product(out: Geometry, a: Geometry, b: Geometry) -> Run:
    shape, left, right = out.shape, viewer(a), viewer(b)
    return lambda x, y, to: _product(to.reshape(shape), left(x), right(y))


def bmm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The products of as many pairs of matrices."""
    _product(array_of(out), array_of(a), array_of(b))


def dot(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The sum of products of two vectors."""
    to = result(out)
    _product(to.reshape(1, 1), array_of(a)[None, :], array_of(b)[:, None])


def linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Rows of `x` by the transposed `weight`, plus `bias`."""
    dtype = out.dtype
    if dtype in REAL and _small(out, x, weight):
        found = entry(dtype.name)
        added = _NONE[dtype] if bias is None else flat_of(bias)
        if found is not None and added is not None:
            gemm, address = found
            to, left, right = out._flat, x._flat, weight._flat
            rows, inner = x.shape
            columns = weight.shape[0]
            gemm(to, left, right, added, rows, columns, inner, True, address)
            return
    table = array_of(out)
    _product(table, array_of(x), array_of(weight).T)
    if bias is not None:
        _add_rows(table, array_of(bias))


def _add_rows(table: Array, values: Array) -> None:
    """Add `values` to every row."""
    name = table.dtype.name
    if name in GEMM and table.size < 2 * ADDED and values.flags.c_contiguous:
        _ROWS[name](table.reshape(-1), values)
        return

    def run(lo: int, hi: int) -> None:
        with np.errstate(all="ignore"):
            np.add(table[lo:hi], values, table[lo:hi])

    parallel_for(len(table), max(1, ADDED // max(1, table.shape[1])), run)


def _ready_linear(
    out: Geometry, x: Geometry, weight: Geometry, bias: Geometry | None
) -> Run:
    (rows, inner), columns = x.shape, weight.shape[0]
    found = entry(out.dtype.name) if out.dtype in REAL else None
    if found and _is_small(out, x, weight) and not (bias and bias.strides):
        gemm, address = found
        none = _NONE[out.dtype]
        if bias is None:
            return lambda a, w, to: gemm(
                to, a, w, none, rows, columns, inner, True, address
            )
        return lambda a, w, b, to: gemm(
            to, a, w, b, rows, columns, inner, True, address
        )
    left, right = viewer(x), viewer(weight)
    if bias is None:
        return lambda a, w, to: _product(to.reshape(rows, columns), left(a), right(w).T)
    added = viewer(bias)

    def run(a: Array, w: Array, b: Array, to: Array) -> None:
        table = to.reshape(rows, columns)
        _product(table, left(a), right(w).T)
        _add_rows(table, added(b))

    return run


KERNELS = {"mm": mm, "bmm": bmm, "dot": dot, "linear": linear}
READY = {"mm": _ready_mm, "bmm": _ready_product, "linear": _ready_linear}
