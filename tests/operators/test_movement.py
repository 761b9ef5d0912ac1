"""Movement: joining, gathering, scattering, flipping and ordering, as NumPy has "
"them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from runtime.errors.operands import DimensionOutOfRange, DTypeRefused, WrongOption
from runtime.errors.operator import IndexOutOfRange, ShapesDoNotFit
from runtime.operators.call import core
from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor
from tests.operators.told import told, words

Array = np.ndarray[Any, Any]
NAN = float("nan")


def grid(*shape: int) -> Array:
    return np.arange(int(np.prod(shape))).reshape(shape)


def on_meta(*tensors: Any) -> tuple[Any, ...]:
    return tuple(
        tensor(each, device="meta") if isinstance(each, Tensor) else each
        for each in tensors
    )


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_cat_joins_along_a_dimension(dim: int) -> None:
    first, second = grid(2, 3, 4), -grid(2, 3, 4)
    found = core.cat([tensor(first), tensor(second)], dim)
    assert found.tolist() == np.concatenate([first, second], dim).tolist()
    there = core.cat(on_meta(tensor(first), tensor(second)), dim)
    assert there.shape == found.shape


def test_cat_promotes_and_skips_what_is_empty() -> None:
    mixed = core.cat([tensor([1, 2]), tensor([0.5]), tensor([True])])
    assert (mixed.dtype.name, mixed.tolist()) == ("float32", [1, 2, 0.5, 1])
    kept = core.cat([tensor([]), tensor(grid(2, 2))])
    assert (kept.dtype.name, kept.tolist()) == ("float32", [[0, 1], [2, 3]])
    assert core.cat([tensor([]), tensor([])]).shape == (0,)
    strided = core.transpose(tensor(grid(2, 3)), 0, 1)
    assert core.cat([strided, strided], 1).tolist() == (
        np.concatenate([grid(2, 3).T] * 2, 1).tolist()
    )


def test_cat_to_a_target() -> None:
    out = tensor([0.0, 0.0, 0.0])
    assert core.cat_out([tensor([1, 2]), tensor([3])], out=out) is out
    assert out.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_stack_joins_along_a_new_dimension(dim: int) -> None:
    first, second = grid(2, 3), -grid(2, 3)
    expected = np.stack([first, second], dim)
    assert (
        core.stack([tensor(first), tensor(second)], dim).tolist() == expected.tolist()
    )
    out = tensor(np.zeros(expected.shape, np.int64))
    assert core.stack_out([tensor(first), tensor(second)], dim, out=out) is out
    assert out.tolist() == expected.tolist()


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


def test_gather_of_one_element() -> None:
    assert core.gather(tensor(7), 0, tensor(0)).tolist() == 7
    assert core.gather(tensor([5, 6]), 0, tensor(1)).tolist() == 6
    assert core.gather(tensor(7), 0, tensor([0, 0])).tolist() == [7, 7]
    none = tensor(np.zeros((2, 0), np.int64))
    assert core.gather(tensor(grid(2, 3)), 1, none).shape == (2, 0)


def test_scatter_of_numbers_in_place_and_to_targets() -> None:
    base = tensor([[1.0, 2.0], [3.0, 4.0]])
    index = tensor([[1], [0]])
    assert core.scatter_value(base, 1, index, 9).tolist() == [[1, 9], [9, 4]]
    assert core.scatter__value(base, 1, index, 0.5) is base
    assert base.tolist() == [[1, 0.5], [0.5, 4]]
    out = tensor(np.zeros((2, 2), np.float32))
    core.scatter_value_out(base, 1, index, -1, out=out)
    assert out.tolist() == [[1, -1], [-1, 4]]
    with pytest.raises(DTypeRefused):
        core.scatter_value(base, 1, index, 1j)


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "int32", "bool"])
def test_scatter_of_every_width(name: str) -> None:
    base = tensor([0, 0, 0], dtype=name)
    found = core.scatter(base, 0, tensor([2, 0]), tensor([1, 1], dtype=name))
    assert (found.dtype.name, found.tolist()) == (name, [1, 0, 1])


def test_scatter_add_and_index_add_count_every_repetition() -> None:
    base = tensor([1.0, 1.0, 1.0])
    places = tensor([0, 2, 0, 0])
    source = tensor([1.0, 2.0, 3.0, 4.0])
    assert core.scatter_add(base, 0, places, source).tolist() == [9, 1, 3]
    assert core.index_add(base, 0, places, source, alpha=-1).tolist() == [-7, 1, -1]
    assert core.index_add_(base, 0, tensor(1), tensor([5.0])) is base
    assert base.tolist() == [1, 6, 1]
    rows = core.index_add(
        tensor(np.zeros((2, 3))), 1, tensor([2, 2]), tensor(np.ones((2, 2)))
    )
    assert rows.tolist() == [[0, 0, 2], [0, 0, 2]]
    half = core.scatter_add(
        tensor([0.0], dtype="float16"),
        0,
        tensor([0] * 5),
        tensor([2048.0, 1.0, 1.0, 1.0, 1.0], dtype="float16"),
    )
    # Added one by one in float16, 2048 would stay 2048.
    assert half.tolist() == [2052]


def test_picking_nothing_gives_nothing() -> None:
    base, none = tensor(grid(2, 3)), tensor(np.zeros(0, np.int64))
    assert core.index_select(base, 1, none).shape == (2, 0)
    assert core.flip(core.index_select(base, 0, none), [0, 1]).shape == (0, 3)
    empty = tensor(np.zeros((2, 0), np.int64))
    assert core.index_add(base, 1, none, empty).tolist() == base.tolist()


def test_scattering_nothing_changes_nothing() -> None:
    base, none = tensor([1, 2]), tensor(np.zeros(0, np.int64))
    assert core.scatter(base, 0, none, tensor([5])).tolist() == [1, 2]
    assert core.scatter_value(base, 0, none, 5).tolist() == [1, 2]
    assert core.scatter_add(base, 0, none, none).tolist() == [1, 2]
    assert core.scatter(tensor(3), 0, tensor(0), tensor(4)).tolist() == 4


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


@pytest.mark.parametrize("dims", [[], [0], [-1], [0, 2], [2, 1, 0]], ids=str)
def test_flip_reverses_dimensions(dims: list[int]) -> None:
    array = grid(2, 3, 4)
    expected = np.flip(array, tuple(dims)) if dims else array
    found = core.flip(tensor(array), dims)
    assert found.tolist() == expected.tolist()
    assert core.flip(*on_meta(tensor(array), dims)).shape == found.shape


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("dim", [0, 1, -1])
def test_sort_and_argsort(dim: int, descending: bool) -> None:
    array = np.random.default_rng(3).permutation(60).reshape(3, 4, 5) / 7
    values, indices = core.sort(tensor(array), dim, descending)
    order = np.argsort(-array if descending else array, axis=dim)
    assert values.tolist() == np.take_along_axis(array, order, dim).tolist()
    assert (indices.dtype.name, indices.tolist()) == ("int64", order.tolist())
    assert core.argsort(tensor(array), dim, descending).tolist() == order.tolist()


def test_nan_is_the_greatest_and_ties_stay_in_order() -> None:
    mixed = tensor([1.0, NAN, -1.0])
    assert core.argsort(mixed).tolist() == [2, 0, 1]
    assert core.argsort(mixed, -1, True).tolist() == [1, 0, 2]
    assert core.topk(mixed, 1)[1].tolist() == [1]
    ties = tensor([1, 0, 1, 0])
    assert core.sort(ties, 0, False, True)[1].tolist() == [1, 3, 0, 2]
    assert core.sort(ties, 0, True, True)[1].tolist() == [0, 2, 1, 3]


def test_topk_takes_the_greatest_or_the_least() -> None:
    array = np.random.default_rng(4).permutation(24).reshape(4, 6)
    values, indices = core.topk(tensor(array), 2)
    assert values.tolist() == np.sort(array, 1)[:, :-3:-1].tolist()
    assert indices.tolist() == np.argsort(array, 1)[:, :-3:-1].tolist()
    least, _ = core.topk(tensor(array), 3, 0, False)
    assert least.tolist() == np.sort(array, 0)[:3].tolist()
    assert core.topk(tensor(array), 0)[0].shape == (4, 0)
    one, place = core.topk(tensor(5), 1)
    assert (one.tolist(), place.tolist()) == (5, 0)
    there = core.topk(tensor(array, device="meta"), 2)
    assert [each.shape for each in there] == [(4, 2), (4, 2)]


def test_sort_of_little() -> None:
    assert [e.tolist() for e in core.sort(tensor(3))] == [3, 0]
    assert core.sort(tensor([]))[0].shape == (0,)
    assert core.sort(tensor([True, False]))[0].tolist() == [False, True]
    low = tensor([1.0, 0.5], dtype="bfloat16")
    values, _ = core.sort(low)
    assert (values.dtype.name, values.tolist()) == ("bfloat16", [0.5, 1.0])


MATRIX = tensor(grid(2, 3))

WRONG: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "stack none": (
        lambda: core.stack([]),
        WrongOption,
        "`core::stack` does not take an empty list for `tensors`.\n  fits: one or more",
    ),
    "cat shapes": (
        lambda: core.cat([MATRIX, tensor(grid(2, 2))]),
        ShapesDoNotFit,
        "`core::cat` cannot work on these shapes: shapes (2, 3) and (2, 2) differ\n"
        "outside of dimension 0.\n"
        "  given: tensors[0] (2, 3), tensors[1] (2, 2)\n"
        "  fits:  tensors like the first in all but dimension 0",
    ),
    "cat numbers": (
        lambda: core.cat([tensor(1)]),
        ShapesDoNotFit,
        "`core::cat` cannot work on these shapes: a tensor without dimensions has no "
        "end\n"
        "to join at.\n"
        "  given: tensors[0] ()\n"
        "  fits:  at least one dimension; stack(...) joins along a new one",
    ),
    "cat dimension": (
        lambda: core.cat([MATRIX], 2),
        DimensionOutOfRange,
        "`core::cat` was given dimension 2 for shape (2, 3), which has no such\n"
        "dimension.\n"
        "  fits: -2 to 1, each once",
    ),
    "stack": (
        lambda: core.stack([MATRIX, tensor([1])]),
        ShapesDoNotFit,
        "`core::stack` cannot work on these shapes: they do not have one shape.\n"
        "  given: tensors[0] (2, 3), tensors[1] (1,)\n"
        "  fits:  every tensor of shape (2, 3)",
    ),
    "gather dtype": (
        lambda: core.gather(MATRIX, 0, tensor([[1.0]])),
        DTypeRefused,
        "`core::gather` does not take `index` of dtype float32.\n  fits: int64",
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
    "scatter source": (
        lambda: core.scatter(MATRIX, 1, tensor([[0, 1]]), tensor([[1]])),
        ShapesDoNotFit,
        "`core::scatter` cannot work on these shapes: index is longer than src in\n"
        "dimension 1.\n"
        "  given: index (1, 2), src (1, 1)\n"
        "  fits:  at most 1 there",
    ),
    "scatter dtype": (
        lambda: core.scatter(MATRIX, 1, tensor([[0]]), tensor([[1.0]])),
        DTypeRefused,
        "`core::scatter` does not take `src` of dtype float32.\n"
        "  fits: int64, the dtype of self",
    ),
    "index_add": (
        lambda: core.index_add(MATRIX, 1, tensor([0, 1]), MATRIX),
        ShapesDoNotFit,
        "`core::index_add` cannot work on these shapes: source has not one slice for\n"
        "each number in index.\n"
        "  given: self (2, 3), index (2,), source (2, 3)\n"
        "  fits:  source of shape (2, 2)",
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
    "topk": (
        lambda: core.topk(MATRIX, 4),
        WrongOption,
        "`core::topk` does not take 4 for `k`.\n"
        "  fits: 0 to 3, the size of dimension 1",
    ),
    "topk none": (
        lambda: core.topk(tensor(1), 0),
        WrongOption,
        "`core::topk` does not take 0 for `k`. fits: 1 to 1, the size of dimension 0",
    ),
    "sort": (
        lambda: core.sort(tensor([1j])),
        DTypeRefused,
        "`core::sort` does not take `self` of dtype complex64.\n"
        "  fits: real numbers and bool, which have an order",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_does_not_fit_is_refused(case: str) -> None:
    call, kind, text = WRONG[case]
    with pytest.raises(kind) as caught:
        call()
    assert told(caught.value) == words(text)


IN_PLACE: dict[str, Callable[[Tensor], object]] = {
    "scatter_": lambda base: core.scatter_(base, 0, tensor([0, 3]), tensor([9, 9])),
    "scatter_add_": lambda base: core.scatter_add_(
        base, 0, tensor([0, -1]), tensor([9, 9])
    ),
    "index_add_": lambda base: core.index_add_(base, 0, tensor([0, 3]), tensor([9, 9])),
}


@pytest.mark.parametrize("name", IN_PLACE)
def test_a_wrong_number_leaves_the_target_as_it_was(name: str) -> None:
    base = tensor([1, 2, 3])
    with pytest.raises(IndexOutOfRange):
        IN_PLACE[name](base)
    assert base.tolist() == [1, 2, 3]
