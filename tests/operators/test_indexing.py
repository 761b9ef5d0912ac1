"""Subscripts and the operators behind them, as NumPy has them."""

from typing import Any

import numpy as np
import pytest

import everyorder.runtime.operators.bindings.methods  # noqa: F401  # installs the brackets
from everyorder.runtime.autograd import grad
from everyorder.runtime.errors.tensor import (
    DTypeRefused,
    IndexOutOfRange,
    NoData,
    ShapesDoNotFit,
)
from everyorder.runtime.operators import core
from everyorder.runtime.operators.indexing import ByteMask
from everyorder.runtime.tensors import tensor
from tests.coded import code, coded
from tests.operators.refusals import message_of, one_line
from tests.operators.tensors import META, cube, grid

IndexRefused = coded(IndexOutOfRange, "IndexRefused")


MASK = np.arange(24).reshape(2, 3, 4) % 3 == 0
ROWS = np.array([[True, False, True], [False, True, True]])


# Indices that take views only.
BASIC: tuple[Any, ...] = (
    0,
    -1,
    slice(1, None),
    slice(None, None, 2),
    slice(-5, 1),
    None,
    ...,
    (),
    (0, 1),
    (0, 1, 2),
    (slice(None), 1),
    (..., 0),
    (0, ..., 1),
    (None, 0, None, ..., slice(1, 3)),
    (np.int64(1), slice(None, np.int32(2))),
)


# Indices that copy.
ADVANCED: tuple[Any, ...] = (
    [0, 1, 0],
    [[0, 1], [1, 0]],
    [],
    range(2),
    np.array([1, 0]),
    np.array([1, -1], np.int32),
    ([0, 1], [2, 0]),
    ([0, 1], slice(None), [2, 0]),
    (slice(None), [0, 2], [1, 1]),
    (slice(None), [[0], [2]], [1, 3]),
    (0, [0, 2]),
    ([0, 1], 0),
    ([0, 1], None, 2),
    (slice(0, 1), [2, 1], slice(1, 3)),
    (..., [3, 0]),
    MASK,
    ROWS,
    (ROWS, 0),
    (ROWS, slice(1, 2)),
    (0, np.array([True, False, True])),
    (slice(None), np.array([True, False, True])),
    [True, False],
    (np.array([True, False]), [1]),
    ([1], [0, 2]),
    ([[1], [0]], [0, 2]),
    (slice(1, 1), [0, 2]),
    ((0, 1), slice(1, 2)),
    (slice(None), (0, 2), 1),
    ((True, False), ((0, 1), (2, 0))),
    (np.array([False, False]), [1]),
    (np.zeros((2, 3), bool), slice(1, 3)),
    True,
    False,
    (None, True),
)


def turned(index: Any) -> Any:
    """The index with tensors where it has arrays."""
    if isinstance(index, tuple):
        return tuple(map(turned, index))
    return tensor(index) if isinstance(index, np.ndarray) else index


def wanted(index: Any) -> Any:
    """As NumPy is asked: for it, an empty list is one of floats."""
    if isinstance(index, tuple):
        return tuple(map(wanted, index))
    empty = isinstance(index, list) and not index
    return np.array([], np.int64) if empty else index


@pytest.mark.parametrize("index", BASIC, ids=repr)
def test_a_basic_index_is_a_view(index: Any) -> None:
    base = cube()
    part = base[index]
    assert (part.shape, part.tolist()) == (
        base.numpy()[index].shape,
        base.numpy()[index].tolist(),
    )
    assert part is not base
    assert part.storage() is base.storage()


@pytest.mark.parametrize("form", [turned, lambda index: index], ids=["tensor", "array"])
@pytest.mark.parametrize("index", ADVANCED, ids=repr)
def test_an_advanced_index_copies(index: Any, form: Any) -> None:
    base = cube()
    expected = base.numpy()[wanted(index)]
    part = base[form(index)]
    assert (part.shape, part.tolist()) == (expected.shape, expected.tolist())
    assert part.storage() is not base.storage()


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=repr)
def test_assigning_a_number_writes_where_numpy_does(index: Any) -> None:
    base, array = cube(), np.arange(24).reshape(2, 3, 4)
    base[turned(index)] = -1
    array[wanted(index)] = -1
    assert base.tolist() == array.tolist()


@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=repr)
def test_assigning_a_tensor_writes_where_numpy_does(index: Any) -> None:
    base, array = cube(), np.arange(24).reshape(2, 3, 4)
    shape = array[wanted(index)].shape
    values = -1 - np.arange(int(np.prod(shape))).reshape(shape)
    base[turned(index)] = tensor(values)
    array[wanted(index)] = values
    assert base.tolist() == array.tolist()


def test_a_value_broadcasts_and_may_have_leading_ones() -> None:
    base = cube()
    base[0] = tensor([1, 2, 3, 4])
    assert base[0].tolist() == [[1, 2, 3, 4]] * 3
    base[1, 0] = tensor([[[9]]])
    assert base[1, 0].tolist() == [9] * 4
    base[[0, 1], 1] = tensor([[[7, 7, 7, 7]]])
    assert base[:, 1].tolist() == [[7] * 4] * 2
    base[0, 0] = [5, 6, 7, 8]
    assert base[0, 0].tolist() == [5, 6, 7, 8]
    base[base > 6] = 0
    assert base.numpy().max() == 6


def test_an_integer_tensor_without_dimensions_counts_as_an_int() -> None:
    base = cube()
    part = base[tensor(1), tensor(-1)]
    assert part.tolist() == [20, 21, 22, 23]
    assert part.storage() is base.storage()
    assert base[tensor(True)].shape == (1, 2, 3, 4)


def test_an_int_is_no_index_tensor() -> None:
    # NumPy counts the int among the indices, which then are no neighbours: (2, 3).
    assert cube()[0, :, [0, 1]].shape == (3, 2)


def test_meta_tensors_are_indexed_by_shape() -> None:
    base = tensor(cube(), device="meta")
    assert base[0, ..., None].shape == (3, 4, 1)
    assert base[:, [0, 2, 2]].shape == (2, 3, 4)
    assert base[tensor([0, 1]), :, tensor([1, 1])].shape == (2, 3)
    base[[0, 1]] = 3
    assert base[tensor(1, device="meta")].shape == (3, 4)
    with pytest.raises(NoData, check=code("NoDataToRead")):
        base[tensor(True, device="meta")]
    with pytest.raises(NoData, check=code("NoDataToRead")) as caught:
        base[tensor(ROWS)]
    assert message_of(caught.value) == one_line(
        "`core::index` has a result whose size depends on a mask, but a tensor on "
        "meta\n"
        "holds no elements.\n"
        "  to do: call it with a tensor on a device that holds data"
    )


WRONG: tuple[tuple[Any, str], ...] = (
    (
        5,
        "`tensor[5]`: its dimension has size 2.\n  shape: (2, 3, 4)\n  fits:  -2 to 1",
    ),
    (
        (0, slice(None), -5),
        "`tensor[:, :, -5]`: its dimension has size 4.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  -4 to 3",
    ),
    (
        (0, 0, 0, 0),
        "`tensor[:, :, :, 0]`: 4 dimensions are indexed, and there are 3.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  at most 3 of them",
    ),
    (
        (..., 0, ...),
        "`tensor[:, :, ...]`: it occurs twice.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  `...` once",
    ),
    (
        slice(None, None, -1),
        "`tensor[::-1]`: the step is -1.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  a positive step; flip(dims)",
    ),
    (
        slice("a", None),
        "`tensor['a':]`: 'a' is not a bound.\n"
        "  shape: (2, 3, 4)\n  fits:  ints and None",
    ),
    (
        "a",
        "`tensor['a']`: a str is not an index.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  an int, a slice, None, `...`, or integers or booleans as tensor, "
        "array,\n"
        "         list or tuple",
    ),
    (
        1.0,
        "`tensor[1.0]`: a float is not an index.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  an int, a slice, None, `...`, or integers or booleans as tensor, "
        "array,\n"
        "         list or tuple",
    ),
    (
        [0.5],
        "`tensor[float32]`: it does not hold integers or booleans.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  an int, a slice, None, `...`, or integers or booleans as tensor, "
        "array,\n"
        "         list or tuple",
    ),
    (
        [slice(None), 1],
        "`tensor[[slice(None, None, None), 1]]`: it is not a list of integers or "
        "booleans.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  an int, a slice, None, `...`, or integers or booleans as tensor, "
        "array,\n"
        "         list or tuple",
    ),
    (
        ((0, "a"), slice(None)),
        "`tensor[(0, 'a')]`: it is not a list of integers or booleans.\n"
        "  shape: (2, 3, 4)\n"
        "  fits:  an int, a slice, None, `...`, or integers or booleans as tensor, "
        "array,\n"
        "         list or tuple",
    ),
)


@pytest.mark.parametrize(("index", "text"), WRONG, ids=lambda part: repr(part)[:20])
def test_what_picks_nothing_is_refused_by_its_place(index: Any, text: str) -> None:
    base = cube()
    with pytest.raises(IndexRefused) as caught:
        base[index]
    assert message_of(caught.value) == one_line(text)
    with pytest.raises(IndexRefused):
        base[index] = 0
    assert base.tolist() == cube().tolist()


def test_a_tensor_without_dimensions_has_no_place() -> None:
    with pytest.raises(IndexRefused) as caught:
        tensor(3)[0]
    assert message_of(caught.value) == one_line(
        "`tensor[0]`: there is no dimension left to index.\n"
        "  shape: ()\n"
        "  fits:  no int"
    )
    assert tensor(3)[...].tolist() == 3
    assert tensor(3)[None].tolist() == [3]


def test_index_tensors_are_checked_before_anything_is_written() -> None:
    base = cube()
    with pytest.raises(IndexOutOfRange) as out_of_range:
        base[[0, 2]]
    assert out_of_range.value.fields() == {
        "operator": "core::index",
        "index": 2,
        "size": 2,
        "dim": 0,
        "wraps": True,
    }
    with pytest.raises(IndexOutOfRange, check=code("IndexOutOfRange")):
        base[[0, 1], [1, -4]] = 0
    with pytest.raises(ShapesDoNotFit) as mask:
        base[tensor([True, False, True])]
    assert message_of(mask.value) == one_line(
        "`core::index` cannot work on these shapes: the mask indices[0] does not "
        "have the shape of its dimensions.\n"
        "  given: self (2, 3, 4), indices[0] (3,)\n"
        "  fits:  a mask of shape (2,)"
    )
    with pytest.raises(ShapesDoNotFit) as apart:
        base[[0, 1], [0, 1, 2]]
    assert message_of(apart.value) == one_line(
        "`core::index` cannot work on these shapes: the indices do not broadcast\n"
        "together.\n"
        "  given: index 0 (2,), index 1 (3,)\n"
        "  fits:  index tensors of equal sizes, or 1 where they differ"
    )
    with pytest.raises(ShapesDoNotFit) as values:
        base[[0, 1]] = tensor([1, 2, 3])
    assert message_of(values.value) == one_line(
        "`core::index_put_` cannot work on these shapes: values do not broadcast to "
        "(2,\n"
        "3, 4), the shape of the places.\n"
        "  given: self (2, 3, 4), values (3,)\n"
        "  fits:  values of shape (2, 3, 4), or with 1 for some of its sizes"
    )
    assert base.tolist() == cube().tolist()


def test_a_mask_of_another_shape_takes_no_number() -> None:
    base = cube()
    with pytest.raises(ShapesDoNotFit) as caught:
        base[tensor([True])] = 0
    assert message_of(caught.value) == one_line(
        "`core::index_put_` cannot work on these shapes: the mask indices[0] does "
        "not have the shape of its dimensions. given: self (2, 3, 4), indices[0] "
        "(1,) fits: a mask of shape (2,)"
    )
    with pytest.raises(IndexOutOfRange) as empty:
        tensor(np.zeros((0, 2)))[[0]]
    assert message_of(empty.value) == one_line(
        "`core::index` was given index 0 for dimension 0, which has size 0. fits: "
        "nothing: the dimension is empty state: nothing was written"
    )
    with pytest.raises(IndexOutOfRange) as beyond:
        base[[-3]]
    assert message_of(beyond.value) == one_line(
        "`core::index` was given index -3 for dimension 0, which has size 2. fits: -2 "
        "to 1 state: nothing was written"
    )


def test_a_nested_list_is_one_index() -> None:
    base, chosen = grid(2, 2), [[0, 1], [1, 0]]
    found = tensor(base)[chosen]
    assert found.shape == base[chosen].shape == (2, 2, 2)
    assert found.tolist() == base[chosen].tolist()


def test_index_as_an_operator() -> None:
    base = cube()
    found = core.index(base, [None, tensor([2, 0])])
    assert found.tolist() == base.numpy()[:, [2, 0]].tolist()
    assert core.index(base, []).tolist() == base.tolist()
    with pytest.raises(DTypeRefused) as caught:
        core.index(base, [tensor([0.0])])
    assert message_of(caught.value) == one_line(
        "`core::index` does not take `indices[0]` of dtype float32.\n"
        "  fits: integers, or bool for a mask"
    )
    with pytest.raises(ShapesDoNotFit) as many:
        core.index(base, [tensor([0])] * 4)
    assert message_of(many.value) == one_line(
        "`core::index` cannot work on these shapes: there are 4 indices.\n"
        "  given: self (2, 3, 4)\n"
        "  fits:  at most 3, one for each dimension of self"
    )


def test_index_put_adds_where_it_is_told() -> None:
    base = tensor([1.0, 2.0, 3.0])
    places = [tensor([0, 0, -1])]
    added = core.index_put(base, places, tensor([10.0, 20.0, 30.0]), True)
    assert (added.tolist(), base.tolist()) == ([31, 2, 33], [1, 2, 3])
    assert core.index_put_(base, places, tensor(7.0)) is base
    assert base.tolist() == [7, 2, 7]
    assert core.index_put(base, [], tensor(1.0), True).tolist() == [8, 3, 8]
    assert core.index_put(base, [None], tensor(1.0)).tolist() == [1, 1, 1]


def test_masked_select_broadcasts_both() -> None:
    column, row = tensor([[1], [2]]), tensor([True, False, True])
    assert core.masked_select(column, row).tolist() == [1, 1, 2, 2]
    assert core.masked_select(tensor([5, 6]), tensor(True)).tolist() == [5, 6]
    with pytest.raises(ShapesDoNotFit) as caught:
        core.masked_select(tensor([1, 2]), row)
    assert message_of(caught.value) == one_line(
        "`core::masked_select` cannot work on these shapes: self and mask do not\n"
        "broadcast together.\n"
        "  given: self (2,), mask (3,)\n"
        "  fits:  a mask that broadcasts with (2,)"
    )
    with pytest.raises(NoData, check=code("NoDataToRead")):
        core.nonzero(tensor([1], device="meta"))


BYTES = tensor([1, 0, 2], dtype="uint8")


def test_bytes_are_a_mask_in_reading_and_writing() -> None:
    x = tensor([10.0, 20.0, 30.0])
    rows = tensor([[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]])
    for read, expected in (
        (lambda: x[BYTES], [10, 30]),
        (lambda: x[BYTES.numpy()], [10, 30]),
        (lambda: rows[:, BYTES], [[0, 2], [3, 5]]),
        (lambda: rows[BYTES[:2], BYTES], [0, 2]),
        (lambda: rows[tensor([[0, 1, 0], [2, 0, 3]], dtype="uint8")], [1, 3, 5]),
        (lambda: core.index(x, [BYTES]), [10, 30]),
    ):
        with pytest.warns(ByteMask, match="is a mask"):
            assert read().tolist() == expected
    for value in (5.0, tensor(5.0), tensor([5.0, 5.0])):
        with pytest.warns(ByteMask):
            x[BYTES] = value
        assert x.tolist() == [5, 20, 5]
        x = tensor([10.0, 20.0, 30.0])
    with pytest.warns(ByteMask) as warned:
        rows[:, BYTES] = 7.0
    assert [each.filename for each in warned] == [__file__]
    assert rows.tolist() == [[7, 1, 7], [7, 4, 7]]
    for call in (
        lambda: core.index_put_(x, [BYTES], tensor(5.0), True),
        lambda: x.index_put((BYTES,), tensor(5.0)),
        lambda: core.index(x, [BYTES]),
    ):
        with pytest.warns(ByteMask) as warned:
            call()
        # The line of the caller, and none of the generated functions between.
        assert [each.filename for each in warned] == [__file__]
    assert x.tolist() == [15, 20, 35]


LOSSY: dict[str, Any] = {
    "list": [1.5, 2.5],
    "tuple": (1.5, 2.5),
    "array": np.array([1.5, 2.5]),
    "one element": [1.5],
    "array without dimensions": np.array(1.5),
    "number of NumPy": np.float32(1.5),
    "complex": [1j, 2j],
}


@pytest.mark.parametrize("name", LOSSY)
@pytest.mark.parametrize(
    "index",
    [[0, 1], slice(0, 2), np.array([True, True, False]), 0],
    ids=["list", "slice", "mask", "int"],
)
def test_lists_and_arrays_are_assigned_without_a_loss(index: Any, name: str) -> None:
    value = LOSSY[name]
    x = tensor([7, 8, 9])
    with pytest.raises(DTypeRefused, match=r"Tensor\.__setitem__"):
        x[index] = value
    assert x.tolist() == [7, 8, 9]
    fits = tensor([7.0, 8.0, 9.0], dtype="complex64")
    fits[[0, 1]] = value
    assert fits[0].item() == np.ravel(value)[0]


def test_lists_and_arrays_that_fit_are_assigned() -> None:
    x = tensor([7, 8, 9])
    x[[0, 2]] = [1, True]
    assert x.tolist() == [1, 8, 1]
    x[1:] = np.array([3, 4], np.int8)
    assert x.tolist() == [1, 3, 4]
    x[:0] = []
    wide = tensor([0.0, 0.0], dtype="float64")
    wide[:] = [0.1, 0.2]
    assert wide.tolist() == [0.1, 0.2]
    # A tensor of fractions is converted for a view, and refused at index tensors.
    x[:1] = tensor([2.5])
    assert x.tolist() == [2, 3, 4]


def test_a_byte_without_dimensions_is_a_truth() -> None:
    x = tensor([10.0, 20.0])
    assert x[tensor(1, dtype="uint8")].tolist() == [[10, 20]]
    assert x[tensor(0, dtype="uint8")].shape == (0, 2)
    # A number of NumPy's is a number, whatever its dtype.
    assert x[np.uint8(1)].tolist() == 20


def test_bytes_of_another_shape_are_refused() -> None:
    x = tensor([10.0, 20.0, 30.0])
    with pytest.warns(ByteMask), pytest.raises(ShapesDoNotFit):
        x[BYTES[:2]]
    meta, mask = (core.to(each, device=META) for each in (x, BYTES))
    with pytest.warns(ByteMask), pytest.raises(NoData):
        meta[mask]
    with pytest.warns(ByteMask):
        meta[mask] = 1.0


def test_the_gradient_of_bytes() -> None:
    x = tensor([10.0, 20.0, 30.0], requires_grad=True)
    with pytest.warns(ByteMask):
        part = x[BYTES]
    (found,) = grad(part, x, tensor([2.0, 3.0]))
    assert found is not None
    assert found.tolist() == [2, 0, 3]
