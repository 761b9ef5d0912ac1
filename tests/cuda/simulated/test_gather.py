"""gather and index_select on the device against the CPU's."""

import numpy as np
import pytest

from runtime.errors.tensor import IndexOutOfRange
from runtime.kernels.cuda import KERNELS as CUDA
from tests.cuda.simulated.agreement import agree, empty, same
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
