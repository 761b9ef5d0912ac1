"""Filling: one number everywhere, and numbers at even steps.

True only here: `fill` takes any layout and dtype; it is NumPy's, which writes at the
speed of memory.  `arange` multiplies, so that no error adds up: floating-point results
are computed in double precision and rounded once.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.elementwise import LIGHT
from runtime.kernels.cpu.elementwise_element import element
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import array_of, flat_of
from runtime.tensors.tensor import Tensor

# Below this many bytes for a thread the first one is done before a second has begun.
GRAIN_BYTES = 4 << 20

# 16-bit floats are no scalars of Numba; a float32 reaches them by NumPy's rounding.
_HALF = frozenset(("float16", "bfloat16"))


def fill(dst: Tensor, value: Any) -> None:
    """Write `value` into every element."""
    name = dst.dtype.name
    number = element("float32" if name in _HALF else name, value)
    flat = flat_of(dst)
    if flat is None:
        with np.errstate(all="ignore"):
            array_of(dst)[...] = number
        return

    def run(lo: int, hi: int) -> None:
        with np.errstate(all="ignore"):
            flat[lo:hi] = number

    parallel_for(flat.size, GRAIN_BYTES // flat.itemsize, run)


def _whole_steps(start: int, step: int, first: int, out: Any) -> None:
    for i in range(out.size):
        out[i] = start + (first + i) * step


def _steps(start: float, step: float, first: int, out: Any) -> None:
    for i in range(out.size):
        out[i] = start + (first + i) * step


WHOLE = Family("arange_whole", _whole_steps, "void(int64, int64, int64, T[::1])")
REAL = Family("arange", _steps, "void(float64, float64, int64, T[::1])")


def arange(out: Tensor, start: Any, step: Any) -> None:
    """Write `start + i step` into element i."""
    flat, dtype = flat_of(out), out.dtype
    assert flat is not None, "outputs are contiguous"
    if dtype.is_complex or dtype.name in _HALF:
        with np.errstate(all="ignore"):
            flat[...] = start + np.arange(flat.size) * step
    elif dtype.is_floating or isinstance(start, float) or isinstance(step, float):
        entry = REAL[dtype.name]
        first, width = float(start), float(step)
        parallel_for(
            flat.size, LIGHT, lambda lo, hi: entry(first, width, lo, flat[lo:hi])
        )
    else:
        whole = WHOLE[dtype.name]
        parallel_for(
            flat.size, LIGHT, lambda lo, hi: whole(start, step, lo, flat[lo:hi])
        )


KERNELS = {"fill": fill, "arange": arange}
