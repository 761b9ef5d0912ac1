"""Gathering elements and slices by number, as NumPy has it."""

import numpy as np
import pytest

from runtime.errors.operands import DTypeRefused, IndexOutOfRange, ShapesDoNotFit
from runtime.operators.call import core
from runtime.schema.codes import DType
from runtime.tensors import tensor
from tests.operators.grid import MATRIX, grid, on_meta
from tests.operators.made import shown
from tests.operators.told import Refused, refused


def test_gather_and_scatter_along_every_dimension() -> None:
    array = grid(3, 4, 5)
    rng = np.random.default_rng(0)
    for dim in range(3):
        size = array.shape[dim]
        # Without repetition, so that scattering has one answer.
        index = np.argsort(rng.random(array.shape), axis=dim)
        found = core.gather(tensor(array), dim, tensor(index))
        assert found.tolist() == np.take_along_axis(array, index, dim).tolist()
        put = array.copy()
        np.put_along_axis(put, index, -array, dim)
        assert (
            core.scatter(tensor(array), dim, tensor(index), tensor(-array)).tolist()
            == put.tolist()
        )
        smaller = index[:2, :2, :2] % size
        part = core.gather(tensor(array), dim - 3, tensor(smaller))
        whole = tuple(slice(None) if d == dim else slice(0, 2) for d in range(3))
        assert part.tolist() == (
            np.take_along_axis(array[whole], smaller, dim).tolist()
        )


@pytest.mark.parametrize("name", ["gather", "index_select"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bool", "complex128"])
def test_the_short_way_is_that_of_the_out_form(name: str, dtype: str) -> None:
    """The form with `out` has a plan for every call."""
    base = core.to(tensor(grid(3, 4, 5)), dtype=DType.named(dtype))
    functional, written = getattr(core, name), getattr(core, f"{name}_out")
    index = tensor([[[1, 0], [2, 1]], [[0, 0], [1, 2]]])
    for self in (base, core.transpose(base, 0, 2), core.select(base, 0, 1)):
        part = index if len(self.shape) == 3 else core.select(index, 2, 0)
        if name == "index_select":
            part = core.select(core.reshape(part, [2, -1]), 1, 0)
        else:
            part = core.transpose(part, 0, 1)
        for dim in range(-len(self.shape), len(self.shape)):
            for _ in range(2):
                found = functional(self, dim, part)
                target = core.empty([0], dtype=self.dtype)
                assert shown(found) == shown(written(self, dim, part, out=target))


def test_gather_of_one_element() -> None:
    assert core.gather(tensor(7), 0, tensor(0)).tolist() == 7
    assert core.gather(tensor([5, 6]), 0, tensor(1)).tolist() == 6
    assert core.gather(tensor(7), 0, tensor([0, 0])).tolist() == [7, 7]
    none = tensor(np.zeros((2, 0), np.int64))
    assert core.gather(tensor(grid(2, 3)), 1, none).shape == (2, 0)


def test_picking_nothing_gives_nothing() -> None:
    base, none = tensor(grid(2, 3)), tensor(np.zeros(0, np.int64))
    assert core.index_select(base, 1, none).shape == (2, 0)
    assert core.flip(core.index_select(base, 0, none), [0, 1]).shape == (0, 3)
    empty = tensor(np.zeros((2, 0), np.int64))
    assert core.index_add(base, 1, none, empty).tolist() == base.tolist()


def test_index_select_picks_slices() -> None:
    array = grid(2, 3, 4)
    found = core.index_select(tensor(array), 1, tensor([2, 0, 2]))
    assert found.tolist() == array[:, [2, 0, 2]].tolist()
    assert core.index_select(tensor(array), -1, tensor(3)).tolist() == (
        array[..., [3]].tolist()
    )
    assert core.index_select(tensor(7), 0, tensor([0])).tolist() == 7
    narrow = core.index_select(tensor(array), 0, tensor([1], dtype="int32"))
    assert narrow.tolist() == array[[1]].tolist()
    there = core.index_select(*on_meta(tensor(array), 1, tensor([2, 0])))
    assert there.shape == (2, 2, 4)


WRONG: dict[str, Refused] = {
    "gather dtype": (
        lambda: core.gather(MATRIX, 0, tensor([[1.0]])),
        DTypeRefused,
        "`core::gather` does not take `index` of dtype float32.\n  fits: int32, int64",
    ),
    "gather dimensions": (
        lambda: core.gather(MATRIX, 0, tensor([1])),
        ShapesDoNotFit,
        "`core::gather` cannot work on these shapes: index has not as many dimensions "
        "as\n"
        "self.\n"
        "  given: index (1,), self (2, 3)\n"
        "  fits:  2 dimensions for index",
    ),
    "gather size": (
        lambda: core.gather(MATRIX, 1, tensor(np.zeros((3, 1), np.int64))),
        ShapesDoNotFit,
        "`core::gather` cannot work on these shapes: index is longer than self in\n"
        "dimension 0.\n"
        "  given: index (3, 1), self (2, 3)\n"
        "  fits:  at most 2 there; dimension 1 is free",
    ),
    "gather value": (
        lambda: core.gather(MATRIX, 1, tensor([[3]])),
        IndexOutOfRange,
        "`core::gather` was given index 3 for dimension 1, which has size 3.\n"
        "  fits:  0 to 2\n"
        "  state: nothing was written",
    ),
    "index_select": (
        lambda: core.index_select(MATRIX, 1, tensor([[0]])),
        ShapesDoNotFit,
        "`core::index_select` cannot work on these shapes: index has 2 dimensions.\n"
        "  given: index (1, 1)\n"
        "  fits:  0 or 1 dimensions",
    ),
    "index_select one": (
        lambda: core.index_select(tensor(1), 0, tensor([0, 0])),
        ShapesDoNotFit,
        "`core::index_select` cannot work on these shapes: self has one element and "
        "no\n"
        "dimension.\n"
        "  given: self (), index (2,)\n"
        "  fits:  an index of one number",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    refused(*WRONG[case])


@pytest.mark.parametrize("number", [-1, 4, 2**62])
def test_numbers_are_looked_at_where_there_is_nothing_to_pick(number: int) -> None:
    nothing = tensor(np.zeros((0, 4), np.float32))
    with pytest.raises(IndexOutOfRange) as caught:
        core.index_select(nothing, 1, tensor([0, number]))
    error = caught.value
    assert (error.operator, error.index, error.size, error.dim) == (
        *("core::index_select", number, 4, 1),
    )
    assert core.index_select(nothing, 1, tensor([3, 0, 3])).shape == (0, 3)
    with pytest.raises(IndexOutOfRange) as caught:
        core.embedding(core.t(nothing), tensor([number]))
    assert (caught.value.operator, caught.value.index) == ("core::embedding", number)
    assert core.embedding(core.t(nothing), tensor([[3]])).shape == (1, 1, 0)
