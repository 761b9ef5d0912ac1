"""Joining, repeating, moving and reversing of tensors.

`cat` and `flip` have plans; all others are composites, which map each place of the
result to a place of the input by existing operators, and have backends and gradients
through these.

Rule: dtypes of joined tensors promote; a tensor of shape (0,) joins with any shape and
adds nothing, as in torch.
"""

from collections.abc import Sequence
from typing import Any

from everyorder.runtime.operators.declare.allocate_outputs import as_dtype
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    INT64,
    CallPlan,
    KernelTable,
    bad_devices,
    bad_option,
    bad_shapes,
    check_count,
    many_dims,
    one_dim,
    one_dtype,
    require_dtype,
    require_ndim,
    same_device,
    strides_of,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.schema.enums import DType, MemoryFormat
from everyorder.runtime.tensors.construction import empty_tensor
from everyorder.runtime.tensors.promotion import result_type
from everyorder.runtime.tensors.shape import broadcast_shapes
from everyorder.runtime.tensors.tensor import Tensor


def plan_cat(tensors: Sequence[Tensor], dim: int) -> CallPlan:
    """Return the plan of `cat`: sizes add up along `dim` and are equal elsewhere."""
    _require_some(tensors)
    device = same_device(*tensors)
    dtype = tensors[0].dtype
    if any(each.dtype is not dtype for each in tensors):
        dtype = result_type(*tensors)
    joined = [each for each in tensors if each.shape != (0,)] or [tensors[0]]
    first = joined[0].shape
    if not first:
        raise bad_shapes(
            "a tensor without dimensions cannot be joined",
            "at least one dimension; stack(...) joins along a new one",
            *_shapes(joined),
        )
    place = one_dim(dim, first)
    total = 0
    for each in joined:
        shape = each.shape
        if shape == first:
            total += shape[place]
            continue
        if len(shape) != len(first) or (
            shape[:place] != first[:place] or shape[place + 1 :] != first[place + 1 :]
        ):
            raise bad_shapes(
                f"shapes {first} and {shape} differ outside of dimension {place}",
                f"tensors like the first in all but dimension {place}",
                *_shapes(tensors),
            )
        total += shape[place]
    shape = (*first[:place], total, *first[place + 1 :])
    check_count((total,))
    if all(each.dtype is dtype for each in joined):
        return CallPlan(((shape, dtype),), device, (joined, place))
    return CallPlan(((shape, dtype),), device, (joined, place, dtype), kernel=_cat)


def _cat(
    table: KernelTable, out: Tensor, tensors: list[Tensor], dim: int, dtype: DType
) -> None:
    # The kernel only moves elements: those of other dtypes are converted before.
    table["cat"](out, [as_dtype(table, each, dtype) for each in tensors], dim)


def cat_anywhere(tensors: Sequence[Tensor], dim: int) -> Tensor:
    """Compute `cat` by copies into the parts of a new tensor, on any backend."""
    planned = plan_cat(tensors, dim)
    (output,), (joined, place, *_) = planned.outputs, planned.arguments
    assert output is not None, "there is one result"
    shape, dtype = output
    result: Tensor = core.empty(shape, dtype=dtype, device=planned.device)
    start = 0
    for each in joined:
        end = start + each.shape[place]
        core.copy_(core.slice(result, place, start, end), each)
        start = end
    return result


def _require_some(tensors: Sequence[Tensor]) -> None:
    if not tensors:
        raise bad_option("tensors", "an empty list", "one or more")


def _shapes(
    tensors: Sequence[Tensor],
) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((f"tensors[{at}]", each.shape) for at, each in enumerate(tensors))


@composite(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    explicit=True,
    autocast="widest",
    out=True,
)
def stack(tensors: Sequence[Tensor], dim: int) -> Any:
    """Return the tensors joined along a new dimension."""
    _require_some(tensors)
    first = tensors[0].shape
    if any(each.shape != first for each in tensors):
        raise bad_shapes(
            "they do not have one shape",
            f"every tensor of shape {first}",
            *_shapes(tensors),
        )
    place = one_dim(dim, (*first, 1))
    return core.cat([core.unsqueeze(each, place) for each in tensors], place)


@composite("hstack(Tensor[] tensors) -> Tensor", out=True)
def hstack(tensors: Sequence[Tensor]) -> Any:
    """Join the tensors horizontally: along the second dimension; lines in a row."""
    parts = [core.reshape(t, [1]) if not t.shape else t for t in tensors]
    return core.cat(parts, 0 if parts and len(parts[0].shape) == 1 else 1)


@composite("vstack(Tensor[] tensors) -> Tensor", out=True)
def vstack(tensors: Sequence[Tensor]) -> Any:
    """Join the tensors vertically, lines as rows."""
    parts = [core.reshape(t, [1, -1]) if len(t.shape) < 2 else t for t in tensors]
    return core.cat(parts, 0)


@composite("repeat(Tensor self, int[] repeats) -> Tensor", explicit=True, only="method")
def repeat(self: Tensor, repeats: Sequence[int]) -> Any:
    """Repeat the tensor along each dimension."""
    if len(repeats) < len(self.shape) or min(repeats, default=0) < 0:
        raise bad_option(
            "repeats",
            str(list(repeats)),
            f"{len(self.shape)} numbers or more, none of them negative",
        )
    shape = (*(1,) * (len(repeats) - len(self.shape)), *self.shape)
    single = [size for each in shape for size in (1, each)]
    pairs = zip(repeats, shape, strict=True)
    several = [size for times, each in pairs for size in (times, each)]
    spread = core.expand(core.reshape(self, single), several)
    whole = [times * each for times, each in zip(repeats, shape, strict=True)]
    copy = core.clone(spread, memory_format=MemoryFormat.named("contiguous_format"))
    return core._unsafe_view(copy, whole)


@composite("tile(Tensor self, int[] dims) -> Tensor")
def tile(self: Tensor, dims: Sequence[int]) -> Any:
    """Repeat the tensor along each dimension; the numbers align with the last ones."""
    ones = (1,) * (len(self.shape) - len(dims))
    return core.repeat(self, (*ones, *dims))


@composite(
    "repeat_interleave.self_int(Tensor self, int repeats, int? dim=None) -> Tensor"
)
def repeat_each(self: Tensor, repeats: int, dim: int | None) -> Any:
    """Repeat every element, or slice, consecutively."""
    if repeats < 0:
        raise bad_option("repeats", str(repeats), "0 or more")
    line, at = _line(self, dim)
    shape = line.shape
    spread = [*shape[: at + 1], repeats, *shape[at + 1 :]]
    copies = core.clone(core.expand(core.unsqueeze(line, at + 1), spread))
    return core.reshape(copies, [*shape[:at], shape[at] * repeats, *shape[at + 1 :]])


@composite(
    "repeat_interleave.self_Tensor(Tensor self, Tensor repeats, int? dim=None)"
    " -> Tensor",
    tags=("dynamic_output_shape",),
)
def repeat_by(self: Tensor, repeats: Tensor, dim: int | None) -> Any:
    """Repeat every slice as often as its number in `repeats`."""
    line, at = _line(self, dim)
    size = line.shape[at]
    if repeats.shape not in ((), (1,), (size,)):
        raise bad_shapes(
            "repeats does not have one number for each slice",
            f"repeats of shape ({size},), or of one number",
            ("self", self),
            ("repeats", repeats),
        )
    counts = core.expand(core.reshape(repeats, [-1]), [size])
    if size and core.any(core.lt(counts, 0)).item():
        raise bad_option(
            "repeats",
            str(counts.tolist()),
            "numbers of 0 or more",
        )
    ends = core.cumsum(counts, 0)
    total = int(core.select(ends, 0, size - 1).item()) if size else 0
    # Each slice ends where the next starts: the count of ends before a place is its
    # slice.
    marks = core.zeros([total + 1], dtype=INT64, device=line.device)
    ones = core.ones([size], dtype=INT64, device=line.device)
    ended = core.cumsum(core.index_add(marks, 0, ends, ones), 0)
    return core.index_select(line, at, core.slice(ended, 0, 0, total))


def _line(self: Tensor, dim: int | None) -> tuple[Any, int]:
    """Return the tensor and the dimension; without one, all elements as a line."""
    if dim is None or not self.shape:
        return core.reshape(self, [-1]), 0
    return self, one_dim(dim, self.shape)


@composite("roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", out=True)
def roll(self: Tensor, shifts: Sequence[int], dims: Sequence[int]) -> Any:
    """Move the elements along; those beyond the end are inserted at the front."""
    if not dims and len(shifts) == 1:
        return core.reshape(
            core.roll(core.reshape(self, [-1]), shifts, [0]), self.shape
        )
    if len(dims) != len(shifts):
        raise bad_option(
            "shifts",
            str(list(shifts)),
            f"one number for each of the dimensions {list(dims)}",
        )
    result = self
    for shift, dim in zip(shifts, dims, strict=True) if self.shape else ():
        at = one_dim(dim, self.shape)
        size = result.shape[at]
        if size and shift % size:
            cut = size - shift % size
            parts = core.slice(result, at, cut, size), core.slice(result, at, 0, cut)
            result = core.cat(parts, at)
    return core.clone(result) if result is self else result


@composite(
    "diff(Tensor self, int n=1, int dim=-1, Tensor? prepend=None, Tensor? append=None)"
    " -> Tensor",
    out=True,
)
def diff(
    self: Tensor, n: int, dim: int, prepend: Tensor | None, append: Tensor | None
) -> Any:
    """Return the differences of neighbours along a dimension, `n` times over."""
    if not self.shape:
        raise bad_shapes(
            "there are no neighbours", "at least one dimension", ("self", self)
        )
    if n < 0:
        raise bad_option("n", str(n), "0 and more")
    at = one_dim(dim, self.shape)
    if not n:
        return core.clone(self)
    pieces = [each for each in (prepend, self, append) if each is not None]
    result = core.cat(pieces, at) if len(pieces) > 1 else self
    for _ in range(min(n, result.shape[at])):
        size = result.shape[at]
        later = core.slice(result, at, 1, size)
        earlier = core.slice(result, at, 0, max(size - 1, 0))
        bools = result.dtype is BOOL
        result = (core.logical_xor if bools else core.sub)(later, earlier)
    # Without elements, there is nothing to subtract.
    return core.clone(result) if result is self else result


@composite("rot90(Tensor self, int k=1, int[] dims=[0, 1]) -> Tensor")
def rot90(self: Tensor, k: int, dims: Sequence[int]) -> Any:
    """Return the tensor turned `k` times by 90 degrees in a plane of two dimensions.

    It is turned from the first of `dims` to the second.
    """
    if len(dims) != 2 or len(many_dims(tuple(dims), self.shape)) != 2:
        raise bad_option("dims", str(list(dims)), "two different dimensions")
    first, second = dims
    if k % 4 == 2:
        return core.flip(self, list(dims))
    if k % 2:
        # In this order the result has the strides that torch gives it.
        flipped = core.flip(self, [second if k % 4 == 1 else first])
        return core.transpose(flipped, first, second)
    rows = MemoryFormat.named("contiguous_format")
    return core.clone(self, memory_format=rows)


@composite('meshgrid(Tensor(a)[] tensors, *, str indexing="ij") -> Tensor(a)[]')
def meshgrid(tensors: Sequence[Tensor], indexing: str) -> Any:
    """Return the coordinates of a grid: each line expanded over the others."""
    if indexing not in ("ij", "xy"):
        raise bad_option("indexing", repr(indexing), "'ij' or 'xy'")
    for at, each in enumerate(tensors):
        require_ndim((f"tensor {at}", each), 0, 1)
    # Each is expanded by itself, so that no operator sees two of them.
    for each in tensors[1:]:
        if each.device != tensors[0].device:
            raise bad_devices(tensors[0].device, each.device)
    one_dtype(
        ALL,
        "every dtype",
        *((f"tensor {at}", each) for at, each in enumerate(tensors)),
    )
    lines = [core.reshape(each, [-1]) for each in tensors]
    swapped = indexing == "xy" and len(lines) > 1
    if swapped:
        lines[:2] = lines[1::-1]
    shape = [line.shape[0] for line in lines]
    grids = []
    for at, line in enumerate(lines):
        single = [1] * len(shape)
        single[at] = shape[at]
        grids.append(core.expand(core.reshape(line, single), shape))
    if swapped:
        grids[:2] = grids[1::-1]
    return grids


@composite(
    "take_along_dim(Tensor self, Tensor indices, int? dim=None) -> Tensor", out=True
)
def take_along_dim(self: Tensor, indices: Tensor, dim: int | None) -> Any:
    """Return the elements at an index along a dimension, both broadcast."""
    if dim is None:
        return core.gather(core.reshape(self, [-1]), 0, core.reshape(indices, [-1]))
    if len(self.shape) != len(indices.shape):
        raise bad_shapes(
            "self and indices differ in the number of dimensions",
            f"indices of {len(self.shape)} dimensions",
            ("self", self),
            ("indices", indices),
        )
    at = one_dim(dim, self.shape)

    def but(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
        return (*shape[:at], size, *shape[at + 1 :])

    shape = broadcast_shapes(but(self.shape, 1), but(indices.shape, 1))
    size = self.shape[at]
    indices = core.where(core.lt(indices, 0), core.add(indices, size), indices)
    source = core.expand(self, but(shape, self.shape[at]))
    return core.gather(source, at, core.expand(indices, but(shape, indices.shape[at])))


def counted(count: int, like: Tensor) -> Any:
    """Return the integers from 0 on, on the device of a tensor."""
    return core.arange(count, dtype=INT64, device=like.device)


def _below(self: Tensor, diagonal: int) -> Any:
    """Return True where the last two dimensions are on a diagonal, or below it."""
    rows, columns = self.shape[-2:]
    return core.le(
        core.unsqueeze(counted(columns, self), 0),
        core.add(core.unsqueeze(counted(rows, self), 1), diagonal),
    )


def _matrices(self: Tensor) -> None:
    if len(self.shape) < 2:
        raise bad_shapes(
            "self does not hold matrices", "2 dimensions or more", ("self", self)
        )


@composite(
    "tril(Tensor self, int diagonal=0) -> Tensor",
    explicit=True,
    in_place=True,
    out=True,
)
def tril(self: Tensor, diagonal: int) -> Any:
    """Return the part of matrices on a diagonal and below it, zeros above."""
    _matrices(self)
    return core.masked_fill(self, core.logical_not(_below(self, diagonal)), 0)


@composite(
    "triu(Tensor self, int diagonal=0) -> Tensor",
    explicit=True,
    in_place=True,
    out=True,
)
def triu(self: Tensor, diagonal: int) -> Any:
    """Return the part of matrices on a diagonal and above it, zeros below."""
    _matrices(self)
    return core.masked_fill(self, _below(self, diagonal - 1), 0)


@composite("diag(Tensor self, int diagonal=0) -> Tensor", out=True)
def diag(self: Tensor, diagonal: int) -> Any:
    """Return the diagonal of a matrix, or the matrix with a line as its diagonal."""
    if len(self.shape) == 2:
        return core.clone(core.diagonal(self, diagonal, 0, 1))
    if len(self.shape) != 1:
        raise bad_shapes(
            "self is not a line or a matrix", "1 or 2 dimensions", ("self", self)
        )
    apart, size = abs(diagonal), self.shape[0] + abs(diagonal)
    none = core.zeros([apart], dtype=self.dtype, device=self.device)
    line = core.cat([self, none], 0)
    # An element is in its own row, or in its own column below the main diagonal.
    spread = core.expand(core.unsqueeze(line, 1 if diagonal >= 0 else 0), [size, size])
    rows = core.unsqueeze(counted(size, self), 1)
    columns = core.unsqueeze(counted(size, self), 0)
    on = core.eq(core.sub(columns, rows), diagonal)
    return core.masked_fill(spread, core.logical_not(on), 0)


@composite("trace(Tensor self) -> Tensor", out=True)
def trace(self: Tensor) -> Any:
    """Return the sum of the diagonal of a matrix."""
    if len(self.shape) != 2:
        raise bad_shapes("self is not a matrix", "2 dimensions", ("self", self))
    return core.sum(core.diagonal(self, 0, 0, 1))


@composite(
    "one_hot(Tensor self, int num_classes=-1) -> Tensor",
    only="function",
    tags=("dynamic_output_shape",),
)
def one_hot(self: Tensor, num_classes: int) -> Any:
    """Return zeros with a 1 at the index of each integer, in a new last dimension."""
    require_dtype("self", self.dtype, frozenset({INT64}), "int64")
    if num_classes == -1:
        if not self.numel():
            raise bad_option(
                "num_classes",
                "-1",
                "a number: without elements it cannot be derived",
            )
        num_classes = int(core.max(self).item()) + 1
    if self.device.type != "meta" and self.numel():
        low, high = int(core.min(self).item()), int(core.max(self).item())
        if low < 0 or high >= num_classes:
            raise bad_option(
                "self",
                f"{low} to {high}",
                f"integers from 0 to below {num_classes}",
            )
    places = counted(num_classes, self)
    encoded = core.to(core.eq(core.unsqueeze(self, -1), places), dtype=INT64)
    return core.contiguous(encoded)


def plan_flip(self: Tensor, dims: Sequence[int]) -> CallPlan:
    """Return the plan of the elements in reverse order along each of the dimensions."""
    places = many_dims(dims, self.shape) if dims else ()
    outputs = ((self.shape, self.dtype),)
    strides = strides_of(self, None)
    return CallPlan(outputs, self.device, (self, places), kernel=_flip, strides=strides)


def _flip(table: KernelTable, out: Tensor, self: Tensor, dims: Sequence[int]) -> None:
    if not out.numel():
        return
    # Strides are never negative, so a dimension is reversed by an index.
    source = self
    for at, dim in enumerate(dims):
        size = self.shape[dim]
        numbers = empty_tensor((size,), INT64, self.device)
        table["arange"](numbers, size - 1, -1)
        last = at == len(dims) - 1
        target = out if last else empty_tensor(self.shape, self.dtype, self.device)
        table["index_select"](target, source, dim, numbers)
        source = target
    if not dims:
        table["copy"](out, self)


OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured(
        "cat",
        "Tensor[] tensors, int dim=0",
        plan_cat,
        saves_plans=True,
        anywhere=cat_anywhere,
        says="Return the tensors joined along a dimension.",
        autocast="widest",
    ),
    Structured(
        "flip",
        "Tensor self, int[] dims",
        plan_flip,
        says="Return the tensor with some dimensions reversed.",
    ),
    *(stack, hstack, vstack, repeat, tile, repeat_each, repeat_by, roll, meshgrid),
    *(take_along_dim, tril, triu, diag, trace, one_hot),
    *(diff, rot90),
)
