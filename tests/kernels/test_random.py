"""Random numbers: the published bits of Philox, and the rule of numbering."""

import os
from math import log2
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cpu.random import GRAIN, KERNELS, philox
from everyorder.runtime.kernels.shared.thread_pool import (
    get_num_threads,
    set_num_threads,
)
from everyorder.runtime.tensors.construction import from_numpy
from everyorder.runtime.tensors.generator import Generator

Array = np.ndarray[Any, Any]

compiled = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="too slow uncompiled"
)

uniform, normal, randint, bernoulli = KERNELS.values()

SEED = 0x0123456789ABCDEF

# Random123's known answers: counter, key, result.
KNOWN = [
    ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
    (
        "ffffffff ffffffff ffffffff ffffffff",
        "ffffffff ffffffff",
        "408f276d 41c83b0e a20bc7c6 6d5451fd",
    ),
    (
        "243f6a88 85a308d3 13198a2e 03707344",
        "a4093822 299f31d0",
        "d16cfe09 94fdcceb 5001e420 24126ea1",
    ),
]


def words_of(text: str) -> list[int]:
    return [int(word, 16) for word in text.split()]


@pytest.mark.parametrize(("counter", "key", "answer"), KNOWN)
def test_philox_gives_the_published_words(counter: str, key: str, answer: str) -> None:
    given = [np.uint64(word) for word in words_of(counter) + words_of(key)]
    assert [int(word) for word in philox(*given)] == words_of(answer)


def words(blocks: int, offset: int = 0, seed: int = SEED) -> list[int]:
    """The words of blocks, by the rule in the module's docstring, in plain integers."""
    made = []
    for b in range(blocks):
        counter = (offset + b) % 2**64
        c = [counter % 2**32, counter >> 32, 0, 0]
        k = [seed % 2**32, seed >> 32]
        for _ in range(10):
            p, q = c[0] * 0xD2511F53, c[2] * 0xCD9E8D57
            c = [(q >> 32) ^ c[1] ^ k[0], q % 2**32, (p >> 32) ^ c[3] ^ k[1], p % 2**32]
            k = [(k[0] + 0x9E3779B9) % 2**32, (k[1] + 0xBB67AE85) % 2**32]
        made += c
    return made


def filled(name: str, size: int, form: str, *numbers: Any) -> Array:
    out = np.full(size, 77, form)
    KERNELS[name](from_numpy(out), Generator(seed=SEED), *numbers)
    return out


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 11])
def test_uniform_by_the_rule(size: int) -> None:
    drawn = words(6)
    small = [(w >> 8) * 2.0**-24 for w in drawn[:size]]
    assert filled("uniform", size, "float32", 0.0, 1.0).tolist() == small
    low, high = -2.0, 0.7
    span = float(np.float32(high - low))
    shifted = [float(np.float32(low + u * span)) for u in small]
    assert filled("uniform", size, "float32", low, high).tolist() == shifted
    pairs = [(a << 32 | b) >> 11 for a, b in zip(drawn[::2], drawn[1::2], strict=True)]
    large = [low + p * 2.0**-53 * (high - low) for p in pairs[:size]]
    assert filled("uniform", size, "float64", low, high).tolist() == large


def test_uniform_never_arrives_at_the_end() -> None:
    low, high = 1.0, float(np.nextafter(np.float32(1), np.float32(2)))
    assert set(filled("uniform", 64, "float32", low, high).tolist()) == {low}
    high = float(np.nextafter(1.0, 2.0))
    assert set(filled("uniform", 64, "float64", low, high).tolist()) == {low}
    assert set(filled("uniform", 8, "float32", 3.0, 3.0).tolist()) == {3.0}


def turned(radius: float, angle: float, quadrant: int) -> list[float]:
    c, s = radius * np.cos(angle), radius * np.sin(angle)
    return [[c, s], [-s, c], [-c, -s], [s, -c]][quadrant]


@pytest.mark.parametrize("size", [1, 2, 3, 4, 5, 10])
def test_normal_by_the_rule(size: int) -> None:
    drawn = words(5)
    small: list[float] = []
    for first, second in zip(drawn[::2], drawn[1::2], strict=True):
        radius = np.sqrt(-2 * np.log((first + 1) * 2.0**-32))
        angle = (second % 2**30) * (np.pi / 2 * 2.0**-30)
        small += turned(radius, angle, second >> 30)
    found = filled("normal", size, "float32", 0.0, 1.0)
    np.testing.assert_array_max_ulp(found, np.array(small[:size], np.float32), 1)
    large: list[float] = []
    for w0, w1, w2, w3 in np.reshape(drawn, (-1, 4)).tolist():
        radius = np.sqrt(-2 * np.log((((w0 << 32 | w1) >> 11) + 1) * 2.0**-53))
        k = (w2 << 32 | w3) >> 11
        large += turned(radius, (k % 2**51) * (np.pi / 2 * 2.0**-51), k >> 51)
    found = filled("normal", size, "float64", 0.0, 1.0)
    np.testing.assert_array_max_ulp(found, np.array(large[:size]), 4)
    found = filled("normal", size, "float64", 5.0, 0.25)
    np.testing.assert_allclose(found, 5 + 0.25 * np.array(large[:size]), rtol=1e-15)


@compiled
@pytest.mark.parametrize("form", ["float32", "float64"])
def test_normal_has_the_moments_of_its_law(form: str) -> None:
    x = filled("normal", 400_000, form, 0.0, 1.0).astype(np.float64)
    assert np.isfinite(x).all()
    moments = [(x**k).mean() for k in (1, 2, 3, 4)]
    np.testing.assert_allclose(moments, [0, 1, 0, 3], atol=0.04)
    assert abs((x[::2] * x[1::2]).mean()) < 0.01


@pytest.mark.parametrize(
    "form", ["uint8", "int8", "int16", "int32", "int64", "float32", "float64"]
)
def test_randint_by_the_rule(form: str) -> None:
    low, high = (0, 100) if form == "uint8" else (-50, 50)
    wanted = [low + ((w * 100) >> 32) for w in words(3)[:11]]
    assert filled("randint", 11, form, low, high).tolist() == wanted


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 2**16 + 1), (-(2**40), 2**41), (-(2**63), 2**63 - 1), (5, 5 + 2**32)],
)
def test_randint_of_wide_ranges_by_the_rule(low: int, high: int) -> None:
    drawn = words(3)
    pairs = [a << 32 | b for a, b in zip(drawn[::2], drawn[1::2], strict=True)]
    wanted = [low + ((w * (high - low)) >> 64) for w in pairs[:5]]
    assert filled("randint", 5, "int64", low, high).tolist() == wanted


@pytest.mark.parametrize("p", [0.0, 0.25, 0.3, 1.0])
def test_bernoulli_by_the_rule(p: float) -> None:
    wanted = [w < round(p * 2**32) for w in words(3)[:10]]
    assert filled("bernoulli", 10, "bool", p).tolist() == wanted


def test_a_draw_goes_on_where_the_last_one_ended() -> None:
    generator = Generator(seed=SEED)
    first, second = np.empty(5, np.float32), np.empty(3, np.float64)
    third, nothing = np.empty(4, bool), np.empty(0, np.int64)
    uniform(from_numpy(first), generator, 0.0, 1.0)
    normal(from_numpy(second), generator, 0.0, 1.0)
    randint(from_numpy(nothing), generator, 0, 9)
    bernoulli(from_numpy(third), generator, 0.5)
    assert generator.get_state() == (SEED, 2 + 2 + 1)
    assert third.tolist() == [w < 2**31 for w in words(1, offset=4)]


def test_counters_wrap_around() -> None:
    generator = Generator(seed=SEED)
    generator.set_state((SEED, 2**64 - 1))
    out = np.empty(8, np.float32)
    uniform(from_numpy(out), generator, 0.0, 1.0)
    drawn = words(1, offset=2**64 - 1) + words(1, offset=0)
    assert out.tolist() == [(w >> 8) * 2.0**-24 for w in drawn]


@compiled
@pytest.mark.parametrize("form", ["float32", "float64"])
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_threads_change_nothing(name: str, form: str) -> None:
    before = get_num_threads()
    results = []
    try:
        for threads in (1, 3):
            set_num_threads(threads)
            results.append(filled(name, 12 * GRAIN + 3, form, 0.0, 1.0).tobytes())
    finally:
        set_num_threads(before)
    assert results[0] == results[1]


@compiled
def test_bits_are_even() -> None:
    x = filled("randint", 1 << 16, "int64", -(2**63), 2**63 - 1)
    for bit in range(64):
        share = ((x >> bit) & 1).mean()
        assert abs(share - 0.5) < 0.02, f"bit {bit}"
    counts = np.bincount(filled("randint", 1 << 16, "int64", 0, 256)) / (1 << 16)
    entropy = -sum(share * log2(share) for share in counts.tolist())
    assert entropy > 7.99
