"""Products of matrices on the device against the CPU's."""

import gc

import numpy as np
import pytest

from everyorder.runtime.kernels.cuda import KERNELS as CUDA
from everyorder.runtime.kernels.cuda import memory_allocated
from everyorder.runtime.tensors.construction import view_of
from tests.cuda.simulated.agreement import agree, empty, numbers
from tests.cuda.simulated.arrays import COMPUTED, close, fresh, get, put

# Less than a tile, several, parts of the inner size, and nothing of each.
SIZES = [(1, 1, 1), (3, 5, 2), (9, 7, 6), (2, 150, 3), (0, 3, 2), (3, 0, 2), (3, 2, 0)]


@pytest.mark.parametrize("dtype", [name for name in COMPUTED if name != "bool"])
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_mm(dtype: str, rows: int, inner: int, columns: int) -> None:
    a, b = numbers((rows, inner), dtype), numbers((inner, columns), dtype, 2)
    agree("mm", [empty((rows, columns), dtype)], a, b)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("size", [(3, 2, 5, 4), (1, 6, 70, 6), (0, 2, 2, 2)])
def test_bmm(dtype: str, size: tuple[int, ...]) -> None:
    count, rows, inner, columns = size
    a, b = numbers((count, rows, inner), dtype), numbers((count, inner, columns), dtype)
    agree("bmm", [empty((count, rows, columns), dtype)], a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64", "int16", "complex64"])
@pytest.mark.parametrize("count", [0, 1, 3, 75])
def test_dot(dtype: str, count: int) -> None:
    a, b = numbers((count,), dtype), numbers((count,), dtype, 2)
    agree("dot", [empty((), dtype)], a, b)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(("rows", "inner", "columns"), SIZES)
def test_linear(dtype: str, biased: bool, rows: int, inner: int, columns: int) -> None:
    x, weight = numbers((rows, inner), dtype), numbers((columns, inner), dtype, 2)
    bias = numbers((columns,), dtype, 3) if biased else None
    agree("linear", [empty((rows, columns), dtype)], x, weight, bias)


def test_the_parts_of_a_sum_are_a_matter_of_the_shape() -> None:
    from everyorder.runtime.kernels.cuda.matmul import (
        ENOUGH,
        PART,
        TILE,
        Sizes,
        splits_of,
    )

    assert splits_of(Sizes(1, TILE, TILE, PART)) == 1
    assert splits_of(Sizes(1, TILE, TILE, PART + 1)) == 2
    assert splits_of(Sizes(1, TILE, TILE, 1000 * PART)) == ENOUGH
    assert splits_of(Sizes(ENOUGH, TILE, TILE, 1000 * PART)) == 1


def test_not_a_number_stays_in_its_row() -> None:
    a, b = numbers((6, 6), np.float32), numbers((6, 6), np.float32, 2)
    a[1, 2], a[3, 3] = np.nan, np.inf
    agree("mm", [empty((6, 6), np.float32)], a, b)


@pytest.mark.parametrize("turned", [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_transposed_operands_are_read_as_they_lie(turned: tuple[int, int]) -> None:
    a, b = numbers((9, 7), np.float32), numbers((7, 6), np.float32, 2)
    given = [
        put(x.T.copy()) if turns else put(x)
        for x, turns in zip((a, b), turned, strict=True)
    ]
    seen = [
        view_of(x, x.shape[::-1], x.strides[::-1], 0) if turns else x
        for x, turns in zip(given, turned, strict=True)
    ]
    out = fresh((9, 6), "float32")
    # What other tests left in circles must not go meanwhile.
    gc.collect()
    before = memory_allocated()
    CUDA["mm"](out, *seen)
    close(get(out), a @ b)
    assert memory_allocated() == before
