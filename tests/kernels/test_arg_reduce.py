"""argmax and argmin along every dimension and of whole tensors."""

import os
from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.axis import KERNELS, PIECE
from runtime.kernels.threads import get_num_threads, set_num_threads
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)
FORMS = ("bool", "uint8", "int8", "int16", "int32", "int64", "float32", "float64")
NAMES = ("argmax", "argmin")


def found(name: str, x: Array, dim: int | None) -> Array:
    shape = () if dim is None else x.shape[:dim] + x.shape[dim + 1 :]
    out = np.full(shape, 77, np.int64)
    KERNELS[name](from_numpy(out), from_numpy(x), dim)
    return out


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", FORMS)
def test_the_first_of_equals(name: str, form: str) -> None:
    numbers = np.random.default_rng(1).integers(0, 3, (7, 600, 5))
    x = (numbers.astype(form) - (1 if form[0] in "if" else 0)).astype(form)
    for dim in (0, 1, 2):
        expected = getattr(x, name)(dim)
        assert found(name, x, dim).tolist() == expected.tolist()
        turned = np.ascontiguousarray(x.T).T
        assert found(name, turned, dim).tolist() == expected.tolist()
    assert found(name, x, None) == getattr(x, name)()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dim", [0, 1])
def test_the_first_nan_counts(name: str, dim: int) -> None:
    x = np.array(
        [[1, np.nan, np.inf], [np.nan, np.nan, -np.inf], [2, 3, np.nan], [0, -0.0, 1]]
    )
    expected = getattr(x, name)(dim)
    assert found(name, x, dim).tolist() == expected.tolist()


@compiled
@pytest.mark.parametrize("name", NAMES)
def test_a_whole_tensor_in_pieces(name: str) -> None:
    x = np.random.default_rng(2).normal(size=3 * PIECE + 5).astype(np.float32)
    assert found(name, x, None) == getattr(x, name)()
    x[[PIECE + 3, 2 * PIECE]] = np.nan
    assert found(name, x, None) == PIECE + 3


@compiled
@pytest.mark.parametrize("shape", [(40, 9000), (9000, 40)])
def test_threads_change_nothing(shape: tuple[int, int]) -> None:
    x = np.random.default_rng(3).integers(0, 9, shape)
    before = get_num_threads()
    try:
        set_num_threads(3)
        for dim in (0, 1):
            assert found("argmax", x, dim).tolist() == x.argmax(dim).tolist()
    finally:
        set_num_threads(before)


def test_no_rows_and_a_number() -> None:
    assert found("argmax", np.empty((0, 3)), 1).shape == (0,)
    assert found("argmin", np.array(5.0), None) == 0
    assert found("argmin", np.array([5.0]), 0) == 0
