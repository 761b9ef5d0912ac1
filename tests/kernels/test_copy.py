"""Copies, fills and blocks after each other: every dtype, every layout."""

from itertools import permutations
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.copy import arange, cat, contiguous, copy, fill
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, from_numpy, view_of
from everyorder.runtime.tensors.dtype_info import SUPPORTED, numpy_dtype
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of


def _form(name: str) -> Any:
    return numpy_dtype(DType.named(name))


def _empty(shape: tuple[int, ...], dtype: str) -> Tensor:
    return empty_tensor(shape, DType.named(dtype))


def _numbers(shape: tuple[int, ...]) -> Any:
    return np.random.default_rng(0).standard_normal(shape) * 50


@pytest.mark.parametrize("source", SUPPORTED)
@pytest.mark.parametrize("target", SUPPORTED)
def test_every_dtype_to_every_other(source: str, target: str) -> None:
    x = _numbers((4, 5)).astype(_form(source))
    real = x.dtype.kind == "c" and _form(target).kind not in "cb"
    with np.errstate(all="ignore"):
        expected = (x.real if real else x).astype(_form(target))
    out = _empty((4, 5), target)
    copy(out, from_numpy(x))
    assert array_of(out).tobytes() == expected.tobytes()
    base = from_numpy(np.zeros((5, 4), _form(target)))
    turned = view_of(base, (4, 5), (1, 4), 0)
    copy(turned, from_numpy(x))
    assert array_of(turned).tobytes() == expected.tobytes()


def test_numbers_that_do_not_fit_make_no_warnings() -> None:
    x = from_numpy(np.array([np.nan, np.inf, 1e300, -1.0]))
    for target in SUPPORTED:
        copy(_empty((4,), target), x)
    out = _empty((2,), "float32")
    copy(out, from_numpy(np.array([1e300, -1e300])))
    assert out.tolist() == [np.inf, -np.inf]


def test_complex_to_bool_asks_both_parts() -> None:
    out = _empty((3,), "bool")
    copy(out, from_numpy(np.array([0j, 1j, 1 + 0j])))
    assert out.tolist() == [False, True, True]


@pytest.mark.parametrize("dtype", ["bool", "bfloat16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(300, 5000), (20, 300, 400), (2_000_000, 3)])
def test_large_copies_of_every_order(dtype: str, shape: tuple[int, ...]) -> None:
    x = np.arange(np.prod(shape), dtype=np.int64) % 251
    elements = x.reshape(shape).astype(_form(dtype))
    for order in permutations(range(len(shape))):
        turned = elements.transpose(order)
        out = _empty(turned.shape, dtype)
        copy(out, from_numpy(turned))
        assert np.array_equal(array_of(out), turned)


def test_a_broadcast_source() -> None:
    out = _empty((2000, 1500), "float32")
    row = np.arange(1500, dtype=np.float32)
    copy(out, from_numpy(row))
    assert np.array_equal(out.numpy(), np.broadcast_to(row, (2000, 1500)))
    column = row[:, None][:1] + 7
    copy(out, from_numpy(column))
    assert (out.numpy() == 7).all()


@pytest.mark.parametrize("size", [40, 1600])
def test_a_copy_onto_its_own_transpose(size: int) -> None:
    x = _numbers((size, size)).astype(np.float32)
    tensor = from_numpy(x.copy())
    copy(tensor, view_of(tensor, (size, size), (1, size), 0))
    assert np.array_equal(tensor.numpy(), x.T)


def test_a_shifted_copy_within_a_large_array() -> None:
    x = np.arange(3_000_000, dtype=np.float32)
    base = from_numpy(x.copy())
    copy(view_of(base, (2_999_999,), (1,), 1), view_of(base, (2_999_999,), (1,), 0))
    assert np.array_equal(base.numpy()[1:], x[:-1])


def test_contiguous_copies_only_what_is_not() -> None:
    x = from_numpy(np.arange(6.0).reshape(2, 3))
    assert contiguous(x) is x
    turned = view_of(x, (3, 2), (1, 3), 0)
    made = contiguous(turned)
    assert made.is_contiguous()
    assert made.tolist() == [[0, 3], [1, 4], [2, 5]]
    assert made.storage() is not x.storage()


@pytest.mark.parametrize("dtype", SUPPORTED)
def test_fill_any_layout(dtype: str) -> None:
    base = _empty((2, 3), dtype)
    fill(base, 0)
    fill(view_of(base, (2,), (3,), 1), 1)
    assert array_of(base).astype(np.complex128).real.tolist() == [[0, 1, 0], [0, 1, 0]]
    fill(_empty((0,), dtype), 1)


def test_fill_with_numbers_that_do_not_fit() -> None:
    out = _empty((2,), "float16")
    fill(out, 1e6)
    assert np.isinf(array_of(out)).all()
    small = _empty((2,), "uint8")
    fill(small, -1)
    assert small.tolist() == [255, 255]
    base = _empty((4,), "bfloat16")
    fill(view_of(base, (2,), (2,), 0), 1e300)
    assert np.isinf(array_of(base)[::2].astype(np.float32)).all()


@pytest.mark.parametrize("dtype", [name for name in SUPPORTED if name != "bool"])
def test_arange(dtype: str) -> None:
    out = _empty((5,), dtype)
    arange(out, 1, 2)
    assert array_of(out).astype(np.complex128).real.tolist() == [1, 3, 5, 7, 9]


def test_arange_adds_up_no_error() -> None:
    out = _empty((100_001,), "float32")
    arange(out, 0.0, 0.1)
    assert out.numpy()[-1] == np.float32(10_000.0)
    whole = _empty((3,), "int64")
    arange(whole, 2**62, -1)
    assert whole.tolist() == [2**62, 2**62 - 1, 2**62 - 2]
    arange(whole, 0.5, 1.5)
    assert whole.tolist() == [0, 2, 3]


DTYPES = [numpy_dtype(DType.named(name)) for name in SUPPORTED]


@pytest.mark.parametrize("form", DTYPES, ids=str)
@pytest.mark.parametrize("dim", [0, 1, 2])
def test_cat_joins_every_dtype(form: Any, dim: int) -> None:
    parts = [
        np.arange(n * 12).reshape(
            [n if d == dim else s for d, s in enumerate((3, 4, 1))]
        )
        if dim == 2
        else np.ones([n if d == dim else s for d, s in enumerate((3, 4, 2))])
        for n in (1, 0, 3)
    ]
    parts = [part.astype(form) for part in parts]
    wanted = np.concatenate(parts, dim)
    out = np.zeros(wanted.shape, form)
    cat(from_numpy(out), [from_numpy(part) for part in parts], dim)
    assert out.tobytes() == wanted.tobytes()


def test_cat_reads_strides_and_passes_over_the_old_empty() -> None:
    x = np.arange(6.0).reshape(2, 3)
    out = np.zeros((3, 4))
    cat(
        from_numpy(out),
        [from_numpy(x.T), from_numpy(np.zeros(0)), from_numpy(x.T[:, ::-1].copy())],
        1,
    )
    assert np.array_equal(out, np.concatenate([x.T, x.T[:, ::-1]], 1))


@pytest.mark.parametrize("dim", [0, 1])
def test_cat_is_the_same_on_several_threads(dim: int) -> None:
    x = np.random.default_rng(0).standard_normal((700, 300))
    before = get_num_threads()
    try:
        set_num_threads(3)
        out = np.zeros(np.concatenate([x, x], dim).shape)
        cat(from_numpy(out), [from_numpy(x), from_numpy(x)], dim)
    finally:
        set_num_threads(before)
    assert np.array_equal(out, np.concatenate([x, x], dim))
