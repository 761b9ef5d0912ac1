"""conv2d, max_pool2d and their gradients, against loops in NumPy and against torch."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu import conv, conv_plan
from everyorder.runtime.kernels.cpu.conv import (
    conv2d,
    conv2d_backward,
    max_pool2d,
    max_pool2d_backward,
)
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy

Array = np.ndarray[Any, Any]
Pair = tuple[int, int]

# Shape of x, filters, groups.
INPUTS: list[Any] = [
    ((3, 4, 9, 8), 6, 1),
    ((2, 4, 9, 8), 6, 2),
    ((5, 4, 11, 13), 4, 4),
    ((1, 4, 7, 7), 8, 4),
    ((7, 1, 8, 8), 8, 1),
]

# Kernel, stride, padding, dilation.
WINDOWS: list[Any] = [
    ((3, 3), (1, 1), (1, 1), (1, 1)),
    ((1, 1), (1, 1), (0, 0), (1, 1)),
    ((3, 2), (2, 3), (1, 0), (1, 2)),
    ((2, 2), (2, 2), (0, 0), (1, 1)),
    ((3, 3), (1, 1), (0, 0), (1, 1)),
    ((3, 3), (2, 1), (4, 3), (2, 3)),
    ((1, 1), (2, 2), (0, 0), (1, 1)),
    ((3, 3), (3, 2), (2, 2), (2, 2)),
]


def padded(x: Array, padding: Pair) -> Array:
    y, z = padding
    return np.pad(x, ((0, 0), (0, 0), (y, y), (z, z)))


def reference(
    x: Array, w: Array, b: Array, window: Any, groups: int, grad: Array | None = None
) -> tuple[Array, Array, Array]:
    """The result; with `grad`, the gradients of x and of the weight instead of it."""
    kernel, stride, padding, dilation = window
    wide = padded(x, padding)
    sizes = [
        (x.shape[d + 2] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1)
        // stride[d]
        + 1
        for d in (0, 1)
    ]
    out = np.zeros((x.shape[0], w.shape[0], *sizes), x.dtype)
    dx, dw = np.zeros_like(wide), np.zeros_like(w)
    each, filters = x.shape[1] // groups, w.shape[0] // groups
    for group in range(groups):
        ins = slice(group * each, (group + 1) * each)
        outs = slice(group * filters, (group + 1) * filters)
        for y in range(kernel[0]):
            for z in range(kernel[1]):
                place = (
                    slice(None),
                    ins,
                    slice(y * dilation[0], None, stride[0]),
                    slice(z * dilation[1], None, stride[1]),
                )
                part = wide[place][:, :, : sizes[0], : sizes[1]]
                out[:, outs] += np.einsum("nchw,oc->nohw", part, w[outs, :, y, z])
                if grad is not None:
                    dw[outs, :, y, z] = np.einsum("nchw,nohw->oc", part, grad[:, outs])
                    dx[place][:, :, : sizes[0], : sizes[1]] += np.einsum(
                        "nohw,oc->nchw", grad[:, outs], w[outs, :, y, z]
                    )
    bottom, right = padding[0] + x.shape[2], padding[1] + x.shape[3]
    inner = dx[:, :, padding[0] : bottom, padding[1] : right]
    return out + b[:, None, None], inner, dw


def case(given: Any, window: Any, form: Any) -> tuple[Array, Array, Array]:
    shape, filters, groups = given
    rng = np.random.default_rng(0)
    weight = filters, shape[1] // groups, *window[0]
    return (
        rng.standard_normal(shape).astype(form),
        rng.standard_normal(weight).astype(form),
        rng.standard_normal(filters).astype(form),
    )


def close(found: Array, wanted: Array, form: Any) -> bool:
    error = np.abs(found - wanted).max(initial=0)
    bound = 5e-6 if form is np.float32 else 1e-13
    return bool(error <= bound * np.abs(wanted).max(initial=1))


def run(x: Array, w: Array, b: Array | None, window: Any, groups: int) -> Array:
    kernel, stride, padding, dilation = window
    sizes = [
        (x.shape[d - 2] + 2 * padding[d] - dilation[d] * (kernel[d] - 1) - 1)
        // stride[d]
        + 1
        for d in (0, 1)
    ]
    out = np.full((*x.shape[:-3], w.shape[0], *sizes), np.nan, x.dtype)
    bias = None if b is None else from_numpy(b)
    rest = stride, padding, dilation
    conv2d(from_numpy(out), from_numpy(x), from_numpy(w), bias, *rest, groups)
    return out


def gradients(
    x: Array, w: Array, grad: Array, window: Any, groups: int
) -> tuple[Array, Array, Array]:
    dx, dw = np.full(x.shape, np.nan, x.dtype), np.full(w.shape, np.nan, x.dtype)
    db = np.full(w.shape[0], np.nan, x.dtype)
    _, stride, padding, dilation = window
    conv2d_backward(
        from_numpy(dx),
        from_numpy(dw),
        from_numpy(db),
        from_numpy(grad),
        from_numpy(x),
        from_numpy(w),
        *(stride, padding, dilation),
        groups,
    )
    return dx, dw, db


@pytest.mark.parametrize("given", INPUTS, ids=str)
@pytest.mark.parametrize("window", WINDOWS, ids=str)
@pytest.mark.parametrize("form", [np.float32, np.float64], ids=str)
def test_conv_and_its_gradients(given: Any, window: Any, form: Any) -> None:
    x, w, b = case(given, window, form)
    wide = x.astype(np.float64), w.astype(np.float64), b.astype(np.float64)
    wanted, _, _ = reference(*wide, window, given[2])
    assert close(run(x, w, b, window, given[2]), wanted, form)
    grad: Any = np.random.default_rng(1).standard_normal(wanted.shape)
    grad = grad.astype(form)
    _, dx, dw = reference(*wide, window, given[2], grad.astype(np.float64))
    found = gradients(x, w, grad, window, given[2])
    assert close(found[0], dx, form)
    assert close(found[1], dw, form)
    assert close(found[2], grad.sum((0, 2, 3), np.float64), form)


@pytest.mark.parametrize("plane", [40, 300])
@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_bands_of_rows_and_blocks_of_images(
    plane: int, window: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conv_plan, "PLANE", plane)
    forget()
    try:
        test_conv_and_its_gradients(((7, 2, 9, 8), 6, 2), window, np.float64)
        test_conv_and_its_gradients(((2, 2, 11, 13), 3, 1), window, np.float64)
    finally:
        forget()


def forget() -> None:
    """Let geometries be cut anew."""
    conv_plan.blocks.cache_clear()
    conv_plan.layout.cache_clear()


def any_geometry(seed: int) -> tuple[Any, Any]:
    """A small convolution: the input with its filters and groups, and a window."""
    rng = np.random.default_rng(seed)
    groups = int(rng.choice([1, 1, 2, 3]))
    # Often no extent, no padding, no dilation: then images are planes as they are.
    kernel, stride = rng.choice([1, 1, 2, 3, 4], 2), rng.integers(1, 5, 2)
    padding, dilation = rng.choice([0, 0, 1, 2, 3], 2), rng.choice([1, 1, 2, 3], 2)
    least = np.maximum(1, dilation * (kernel - 1) + 1 - 2 * padding)
    size = least + rng.integers(0, 7, 2)
    images, channels, filters = (int(n) for n in rng.integers(1, 4, 3))
    shape = (images, channels * groups, *size.tolist())
    window = tuple(tuple(each.tolist()) for each in (kernel, stride, padding, dilation))
    return (shape, filters * groups, groups), window


def test_the_gradient_of_an_image_whose_last_rows_no_tap_reads() -> None:
    # Taps of the gradient go on below the gradient, where the next image begins.
    window = ((3, 1), (2, 3), (1, 0), (1, 1))
    test_conv_and_its_gradients(((1, 6, 4, 4), 6, 2), window, np.float64)


@pytest.mark.parametrize("seed", range(150))
def test_any_geometry(seed: int) -> None:
    given, window = any_geometry(seed)
    test_conv_and_its_gradients(given, window, np.float64)


@pytest.mark.parametrize("seed", range(0, 150, 6))
def test_any_geometry_in_bands(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv_plan, "PLANE", 20)
    forget()
    try:
        test_any_geometry(seed)
    finally:
        forget()


def test_one_image_without_a_batch_strides_and_no_bias() -> None:
    window = WINDOWS[0]
    x, w, _ = case(INPUTS[0], window, np.float64)
    wanted, _, _ = reference(x, w, np.zeros(6), window, 1)
    assert close(run(x[1], w, None, window, 1), wanted[1], np.float64)
    turned = np.ascontiguousarray(x.transpose(3, 2, 1, 0)).transpose(3, 2, 1, 0)
    assert close(run(turned, w, None, window, 1), wanted, np.float64)


def test_only_the_gradients_asked_for() -> None:
    window = WINDOWS[0]
    x, w, _ = case(INPUTS[0], window, np.float64)
    grad = np.random.default_rng(1).standard_normal((3, 6, 9, 8))
    _, _, db = gradients(x, w, grad, window, 1)
    found = np.zeros(6)
    arguments = from_numpy(grad), from_numpy(x), from_numpy(w)
    _, stride, padding, dilation = window
    total = from_numpy(found)
    conv2d_backward(None, None, total, *arguments, stride, padding, dilation, 1)
    assert np.array_equal(found, db)


def test_nothing_in_gives_the_bias_or_zeros() -> None:
    window = WINDOWS[0]
    w, b = np.ones((2, 0, 3, 3)), np.array([1.0, 2.0])
    out = run(np.ones((1, 0, 4, 4)), w, b, window, 1)
    assert np.array_equal(out, np.broadcast_to(b[:, None, None], (1, 2, 4, 4)))
    _, _, db = gradients(np.ones((1, 0, 4, 4)), w, np.ones((1, 2, 4, 4)), window, 1)
    assert db.tolist() == [16, 16]
    assert run(np.ones((0, 1, 4, 4)), np.ones((2, 1, 3, 3)), b, window, 1).size == 0
    empty = gradients(
        np.ones((0, 1, 4, 4)), np.ones((2, 1, 3, 3)), np.ones((0, 2, 4, 4)), window, 1
    )
    assert not empty[1].any()
    assert not empty[2].any()


def test_infinite_inputs_do_not_leak_into_other_taps() -> None:
    window: Any = ((2, 2), (1, 1), (0, 0), (1, 1))
    x = np.ones((3, 1, 4, 4))
    # Read by the first tap only, so that the others must stay finite.
    x[:, :, 0, 0] = np.inf
    grad = np.ones((3, 1, 3, 3))
    _, dw, _ = gradients(x, np.ones((1, 1, 2, 2)), grad, window, 1)
    assert dw.tolist() == [[[[np.inf, 27], [27, 27]]]]


@pytest.mark.parametrize("given", [((12, 2, 6, 6), 3, 1), ((1, 4, 9, 9), 10, 1)])
def test_threads_give_the_same(given: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conv, "GRAIN", 100)
    monkeypatch.setattr(conv, "FILTERS", 2)
    monkeypatch.setattr(conv_plan, "PLANE", 128)
    forget()
    window = WINDOWS[0]
    x, w, b = case(given, window, np.float32)
    random = np.random.default_rng(1)
    grad: Any = random.standard_normal((given[0][0], given[1], *given[0][2:]))
    found: list[tuple[Array, ...]] = []
    before = get_num_threads()
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            out = run(x, w, b, window, 1)
            found.append((out, *gradients(x, w, grad.astype(np.float32), window, 1)))
    finally:
        set_num_threads(before)
        forget()
    for one, other in zip(*found, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.torch
@pytest.mark.parametrize("seed", [*range(150), *(-1 - at for at in range(8))])
def test_torch_agrees(seed: int) -> None:
    torch = pytest.importorskip(
        "torch", reason="torch is not installed: see `make torch`"
    )
    given, window = any_geometry(seed) if seed >= 0 else (INPUTS[1], WINDOWS[seed])
    x, w, b = case(given, window, np.float64)
    tensors = [torch.from_numpy(one).requires_grad_() for one in (x, w, b)]
    out = torch.nn.functional.conv2d(*tensors, *window[1:], given[2])
    grad = np.random.default_rng(1).standard_normal(out.shape)
    out.backward(torch.from_numpy(grad))
    assert close(run(x, w, b, window, given[2]), out.detach().numpy(), np.float64)
    for mine, theirs in zip(
        gradients(x, w, grad, window, given[2]), tensors, strict=True
    ):
        assert close(mine, theirs.grad.numpy(), np.float64)


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


def reference_of_pools(
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
    out, indices = reference_of_pools(x, *case)
    found = pooled(x, case, out.shape)
    assert np.array_equal(found[0], out, equal_nan=form is not np.int32)
    assert np.array_equal(found[1], indices)


def test_planes_alone_strides_and_nothing() -> None:
    case = CASES[0]
    x = np.random.default_rng(1).standard_normal((8, 6, 3)).transpose(2, 1, 0)
    out, indices = reference_of_pools(x, *case)
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
def test_torch_agrees_of_pools(case: Any) -> None:
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
