"""Plans of reductions: which axes become which passes."""

import numpy as np

from runtime.kernels.cpu.reduce_bodies import Pass, moved_last, passes


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
