"""Scalar functions by name: what elementwise kernels compute of one element.

True only here: which function the kernel of a name applies to elements of a dtype, so
that another loop around the same function gives the same bits.  Nothing is computed
here that the kernels do not compute: the functions are those of their own loops.

Rules:
- real numbers and bools only, in the dtypes that are computed in;
- what a kernel does besides (it looks for zeros, goes to NumPy, runs another kernel)
  has no function here;
- `select`, `bounded` and `scaled` are the bodies of the loops behind `where`, `clamp`,
  and `add` and `sub` with a factor.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from runtime.kernels.cpu.binary import PLAIN
from runtime.kernels.cpu.elementwise import LIGHT, Binary, Unary
from runtime.kernels.cpu.unary import GELU, REAL, TESTS
from runtime.kernels.math.pairs import DIVIDING
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype, info


class Scalar(NamedTuple):
    """A function of elements, the dtype of what it gives, and the grain of its loops.

    No function: the elements themselves.
    """

    function: Callable[..., Any] | None
    result: str
    grain: int


# What an integer is not changed by; of bools the kernel of the name copies, too.
_WHOLE = frozenset(("floor", "ceil", "round", "trunc"))


def scalar_unary(name: str, dtype: str) -> Scalar | None:
    """What the kernel of one operand does with each element; None: not only that."""
    kind = _kind(dtype)
    if kind is None:
        return None
    if name == "bitwise_not" and dtype == "bool":
        name = "logical_not"
    if name in TESTS:
        return Scalar(TESTS[name][0].scalar, "bool", LIGHT)
    if name == "copy" or (name in _WHOLE and kind != "f") or name == "conj":
        return Scalar(None, dtype, LIGHT)
    found = REAL.get(name)
    return None if found is None else _unary(found, dtype)


def scalar_gelu(approximate: str, dtype: str) -> Scalar | None:
    """As `scalar_unary`, of `gelu`."""
    return _unary(GELU[approximate], dtype) if _kind(dtype) == "f" else None


def scalar_binary(name: str, dtype: str) -> Scalar | None:
    """As `scalar_unary`, of two operands; None where integers divide."""
    kind, found = _kind(dtype), PLAIN.get(name)
    if found is None or kind is None or (name in DIVIDING and kind != "f"):
        return None
    scalars = found.scalars
    function = scalars.get("whole" if kind in "ui" else "", scalars[""])
    return Scalar(function, _made(found, dtype), found.grain)


def select(mask: Any, x: Any, y: Any) -> Any:
    """What `where` gives: both values are read, then one is chosen."""
    return x if mask else y


def bounded(x: Any, low: Any, high: Any) -> Any:
    """What `clamp` gives between two numbers; NaN stays."""
    v = low if x < low else x
    return high if v > high else v


def scaled(a: Any, b: Any, factor: Any) -> Any:
    """What `add` gives with a factor."""
    return a + factor * b


def _kind(dtype: str) -> str | None:
    of = DType.named(dtype)
    kind = info(of).kind
    return None if kind == "c" or compute_dtype(of) is not of else kind


def _unary(found: Unary, dtype: str) -> Scalar:
    return Scalar(found.scalar, _made(found, dtype), found.grain)


def _made(found: Unary | Binary, dtype: str) -> str:
    return dtype if found.same else "bool"
