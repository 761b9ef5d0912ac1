"""What is written may lie in the memory of what is read, under another storage."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.operators import core
from runtime.operators.produce import meet
from runtime.tensors.arrays import array_of
from runtime.tensors.making import from_numpy, view_of
from runtime.tensors.tensor import Tensor
from tests.operators.made import tensor

# More than one thread's share, and far enough that a wild write would be noticed.
COUNT, FAR = 1000, 2**44


def ones() -> tuple[Tensor, Tensor]:
    """A tensor, and one on the array that it hands out."""
    x = tensor([1] * COUNT, "int64")
    return x, from_numpy(array_of(x))


def far() -> Tensor:
    return tensor([FAR] * COUNT, "int64")


SUM = [1, 1 + COUNT * FAR, *[1] * (COUNT - 2)]
WRITES: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[int]]] = {
    "scatter_": (
        lambda x, index: core.scatter_(x, 0, index, far()),
        [1, FAR, *[1] * (COUNT - 2)],
    ),
    "scatter_.value": (
        lambda x, index: core.scatter__value(x, 0, index, FAR),
        [1, FAR, *[1] * (COUNT - 2)],
    ),
    "scatter_add_": (lambda x, index: core.scatter_add_(x, 0, index, far()), SUM),
    "index_add_": (lambda x, index: core.index_add_(x, 0, index, far()), SUM),
    "index_put_": (
        lambda x, index: core.index_put_(x, [index], far(), True),
        SUM,
    ),
    "gather.out": (
        lambda x, index: core.gather_out(far(), 0, index, out=x),
        [FAR] * COUNT,
    ),
}


@pytest.mark.parametrize("name", WRITES)
def test_an_index_in_the_memory_of_the_target(name: str) -> None:
    write, expected = WRITES[name]
    x, index = ones()
    write(x, index)
    assert x.tolist() == expected


def test_the_other_way_round() -> None:
    index, x = ones()
    core.scatter__value(x, 0, index, FAR)
    assert x.tolist() == [1, FAR, *[1] * (COUNT - 2)]


SHIFTED: dict[str, tuple[Callable[[Tensor, Tensor], Any], list[float]]] = {
    "in place": (core.add_, [0, 1, 3, 5, 7, 9]),
    "in place, scaled": (
        lambda x, y: core.add_(x, y, alpha=2),
        [0, 1, 4, 7, 10, 13],
    ),
    "out": (
        lambda x, y: core.add_out(y, tensor([2.0] * 5, "float64"), out=x),
        [0, 2, 3, 4, 5, 6],
    ),
    "out, other": (
        lambda x, y: core.add_out(tensor([2.0] * 5, "float64"), y, out=x),
        [0, 2, 3, 4, 5, 6],
    ),
    "copied": (core.copy_, [0, 0, 1, 2, 3, 4]),
}


@pytest.mark.parametrize("name", SHIFTED)
def test_a_shifted_array_is_read_as_it_was(name: str) -> None:
    write, expected = SHIFTED[name]
    # The first call of a dtype goes the general way, those after it the short one.
    for _ in range(3):
        array = np.arange(6.0)
        write(from_numpy(array[1:]), from_numpy(array[:-1]))
        assert array.tolist() == expected


@pytest.mark.parametrize("size", [3, 200])
def test_a_turned_array_is_copied_as_it_was(size: int) -> None:
    array = np.arange(size * size, dtype=np.float64).reshape(size, size)
    expected = array.T.copy()
    core.copy_(from_numpy(array), from_numpy(array.T))
    assert np.array_equal(array, expected)


def test_offsets_of_two_widths_are_compared_in_bytes() -> None:
    """The second half of complex numbers lies in the second half of their parts."""
    whole = tensor([1 + 2j, 3 + 4j], "complex64")
    last = view_of(whole, (1,), (1,), 1)
    parts = view_of(whole, (2,), (1,), 2, tensor([1.0]).dtype)
    first = view_of(whole, (2,), (1,), 0, tensor([1.0]).dtype)
    assert meet(last, parts)
    assert not meet(last, first)


def test_what_owns_its_memory_meets_nothing_else() -> None:
    x, y = tensor([1.0, 2.0]), tensor([3.0, 4.0])
    assert not meet(x, y)
    assert meet(x, x)
    assert not meet(view_of(x, (1,), (1,), 0), view_of(x, (1,), (1,), 1))
