"""Random numbers on CUDA: the CPU's, from the same counters, bit by bit.

Threads make blocks of Philox words and the elements of each; the rule from words to
numbers, and its functions, are those of `runtime.kernels.cpu.random`.

Every number of 64 bits is kept unsigned: with a signed one it would become a float.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.random import (
    NARROW,
    below,
    block,
    narrow_integer,
    normal_pair,
    normal_pair_53,
    uniform_32,
    uniform_64,
    wide_integer,
)
from runtime.kernels.cuda.copy import flat
from runtime.kernels.cuda.device import cuda, spread
from runtime.kernels.cuda.elementwise import index_of
from runtime.kernels.cuda.jit import Body, Family, Maker, ported
from runtime.kernels.math import rounded
from runtime.kernels.math.scalars import FLOATS, INTEGERS
from runtime.random import Generator
from runtime.tensors.tensor import Tensor

_U = np.uint64
_block = ported(block)
_pair, _pair_53 = ported(normal_pair), ported(normal_pair_53)
_rounded = ported(rounded)


def _by_word(function: Any) -> Maker:
    """Each element of one word: `value(word, p, q, r)`."""
    value = ported(function)

    def make(kind: Any) -> Body:
        def body(out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # compiled for the device
            b = cuda.grid(1)
            step = cuda.gridsize(1)
            while b * 4 < count:
                words = _block(_U(seed), _U(offset), b)
                for i in range(4):
                    if b * 4 + i < count:
                        out[b * 4 + i] = value(words[i], p, q, r)
                b += step

        return body

    return make


def _by_two_words(function: Any) -> Maker:
    """Each element of two words: `value(upper, lower, p, q, r)`."""
    value = ported(function)

    def make(kind: Any) -> Body:
        def body(out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # as above
            b = cuda.grid(1)
            step = cuda.gridsize(1)
            while b * 2 < count:
                w0, w1, w2, w3 = _block(_U(seed), _U(offset), b)
                out[b * 2] = value(w0, w1, p, q, r)
                if b * 2 + 1 < count:
                    out[b * 2 + 1] = value(w2, w3, p, q, r)
                b += step

        return body

    return make


def _normal(kind: Any) -> Body:
    single = kind is np.float32

    def of_singles(out, count, seed, offset, mean, std, unused):  # type: ignore[no-untyped-def]  # as above
        b = cuda.grid(1)
        step = cuda.gridsize(1)
        while b * 4 < count:
            w0, w1, w2, w3 = _block(_U(seed), _U(offset), b)
            x, y = _pair(w0, w1)
            out[b * 4] = mean + _rounded(std, x)
            if b * 4 + 1 < count:
                out[b * 4 + 1] = mean + _rounded(std, y)
            x, y = _pair(w2, w3)
            if b * 4 + 2 < count:
                out[b * 4 + 2] = mean + _rounded(std, x)
            if b * 4 + 3 < count:
                out[b * 4 + 3] = mean + _rounded(std, y)
            b += step

    def of_doubles(out, count, seed, offset, mean, std, unused):  # type: ignore[no-untyped-def]  # as above
        b = cuda.grid(1)
        step = cuda.gridsize(1)
        while b * 2 < count:
            w0, w1, w2, w3 = _block(_U(seed), _U(offset), b)
            x, y = _pair_53(w0, w1, w2, w3)
            out[b * 2] = mean + _rounded(std, x)
            if b * 2 + 1 < count:
                out[b * 2 + 1] = mean + _rounded(std, y)
            b += step

    return of_singles if single else of_doubles


_FLOATING = "T[::1], int64, uint64, uint64, float64, float64, float64"
_WHOLE = "T[::1], int64, uint64, uint64, uint64, uint64, uint64"
_HOLDING = ("bool", *INTEGERS, *FLOATS)

_UNIFORM = {
    "float32": Family("uniform", _by_word(uniform_32), _FLOATING, ("float32",)),
    "float64": Family(
        "uniform_double", _by_two_words(uniform_64), _FLOATING, ("float64",)
    ),
}
_NORMAL = Family("normal", _normal, _FLOATING, FLOATS)
_NARROW = Family("randint_narrow", _by_word(narrow_integer), _WHOLE, _HOLDING)
_WIDE = Family("randint_wide", _by_two_words(wide_integer), _WHOLE, _HOLDING)
_BERNOULLI = Family("bernoulli", _by_word(below), _WHOLE, ("bool",))


def _fill(
    kernels: Family, out: Tensor, generator: Generator, of_block: int, *numbers: Any
) -> None:
    """Take the blocks that an output needs, and fill it from them."""
    count = out.numel()
    if not count:
        return
    blocks = -(-count // of_block)
    seed, offset = generator.take(blocks)
    shape = spread(blocks, index_of(out))
    kernels[out.dtype.name](shape, flat(out), count, seed, offset, *numbers)


def uniform(out: Tensor, generator: Generator, low: float, high: float) -> None:
    """Uniform numbers of [low, high)."""
    name = out.dtype.name
    span = float(np.float32(high - low)) if name == "float32" else high - low
    per_block = 4 if name == "float32" else 2
    numbers = (float(low), float(span), float(high))
    _fill(_UNIFORM[name], out, generator, per_block, *numbers)


def normal(out: Tensor, generator: Generator, mean: float, std: float) -> None:
    """Normal numbers of that mean and standard deviation."""
    per_block = 4 if out.dtype.name == "float32" else 2
    _fill(_NORMAL, out, generator, per_block, float(mean), float(std), 0.0)


def randint(out: Tensor, generator: Generator, low: int, high: int) -> None:
    """Integers of [low, high), in any dtype that holds them."""
    count = high - low
    kernels, per_block = (_NARROW, 4) if count <= NARROW else (_WIDE, 2)
    _fill(kernels, out, generator, per_block, low & ((1 << 64) - 1), count, 0)


def bernoulli(out: Tensor, generator: Generator, p: float) -> None:
    """True with probability `p`."""
    _fill(_BERNOULLI, out, generator, 4, round(p * 2.0**32), 0, 0)


KERNELS: dict[str, Callable[..., None]] = {
    "uniform": uniform,
    "normal": normal,
    "randint": randint,
    "bernoulli": bernoulli,
}
