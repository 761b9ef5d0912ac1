"""Products of matrices on CUDA: mm, bmm, dot, linear, and the tiles of convolution.

A block computes `TILE` by `TILE` elements of a product, each thread `EACH` by `EACH` of
them in registers; tiles of both operands pass through shared memory, `DEPTH` of the
inner size at a time.  It is a baseline without tensor cores: every dtype uses the same
path, and no library is required.  A dot product is a reduction.

Rules:
- device functions of a geometry (a tuple of integers) compute the positions of operands
  and results, so that a convolution is a product of matrices that are never stored; the
  geometry of matrices is an offset, and a step for each of batch, row and column, so
  that a transposed or an expanded one is read in place;
- adjacent threads read adjacent elements: along a row of an operand, or, if `down` is
  set, along a column;
- few tiles with a long inner size are computed in `splits` parts, which are added in a
  tree afterwards; their number depends on the shape only;
- sums have the dtype of the elements; integers wrap around, a sum of booleans is `any`.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.kernels.cuda.copy import flat
from everyorder.runtime.kernels.cuda.device import BLOCK, SIMULATED, cuda, rows
from everyorder.runtime.kernels.cuda.elementwise import Array, index_of, source
from everyorder.runtime.kernels.cuda.jit import Body, LaunchFamily, device
from everyorder.runtime.kernels.cuda.pointwise import KERNELS as POINTWISE
from everyorder.runtime.kernels.cuda.reduce import KERNELS as REDUCE
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import ALL
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]

# The threads of a block form a square; 16 by 16 are BLOCK.
SIDE = 2 if SIMULATED else 16

# A thread computes 4 by 4: 8 loads from shared memory for 16 multiplications.
EACH = 2 if SIMULATED else 4
TILE = SIDE * EACH

# Inner size of the tiles: with 64 by 16 float64 twice, 16 KiB of shared memory.
DEPTH = 4 if SIMULATED else 16

# Tiles in shared memory, and a thread's results.  Adjacent threads may fill a column of
# a tile: one element more in a row spreads them over the banks.
TILES = (DEPTH, TILE + 1)
SQUARE = (EACH, EACH)

# Inner size from which a part justifies a separate block, and the number of tiles from
# which on a device is busy without parts (the multiprocessors of a large one).
PART = 16 * DEPTH
ENOUGH = 4 if SIMULATED else 128

# Numbers of a geometry, as conv2d needs; matmul pads with zeros.
NUMBERS = 16

_SIGNATURE = "T[::1], T[::1], T[::1], T[::1]" + ", int64" * 9 + f", int64*{NUMBERS}"


class Places(NamedTuple):
    """The positions of the elements, by geometry, group, row and column.

    `left` and `right` return an element of an array; `out` returns a position, and
    `bias` that of the number to add.
    """

    left: Scalar
    right: Scalar
    out: Scalar
    bias: Scalar


class Sizes(NamedTuple):
    """A product of (rows, inner) by (inner, columns) in each of `groups`."""

    groups: int
    rows: int
    columns: int
    inner: int


def _adding(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, x, y: total or (x and y)
    if np.issubdtype(kind, np.integer):
        return lambda total, x, y: kind(total + x * y)
    return lambda total, x, y: total + x * y


def family(
    name: str, places: Callable[[Any], Places], keys: tuple[str, ...]
) -> LaunchFamily:
    """Return kernels of products whose elements are at the positions of `places(T)`."""

    def make(kind: Any) -> Body:
        return _body(kind, device(_adding(kind)), *map(device, places(kind)))

    return LaunchFamily(name, make, _SIGNATURE, keys)


def _body(
    kind: Any, plus: Scalar, left: Scalar, right: Scalar, place: Scalar, bias_at: Scalar
) -> Body:
    zero = kind(0)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out,
        a,
        b,
        bias,
        biased,
        groups,
        height,
        width,
        inner,
        splits,
        part,
        left_down,
        right_down,
        geometry,
    ):
        lefts = cuda.shared.array(TILES, kind)
        rights = cuda.shared.array(TILES, kind)
        sums = cuda.local.array(SQUARE, kind)
        thread = cuda.threadIdx.x
        own_row = thread // SIDE
        own_column = thread - own_row * SIDE
        down = (height + TILE - 1) // TILE
        across = (width + TILE - 1) // TILE
        tasks = groups * splits * down * across
        task = cuda.blockIdx.x
        while task < tasks:
            rest = task // across
            column = (task - rest * across) * TILE
            above = rest // down
            row = (rest - above * down) * TILE
            group = above // splits
            split = above - group * splits
            first = split * part
            end = min(first + part, inner)
            for u in range(EACH):
                for v in range(EACH):
                    sums[u, v] = zero
            while first < end:
                at = thread
                while at < TILE * DEPTH:
                    i = at // DEPTH
                    k = at - i * DEPTH
                    if left_down:
                        k = at // TILE
                        i = at - k * TILE
                    value = zero
                    if row + i < height and first + k < end:
                        value = left(a, geometry, group, row + i, first + k)
                    lefts[k, i] = value
                    at += BLOCK
                at = thread
                while at < TILE * DEPTH:
                    k = at // TILE
                    j = at - k * TILE
                    if right_down:
                        j = at // DEPTH
                        k = at - j * DEPTH
                    value = zero
                    if column + j < width and first + k < end:
                        value = right(b, geometry, group, first + k, column + j)
                    rights[k, j] = value
                    at += BLOCK
                cuda.syncthreads()
                for k in range(DEPTH):
                    for u in range(EACH):
                        x = lefts[k, own_row + u * SIDE]
                        for v in range(EACH):
                            y = rights[k, own_column + v * SIDE]
                            sums[u, v] = plus(sums[u, v], x, y)
                cuda.syncthreads()
                first += DEPTH
            for u in range(EACH):
                i = row + own_row + u * SIDE
                for v in range(EACH):
                    j = column + own_column + v * SIDE
                    if i < height and j < width:
                        total = sums[u, v]
                        if biased and split == 0:
                            extra = bias[bias_at(geometry, group, i, j)]
                            total = kind(total + extra)
                        whole = groups * height * width
                        out[split * whole + place(geometry, group, i, j)] = total
            task += cuda.gridDim.x

    return body


def splits_of(sizes: Sizes) -> int:
    """Return the number of parts of the inner size; a function of the shape only."""
    tiles = -(-sizes.rows // TILE) * -(-sizes.columns // TILE) * sizes.groups
    return max(1, min(-(-sizes.inner // PART), ENOUGH // tiles))


def product(
    kernels: LaunchFamily,
    out: Tensor,
    a: Array,
    b: Array,
    sizes: Sizes,
    geometry: Ints,
    bias: Array | None = None,
    *,
    down: tuple[bool, bool] = (False, False),
) -> None:
    """Launch for an output of `groups * rows * columns` elements.

    `down`: True if the neighbours of the left and of the right operand are in columns.
    """
    if not out.numel():
        return
    where, name = index_of(out), out.dtype.name
    splits = splits_of(sizes)
    # Whole tiles, so that parts start where tiles do.
    part = -(-sizes.inner // (splits * DEPTH)) * DEPTH
    tiles = -(-sizes.rows // TILE) * -(-sizes.columns // TILE) * sizes.groups
    target = out
    if splits > 1:
        target = empty_tensor((splits, out.numel()), out.dtype, out.device)
    kernels[name](
        rows(tiles * splits, where),
        *(flat(target), a, b, b if bias is None else bias, int(bias is not None)),
        *(sizes.groups, sizes.rows, sizes.columns, sizes.inner, splits, part),
        *map(int, down),
        geometry + (0,) * (NUMBERS - len(geometry)),
    )
    if splits > 1:
        REDUCE["sum"](out, target, (0,))


def _left(a, geometry, group, i, k):  # type: ignore[no-untyped-def]  # compiled for the device
    """Return row i, column k of a left matrix."""
    at = geometry[2] + group * geometry[3]
    return a[at + i * geometry[4] + k * geometry[5]]


def _right(b, geometry, group, k, j):  # type: ignore[no-untyped-def]  # as above
    """Return row k, column j of a right matrix."""
    at = geometry[6] + group * geometry[7]
    return b[at + k * geometry[8] + j * geometry[9]]


def _out(geometry, group, i, j):  # type: ignore[no-untyped-def]  # as above
    """Return the position of a result, in row-major order."""
    return (group * geometry[0] + i) * geometry[1] + j


def _bias(geometry, group, i, j):  # type: ignore[no-untyped-def]  # as above
    """Return the position of a column's bias."""
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
    """Compute the product of two matrices."""
    left, right = source(a), source(b)
    _multiply(
        out,
        Sizes(1, a.shape[0], b.shape[1], a.shape[1]),
        (left.array, left.offset, (0, *left.strides)),
        (right.array, right.offset, (0, *right.strides)),
    )


def bmm(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Compute the products of equally many pairs of matrices."""
    sizes = Sizes(a.shape[0], a.shape[1], b.shape[2], a.shape[2])
    _multiply(out, sizes, source(a), source(b))


def dot(out: Tensor, a: Tensor, b: Tensor) -> None:
    """Compute the sum of products of two vectors."""
    products = empty_tensor(a.shape, a.dtype, a.device)
    POINTWISE["mul"](products, a, b)
    REDUCE["sum"](out, products, (0,))


def linear(out: Tensor, x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    """Compute rows of `x` by the transposed `weight`, plus `bias`."""
    left, right = source(x), source(weight)
    by_row, by_column = right.strides
    _multiply(
        out,
        Sizes(1, x.shape[0], weight.shape[0], x.shape[1]),
        (left.array, left.offset, (0, *left.strides)),
        (right.array, right.offset, (0, by_column, by_row)),
        None if bias is None else flat(bias),
    )


KERNELS: dict[str, Callable[..., Any]] = {
    "mm": mm,
    "bmm": bmm,
    "dot": dot,
    "linear": linear,
}
