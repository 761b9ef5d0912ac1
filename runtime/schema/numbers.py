"""Numbers by schema type: which values are an `int`, a `float`, a `Scalar`, ...

True only here: how numbers convert.  Each function gives the Python number for the
boxed stack, or `MISMATCH` if its type does not take the value.

Rules (upstream's, seen by running torch 2.13):
- numbers widen (bool, int, float, complex) and never narrow, except that any number
  is a `bool` by its truth;
- a tensor of one element counts as its number; as an `int` it loses a fraction
  *silently*; a `Scalar` takes no tensor;
- an `int` fits 64 bits with a sign, a `Scalar` also 64 bits without;
- a code (`DType`, ...) is its number for `int` and `Scalar`, not for `SymInt`;
- where a definition is tagged `integers_only` no bool is an `int` (`no_truth`), as
  upstream's functions refuse it, and its operators called by name do not.
Ours: NumPy's scalars count as the Python number that they hold, everywhere; None is not
a `bool`.
"""

from collections.abc import Callable
from operator import index
from typing import Final

from runtime.schema.codes import Code


class Mismatch:
    """The type of `MISMATCH`."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "MISMATCH"


# What a conversion returns for a value that its type does not take.
MISMATCH: Final = Mismatch()

# An `int` is a signed 64-bit number; a `Scalar` may also be an unsigned one.
INT_FIRST, INT_END, SCALAR_END = -(2**63), 2**63, 2**64

_REAL = (int, float)
_NUMBER = (int, float, complex)
# Values of exactly these types are numbers as they stand; NumPy's derive from two.
_PYTHON = frozenset({bool, *_NUMBER})


def to_int(value: object) -> object:
    """`int`: a bool, an int, a code, or one real element of a tensor."""
    if type(value) is int and INT_FIRST <= value < INT_END:
        return value
    return value.code if isinstance(value, Code) else to_symint(value)


def to_symint(value: object) -> object:
    """`SymInt`: as `int`, without codes."""
    if isinstance(value, int):
        number = int(value)
    elif hasattr(value, "key_bits"):
        element = _element(value)
        if not isinstance(element, _REAL):
            return MISMATCH
        try:
            number = int(element)
        except (ValueError, OverflowError):  # not a number, or infinite
            return MISMATCH
    else:
        try:
            number = index(_element(value))  # type: ignore[arg-type]  # raises if not
        except TypeError:
            return MISMATCH
    return number if INT_FIRST <= number < INT_END else MISMATCH


def no_truth(turn: Callable[[object], object]) -> Callable[[object], object]:
    """The conversion `turn` to an integer, that takes no truth: True is no 1."""

    def convert(value: object) -> object:
        if type(value) is int:
            return turn(value)
        # Those of NumPy, and tensors of them, say so.
        truth = type(value) is bool or str(getattr(value, "dtype", None)) == "bool"
        return MISMATCH if truth else turn(value)

    return convert


def to_float(value: object) -> object:
    """`float`: any real number, or one real element of a tensor."""
    element = _element(value)
    if not isinstance(element, _REAL):
        return MISMATCH
    try:
        return float(element)
    except OverflowError:
        return MISMATCH


def to_complex(value: object) -> object:
    """`complex`: any number, or one element of a tensor."""
    element = _element(value)
    if not isinstance(element, _NUMBER):
        return MISMATCH
    try:
        return complex(element)
    except OverflowError:
        return MISMATCH


def to_bool(value: object) -> object:
    """`bool`: the truth of any number, or of one element of a tensor."""
    element = _element(value)
    return bool(element) if isinstance(element, _NUMBER) else MISMATCH


def to_scalar(value: object) -> object:
    """`Scalar`: a number as it is, its kind kept."""
    if isinstance(value, Code):
        return value.code
    element = MISMATCH if hasattr(value, "key_bits") else _element(value)
    if isinstance(element, bool):
        return element
    if isinstance(element, int):
        return int(element) if INT_FIRST <= element < SCALAR_END else MISMATCH
    if isinstance(element, float):
        return float(element)
    return complex(element) if isinstance(element, complex) else MISMATCH


def _element(value: object) -> object:
    """The number in a tensor or array of one element; other values as they are."""
    if type(value) in _PYTHON:
        return value
    item = getattr(value, "item", None)
    if item is None:
        return value
    try:
        number: object = item()
    except (TypeError, ValueError, RuntimeError):
        return MISMATCH
    return number
