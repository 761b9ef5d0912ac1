"""max_pool2d and its gradient."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.conv import max_pool2d, max_pool2d_backward
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]

# kernel, stride, padding, dilation, whether the last window may reach out
CASES = [
    ((2, 2), (2, 2), (0, 0), (1, 1), False),
    ((3, 2), (2, 1), (1, 1), (1, 2), False),
    ((3, 3), (2, 2), (1, 1), (1, 1), True),
    ((1, 3), (1, 3), (0, 1), (1, 1), False),
]


def count(size: int, kernel: int, stride: int, pad: int, step: int, ceil: bool) -> int:
    room = size + 2 * pad - step * (kernel - 1) - 1
    found = -(-room // stride) + 1 if ceil else room // stride + 1
    return found - (ceil and (found - 1) * stride >= size + pad)


def reference(
    x: Array, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, ceil: bool
) -> tuple[Array, Array]:
    sizes = [
        count(x.shape[d - 2], kernel[d], stride[d], padding[d], dilation[d], ceil)
        for d in (0, 1)
    ]
    out = np.zeros((*x.shape[:-2], *sizes), x.dtype)
    indices = np.zeros(out.shape, np.int64)
    for at in np.ndindex(*out.shape):
        best, kept = None, 0
        for down in range(kernel[0]):
            for right in range(kernel[1]):
                y = at[-2] * stride[0] - padding[0] + down * dilation[0]
                z = at[-1] * stride[1] - padding[1] + right * dilation[1]
                if 0 <= y < x.shape[-2] and 0 <= z < x.shape[-1]:
                    value = x[(*at[:-2], y, z)]
                    if best is None or value > best or np.isnan(value):
                        best, kept = value, y * x.shape[-1] + z
        out[at], indices[at] = best, kept
    return out, indices


def pooled(x: Array, case: Any, shape: tuple[int, ...]) -> tuple[Array, Array]:
    out, indices = np.zeros(shape, x.dtype), np.zeros(shape, np.int64)
    max_pool2d(from_numpy(out), from_numpy(indices), from_numpy(x), *case[:4])
    return out, indices


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("form", [np.int32, np.float32, np.float64], ids=str)
def test_the_greatest_and_its_place(case: Any, form: Any) -> None:
    x = np.random.default_rng(0).integers(-3, 3, (2, 3, 9, 7)).astype(form)
    if form is not np.int32:
        x[0, 0, 0, 0], x[0, 1, 4:] = np.nan, -np.inf
    out, indices = reference(x, *case)
    found = pooled(x, case, out.shape)
    assert np.array_equal(found[0], out, equal_nan=form is not np.int32)
    assert np.array_equal(found[1], indices)


def test_planes_alone_strides_and_nothing() -> None:
    case = CASES[0]
    x = np.random.default_rng(1).standard_normal((8, 6, 3)).transpose(2, 1, 0)
    out, indices = reference(x, *case)
    found = pooled(x, case, out.shape)
    assert np.array_equal(found[0], out)
    assert np.array_equal(found[1], indices)
    assert pooled(x[:0], case, (0, 3, 4))[0].shape == (0, 3, 4)


def test_the_gradient_goes_where_the_value_came_from() -> None:
    grad = np.array([[[1.0, 2.0], [3.0, 4.0]]])
    indices = np.array([[[0, 4], [4, 8]]])
    dx = np.full((1, 3, 3), 7.0)
    max_pool2d_backward(from_numpy(dx), from_numpy(grad), from_numpy(indices))
    assert dx.tolist() == [[[1, 0, 0], [0, 5, 0], [0, 0, 4]]]
    nothing = np.zeros((2, 0, 3))
    max_pool2d_backward(
        from_numpy(nothing),
        from_numpy(np.zeros((2, 0, 1))),
        from_numpy(np.zeros((2, 0, 1), np.int64)),
    )


def test_threads_share_planes() -> None:
    x = np.random.default_rng(2).standard_normal((40, 64, 64)).astype(np.float32)
    before = get_num_threads()
    try:
        set_num_threads(3)
        out, indices = pooled(x, CASES[0], (40, 32, 32))
        dx = np.full(x.shape, 7, np.float32)
        max_pool2d_backward(from_numpy(dx), from_numpy(out), from_numpy(indices))
    finally:
        set_num_threads(before)
    windows = x.reshape(40, 32, 2, 32, 2)
    assert np.array_equal(out, windows.max(axis=(2, 4)))
    kept = np.where(windows == out[:, :, None, :, None], windows, 0)
    assert np.array_equal(dx, kept.reshape(x.shape))


@pytest.mark.torch
@pytest.mark.parametrize("case", CASES, ids=str)
def test_torch_agrees(case: Any) -> None:
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: see `make torch`"
    )
    x = np.random.default_rng(3).integers(-3, 3, (2, 3, 9, 7)).astype(np.float32)
    x[0, 0, 2, 2] = np.nan
    out, indices = torch.nn.functional.max_pool2d(
        torch.from_numpy(x), *case, return_indices=True
    )
    found = pooled(x, case, tuple(out.shape))
    assert np.array_equal(found[0], out.numpy(), equal_nan=True)
    assert np.array_equal(found[1], indices.numpy())
