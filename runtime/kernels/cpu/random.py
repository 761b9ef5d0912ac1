"""Random numbers: a counter-based generator; an element's bits depend on its index.

Element `i` of an output is a pure function of (seed, offset, i); the number of threads,
the chunks and the device change nothing.  The numbers of a block, `DRAWS`, and the
kernels are the same for all devices; each device has its loops, and a test compares
them bit for bit.

The rule
- `Generator.take(blocks)` returns (seed, offset).  Block `b` of the output is Philox
  4x32-10 (Salmon, Moraes, Dror, Shaw, SC 2011) of the counter (low half of offset + b,
  high half of offset + b, 0, 0), sums modulo 2**64, and the key (low half of seed, high
  half of seed).  It yields the 32-bit words w0, w1, w2, w3.
- One word per element: element `i` has word `i % 4` of block `i // 4`.  Two words per
  element: element `i` has words `2 * (i % 2)` and the next one of block `i // 2`; the
  first is the upper half of the 64-bit word.  Blocks reserved: the elements divided by
  4, or by 2, rounded up; none for an empty output.
- uniform(low, high), float32: one word; u = (w >> 8) * 2**-24; the value is low + u *
  float32(high - low) in float64 (this product is exact), rounded to float32. float64:
  two words; u = (w64 >> 11) * 2**-53; the product u * (high - low) is rounded before
  the sum (CUDA: `dmul_rn`, no contraction).  If rounding yields `high`, the value is
  `low` instead.
- normal(mean, std), Box and Muller, all in float64.  float32: elements 4b, 4b + 1 use
  (w0, w1), elements 4b + 2, 4b + 3 use (w2, w3): radius = sqrt(-2 * log((first + 1) *
  2**-32)); the second's upper 2 bits are the quadrant q, its lower 30 bits times (pi /
  2) * 2**-30 the angle.  float64: elements 2b, 2b + 1 use block b: radius = sqrt(-2 *
  log(((w64 >> 11) + 1) * 2**-53)) of (w0, w1); of (w2, w3) >> 11, the upper 2 of 53
  bits are q, the lower 51 times (pi / 2) * 2**-51 the angle. (c, s) = (cos, sin) of the
  angle are rotated by q: (c, s), (-s, c), (-c, -s), (s, -c).  The even element is mean
  + std * (radius * c), the odd one mean + std * (radius * s), rounded to the output's
  dtype.  So the argument of cos and sin is in [0, pi / 2).
- randint(low, high), n = high - low.  n <= 2**16: one word, low + ((w * n) >> 32). Else
  two words, low + ((w64 * n) >> 64).  No rejection: the relative error of a value's
  probability is at most n * 2**-32, or n * 2**-64.
- bernoulli(p): one word; true if w < p * 2**32 rounded to the nearest integer.
"""

from collections.abc import Callable
from math import pi, sqrt
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.math import cos_near, log, rounded, sin_near
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import FLOATS, INTEGERS
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.tensors.generator import Generator
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

# Philox 4x32's multipliers and the steps of its key (the golden ratio and sqrt(3) - 1
# in 32 bits), as published with Random123.
M0 = np.uint64(0xD2511F53)
M1 = np.uint64(0xCD9E8D57)
W0 = np.uint64(0x9E3779B9)
W1 = np.uint64(0xBB67AE85)

# A word of 32 bits is stored in 64: no product of two words overflows.
WORD = np.uint64(0xFFFFFFFF)
HALF = np.uint64(32)
ZERO = np.uint64(0)
ONE = np.uint64(1)
EIGHT = np.uint64(8)
ELEVEN = np.uint64(11)

# The position of the quadrant in the angle's word, and the rest of the word.
QUADRANT_32 = np.uint64(30)
QUADRANT_53 = np.uint64(51)
ANGLE_32 = np.uint64(2**30 - 1)
ANGLE_53 = np.uint64(2**51 - 1)

# The greatest range of `randint` with one word: its bias is 2**-16 at most.
NARROW = 1 << 16

# Blocks per thread: about 16 us of uniform numbers.
GRAIN = 1 << 14


def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Return four words from four counter words and two key words: Philox 4x32-10."""
    for _ in range(10):
        p0 = c0 * M0
        p1 = c2 * M1
        c0 = (p1 >> HALF) ^ c1 ^ k0
        c2 = (p0 >> HALF) ^ c3 ^ k1
        c1 = p1 & WORD
        c3 = p0 & WORD
        k0 = (k0 + W0) & WORD
        k1 = (k1 + W1) & WORD
    return c0, c1, c2, c3


def block(seed: Any, offset: Any, b: int) -> Any:
    """Return the four words of block `b`."""
    counter = offset + np.uint64(b)
    low, high = counter & WORD, counter >> HALF
    return philox(low, high, ZERO, ZERO, seed & WORD, seed >> HALF)


def uniform_32(word: Any, low: Any, span: Any, high: Any) -> Any:
    """Return a float32 in [low, high) from 24 bits."""
    share = np.float64(np.int64(word >> EIGHT)) * 2.0**-24
    number = np.float32(low + rounded(share, span))
    return number if number < high else np.float32(low)


def uniform_64(upper: Any, lower: Any, low: Any, span: Any, high: Any) -> Any:
    """Return a float64 in [low, high) from 53 bits."""
    word = (upper << HALF | lower) >> ELEVEN
    number = low + rounded(np.float64(np.int64(word)) * 2.0**-53, span)
    return number if number < high else low


def narrow_integer(word: Any, low: Any, count: Any, unused: Any) -> Any:
    """Return an integer from `low` on, one of at most 2**16 values."""
    return np.int64(low + (word * count >> HALF))


def wide_integer(upper: Any, lower: Any, low: Any, count: Any, unused: Any) -> Any:
    """Return an integer from `low` on: the upper half of a 128-bit product."""
    c0, c1 = count & WORD, count >> HALF
    middle = upper * c0 + (lower * c0 >> HALF)
    other = lower * c1 + (middle & WORD)
    return np.int64(low + upper * c1 + (middle >> HALF) + (other >> HALF))


def below(word: Any, threshold: Any, unused: Any, unused_too: Any) -> Any:
    """Return True if the word is below the threshold."""
    return word < threshold


def turned(radius: Any, angle: Any, quadrant: Any) -> Any:
    """Return the point at a radius and an angle in [0, pi / 2), plus quadrants."""
    c, s = radius * cos_near(angle), radius * sin_near(angle)
    swap = (quadrant & 1) == 1
    x, y = s if swap else c, c if swap else s
    left = ((quadrant + 1) & 2) == 2
    return -x if left else x, -y if quadrant >= 2 else y


def normal_pair(first: Any, second: Any) -> Any:
    """Return two standard normal float64 from two words."""
    u = np.float64(np.int64(first + ONE)) * 2.0**-32
    angle = np.float64(np.int64(second & ANGLE_32)) * (pi / 2 * 2.0**-30)
    return turned(sqrt(-2.0 * log(u)), angle, np.int64(second >> QUADRANT_32))


def normal_pair_53(w0: Any, w1: Any, w2: Any, w3: Any) -> Any:
    """Return two standard normal float64 from the four words of a block."""
    first = (w0 << HALF | w1) >> ELEVEN
    second = (w2 << HALF | w3) >> ELEVEN
    u = np.float64(np.int64(first + ONE)) * 2.0**-53
    angle = np.float64(np.int64(second & ANGLE_53)) * (pi / 2 * 2.0**-51)
    return turned(sqrt(-2.0 * log(u)), angle, np.int64(second >> QUADRANT_53))


def normals_32(
    w0: Any, w1: Any, w2: Any, w3: Any, mean: Any, std: Any, unused: Any
) -> Any:
    """Return four normal numbers of a block, two for each pair of words."""
    x, y = normal_pair(w0, w1)
    z, w = normal_pair(w2, w3)
    return (
        mean + rounded(std, x),
        mean + rounded(std, y),
        mean + rounded(std, z),
        mean + rounded(std, w),
    )


def normals_64(
    w0: Any, w1: Any, w2: Any, w3: Any, mean: Any, std: Any, unused: Any
) -> Any:
    """Return two normal numbers of a block."""
    x, y = normal_pair_53(w0, w1, w2, w3)
    return mean + rounded(std, x), mean + rounded(std, y)


def by_word(value: Scalar) -> Scalar:
    """Return the draw of four numbers per block: `value(word, p, q, r)`."""

    def four(w0: Any, w1: Any, w2: Any, w3: Any, p: Any, q: Any, r: Any) -> Any:
        return (
            value(w0, p, q, r),
            value(w1, p, q, r),
            value(w2, p, q, r),
            value(w3, p, q, r),
        )

    return four


def by_two_words(value: Scalar) -> Scalar:
    """Return the draw of two numbers per block: `value(upper, lower, p, q, r)`."""

    def two(w0: Any, w1: Any, w2: Any, w3: Any, p: Any, q: Any, r: Any) -> Any:
        return value(w0, w1, p, q, r), value(w2, w3, p, q, r)

    return two


class Draw(NamedTuple):
    """The numbers of a block: `draw(w0, w1, w2, w3, p, q, r)`.

    Attributes:
        draw: returns all numbers of the block.
        of_block: their count.
        parameters: the type of p, q and r.
        dtypes: of the numbers.
    """

    draw: Scalar
    of_block: int
    parameters: str
    dtypes: tuple[str, ...]


_ANY = ("bool", *INTEGERS, *FLOATS)

# The draws around which devices build loops.
DRAWS = {
    "uniform": Draw(by_word(uniform_32), 4, "float64", FLOATS[:1]),
    "uniform_double": Draw(by_two_words(uniform_64), 2, "float64", FLOATS[1:]),
    "normal": Draw(normals_32, 4, "float64", FLOATS[:1]),
    "normal_double": Draw(normals_64, 2, "float64", FLOATS[1:]),
    "randint_narrow": Draw(by_word(narrow_integer), 4, "uint64", _ANY),
    "randint_wide": Draw(by_two_words(wide_integer), 2, "uint64", _ANY),
    "bernoulli": Draw(by_word(below), 4, "uint64", ("bool",)),
}


def kernels(fill: Callable[..., None]) -> dict[str, Callable[..., None]]:
    """Return the kernels of a device that fills outputs.

    `fill(draw, out, generator, p, q, r)` reserves the blocks of the generator that the
    output needs, and fills it by the draw of that name.
    """

    def uniform(out: Tensor, generator: Generator, low: float, high: float) -> None:
        """Fill with uniform numbers in [low, high)."""
        draw, span = "uniform_double", high - low
        if out.dtype.name == "float32":
            draw, span = "uniform", float(np.float32(span))
        fill(draw, out, generator, float(low), float(span), float(high))

    def normal(out: Tensor, generator: Generator, mean: float, std: float) -> None:
        """Fill with normal numbers of that mean and standard deviation."""
        draw = "normal" if out.dtype.name == "float32" else "normal_double"
        fill(draw, out, generator, float(mean), float(std), 0.0)

    def randint(out: Tensor, generator: Generator, low: int, high: int) -> None:
        """Fill with integers in [low, high), in any dtype that holds them."""
        count = high - low
        draw = "randint_narrow" if count <= NARROW else "randint_wide"
        fill(draw, out, generator, low & 0xFFFFFFFFFFFFFFFF, count, 0)

    def bernoulli(out: Tensor, generator: Generator, p: float) -> None:
        """Fill with True with probability `p`."""
        fill("bernoulli", out, generator, round(p * 2.0**32), 0, 0)

    functions = (uniform, normal, randint, bernoulli)
    return {each.__name__: each for each in functions}


def _loop(draw: Draw) -> Callable[..., None]:
    numbers, of_block = draw.draw, draw.of_block

    def body(out: Any, seed: Any, offset: Any, p: Any, q: Any, r: Any) -> None:
        blocks = len(out) // of_block
        for b in range(blocks):
            w0, w1, w2, w3 = block(seed, offset, b)
            drawn = numbers(w0, w1, w2, w3, p, q, r)
            for i in range(of_block):
                out[of_block * b + i] = drawn[i]
        tail = out[of_block * blocks :]
        if len(tail) > 0:
            w0, w1, w2, w3 = block(seed, offset, blocks)
            drawn = numbers(w0, w1, w2, w3, p, q, r)
            for i in range(len(tail)):
                tail[i] = drawn[i]

    return body


# output, seed, offset, p, q, r
_FAMILIES = {
    name: Family(
        name,
        _loop(draw),
        f"void(T[::1], uint64, uint64{f', {draw.parameters}' * 3})",
    )
    for name, draw in DRAWS.items()
}


def _fill(name: str, out: Tensor, generator: Generator, *numbers: Any) -> None:
    flat = flat_of(out)
    assert flat is not None, "outputs are contiguous and have elements in memory"
    if not flat.size:
        return
    of_block = DRAWS[name].of_block
    blocks = -(-flat.size // of_block)
    seed, offset = generator.take(blocks)
    entry = _FAMILIES[name][out.dtype.name]

    def run(lo: int, hi: int) -> None:
        start = offset + lo & 0xFFFFFFFFFFFFFFFF
        entry(flat[of_block * lo : of_block * hi], seed, start, *numbers)

    parallel_for(blocks, GRAIN, run)


KERNELS = kernels(_fill)
