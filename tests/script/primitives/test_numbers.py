"""Numbers: any two of any kinds, at the ends of 64 bits, as Python computes them."""

import math
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.primitives import by_function, by_name, by_operator
from tests.coded import code, coded, kind_of
from tests.script.primitives.trial import canonical, perform

ResultOfOtherType = coded(RunningError, "ResultOfOtherType")

EDGES = [
    sign * (2**power) + step
    for power in (0, 31, 32, 52, 53, 62, 63)
    for sign in (-1, 1)
    for step in (-1, 0, 1)
    if INT_FIRST <= sign * (2**power) + step < INT_END
]
INTS = st.one_of(st.sampled_from(EDGES), st.integers(INT_FIRST, INT_END - 1))
SMALL = st.integers(-70, 70)
FLOATS = st.one_of(st.floats(), st.sampled_from([float(edge) for edge in EDGES]))
REALS = st.one_of(st.booleans(), INTS, SMALL, FLOATS)
NUMBERS = st.one_of(REALS, st.complex_numbers())

Function = Callable[..., Any]


def python(function: Function, *values: Any) -> Any:
    """The value of Python, or the class of what it or a script raises."""
    try:
        result = function(*values)
    except Exception as error:
        return kind_of(error)
    parts = result if isinstance(result, tuple) else (result,)
    if any(isinstance(n, int) and not INT_FIRST <= n < INT_END for n in parts):
        return coded(ArithmeticRefused, "IntegerOverflow")
    return canonical(result)


def script(rows: Any, *values: Any) -> Any:
    try:
        return canonical(perform(rows, *values))
    except Exception as error:
        return kind_of(error)


@given(NUMBERS, NUMBERS, st.sampled_from(["+", "-", "*", "/", "==", "!="]))
def test_operators_of_all_numbers(left: Any, right: Any, symbol: str) -> None:
    functions: dict[str, Function] = {
        "+": operator.add,
        "-": operator.sub,
        "*": operator.mul,
        "/": operator.truediv,
        "==": operator.eq,
        "!=": operator.ne,
    }
    wanted = python(functions[symbol], left, right)
    assert script(by_operator(symbol), left, right) == wanted


@given(REALS, REALS, st.sampled_from(["//", "%", "<", "<=", ">", ">=", "divmod"]))
def test_operators_of_real_numbers(left: Any, right: Any, symbol: str) -> None:
    functions: dict[str, Function] = {
        "//": operator.floordiv,
        "%": operator.mod,
        "<": operator.lt,
        "<=": operator.le,
        ">": operator.gt,
        ">=": operator.ge,
    }
    if symbol == "divmod":
        assert script(by_function(divmod), left, right) == python(divmod, left, right)
        return
    wanted = python(functions[symbol], left, right)
    assert script(by_operator(symbol), left, right) == wanted


@given(INTS, SMALL, st.sampled_from(["&", "|", "^", "<<", ">>", "**"]))
def test_operators_of_integers(left: int, right: int, symbol: str) -> None:
    functions: dict[str, Function] = {
        "&": operator.and_,
        "|": operator.or_,
        "^": operator.xor,
        "<<": operator.lshift,
        ">>": operator.rshift,
        "**": operator.pow,
    }
    wanted = python(functions[symbol], left, right)
    if symbol == "**" and right < 0 and wanted is not ZeroDivisionError:
        wanted = coded(WrongOption, "NegativeExponent")
    assert script(by_operator(symbol), left, right) == wanted


@given(FLOATS, st.one_of(FLOATS, SMALL))
def test_powers_of_floats(left: float, right: Any) -> None:
    wanted = python(operator.pow, left, right)
    if isinstance(wanted, tuple) and wanted[0] is complex:
        wanted = ResultOfOtherType
    assert script(by_operator("**"), left, right) == wanted


@given(NUMBERS)
def test_one_number(number: Any) -> None:
    assert script(by_operator("-x"), number) == python(operator.neg, number)
    assert script(by_operator("+x"), number) == python(operator.pos, number)
    functions: tuple[Function, ...] = (abs, bool, complex, str, repr)
    for function in functions:
        assert script(by_function(function), number) == python(function, number)
    if not isinstance(number, complex):
        functions = (int, float, round, math.floor, math.ceil, math.trunc)
        for function in functions:
            assert script(by_function(function), number) == python(function, number)


@given(st.one_of(INTS, FLOATS), st.integers(-400, 400))
def test_rounding_to_digits(number: Any, digits: int) -> None:
    wanted = python(round, number, digits)
    assert script(by_function(round), number, digits) == wanted


@given(REALS, REALS, st.sampled_from([min, max]))
def test_the_smaller_and_the_larger_of_two(
    left: Any, right: Any, function: Function
) -> None:
    """The value is Python's; of mixed kinds its type is the wider one, or an error."""
    came = script(by_function(function), left, right)
    result = function(left, right)
    if type(left) is type(right):
        assert came == canonical(result)
    elif float not in (type(left), type(right)):
        assert came == canonical(int(result))
    elif math.isnan(result) or float(result) == result:
        assert came == canonical(float(result))
    else:
        assert came is ResultOfOtherType


@given(st.lists(INTS, max_size=4))
def test_sums_of_integers(numbers: list[int]) -> None:
    assert script(by_function(sum), numbers) == python(sum, numbers)
    assert script(by_function(math.prod), numbers) == python(math.prod, numbers)


@pytest.mark.parametrize(
    ("name", "operands"),
    [
        ("pow.int", (2, 10**9)),
        ("pow.int", (INT_FIRST, INT_END - 1)),
        ("lshift.int", (1, INT_END - 1)),
        ("factorial.int", (10**9,)),
        ("comb.int", (10**9, 5 * 10**8)),
        ("perm.int", (10**9, 5 * 10**8)),
    ],
)
def test_what_would_take_long_is_refused_at_once(
    name: str, operands: tuple[int, ...]
) -> None:
    row = by_name(f"script::{name}")
    assert row is not None
    # Python would not come to an end.
    with pytest.raises(ArithmeticRefused, check=code("IntegerOverflow")) as caught:
        row.function(*operands)
    assert caught.value.operands == tuple(map(str, operands))


def test_rounding_far_to_the_left_takes_no_time() -> None:
    row = by_name("script::round.int_digits")
    assert row is not None
    assert row.function(INT_FIRST, INT_FIRST) == 0


def test_large_powers_of_small_numbers() -> None:
    assert perform(by_operator("**"), -1, INT_END - 1) == -1
    assert perform(by_operator("**"), 0, 10**12) == 0
    assert perform(by_operator("<<"), 0, 10**12) == 0


def test_the_errors_say_what_happened() -> None:
    with pytest.raises(OverflowError) as overflow:
        perform(by_operator("+"), INT_END - 1, 1)
    assert str(overflow.value) == (
        "`+` gives an integer that does not fit 64 bits.\n"
        "  operands: 9223372036854775807, 1\n"
        "  fits:     integers from -2**63 to 2**63 - 1\n"
        "  to do:    use smaller operands, or floats"
    )
    assert overflow.value.fields() == {  # type: ignore[attr-defined]  # ours has fields
        "operator": "+",
        "operands": ("9223372036854775807", "1"),
    }
    with pytest.raises(ValueError, match="a complex") as other:
        perform(by_operator("**"), -8.0, 0.5)
    assert str(other.value) == (
        "`**` returns a complex for these operands, where the script has a float.\n"
        "  operands: -8.0, 0.5\n"
        "  to do:    convert an operand first, so that the result is a complex"
    )
