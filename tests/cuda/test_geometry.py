"""How work with strides is divided into launches."""

import itertools

import numpy as np
import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.kernels.cuda import elementwise
from everyorder.runtime.kernels.cuda.elementwise import RANK, Piece, pieces
from everyorder.runtime.kernels.shared.operands import coalesced
from everyorder.runtime.tensors.shape import contiguous_strides


def test_what_lies_in_order_is_one_extent() -> None:
    strides = contiguous_strides((2, 3, 4))
    assert list(pieces((2, 3, 4), (0, 5), (strides, strides))) == [
        Piece(24, (1, 1, 1, 24), (0, 5), ((0, 0, 0, 1), (0, 0, 0, 1)))
    ]


def test_a_row_that_is_repeated_keeps_two() -> None:
    assert coalesced((2, 3, 4), (12, 4, 1), (0, 0, 1)) == ((6, 4), ((4, 1), (0, 1)))


def test_extents_of_one_element_vanish() -> None:
    assert coalesced((1, 5, 1), (77, 2, 99)) == ((5,), ((2,),))
    assert coalesced((), (), ()) == ((1,), ((0,), (0,)))
    assert list(pieces((), (3,), ((),))) == [
        Piece(1, (1, 1, 1, 1), (3,), ((0, 0, 0, 0),))
    ]


def test_nothing_is_no_launch() -> None:
    assert list(pieces((2, 0), (0,), ((0, 1),))) == []


def test_more_extents_than_a_kernel_takes_are_more_launches() -> None:
    shape = (2,) * (RANK + 1)
    strides = tuple(10**at for at in range(RANK + 1))
    found = list(pieces(shape, (0,), (strides,)))
    assert [(piece.size, piece.offsets) for piece in found] == [
        (16, (0,)),
        (16, (1,)),
    ]


def test_pieces_stay_below_32_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(elementwise, "LIMIT", 12)
    found = list(pieces((5, 4), (0,), ((1, 10),)))
    assert [(piece.size, piece.extents[2:], piece.offsets) for piece in found] == [
        (8, (2, 4), (0,)),
        (4, (1, 4), (2,)),
        (8, (2, 4), (3,)),
    ]


def read(piece: Piece, operand: int) -> list[int]:
    """The places that a launch reads, in its order."""
    found = []
    for index in range(piece.size):
        rest, place = index, piece.offsets[operand]
        for extent, step in zip(
            reversed(piece.extents), reversed(piece.strides[operand]), strict=True
        ):
            rest, at = divmod(rest, extent)
            place += at * step
        found.append(place)
    return found


@given(st.data())
def test_every_element_is_met_once_and_in_step(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 3), max_size=6)))
    strides = tuple(
        tuple(data.draw(st.integers(0, 9)) for _ in shape) for _ in range(2)
    )
    expected = [
        tuple(
            7 * own + sum(i * s for i, s in zip(index, steps, strict=True))
            for own, steps in enumerate(strides)
        )
        for index in itertools.product(*map(range, shape))
    ]
    found: list[tuple[int, ...]] = []
    for piece in pieces(shape, (0, 7), strides):
        found += zip(read(piece, 0), read(piece, 1), strict=True)
    assert sorted(found) == sorted(expected)
    assert len(found) == np.prod(shape, dtype=int)
