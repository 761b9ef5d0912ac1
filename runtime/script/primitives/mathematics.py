"""Primitives of mathematics: the functions of the modules `math` and `cmath`.

Scripts call them by the Python functions themselves.

Rules:
- an int in place of a float is converted first, as Python does; a function of ints only
  (`gcd`) has a row of ints, and so has one that is exact for ints (`floor`, `isqrt`);
- an argument outside of a function's domain raises as in Python (`ValueError`,
  `OverflowError`); an int result beyond 64 bits raises `ArithmeticRefused`;
- `math.hypot`, `math.gcd` and `math.lcm` take two numbers, `math.dist` two lists.
"""

import cmath
import math
from collections.abc import Callable

from everyorder.runtime.script.primitives.numbers import bounded, overflow
from everyorder.runtime.script.primitives.primitive_row import call, functions, row

# Samples of a Scalar, whose kind is known only at run time; complex ones are refused.
_SCALAR = "0.5; 1; 1j; True"
_ANY = "0.5; -0.5; 0.0; inf; nan; 1e308; -2.0"
# Functions of one float; those that raise do so for some of the samples.
_OF_ONE = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cbrt", "cos", "cosh"),
    *("degrees", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "gamma", "lgamma"),
    *("log", "log10", "log1p", "log2", "radians", "sin", "sinh", "sqrt", "tan"),
    *("tanh", "ulp"),
)
# The functions among them that raise for no float.
_TOTAL = frozenset(
    {
        *("asinh", "atan", "cbrt", "degrees", "erf", "erfc", "fabs", "radians"),
        *("tanh", "ulp"),
    }
)
_TWO = "1.5, 2.5; -1.5, 0.0; inf, -2.0; nan, 1.0; -8.0, 0.5; 1e308, 1e308; 0.0, -1.0"
# Function of two floats -> True if it raises for some.
_OF_TWO = {
    "atan2": False,
    "copysign": False,
    "fmod": True,
    "hypot": False,
    "nextafter": False,
    "remainder": True,
}
# C(68, 34) and 21! are the first that exceed 64 bits.
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


def _of_one(name: str) -> str:
    raises = "" if name in _TOTAL else "  raises"
    return f"""
{name}.float(float x) -> float{raises}
    {_ANY}
{name}.Scalar(Scalar x) -> float  raises
    {_SCALAR}
"""


def _of_two(name: str) -> str:
    raises = "  raises" if _OF_TWO[name] else ""
    return f"{name}.float(float x, float y) -> float{raises}\n    {_TWO}"


def _test(name: str) -> str:
    return f"""
{name}.float(float x) -> bool
    {_ANY}
{name}.Scalar(Scalar x) -> bool  raises
    {_SCALAR}
"""


def _rounding(name: str) -> str:
    return f"""
{name}.float(float x) -> int  raises
    2.5; -2.5; -0.0; 1e19; inf; nan; -9223372036854775808.0
{name}.int(int x) -> int
    MOST; -3
{name}.Scalar(Scalar x) -> int  raises
    MOST; -2.5; 1j; 1e19
"""


_LOG_BASE = """
log.base(float x, float base) -> float  raises
    8.0, 2.0; 8.0, 1.0; -1.0, 2.0; 2.0, 0.0
"""
_REST = """
modf.float(float x) -> (float, float)
    0.5; -0.5; 0.0; inf; nan; 1e308; -2.0
frexp.float(float x) -> (float, int)
    0.5; -0.5; 0.0; inf; nan; 1e308; -2.0
ldexp.float(float x, int i) -> float  raises
    1.5, 3; 1.0, 5000; 1.0, -5000; inf, 1; nan, MOST; 1.0, LEAST; 0.0, MOST
dist.float(float[] p, float[] q) -> float  raises
    [0.0, 0.0], [3.0, 4.0]; [1.0], []; [], []
gcd.int(int a, int b) -> int  raises
    12, 18; 0, 0; LEAST, 0; MOST, 2; -4, 6
lcm.int(int a, int b) -> int  raises
    12, 18; 0, 0; LEAST, 0; MOST, 2; -4, 6
factorial.int(int x) -> int  raises
    0; 20; 21; -1; 1000
comb.int(int n, int k) -> int  raises
    5, 2; 5, 6; -1, 1; 66, 33; 67, 33; 68, 34; MOST, 2; 1000, 500
perm.int(int n, int k) -> int  raises
    5, 2; 5, 6; 5, -1; 20, 20; 21, 21; MOST, 2; 1000, 500
isqrt.int(int n) -> int  raises
    10; MOST; -1; 0
"""
_TESTS, _ROUNDED = ("isfinite", "isinf", "isnan"), ("ceil", "floor", "trunc")
_WHOLE = {
    name: bounded(f"math.{name}", getattr(math, name))
    for name in (*_ROUNDED, "gcd", "lcm")
}

# Functions of `cmath` of one complex number.
_COMPLEX = (
    *("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp"),
    *("log", "log10", "sin", "sinh", "sqrt", "tan", "tanh"),
)
# The functions among them that raise for no number.
_TOTAL_COMPLEX = frozenset({"acos", "acosh", "asin", "asinh", "sqrt"})
_PLANE = (
    "1+2j; 0j; -1+0j; complex(inf, nan); complex(0, 1e308); complex(0, inf); 1j; "
    "1+0j; complex(inf, 0); complex(1e308, 1e-320); complex(1e308, 1.7e308)"
)


def _of_complex(name: str) -> str:
    raises = "" if name in _TOTAL_COMPLEX else "  raises"
    return f"{name}.complex(complex z) -> complex{raises}\n    {_PLANE}"


_COMPLEX_REST = f"""
isfinite.complex(complex z) -> bool
    {_PLANE}
isinf.complex(complex z) -> bool
    {_PLANE}
isnan.complex(complex z) -> bool
    {_PLANE}
phase.complex(complex z) -> float  raises
    {_PLANE}
polar.complex(complex z) -> (float, float)  raises
    {_PLANE}
rect.float(float r, float phi) -> complex  raises
    {_TWO}; 1.0, inf
"""

ROWS = (
    *functions(
        math,
        "\n".join(
            (
                *map(_of_one, _OF_ONE),
                _LOG_BASE,
                *map(_of_two, _OF_TWO),
                *map(_test, _TESTS),
                *map(_rounding, _ROUNDED),
                _REST,
            )
        ),
        {
            **{f"{name}.float": _WHOLE[name] for name in _ROUNDED},
            **{f"{name}.Scalar": _WHOLE[name] for name in _ROUNDED},
            **{name: _WHOLE[name] for name in ("gcd", "lcm")},
            "factorial": _factorial,
            "comb": _comb,
            "perm": _perm,
        },
    ),
    row(
        "isclose.float(float a, float b, *, float rel_tol=1e-09, float abs_tol=0.)"
        " -> bool",
        call(math.isclose),
        _is_close,
        "1.0, 1.0 + 1e-10; 1.0, 1.1, rel_tol=0.2; inf, inf; 1.0, 1.0, abs_tol=-1.0",
        raises=True,
    ),
    # `pow` is the name of the operator's primitive.
    row(
        "math_pow.float(float x, float y) -> float",
        call(math.pow),
        math.pow,
        _TWO,
        raises=True,
    ),
    *functions(cmath, "\n".join((*map(_of_complex, _COMPLEX), _COMPLEX_REST))),
)
