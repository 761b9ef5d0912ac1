"""Shapes, strides and orders: pure functions of tuples of integers.

Strides and offsets count elements.  No number is negative, except a dimension counted
from the end and the one `-1` of a size.  These functions do not know tensors or memory;
they raise the errors of `runtime.errors.tensor` with the shapes of the call.

A memory format is an order of the dimensions of a dense tensor, outermost first:

| format              | order of the elements                                      |
|---------------------|------------------------------------------------------------|
| `preserve_format`   | that of the tensor, without gaps (the default)             |
| `contiguous_format` | row by row                                                 |
| `channels_last`     | (n, c, h, w) as n, h, w, c; only for four dimensions       |
| `channels_last_3d`  | (n, c, d, h, w) as n, d, h, w, c; only for five dimensions |

A pointwise result has the order of its arguments (`memory_order`).  The stride of a
dimension of one element is meaningless, and follows from the computation.
"""

from collections.abc import Iterable
from functools import lru_cache
from math import prod
from operator import index
from typing import Any, Self, SupportsIndex

from everyorder.runtime.errors.tensor import (
    BadSize,
    IndexOutOfRange,
    ShapesDoNotFit,
    UnfitValue,
)
from everyorder.runtime.schema.call_errors import shortened
from everyorder.runtime.schema.enums import MemoryFormat

Ints = tuple[int, ...]


class Size(tuple[int, ...]):
    """The sizes of a tensor, as a tuple: `Size([2, 3])`.

    Shapes of tensors are plain tuples, which are equal to these.  Parts and sums of
    sizes are sizes.

    Raises:
        UnfitValue: a size is not an integer.
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Self:
        """Return the sizes as Python integers; tensors of one integer count as it."""
        return super().__new__(cls, map(_whole, sizes))

    def __add__(self, other: Any) -> "Size":
        return Size(super().__add__(other))

    def __radd__(self, other: Any) -> "Size":
        return Size((*other, *self))

    def __mul__(self, times: SupportsIndex) -> "Size":
        return Size(super().__mul__(times))

    __rmul__ = __mul__

    def __getitem__(self, place: Any) -> Any:
        part = super().__getitem__(place)
        return Size(part) if isinstance(place, slice) else part

    def numel(self) -> int:
        """Return the number of elements of a tensor of these sizes."""
        return prod(self)

    def __repr__(self) -> str:
        return f"Size({list(self)})"


def _whole(size: Any) -> int:
    """Return one size as a Python integer.  Raises `UnfitValue` for another value."""
    try:
        return int(index(size))
    except (TypeError, ValueError):
        raise UnfitValue(
            asked="Size", found=shortened(size), fits="an iterable of integers"
        ) from None


# Programs use few shapes; an entry is small, and a lookup costs 60 ns.
REMEMBERED = 4096


@lru_cache(maxsize=REMEMBERED)
def contiguous_strides(shape: Ints) -> Ints:
    """Return the strides of row-major order; a dimension of size 0 counts as 1.

    Raises:
        BadSize: a stride does not fit 64 bits.  A tensor without elements may have any
            sizes, so the number of elements does not bound the strides.
    """
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size or 1
    result = tuple(reversed(strides))
    if result and result[0] >= 1 << 63:
        raise BadSize(code="BadStrides", shape=shape, strides=result, offset=0)
    return result


@lru_cache(maxsize=REMEMBERED)
def is_contiguous(shape: Ints, strides: Ints) -> bool:
    """Return True if the elements are in row-major order without gaps.

    Strides of dimensions of one element do not matter; without elements, none does.
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
    """Return the shape that all shapes broadcast to.  Raises `ShapesDoNotFit`."""
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
    """Return the strides that read `shape` as if it had the shape `to`.

    Raises:
        ShapesDoNotFit: `shape` does not broadcast to `to`.
    """
    shift = len(to) - len(shape)
    if shift < 0:
        raise ShapesDoNotFit(code="ShapesDiffer", shapes=(shape, to))
    result = [0] * shift
    for size, stride, target in zip(shape, strides, to[shift:], strict=True):
        if size != target and size != 1:
            raise ShapesDoNotFit(code="ShapesDiffer", shapes=(shape, to))
        result.append(stride if size == target else 0)
    return tuple(result)


@lru_cache(maxsize=REMEMBERED)
def view_strides(shape: Ints, strides: Ints, new_shape: Ints) -> Ints | None:
    """Return the strides that view the same elements as `new_shape`, or None.

    Both shapes have equally many elements.  Adjacent dimensions that can be addressed
    as one are joined into runs, and every run is split again.
    """
    if prod(shape) == 0 or is_contiguous(shape, strides):
        return strides if shape == new_shape else contiguous_strides(new_shape)
    result = [0] * len(new_shape)
    at = len(new_shape) - 1
    elements, step = 1, 0
    for last in range(len(shape) - 1, -1, -1):
        if elements == 1:
            step = strides[last]
        elements *= shape[last]
        if last and (shape[last - 1] == 1 or strides[last - 1] == elements * step):
            continue
        covered = 1
        while at >= 0 and (covered < elements or new_shape[at] == 1):
            result[at] = covered * step
            covered *= new_shape[at]
            at -= 1
        if covered != elements:
            return None
        elements = 1
    return tuple(result)


def infer_size(shape: Iterable[int], numel: int) -> Ints:
    """Return a size for `numel` elements, its `-1` replaced.  Raises `BadSize`."""
    sizes = tuple(shape)
    product: int = prod([size for size in sizes if size != -1])
    open_ends = sizes.count(-1)
    if open_ends > 1 or any(size < -1 for size in sizes):
        raise BadSize(asked=sizes, elements=numel)
    if open_ends:
        if product == 0 or numel % product:
            raise BadSize(asked=sizes, elements=numel)
        return tuple(numel // product if size == -1 else size for size in sizes)
    if product != numel:
        raise BadSize(asked=sizes, elements=numel)
    return sizes


def wrap_dim(dim: int, ndim: int) -> int:
    """Return a dimension counted from the front.  Raises `IndexOutOfRange`.

    A tensor without dimensions accepts 0 and -1, as if it had one.
    """
    room = ndim or 1
    if not -room <= dim < room:
        raise IndexOutOfRange(code="BadDimension", dim=dim, ndim=ndim)
    return dim + room if dim < 0 else dim


def real_dim(dim: int, ndim: int) -> int:
    """Return `wrap_dim(dim, ndim)` for a tensor that must have dimensions.

    Raises:
        IndexOutOfRange: there is no such dimension.
        UnfitValue: `dim` is a bool.
    """
    if dim is True or dim is False:
        raise UnfitValue(
            code="WrongValue", expected="int", found="a bool", value=str(dim)
        )
    if not ndim:
        raise IndexOutOfRange(code="BadDimension", dim=dim, ndim=0)
    return wrap_dim(dim, ndim)


def wrap_dims(dims: Iterable[int] | int | None, ndim: int) -> Ints:
    """Return dimensions counted from the front, ascending; None and no dims mean all.

    Raises:
        IndexOutOfRange: a dimension does not exist or is repeated.
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
    """Return the shape after a reduction of `dims`, which are wrapped."""
    if keepdim:
        return tuple(1 if at in dims else size for at, size in enumerate(shape))
    return tuple(size for at, size in enumerate(shape) if at not in dims)


@lru_cache(maxsize=REMEMBERED)
def span(shape: Ints, strides: Ints) -> int:
    """Return the number of storage elements from the first to the last accessed one."""
    reach = 1
    for size, stride in zip(shape, strides, strict=True):
        if size == 0:
            return 0
        reach += (size - 1) * stride
    return reach


@lru_cache(maxsize=REMEMBERED)
def may_overlap_itself(shape: Ints, strides: Ints) -> bool:
    """Return True if two indices may address one element; False is certain.

    The test is conservative: in ascending order of strides, each stride must exceed the
    reach of the smaller dimensions.
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


def check_bounds(shape: Ints, strides: Ints, offset: int, available: int) -> None:
    """Refuse a view that exceeds a storage of `available` elements.

    Raises:
        BadSize: shape and strides differ in length, a number is negative, or the view
            reaches beyond the storage.
    """
    if len(shape) != len(strides) or offset < 0 or min(strides, default=0) < 0:
        raise BadSize(code="BadStrides", shape=shape, strides=strides, offset=offset)
    if min(shape, default=0) < 0:
        raise BadSize(asked=shape, elements=available)
    needed = offset + span(shape, strides)
    # A view without elements is nowhere: an empty slice may begin beyond the end.
    if needed > available and 0 not in shape:
        raise BadSize(
            code="OutOfStorage",
            shape=shape,
            strides=strides,
            offset=offset,
            needed=needed,
            held=available,
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
    """Return the dimensions of a pointwise result, outermost first; None: row-major.

    `operands` are strides over `shape`, 0 where an operand is broadcast.  The first
    operand whose strides differ in two dimensions decides their order; sizes decide
    between equal strides.

    Source: the order of dimensions in torch's TensorIterator, an insertion sort.
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
    result = tuple(reversed(order))
    return None if result == tuple(range(len(shape))) else result


def _compared(shape: Ints, operands: tuple[Ints, ...], inner: int, outer: int) -> int:
    """Return a number below 0 if `inner` varies faster, above 0 if `outer` does."""
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
    """Return the strides of a dense tensor; `order` has its outermost dim first."""
    strides = dict(
        zip(order, contiguous_strides(tuple(shape[d] for d in order)), strict=True)
    )
    return tuple(strides[dim] for dim in range(len(shape)))


@lru_cache(maxsize=REMEMBERED)
def is_dense(shape: Ints, strides: Ints) -> bool:
    """Return True if the elements do not have gaps or overlaps, in any order."""
    sizes = [(stride, size) for size, stride in zip(shape, strides, strict=True)]
    step = 1
    for stride, size in sorted(each for each in sizes if each[1] != 1):
        if stride != step:
            return prod(shape) == 0
        step *= size
    return True


@lru_cache(maxsize=REMEMBERED)
def preserved_strides(shape: Ints, strides: Ints) -> Ints:
    """Return the strides of a dense copy that keeps the order of elements in memory."""
    if is_dense(shape, strides):
        return strides
    order = memory_order(shape, (strides,))
    return contiguous_strides(shape) if order is None else ordered_strides(shape, order)


def is_in_format(shape: Ints, strides: Ints, memory_format: MemoryFormat) -> bool:
    """Return True if the elements are in the order of a format, without gaps.

    False for a format of another number of dimensions.

    Raises:
        UnfitValue: the format is `preserve_format`, which defines no order.
    """
    if memory_format is CONTIGUOUS:
        return is_contiguous(shape, strides)
    if memory_format is PRESERVE:
        raise UnfitValue(
            asked="is_contiguous",
            found=str(memory_format),
            fits="a format that defines an order",
        )
    order = LAST[memory_format]
    if len(shape) != len(order):
        return False
    return is_contiguous(
        tuple(shape[dim] for dim in order), tuple(strides[dim] for dim in order)
    )
