"""Small products by BLAS from compiled code."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu import matmul
from runtime.kernels.cpu.matmul import SMALL
from runtime.tensors.making import from_numpy

Array = np.ndarray[Any, Any]
RNG = np.random.default_rng(7)

# Rows, inner size, columns: the last two are the largest that take this way, and more.
SIZES = [(2, 1, 2), (3, 5, 4), (32, 32, 32), (64, 64, SMALL >> 12), (65, 64, 64)]


def made(*shape: int, form: Any) -> Array:
    numbers: Array = RNG.integers(-9, 9, shape).astype(form)
    return numbers


@pytest.mark.parametrize("form", [np.float32, np.float64], ids=str)
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("compiled", [True, False])
def test_products_with_and_without_it(
    sizes: tuple[int, int, int],
    form: Any,
    compiled: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if not compiled:
        monkeypatch.setattr(matmul, "entry", lambda name: None)
    rows, inner, columns = sizes
    a, b = made(rows, inner, form=form), made(inner, columns, form=form)
    weight, bias = made(columns, inner, form=form), made(columns, form=form)
    out = np.full((rows, columns), np.nan, form)
    to, x = from_numpy(out), from_numpy(a)
    matmul.mm(to, x, from_numpy(b))
    assert np.array_equal(out, a @ b)
    matmul.linear(to, x, from_numpy(weight), None)
    assert np.array_equal(out, a @ weight.T)
    matmul.linear(to, x, from_numpy(weight), from_numpy(bias))
    assert np.array_equal(out, a @ weight.T + bias)


def test_a_matrix_by_itself_and_a_bias_with_gaps() -> None:
    a, gaps = made(8, 8, form=np.float32), made(16, form=np.float32)[::2]
    out = np.zeros((8, 8), np.float32)
    x = from_numpy(a)
    matmul.linear(from_numpy(out), x, x, from_numpy(gaps))
    assert np.array_equal(out, a @ a.T + gaps)


def test_nothing_is_called_without_an_address(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matmul, "gemm_address", lambda name: None)
    assert matmul.entry.__wrapped__("float32") is None
