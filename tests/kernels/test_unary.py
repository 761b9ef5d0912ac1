"""Kernels of one operand against NumPy: every name, kind of dtype and layout."""

import numpy as np
import pytest

from runtime.kernels.cpu import KERNELS
from runtime.tensors.making import from_numpy
from tests.kernels.made import REAL, agree, data, empty
from tests.kernels.references import TESTS, UNARY

UNARY_CASES = [(name, dtype) for name, (_, dtypes) in UNARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "dtype"), UNARY_CASES)
def test_unary(name: str, dtype: str) -> None:
    x = data(dtype, (4, 6))
    with np.errstate(all="ignore"):
        expected = UNARY[name][0](x)
    out = empty((4, 6), dtype)
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), expected)
    turned = empty((4, 6), dtype)
    KERNELS[name](turned, from_numpy(np.asfortranarray(x)))
    agree(turned.numpy(), expected)
    onto = from_numpy(x.copy())
    KERNELS[name](onto, onto)
    agree(onto.numpy(), expected)


@pytest.mark.parametrize("name", TESTS)
@pytest.mark.parametrize("dtype", ["bool", "int64", "float32", "float64", "complex64"])
def test_questions(name: str, dtype: str) -> None:
    x = data(dtype, (3, 4))
    x[0, 0] = 0
    if x.dtype.kind in "fc":
        x[0, 1:4] = np.nan, np.inf, -np.inf
    if x.dtype.kind == "c":
        x[1, :2] = complex(0, np.inf), complex(0, np.nan)
    out = empty((3, 4), "bool")
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), getattr(np, name)(x))
    turned = empty((4, 3), "bool")
    KERNELS[name](turned, from_numpy(x.T))
    agree(turned.numpy(), getattr(np, name)(x.T))


def test_the_size_of_a_complex_number_is_real() -> None:
    x = np.array([[3 + 4j, 1e30 + 0j], [0j, complex(np.inf, np.nan)]], np.complex64)
    out = empty((2, 2), "float32")
    KERNELS["abs"](out, from_numpy(x.T))
    assert out.tolist() == [[5, 0], [np.float32(1e30), np.inf]]


def test_nan_passes_relu() -> None:
    x = np.array([np.nan, -1, 0, 2], np.float32)
    out = empty((4,), "float32")
    KERNELS["relu"](out, from_numpy(x))
    assert np.isnan(out.numpy()[0])
    assert out.tolist()[1:] == [0, 0, 2]


def test_nan_has_no_sign() -> None:
    x = np.array([np.nan, -np.inf, -1, -0.0, 2], np.float32)
    out = empty((5,), "float32")
    KERNELS["sign"](out, from_numpy(x))
    assert out.tolist() == [0, -1, -1, 0, 1]


@pytest.mark.parametrize("name", ["sin", "cos", "tan"])
@pytest.mark.parametrize("dtype", REAL)
def test_one_number_far_away_does_not_harm_its_block(name: str, dtype: str) -> None:
    x = np.linspace(-4, 4, 1500).astype(dtype)
    x[700] = 1e30
    expected = getattr(np, name)(x.astype(np.longdouble))
    out = empty(x.shape, dtype)
    KERNELS[name](out, from_numpy(x))
    agree(out.numpy(), expected)
    onto = from_numpy(x)
    KERNELS[name](onto, onto)
    agree(onto.numpy(), expected)


@pytest.mark.parametrize("approximate", ["none", "tanh"])
def test_gelu_takes_its_approximation(approximate: str) -> None:
    x, out = np.array([1.0, -1.0]), empty((2,), "float64")
    KERNELS["gelu"](out, from_numpy(x), approximate)
    exact = {"none": 0.8413447460685429, "tanh": 0.8411919906082768}[approximate]
    agree(out.numpy(), [exact, exact - 1])
