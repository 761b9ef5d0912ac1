"""Kernels of three operands: selection by a mask, and bounds.

`where` moves elements and never looks at them, so one loop for each item size serves
every dtype; `clamp` with numbers is one loop, with tensors two passes.

Rules: bounds that an integer dtype cannot hold are moved to what it can; NaN, in the
elements or in a bound, stays NaN.
"""

from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.copy import contiguous, copy, fill
from runtime.kernels.cpu.elementwise import SPECIALISED
from runtime.kernels.cpu.operand import BY_SIZE, Geometry, Run, element
from runtime.kernels.cpu.pointwise import PLAIN
from runtime.kernels.jit import Family
from runtime.kernels.math.scalars import LIGHT, bounded, select
from runtime.kernels.threads import parallel_for
from runtime.schema.codes import DType
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import info, itemsize, numpy_dtype
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import broadcast_strides
from runtime.tensors.tensor import Tensor

# Both values are read before one is chosen: a read that depends on the mask would keep
# the loop from being vectorised.


def _both(mask: Any, a: Any, b: Any, out: Any) -> None:
    for i in range(out.size):
        x, y = a[i], b[i]
        out[i] = select(mask[i], x, y)


def _number_right(mask: Any, a: Any, y: Any, out: Any) -> None:
    for i in range(out.size):
        x = a[i]
        out[i] = select(mask[i], x, y)


def _number_left(mask: Any, x: Any, b: Any, out: Any) -> None:
    for i in range(out.size):
        y = b[i]
        out[i] = select(mask[i], x, y)


def _numbers(mask: Any, x: Any, y: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = select(mask[i], x, y)


def _number_onto(mask: Any, x: Any, out: Any) -> None:
    for i in range(out.size):
        y = out[i]
        out[i] = select(mask[i], x, y)


_MASK = "boolean[::1]"
BOTH = Family("where", _both, f"void({_MASK}, T[::1], T[::1], T[::1])")
NUMBER_RIGHT = Family("where_right", _number_right, f"void({_MASK}, T[::1], T, T[::1])")
NUMBER_LEFT = Family("where_left", _number_left, f"void({_MASK}, T, T[::1], T[::1])")
NUMBERS = Family("where_numbers", _numbers, f"void({_MASK}, T, T, T[::1])")
NUMBER_ONTO = Family("where_onto", _number_onto, f"void({_MASK}, T, T[::1])")


def where(out: Tensor, cond: Tensor, a: Any, b: Any) -> None:
    """Elements of `a` where `cond` is true, of `b` elsewhere."""
    target = flat_of(out)
    assert target is not None, "outputs are contiguous"
    name, words = out.dtype.name, _words(out.dtype)
    if type(a) is Tensor and type(b) is Tensor and name == words:
        x, y, mask = a._flat, b._flat, cond._flat
        flat = x is not None and y is not None and mask is not None
        alike = out.shape == a.shape == b.shape == cond.shape
        if flat and alike and target.size < 2 * LIGHT:
            BOTH[name](mask, x, y, target)
            return
    target = target.view(words)
    mask = _elements(cond, out.shape)
    x, y = (_moved(operand, out, words) for operand in (a, b))
    arrays = isinstance(x, np.ndarray), isinstance(y, np.ndarray)
    if arrays == (False, True) and isinstance(b, Tensor) and b is out:
        onto = NUMBER_ONTO[words]
        parallel_for(
            target.size, LIGHT, lambda lo, hi: onto(mask[lo:hi], x, target[lo:hi])
        )
        return
    family = {
        (True, True): BOTH,
        (True, False): NUMBER_RIGHT,
        (False, True): NUMBER_LEFT,
        (False, False): NUMBERS,
    }[arrays]
    entry = family[words]

    def run(lo: int, hi: int) -> None:
        first = x[lo:hi] if arrays[0] else x
        second = y[lo:hi] if arrays[1] else y
        entry(mask[lo:hi], first, second, target[lo:hi])

    parallel_for(target.size, LIGHT, run)


def _ready_where(out: Geometry, cond: Geometry, a: Any, b: Any) -> Run | None:
    """Of small rows of one shape, and numbers."""
    given = [each for each in (cond, a, b) if isinstance(each, Geometry)]
    alike = all(each.shape == out.shape and each.strides is None for each in given)
    if not alike or prod(out.shape) >= 2 * LIGHT:
        return None
    words = _words(out.dtype)
    if isinstance(a, Geometry) and isinstance(b, Geometry):
        entry = BOTH[words]
        if words == out.dtype.name:
            return entry
        return lambda mask, x, y, to: entry(
            mask, x.view(words), y.view(words), to.view(words)
        )
    if isinstance(b, Geometry):
        word, entry = _word(a, out.dtype), NUMBER_LEFT[words]
        return lambda mask, y, to: entry(mask, word, y.view(words), to.view(words))
    return None


def _words(dtype: DType) -> str:
    """What elements are moved as."""
    return dtype.name if dtype.name in SPECIALISED else BY_SIZE[itemsize(dtype)]


def _word(number: Any, dtype: DType) -> Any:
    """A number as a word."""
    one = np.empty(1, numpy_dtype(dtype))
    name = dtype.name
    one[0] = element("float32" if name in ("float16", "bfloat16") else name, number)
    return one.view(_words(dtype))[0]


def _moved(operand: Any, out: Tensor, words: str) -> Any:
    """A flat array of words, or one word for all."""
    if not isinstance(operand, Tensor):
        return _word(operand, out.dtype)
    if operand.shape != out.shape and all(size == 1 for size in operand.shape):
        return _elements(operand, operand.shape).view(words)[0]
    return _elements(operand, out.shape).view(words)


def _elements(operand: Tensor, shape: tuple[int, ...]) -> Any:
    """The elements, broadcast to the shape, in order; copied if they do not lie so."""
    if operand.shape == shape:
        flat = flat_of(operand)
        if flat is not None:
            return flat
    else:
        strides = broadcast_strides(operand.shape, operand.strides, shape)
        operand = view_of(operand, shape, strides, operand.offset)
    return flat_of(contiguous(operand))


def _clamp(x: Any, low: Any, high: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = bounded(x[i], low, high)


def _clamp_onto(low: Any, high: Any, out: Any) -> None:
    for i in range(out.size):
        out[i] = bounded(out[i], low, high)


CLAMP = Family("clamp", _clamp, "void(T[::1], T, T, T[::1])")
CLAMP_ONTO = Family("clamp_onto", _clamp_onto, "void(T, T, T[::1])")


def clamp(out: Tensor, x: Tensor, lo: Any, hi: Any) -> None:
    """Elements of `x`, none below `lo`, then none above `hi`; None is no bound."""
    if isinstance(lo, Tensor) or isinstance(hi, Tensor):
        source: Any = x
        for name, bound in (("maximum", lo), ("minimum", hi)):
            if bound is not None:
                PLAIN[name](out, source, _bound(bound, out))
                source = out
        return
    if lo != lo or hi != hi:
        fill(out, float("nan"))
        return
    name, target = out.dtype.name, flat_of(out)
    assert target is not None, "outputs are contiguous"
    low, high = limit(name, lo, -1), limit(name, hi, 1)
    source = flat_of(x) if x.shape == out.shape else None
    if source is None:
        copy(out, x)
        source = target
    if source is target:
        onto = CLAMP_ONTO[name]
        parallel_for(
            target.size, LIGHT, lambda at, end: onto(low, high, target[at:end])
        )
    else:
        entry = CLAMP[name]
        parallel_for(
            target.size,
            LIGHT,
            lambda at, end: entry(source[at:end], low, high, target[at:end]),
        )


def _ready_clamp(out: Geometry, x: Geometry, lo: Any, hi: Any) -> Run | None:
    """Of small rows, between numbers."""
    if x != out or prod(out.shape) >= 2 * LIGHT or lo != lo or hi != hi:
        return None
    if isinstance(lo, Geometry) or isinstance(hi, Geometry):
        return None
    name = out.dtype.name
    low, high, entry = limit(name, lo, -1), limit(name, hi, 1), CLAMP[name]
    return lambda a, to: entry(a, low, high, to)


def _bound(bound: Any, out: Tensor) -> Any:
    """A bound as an operand; one that may share memory with the output is copied."""
    if isinstance(bound, Tensor) and bound is out:
        kept = empty_tensor(out.shape, out.dtype, out.device)
        copy(kept, bound)
        return kept
    return bound


def limit(name: str, bound: Any, side: int) -> Any:
    """The bound in that dtype; where there is none, its end.

    Not remembered by its value: -0.0 equals 0.0.
    """
    facts = info(DType.named(name))
    if facts.kind == "f":
        return element(name, side * float("inf") if bound is None else bound)
    end = facts.largest if side > 0 else facts.smallest
    wanted = end if bound is None else bound
    return element(name, min(max(wanted, facts.smallest), facts.largest))


KERNELS = {"where": where, "clamp": clamp}
READY = {"where": _ready_where, "clamp": _ready_clamp}
