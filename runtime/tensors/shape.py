"""Shapes and strides: pure functions of tuples of integers.

True only here: the geometry of tensors.  Strides and offsets count elements; no number
is negative, except a dimension given from the end and the one `-1` of a size.

Rules: nothing here knows of tensors or memory; a fault raises the error of
`runtime.errors.tensor` with the shapes as they were given.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from runtime.errors.call import WrongValue
from runtime.errors.storage import BadStrides, OutOfStorage
from runtime.errors.tensor import (
    BadDimension,
    BadSize,
    RepeatedDimension,
    ShapesDiffer,
)

Ints = tuple[int, ...]


class Size(tuple[int, ...]):
    """The sizes of a tensor, as programs make them: `Size([2, 3])`.

    Tensors themselves say plain tuples, which are equal to these.
    """

    __slots__ = ()

    def numel(self) -> int:
        """How many elements a tensor of these sizes has."""
        return prod(self)

    def __repr__(self) -> str:
        return f"Size({list(self)})"


# Programs see few shapes; each answer is small, and asking for it again costs 60 ns.
REMEMBERED = 4096


@lru_cache(maxsize=REMEMBERED)
def contiguous_strides(shape: Ints) -> Ints:
    """The strides of row-major order; a dimension of size 0 counts as 1.

    Raises `BadStrides` for those that do not fit 64 bits: what has no elements may have
    any sizes.
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    found = tuple(reversed(strides))
    if found and found[0] >= 1 << 63:
        raise BadStrides(shape=shape, strides=found, offset=0)
    return found


@lru_cache(maxsize=REMEMBERED)
def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """Whether the elements lie in row-major order without gaps.

    Strides of dimensions of one element do not matter, and without elements none do.
    """
    step = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size == 0:
            return True
        if size != 1:
            if stride != step:
                return prod(shape) == 0
            step *= size
    return True


@lru_cache(maxsize=REMEMBERED)
def broadcast_shapes(*shapes: Ints) -> Ints:
    """The shape that all shapes broadcast to.  Raises `ShapesDiffer`."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        shift = ndim - len(shape)
        for at, size in enumerate(shape, shift):
            if size == result[at] or size == 1:
                continue
            if result[at] != 1:
                raise ShapesDiffer(shapes=shapes)
            result[at] = size
    return tuple(result)


@lru_cache(maxsize=REMEMBERED)
def broadcast_strides(shape: Ints, strides: Ints, to: Ints) -> Ints:
    """The strides that read `shape` as if it had the shape `to`.

    Raises `ShapesDiffer` where `shape` does not broadcast to `to`.
    """
    shift = len(to) - len(shape)
    if shift < 0:
        raise ShapesDiffer(shapes=(shape, to))
    found = [0] * shift
    for size, stride, wanted in zip(shape, strides, to[shift:], strict=True):
        if size != wanted and size != 1:
            raise ShapesDiffer(shapes=(shape, to))
        found.append(stride if size == wanted else 0)
    return tuple(found)


@lru_cache(maxsize=REMEMBERED)
def view_strides(shape: Ints, strides: Ints, new_shape: Ints) -> Ints | None:
    """The strides that show the same elements in `new_shape`, or None if none do.

    Both shapes have equally many elements.  Dimensions that lie after each other as if
    they were one are joined into runs, and every run is split anew.
    """
    if prod(shape) == 0 or is_contiguous(shape, strides):
        return strides if shape == new_shape else contiguous_strides(new_shape)
    found = [0] * len(new_shape)
    at = len(new_shape) - 1
    elements, step = 1, 0
    for last in range(len(shape) - 1, -1, -1):
        if elements == 1:
            step = strides[last]
        elements *= shape[last]
        if last and (shape[last - 1] == 1 or strides[last - 1] == elements * step):
            continue
        taken = 1
        while at >= 0 and (taken < elements or new_shape[at] == 1):
            found[at] = taken * step
            taken *= new_shape[at]
            at -= 1
        if taken != elements:
            return None
        elements = 1
    return tuple(found)


def infer_size(shape: Iterable[int], numel: int) -> Ints:
    """A size for `numel` elements, its one `-1` replaced.  Raises `BadSize`."""
    asked = tuple(shape)
    known: int = prod([size for size in asked if size != -1])
    open_ends = asked.count(-1)
    if open_ends > 1 or any(size < -1 for size in asked):
        raise BadSize(asked=asked, elements=numel)
    if open_ends:
        if known == 0 or numel % known:
            raise BadSize(asked=asked, elements=numel)
        return tuple(numel // known if size == -1 else size for size in asked)
    if known != numel:
        raise BadSize(asked=asked, elements=numel)
    return asked


def wrap_dim(dim: int, ndim: int) -> int:
    """A dimension counted from the front.  Raises `BadDimension`.

    A tensor without dimensions takes 0 and -1, as if it had one.
    """
    room = ndim or 1
    if not -room <= dim < room:
        raise BadDimension(dim=dim, ndim=ndim)
    return dim + room if dim < 0 else dim


def real_dim(dim: int, ndim: int) -> int:
    """As `wrap_dim`, of what has dimensions.

    Raises `BadDimension`, and `WrongValue` for a bool.
    """
    if dim is True or dim is False:
        raise WrongValue(expected="int", found="a bool", value=str(dim))
    if not ndim:
        raise BadDimension(dim=dim, ndim=0)
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Iterable[int] | int | None, ndim: int) -> Ints:
    """Dimensions counted from the front, ascending; None and no dims mean all.

    Raises `BadDimension` and `RepeatedDimension`.
    """
    if isinstance(dims, int):
        dims = (dims,)
    wrapped = [wrap_dim(dim, ndim) for dim in dims or ()]
    if len(set(wrapped)) != len(wrapped):
        raise RepeatedDimension(dims=tuple(dims or ()), ndim=ndim)
    if not ndim:
        return ()
    return tuple(sorted(wrapped)) or tuple(range(ndim))


@lru_cache(maxsize=REMEMBERED)
def reduced_shape(shape: Ints, dims: Ints, keepdim: bool) -> Ints:
    """The shape after the (wrapped) dims are reduced."""
    if keepdim:
        return tuple(1 if at in dims else size for at, size in enumerate(shape))
    return tuple(size for at, size in enumerate(shape) if at not in dims)


@lru_cache(maxsize=REMEMBERED)
def span(shape: Ints, strides: Ints) -> int:
    """The number of storage elements from the first to the last one touched."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


@lru_cache(maxsize=REMEMBERED)
def may_overlap_itself(shape: Ints, strides: Ints) -> bool:
    """Whether two indices may mean one element; False is certain, True is a guess.

    Sorted by stride, each dimension must step over all that the smaller ones reach.
    """
    reach = 1
    for stride, size in sorted(zip(strides, shape, strict=True)):
        if size == 0:
            return False
        if size > 1:
            if stride < reach:
                return prod(shape) > 0
            reach += (size - 1) * stride
    return False


def check_bounds(shape: Ints, strides: Ints, offset: int, held: int) -> None:
    """Refuse a view that reaches outside of a storage of `held` elements.

    Raises `BadStrides` for numbers that no view has, and `OutOfStorage`.
    """
    if len(shape) != len(strides) or offset < 0 or min(strides, default=0) < 0:
        raise BadStrides(shape=shape, strides=strides, offset=offset)
    if min(shape, default=0) < 0:
        raise BadSize(asked=shape, elements=held)
    needed = offset + span(shape, strides)
    # What has no elements is nowhere: slices of it may begin behind the end.
    if needed > held and 0 not in shape:
        raise OutOfStorage(
            shape=shape, strides=strides, offset=offset, needed=needed, held=held
        )
