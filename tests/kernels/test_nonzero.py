"""nonzero: positions by bits."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.index import nonzero, nonzero_count
from runtime.schema.codes import DType
from runtime.tensors.elements import SUPPORTED, numpy_dtype
from runtime.tensors.making import from_numpy

DTYPES = [numpy_dtype(DType.named(name)) for name in SUPPORTED]


def positions(x: Any) -> Any:
    tensor = from_numpy(x)
    out = np.full((nonzero_count(tensor), x.ndim), -1)
    nonzero(from_numpy(out), tensor)
    return out


@pytest.mark.parametrize("form", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(40,), (5, 8), (2, 4, 5)])
def test_positions_are_in_row_major_order(form: Any, shape: tuple[int, ...]) -> None:
    x = np.random.default_rng(0).integers(0, 3, shape).astype(form)
    assert np.array_equal(positions(x), np.argwhere(x))
    assert np.array_equal(positions(x.T), np.argwhere(x.T))


@pytest.mark.parametrize("form", [np.float16, np.float32, np.float64], ids=str)
def test_signed_zero_is_zero_and_nan_is_not(form: Any) -> None:
    x = np.array([0.0, -0.0, np.nan, -np.inf, np.finfo(form).smallest_subnormal], form)
    assert positions(x).tolist() == [[2], [3], [4]]


@pytest.mark.parametrize("form", [np.complex64, np.complex128], ids=str)
def test_a_complex_number_is_zero_in_both_parts(form: Any) -> None:
    x = np.array([complex(-0.0, -0.0), 1j, 1, complex(0.0, -0.0)], form)
    assert positions(x).tolist() == [[1], [2]]


def test_numbers_and_nothing() -> None:
    assert positions(np.array(3)).shape == (1, 0)
    assert positions(np.array(0)).shape == (0, 0)
    assert positions(np.zeros((0, 3))).shape == (0, 2)
    assert positions(np.zeros((2, 3))).shape == (0, 2)
