"""Shapes, strides and orders: pure functions of tuples of integers.

Strides and offsets count elements; no number is negative, except a dimension given from
the end and the one `-1` of a size.  Nothing here knows of tensors or memory; a fault
raises the error of `runtime.errors.tensor` with the shapes as they were given.

A memory format says how the dimensions of a dense tensor lie, one inside of the other:

| format              | the elements lie                                           |
|---------------------|------------------------------------------------------------|
| `preserve_format`   | as those of the tensor, without its gaps (the default)     |
| `contiguous_format` | row by row                                                 |
| `channels_last`     | (n, c, h, w) as n, h, w, c; of four dimensions only        |
| `channels_last_3d`  | (n, c, d, h, w) as n, d, h, w, c; of five dimensions only  |

A pointwise result lies as its arguments do (`memory_order`); strides of dimensions of
one element mean nothing, and are whatever comes of that.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod

from everyorder.runtime.errors.tensor import (
    BadSize,
    IndexOutOfRange,
    ShapesDoNotFit,
    UnfitValue,
)
from everyorder.runtime.schema.enums import MemoryFormat

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

    Raises `BadSize` for those that do not fit 64 bits: what has no elements may have
    any sizes.
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    found = tuple(reversed(strides))
    if found and found[0] >= 1 << 63:
        raise BadSize(code="BadStrides", shape=shape, strides=found, offset=0)
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
    """The shape that all shapes broadcast to.  Raises `ShapesDoNotFit`."""
    ndim = max(map(len, shapes), default=0)
    result = [1] * ndim
    for shape in shapes:
        shift = ndim - len(shape)
        for at, size in enumerate(shape, shift):
            if size == result[at] or size == 1:
                continue
            if result[at] != 1:
                raise ShapesDoNotFit(code="ShapesDiffer", shapes=shapes)
            result[at] = size
    return tuple(result)


@lru_cache(maxsize=REMEMBERED)
def broadcast_strides(shape: Ints, strides: Ints, to: Ints) -> Ints:
    """The strides that read `shape` as if it had the shape `to`.

    Raises `ShapesDoNotFit` where `shape` does not broadcast to `to`.
    """
    shift = len(to) - len(shape)
    if shift < 0:
        raise ShapesDoNotFit(code="ShapesDiffer", shapes=(shape, to))
    found = [0] * shift
    for size, stride, wanted in zip(shape, strides, to[shift:], strict=True):
        if size != wanted and size != 1:
            raise ShapesDoNotFit(code="ShapesDiffer", shapes=(shape, to))
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
    """A dimension counted from the front.  Raises `IndexOutOfRange`.

    A tensor without dimensions takes 0 and -1, as if it had one.
    """
    room = ndim or 1
    if not -room <= dim < room:
        raise IndexOutOfRange(code="BadDimension", dim=dim, ndim=ndim)
    return dim + room if dim < 0 else dim


def real_dim(dim: int, ndim: int) -> int:
    """As `wrap_dim`, of what has dimensions.

    Raises `IndexOutOfRange`, and `UnfitValue` for a bool.
    """
    if dim is True or dim is False:
        raise UnfitValue(
            code="WrongValue", expected="int", found="a bool", value=str(dim)
        )
    if not ndim:
        raise IndexOutOfRange(code="BadDimension", dim=dim, ndim=0)
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Iterable[int] | int | None, ndim: int) -> Ints:
    """Dimensions counted from the front, ascending; None and no dims mean all.

    Raises `IndexOutOfRange`.
    """
    if isinstance(dims, int):
        dims = (dims,)
    wrapped = [wrap_dim(dim, ndim) for dim in dims or ()]
    if len(set(wrapped)) != len(wrapped):
        raise IndexOutOfRange(
            code="RepeatedDimension", dims=tuple(dims or ()), ndim=ndim
        )
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

    Raises `BadSize` for numbers that no view has, and `BadSize`.
    """
    if len(shape) != len(strides) or offset < 0 or min(strides, default=0) < 0:
        raise BadSize(code="BadStrides", shape=shape, strides=strides, offset=offset)
    if min(shape, default=0) < 0:
        raise BadSize(asked=shape, elements=held)
    needed = offset + span(shape, strides)
    # What has no elements is nowhere: slices of it may begin behind the end.
    if needed > held and 0 not in shape:
        raise BadSize(
            code="OutOfStorage",
            shape=shape,
            strides=strides,
            offset=offset,
            needed=needed,
            held=held,
        )


CONTIGUOUS = MemoryFormat.named("contiguous_format")
PRESERVE = MemoryFormat.named("preserve_format")
# Format -> the dimensions, outermost first.
LAST = {
    MemoryFormat.named("channels_last"): (0, 2, 3, 1),
    MemoryFormat.named("channels_last_3d"): (0, 2, 3, 4, 1),
}


@lru_cache(maxsize=REMEMBERED)
def memory_order(shape: Ints, operands: tuple[Ints, ...]) -> Ints | None:
    """The dimensions of a pointwise result, outermost first in memory.

    `operands` are strides over `shape`, 0 where an operand is broadcast: the first one
    that tells two dimensions apart puts them in its order; sizes decide between equal
    strides.  None is row-major order.

    Source: how upstream's TensorIterator orders dimensions, an insertion sort.
    """
    order = [*reversed(range(len(shape)))]
    for last in range(1, len(order)):
        moving = last
        for at in reversed(range(last)):
            inner, outer = order[at], order[moving]
            compared = _compared(shape, operands, inner, outer)
            if compared > 0:
                order[at], order[moving] = outer, inner
                moving = at
            elif compared < 0:
                break
    found = tuple(reversed(order))
    return None if found == tuple(range(len(shape))) else found


def _compared(shape: Ints, operands: tuple[Ints, ...], inner: int, outer: int) -> int:
    """Less than 0 if `inner` is the faster of two dimensions, more if `outer` is."""
    for strides in operands:
        one, other = strides[inner], strides[outer]
        if one and other:
            if one != other:
                return one - other
            if shape[inner] > shape[outer]:
                return 1
    return 0


@lru_cache(maxsize=REMEMBERED)
def ordered_strides(shape: Ints, order: Ints) -> Ints:
    """The strides of elements without gaps whose dimensions lie in an order."""
    strides = dict(
        zip(order, contiguous_strides(tuple(shape[d] for d in order)), strict=True)
    )
    return tuple(strides[dim] for dim in range(len(shape)))


@lru_cache(maxsize=REMEMBERED)
def is_dense(shape: Ints, strides: Ints) -> bool:
    """Whether the elements lie without gaps and overlaps, in whatever order."""
    sizes = [(stride, size) for size, stride in zip(shape, strides, strict=True)]
    step = 1
    for stride, size in sorted(each for each in sizes if each[1] != 1):
        if stride != step:
            return prod(shape) == 0
        step *= size
    return True


@lru_cache(maxsize=REMEMBERED)
def preserved_strides(shape: Ints, strides: Ints) -> Ints:
    """The strides of a copy that keeps the order of elements in memory."""
    if is_dense(shape, strides):
        return strides
    order = memory_order(shape, (strides,))
    return contiguous_strides(shape) if order is None else ordered_strides(shape, order)


def is_in_format(shape: Ints, strides: Ints, wanted: MemoryFormat) -> bool:
    """Whether elements lie in the order of a format, without gaps.

    False for a format of another number of dimensions.  Raises `UnfitValue` for the one
    that says no order.
    """
    if wanted is CONTIGUOUS:
        return is_contiguous(shape, strides)
    if wanted is PRESERVE:
        raise UnfitValue(
            asked="is_contiguous", found=str(wanted), fits="a format that says an order"
        )
    order = LAST[wanted]
    if len(shape) != len(order):
        return False
    return is_contiguous(
        tuple(shape[dim] for dim in order), tuple(strides[dim] for dim in order)
    )
