"""Reading, writing and adding by an index on the device against the CPU's."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.operators import core
from tests.cuda.simulated.agreement import agree, empty, numbers, same
from tests.cuda.simulated.arrays import STORED, form, get, put, samples


def indices(shape: tuple[int, ...], size: int, kind: str = "int64") -> np.ndarray:
    """Indices below a size."""
    return np.random.default_rng(5).integers(0, size, shape).astype(kind)


@pytest.mark.parametrize("dtype", STORED)
def test_gather(dtype: str) -> None:
    x = samples(dtype).reshape(2, 3, 4)
    for dim in range(3):
        shape = tuple(5 if at == dim else min(2, n) for at, n in enumerate(x.shape))
        index = indices(shape, x.shape[dim], "int32" if dim == 1 else "int64")
        agree("gather", [empty(shape, form(dtype))], x, dim, index, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_index_select(dtype: str) -> None:
    x = samples(dtype).reshape(2, 3, 4)
    for dim in range(3):
        shape = tuple(5 if at == dim else n for at, n in enumerate(x.shape))
        index = indices((5,), x.shape[dim], "uint8" if dim == 1 else "int64")
        agree("index_select", [empty(shape, form(dtype))], x, dim, index, compare=same)


def test_many_dimensions() -> None:
    x = np.arange(2**6).reshape((2,) * 6)
    index = indices((2, 1, 2, 1, 2, 2), 2)
    agree("gather", [empty(index.shape, np.int64)], x, 2, index, compare=same)


def test_numbers_and_nothing() -> None:
    number, index = np.array(3.5), np.array([0, 0])
    agree("gather", [empty((2,), float)], number, 0, index, compare=same)
    agree("gather", [empty((), float)], number, 0, np.array(0), compare=same)
    agree("index_select", [empty((), float)], number, 0, np.array(0), compare=same)
    nothing = np.zeros((0, 3), np.int64)
    agree("gather", [empty((0, 3), float)], np.ones((4, 3)), 0, nothing, compare=same)


@pytest.mark.parametrize(
    ("name", "shape"), [("gather", (3, 2)), ("index_select", (3,))]
)
def test_an_index_outside_is_refused_first(name: str, shape: tuple[int, ...]) -> None:
    for bad in (-1, 4):
        index = np.zeros(shape, np.int64)
        index[2] = bad
        out = put(np.full((3, 2), 7.0))
        with pytest.raises(IndexOutOfRange) as caught:
            CUDA[name](out, put(np.ones((4, 2))), 0, put(index))
        assert caught.value.fields() == {
            "operator": f"core::{name}",
            "index": bad,
            "size": 4,
            "dim": 0,
            "wraps": False,
        }
        np.testing.assert_array_equal(get(out), np.full((3, 2), 7.0))


# What stands in the brackets of a tensor of shape (2, 3, 4).
BRACKETS: list[Any] = [
    [np.array([1, 0, -1])],
    [None, np.array([[2, 0], [-3, 1]], np.int32)],
    [None, np.array([2, 0], np.uint8), np.array([[1], [-1]])],
    [np.array([1, 0]), None, np.array([3, -4])],
    [np.array(1), np.array([0, 2]), np.array([[3], [0]])],
    [np.zeros((0,), np.int64)],
    [None, None, np.array(2)],
]


def shape_of(brackets: Any) -> tuple[int, ...]:
    """The shape of the result, by NumPy."""
    places = tuple(slice(None) if one is None else one for one in brackets)
    return np.zeros((2, 3, 4))[places].shape


@pytest.mark.parametrize("brackets", BRACKETS)
def test_index(brackets: Any) -> None:
    x = np.arange(24.0).reshape(2, 3, 4)
    agree("index", [empty(shape_of(brackets), float)], x, brackets, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_of_every_dtype(dtype: str) -> None:
    x, brackets = samples(dtype).reshape(2, 3, 4), BRACKETS[1]
    shape = shape_of(brackets)
    agree("index", [empty(shape, form(dtype))], x, brackets, compare=same)
    values = np.resize(samples(dtype)[::-1], shape)
    for adds in (False, True):
        agree("index_put", [x], brackets, values, adds, compare=same)


@pytest.mark.parametrize("brackets", BRACKETS)
@pytest.mark.parametrize("adds", [False, True])
def test_index_put(brackets: Any, adds: bool) -> None:
    start, shape = np.zeros((2, 3, 4)), shape_of(brackets)
    values = np.arange(float(np.prod(shape))).reshape(shape)
    agree("index_put", [start], brackets, values, adds, compare=same)
    agree("index_put", [start], brackets, np.array(5.0), adds, compare=same)


@pytest.mark.parametrize("bad", [3, -4])
def test_an_index_outside_is_refused_first_of_lists(bad: int) -> None:
    brackets = [None, put(np.array([0, bad]))]
    expected = {"index": bad, "size": 3, "dim": 1, "wraps": True}
    out = put(np.full((2, 3), 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["index_put"](out, brackets, put(np.ones((2, 2))), False)
    assert caught.value.fields() == {"operator": "core::index_put", **expected}
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["index"](out, put(np.ones((2, 3))), brackets)
    assert caught.value.fields() == {"operator": "core::index", **expected}
    np.testing.assert_array_equal(get(out), np.full((2, 3), 7.0))


@pytest.mark.parametrize("adds", [False, True])
def test_index_put_keeps_the_order_of_memory(adds: bool) -> None:
    x = core.transpose(put(np.arange(6.0).reshape(2, 3)), 0, 1)
    found = core.index_put(x, [put(np.array([0, -1]))], put(np.array(7.0)), adds)
    wanted = np.arange(6.0).reshape(2, 3).T.copy()
    wanted[[0, -1]] = wanted[[0, -1]] + 7 if adds else 7
    np.testing.assert_array_equal(get(found), wanted)
    assert found.strides == (1, 3)


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("name", ["scatter", "scatter_add"])
def test_of_every_dtype_of_scattering(name: str, dtype: str) -> None:
    start = samples(dtype).reshape(2, 3, 4)
    src = samples(dtype)[::-1].reshape(4, 3, 2).copy()
    for dim in range(3):
        shape = tuple(3 if at == dim else 2 for at in range(3))
        index = indices(shape, start.shape[dim], "int16" if dim == 1 else "int64")
        given = src if dim == 0 else src.reshape(2, 3, 4)
        given = given[:3, :3, :2] if dim == 0 else given[:2, :3, :3]
        agree(name, [start], dim, index, given.copy(), compare=same)


def equal(found: Any, expected: Any) -> None:
    """Equal numbers; a NaN may have another sign."""
    assert found.dtype == expected.dtype
    wide = complex if np.iscomplexobj(found) else float
    np.testing.assert_array_equal(found.astype(wide), expected.astype(wide))


@pytest.mark.parametrize("dtype", STORED)
@pytest.mark.parametrize("how", ["prod", "amax", "amin"])
def test_of_every_dtype_of_combining(how: str, dtype: str) -> None:
    start = samples(dtype).reshape(2, 3, 4)
    if np.iscomplexobj(start) and how != "prod":
        return
    src = samples(dtype)[::-1].reshape(2, 3, 4)[:, :3, :3].copy()
    for dim in range(3):
        index = indices((2, 3, 3), start.shape[dim]) % start.shape[dim]
        fits = tuple(min(n, m) for n, m in zip(index.shape, start.shape, strict=True))
        at = tuple(slice(3 if d == dim else n) for d, n in enumerate(fits))
        agree("scatter_reduce", [start], dim, index[at], src, how, compare=equal)


@pytest.mark.parametrize("dtype", ["int32", "float16", "bool", "complex128"])
def test_one_number_everywhere(dtype: str) -> None:
    start = samples(dtype).reshape(4, 6)
    agree("scatter", [start], 1, indices((4, 3), 6), 1, compare=same)


def test_the_last_of_several_stays() -> None:
    start, src = np.zeros(3), np.arange(40.0)
    index = np.arange(40) % 2
    found = agree("scatter", [start], 0, index, src, compare=same)
    np.testing.assert_array_equal(found[0], [38.0, 39.0, 0.0])


def test_many_dimensions_and_the_last_of_several() -> None:
    start, src = np.zeros((2,) * 6), np.arange(2.0**6).reshape((2,) * 6)
    index = indices((2,) * 6, 2)
    for name in ("scatter", "scatter_add"):
        agree(name, [start], 3, index.transpose(5, 1, 2, 3, 4, 0), src, compare=same)


@pytest.mark.parametrize("dtype", STORED)
def test_index_add(dtype: str) -> None:
    start = samples(dtype).reshape(2, 3, 4)
    for dim in range(3):
        shape = tuple(5 if at == dim else n for at, n in enumerate(start.shape))
        src = np.resize(samples(dtype)[::-1], shape)
        index = indices((5,), start.shape[dim])
        agree("index_add", [start], dim, index, src, 1, compare=same)
        agree("index_add", [start], dim, index, src, 2, compare=same)


def test_sums_follow_the_order_of_the_index() -> None:
    src = np.array([1e8, 1, 1, -1e8, 1, 3], np.float32)
    agree(
        "scatter_add", [np.zeros(1, np.float32)], 0, np.zeros(6, int), src, compare=same
    )
    halves = np.full(40, 0.5, np.float16)
    start = np.full(1, 2048, np.float16)
    found = agree("scatter_add", [start], 0, np.zeros(40, int), halves, compare=same)
    assert found[0][0] == 2068


def test_numbers_and_nothing_of_scattering() -> None:
    number, index = np.array(3.5), np.array(0)
    for name in ("scatter", "scatter_add"):
        agree(name, [number], 0, index, np.array(2.0), compare=same)
        agree(name, [np.ones(3)], 0, np.zeros(0, int), np.ones(0), compare=same)
    agree("index_add", [number], 0, index, np.array(2.0), 3, compare=same)
    agree("index_add", [np.ones(3)], 0, np.zeros(0, int), np.ones(0), 1, compare=same)


@pytest.mark.parametrize("name", ["scatter", "scatter_add", "index_add"])
def test_an_index_outside_is_refused_first_of_scattering(name: str) -> None:
    extra: tuple[Any, ...] = (1,) if name == "index_add" else ()
    out = put(np.full(4, 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA[name](out, 0, put(np.array([0, 9, -3])), put(np.ones(3)), *extra)
    assert caught.value.fields() == {
        "operator": f"core::{name}",
        "index": 9,
        "size": 4,
        "dim": 0,
        "wraps": False,
    }
    np.testing.assert_array_equal(get(out), np.full(4, 7.0))


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("padding", [-1, 2])
def test_backward(dtype: str, padding: int) -> None:
    index = np.array([[1, 2, 4], [1, 1, 2]], np.int32)
    grad = numbers((2, 3, 5), np.float64).astype(form(dtype))
    out = empty((6, 5), form(dtype))
    agree("embedding_backward", [out], grad, index, padding, compare=same)


def test_nothing_looked_up() -> None:
    out = empty((2, 3), np.float32)
    grad, index = np.zeros((0, 3), np.float32), np.zeros(0, np.int64)
    found = agree("embedding_backward", [out], grad, index, -1, compare=same)
    np.testing.assert_array_equal(found[0], np.zeros((2, 3)))


def test_an_index_outside_is_refused_first_of_embedding() -> None:
    out = put(np.full((3, 2), 7.0))
    with pytest.raises(IndexOutOfRange) as caught:
        CUDA["embedding_backward"](out, put(np.ones((2, 2))), put(np.array([0, 3])), 0)
    assert caught.value.fields() == {
        "operator": "core::embedding_backward",
        "index": 3,
        "size": 3,
        "dim": 0,
        "wraps": False,
    }
    np.testing.assert_array_equal(get(out), np.full((3, 2), 7.0))
