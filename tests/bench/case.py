"""One kernel to be measured: its name, its sizes, what is aimed at, and its trial."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.bench.compare import Operand, Trial

# Elements, by the name they have in tables.
SIZES = {"1e3": 1_000, "1e5": 100_000, "1e7": 10_000_000}

Build = Callable[[int, str], Trial]


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and how its trial is built from a size and a dtype.

    `always`: faster than torch at every size, not only at the smallest.
    """

    name: str
    build: Build
    always: bool = False
    sizes: tuple[tuple[str, int], ...] = tuple(SIZES.items())
    # How far the results of different sides may lie apart, in float32.
    relative: float = 1e-4


def values(*shape: int, dtype: str, positive: bool = False) -> Operand:
    """Normal numbers, or numbers from 0.1 to 10; always the same."""
    source = np.random.default_rng(len(shape) + sum(shape))
    drawn = source.uniform(0.1, 10, shape) if positive else source.normal(size=shape)
    return Operand(drawn.astype(dtype))


def places(*shape: int, below: int) -> Operand:
    """Indices from 0 on."""
    return Operand(np.random.default_rng(below).integers(0, below, shape))


def blank(*shape: int, dtype: str) -> Operand:
    """What is written into."""
    return Operand(np.zeros(shape, dtype))


def rows_of(count: int) -> tuple[int, int]:
    """A matrix of that many elements: lines of 100 or 1,000."""
    line = 100 if count <= 1_000 else 1_000
    return count // line, line


def with_torch(build: Callable[[Any], Callable[[], object]]) -> Any:
    """`build(torch)`, or None where torch is not installed."""
    from tests.bench.compare import torch

    return None if torch is None else build(torch)
