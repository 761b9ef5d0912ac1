"""max_pool2d and its gradient on CUDA.

True only here: a thread makes one result.  The window's elements are met row by row; a
greater one replaces the one kept, and so does every NaN.  The index of the one kept is
its flat position in its height x width plane.

Rules: windows may overlap, so the gradient adds, in the order of the results
(`runtime.kernels.cuda.adding`).
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cuda.adding import add_targets
from runtime.kernels.cuda.check import require_indices
from runtime.kernels.cuda.copy import fill
from runtime.kernels.cuda.jit import Body, Family
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.memory import device_array
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.toolkit import cuda
from runtime.kernels.cuda.unary import FLOATS, INTEGERS
from runtime.tensors.tensor import Tensor

Pair = tuple[int, int]


def _pool(kind: Any) -> Body:
    floating = np.issubdtype(kind, np.floating)
    least = kind(-np.inf) if floating else np.iinfo(kind).min

    def body(out, indices, x, tasks, g):  # type: ignore[no-untyped-def]  # compiled for the device
        height, width, rows, columns = g[0], g[1], g[2], g[3]
        task = cuda.grid(1)
        step = cuda.gridsize(1)
        while task < tasks:
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
            task += step

    return body


def _targets(kind: Any) -> Body:
    def body(targets, indices, count, area, results):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        while i < count:
            targets[i] = i // results * area + indices[i]
            i += step

    return body


_POOL = Family(
    "max_pool2d",
    _pool,
    "T[::1], int64[::1], T[::1], int64, int64*12",
    (*INTEGERS, *FLOATS),
)
_TARGETS = Family(
    "max_pool2d_targets",
    _targets,
    "T[::1], T[::1], int64, int64, int64",
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

    Every window reaches into the image, as the operator has made sure; the last ones
    may reach out of it (`ceil_mode`).
    """
    tasks = out.numel()
    if not tasks:
        return
    sizes = (*x.shape[-2:], *out.shape[-2:], *kernel, *stride, *padding, *dilation)
    _POOL[x.dtype.name](
        spread(tasks, index_of(x)), flat(out), flat(indices), flat(x), tasks, sizes
    )


def max_pool2d_backward(dx: Tensor, grad: Tensor, indices: Tensor) -> None:
    """Fill `dx` (.., H, W) with the gradients, each where its element came from.

    Raises `IndexOutOfRange`, before anything is written.
    """
    area, results = prod(dx.shape[-2:]), prod(grad.shape[-2:])
    require_indices("core::max_pool2d_backward", indices, area, -1)
    fill(dx, 0)
    count, where = grad.numel(), index_of(dx)
    if not count:
        return
    targets = device_array(count, np.dtype(np.int64), where)
    _TARGETS["int64"](
        spread(count, where), targets, flat(indices), count, area, results
    )
    add_targets(dx, targets, grad, count)


KERNELS: dict[str, Callable[..., None]] = {
    "max_pool2d": max_pool2d,
    "max_pool2d_backward": max_pool2d_backward,
}
