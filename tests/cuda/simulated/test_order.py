"""Sorting on the device against the CPU's."""

import numpy as np
import pytest

from tests.cuda.simulated.agreement import agree, empty, same
from tests.cuda.simulated.arrays import STORED, Array, form, samples

SORTED = [name for name in STORED if not name.startswith("complex")]


def sort(given: Array, dim: int, descending: bool) -> None:
    """A stable sort gives the same on both backends, bit by bit."""
    outs = [empty(given.shape, given.dtype), empty(given.shape, np.int64)]
    agree("sort", outs, given, dim, descending, True, compare=same)


@pytest.mark.parametrize("dtype", SORTED)
@pytest.mark.parametrize("descending", [False, True])
def test_every_dtype(dtype: str, descending: bool) -> None:
    sort(samples(dtype), 0, descending)
    for dim in range(3):
        sort(samples(dtype).reshape(2, 3, 4), dim, descending)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("descending", [False, True])
def test_what_is_not_a_number_and_both_zeros(dtype: str, descending: bool) -> None:
    given = np.array([0.0, np.nan, -0.0, np.inf, -np.nan, -np.inf, -0.0, 0.0, 1, -1])
    sort(given.astype(form(dtype)), 0, descending)


@pytest.mark.parametrize("count", [0, 1, 2, 3, 5, 16, 33])
def test_every_length_is_merged(count: int) -> None:
    given = np.random.default_rng(9).integers(0, 5, (2, count))
    sort(given, 1, False)
    sort(given, 1, True)


def test_far_integers() -> None:
    facts = np.iinfo(np.int64)
    sort(np.array([0, facts.max, facts.min, -1, facts.max, facts.min]), 0, True)


def test_a_number() -> None:
    sort(np.array(3.5), 0, False)


@pytest.mark.parametrize("dtype", SORTED)
@pytest.mark.parametrize("largest", [False, True])
def test_topk(dtype: str, largest: bool) -> None:
    given = samples(dtype)
    # Which of equal ones are taken is up to a backend: they are made to differ.
    given = np.unique(given.astype(np.float64))[:6] if dtype != "bool" else given[:1]
    given = given[::-1].astype(form(dtype))
    for count in range(len(given) + 1):
        outs = [empty((count,), given.dtype), empty((count,), np.int64)]
        agree("topk", outs, given, count, 0, largest, True, compare=same)


def test_topk_of_columns_and_equal_ones() -> None:
    given = np.array([[3, 1], [3, 2], [1, 2], [3, 2]], np.int32)
    outs = [empty((2, 2), np.int32), empty((2, 2), np.int64)]
    agree("topk", outs, given, 2, 0, True, True, compare=same)
