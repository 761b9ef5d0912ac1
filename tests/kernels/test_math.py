"""Functions of a number: their error over the whole range, and their special values.

The references are NumPy's in the next wider precision.  Single precision is swept over
all bit patterns in even steps: denormal numbers, infinities and NaN are among them.
"""

import math as libm
import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels import math
from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.pointwise import PLAIN, REAL

UNCOMPILED = os.environ.get("NUMBA_DISABLE_JIT") == "1"

# A sweep of four million numbers takes a second; uncompiled it is a thousand times
# slower, and made thinner.
STEP = 997 if not UNCOMPILED else 8_000_009
POINTS = 40_000 if not UNCOMPILED else 100

# function -> greatest error in ulp, in single and in double precision: what its
# docstring says.
BOUNDS: dict[str, tuple[float, float]] = {
    "exp": (1.1, 1.1),
    "expm1": (2, 2),
    "log": (1.2, 1.2),
    "log1p": (2, 2),
    "log2": (2, 2),
    "log10": (2, 2),
    "sin": (2, 2),
    "cos": (2, 2),
    "tan": (4, 4),
    "tanh": (3, 3),
    "sigmoid": (3, 3),
}


# function -> greatest error where x is above 0, in ulp of the result, and below, where
# the weight is what rounding left of 1 - 1, in ulp of x.
WEIGHED: dict[str, tuple[float, float]] = {"gelu": (3, 2), "gelu_tanh": (2, 1)}


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _silu(x: Any) -> Any:
    return x / (1 + np.exp(-x))


def _gelu(x: Any) -> Any:
    # libm knows doubles only; what their rounding takes from z is put back by the
    # derivative.
    z = -x / np.sqrt(np.longdouble(2))
    nearest = z.astype(np.float64)
    tail = np.fromiter(map(libm.erfc, nearest), np.float64, x.size)
    slope = np.exp(-np.square(nearest, dtype=np.longdouble)) * 2
    lost = np.where(np.isfinite(nearest), z - nearest, 0)
    return x * (tail - slope / np.sqrt(np.longdouble(np.pi)) * lost) / 2


def _gelu_tanh(x: Any) -> Any:
    root = np.sqrt(2 / np.longdouble(np.pi))
    return x / (1 + np.exp(-2 * root * (x + np.longdouble("0.044715") * x**3)))


def _erf(x: Any) -> Any:
    return np.array([libm.erf(value) for value in x])


def _single() -> Any:
    return np.arange(0, 2**32, STEP, dtype=np.uint64).astype(np.uint32).view(np.float32)


def _double() -> Any:
    sizes = np.concatenate(
        [
            np.logspace(-320, 308, POINTS),
            np.linspace(1e-3, 800, POINTS),
            np.linspace(0.4, 2.5, POINTS),
        ]
    )
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan]
    return np.concatenate([sizes, -sizes, special])


def _applied(function: Callable[[Any], Any], x: Any) -> Any:
    def body(x: Any, out: Any) -> None:
        for i in range(x.size):
            out[i] = function(x[i])

    out = np.empty_like(x)
    Family("applied", body, "void(T[::1], T[::1])")[x.dtype.name](x, out)
    return out


def _function(name: str) -> Callable[[Any], Any]:
    """Of the mathematics, or else what a kernel computes of each element."""
    if hasattr(math, name):
        found: Callable[[Any], Any] = getattr(math, name)
        return found
    return REAL[name].scalar("f")


def _errors(found: Any, exact: Any) -> Any:
    """In units of the last place of the exact result; 0 where both are NaN or equal."""
    with np.errstate(all="ignore"):
        expected = exact.astype(found.dtype)
        units = np.abs(found - exact) / np.spacing(np.abs(expected))
        same = (found == expected) | (np.isnan(found) & np.isnan(expected))
        return np.where(same, 0, units)


def _wide(function: Callable[[Any], Any], x: Any) -> Any:
    with np.errstate(all="ignore"):
        return function(
            x.astype(np.float64 if x.dtype == np.float32 else np.longdouble)
        )


@pytest.mark.parametrize("name", BOUNDS)
@pytest.mark.parametrize("precision", [0, 1], ids=["single", "double"])
def test_error_over_the_whole_range(name: str, precision: int) -> None:
    if precision and np.finfo(np.longdouble).nmant < 60:
        pytest.skip("no precision wider than double to compare with")
    x = (_single, _double)[precision]()
    exact = _wide(_sigmoid if name == "sigmoid" else getattr(np, name), x)
    found = _applied(_function(name), x)
    errors = _errors(found, exact)
    worst = int(np.argmax(np.nan_to_num(errors, nan=np.inf)))
    assert errors[worst] <= BOUNDS[name][precision], (x[worst], found[worst])


needs_wider = pytest.mark.skipif(
    np.finfo(np.longdouble).nmant < 60,
    reason="no precision wider than double to compare with",
)


@needs_wider
@pytest.mark.parametrize("precision", [0, 1], ids=["single", "double"])
def test_rsqrt_over_the_whole_range(precision: int) -> None:
    x = (_single, _double)[precision]()
    exact = _wide(lambda x: 1 / np.sqrt(x), x)
    found = np.empty_like(x)
    REAL["rsqrt"].flat[x.dtype.name](x, found)
    # A root and a quotient, half a unit each, of which the root's counts up to double.
    assert _errors(found, exact).max() <= 1.5


@needs_wider
@pytest.mark.parametrize("precision", [0, 1], ids=["single", "double"])
def test_silu_over_the_whole_range(precision: int) -> None:
    x = (_single, _double)[precision]()
    x = x[x != -np.inf]
    found, exact = _applied(_function("silu"), x), _wide(_silu, x)
    errors = _errors(found, exact)
    # A denormal weight has lost digits: half of the least number, times x.
    with np.errstate(all="ignore"):
        lost = np.abs(x) * np.finfo(x.dtype).smallest_subnormal
        units = lost / np.spacing(np.abs(exact.astype(x.dtype)))
    weak = _wide(_sigmoid, x) < 2 * np.finfo(x.dtype).tiny
    assert errors[~weak].max() <= 4
    assert (errors[weak] <= 4 + units[weak]).all()


@needs_wider
@pytest.mark.parametrize("name", WEIGHED)
@pytest.mark.parametrize("precision", [0, 1], ids=["single", "double"])
def test_gelu_over_the_whole_range(name: str, precision: int) -> None:
    x = (_single, _double)[precision]()
    x = x[x != -np.inf]
    exact = _wide(_gelu if name == "gelu" else _gelu_tanh, x)
    found = _applied(_function(name), x)
    above, below = WEIGHED[name]
    errors = _errors(found, exact)
    assert errors[~(x < 0)].max() <= above
    with np.errstate(all="ignore"):
        units = np.abs(found - exact) / np.spacing(np.abs(x))
    assert units[x < 0].max() <= below


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_erf(dtype: str) -> None:
    small = np.geomspace(1e-30, 1, 3000)
    x = np.concatenate(
        [small, np.linspace(0.5, 7, 20_000 // (50 if UNCOMPILED else 1))]
    )
    x = np.concatenate([x, -x, [0.0, -0.0, np.inf, -np.inf]]).astype(dtype)
    # libm's own error is below one unit.
    assert _errors(_applied(math.erf, x), _erf(x)).max() <= (
        2 if dtype[-2:] == "32" else 3
    )


NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("exp", [0.0, -0.0, INF, -INF, NAN], [1, 1, INF, 0, NAN]),
        ("expm1", [0.0, INF, -INF, NAN], [0, INF, -1, NAN]),
        (
            "log",
            [1, 0.0, -0.0, -1, INF, -INF, NAN],
            [0, -INF, -INF, NAN, INF, NAN, NAN],
        ),
        ("log2", [1, 8, 0.5, 0.0, -1, INF], [0, 3, -1, -INF, NAN, INF]),
        ("log10", [1, 0.0, -1, INF, NAN], [0, -INF, NAN, INF, NAN]),
        ("log1p", [0.0, -1, -2, INF, NAN], [0, -INF, NAN, INF, NAN]),
        ("sin", [0.0, INF, -INF, NAN], [0, NAN, NAN, NAN]),
        ("cos", [0.0, INF, -INF, NAN], [1, NAN, NAN, NAN]),
        ("tan", [0.0, INF, -INF, NAN], [0, NAN, NAN, NAN]),
        ("tanh", [0.0, INF, -INF, NAN, 50], [0, 1, -1, NAN, 1]),
        ("sigmoid", [0.0, INF, -INF, NAN, 100], [0.5, 1, 0, NAN, 1]),
        ("erf", [0.0, INF, -INF, NAN, 10], [0, 1, -1, NAN, 1]),
        ("gelu", [0.0, INF, NAN, 10], [0, INF, NAN, 10]),
        ("gelu_tanh", [0.0, INF, NAN, 20], [0, INF, NAN, 20]),
        ("silu", [0.0, INF, NAN, 100], [0, INF, NAN, 100]),
    ],
)
def test_special_values(
    dtype: str, name: str, given: list[float], expected: list[float]
) -> None:
    found = _applied(_function(name), np.array(given, dtype))
    np.testing.assert_array_equal(found, np.array(expected, dtype))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["expm1", "log1p", "sin", "tan", "tanh", "erf"])
def test_odd_functions_keep_the_sign_of_zero(name: str, dtype: str) -> None:
    found = _applied(_function(name), np.array([0.0, -0.0], dtype))
    assert np.signbit(found).tolist() == [False, True]


@pytest.mark.parametrize(
    ("dtype", "near", "far"), [("float32", 1e5, 1.1e5), ("float64", 1e9, 1.1e9)]
)
def test_near_and_far(dtype: str, near: float, far: float) -> None:
    x = np.array([near, -near, far, -far, INF, NAN], dtype)
    found = _applied(math.is_near, x)
    assert found.tolist() == [1, 1, 0, 0, 0, 0]
    huge = np.array([far, 1e30], dtype)
    assert _errors(_applied(math.sin, huge), _wide(np.sin, huge)).max() <= 2


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["gelu", "gelu_tanh", "silu"])
def test_slopes_are_derivatives(name: str, dtype: str) -> None:
    gradient, like = PLAIN[f"{name}_backward"].scalar("f"), math.like

    def slope(x: Any) -> Any:
        return gradient(like(x, 1.0), x)

    x = np.linspace(-6, 6, 121)
    step = 1e-5
    function = _function(name)
    rise = _applied(function, x + step) - _applied(function, x - step)
    found = _applied(slope, x.astype(dtype))
    accuracy = 2e-6 if dtype == "float32" else 1e-9
    np.testing.assert_allclose(found, rise / (2 * step), atol=accuracy)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_activations(dtype: str) -> None:
    x = np.linspace(-8, 8, 1001).astype(dtype)
    exact = x.astype(np.float64)
    accuracy = 3e-7 if dtype == "float32" else 1e-15
    normal = (1 + _erf(exact / np.sqrt(2))) / 2
    cubic = np.sqrt(2 / np.pi) * (exact + 0.044715 * exact**3)
    for found, expected in (
        (_applied(_function("gelu"), x), exact * normal),
        (_applied(_function("gelu_tanh"), x), exact * (1 + np.tanh(cubic)) / 2),
        (_applied(_function("silu"), x), exact * _sigmoid(exact)),
    ):
        np.testing.assert_allclose(
            found, expected, rtol=2 * accuracy, atol=4 * accuracy
        )


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_rounding(dtype: str) -> None:
    x = np.array([-2.5, -0.5, 0.5, 1.5, 2.7], dtype)
    for function, expected in (
        (math.rint, [-2, 0, 0, 2, 3]),
        (math.floor, [-3, -1, 0, 1, 2]),
        (math.ceil, [-2, 0, 1, 2, 3]),
        (math.trunc, [-2, 0, 0, 1, 2]),
    ):
        assert _applied(function, x).tolist() == expected
    assert _applied(math.sqrt, np.array([4, 0, -1], dtype))[:2].tolist() == [2, 0]
