"""Words moved, and numbers added, through an index: in the order of the index."""

from typing import Any

import numpy as np
import pytest
from ml_dtypes import bfloat16

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cpu import index_loops
from everyorder.runtime.kernels.cpu.gather import (
    gather,
    index_add,
    index_select,
    scatter,
    scatter_add,
    scatter_reduce,
)
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import from_numpy, view_of
from everyorder.runtime.tensors.dtype_info import SUPPORTED, numpy_dtype

DTYPES = [numpy_dtype(DType.named(name)) for name in SUPPORTED]
Array = np.ndarray[Any, Any]


def made(shape: tuple[int, ...], form: Any = np.float32, seed: int = 0) -> Array:
    numbers = np.random.default_rng(seed).integers(0, 100, shape)
    return numbers.astype(form)


def gathered(x: Array, dim: int, index: Array) -> Array:
    out = np.zeros(index.shape, x.dtype)
    gather(from_numpy(out), from_numpy(x), dim, from_numpy(index))
    return out


@pytest.mark.parametrize("form", DTYPES, ids=str)
def test_gather_moves_every_dtype(form: Any) -> None:
    x = made((4, 5), form)
    index = np.array([[3, 0, 2, 2, 1], [0, 0, 1, 3, 3]])
    wanted = np.take_along_axis(x, index, 0)
    assert gathered(x, 0, index).tobytes() == wanted.tobytes()


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_gather_takes_an_index_smaller_than_the_source(dim: int) -> None:
    x = made((5, 6, 7))
    index = np.random.default_rng(1).integers(0, x.shape[dim], (3, 4, 2))
    part = x[
        tuple(slice(None) if d == dim else slice(n) for d, n in enumerate((3, 4, 2)))
    ]
    assert np.array_equal(gathered(x, dim, index), np.take_along_axis(part, index, dim))


@pytest.mark.parametrize("dim", [0, 1])
def test_gather_reads_any_strides(dim: int) -> None:
    x = made((6, 8)).T[::2]
    index = np.random.default_rng(2).integers(0, x.shape[dim], (6, 4)).T
    assert np.array_equal(gathered(x, dim, index), np.take_along_axis(x, index, dim))


def test_gather_takes_rows_by_an_index_that_repeats() -> None:
    x, rows = made((5, 64)), np.array([4, 0, 4])
    index = view_of(from_numpy(rows), (3, 64), (1, 0), 0)
    out = np.zeros((3, 64), np.float32)
    gather(from_numpy(out), from_numpy(x), 0, index)
    assert np.array_equal(out, x[rows])


def test_gather_of_a_number_and_of_nothing() -> None:
    number = np.array(3.0, np.float32)
    assert gathered(number, 0, np.array(0)).tolist() == 3.0
    assert gathered(number, 0, np.zeros(2, np.int64)).tolist() == [3.0, 3.0]
    assert gathered(made((0, 2)), 0, np.zeros((0, 2), np.int64)).shape == (0, 2)
    assert gathered(made((3, 2)), 0, np.zeros((0, 2), np.int64)).shape == (0, 2)


def test_gather_names_the_first_bad_index_and_writes_nothing() -> None:
    out = from_numpy(np.full((2, 2), 7.0, np.float32))
    index = from_numpy(np.array([[0, 1], [-1, 9]]))
    with pytest.raises(IndexOutOfRange) as caught:
        gather(out, from_numpy(made((3, 2))), 0, index)
    assert caught.value.fields() == {
        "operator": "core::gather",
        "index": -1,
        "size": 3,
        "dim": 0,
        "wraps": False,
    }
    assert str(caught.value) == (
        "`core::gather` was given index -1 for dimension 0, which has size 3.\n"
        "  fits:  0 to 2\n"
        "  state: nothing was written"
    )
    assert out.tolist() == [[7.0, 7.0], [7.0, 7.0]]


@pytest.mark.parametrize(
    ("shape", "dim"),
    [((1 << 12,), 0), ((64, 64), 0), ((64, 64), 1), ((16, 16, 16), 1)],
)
@pytest.mark.parametrize("repeats", [False, True])
def test_gather_is_the_same_on_several_threads(
    shape: tuple[int, ...],
    dim: int,
    repeats: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # Geometries that no other test has asked for, so that they are made with this.
    monkeypatch.setattr(index_loops, "GRAIN", 256)
    x = made(shape)
    index = np.random.default_rng(3).integers(0, shape[dim], shape)
    if repeats:
        index = (
            np.broadcast_to(index[..., :1], shape) if dim + 1 < len(shape) else index
        )
    wanted = np.take_along_axis(x, index, dim)
    before = get_num_threads()
    try:
        set_num_threads(3)
        assert np.array_equal(gathered(x, dim, np.array(index)), wanted)
    finally:
        set_num_threads(before)


@pytest.mark.parametrize("dim", [0, 1, 2])
@pytest.mark.parametrize("form", [np.int8, np.complex128], ids=str)
def test_index_select_takes_slices(dim: int, form: Any) -> None:
    x, index = made((3, 4, 5), form), np.array([2, 0, 2, 1])
    wanted = np.take(x, index, dim)
    out = np.zeros(wanted.shape, form)
    index_select(from_numpy(out), from_numpy(x), dim, from_numpy(index))
    assert np.array_equal(out, wanted)


@pytest.mark.parametrize("form", [np.float32, np.bool_, np.complex64], ids=str)
def test_many_rows_are_taken(form: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_loops, "TAKEN", 1)
    monkeypatch.setattr(index_loops, "GRAIN", 64)
    x = made((37, 19), form)
    index = np.random.default_rng(8).integers(0, 36, 41)
    out = np.zeros((40, 19), form)
    # Not from the beginning, neither of the table nor of the index.
    index_select(from_numpy(out), from_numpy(x[1:]), 0, from_numpy(index[1:]))
    assert np.array_equal(out, x[1:][index[1:]])
    index[5] = 36
    before = out.copy()
    with pytest.raises(IndexOutOfRange, match="index 36 for dimension 0"):
        index_select(from_numpy(out), from_numpy(x[1:]), 0, from_numpy(index[1:]))
    assert out.tobytes() == before.tobytes()


def test_index_select_takes_int32_strides_and_numbers() -> None:
    x = made((6, 4)).T
    index = np.array([3, 9, 0, 9], np.int32)[::2]
    out = np.zeros((2, 6), np.float32)
    index_select(from_numpy(out), from_numpy(x), 0, from_numpy(index))
    assert np.array_equal(out, x[[3, 0]])
    single = np.zeros((1, 6), np.float32)
    index_select(from_numpy(single), from_numpy(x), 0, from_numpy(np.array(2)))
    assert np.array_equal(single, x[[2]])
    number = np.zeros((), np.float32)
    index_select(
        from_numpy(number),
        from_numpy(np.array(5.0, np.float32)),
        0,
        from_numpy(np.array([0])),
    )
    assert number == 5.0


@pytest.mark.parametrize("shape", [(0, 3, 4), (0, 3, 0, 2), (2, 3, 0), (2, 3, 0, 5)])
def test_index_select_of_nothing(shape: tuple[int, ...]) -> None:
    x, index = np.ones(shape, np.float32), np.array([2, 0])
    out = np.ones((shape[0], 2, *shape[2:]), np.float32)
    index_select(from_numpy(out), from_numpy(x), 1, from_numpy(index))
    assert not out.size
    with pytest.raises(IndexOutOfRange, match="index 3 for dimension 1"):
        index_select(from_numpy(out), from_numpy(x), 1, from_numpy(np.array([2, 3])))


def test_an_index_that_is_not_in_a_row_is_checked() -> None:
    x, index = made((3, 4)), np.array([[0, 9], [3, 9], [2, 9]])[:, :1]
    with pytest.raises(IndexOutOfRange, match="index 3 for dimension 0"):
        gathered(x, 0, index)
    assert np.array_equal(gathered(x, 1, index), np.take_along_axis(x, index, 1))


def test_index_select_refuses_what_lies_outside() -> None:
    out = np.zeros((1, 2), np.float32)
    with pytest.raises(IndexOutOfRange, match="index 3 for dimension 0"):
        index_select(
            from_numpy(out), from_numpy(made((3, 2))), 0, from_numpy(np.array([3]))
        )


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


@pytest.mark.parametrize("form", DTYPES, ids=str)
@pytest.mark.parametrize("how", ["prod", "amax", "amin"])
def test_scatter_reduce_combines_in_order(how: str, form: Any) -> None:
    if np.dtype(form).kind == "c" and how != "prod":
        return
    combine = {"prod": np.multiply, "amax": np.maximum, "amin": np.minimum}[how]
    base, src = np.array([2, 5, 1]).astype(form), np.array([3, 1, 0, 4]).astype(form)
    index, wanted = np.array([0, 0, 2, 1]), base.copy()
    for at, each in zip(index, src, strict=True):
        wanted[at] = combine(wanted[at], each)
    scatter_reduce(from_numpy(base), 0, from_numpy(index), from_numpy(src), how)
    assert np.array_equal(base, wanted)


@pytest.mark.parametrize("how", ["amax", "amin"])
def test_nan_is_the_extreme_of_its_place(how: str) -> None:
    out, src = np.array([np.nan, 1.0, 2.0]), np.array([5.0, np.nan, 7.0, 9.0])
    index = from_numpy(np.array([0, 1, 1, 2]))
    scatter_reduce(from_numpy(out), 0, index, from_numpy(src), how)
    assert np.isnan(out[:2]).all()
    assert out[2] == {"amax": 9, "amin": 2}[how]


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
    monkeypatch.setattr(index_loops, "GRAIN", 256)
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
