"""scatter, scatter_add and index_add: equal targets, in the order of the index."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from runtime.errors.operator import IndexOutOfRange
from runtime.kernels.cpu import walks
from runtime.kernels.cpu.gather import index_add, scatter, scatter_add
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy, view_of

Array = np.ndarray[Any, Any]


def reference(base: Array, dim: int, index: Array, src: Array, add: bool) -> Array:
    out = base.copy()
    for at in np.ndindex(*index.shape):
        to = (*at[:dim], index[at], *at[dim + 1 :])
        out[to] = out[to] + src[at] if add else src[at]
    return out


def case(dim: int, form: Any) -> tuple[Array, Array, Array]:
    rng = np.random.default_rng(dim)
    base = rng.integers(0, 9, (5, 4, 6)).astype(form)
    index = rng.integers(0, base.shape[dim], (3, 4, 5))
    return base, index, rng.integers(0, 9, (4, 4, 5)).astype(form)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "form", [np.bool_, np.int16, np.float32, np.complex128], ids=str
)
def test_scatter_keeps_the_last_value(dim: int, form: Any) -> None:
    base, index, src = case(dim, form)
    out = base.copy()
    scatter(from_numpy(out), dim, from_numpy(index), from_numpy(src))
    assert np.array_equal(out, reference(base, dim, index, src, add=False))


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize(
    "form", [np.uint8, np.int64, np.float32, np.float64, np.complex64], ids=str
)
def test_scatter_add_adds_in_order(dim: int, form: Any) -> None:
    base, index, src = case(dim, form)
    out = base.copy()
    scatter_add(from_numpy(out), dim, from_numpy(index), from_numpy(src))
    assert np.array_equal(out, reference(base, dim, index, src, add=True))


def test_scatter_writes_one_number() -> None:
    out = np.zeros((2, 3), np.float16)
    scatter(from_numpy(out), 1, from_numpy(np.array([[2], [0]])), 1.5)
    assert out.tolist() == [[0, 0, 1.5], [1.5, 0, 0]]


def test_scatter_writes_rows_by_an_index_that_repeats() -> None:
    src, rows = np.arange(12.0).reshape(3, 4), np.array([1, 0, 1])
    index = view_of(from_numpy(rows), (3, 4), (1, 0), 0)
    out = np.full((3, 4), 7.0)
    scatter(from_numpy(out), 0, index, from_numpy(src))
    assert np.array_equal(out, [src[1], src[2], [7.0] * 4])


def test_scatter_add_of_booleans_is_any() -> None:
    out = np.array([False, False, True])
    src = np.array([True, True, False])
    index = np.array([0, 0, 2])
    scatter_add(from_numpy(out), 0, from_numpy(index), from_numpy(src))
    assert out.tolist() == [True, False, True]


@pytest.mark.parametrize("form", [np.float16, bfloat16], ids=str)
def test_scatter_add_rounds_16_bit_floats_once(form: Any) -> None:
    # 256 ones added one by one to 256 would be lost in bfloat16.
    out, src = np.array([256, 1], form), np.ones(256, form)
    index = np.zeros(256, np.int64)
    scatter_add(from_numpy(out), 0, from_numpy(index), from_numpy(src))
    assert out.astype(np.float32).tolist() == [512, 1]


def test_scatter_add_overflows_without_a_warning() -> None:
    out, src = np.array([60000], np.float16), np.array([60000], np.float16)
    scatter_add(from_numpy(out), 0, from_numpy(np.array([0])), from_numpy(src))
    assert out[0] == np.inf


@pytest.mark.parametrize("kernel", [scatter, scatter_add])
def test_a_bad_index_leaves_the_output_alone(kernel: Any) -> None:
    out = np.zeros((3, 2), np.float32)
    index = from_numpy(np.array([[0, 1], [2, 3]]))
    with pytest.raises(IndexOutOfRange) as caught:
        kernel(from_numpy(out), 0, index, from_numpy(np.ones((2, 2), np.float32)))
    assert (caught.value.index, caught.value.size, caught.value.dim) == (3, 3, 0)
    assert caught.value.operator == f"core::{kernel.__name__}"
    assert not out.any()


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("alpha", [1, -2])
def test_index_add_adds_slices(dim: int, alpha: int) -> None:
    rng = np.random.default_rng(4)
    base = rng.integers(0, 9, (5, 4, 6)).astype(np.float64)
    index = np.array([2, 0, 2])
    shape = tuple(3 if d == dim else n for d, n in enumerate(base.shape))
    src = rng.integers(0, 9, shape[::-1]).astype(np.float64).T
    wanted = base.copy()
    where: Any = (*(slice(None),) * dim, index)
    np.add.at(wanted, where, alpha * src)
    out = base.copy()
    index_add(from_numpy(out), dim, from_numpy(index), from_numpy(src), alpha)
    assert np.array_equal(out, wanted)


def test_index_add_takes_numbers_and_nothing() -> None:
    out = np.array(1.0)
    one = from_numpy(np.array(2.0))
    index_add(from_numpy(out), 0, from_numpy(np.array([0])), one, 0.5)
    assert out == 2.0
    empty = np.zeros((0, 3))
    index_add(
        from_numpy(empty), 0, from_numpy(np.zeros(0, np.int64)), from_numpy(empty)
    )
    with pytest.raises(IndexOutOfRange, match="the dimension is empty"):
        index_add(from_numpy(empty), 0, from_numpy(np.array([0])), from_numpy(empty))


@pytest.mark.parametrize("layout", ["rows", "columns", "one", "sheets"])
def test_adding_is_the_same_on_several_threads(
    layout: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Geometries that no other test has asked for, so that they are made with this.
    monkeypatch.setattr(walks, "GRAIN", 256)
    rng = np.random.default_rng(5)
    shape, dim = {
        "rows": ((125, 128), 0),
        "columns": ((64, 64), 1),
        "one": ((1 << 12,), 0),
        "sheets": ((8, 16, 32), 1),
    }[layout]
    base = rng.standard_normal(shape).astype(np.float32)
    src = rng.standard_normal(shape).astype(np.float32)
    index = rng.integers(0, shape[dim], shape)
    places: Any = from_numpy(index)
    if layout == "rows":
        places = view_of(from_numpy(index[:, 0].copy()), shape, (1, 0), 0)
    found = []
    before = get_num_threads()
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            out = base.copy()
            scatter_add(from_numpy(out), dim, places, from_numpy(src))
            found.append(out)
    finally:
        set_num_threads(before)
    assert found[0].tobytes() == found[1].tobytes()
    where = np.broadcast_to(index[:, :1], shape) if layout == "rows" else index
    wanted = base.astype(np.float64)
    grid: list[Any] = list(np.indices(shape, sparse=True))
    grid[dim] = where
    np.add.at(wanted, tuple(grid), src)
    assert np.allclose(found[0], wanted, atol=1e-5)
