"""Kernels of two operands against NumPy: every name, kind of dtype and layout."""

import numpy as np
import pytest

from runtime.errors.tensor import ArithmeticRefused, WrongOption
from runtime.kernels.cpu import KERNELS, pointwise
from runtime.kernels.math.scalars import DIVIDING
from runtime.tensors.making import from_numpy, view_of
from tests.coded import code
from tests.kernels.made import REAL, agree, data, empty, operand
from tests.kernels.references import BINARY, TO_BOOL, reference_of


@pytest.mark.parametrize(
    ("name", "dtype"), [(name, dtype) for name in BINARY for dtype in BINARY[name]]
)
def test_binary(name: str, dtype: str) -> None:
    a, b = data(dtype, (4, 6)), data(dtype, (4, 6), 1)
    if name in DIVIDING:
        b[b == 0] = 3
    function = reference_of(name)
    kind = "bool" if name in TO_BOOL else dtype
    wide = data(dtype, (4, 12), 2)
    deep = data(dtype, (3, 1, 6), 3).transpose(2, 0, 1)
    for x, y in (
        (a, b),
        (a, b[0]),
        (a[:, :1], b),
        (np.asfortranarray(a), b),
        (wide[:, ::2], b),
        (a, b[1, 1]),
        (a[1, 1], b),
        (deep, b[:3, :5]),
    ):
        with np.errstate(all="ignore"):
            expected = function(x, y)
        out = empty(expected.shape, kind)
        KERNELS[name](out, operand(x), operand(y))
        agree(out.numpy(), expected)
    if kind == dtype:
        with np.errstate(all="ignore"):
            expected, with_number = function(a, b), function(a, b[1, 1])
        for y, wanted in ((from_numpy(b), expected), (b[1, 1].item(), with_number)):
            onto = from_numpy(a.copy())
            KERNELS[name](onto, onto, y)
            agree(onto.numpy(), wanted)


@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_an_operand_of_one_element_stands_for_all(dtype: str) -> None:
    a = data(dtype, (2, 3))
    for other in (np.full((), 2, dtype), np.full((1, 1), 2, dtype)):
        out = empty((2, 3), dtype)
        KERNELS["sub"](out, from_numpy(a), from_numpy(other))
        agree(out.numpy(), a - other)
        KERNELS["sub"](out, from_numpy(other), from_numpy(a))
        agree(out.numpy(), other - a)
    one = empty((1,), dtype)
    KERNELS["add"](one, from_numpy(np.full((), 2, dtype)), 3)
    assert one.tolist() == [5]


def test_a_view_with_an_offset() -> None:
    base = from_numpy(np.arange(12, dtype=np.float32))
    view = view_of(base, (3, 2), (4, 1), 1)
    out = empty((3, 2), "float32")
    KERNELS["add"](out, view, view)
    assert out.tolist() == [[2, 4], [10, 12], [18, 20]]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_complex_numbers_divide_by_zero_as_in_numpy(dtype: str) -> None:
    parts = (0.0, 1.0, -2.0, np.inf, np.nan)
    every = [complex(re, im) for re in parts for im in parts]
    a = np.array([x for x in every for _ in every], dtype)
    b = np.array([y for _ in every for y in every], dtype)
    with np.errstate(all="ignore"):
        expected, inverse, by_zero = a / b, 1 / b, a / b.dtype.type(0)
    out = empty(a.shape, dtype)
    KERNELS["div"](out, from_numpy(a), from_numpy(b))
    assert np.isfinite(out.numpy()).tolist() == np.isfinite(expected).tolist()
    finite = np.isfinite(expected)
    np.testing.assert_allclose(out.numpy()[finite], expected[finite], rtol=1e-6)
    zero = b == 0
    np.testing.assert_array_equal(out.numpy()[zero], expected[zero])
    KERNELS["reciprocal"](out, from_numpy(b))
    np.testing.assert_array_equal(out.numpy()[zero], inverse[zero])
    KERNELS["div"](out, from_numpy(a), 0)
    np.testing.assert_array_equal(out.numpy(), by_zero)
    pointwise.direct_binary("div", dtype)(a, b, out.numpy())
    np.testing.assert_array_equal(out.numpy()[zero], expected[zero])


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8"])
@pytest.mark.parametrize("alpha", [2, -2])
def test_alpha(dtype: str, alpha: int) -> None:
    a, b = data(dtype, (3, 4)), data(dtype, (3, 4), 1)
    factor = np.array([alpha % 256 if dtype == "uint8" else alpha]).astype(dtype)
    for y in (b, b[0], b[0, 0]):
        plus, minus = a + factor * y, a - factor * y
        for name, expected in (("add", plus), ("sub", minus)):
            out, onto = empty((3, 4), dtype), from_numpy(a.copy())
            KERNELS[name](out, from_numpy(a), operand(y), alpha)
            agree(out.numpy(), expected)
            KERNELS[name](onto, onto, operand(y), alpha)
            agree(onto.numpy(), expected)


@pytest.mark.parametrize("name", DIVIDING)
def test_integer_division_by_zero_writes_nothing(name: str) -> None:
    a, out = from_numpy(np.array([7, 8])), from_numpy(np.array([1, 2]))
    for divisor in (from_numpy(np.array([1, 0])), 0):
        with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
            KERNELS[name](out, a, divisor)
        assert caught.value.fields() == {"operator": f"core::{name}", "dtype": "int64"}
        assert out.tolist() == [1, 2]
    assert str(caught.value) == (
        f"`core::{name}` would divide int64 by zero: no integer is that.\n"
        "  fits:  divisors without zeros, or floating-point elements\n"
        "  state: nothing was written"
    )
    KERNELS[name](empty((0,), "int64"), empty((0,), "int64"), 0)


@pytest.mark.parametrize("dtype", ["int8", "int64"])
def test_dividing_the_least_integer_wraps(dtype: str) -> None:
    least = np.iinfo(dtype).min
    a = from_numpy(np.array([least, -7, 7, -7], dtype))
    b = from_numpy(np.array([-1, 2, -2, -2], dtype))
    out = empty((4,), dtype)
    KERNELS["floor_divide"](out, a, b)
    assert out.tolist() == [least, -4, -4, 3]
    KERNELS["remainder"](out, a, b)
    assert out.tolist() == [0, 1, -1, -1]
    KERNELS["fmod"](out, a, b)
    assert out.tolist() == [0, -1, 1, -1]


@pytest.mark.parametrize("dtype", REAL)
def test_floor_division_of_special_values(dtype: str) -> None:
    values = np.array([0.0, -0.0, 1, -1, 5.5, -5.5, np.inf, -np.inf, np.nan], dtype)
    a, b = (grid.reshape(-1).copy() for grid in np.meshgrid(values, values))
    for name in DIVIDING:
        out = empty(a.shape, dtype)
        KERNELS[name](out, from_numpy(a), from_numpy(b))
        with np.errstate(all="ignore"):
            expected = getattr(np, name)(a, b)
        np.testing.assert_array_equal(out.numpy(), expected)


def test_integer_powers() -> None:
    a = np.array([-3, 0, 2, 10, 3], np.int64)
    b = np.array([3, 0, 62, 2, 50], np.int64)
    out = empty((5,), "int64")
    KERNELS["pow"](out, from_numpy(a), from_numpy(b))
    with np.errstate(all="ignore"):
        assert out.tolist() == (a**b).tolist()
    KERNELS["pow"](out, 2, from_numpy(b))
    assert out.tolist() == [8, 1, 2**62, 4, 2**50]
    with pytest.raises(WrongOption, check=code("NegativeExponent")) as caught:
        KERNELS["pow"](out, from_numpy(a), -1)
    assert out.tolist() == [8, 1, 2**62, 4, 2**50]
    assert str(caught.value) == (
        "`core::pow` was given a negative exponent, and int64 has no fractions.\n"
        "  fits:  exponents from 0 on, or floating-point elements\n"
        "  state: nothing was written"
    )
    KERNELS["pow"](empty((0,), "int64"), empty((0,), "int64"), empty((0,), "int64"))


@pytest.mark.parametrize("exponent", [1, 2, 0.5, -1, -0.5, 3])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_powers_by_a_number(exponent: float, dtype: str) -> None:
    x = np.array([0.25, 1, 2, 9], dtype)
    out = empty((4,), dtype)
    KERNELS["pow"](out, from_numpy(x), exponent)
    agree(out.numpy(), x**exponent)


@pytest.mark.parametrize("name", ["maximum", "minimum"])
def test_nan_wins(name: str) -> None:
    a = np.array([np.nan, 1, np.nan, 1], np.float32)
    b = np.array([1, np.nan, np.nan, 2], np.float32)
    out = empty((4,), "float32")
    KERNELS[name](out, from_numpy(a), from_numpy(b))
    assert np.isnan(out.numpy()).tolist() == [True, True, True, False]
