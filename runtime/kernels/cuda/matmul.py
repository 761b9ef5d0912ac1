"""Products of matrices on CUDA: mm, bmm, dot and linear.

True only here: the geometry of a product: an offset, and a step for each of batch, row
and column, for both operands; so a transposed or an expanded one is read as it lies.

How it works: see `runtime.kernels.cuda.tile`.  A dot product is a reduction.
"""

from collections.abc import Callable
from typing import Any

from runtime.kernels.cuda.binary import KERNELS as BINARY
from runtime.kernels.cuda.operand import Array, flat, source
from runtime.kernels.cuda.reduce import KERNELS as REDUCE
from runtime.kernels.cuda.tile import Places, Sizes, family, product
from runtime.kernels.cuda.unary import ALL
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]


def _left(a, geometry, group, i, k):  # type: ignore[no-untyped-def]  # compiled for the device
    """Row i, column k of a left matrix."""
    at = geometry[2] + group * geometry[3]
    return a[at + i * geometry[4] + k * geometry[5]]


def _right(b, geometry, group, k, j):  # type: ignore[no-untyped-def]  # as above
    """Row k, column j of a right matrix."""
    at = geometry[6] + group * geometry[7]
    return b[at + k * geometry[8] + j * geometry[9]]


def _out(geometry, group, i, j):  # type: ignore[no-untyped-def]  # as above
    """Results lie in order."""
    return (group * geometry[0] + i) * geometry[1] + j


def _bias(geometry, group, i, j):  # type: ignore[no-untyped-def]  # as above
    """A number for each column."""
    return j


def _places(kind: Any) -> Places:
    return Places(_left, _right, _out, _bias)


_PRODUCT = family("matmul", _places, ALL)


def _multiply(
    out: Tensor,
    sizes: Sizes,
    left: tuple[Array, int, Ints],
    right: tuple[Array, int, Ints],
    bias: Array | None = None,
) -> None:
    a, a_at, a_by = left
    b, b_at, b_by = right
    geometry = (sizes.rows, sizes.columns, a_at, *a_by, b_at, *b_by)
    down = a_by[1] == 1 != a_by[2], b_by[1] == 1 != b_by[2]
    product(_PRODUCT, out, a, b, sizes, geometry, bias, down=down)


def mm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The product of two matrices."""
    left, right = source(a), source(b)
    _multiply(
        out,
        Sizes(1, a.shape[0], b.shape[1], a.shape[1]),
        (left.array, left.offset, (0, *left.strides)),
        (right.array, right.offset, (0, *right.strides)),
    )


def bmm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The products of as many pairs of matrices."""
    sizes = Sizes(a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    _multiply(out, sizes, source(a), source(b))


def dot(out: Tensor, a: Tensor, b: Tensor) -> None:
    """The sum of products of two vectors."""
    products = empty_tensor(a.shape, a.dtype, a.device)
    BINARY["mul"](products, a, b)
    REDUCE["sum"](out, products, (0,))


def linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Rows of `x` by the transposed `weight`, plus `bias`."""
    left, right = source(x), source(weight)
    by_row, by_column = right.strides
    _multiply(
        out,
        Sizes(1, x.shape[0], weight.shape[0], x.shape[1]),
        (left.array, left.offset, (0, *left.strides)),
        (right.array, right.offset, (0, by_column, by_row)),
        None if bias is None else flat(bias),
    )


KERNELS: dict[str, Callable[..., None]] = {
    "mm": mm,
    "bmm": bmm,
    "dot": dot,
    "linear": linear,
}
