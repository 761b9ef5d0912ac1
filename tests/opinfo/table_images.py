"""The rows of convolutions and pools; their references are written as loops."""

from typing import Any

import numpy as np

from tests.opinfo.info import OpInfo, Sample
from tests.opinfo.samples import COMPLEXES, REALS, array, given, whole

Pair = Any
FLOATING = (*REALS, *COMPLEXES)


def pair(value: Any) -> tuple[int, int]:
    """A number, or a list of one or two, for both directions."""
    found = [value] if isinstance(value, int) else [*value]
    return (found[0], found[-1])


def windows(x: Any, size: Pair, stride: Pair, dilation: Pair, out: Pair) -> Any:
    """The windows of padded images: (N, C, H', W', kernel height, kernel width)."""
    rows = np.arange(out[0])[:, None] * stride[0] + np.arange(size[0]) * dilation[0]
    columns = np.arange(out[1])[:, None] * stride[1] + np.arange(size[1]) * dilation[1]
    return x[:, :, rows[:, None, :, None], columns[None, :, None, :]]


def conv2d(
    x: Any, w: Any, bias: Any = None, stride: Any = 1, padding: Any = 0,
    dilation: Any = 1, groups: int = 1,
) -> Any:  # fmt: skip
    single = x.ndim == 3
    x = x[None] if single else x
    s, p, d = pair(stride), pair(padding), pair(dilation)
    padded = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    size = w.shape[2:]
    out = [
        (padded.shape[2 + i] - d[i] * (size[i] - 1) - 1) // s[i] + 1 for i in range(2)
    ]
    seen = windows(padded, size, s, d, out)
    parts = [
        np.einsum("nchwij,ocij->nohw", a, b)
        for a, b in zip(np.split(seen, groups, 1), np.split(w, groups, 0), strict=True)
    ]
    found = np.concatenate(parts, 1)
    found = found if bias is None else found + bias[:, None, None]
    return found[0] if single else found


def conv_samples(dtype: str) -> list[Sample]:
    def some(shape: tuple[int, ...], seed: int, layout: str = "plain") -> Any:
        return array(dtype, shape, seed, "small", layout)

    return [
        Sample(some((2, 2, 4, 5), 1), some((3, 2, 3, 2), 2), some((3,), 3)),
        Sample(some((1, 2, 5, 4), 1), some((2, 2, 3, 3), 2), None, [2, 1], [1, 2]),
        Sample(some((1, 1, 6, 6), 1, "transposed"), some((2, 1, 2, 2), 2, "sliced"),
               None, 1, 0, [2, 3]),
        Sample(some((1, 4, 4, 4), 1), some((4, 2, 2, 2), 2), some((4,), 3), 1, 1, 1, 2),
        Sample(some((1, 2, 4, 4), 1), some((4, 1, 3, 3), 2), None, 1, 1, 1, 2),
        Sample(some((2, 4, 4), 1), some((3, 2, 1, 1), 2), some((3,), 3)),
        Sample(some((0, 2, 4, 4), 1), some((3, 2, 3, 3), 2), some((3,), 3)),
        Sample(some((1, 3, 9, 9), 1), some((4, 3, 3, 3), 2, "transposed"), None, 2, 1),
    ]  # fmt: skip


def conv_backward_samples(dtype: str) -> list[Sample]:
    x, w = (
        array(dtype, (2, 2, 5, 5), 1, "small"),
        array(dtype, (4, 1, 3, 3), 2, "small"),
    )
    grad = array(dtype, (2, 4, 3, 3), 3, "small")
    return [
        Sample(grad, x, w, True, [2, 2], [1, 1], [1, 1], 2, [True, True, True]),
        Sample(grad, x, w, True, [2, 2], [1, 1], [1, 1], 2, [False, True, False]),
        Sample(array(dtype, (2, 4, 3, 3), 3, "small", "transposed"), x, w, False,
               [1, 1], [0, 0], [1, 1], 2, [True, False, False]),
    ]  # fmt: skip


def conv_backward(
    grad: Any,
    x: Any,
    w: Any,
    has_bias: bool,
    s: Any,
    p: Any,
    d: Any,
    groups: int,
    mask: Any,
) -> list[Any]:
    """By the definition: each product of the sum gives to both of its factors."""
    padded = np.pad(x, ((0, 0), (0, 0), (p[0], p[0]), (p[1], p[1])))
    dx, dw = np.zeros_like(padded), np.zeros_like(w)
    inner, outer = w.shape[1], w.shape[0] // groups
    for n, o, h, v in np.ndindex(grad.shape):
        first = o // outer * inner
        rows = slice(h * s[0], h * s[0] + d[0] * (w.shape[2] - 1) + 1, d[0])
        columns = slice(v * s[1], v * s[1] + d[1] * (w.shape[3] - 1) + 1, d[1])
        place = (n, slice(first, first + inner), rows, columns)
        dx[place] += grad[n, o, h, v] * w[o].conj()
        dw[o] += grad[n, o, h, v] * padded[place].conj()
    inside = dx[:, :, p[0] : p[0] + x.shape[2], p[1] : p[1] + x.shape[3]]
    results = [inside, dw, grad.sum((0, 2, 3))]
    return [r if wanted else None for r, wanted in zip(results, mask, strict=True)]


def pool_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (2, 2, 5, 6), 1, "distinct")
    found = [
        Sample(x, 2),
        Sample(x, [3, 2], [1, 2], [1, 0]),
        Sample(x, 3, 2, 1, 1, True),
        Sample(x, 2, 1, 0, 2),
        Sample(array(dtype, (2, 5, 6), 1, "distinct", "transposed"), 2, 3),
        Sample(array(dtype, (0, 2, 4, 4), 1), 2),
    ]
    if dtype in REALS:
        rows = [[1.0, np.nan, 2.0, -np.inf], [0.0, 1.0, -np.inf, -np.inf]]
        found.append(Sample(given([rows], dtype), 2))
    return found


def pool(
    x: Any, size: Any, stride: Any = (), padding: Any = 0, dilation: Any = 1,
    ceil_mode: bool = False,
) -> list[Any]:  # fmt: skip
    """The first of the greatest of each window, NaN counting as greatest."""
    single = x.ndim == 3
    x = x[None] if single else x
    k, p, d = pair(size), pair(padding), pair(dilation)
    s = k if stride == () else pair(stride)
    out = []
    for i in range(2):
        room = x.shape[2 + i] + 2 * p[i] - d[i] * (k[i] - 1) - 1
        count = -(-room // s[i]) if ceil_mode else room // s[i]
        # A window must begin inside of the image or of its left padding.
        out.append(count + (count * s[i] < x.shape[2 + i] + p[i]))
    shape = (*x.shape[:2], *out)
    values, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    for n, c, h, v in np.ndindex(shape):
        best = None
        for i, j in np.ndindex(*k):
            row, column = h * s[0] - p[0] + i * d[0], v * s[1] - p[1] + j * d[1]
            if 0 <= row < x.shape[2] and 0 <= column < x.shape[3]:
                value = x[n, c, row, column]
                if best is None or value > best or (value != value and best == best):
                    best = values[n, c, h, v] = value
                    indices[n, c, h, v] = row * x.shape[3] + column
    return [values[0], indices[0]] if single else [values, indices]


def max_pool(*args: Any) -> Any:
    return pool(*args)[0]


def pool_backward(grad: Any, x: Any, *rest: Any) -> Any:
    indices = rest[-1]
    found = np.zeros(x.shape)
    for place in np.ndindex(grad.shape):
        flat = indices[place]
        found[(*place[:-2], flat // x.shape[-1], flat % x.shape[-1])] += grad[place]
    return found


def pool_backward_samples(dtype: str) -> list[Sample]:
    x = array(dtype, (1, 2, 4, 4), 1)
    indices = whole([[[[0, 2], [8, 8]], [[5, 5], [5, 15]]]])
    grad = array(dtype, (1, 2, 2, 2), 2)
    laid = array(dtype, (1, 2, 2, 2), 2, layout="transposed")
    windows = ([2, 2], [2, 2], [0, 0], [1, 1], False)
    return [Sample(each, x, *windows, indices) for each in (grad, laid)]


def _pool_backward(torch: Any) -> Any:
    return torch.ops.aten.max_pool2d_with_indices_backward


def _conv_backward(torch: Any) -> Any:
    def run(
        grad: Any, x: Any, w: Any, has_bias: bool, s: Any, p: Any, d: Any, groups: int,
        mask: Any,
    ) -> Any:  # fmt: skip
        sizes = [w.shape[0]] if has_bias else None
        return torch.ops.aten.convolution_backward(
            grad, x, w, sizes, s, p, d, False, [0, 0], groups, mask
        )

    return run


def _pool_with_indices(torch: Any) -> Any:
    function = torch.nn.functional.max_pool2d_with_indices

    def run(x: Any, size: Any, stride: Any = None, *more: Any) -> Any:
        return function(x, size, stride, *more)

    return run


def _pool(torch: Any) -> Any:
    def run(*args: Any) -> Any:
        return _pool_with_indices(torch)(*args)[0]

    return run


def conv_points() -> list[Sample]:
    """Small enough for finite differences: stride and padding, groups, dilation."""

    def some(shape: tuple[int, ...], seed: int) -> Any:
        return array("float64", shape, seed, "small")

    return [
        Sample(some((1, 2, 3, 4), 1), some((2, 2, 2, 2), 2), some((2,), 3), [2, 1], 1),
        Sample(some((2, 2, 3, 3), 1), some((2, 1, 2, 2), 2), None, 1, 0, 1, 2),
        Sample(some((1, 1, 4, 4), 1), some((1, 1, 2, 2), 2), None, 1, 1, 2),
        Sample(some((1, 3, 3), 1), some((2, 1, 2, 2), 2), some((2,), 3)),
    ]


def conv_backward_points() -> list[Sample]:
    def some(shape: tuple[int, ...], seed: int) -> Any:
        return array("float64", shape, seed, "small")

    x, w, grad = some((1, 2, 3, 3), 1), some((2, 1, 2, 2), 2), some((1, 2, 2, 2), 3)
    more = ([1, 1], [0, 0], [1, 1], 2, [True, True, True])
    return [Sample(grad, x, w, True, *more)]


def pool_points() -> list[Sample]:
    x = array("float64", (1, 1, 4, 5), 1, "distinct")
    return [Sample(x, 2), Sample(x, 3, 2, 1), Sample(x, 2, 1, 0, 2)]


POOLED = ("uint8", "int8", "int32", "int64", *REALS)
ROWS = (
    OpInfo(name="conv2d", samples=conv_samples, smooth=conv_points,
           reference=conv2d, dtypes=FLOATING,
           torch=lambda torch: torch.nn.functional.conv2d, loose=30.0),
    OpInfo(name="conv2d_backward", samples=conv_backward_samples,
           smooth=conv_backward_points, dtypes=FLOATING, torch_lacks=("complex128",),
           reference=conv_backward, torch=_conv_backward, loose=50.0),
    OpInfo(name="max_pool2d_with_indices", samples=pool_samples,
           smooth=pool_points, reference=pool,
           dtypes=POOLED, kind="free", torch=_pool_with_indices),
    OpInfo(name="max_pool2d", samples=pool_samples, smooth=pool_points,
           reference=max_pool, dtypes=POOLED,
           torch=_pool),
    OpInfo(name="max_pool2d_with_indices_backward", samples=pool_backward_samples,
           dtypes=REALS, reference=pool_backward, torch=_pool_backward),
)  # fmt: skip
