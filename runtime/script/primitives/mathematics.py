"""Mathematics: the functions of the modules `math` and `cmath`.

Scripts call them as the functions that they are.

Rules:
- an int given for a float is converted first, as Python does; where Python has an
  answer for ints only (`gcd`), the row is of ints, and where it has an exact one for
  both (`floor`, `isqrt`), too;
- what is outside of a function's domain raises as in Python (`ValueError`,
  `OverflowError`), as does an int that does not fit 64 bits, with an error of ours;
- `math.hypot`, `math.gcd` and `math.lcm` take two numbers, `math.dist` two lists.
"""

import cmath
import math
from collections.abc import Callable, Iterator
from typing import Any

from runtime.script.primitives.numbers import bounded, overflow
from runtime.script.primitives.row import Row, call, row

# Of a number whose kind shows when the program runs; complex ones are refused.
_SCALAR = "0.5; 1; 1j; True"
_ANY = "0.5; -0.5; 0.0; inf; nan; 1e308; -2.0"
# Functions of one float; what they raise, they raise for some of the samples.
_OF_ONE = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh"),
    *("degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "gamma", "lgamma"),
    *("log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan"),
    *("tanh", "ulp"),
)
# Those of them that raise for no float.
_TOTAL = frozenset(
    {
        *("asinh", "atan", "cbrt", "degrees", "erf", "erfc", "fabs", "radians"),
        *("tanh", "ulp"),
    }
)
_TWO = "1.5, 2.5; -1.5, 0.0; inf, -2.0; nan, 1.0; -8.0, 0.5; 1e308, 1e308; 0.0, -1.0"
# Functions of two floats, and whether they raise for some.
_OF_TWO = {
    "atan2": False,
    "copysign": False,
    "fmod": True,
    "hypot": False,
    "nextafter": False,
    "pow": True,
    "remainder": True,
}
# C(68, 34) and 21! are the first that do not fit 64 bits.
_MOST_CHOSEN, _MOST_ORDERED = 33, 20


def _factorial(n: int) -> int:
    if n > _MOST_ORDERED:
        raise overflow("math.factorial", n)
    return math.factorial(n)


def _comb(n: int, k: int) -> int:
    if n >= k >= 0 and min(k, n - k) > _MOST_CHOSEN:
        raise overflow("math.comb", n, k)
    return _small_comb(n, k)


def _perm(n: int, k: int) -> int:
    if n >= k > _MOST_ORDERED:
        raise overflow("math.perm", n, k)
    return _small_perm(n, k)


_small_comb: Callable[[int, int], int] = bounded("math.comb", math.comb)
_small_perm: Callable[[int, int], int] = bounded("math.perm", math.perm)


def _is_close(a: float, b: float, rel_tol: float, abs_tol: float) -> bool:
    return math.isclose(a, b, rel_tol=rel_tol, abs_tol=abs_tol)


def _of_floats() -> Iterator[Row]:
    for name in _OF_ONE:
        function: Callable[..., Any] = getattr(math, name)
        schema = f"{name}.float(float x) -> float"
        yield row(schema, call(function), function, _ANY, raises=name not in _TOTAL)
        schema = f"{name}.Scalar(Scalar x) -> float"
        yield row(schema, call(function), function, _SCALAR, raises=True)
    schema = "log.base(float x, float base) -> float"
    samples = "8.0, 2.0; 8.0, 1.0; -1.0, 2.0; 2.0, 0.0"
    yield row(schema, call(math.log), math.log, samples, raises=True)
    for name, raises in _OF_TWO.items():
        function = getattr(math, name)
        own = "math_pow" if name == "pow" else name
        schema = f"{own}.float(float x, float y) -> float"
        yield row(schema, call(function), function, _TWO, raises=raises)
    for name in ("isfinite", "isinf", "isnan"):
        function = getattr(math, name)
        schema = f"{name}.float(float x) -> bool"
        yield row(schema, call(function), function, _ANY)
        schema = f"{name}.Scalar(Scalar x) -> bool"
        yield row(schema, call(function), function, _SCALAR, raises=True)
    schema = (
        "isclose.float(float a, float b, *, float rel_tol=1e-09, float abs_tol=0.)"
        " -> bool"
    )
    samples = (
        "1.0, 1.0 + 1e-10; 1.0, 1.1, rel_tol=0.2; inf, inf; 1.0, 1.0, abs_tol=-1.0"
    )
    yield row(schema, call(math.isclose), _is_close, samples, raises=True)
    for name in ("ceil", "floor", "trunc"):
        function = getattr(math, name)
        whole = bounded(f"math.{name}", function)
        samples = "2.5; -2.5; -0.0; 1e19; inf; nan; -9223372036854775808.0"
        schema = f"{name}.float(float x) -> int"
        yield row(schema, call(function), whole, samples, raises=True)
        schema = f"{name}.int(int x) -> int"
        yield row(schema, call(function), function, "MOST; -3")
        schema = f"{name}.Scalar(Scalar x) -> int"
        yield row(schema, call(function), whole, "MOST; -2.5; 1j; 1e19", raises=True)
    schema = "modf.float(float x) -> (float, float)"
    yield row(schema, call(math.modf), math.modf, _ANY)
    schema = "frexp.float(float x) -> (float, int)"
    yield row(schema, call(math.frexp), math.frexp, _ANY)
    schema = "ldexp.float(float x, int i) -> float"
    samples = "1.5, 3; 1.0, 5000; 1.0, -5000; inf, 1; nan, MOST; 1.0, LEAST; 0.0, MOST"
    yield row(schema, call(math.ldexp), math.ldexp, samples, raises=True)
    schema = "dist.float(float[] p, float[] q) -> float"
    samples = "[0.0, 0.0], [3.0, 4.0]; [1.0], []; [], []"
    yield row(schema, call(math.dist), math.dist, samples, raises=True)


def _of_ints() -> Iterator[Row]:
    for name in ("gcd", "lcm"):
        function: Callable[..., Any] = getattr(math, name)
        samples = "12, 18; 0, 0; LEAST, 0; MOST, 2; -4, 6"
        schema = f"{name}.int(int a, int b) -> int"
        whole = bounded(f"math.{name}", function)
        yield row(schema, call(function), whole, samples, raises=True)
    schema = "factorial.int(int x) -> int"
    samples = "0; 20; 21; -1; 1000"
    yield row(schema, call(math.factorial), _factorial, samples, raises=True)
    schema = "comb.int(int n, int k) -> int"
    samples = "5, 2; 5, 6; -1, 1; 66, 33; 67, 33; 68, 34; MOST, 2; 1000, 500"
    yield row(schema, call(math.comb), _comb, samples, raises=True)
    schema = "perm.int(int n, int k) -> int"
    samples = "5, 2; 5, 6; 5, -1; 20, 20; 21, 21; MOST, 2; 1000, 500"
    yield row(schema, call(math.perm), _perm, samples, raises=True)
    schema = "isqrt.int(int n) -> int"
    yield row(schema, call(math.isqrt), math.isqrt, "10; MOST; -1; 0", raises=True)


# Functions of `cmath` of one complex number.
_COMPLEX = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp"),
    *("log", "log10", "sin", "sinh", "sqrt", "tan", "tanh"),
)
# Those of them that raise for no number.
_TOTAL_COMPLEX = frozenset({"acos", "acosh", "asin", "asinh", "sqrt"})


def _of_complex_numbers() -> Iterator[Row]:
    samples = (
        "1+2j; 0j; -1+0j; complex(inf, nan); complex(0, 1e308); complex(0, inf); 1j; "
        "1+0j; complex(inf, 0); complex(1e308, 1e-320); complex(1e308, 1.7e308)"
    )
    for name in _COMPLEX:
        function: Callable[..., Any] = getattr(cmath, name)
        schema = f"{name}.complex(complex z) -> complex"
        raises = name not in _TOTAL_COMPLEX
        yield row(schema, call(function), function, samples, raises=raises)
    for name in ("isfinite", "isinf", "isnan"):
        function = getattr(cmath, name)
        schema = f"{name}.complex(complex z) -> bool"
        yield row(schema, call(function), function, samples)
    schema = "phase.complex(complex z) -> float"
    yield row(schema, call(cmath.phase), cmath.phase, samples, raises=True)
    schema = "polar.complex(complex z) -> (float, float)"
    yield row(schema, call(cmath.polar), cmath.polar, samples, raises=True)
    schema = "rect.float(float r, float phi) -> complex"
    yield row(schema, call(cmath.rect), cmath.rect, f"{_TWO}; 1.0, inf", raises=True)


ROWS = (*_of_floats(), *_of_ints(), *_of_complex_numbers())
