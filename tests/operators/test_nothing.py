"""Nothing: tensors without elements or dimensions, and what is refused of them."""

from collections.abc import Callable
from typing import Any

import pytest

import runtime
from runtime.errors.operands import IndexOutOfRange
from runtime.errors.tensor import BadSize
from runtime.operators import core
from tests.coded import code
from tests.operators.made import shown, tensor

EMPTY = runtime.zeros(3, 0)
NINE = tensor([9], "int64")
READS_AND_WRITES: dict[str, Callable[[Any], Any]] = {
    "index": lambda at: EMPTY[at],
    "index of two": lambda at: runtime.zeros(3, 2, 0)[at, at],
    "index_select": lambda at: EMPTY.index_select(0, at),
    "index_put": lambda at: EMPTY.index_put((at,), runtime.zeros(1, 0)),
    "index_put_": lambda at: EMPTY.index_put_((at,), tensor(1.0)),
    "index_add": lambda at: EMPTY.index_add(0, at, runtime.zeros(1, 0)),
    "index_add_": lambda at: EMPTY.index_add_(0, at, runtime.zeros(1, 0)),
    "embedding": lambda at: core.embedding(EMPTY, at),
}


@pytest.mark.parametrize("name", READS_AND_WRITES)
def test_a_place_that_is_not_there_is_refused_where_nothing_is_read(name: str) -> None:
    with pytest.raises(IndexOutOfRange) as caught:
        READS_AND_WRITES[name](NINE)
    assert (caught.value.index, caught.value.dim) == (9, 0)
    assert caught.value.size == 3
    assert name.split()[0].rstrip("_") in caught.value.operator
    assert READS_AND_WRITES[name](tensor([1], "int64")).numel() == 0


@pytest.mark.parametrize("name", ["index", "index_put"])
def test_the_least_place_from_the_end(name: str) -> None:
    do = READS_AND_WRITES[name]
    assert do(tensor([-3], "int64")).numel() == 0
    with pytest.raises(IndexOutOfRange, check=code("IndexOutOfRange")):
        do(tensor([-4], "int64"))


def test_no_places_of_nothing_are_fine() -> None:
    none = core.empty([0], dtype=NINE.dtype)
    assert runtime.zeros(0, 3)[none].shape == (0, 3)
    assert runtime.zeros(0, 3).index_select(0, none).shape == (0, 3)
    wide = tensor([[9]], "int64")
    # Nothing is picked, as the indices have no place in common: as in NumPy.
    found = runtime.zeros(3, 4, 2)[wide, core.empty([0, 1], dtype=NINE.dtype)]
    assert found.shape == (0, 1, 2)


TOO_LARGE = (0, 2**62, 2**62)


@pytest.mark.parametrize(
    "make",
    [
        lambda: runtime.empty(TOO_LARGE),
        lambda: runtime.zeros(*TOO_LARGE),
        lambda: runtime.full(TOO_LARGE, 1.0),
        lambda: runtime.empty(TOO_LARGE, device="meta"),
        lambda: runtime.zeros(0).reshape(TOO_LARGE),
        lambda: runtime.zeros(0, 1, 1).expand(TOO_LARGE).clone(),
    ],
)
def test_strides_that_no_integer_holds_are_refused(make: Any) -> None:
    with pytest.raises(BadSize, check=code("BadStrides")) as caught:
        make()
    assert caught.value.shape == TOO_LARGE
    assert "do not fit 64 bits" in str(caught.value)


def test_large_sizes_whose_strides_fit() -> None:
    assert runtime.empty(2**62, 0, 2**62).strides == (2**62, 2**62, 1)
    assert runtime.zeros(0, 1, 1).expand(TOO_LARGE).strides == (1, 0, 0)


@pytest.mark.parametrize(("value", "places"), [(2.0, [0]), (0.0, [])])
def test_where_one_number_is_true(value: float, places: list[int]) -> None:
    for found in (runtime.where(tensor(value)), runtime.where(tensor(value) > 1)):
        assert [shown(each) for each in found] == [("int64", places)]


@pytest.mark.parametrize("count", [1, 3])
def test_pieces_of_nothing(count: int) -> None:
    pieces = runtime.zeros(2, 0).chunk(count, 1)
    assert [piece.shape for piece in pieces] == [(2, 0)] * count
