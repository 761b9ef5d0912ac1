"""Elementwise kernels on CUDA: the table of functions, `where`, `clamp` and gradients.

`runtime.kernels.math.scalars` maps names to functions, and
`runtime.kernels.cpu.pointwise` refuses operands before anything is written; this module
defines the dtype in which each operand is read.

Rules: for numbers without a fraction or an imaginary part, `floor`, `conj` and their
like are copies.  `where` moves elements of every dtype, 16-bit floats as their bits.
`clamp` is `maximum`, then `minimum`: NaN among the elements or the bounds propagates.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.pointwise import kernels
from everyorder.runtime.kernels.cuda.copy import bits_of, copy, fill, first_zero
from everyorder.runtime.kernels.cuda.elementwise import (
    Number,
    ScalarMaker,
    family,
    form,
    run,
)
from everyorder.runtime.kernels.cuda.jit import (
    LaunchFamily,
    complexes_of,
    is_complex,
    number_of,
    reals,
)
from everyorder.runtime.kernels.math.complex import Scalar, bound
from everyorder.runtime.kernels.math.scalars import (
    ALL,
    BINARY,
    CERTAIN,
    REALS,
    UNARY,
    ScalarFunction,
    greatest,
    least,
    scaled,
    select,
)
from everyorder.runtime.tensors.tensor import Tensor

Operand = Tensor | Number


def _scalar(function: ScalarFunction) -> ScalarMaker:
    def make(kind: Any) -> Scalar:
        if is_complex(kind) and function.complex is not None:
            return bound(function.complex, complexes_of(kind))
        if np.issubdtype(kind, np.integer) and function.whole is not None:
            return bound(function.whole, reals(kind))
        return bound(function.real, reals(kind))

    return make


def _clamp(kind: Any) -> Scalar:
    above, below = reals(kind).compiled(greatest), reals(kind).compiled(least)
    return lambda x, low, high: below(above(x, low), high)


FAMILIES: dict[str, LaunchFamily] = {
    name: family(name, _scalar(row), row.dtypes, operands=operands, result=row.result)
    for table, operands in ((UNARY, "T"), (BINARY, "TT"))
    for name, row in table.items()
}
_WHERE = family("where", lambda kind: select, (*ALL, "uint16"), operands="BTT")
_CLAMP = family("clamp", _clamp, REALS, operands="TTT")
_SCALED = family("add_scaled", lambda kind: scaled, ALL, operands="TTT")

# The identity for numbers without a fraction or an imaginary part.
_IDENTITY = ("abs", "floor", "ceil", "round", "trunc", "conj", "relu")


def name_of(*operands: Operand) -> str:
    """Return the dtype that the operands are read as: that of the tensors."""
    return next(item.dtype.name for item in operands if isinstance(item, Tensor))


def _unary(name: str) -> Callable[[Tensor, Tensor], None]:
    keys = frozenset(FAMILIES[name].keys)

    def kernel(out: Tensor, x: Tensor) -> None:
        key = (x.dtype.name,)
        # Inverting the bits of a bool is the logical negation.
        of = "logical_not" if name == "bitwise_not" and key == ("bool",) else name
        if key in keys or of is not name:
            run(FAMILIES[of], key, out, (x, key[0]))
        elif name in CERTAIN:
            fill(out, CERTAIN[name])
        else:
            assert name in _IDENTITY, f"no CUDA kernel of {name} for {key[0]}"
            copy(out, x)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _binary(name: str) -> Callable[..., None]:
    family_ = FAMILIES[name]

    def kernel(out: Tensor, a: Operand, b: Operand) -> None:
        read = name_of(a, b)
        run(family_, (read,), out, (a, read), (b, read))

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _scaled(out: Tensor, a: Operand, b: Operand, alpha: Number) -> None:
    read = name_of(a, b)
    run(_SCALED, (read,), out, (a, read), (b, read), (alpha, read))


def _has_zero(divisor: Operand, read: str) -> bool:
    if isinstance(divisor, Tensor):
        return first_zero(divisor) is not None
    return bool(number_of(divisor, read) == 0)


def where(out: Tensor, cond: Tensor, a: Operand, b: Operand) -> None:
    """Write `a` where the condition is true, else `b`."""
    name = form(out)
    first, second = (
        item if isinstance(item, Tensor) else bits_of(item, out.dtype)
        for item in (a, b)
    )
    run(_WHERE, (name,), out, (cond, "bool"), (first, name), (second, name))


def clamp(out: Tensor, x: Operand, low: Operand | None, high: Operand | None) -> None:
    """Limit `x` to the range from `low` to `high`; None: no limit."""
    name = out.dtype.name
    if high is None or low is None:
        bound = low if high is None else high
        assert bound is not None, "the operator requires a bound"
        _LOOPS["maximum" if high is None else "minimum"](out, x, bound)
        return
    run(_CLAMP, (name,), out, (x, name), (low, name), (high, name))


_LOOPS: dict[str, Callable[..., None]] = {
    **{name: _unary(name) for name in UNARY},
    **{name: _binary(name) for name in BINARY},
}
KERNELS: dict[str, Callable[..., None]] = {
    **kernels(_LOOPS, _scaled, _has_zero),
    "where": where,
    "clamp": clamp,
}
