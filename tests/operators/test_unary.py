"""Operators of one tensor: refusals, and complex functions at their limits."""

import cmath
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import DTypeRefused, TargetRefused, WrongOption
from everyorder.runtime.operators import core
from everyorder.runtime.operators.unary import TESTS
from tests.coded import code
from tests.operators.tensors import shown, tensor


@pytest.mark.parametrize("name", TESTS)
def test_bools_are_written_to_a_target_of_numbers(name: str) -> None:
    x = tensor([np.nan, 1.0])
    found = getattr(core, f"{name}_out")(x, out=core.empty([2]))
    assert found.numpy().tolist() == getattr(np, name)(x.numpy()).tolist()


def test_floats_of_integers_in_place_are_refused() -> None:
    x = tensor([1, 2], "int64")
    with pytest.raises(TargetRefused, check=code("TargetDType")) as caught:
        core.exp_(x)
    assert caught.value.fields() == {
        "operator": "core::exp_",
        "argument": "self",
        "dtype": "int64",
        "result": "float32",
    }
    assert shown(x) == ("int64", [1, 2])


def test_gelu_knows_two_approximations() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.gelu(tensor([1.0]), approximate="fast")
    assert str(caught.value) == (
        "`core::gelu` does not take 'fast' for `approximate`.\n  fits: 'none' or 'tanh'"
    )


def test_the_refusal_names_what_fits() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.bitwise_not(tensor([1.0]))
    assert str(caught.value) == (
        "`core::bitwise_not` does not take `self` of dtype float32.\n"
        "  fits: bool, int16, int32, int64, int8, uint8"
    )


INF, NAN = float("inf"), float("nan")


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


def test_expm1_is_exact_near_zero() -> None:
    values = [1e-20 + 0j, 1e-12 + 1e-9j, -1e-9 - 1e-12j, 1e-30j]
    found = core.expm1(tensor(values, "complex128")).tolist()
    # z + z^2 / 2: what follows is beyond double precision.
    for value, given in zip(found, values, strict=True):
        exact = given + given * given / 2
        assert np.allclose(
            (value.real, value.imag), (exact.real, exact.imag), rtol=1e-15, atol=0
        )


def test_expm1_is_exp_less_one() -> None:
    values = [1 + 2j, -3 - 0.5j, 5 + 100j, -800 + 1j, 20 - 3j, complex(-INF, 2)]
    found = core.expm1(tensor(values, "complex128")).tolist()
    assert np.allclose(found, [cmath.exp(value) - 1 for value in values], rtol=1e-13)


# (number, what torch and NumPy give, but for real numbers, which stay real)
LIMITS = [
    (complex(-INF, NAN), "(nan+nanj)"),
    (complex(-INF, INF), "(nan+nanj)"),
    (complex(-INF, 0.0), "(-1+0j)"),
    (complex(-INF, -0.0), "(-1-0j)"),
    (complex(INF, 0.0), "(inf+0j)"),
    (complex(INF, 1.0), "(inf+infj)"),
    (complex(INF, NAN), "(nan+nanj)"),
    (complex(1000.0, -0.0), "(inf-0j)"),
    (complex(0.0, NAN), "(nan+nanj)"),
    (complex(NAN, 1.0), "(nan+nanj)"),
    (complex(-0.0, 0.0), "(-0+0j)"),
]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_expm1_at_its_limits(dtype: str) -> None:
    given = [number for number, _ in LIMITS]
    found = core.expm1(tensor(given, dtype)).tolist()
    assert [str(each) for each in found] == [text for _, text in LIMITS]


PARTS = [0.0, 1.0, 0.5, 1e-30, 1e30, 88.9, 710.0, -745.0, INF, NAN]
SIGNED = [sign * part for part in PARTS for sign in (1, -1)]
FUNCTIONS = ("exp", "expm1", "log", "log2", "log10", "sin", "cos", "tan", "tanh")


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_pair_of_parts(name: str, dtype: str) -> None:
    """Those of NumPy, which are those of C; of real numbers real functions are real."""
    given = np.array([complex(x, y) for x in SIGNED for y in SIGNED]).astype(dtype)
    found = getattr(core, name)(tensor(given.tolist(), dtype)).numpy()
    with np.errstate(all="ignore"):
        expected = getattr(np, name)(given)
        if name == "expm1":
            real = given.imag == 0
            large = np.isfinite(given) & (given.real > 80)
            # NumPy's overflows before its result does; less 1 is no less there.
            expected[large] = np.exp(given[large])
            expected[real] = np.expm1(given.real[real])
    close = 1e-4 if dtype == "complex64" else 1e-12
    # Of the logarithm of what is nearly 1 few digits are right; so it is in C.
    least = 1e-30 if name.startswith("log") else np.finfo(found.real.dtype).tiny
    np.testing.assert_allclose(parts(found), parts(expected), close, least)


def parts(numbers: Any) -> Any:
    """Both parts; an infinity beside NaN has no sign (C17, G.6)."""
    both = np.stack([numbers.real, numbers.imag])
    return np.where(np.isinf(both) & np.isnan(both[::-1]), np.inf, both)


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_a_sigmoid_at_infinity(dtype: str) -> None:
    given = [complex(INF, INF), complex(INF, NAN), complex(INF, 1), complex(-INF, 0)]
    assert core.sigmoid(tensor(given, dtype)).tolist() == [1, 1, 1, 0]


# Zeros of either sign, the ends of the cuts, what overflows, infinities and NaN.
ENDS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, INF, -INF, NAN)
HUGE = {
    "complex64": (1e-30, 3e37, -3e37, 1e18),
    "complex128": (1e-300, 1e308, -1e308, 1e18),
}


@pytest.mark.parametrize("dtype", HUGE)
@pytest.mark.parametrize(
    "name", ["asin", "acos", "atan", "asinh", "acosh", "atanh"], ids=str
)
def test_inverse_functions_are_those_of_c(name: str, dtype: str) -> None:
    """On their cuts, at infinities and beside NaN, to the sign of every zero."""
    parts = (*ENDS, *HUGE[dtype])
    values = np.array([complex(x, y) for x in parts for y in parts], dtype)
    with np.errstate(all="ignore"):
        expected = getattr(np, name.replace("a", "arc", 1))(values)
    found = getattr(core, name)(tensor(values, dtype)).numpy()
    for value, one, other in zip(values, found, expected, strict=True):
        for part in ("real", "imag"):
            here, there = getattr(one, part), getattr(other, part)
            rtol = float(8 * np.finfo(dtype).eps)
            np.testing.assert_allclose(here, there, rtol, 1e-44, err_msg=str(value))
            if there == 0:
                assert np.signbit(here) == np.signbit(there), value


def test_logaddexp_of_complex_infinities() -> None:
    one = tensor(
        [complex(-INF, 1), complex(INF, 2), complex(NAN, 0), 800 + 1j], "complex128"
    )
    two = tensor(
        [complex(-INF, 2), complex(3, 1), complex(INF, 0), 800 + 1j], "complex128"
    )
    found = core.logaddexp(one, two).numpy()
    assert found[0].real == -INF
    assert (found[1].real, found[1].imag) == (INF, 2)
    assert np.isnan(found[2].real)
    np.testing.assert_allclose(found[3], 800 + np.log(2) + 1j)
