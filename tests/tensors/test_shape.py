"""Shapes and strides, against NumPy's arrays."""

import copy
import operator
import pickle
from itertools import product
from math import prod
from random import Random

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from everyorder.runtime.errors.tensor import (
    BadSize,
    IndexOutOfRange,
    ShapesDoNotFit,
    UnfitValue,
)
from everyorder.runtime.tensors import Size, tensor
from everyorder.runtime.tensors.shape import (
    Ints,
    broadcast_shapes,
    broadcast_strides,
    check_bounds,
    contiguous_strides,
    infer_size,
    is_contiguous,
    may_overlap_itself,
    reduced_shape,
    span,
    view_strides,
    wrap_dim,
    wrap_dims,
)
from tests.coded import code

SIZES = (0, 1, 2, 3)


def boxes(ndim: int) -> list[Ints]:
    return [shape for n in range(ndim + 1) for shape in product(SIZES, repeat=n)]


def test_contiguous_strides_are_numpy_s() -> None:
    for shape in boxes(3):
        array = np.empty(shape, np.int8)
        strides = contiguous_strides(shape)
        assert is_contiguous(shape, strides)
        if array.size:
            assert strides == array.strides
    assert contiguous_strides((2, 0, 3)) == (3, 3, 1)


def test_is_contiguous_agrees_with_numpy() -> None:
    base = np.empty(64, np.int8)
    for shape in boxes(3):
        for strides in product((0, 1, 2, 3), repeat=len(shape)):
            array = as_strided(base, shape, strides)
            assert is_contiguous(shape, strides) == array.flags.c_contiguous


def test_broadcasting_agrees_with_numpy() -> None:
    shapes = boxes(2)
    for one, other in product(shapes, repeat=2):
        try:
            expected = np.broadcast_shapes(one, other)
        except ValueError:
            with pytest.raises(ShapesDoNotFit, check=code("ShapesDiffer")) as caught:
                broadcast_shapes(one, other)
            assert caught.value.shapes == (one, other)
        else:
            assert broadcast_shapes(one, other) == expected
    assert broadcast_shapes() == ()
    assert broadcast_shapes((2, 1), (3,), (1, 1, 1)) == (1, 2, 3)


def test_broadcast_strides() -> None:
    assert broadcast_strides((3, 1), (1, 1), (2, 3, 4)) == (0, 1, 0)
    assert broadcast_strides((), (), (2,)) == (0,)
    for shape, to in (((3,), (2,)), ((2, 2), (2,)), ((2,), (1,))):
        with pytest.raises(ShapesDoNotFit, check=code("ShapesDiffer")) as caught:
            broadcast_strides(shape, contiguous_strides(shape), to)
        assert caught.value.shapes == (shape, to)


def test_views_are_found_where_numpy_reshapes_without_a_copy() -> None:
    random = Random(7)
    found = {True: 0, False: 0}
    for _ in range(4000):
        dims = [random.choice((1, 1, 2, 3, 4)) for _ in range(random.randint(0, 4))]
        base = np.arange(prod(dims) * 2).reshape(*dims, 2)[..., random.choice((0, 1))]
        if random.random() < 0.5:
            base = base.transpose(random.sample(range(base.ndim), base.ndim))
        if random.random() < 0.3:
            base = np.broadcast_to(base, (random.choice((1, 2)), *base.shape))
        shape = split(base.size, random)
        strides = tuple(step // base.itemsize for step in base.strides)
        answer = view_strides(base.shape, strides, shape)
        copied = base.reshape(shape)
        shares = np.shares_memory(base, copied)
        found[shares] += 1
        assert (answer is not None) == shares
        if answer is not None:
            raw = tuple(step * base.itemsize for step in answer)
            np.testing.assert_array_equal(as_strided(base, shape, raw), copied)
    assert min(found.values()) > 200


def split(count: int, random: Random) -> Ints:
    """Some sizes with the product `count`, ones among them."""
    sizes: list[int] = []
    while count > 1:
        size = random.choice([n for n in range(2, count + 1) if count % n == 0])
        sizes.append(size)
        count //= size
    for _ in range(random.randint(0, 2)):
        sizes.insert(random.randint(0, len(sizes)), 1)
    return tuple(sizes)


def test_views_of_nothing() -> None:
    assert view_strides((0, 3), (3, 1), (3, 0)) == (1, 1)
    assert view_strides((2, 0), (1, 1), (2, 0)) == (1, 1)
    assert view_strides((), (), (1, 1)) == (1, 1)


@pytest.mark.parametrize(
    ("asked", "elements", "expected"),
    [
        ((2, -1), 6, (2, 3)),
        ((-1,), 0, (0,)),
        ((), 1, ()),
        ((0, 3), 0, (0, 3)),
        ((2, 3), 6, (2, 3)),
        ((2, -1), 5, None),
        ((-1, -1), 4, None),
        ((-2, 2), 4, None),
        ((0, -1), 0, None),
        ((2, 2), 5, None),
    ],
)
def test_sizes_are_inferred(asked: Ints, elements: int, expected: Ints | None) -> None:
    if expected is not None:
        assert infer_size(asked, elements) == expected
        return
    with pytest.raises(BadSize) as caught:
        infer_size(asked, elements)
    assert caught.value.fields() == {"asked": asked, "elements": elements}


def test_dimensions_are_counted_from_the_front() -> None:
    assert [wrap_dim(dim, 3) for dim in range(-3, 3)] == [0, 1, 2, 0, 1, 2]
    assert [wrap_dim(dim, 0) for dim in (-1, 0)] == [0, 0]
    for dim, ndim in ((3, 3), (-4, 3), (1, 0), (-2, 0)):
        with pytest.raises(IndexOutOfRange, check=code("BadDimension")) as caught:
            wrap_dim(dim, ndim)
        assert caught.value.fields() == {"dim": dim, "ndim": ndim}


def test_sets_of_dimensions() -> None:
    assert wrap_dims(None, 3) == wrap_dims((), 3) == (0, 1, 2)
    assert wrap_dims(-1, 3) == (2,)
    assert wrap_dims((2, -3), 3) == (0, 2)
    assert wrap_dims((0,), 0) == wrap_dims(None, 0) == ()
    with pytest.raises(IndexOutOfRange, check=code("RepeatedDimension")) as caught:
        wrap_dims((0, -3), 3)
    assert caught.value.fields() == {"dims": (0, -3), "ndim": 3}


def test_reduced_shapes() -> None:
    assert reduced_shape((2, 3, 4), (0, 2), False) == (3,)
    assert reduced_shape((2, 3, 4), (0, 2), True) == (1, 3, 1)
    assert reduced_shape((), (), True) == ()


def test_span_and_overlap_by_counting() -> None:
    for shape in boxes(3):
        for strides in product((0, 1, 2, 3, 6), repeat=len(shape)):
            touched = [
                sum(i * s for i, s in zip(at, strides, strict=True))
                for at in product(*map(range, shape))
            ]
            assert span(shape, strides) == max(touched, default=-1) + 1
            if not may_overlap_itself(shape, strides):
                assert len(set(touched)) == len(touched)
    assert may_overlap_itself((2, 3), (0, 1))
    assert not may_overlap_itself((3, 2), (1, 3))
    assert not may_overlap_itself((2, 1, 3), (3, 0, 1))


def test_bounds() -> None:
    check_bounds((2, 3), (3, 1), 0, 6)
    check_bounds((0,), (1,), 6, 6)
    check_bounds((), (), 5, 6)
    for offset, held in ((1, 6), (0, 5)):
        with pytest.raises(BadSize, check=code("OutOfStorage")) as caught:
            check_bounds((2, 3), (3, 1), offset, held)
        assert caught.value.fields() == {
            "shape": (2, 3),
            "strides": (3, 1),
            "offset": offset,
            "needed": offset + 6,
            "held": held,
        }
    # Nothing is read of what has no elements: slices may begin behind the end.
    check_bounds((0,), (1,), 7, 6)
    check_bounds((1, 0), (4, 1), 2**62, 6)
    for strides, offset in (((1,), 0), ((1, -1), 0), ((1, 1), -1)):
        with pytest.raises(BadSize, check=code("BadStrides")):
            check_bounds((2, 2), strides, offset, 9)
    with pytest.raises(BadSize, check=code("BadSize")):
        check_bounds((-1,), (1,), 0, 9)


def test_sizes_are_integers() -> None:
    for wrong in ([1.5], ["1"], [None], [tensor(1.5)], "12"):
        with pytest.raises(UnfitValue, match="an iterable of integers"):
            Size(wrong)
    made = Size([True, np.int64(3), tensor(2)])
    assert [type(size) for size in made] == [int] * 3
    assert (made, made.numel(), Size()) == ((1, 3, 2), 6, ())


def test_parts_and_sums_of_sizes_are_sizes() -> None:
    size = Size([2, 3])
    joined = [operator.add(size, (4,)), operator.add((4,), size)]
    parts = [*joined, size * 2, 2 * size, size[:1], size + size]
    assert [type(part) for part in parts] == [Size] * 6
    assert joined == [(2, 3, 4), (4, 2, 3)]
    assert (size[0], type(size[0])) == (2, int)
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        again = pickle.loads(pickle.dumps(size, protocol))
        assert (type(again), again) == (Size, size)
    assert type(copy.deepcopy(size)) is type(copy.copy(size)) is Size
