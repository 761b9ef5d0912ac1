"""Primitives of numbers: arithmetic, comparisons, conversions, rounding, and methods.

Rows for bool, int, float, complex, and Scalar, a number whose kind is known only at run
time.

Rules:
- an int has 64 bits with a sign: an operator stays in range or raises; if computing a
  result that is out of range would take long (`2 ** 10**9`), it raises without
  computing;
- arithmetic is between two numbers of one kind; where the kinds differ, the narrower
  one is converted first (`runtime.script.primitives.primitive_table`), as in Python;
- comparisons are exact between kinds, as in Python, so each pair has a separate row;
- `min` and `max` return one of their operands: of an int and a float, the int as a
  float, which is refused if the conversion is not exact (Python returns the int);
- more than two operands of `min` and `max` are taken from the left, two by two;
- a power whose result is not a number of the same kind is refused.
"""

import builtins
import operator
from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.primitives.primitive_row import (
    attributes,
    functions,
    methods,
    operators,
)

# For exponents and shift counts from here on, only the powers of 0, 1 and -1 fit 64
# bits, and only 0 can be shifted.
BITS = 64


def overflow(operator: str, *operands: object) -> ArithmeticRefused:
    """Return the error for a result outside of 64 bits."""
    return ArithmeticRefused(
        code="IntegerOverflow",
        operator=operator,
        operands=tuple(map(shortened, operands)),
    )


def other_result(
    operator: str, expected: str, result: object, *operands: object
) -> RunningError:
    """Return the error for a result of another type than the schema's."""
    return RunningError(
        code="ResultOfOtherType",
        operator=operator,
        operands=tuple(map(shortened, operands)),
        expected=expected,
        found=describe_value(result),
    )


def bounded(operator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the Python function with a check that its result fits 64 bits."""

    def run(*operands: Any) -> Any:
        result = function(*operands)
        if INT_FIRST <= result < INT_END:
            return result
        raise overflow(operator, *operands)

    run.__name__ = run.__qualname__ = getattr(function, "__name__", "bounded")
    return run


def add(a: int, b: int) -> int:
    """Return `a + b`; raises `ArithmeticRefused`."""
    result = a + b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("+", a, b)


def sub(a: int, b: int) -> int:
    """Return `a - b`; raises `ArithmeticRefused`."""
    result = a - b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("-", a, b)


def mul(a: int, b: int) -> int:
    """Return `a * b`; raises `ArithmeticRefused`."""
    result = a * b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("*", a, b)


def floordiv(a: int, b: int) -> int:
    """Return `a // b`; raises `ArithmeticRefused` for the least integer by -1."""
    result = a // b
    if result < INT_END:
        return result
    raise overflow("//", a, b)


def both(a: int, b: int) -> tuple[int, int]:
    """Return `divmod(a, b)`; raises `ArithmeticRefused` for the least integer by -1."""
    result = divmod(a, b)
    if result[0] < INT_END:
        return result
    raise overflow("divmod", a, b)


def power(a: int, b: int) -> int:
    """Return `a ** b`; raises `ArithmeticRefused`, and `WrongOption` for a fraction."""
    if b < 0:
        if a == 0:
            raise ZeroDivisionError("0.0 cannot be raised to a negative power")
        raise WrongOption(code="NegativeExponent", operator="**", dtype="int")
    if b >= BITS and not -1 <= a <= 1:
        raise overflow("**", a, b)
    result: int = a**b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("**", a, b)


def shift_left(a: int, b: int) -> int:
    """Return `a << b`; raises `ArithmeticRefused`, or `ValueError` if `b < 0`."""
    if b >= BITS:
        if a:
            raise overflow("<<", a, b)
        return 0
    result = a << b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("<<", a, b)


_INTS = "7, -2; MOST, 1; LEAST, -1; LEAST, 1; 0, 0; -9, 4"
_FLOATS = "7.5, -2.0; inf, nan; 0.0, -0.0; 1e308, 10.0; -1.0, 0.0"
_COMPLEX = "1+2j, 3j; 0j, 0j; complex(inf, 0), -1j; 2j, 1+0j"
_SCALARS = "7, 2.5; MOST, 1; LEAST, 2; 1j, 2; 0.0, 0; True, 2"
_MIXED = "1, 1.0; 9007199254740993, 9007199254740992.0; -3, nan; MOST, inf"
_MIXED_COMPLEX = "1, 1+0j; 9007199254740993, 9007199254740992+0j; 2, 2+1j"


def _swapped(samples: str) -> str:
    """Return the samples with swapped operands."""
    pairs = (sample.split(", ") for sample in samples.split("; "))
    return "; ".join(f"{right}, {left}" for left, right in pairs)


def _power_of_floats(a: float, b: float) -> float:
    result: object = a**b
    if isinstance(result, float):
        return result
    raise other_result("**", "a float", result, a, b)


def _true_power(a: Any, b: Any) -> Any:
    """Return `a ** b` of ints under `Scalar`: a fraction is allowed as a result."""
    return power(a, b) if b >= 0 else a**b


# Operator of numbers of any kind -> the function for two ints.
_WHOLE: dict[str, Callable[..., Any]] = {
    "add": add,
    "sub": sub,
    "mul": mul,
    "floordiv": floordiv,
    "mod": operator.mod,
    "truediv": operator.truediv,
    "pow": _true_power,
}


def _scalar(name: str) -> Callable[..., Any]:
    """Return an operator on numbers of any kind, with bounded results for ints."""
    function = getattr(operator, name)

    def run(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return _WHOLE[name](a, b)
        return function(a, b)

    return run


# Operators without complex operands, and operators that raise for no float.
_REAL, _TOTAL = ("floordiv", "mod"), ("add", "sub", "mul")


def _arithmetic(name: str) -> str:
    """Return the table of an operator: ints, floats, complex numbers, any numbers."""
    whole = "float" if name == "truediv" else "int"
    raises = "" if name in _TOTAL else "  raises"
    rows = f"""
{name}.int(int a, int b) -> {whole}  raises
    {_INTS}
{name}.float(float a, float b) -> float{raises}
    {_FLOATS}
"""
    if name not in _REAL:
        rows += f"{name}.complex(complex a, complex b) -> complex{raises}\n"
        rows += f"    {_COMPLEX}\n"
    return rows + f"{name}.Scalar(Scalar a, Scalar b) -> Scalar  raises\n    {_SCALARS}"


_POWERS = """
pow.int(int a, int b) -> int  raises
    2, 62; 2, 63; -2, 63; 3, -1; 0, -1; 0, 0; 2, 1000; -1, MOST
pow.float(float a, float b) -> float  raises
    2.0, 0.5; -8.0, 0.5; 0.0, -1.0; 1e308, 2.0; nan, 0.0; -inf, 3.0
pow.complex(complex a, complex b) -> complex  raises
    1j, 2+0j; 0j, -1+0j; 1+1j, 0.5j; 0j, 0j
pow.Scalar(Scalar a, Scalar b) -> Scalar  raises
    2, -1; 2, 64; 1j, 2; 2.0, 3; -8.0, 0.5; 0, -1
"""
_BITWISE = """
lshift.int(int a, int b) -> int  raises
    1, 62; 1, 63; -1, 63; 5, -1; 0, 1000000; 1, 100
rshift.int(int a, int b) -> int  raises
    LEAST, 63; 5, 1; 5, -1; -1, MOST
"""


def _bitwise(name: str) -> str:
    return f"""
{name}.bool(bool a, bool b) -> bool
    True, False; True, True; False, False
{name}.int(int a, int b) -> int
    12, 10; LEAST, MOST; -1, 7
"""


# Overload, the kinds of both operands, samples.
_ORDERED = (
    ("int", "int", "int", _INTS),
    ("float", "float", "float", _FLOATS),
    ("int_float", "int", "float", _MIXED),
    ("float_int", "float", "int", _swapped(_MIXED)),
)
_EQUAL = (
    *_ORDERED,
    ("complex", "complex", "complex", _COMPLEX),
    ("int_complex", "int", "complex", _MIXED_COMPLEX),
    ("complex_int", "complex", "int", _swapped(_MIXED_COMPLEX)),
    ("float_complex", "float", "complex", "1.5, 1.5+0j; nan, 1j"),
    ("complex_float", "complex", "float", "1.5+0j, 1.5; 1j, nan"),
    ("bool", "bool", "bool", "True, False; True, True"),
    ("Scalar", "Scalar", "Scalar", _SCALARS),
)


def _comparison(name: str, pairs: Sequence[tuple[str, str, str, str]]) -> str:
    return "\n".join(
        f"{name}.{overload}({left} a, {right} b) -> bool\n    {samples}"
        for overload, left, right, samples in pairs
    )


def _ordering(name: str) -> str:
    # Complex numbers are not ordered.
    any_kind = f"{name}.Scalar(Scalar a, Scalar b) -> bool  raises\n    {_SCALARS}"
    return f"{_comparison(name, _ORDERED)}\n{any_kind}"


_negative, _size = bounded("-x", operator.neg), bounded("abs", abs)
_to_int, _rounded = bounded("int", int), bounded("round", round)


def _negative_scalar(a: Any) -> Any:
    return _negative(a) if isinstance(a, int) else -a


def _size_of_scalar(x: Any) -> Any:
    return _size(x) if isinstance(x, int) else abs(x)


def _round_to_digits(number: int, ndigits: int) -> int:
    # From 10**20 on, half a unit exceeds every int: Python's result is 0.
    result: int = _rounded(number, max(ndigits, -20))
    return result


def _as_float(name: str, function: Callable[..., Any]) -> Callable[..., float]:
    """Return `min` or `max` of an int and a float, with a float as result."""

    def run(a: Any, b: Any) -> float:
        result = function(a, b)
        number = float(result)
        if number == result or result != result:
            return number
        raise other_result(name, "a float", result, a, b)

    return run


_UNARY = """
neg.int(int a) -> int  raises
    5; -5; LEAST; MOST; 0
neg.float(float a) -> float
    1.5; -0.0; nan; -inf
neg.complex(complex a) -> complex
    1+2j; -0j
pos.int(int a) -> int
    5; -5; LEAST; MOST; 0
pos.float(float a) -> float
    1.5; -0.0; nan; -inf
pos.complex(complex a) -> complex
    1+2j; -0j
invert.int(int a) -> int
    5; -5; LEAST; MOST; 0
not_.bool(bool a) -> bool
    True; False
neg.Scalar(Scalar a) -> Scalar  raises
    LEAST; 2.5; 1j
"""
_FUNCTIONS = """
abs.int(int x) -> int  raises
    5; -5; LEAST; MOST; 0
abs.float(float x) -> float
    1.5; -0.0; nan; -inf
abs.complex(complex x) -> float  raises
    3+4j; -0j; complex(1.7e308, 1e308)
abs.Scalar(Scalar x) -> Scalar  raises
    LEAST; -2.5; 3+4j
bool.nothing() -> bool
int.nothing() -> int
float.nothing() -> float
complex.nothing() -> complex
str.nothing() -> str
int.int(int x) -> int
    MOST; -3
int.bool(bool x) -> int
    True; False
int.float(float x) -> int  raises
    2.9; -2.9; 1e18; 1e19; inf; nan; -0.0
int.Scalar(Scalar x) -> int  raises
    2.5; 3; 1j; 1e19; True
float.float(float x) -> float
    1.5; nan
float.bool(bool x) -> float
    True; False
float.int(int x) -> float
    MOST; LEAST; 3
float.Scalar(Scalar x) -> float  raises
    2.5; MOST; 1j
complex.complex(complex real) -> complex
    1+2j; -0j
complex.bool(bool real) -> complex
    True; False
complex.int(int real) -> complex
    MOST; -2
complex.float(float real) -> complex
    1.5; inf; -0.0
complex.Scalar(Scalar real) -> complex
    1.5; 2; 3j; True
complex.parts(float real, float imag) -> complex
    1.5, -2.0; nan, inf; 0.0, -0.0
bool.bool(bool x) -> bool
    True; False
bool.int(int x) -> bool
    0; -1; MOST
bool.float(float x) -> bool
    0.0; -0.0; nan; 1e-300
bool.complex(complex x) -> bool
    0j; 1j
bool.Scalar(Scalar x) -> bool
    0; 2.5; 0j
hex.int(int number) -> str
    255; -255; LEAST; 0
oct.int(int number) -> str
    255; -255; LEAST; 0
bin.int(int number) -> str
    255; -255; LEAST; 0
round.int(int number) -> int
    5; MOST
round.float(float number) -> int  raises
    2.5; 3.5; -0.5; 1e19; nan; inf
round.Scalar(Scalar number) -> int  raises
    9007199254740993; 2.5; 1j
round.int_digits(int number, int ndigits) -> int  raises
    1251, -2; 5, 3; MOST, -1; LEAST, -18; 7, -1000; -15, -1
round.float_digits(float number, int ndigits) -> float  raises
    2.675, 2; 1e300, -2; nan, 1; 1.7e308, -308; 15.0, -1; 1.5, MOST
"""


def _extremes(name: str) -> str:
    return f"""
{name}.bool(bool a, bool b) -> bool
    True, False; True, True
{name}.int(int a, int b) -> int
    {_INTS}
{name}.float(float a, float b) -> float
    1.0, nan; nan, 1.0; 0.0, -0.0; -0.0, 0.0; inf, 2.0
{name}.int_float(int a, float b) -> float  raises
    {_MIXED}
{name}.Scalar(Scalar a, Scalar b) -> Scalar  raises
    3, 2.0; 1, True; 1j, 2
{name}.float_int(float a, int b) -> float  raises
    {_swapped(_MIXED)}
"""


def _parts(kind: str, part: str, samples: str) -> tuple[str, str]:
    """Return the tables of attributes and methods of numbers of one kind."""
    attributes = f"""
real.{kind}({kind} self) -> {part}
    {samples}
imag.{kind}({kind} self) -> {part}
    {samples}
"""
    return attributes, f"conjugate.{kind}({kind} self) -> {kind}\n    {samples}"


_PARTS = (
    _parts("int", "int", "5; LEAST"),
    _parts("float", "float", "1.5; nan"),
    _parts("complex", "float", "1+2j; -0j"),
)
_DIVMOD = f"""
divmod.int(int x, int y) -> (int, int)  raises
    {_INTS}
divmod.float(float x, float y) -> (float, float)  raises
    {_FLOATS}
"""
ROWS = (
    *operators(
        "\n".join(
            (
                *map(_arithmetic, ("add", "sub", "mul", "truediv", "floordiv", "mod")),
                _POWERS,
                *map(_bitwise, ("and_", "or_", "xor")),
                _BITWISE,
                *map(_ordering, ("lt", "le", "gt", "ge")),
                *(_comparison(name, _EQUAL) for name in ("eq", "ne")),
                _UNARY,
            )
        ),
        {
            **{f"{name}.int": function for name, function in _WHOLE.items()},
            **{f"{name}.Scalar": _scalar(name) for name in _WHOLE},
            "pow.int": power,
            "pow.float": _power_of_floats,
            "lshift": shift_left,
            "neg.int": _negative,
            "neg.Scalar": _negative_scalar,
        },
    ),
    *functions(
        builtins,
        "\n".join((_FUNCTIONS, _DIVMOD, _extremes("min"), _extremes("max"))),
        {
            "abs.int": _size,
            "abs.Scalar": _size_of_scalar,
            "int.float": _to_int,
            "int.Scalar": _to_int,
            "round.float": _rounded,
            "round.Scalar": _rounded,
            "round.int_digits": _round_to_digits,
            "divmod.int": both,
            **{
                f"{each.__name__}.{overload}": _as_float(each.__name__, each)
                for each in (min, max)
                for overload in ("int_float", "float_int")
            },
        },
    ),
    *methods(
        int,
        """
bit_length.int(int self) -> int
    255; LEAST; 0
bit_count.int(int self) -> int
    255; LEAST; -1
""",
    ),
    *methods(
        float,
        """
is_integer.float(float self) -> bool
    1.0; 1.5; nan; inf
hex.float(float self) -> str
    1.5; nan; -0.0
""",
    ),
    *attributes("\n".join(each for each, _ in _PARTS)),
    *methods(
        int,
        "\n".join(each for _, each in _PARTS),
        {"conjugate": operator.methodcaller("conjugate")},
    ),
)
