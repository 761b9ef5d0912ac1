"""Random numbers on CUDA: the CPU's, from the same counters.

True only here: threads make blocks of Philox words and the elements of each; the rule
from words to numbers is that of `runtime.kernels.cpu.random`, which says it in full.

Rules
- all numbers are those of the CPU bit by bit: a product that is rounded before a sum is
  `dmul_rn`, which the compiler does not contract, and log, cos and sin are the CPU's
  (`runtime.kernels.cuda.polar`);
- every number of 64 bits is kept unsigned: with a signed one it would become a float.

When you change the rule, change `runtime/kernels/cpu/random.py` with it.
"""

from collections.abc import Callable
from math import pi
from typing import Any

import numpy as np

from runtime.kernels.cuda import scalars
from runtime.kernels.cuda.jit import Body, Family, Maker, device
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.operand import flat, index_of
from runtime.kernels.cuda.polar import circle, log_of
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.toolkit import SIMULATED, cuda
from runtime.kernels.cuda.unary import FLOATS, INTEGERS
from runtime.random import Generator
from runtime.tensors.tensor import Tensor

_U = np.uint64
_I = np.int64
_D = np.float64

# Philox 4x32's multipliers and the steps of its key (the golden ratio and sqrt(3) - 1
# in 32 bits), as published with Random123.
_M0 = _U(0xD2511F53)
_M1 = _U(0xCD9E8D57)
_W0 = _U(0x9E3779B9)
_W1 = _U(0xBB67AE85)

# A word of 32 bits lives in 64: no product of two words overflows.
_WORD = _U(0xFFFFFFFF)
_HALF = _U(32)
_ZERO = _U(0)
_ONE = _U(1)
_EIGHT = _U(8)
_ELEVEN = _U(11)

# Where the quadrant lies in the angle's word, and the rest of the word.
_QUADRANT_32 = _U(30)
_QUADRANT_53 = _U(51)
_ANGLE_32 = _U(2**30 - 1)
_ANGLE_53 = _U(2**51 - 1)

# The units of 24, 32 and 53 bits, and of the angles.
_UNIT_24 = 2.0**-24
_UNIT_32 = 2.0**-32
_UNIT_53 = 2.0**-53
_TURN_32 = pi / 2 * 2.0**-30
_TURN_53 = pi / 2 * 2.0**-51

# Greatest range of `randint` that one word serves: its bias is 2**-16 at most.
_NARROW_RANGE = 1 << 16

_sqrt = scalars.sqrt


def _rounded() -> Scalar:
    if SIMULATED:
        return lambda x, y: x * y
    from numba.cuda import libdevice

    native: Any = libdevice.dmul_rn
    return device(lambda x, y: native(x, y))


_product = _rounded()


@device
def _block(seed, offset, b):  # type: ignore[no-untyped-def]  # compiled for the device
    """The four words of block `b`: Philox 4x32-10 of its counter and the seed."""
    counter = _U(_U(offset) + _U(b))
    c0, c1, c2, c3 = counter & _WORD, counter >> _HALF, _ZERO, _ZERO
    k0, k1 = _U(seed) & _WORD, _U(seed) >> _HALF
    for _ in range(10):
        p0 = c0 * _M0
        p1 = c2 * _M1
        c0 = (p1 >> _HALF) ^ c1 ^ k0
        c2 = (p0 >> _HALF) ^ c3 ^ k1
        c1 = p1 & _WORD
        c3 = p0 & _WORD
        k0 = (k0 + _W0) & _WORD
        k1 = (k1 + _W1) & _WORD
    return c0, c1, c2, c3


@device
def _uniform_32(word, low, span, high):  # type: ignore[no-untyped-def]  # as above
    """A float32 in [low, high) from 24 bits."""
    share = _D(_I(word >> _EIGHT)) * _UNIT_24
    number = np.float32(low + _product(share, span))
    return number if _D(number) < high else np.float32(low)


@device
def _uniform_64(upper, lower, low, span, high):  # type: ignore[no-untyped-def]  # as above
    """A float64 in [low, high) from 53 bits."""
    word = ((upper << _HALF) | lower) >> _ELEVEN
    number = low + _product(_D(_I(word)) * _UNIT_53, span)
    return number if number < high else low


@device
def _narrow(word, low, count, unused):  # type: ignore[no-untyped-def]  # as above
    """An integer from `low` on, of `count` at most 2**16."""
    return _I(_U(_U(low) + ((word * _U(count)) >> _HALF)))


@device
def _wide(upper, lower, low, count, unused):  # type: ignore[no-untyped-def]  # as above
    """An integer from `low` on: the upper half of a product of 128 bits."""
    n = _U(count)
    c0, c1 = n & _WORD, n >> _HALF
    middle = upper * c0 + ((lower * c0) >> _HALF)
    other = lower * c1 + (middle & _WORD)
    found = upper * c1 + (middle >> _HALF) + (other >> _HALF)
    return _I(_U(_U(low) + found))


@device
def _below(word, threshold, unused, unused_too):  # type: ignore[no-untyped-def]  # as above
    """Whether the word is below the threshold."""
    return word < _U(threshold)


@device
def _turned(radius, angle, quadrant):  # type: ignore[no-untyped-def]  # as above
    """The point at a radius and an angle in [0, pi / 2), turned by quadrants."""
    cosine, sine = circle(angle)
    c, s = radius * cosine, radius * sine
    x, y = c, s
    if quadrant & 1:
        x, y = s, c
    if (quadrant + 1) & 2:
        x = -x
    if quadrant >= 2:
        y = -y
    return x, y


@device
def _pair(first, second):  # type: ignore[no-untyped-def]  # as above
    """Two standard normal float64 from two words."""
    u = _D(_I(first + _ONE)) * _UNIT_32
    angle = _D(_I(second & _ANGLE_32)) * _TURN_32
    return _turned(_sqrt(-2.0 * log_of(u)), angle, _I(second >> _QUADRANT_32))


@device
def _pair_53(w0, w1, w2, w3):  # type: ignore[no-untyped-def]  # as above
    """Two standard normal float64 from the four words of a block."""
    first = ((w0 << _HALF) | w1) >> _ELEVEN
    second = ((w2 << _HALF) | w3) >> _ELEVEN
    u = _D(_I(first + _ONE)) * _UNIT_53
    angle = _D(_I(second & _ANGLE_53)) * _TURN_53
    return _turned(_sqrt(-2.0 * log_of(u)), angle, _I(second >> _QUADRANT_53))


def _by_word(value: Scalar) -> Maker:
    """Each element of one word: `value(word, p, q, r)`."""

    def make(kind: Any) -> Body:
        def body(out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # as above
            b = cuda.grid(1)
            step = cuda.gridsize(1)
            while b * 4 < count:
                words = _block(seed, offset, b)
                for i in range(4):
                    if b * 4 + i < count:
                        out[b * 4 + i] = value(words[i], p, q, r)
                b += step

        return body

    return make


def _by_two_words(value: Scalar) -> Maker:
    """Each element of two words: `value(upper, lower, p, q, r)`."""

    def make(kind: Any) -> Body:
        def body(out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # as above
            b = cuda.grid(1)
            step = cuda.gridsize(1)
            while b * 2 < count:
                w0, w1, w2, w3 = _block(seed, offset, b)
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
            w0, w1, w2, w3 = _block(seed, offset, b)
            x, y = _pair(w0, w1)
            out[b * 4] = mean + _product(std, x)
            if b * 4 + 1 < count:
                out[b * 4 + 1] = mean + _product(std, y)
            x, y = _pair(w2, w3)
            if b * 4 + 2 < count:
                out[b * 4 + 2] = mean + _product(std, x)
            if b * 4 + 3 < count:
                out[b * 4 + 3] = mean + _product(std, y)
            b += step

    def of_doubles(out, count, seed, offset, mean, std, unused):  # type: ignore[no-untyped-def]  # as above
        b = cuda.grid(1)
        step = cuda.gridsize(1)
        while b * 2 < count:
            w0, w1, w2, w3 = _block(seed, offset, b)
            x, y = _pair_53(w0, w1, w2, w3)
            out[b * 2] = mean + _product(std, x)
            if b * 2 + 1 < count:
                out[b * 2 + 1] = mean + _product(std, y)
            b += step

    return of_singles if single else of_doubles


_FLOATING = "T[::1], int64, uint64, uint64, float64, float64, float64"
_WHOLE = "T[::1], int64, uint64, uint64, uint64, uint64, uint64"
_HOLDING = ("bool", *INTEGERS, *FLOATS)

_UNIFORM = {
    "float32": Family("uniform", _by_word(_uniform_32), _FLOATING, ("float32",)),
    "float64": Family(
        "uniform_double", _by_two_words(_uniform_64), _FLOATING, ("float64",)
    ),
}
_NORMAL = Family("normal", _normal, _FLOATING, FLOATS)
_NARROW = Family("randint_narrow", _by_word(_narrow), _WHOLE, _HOLDING)
_WIDE = Family("randint_wide", _by_two_words(_wide), _WHOLE, _HOLDING)
_BERNOULLI = Family("bernoulli", _by_word(_below), _WHOLE, ("bool",))


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
    kernels, per_block = (_NARROW, 4) if count <= _NARROW_RANGE else (_WIDE, 2)
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
