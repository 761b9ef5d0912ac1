"""Kernels of two operands: arithmetic, comparison, logic, bits.

True only here: what is more than a function of two elements
(`runtime.kernels.math.pairs`): factors, powers, and what integers cannot do, which
raises before anything is written.

Delegated to NumPy: `pow` of inexact numbers and `atan2`, which run on vectors there (an
element of float32 in 0.4 and 1.4 ns; our `e^(y log x)` in double precision took 2.2).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.errors.arithmetic import DivisionByZero, NegativeExponent
from runtime.kernels.cpu.copy import copy
from runtime.kernels.cpu.elementwise import HEAVY, LIGHT, Binary
from runtime.kernels.cpu.elementwise_element import element
from runtime.kernels.cpu.unary import KERNELS as UNARY
from runtime.kernels.cpu.unary import complex_divide, complex_exp
from runtime.kernels.jit import Entry, Family
from runtime.kernels.math import copysign, exp, floor, like, log, log1p
from runtime.kernels.math.pairs import DIVIDING, PAIRS, Pair, Reals
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def _whole_power(a: Any, b: Any) -> Any:
    result, base, rest = like(a, 1), a, b
    if rest < 0:
        # The whole part of a negative power: of 1 and -1 their powers, else 0.
        if base != 1 and base != -1:
            return like(a, 0)
        rest = rest & 1
    while rest > 0:
        if rest & 1:
            result = result * base
        base = base * base
        rest = rest >> 1
    return result


# What the processor has functions of its own for.
_HERE = Reals(
    like=like,
    fmod=np.fmod,
    copysign=copysign,
    floor=floor,
    hypot=np.hypot,
    exp=exp,
    log=log,
    log1p=log1p,
    complex_exp=complex_exp,
    complex_log=np.log,
    complex_divide=complex_divide,
)


def _binary(name: str, pair: Pair) -> Binary:
    return Binary(
        name,
        pair.real(_HERE),
        grain=pair.grain or LIGHT,
        result="boolean" if pair.truth else "T",
        whole=pair.whole and pair.whole(_HERE),
        complex_=pair.complex and pair.complex(_HERE),
    )


PLAIN = {name: _binary(name, pair) for name, pair in PAIRS.items()}
WHOLE_POWER = Binary("pow_whole", _whole_power, grain=50_000)


def _scaled(a: Any, b: Any, factor: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = a[i] + factor * b[i]


def _scaled_onto(b: Any, factor: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = out[i] + factor * b[i]


SCALED = Family("add_scaled", _scaled, "void(T[::1], T[::1], T, T[::1])")
SCALED_ONTO = Family("add_scaled_onto", _scaled_onto, "void(T[::1], T, T[::1])")


def add(out: Tensor, a: Any, b: Any, alpha: Any = 1) -> None:
    """`a + alpha b`."""
    if alpha == 1:
        PLAIN["add"](out, a, b)
    else:
        _add_scaled(out, a, b, alpha)


def sub(out: Tensor, a: Any, b: Any, alpha: Any = 1) -> None:
    """`a - alpha b`."""
    if alpha == 1:
        PLAIN["sub"](out, a, b)
    else:
        _add_scaled(out, a, b, -alpha)


def _add_scaled(out: Tensor, a: Any, b: Any, alpha: Any) -> None:
    """`a + alpha b` in one pass where both are flat, else in two."""
    name, target = out.dtype.name, flat_of(out)
    assert target is not None, "outputs are contiguous"
    if not isinstance(b, Tensor):
        PLAIN["add"](out, a, b * alpha)
        return
    x = flat_of(a) if isinstance(a, Tensor) and a.shape == out.shape else None
    y = flat_of(b) if b.shape == out.shape else None
    if x is None or y is None:
        product = empty_tensor(b.shape, b.dtype, b.device)
        PLAIN["mul"](product, b, alpha)
        PLAIN["add"](out, a, product)
        return
    factor = element(name, alpha)
    grain = PLAIN["add"].grain
    if x is target:
        onto = SCALED_ONTO[name]
        parallel_for(
            target.size, grain, lambda lo, hi: onto(y[lo:hi], factor, target[lo:hi])
        )
    else:
        flat = SCALED[name]
        parallel_for(
            target.size,
            grain,
            lambda lo, hi: flat(x[lo:hi], y[lo:hi], factor, target[lo:hi]),
        )


def _is_whole(tensor: Tensor) -> bool:
    return not (tensor.dtype.is_floating or tensor.dtype.is_complex)


def _has_zero(operand: Any, name: str) -> bool:
    if isinstance(operand, Tensor):
        elements = array_of(operand)
        return bool(np.count_nonzero(elements) != elements.size)
    return bool(element(name, operand) == 0)


def _divider(name: str) -> Callable[..., None]:
    plain = PLAIN[name]

    def kernel(out: Tensor, a: Any, b: Any) -> None:
        if _is_whole(out) and out.numel() and _has_zero(b, out.dtype.name):
            raise DivisionByZero(operator=f"core::{name}", dtype=out.dtype.name)
        plain(out, a, b)

    kernel.__name__ = kernel.__qualname__ = name
    return kernel


def _delegate(function: Any, out: Tensor, *operands: Any) -> None:
    """NumPy's function, in parallel where the operands are flat."""
    name, target = out.dtype.name, array_of(out)
    arrays = [
        array_of(operand) if isinstance(operand, Tensor) else element(name, operand)
        for operand in operands
    ]
    even = all(a.shape == out.shape and a.flags.c_contiguous for a in arrays if a.ndim)
    if not even or target.size < 2 * HEAVY:
        with np.errstate(all="ignore"):
            function(*arrays, out=target)
        return
    flat = target.reshape(-1)
    flats = [array.reshape(-1) if array.ndim else array for array in arrays]

    def run(lo: int, hi: int) -> None:
        parts = (array[lo:hi] if array.ndim else array for array in flats)
        with np.errstate(all="ignore"):
            function(*parts, out=flat[lo:hi])

    parallel_for(flat.size, HEAVY, run)


# Exponents that are another kernel.
_SPECIAL = {2: "square", 0.5: "sqrt", -1: "reciprocal", -0.5: "rsqrt"}


def pow(out: Tensor, a: Any, b: Any) -> None:  # noqa: A001  # the operator's name
    """`a` to the power `b`.

    Raises `NegativeExponent` for a negative number as the exponent of integers.
    """
    if _is_whole(out):
        if not isinstance(b, Tensor) and b < 0:
            raise NegativeExponent(operator="core::pow", dtype=out.dtype.name)
        WHOLE_POWER(out, a, b)
        return
    if isinstance(a, Tensor) and not isinstance(b, Tensor) and a.shape == out.shape:
        special = "copy" if b == 1 else _SPECIAL.get(b)
        if special is not None:
            (copy if special == "copy" else UNARY[special])(out, a)
            return
    _delegate(np.power, out, a, b)


def atan2(out: Tensor, a: Any, b: Any) -> None:
    """The angle of the point (b, a)."""
    _delegate(np.arctan2, out, a, b)


KERNELS: dict[str, Callable[..., None]] = {
    **PLAIN,
    "add": add,
    "sub": sub,
    **{name: _divider(name) for name in DIVIDING},
    "pow": pow,
    "atan2": atan2,
}


def direct_binary(name: str, dtype_name: str) -> Entry:
    """The compiled loop `entry(a, b, out)` over flat arrays of that dtype; no checks.

    For dtypes that are computed in.  Raises KeyError for a name that has no such loop.
    """
    return PLAIN[name].flat[dtype_name]
