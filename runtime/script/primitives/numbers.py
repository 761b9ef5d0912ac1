"""Numbers: arithmetic, comparisons, conversions, rounding, and the methods of numbers.

Rows for bool, int, float, complex, and Scalar, a number whose kind shows only when the
program runs.

Rules:
- an int is 64 bits with a sign: an operator stays within, or raises; what would take
  long before it is refused (`2 ** 10**9`) is refused before it is computed;
- arithmetic is between two numbers of one kind; where the kinds differ, the narrower
  one is converted first (`runtime.script.primitives.table`), as Python itself does;
- comparisons are exact between kinds, as in Python, so each pair has its own row;
- `min` and `max` give one of their operands: of an int and a float, the int as a float,
  which is refused where it is another number (Python leaves it an int);
- more than two operands of `min` and `max` are taken from the left, two by two;
- a power that is no number of the same kind is refused.
"""

import operator
from collections.abc import Callable, Iterator
from typing import Any

from runtime.errors.script import RunningError
from runtime.errors.tensor import ArithmeticRefused, WrongOption
from runtime.schema.calls import described, shortened
from runtime.schema.values import INT_END, INT_FIRST
from runtime.script.primitives.row import (
    Row,
    attribute,
    binary,
    call,
    method,
    prefix,
    row,
)

# From this many bits on, only 0, 1 and -1 have a power that fits, and only 0 a shift.
BITS = 64


def overflow(operator: str, *operands: object) -> ArithmeticRefused:
    """The error for a result outside of 64 bits."""
    return ArithmeticRefused(
        code="IntegerOverflow",
        operator=operator,
        operands=tuple(map(shortened, operands)),
    )


def other_result(
    operator: str, expected: str, result: object, *operands: object
) -> RunningError:
    """The error for a result of another type than the schema's."""
    return RunningError(
        code="ResultOfOtherType",
        operator=operator,
        operands=tuple(map(shortened, operands)),
        expected=expected,
        found=described(result),
    )


def bounded(operator: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of Python, for results that fit."""

    def run(*operands: Any) -> Any:
        result = function(*operands)
        if INT_FIRST <= result < INT_END:
            return result
        raise overflow(operator, *operands)

    run.__name__ = run.__qualname__ = getattr(function, "__name__", "bounded")
    return run


def add(a: int, b: int) -> int:
    """`a + b`; raises `ArithmeticRefused`."""
    result = a + b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("+", a, b)


def sub(a: int, b: int) -> int:
    """`a - b`; raises `ArithmeticRefused`."""
    result = a - b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("-", a, b)


def mul(a: int, b: int) -> int:
    """`a * b`; raises `ArithmeticRefused`."""
    result = a * b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("*", a, b)


def floordiv(a: int, b: int) -> int:
    """`a // b`; raises `ArithmeticRefused` for the least integer by -1."""
    result = a // b
    if result < INT_END:
        return result
    raise overflow("//", a, b)


def both(a: int, b: int) -> tuple[int, int]:
    """`divmod(a, b)`; raises `ArithmeticRefused` for the least integer by -1."""
    result = divmod(a, b)
    if result[0] < INT_END:
        return result
    raise overflow("divmod", a, b)


def power(a: int, b: int) -> int:
    """`a ** b`; raises `ArithmeticRefused`, and `WrongOption` for a fraction."""
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
    """`a << b`; raises `ArithmeticRefused`, and `ValueError` for a negative count."""
    if b >= BITS:
        if a:
            raise overflow("<<", a, b)
        return 0
    result = a << b
    if INT_FIRST <= result < INT_END:
        return result
    raise overflow("<<", a, b)


# Kind -> samples of it.
_KINDS: dict[type, str] = {
    int: "5; LEAST",
    float: "1.5; nan",
    complex: "1+2j; -0j",
}

_INTS = "7, -2; MOST, 1; LEAST, -1; LEAST, 1; 0, 0; -9, 4"
_FLOATS = "7.5, -2.0; inf, nan; 0.0, -0.0; 1e308, 10.0; -1.0, 0.0"
_COMPLEX = "1+2j, 3j; 0j, 0j; complex(inf, 0), -1j; 2j, 1+0j"
_SCALARS = "7, 2.5; MOST, 1; LEAST, 2; 1j, 2; 0.0, 0; True, 2"
_MIXED = "1, 1.0; 9007199254740993, 9007199254740992.0; -3, nan; MOST, inf"
_MIXED_COMPLEX = "1, 1+0j; 9007199254740993, 9007199254740992+0j; 2, 2+1j"


def _swapped(samples: str) -> str:
    """The samples with the operands the other way round."""
    pairs = (sample.split(", ") for sample in samples.split("; "))
    return "; ".join(f"{right}, {left}" for left, right in pairs)


def _power_of_floats(a: float, b: float) -> float:
    result: object = a**b
    if isinstance(result, float):
        return result
    raise other_result("**", "a float", result, a, b)


def _scalar(symbol: str, function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """An operator on numbers of whatever kind: ints by the function for ints."""

    def run(a: Any, b: Any) -> Any:
        if isinstance(a, int) and isinstance(b, int):
            return _WHOLE[symbol](a, b)
        return function(a, b)

    return run


def _true_power(a: Any, b: Any) -> Any:
    """`a ** b` of ints under `Scalar`: a fraction is a result like any other."""
    return power(a, b) if b >= 0 else a**b


# Operator -> (name, the function for ints, for the other kinds, the kinds).
_WHOLE: dict[str, Callable[..., Any]] = {
    "+": add,
    "-": sub,
    "*": mul,
    "//": floordiv,
    "%": operator.mod,
    "/": operator.truediv,
    "**": _true_power,
}
_ARITHMETIC: tuple[tuple[str, str, Callable[..., Any]], ...] = (
    ("+", "add", operator.add),
    ("-", "sub", operator.sub),
    ("*", "mul", operator.mul),
    ("/", "truediv", operator.truediv),
    ("//", "floordiv", operator.floordiv),
    ("%", "mod", operator.mod),
)
# Operators that complex numbers do not have.
_REAL = ("//", "%")
# Operators of floats that raise for no value.
_TOTAL = ("+", "-", "*")


def _arithmetic() -> Iterator[Row]:
    for symbol, name, function in _ARITHMETIC:
        way = binary(symbol)
        whole = "float" if symbol == "/" else "int"
        schema = f"{name}.int(int a, int b) -> {whole}"
        yield row(schema, way, _WHOLE[symbol], _INTS, raises=True)
        schema = f"{name}.float(float a, float b) -> float"
        raises = symbol not in _TOTAL
        yield row(schema, way, function, _FLOATS, raises=raises)
        if symbol not in _REAL:
            schema = f"{name}.complex(complex a, complex b) -> complex"
            yield row(schema, way, function, _COMPLEX, raises=raises)
        schema = f"{name}.Scalar(Scalar a, Scalar b) -> Scalar"
        yield row(schema, way, _scalar(symbol, function), _SCALARS, raises=True)
    way = binary("**")
    ints = "2, 62; 2, 63; -2, 63; 3, -1; 0, -1; 0, 0; 2, 1000; -1, MOST"
    schema = "pow.int(int a, int b) -> int"
    yield row(schema, way, power, ints, raises=True)
    floats = "2.0, 0.5; -8.0, 0.5; 0.0, -1.0; 1e308, 2.0; nan, 0.0; -inf, 3.0"
    schema = "pow.float(float a, float b) -> float"
    yield row(schema, way, _power_of_floats, floats, raises=True)
    schema = "pow.complex(complex a, complex b) -> complex"
    samples = "1j, 2+0j; 0j, -1+0j; 1+1j, 0.5j; 0j, 0j"
    yield row(schema, way, operator.pow, samples, raises=True)
    schema = "pow.Scalar(Scalar a, Scalar b) -> Scalar"
    samples = "2, -1; 2, 64; 1j, 2; 2.0, 3; -8.0, 0.5; 0, -1"
    yield row(schema, way, _scalar("**", operator.pow), samples, raises=True)


def _bitwise() -> Iterator[Row]:
    for symbol, name, function in (
        ("&", "and_", operator.and_),
        ("|", "or_", operator.or_),
        ("^", "xor", operator.xor),
    ):
        samples = "True, False; True, True; False, False"
        schema = f"{name}.bool(bool a, bool b) -> bool"
        yield row(schema, binary(symbol), function, samples)
        schema = f"{name}.int(int a, int b) -> int"
        yield row(schema, binary(symbol), function, "12, 10; LEAST, MOST; -1, 7")
    samples = "1, 62; 1, 63; -1, 63; 5, -1; 0, 1000000; 1, 100"
    schema = "lshift.int(int a, int b) -> int"
    yield row(schema, binary("<<"), shift_left, samples, raises=True)
    samples = "LEAST, 63; 5, 1; 5, -1; -1, MOST"
    schema = "rshift.int(int a, int b) -> int"
    yield row(schema, binary(">>"), operator.rshift, samples, raises=True)


def _comparisons() -> Iterator[Row]:
    pairs = (
        ("int", "int", "int", _INTS),
        ("float", "float", "float", _FLOATS),
        ("int_float", "int", "float", _MIXED),
        ("float_int", "float", "int", _swapped(_MIXED)),
    )
    for symbol, name, function in (
        ("<", "lt", operator.lt),
        ("<=", "le", operator.le),
        (">", "gt", operator.gt),
        (">=", "ge", operator.ge),
    ):
        for overload, left, right, samples in pairs:
            schema = f"{name}.{overload}({left} a, {right} b) -> bool"
            yield row(schema, binary(symbol), function, samples)
        schema = f"{name}.Scalar(Scalar a, Scalar b) -> bool"
        yield row(schema, binary(symbol), function, _SCALARS, raises=True)
    equal = (
        *pairs,
        ("complex", "complex", "complex", _COMPLEX),
        ("int_complex", "int", "complex", _MIXED_COMPLEX),
        ("complex_int", "complex", "int", _swapped(_MIXED_COMPLEX)),
        ("float_complex", "float", "complex", "1.5, 1.5+0j; nan, 1j"),
        ("complex_float", "complex", "float", "1.5+0j, 1.5; 1j, nan"),
        ("bool", "bool", "bool", "True, False; True, True"),
        ("Scalar", "Scalar", "Scalar", _SCALARS),
    )
    for symbol, name, function in (
        ("==", "eq", operator.eq),
        ("!=", "ne", operator.ne),
    ):
        for overload, left, right, samples in equal:
            schema = f"{name}.{overload}({left} a, {right} b) -> bool"
            yield row(schema, binary(symbol), function, samples)


def _unary() -> Iterator[Row]:
    ints = "5; -5; LEAST; MOST; 0"
    negative = bounded("-x", operator.neg)
    yield row("neg.int(int a) -> int", prefix("-"), negative, ints, raises=True)
    floats, complexes = "1.5; -0.0; nan; -inf", "1+2j; -0j"
    yield row("neg.float(float a) -> float", prefix("-"), operator.neg, floats)
    yield row("neg.complex(complex a) -> complex", prefix("-"), operator.neg, complexes)
    yield row("pos.int(int a) -> int", prefix("+"), operator.pos, ints)
    yield row("pos.float(float a) -> float", prefix("+"), operator.pos, floats)
    yield row("pos.complex(complex a) -> complex", prefix("+"), operator.pos, complexes)
    yield row("invert.int(int a) -> int", prefix("~"), operator.invert, ints)
    schema = "not_.bool(bool a) -> bool"
    yield row(schema, prefix("not "), operator.not_, "True; False")
    size = bounded("abs", abs)
    yield row("abs.int(int x) -> int", call(abs), size, ints, raises=True)
    yield row("abs.float(float x) -> float", call(abs), abs, floats)
    schema = "abs.complex(complex x) -> float"
    large = "3+4j; -0j; complex(1.7e308, 1e308)"
    yield row(schema, call(abs), abs, large, raises=True)

    def negative_scalar(a: Any) -> Any:
        return negative(a) if isinstance(a, int) else -a

    schema = "neg.Scalar(Scalar a) -> Scalar"
    yield row(schema, prefix("-"), negative_scalar, "LEAST; 2.5; 1j", raises=True)

    def size_of_scalar(x: Any) -> Any:
        return size(x) if isinstance(x, int) else abs(x)

    schema = "abs.Scalar(Scalar x) -> Scalar"
    yield row(schema, call(abs), size_of_scalar, "LEAST; -2.5; 3+4j", raises=True)


def _conversions() -> Iterator[Row]:
    for kind in (bool, int, float, complex, str):
        name = kind.__name__
        yield row(f"{name}.nothing() -> {name}", call(kind), kind, "")
    to_int = bounded("int", int)
    floats = "2.9; -2.9; 1e18; 1e19; inf; nan; -0.0"
    yield row("int.int(int x) -> int", call(int), int, "MOST; -3")
    yield row("int.bool(bool x) -> int", call(int), int, "True; False")
    yield row("int.float(float x) -> int", call(int), to_int, floats, raises=True)
    samples = "2.5; 3; 1j; 1e19; True"
    yield row("int.Scalar(Scalar x) -> int", call(int), to_int, samples, raises=True)
    yield row("float.float(float x) -> float", call(float), float, "1.5; nan")
    yield row("float.bool(bool x) -> float", call(float), float, "True; False")
    yield row("float.int(int x) -> float", call(float), float, "MOST; LEAST; 3")
    schema = "float.Scalar(Scalar x) -> float"
    yield row(schema, call(float), float, "2.5; MOST; 1j", raises=True)
    schema = "complex.complex(complex real) -> complex"
    yield row(schema, call(complex), complex, "1+2j; -0j")
    schema = "complex.bool(bool real) -> complex"
    yield row(schema, call(complex), complex, "True; False")
    schema = "complex.int(int real) -> complex"
    yield row(schema, call(complex), complex, "MOST; -2")
    schema = "complex.float(float real) -> complex"
    yield row(schema, call(complex), complex, "1.5; inf; -0.0")
    schema = "complex.Scalar(Scalar real) -> complex"
    yield row(schema, call(complex), complex, "1.5; 2; 3j; True")
    schema = "complex.parts(float real, float imag) -> complex"
    yield row(schema, call(complex), complex, "1.5, -2.0; nan, inf; 0.0, -0.0")
    yield row("bool.bool(bool x) -> bool", call(bool), bool, "True; False")
    yield row("bool.int(int x) -> bool", call(bool), bool, "0; -1; MOST")
    yield row("bool.float(float x) -> bool", call(bool), bool, "0.0; -0.0; nan; 1e-300")
    yield row("bool.complex(complex x) -> bool", call(bool), bool, "0j; 1j")
    yield row("bool.Scalar(Scalar x) -> bool", call(bool), bool, "0; 2.5; 0j")
    for base, function in (("hex", hex), ("oct", oct), ("bin", bin)):
        schema = f"{base}.int(int number) -> str"
        yield row(schema, call(function), function, "255; -255; LEAST; 0")


def _round_to_digits(number: int, ndigits: int) -> int:
    # From 10**20 on, half a unit is more than any int has: Python's answer is 0.
    result: int = _rounded(number, max(ndigits, -20))
    return result


_rounded = bounded("round", round)


def _rounding() -> Iterator[Row]:
    yield row("round.int(int number) -> int", call(round), round, "5; MOST")
    floats = "2.5; 3.5; -0.5; 1e19; nan; inf"
    schema = "round.float(float number) -> int"
    yield row(schema, call(round), _rounded, floats, raises=True)
    schema = "round.Scalar(Scalar number) -> int"
    yield row(schema, call(round), _rounded, "9007199254740993; 2.5; 1j", raises=True)
    schema = "round.int_digits(int number, int ndigits) -> int"
    samples = "1251, -2; 5, 3; MOST, -1; LEAST, -18; 7, -1000; -15, -1"
    yield row(schema, call(round), _round_to_digits, samples, raises=True)
    schema = "round.float_digits(float number, int ndigits) -> float"
    samples = "2.675, 2; 1e300, -2; nan, 1; 1.7e308, -308; 15.0, -1; 1.5, MOST"
    yield row(schema, call(round), round, samples, raises=True)
    schema = "divmod.int(int x, int y) -> (int, int)"
    yield row(schema, call(divmod), both, _INTS, raises=True)
    schema = "divmod.float(float x, float y) -> (float, float)"
    yield row(schema, call(divmod), divmod, _FLOATS, raises=True)


def _as_float(name: str, function: Callable[..., Any]) -> Callable[..., float]:
    """`min` or `max` of an int and a float, as a float."""

    def run(a: Any, b: Any) -> float:
        result = function(a, b)
        number = float(result)
        if number == result or result != result:
            return number
        raise other_result(name, "a float", result, a, b)

    return run


def _extremes() -> Iterator[Row]:
    for name, function in (("min", min), ("max", max)):
        way, mixed = call(function), _as_float(name, function)
        one = f"{name}.bool(bool a, bool b) -> bool"
        yield row(one, way, function, "True, False; True, True")
        yield row(f"{name}.int(int a, int b) -> int", way, function, _INTS)
        floats = "1.0, nan; nan, 1.0; 0.0, -0.0; -0.0, 0.0; inf, 2.0"
        schema = f"{name}.float(float a, float b) -> float"
        yield row(schema, way, function, floats)
        schema = f"{name}.int_float(int a, float b) -> float"
        yield row(schema, way, mixed, _MIXED, raises=True)
        one = f"{name}.Scalar(Scalar a, Scalar b) -> Scalar"
        yield row(one, way, function, "3, 2.0; 1, True; 1j, 2", raises=True)
        schema = f"{name}.float_int(float a, int b) -> float"
        yield row(schema, way, mixed, _swapped(_MIXED), raises=True)


def _methods() -> Iterator[Row]:
    length, count = int.bit_length, int.bit_count
    schema = "bit_length.int(int self) -> int"
    yield row(schema, method("bit_length"), length, "255; LEAST; 0")
    schema = "bit_count.int(int self) -> int"
    yield row(schema, method("bit_count"), count, "255; LEAST; -1")
    schema = "is_integer.float(float self) -> bool"
    samples = "1.0; 1.5; nan; inf"
    yield row(schema, method("is_integer"), float.is_integer, samples)
    schema = "hex.float(float self) -> str"
    yield row(schema, method("hex"), float.hex, "1.5; nan; -0.0")
    for kind, samples in _KINDS.items():
        name = kind.__name__
        part = "float" if kind is complex else name
        for each in ("real", "imag"):
            schema = f"{each}.{name}({name} self) -> {part}"
            get = operator.attrgetter(each)
            yield row(schema, attribute(each), get, samples)
        schema = f"conjugate.{name}({name} self) -> {name}"
        conjugate: Any = operator.methodcaller("conjugate")
        yield row(schema, method("conjugate"), conjugate, samples)


ROWS = (
    *_arithmetic(),
    *_bitwise(),
    *_comparisons(),
    *_unary(),
    *_conversions(),
    *_rounding(),
    *_extremes(),
    *_methods(),
)
