"""What elementwise kernels compute, in NumPy's words, and for which dtypes."""

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.kernels.made import INEXACT, REAL, WHOLE
from tests.opinfo import table_pointwise as pointwise

UNARY: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    "neg": (np.negative, (*WHOLE, *INEXACT)),
    "abs": (np.abs, (*WHOLE, *REAL)),
    "sign": (np.sign, (*WHOLE, *INEXACT)),
    "square": (np.square, (*WHOLE, *INEXACT)),
    "relu": (lambda x: np.maximum(x, 0), (*WHOLE, *REAL)),
    "floor": (np.floor, (*WHOLE, *REAL)),
    "ceil": (np.ceil, REAL),
    "round": (np.rint, REAL),
    "trunc": (np.trunc, REAL),
    "rsqrt": (lambda x: 1 / np.sqrt(x), INEXACT),
    "reciprocal": (lambda x: 1 / x, INEXACT),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), INEXACT),
    "silu": (lambda x: x / (1 + np.exp(-x)), INEXACT),
    "conj": (np.conj, ("int64", *INEXACT)),
    "bitwise_not": (np.invert, ("bool", *WHOLE)),
    **{
        name: (getattr(np, name), INEXACT)
        for name in (
            *("exp", "expm1", "log", "log1p", "log2", "log10", "sqrt"),
            *("sin", "cos", "tan", "sinh", "cosh", "tanh"),
        )
    },
}


TESTS = ("logical_not", "isnan", "isinf", "isfinite")
COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
NUMPY_NAMES = {
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "pow": "power",
    "eq": "equal",
    "ne": "not_equal",
    "lt": "less",
    "le": "less_equal",
    "gt": "greater",
    "ge": "greater_equal",
    "atan2": "arctan2",
}


HALVES = ("float16", "bfloat16")
TO_BOOL = (*COMPARISONS, "logical_and", "logical_or", "logical_xor")
BINARY = {
    **dict.fromkeys(("add", "sub", "mul"), (*WHOLE, *INEXACT)),
    "div": INEXACT,
    **dict.fromkeys(("floor_divide", "remainder"), (*WHOLE, *REAL)),
    **dict.fromkeys(("maximum", "minimum"), (*WHOLE, *REAL)),
    "pow": INEXACT,
    "atan2": REAL,
    **dict.fromkeys(TO_BOOL, ("bool", "uint8", *REAL)),
    "eq": ("bool", "int64", "float32", "complex64"),
    **{f"bitwise_{name}": ("bool", "uint8", "int64") for name in ("and", "or", "xor")},
}
# Of those that nobody wrote down, what their row of samples says.
_ROWS = {row.name: row for row in pointwise.BINARY if row.name not in BINARY}
BINARY.update(
    {
        # Those that the kernel computes in.
        name: tuple(
            d
            for d in row.dtypes
            if d in INEXACT or (d not in HALVES and row.kind != "floating")
        )
        for name, row in _ROWS.items()
    }
)


def reference_of(name: str) -> Callable[..., Any]:
    """What a kernel of two operands computes, in NumPy's words."""
    row = _ROWS.get(name)
    found = row.reference if row else getattr(np, NUMPY_NAMES.get(name, name))
    assert found is not None, "a row of two operands has a reference"
    function: Callable[..., Any] = found
    return function
