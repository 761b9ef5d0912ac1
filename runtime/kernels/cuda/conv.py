"""conv2d, max_pool2d, and their gradients on CUDA: windows over images.

A convolution is a product of matrices (im2col) that are never stored: the elements of
the column matrix are computed while tiles are filled (`runtime.kernels.cuda.matmul`,
also for the order of sums).  For each group, with a tap (ky, kx):

- forward: (filters, channels x taps) by (channels x taps, images x results);
- gradient of the input: (channels, filters x taps) by (filters x taps, images x
  elements), where a tap reads the gradient at (y + padding - ky * dilation) / stride if
  that is an integer inside of it;
- gradient of the weights: (filters, images x results) by (images x results, channels x
  taps).

Floating-point dtypes only; the padding consists of zeros, which are multiplied like
other elements.

In pooling, a thread computes one result.  It reads the window's elements row by row; a
greater one replaces the current maximum, and so does every NaN.  The index of the
maximum is its flat position in its height x width plane.  Windows may overlap, so the
gradient adds, in the order of the results (`runtime.kernels.cuda.gather`).
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cuda.copy import fill, flat, require_indices
from everyorder.runtime.kernels.cuda.elementwise import index_of
from everyorder.runtime.kernels.cuda.gather import add_targets
from everyorder.runtime.kernels.cuda.jit import Elements, device
from everyorder.runtime.kernels.cuda.matmul import Places, Sizes, family, product
from everyorder.runtime.kernels.cuda.memory import device_array
from everyorder.runtime.kernels.cuda.reduce import KERNELS as REDUCE
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import FLOATS, REALS
from everyorder.runtime.tensors.tensor import Tensor

Pair = tuple[int, int]
Ints = tuple[int, ...]

# The positions of the geometry's numbers: channels of the input and the output, and of
# one group of either; sizes of the input, the window and the results.
CHANNELS, FILTERS, OWN_CHANNELS, OWN_FILTERS = 0, 1, 2, 3
HEIGHT, WIDTH, TAPS_Y, TAPS_X, ROWS, COLUMNS = 4, 5, 6, 7, 8, 9
STRIDE_Y, STRIDE_X, PAD_Y, PAD_X, STEP_Y, STEP_X = 10, 11, 12, 13, 14, 15


def _column_maker(kind: Any) -> Any:
    zero = kind(0)

    @device
    def column(x, g, group, tap, spot):  # type: ignore[no-untyped-def]  # compiled for the device
        """Return the element that a tap of a channel reads for a result of an image."""
        line = tap // g[TAPS_X]
        step_x = tap - line * g[TAPS_X]
        channel = line // g[TAPS_Y]
        step_y = line - channel * g[TAPS_Y]
        line = spot // g[COLUMNS]
        to_x = spot - line * g[COLUMNS]
        image = line // g[ROWS]
        to_y = line - image * g[ROWS]
        from_y = to_y * g[STRIDE_Y] - g[PAD_Y] + step_y * g[STEP_Y]
        from_x = to_x * g[STRIDE_X] - g[PAD_X] + step_x * g[STEP_X]
        if from_y < 0 or from_y >= g[HEIGHT] or from_x < 0 or from_x >= g[WIDTH]:
            return zero
        plane = image * g[CHANNELS] + group * g[OWN_CHANNELS] + channel
        return x[(plane * g[HEIGHT] + from_y) * g[WIDTH] + from_x]

    return column


def _forward(kind: Any) -> Places:
    column = _column_maker(kind)

    def left(w, g, group, i, k):  # type: ignore[no-untyped-def]  # as above
        taps = g[OWN_CHANNELS] * g[TAPS_Y] * g[TAPS_X]
        return w[(group * g[OWN_FILTERS] + i) * taps + k]

    def right(x, g, group, k, j):  # type: ignore[no-untyped-def]  # as above
        return column(x, g, group, k, j)

    def out(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        area = g[ROWS] * g[COLUMNS]
        image = j // area
        plane = image * g[FILTERS] + group * g[OWN_FILTERS] + i
        return plane * area + (j - image * area)

    def bias(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        return group * g[OWN_FILTERS] + i

    return Places(left, right, out, bias)


def _input(kind: Any) -> Places:
    zero = kind(0)

    def left(w, g, group, i, k):  # type: ignore[no-untyped-def]  # as above
        taps = g[TAPS_Y] * g[TAPS_X]
        own = k // taps
        plane = (group * g[OWN_FILTERS] + own) * g[OWN_CHANNELS] + i
        return w[plane * taps + (k - own * taps)]

    def right(grad, g, group, k, j):  # type: ignore[no-untyped-def]  # as above
        line = k // g[TAPS_X]
        step_x = k - line * g[TAPS_X]
        own = line // g[TAPS_Y]
        step_y = line - own * g[TAPS_Y]
        line = j // g[WIDTH]
        from_x = j - line * g[WIDTH]
        image = line // g[HEIGHT]
        from_y = line - image * g[HEIGHT]
        far_y = from_y + g[PAD_Y] - step_y * g[STEP_Y]
        far_x = from_x + g[PAD_X] - step_x * g[STEP_X]
        if far_y < 0 or far_x < 0:
            return zero
        to_y = far_y // g[STRIDE_Y]
        to_x = far_x // g[STRIDE_X]
        if to_y * g[STRIDE_Y] != far_y or to_x * g[STRIDE_X] != far_x:
            return zero
        if to_y >= g[ROWS] or to_x >= g[COLUMNS]:
            return zero
        plane = image * g[FILTERS] + group * g[OWN_FILTERS] + own
        return grad[(plane * g[ROWS] + to_y) * g[COLUMNS] + to_x]

    def out(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        area = g[HEIGHT] * g[WIDTH]
        image = j // area
        plane = image * g[CHANNELS] + group * g[OWN_CHANNELS] + i
        return plane * area + (j - image * area)

    def bias(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        return i

    return Places(left, right, out, bias)


def _weight(kind: Any) -> Places:
    column = _column_maker(kind)

    def left(grad, g, group, i, k):  # type: ignore[no-untyped-def]  # as above
        area = g[ROWS] * g[COLUMNS]
        image = k // area
        plane = image * g[FILTERS] + group * g[OWN_FILTERS] + i
        return grad[plane * area + (k - image * area)]

    def right(x, g, group, k, j):  # type: ignore[no-untyped-def]  # as above
        return column(x, g, group, j, k)

    def out(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        taps = g[OWN_CHANNELS] * g[TAPS_Y] * g[TAPS_X]
        return (group * g[OWN_FILTERS] + i) * taps + j

    def bias(g, group, i, j):  # type: ignore[no-untyped-def]  # as above
        return i

    return Places(left, right, out, bias)


_FORWARD = family("conv2d", _forward, FLOATS)
_INPUT = family("conv2d_input", _input, FLOATS)
_WEIGHT = family("conv2d_weight", _weight, FLOATS)


def _geometry(
    x: Tensor,
    w: Tensor,
    results: Ints,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> Ints:
    """Return the numbers in the order of the constants above."""
    channels, filters = x.shape[1], w.shape[0]
    own = (channels, filters, channels // groups, filters // groups)
    sizes = (*x.shape[2:], *w.shape[2:], *results)
    return (*own, *sizes, *stride, *padding, *dilation)


def conv2d(
    out: Tensor,
    x: Tensor,
    w: Tensor,
    bias: Tensor | None,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> None:
    """Correlate images with filters: (N, C, H, W) with (F, C / groups, Y, X)."""
    g = _geometry(x, w, out.shape[2:], stride, padding, dilation, groups)
    taps = g[OWN_CHANNELS] * g[TAPS_Y] * g[TAPS_X]
    results = out.shape[0] * g[ROWS] * g[COLUMNS]
    sizes = Sizes(groups, g[OWN_FILTERS], results, taps)
    extra = None if bias is None else flat(bias)
    product(_FORWARD, out, flat(w), flat(x), sizes, g, extra)


def conv2d_backward(
    dx: Tensor | None,
    dw: Tensor | None,
    db: Tensor | None,
    grad: Tensor,
    x: Tensor,
    w: Tensor,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    groups: int,
) -> None:
    """Write those gradients of input, weights and bias that are not None."""
    g = _geometry(x, w, grad.shape[2:], stride, padding, dilation, groups)
    images, window = x.shape[0], g[TAPS_Y] * g[TAPS_X]
    slopes = flat(grad)
    if dx is not None:
        spots = images * g[HEIGHT] * g[WIDTH]
        sizes = Sizes(groups, g[OWN_CHANNELS], spots, g[OWN_FILTERS] * window)
        product(_INPUT, dx, flat(w), slopes, sizes, g)
    if dw is not None:
        results = images * g[ROWS] * g[COLUMNS]
        sizes = Sizes(groups, g[OWN_FILTERS], g[OWN_CHANNELS] * window, results)
        # Results of one tap are closer to each other than taps of one result.
        product(_WEIGHT, dw, slopes, flat(x), sizes, g, down=(False, True))
    if db is not None:
        REDUCE["sum"](db, grad, (0, 2, 3))


def _pool(kind: Any) -> Scalar:
    floating = np.issubdtype(kind, np.floating)
    least = kind(-np.inf) if floating else np.iinfo(kind).min

    def element(task, out, indices, x, g):  # type: ignore[no-untyped-def]  # compiled for the device
        height, width, rows, columns = g[0], g[1], g[2], g[3]
        line = task // columns
        plane = line // rows
        top = (line - plane * rows) * g[6] - g[8]
        left = (task - line * columns) * g[7] - g[9]
        bottom = min(top + (g[4] - 1) * g[10] + 1, height)
        end = min(left + (g[5] - 1) * g[11] + 1, width)
        # The first row and column on the image, in one step each.
        if top < 0:
            top += (g[10] - 1 - top) // g[10] * g[10]
        if left < 0:
            left += (g[11] - 1 - left) // g[11] * g[11]
        best = kind(least)
        index = top * width + left
        y = top
        while y < bottom:
            across = left
            while across < end:
                value = x[plane * height * width + y * width + across]
                # Only NaN differs from itself.
                if value > best or value != value:
                    best = value
                    index = y * width + across
                across += g[11]
            y += g[10]
        out[task] = best
        indices[task] = index

    return element


def _target(i, targets, indices, area, results):  # type: ignore[no-untyped-def]  # as above
    targets[i] = i // results * area + indices[i]


_POOL = Elements("max_pool2d", _pool, "T[::1], int64[::1], T[::1], int64*12", REALS)
_TARGETS = Elements(
    "max_pool2d_targets",
    lambda kind: _target,
    "T[::1], T[::1], int64, int64",
    ("int64",),
)


def max_pool2d(
    out: Tensor,
    indices: Tensor,
    x: Tensor,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
) -> None:
    """Fill `out` and `indices` (.., H', W') from `x` (.., H, W).

    Every window overlaps the image, as the operator has checked; the last ones may
    extend beyond it (`ceil_mode`).
    """
    tasks = out.numel()
    if not tasks:
        return
    sizes = (*x.shape[-2:], *out.shape[-2:], *kernel, *stride, *padding, *dilation)
    arrays = flat(out), flat(indices), flat(x)
    _POOL.run(x.dtype.name, tasks, index_of(x), *arrays, sizes)


def max_pool2d_backward(dx: Tensor, grad: Tensor, indices: Tensor) -> None:
    """Fill `dx` (.., H, W) with the gradients, each at the index of its element.

    Raises:
        IndexOutOfRange: an index is outside of the plane; nothing is written.
    """
    area, results = prod(dx.shape[-2:]), prod(grad.shape[-2:])
    require_indices("core::max_pool2d_with_indices_backward", indices, area, -1)
    fill(dx, 0)
    count, where = grad.numel(), index_of(dx)
    if not count:
        return
    targets = device_array(count, np.dtype(np.int64), where)
    _TARGETS.run("int64", count, where, targets, flat(indices), area, results)
    add_targets(dx, targets, grad, count)


KERNELS: dict[str, Callable[..., Any]] = {
    "conv2d": conv2d,
    "conv2d_backward": conv2d_backward,
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
}
