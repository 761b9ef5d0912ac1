"""The passes and the loops of reductions, called as plain functions."""

from typing import Any

import numpy as np
import pytest

from runtime.kernels.cpu.reduce_bodies import (
    BLOCK,
    TILE,
    Pass,
    add,
    both,
    columns,
    divide,
    either,
    extreme_rows,
    greater,
    integer,
    keep,
    less,
    moved_last,
    multiply,
    passes,
    product_rows,
    rows,
    same,
    signed32,
    signed64,
    sum_rows,
    truth,
    unsigned32,
    unsigned64,
)

A = np.arange(1.0, 25)


@pytest.mark.parametrize(
    ("body", "start", "wanted"),
    [
        (sum_rows, 0.0, [5 + 6 + 7, 8, 13 + 14 + 15, 16]),
        (product_rows, 1.0, [5 * 6 * 7, 8, 13 * 14 * 15, 16]),
        (rows(add), 0.0, [5 + 6 + 7, 8, 13 + 14 + 15, 16]),
        (extreme_rows(True, signed64, unsigned64), -np.inf, [7, 8, 15, 16]),
        (extreme_rows(False, signed64, unsigned64), np.inf, [5, 8, 13, 16]),
    ],
)
def test_leaves_of_rows(body: Any, start: float, wanted: list[float]) -> None:
    """Rows of 4, 8 apart, in leaves of 3, from the third leaf on."""
    out = np.empty(4)
    body(A[4:], out, 0, 2, 4, 8, 3, np.float64(start), 1.0)
    assert out.tolist() == wanted
    body(A[4:], out[:2], 2, 2, 4, 8, 3, np.float64(start), 1.0)
    assert out[:2].tolist() == wanted[2:]


def test_sums_of_rows_are_divided() -> None:
    out = np.empty(2)
    sum_rows(A, out, 0, 1, 12, 12, 1024, np.float64(0), 12.0)
    assert out.tolist() == [6.5, 18.5]


@pytest.mark.parametrize("length", [1, 2, 4, 5, 6, 9, BLOCK, BLOCK + 1, 3 * BLOCK])
def test_columns_go_block_by_block(length: int) -> None:
    a = np.arange(2.0 * length * 3).reshape(2, length, 3)
    blocks = -(-length // BLOCK)
    out = np.empty((2, blocks, 3))
    body = columns(same, add, divide)
    body(a.reshape(-1), out.reshape(-1), 0, 2 * blocks, length, 3, 3 * length, 3, 2.0)
    for block in range(blocks):
        part = a[:, block * BLOCK : (block + 1) * BLOCK]
        assert out[:, block].tolist() == (part.sum(1) / 2).tolist()


def test_columns_go_tile_by_tile() -> None:
    inner = TILE + 3
    a = np.arange(2.0 * inner)
    out = np.zeros(inner)
    columns(same, add, keep)(a, out, 1, 2, 2, inner, 0, inner, 1.0)
    assert out[:TILE].tolist() == [0] * TILE
    assert out[TILE:].tolist() == (a[TILE:inner] + a[inner + TILE :]).tolist()


def test_steps() -> None:
    nan = np.float64(np.nan)
    assert (add(2, 3), multiply(2, 3)) == (5, 6)
    assert (greater(2, 3), greater(3, 2), less(2, 3), less(3, 2)) == (3, 3, 2, 2)
    pairs = [(nan, 1.0), (1.0, nan)]
    assert all(np.isnan([greater(*p), less(*p)]).all() for p in pairs)
    assert (either(False, 0), either(False, 2), both(True, 2)) == (False, True, True)
    assert (both(True, 0), truth(nan), truth(0.0)) == (False, True, False)
    assert (divide(6, 3), keep(6, 3), same(6)) == (2, 6, 6)
    assert type(integer(np.int8(3))) is np.int64
    assert unsigned32(np.int32(-1)) == 2**32 - 1
    assert signed32(np.uint32(2**32 - 1)) == -1
    assert unsigned64(np.int64(-1)) == 2**64 - 1
    assert signed64(np.uint64(2**64 - 1)) == -1


def test_a_whole_tensor_is_one_row() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (0, 1, 2)) == (Pass(1, 0, 24, 1, 1),)


def test_a_whole_turned_tensor_is_one_row() -> None:
    assert passes((4, 3, 2), (1, 4, 12), (0, 1, 2)) == (Pass(1, 0, 24, 1, 1),)


def test_the_last_axis_is_rows() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (2,)) == (Pass(6, 4, 4, 1, 1),)


def test_rows_may_have_gaps_between_them() -> None:
    assert passes((5, 4), (9, 1), (1,)) == (Pass(5, 9, 4, 1, 1),)


def test_the_first_axis_is_columns() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (0,)) == (Pass(1, 0, 2, 12, 12),)


def test_a_middle_axis_is_columns_of_each() -> None:
    assert passes((2, 3, 4), (12, 4, 1), (1,)) == (Pass(2, 12, 3, 4, 4),)


def test_rows_of_a_turned_matrix_are_columns() -> None:
    assert passes((3, 4), (1, 3), (1,)) == (Pass(1, 0, 4, 3, 3),)


def test_channels_take_two_passes() -> None:
    assert passes((8, 3, 4, 5), (60, 20, 5, 1), (0, 2, 3)) == (
        Pass(24, 20, 20, 1, 1),
        Pass(1, 0, 8, 3, 3),
    )


def test_axes_of_one_element_vanish() -> None:
    assert passes((1, 3, 1), (7, 1, 9), (0, 2)) == (Pass(1, 0, 1, 3, 3),)
    assert passes((), (), ()) == (Pass(1, 0, 1, 1, 1),)


def test_steps_and_repetitions_need_a_copy() -> None:
    assert passes((3, 4), (8, 2), (1,)) is None
    assert passes((3, 4), (1, 0), (1,)) is None
    assert passes((3, 4), (8, 2), ()) is None


def test_kept_axes_in_another_order_need_a_copy() -> None:
    assert passes((2, 3, 4), (1, 2, 6), (2,)) is None


def test_a_copy_has_kept_axes_first() -> None:
    a = np.arange(24)
    moved = moved_last(a, (2, 3, 4), (12, 4, 1), (1,))
    assert moved.tolist() == a.reshape(2, 3, 4).swapaxes(1, 2).reshape(-1).tolist()
