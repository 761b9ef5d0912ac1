"""Complex exponentials and tangents where their parts overflow."""

import cmath

import numpy as np
import pytest

from runtime.operators import core
from tests.operators.made import tensor


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_tanh_far_from_zero_is_one(dtype: str) -> None:
    found = core.tanh(tensor([100 + 0j, -1000 + 0j, 1000 + 3j, -90 - 2j], dtype))
    assert np.allclose(found.tolist(), [1, -1, 1, -1], rtol=0, atol=1e-37)


@pytest.mark.parametrize("real", [-20.5, -19.5, 0.25, 19.5, 20.5, 40.0])
def test_tanh_is_pythons(real: float) -> None:
    for imag in (-2.5, -0.0, 0.5, 3.0):
        found = core.tanh(tensor([complex(real, imag)], "complex128")).item()
        expected = cmath.tanh(complex(real, imag))
        parts = (expected.real, expected.imag)
        assert np.allclose((found.real, found.imag), parts, rtol=1e-13, atol=1e-16)


@pytest.mark.parametrize(("dtype", "real"), [("complex64", 100), ("complex128", 1000)])
def test_exp_of_a_large_real_number(dtype: str, real: int) -> None:
    found = core.exp(tensor([complex(real, 0), complex(real, -0.0)], dtype)).tolist()
    assert [str(each) for each in found] == ["(inf+0j)", "(inf-0j)"]


def test_exp_is_pythons() -> None:
    values = [0j, 1 + 2j, -3 - 0.5j, 5 + 100j, -800 + 1j]
    found = core.exp(tensor(values, "complex128")).tolist()
    assert np.allclose(found, [cmath.exp(value) for value in values], rtol=1e-14)
