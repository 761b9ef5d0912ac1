"""Indexed access on CUDA: gather, scatter, index_select, index_add, index, embedding.

Walks: three operands are walked together.  The *linear* one is visited element by
element; the *index* one determines the position of its counterpart in the *addressed*
one: at `walk + value * step`, where the walk has stride 0 along the indexed dimension.
A list of slices is an index of every element of the output, with strides of 0 except
along the dimension.

`x[a, :, b]`: the indices become one list of positions in `x`, and the rest is a walk
through one index.  The CPU's layout (`runtime.kernels.cpu.gather`), which consists of
integers only, determines the dimensions of the result.  Boolean masks have been
converted to integers; negative indices count from the end.

Sums are always computed in the same order, without atomics: the targets are sorted,
stably; the thread at the first of equal targets adds all their elements, in the order
of the index.  So sums are those of the CPU, bit by bit if `alpha` is 1 (a device
multiplies and adds in one step), and runs are repeatable.  Many equal targets with few
columns leave most threads idle: that is the cost of the order.

Rules:
- `out` starts as a copy of self; elements are moved as words of their size;
- index values are checked before anything is written;
- of several values for one place the last in the order of the index is written: every
  element first claims its place with its number, and the highest number writes;
- in a sum, a target is a row of `inner` elements of each of `outer` slices; a negative
  target is skipped, as rows of `padding_idx` are; 16-bit floats are summed in float32
  and rounded once; integers wrap around; the sum of booleans is `any`.
"""

from collections.abc import Callable, Iterator, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.kernels.cpu.gather import GatherLayout, layout_of
from everyorder.runtime.kernels.cuda.axis import ordered_places
from everyorder.runtime.kernels.cuda.copy import copy, fill, flat, require_indices
from everyorder.runtime.kernels.cuda.device import running
from everyorder.runtime.kernels.cuda.elementwise import (
    Array,
    Ints,
    Number,
    TensorOperand,
    form,
    index_of,
    parts,
    pieces,
    place,
    source,
    word_of,
)
from everyorder.runtime.kernels.cuda.jit import (
    Elements,
    Maker,
    device,
    from_bfloat16,
    from_float16,
    number_of,
    to_bfloat16,
    to_float16,
)
from everyorder.runtime.kernels.cuda.memory import device_array
from everyorder.runtime.kernels.cuda.pointwise import KERNELS as POINTWISE
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import ALL, INTEGERS
from everyorder.runtime.kernels.shared.operands import BY_SIZE
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.shape import broadcast_strides, contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of, place_of

_I = np.int64
_INT64 = DType.named("int64")


class GatherWalk(NamedTuple):
    """A shape, the operands over it, the step of an index, and the device."""

    shape: Ints
    addressed: TensorOperand
    chosen: TensorOperand
    step: int
    where: int


def _read(  # type: ignore[no-untyped-def]  # compiled for the device
    i, out, out_at, out_by, x, x_at, x_by, index, at, by, step, extents
):
    spot = parts(i, extents)
    jump = index[place(at, spot, by)] * step
    out[place(out_at, spot, out_by)] = x[place(x_at, spot, x_by) + jump]


def _write(  # type: ignore[no-untyped-def]  # as above
    i,
    x,
    x_at,
    x_by,
    index,
    at,
    by,
    source,
    source_at,
    source_by,
    claims,
    claimed,
    first,
    step,
    extents,
):
    spot = parts(i, extents)
    to = place(x_at, spot, x_by) + index[place(at, spot, by)] * step
    if not claimed or claims[to] == first + i:
        x[to] = source[place(source_at, spot, source_by)]


def _claim(  # type: ignore[no-untyped-def]  # as above
    i, claims, x_at, x_by, index, at, by, first, step, extents
):
    spot = parts(i, extents)
    to = place(x_at, spot, x_by) + index[place(at, spot, by)] * step
    running.atomic.max(claims, to, first + i)


def _find(  # type: ignore[no-untyped-def]  # as above
    i, positions, x_at, x_by, index, at, by, first, step, extents
):
    spot = parts(i, extents)
    to = place(x_at, spot, x_by) + index[place(at, spot, by)] * step
    positions[first + i] = to


_OPERAND = "[::1], int64, int64*4, "
_WORDS = tuple(BY_SIZE.values())
_READ = Elements(
    "index_read",
    lambda kind: _read,
    f"T{_OPERAND}T{_OPERAND}int64{_OPERAND}int64, int64*4",
    _WORDS,
)
_WRITE = Elements(
    "index_write",
    lambda kind: _write,
    f"T{_OPERAND}int64{_OPERAND}T{_OPERAND}int64[::1], int64, int64, int64, int64*4",
    _WORDS,
)
_TARGETS_OF = f"T[::1], int64, int64*4, int64{_OPERAND}int64, int64, int64*4"
_CLAIM = Elements("index_claim", lambda kind: _claim, _TARGETS_OF, ("int64",))
_TARGETS = Elements("index_targets", lambda kind: _find, _TARGETS_OF, ("int64",))


def integers(index: Tensor) -> Tensor:
    """Return an index tensor as int64."""
    if index.dtype is _INT64:
        return index
    converted = empty_tensor(index.shape, _INT64, index.device)
    copy(converted, index)
    return converted


def along(x: TensorOperand, index: Tensor, dim: int) -> GatherWalk:
    """Return the walk over an index (of int64) along a dimension of `x`."""
    chosen, where = source(index), index_of(index)
    strides, step = x.strides, 0
    if strides:
        step = strides[dim]
        strides = (*strides[:dim], 0, *strides[dim + 1 :])
    # A 0-dim tensor is indexed like one of one element.
    strides = strides or (0,) * len(index.shape)
    addressed = TensorOperand(x.array, x.offset, strides)
    return GatherWalk(index.shape, addressed, chosen, step, where)


def read(walk: GatherWalk, out: TensorOperand, words: str) -> None:
    """Fill `out` with the indexed elements."""
    for size, extents, addressed, chosen, to in _pieces(walk, out):
        arguments = *to, *addressed, *chosen, walk.step, extents
        _READ.run(words, size, walk.where, *arguments)


def write(
    walk: GatherWalk, values: TensorOperand, words: str, size: int, *, uniform: bool
) -> None:
    """Write values at the index, in an array of `size` elements.

    `uniform`: all values are equal, so that any of them may be written.
    """
    claims = walk.chosen.array
    if not uniform:
        # For each position the number of the last element written there, or -1.
        last = empty_tensor((size,), _INT64, Device("cuda", walk.where))
        fill(last, -1)
        claims = flat_of(last)
        _targets(_CLAIM, walk, claims)
    first = 0
    for count, extents, *operands in _pieces(walk, values):
        arrays = [each for operand in operands for each in operand]
        sizes = int(not uniform), first, walk.step, extents
        _WRITE.run(words, count, walk.where, *arrays, claims, *sizes)
        first += count


def targets(walk: GatherWalk) -> Array:
    """Return the position of each element's counterpart, in the order of the walk."""
    positions = device_array(prod(walk.shape), np.dtype(np.int64), walk.where)
    _targets(_TARGETS, walk, positions)
    return positions


def _targets(kernels: Elements, walk: GatherWalk, positions: Array) -> None:
    first = 0
    for count, extents, (_, *addressed), chosen, _ in _pieces(walk, walk.chosen):
        arguments = positions, *addressed, *chosen, first, walk.step, extents
        kernels.run("int64", count, walk.where, *arguments)
        first += count


def _pieces(walk: GatherWalk, other: TensorOperand) -> Iterator[tuple[Any, ...]]:
    """Yield size, extents, and (array, offset, strides) of the operands per launch.

    The operands are the addressed one, the index and the other.
    """
    operands = walk.addressed, walk.chosen, other
    arrays, offsets, strides = zip(*operands, strict=True)
    for piece in pieces(walk.shape, offsets, strides):
        triples = zip(arrays, piece.offsets, piece.strides, strict=True)
        yield piece.size, piece.extents, *triples


def _plus(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, factor, x: total or (factor and x)
    if np.issubdtype(kind, np.integer):
        return lambda total, factor, x: kind(total + kind(factor * x))
    return lambda total, factor, x: total + factor * x


def _times(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, factor, x: total and x
    if np.issubdtype(kind, np.integer):
        return lambda total, factor, x: kind(total * x)
    return lambda total, factor, x: total * x


def _greatest(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, factor, x: total or x
    # Only NaN differs from itself.
    return lambda total, factor, x: x if x > total or x != x else total


def _least(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, factor, x: total and x
    return lambda total, factor, x: x if x < total or x != x else total


def _same(x: Any) -> Any:
    return x


def _joining(
    join: Callable[[Any], Scalar], wide: Any, read: Scalar, write: Scalar
) -> Scalar:
    """Return the sum of a target's column; `read` and `write` convert to `wide`.

    `join` makes it a product, or an extreme.
    """
    plus, load, store = device(join(wide)), device(read), device(write)

    def element(  # type: ignore[no-untyped-def]  # compiled for the device
        task, out, source, targets, places, count, inner, size, alpha
    ):
        line = task // inner
        column = task - line * inner
        outer = line // count
        at = line - outer * count
        target = targets[at]
        first = True
        if at > 0:
            first = targets[at - 1] != target
        if first and target >= 0:
            factor = wide(alpha)
            to = (outer * size + target) * inner + column
            total = load(out[to])
            while at < count and targets[at] == target:
                row = outer * count + places[at]
                total = plus(total, factor, load(source[row * inner + column]))
                at += 1
            out[to] = store(total)

    return element


class Joining(NamedTuple):
    """The kernels that combine elements with their targets: plain, and of halves."""

    plain: Elements
    halves: dict[str, Elements]


_ARRAYS = "T[::1], T[::1], int64[::1], int64[::1], int64, int64, int64, "


def _kernels(name: str, join: Callable[[Any], Scalar], dtypes: Any) -> Joining:
    def half(read: Scalar, write: Scalar) -> Maker:
        return lambda kind: _joining(join, np.float32, read, write)

    plain = Elements(
        f"{name}_targets",
        lambda kind: _joining(join, kind, _same, _same),
        _ARRAYS + "W",
        dtypes,
    )
    halves = {
        dtype: Elements(
            f"{name}_targets_{dtype}",
            half(read, write),
            _ARRAYS + "float64",
            ("uint16",),
        )
        for dtype, read, write in (
            ("float16", from_float16, to_float16),
            ("bfloat16", from_bfloat16, to_bfloat16),
        )
    }
    return Joining(plain, halves)


_ORDERED = tuple(name for name in ALL if not name.startswith("complex"))
_SUM = _kernels("add", _plus, ALL)
_REDUCE = {
    "prod": _kernels("prod", _times, ALL),
    "amax": _kernels("amax", _greatest, _ORDERED),
    "amin": _kernels("amin", _least, _ORDERED),
}


def add_targets(
    out: Tensor,
    targets: Array,
    source: Tensor,
    count: int,
    *,
    outer: int = 1,
    inner: int = 1,
    alpha: Number = 1,
    kernels: Joining = _SUM,
) -> None:
    """Add `alpha` times row j of `source` to row `targets[j]` of `out`, `count` rows.

    Rows have `inner` elements; both tensors are `outer` lists of rows.  Other `kernels`
    combine the rows in another way, without a factor.
    """
    tasks = outer * count * inner
    if not tasks or not out.numel():
        return
    where, name = index_of(out), out.dtype.name
    size = out.numel() // (outer * inner)
    ordered, places = ordered_places(targets, count, where)
    halves = kernels.halves
    factor = number_of(alpha, "float32" if name in halves else name)
    arguments = flat(out), flat(source), ordered, places, count, inner, size, factor
    halves.get(name, kernels.plain).run(form(out), tasks, where, *arguments)


def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Write out[.., i, ..] = x[.., index[.., i, ..], ..].

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    _gather(out, x, dim, check_index(index, x.shape, dim, "core::gather"))


def _gather(out: Tensor, x: Tensor, dim: int, chosen: Tensor) -> None:
    words = word_of(x)
    read(along(source(x, name=words), chosen, dim), source(out, name=words), words)


def index_select(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` with the slices of `x` at `index`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    chosen = check_index(index, x.shape, dim, "core::index_select")
    # Repeated over all dimensions but `dim`.
    _, offset, strides = place_of(chosen)
    ndim = len(out.shape)
    steps = (0,) * dim + (strides or (0,) * bool(ndim)) + (0,) * (ndim - dim - 1)
    _gather(out, x, dim, view_of(chosen, out.shape, steps, offset))


def check_index(index: Tensor, shape: Ints, dim: int, operator: str) -> Tensor:
    """Return the index as int64 after a range check.  Raises `IndexOutOfRange`."""
    require_indices(operator, index, shape[dim] if shape else 1, dim)
    return integers(index)


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, at `index`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    chosen = check_index(index, out.shape, dim, "core::scatter")
    words = word_of(out)
    walk = along(_target(out, words), chosen, dim)
    if isinstance(src, Tensor):
        values = source(src, name=words)
    else:
        one = empty_tensor((), out.dtype, out.device)
        fill(one, src)
        values = TensorOperand(flat(one, words), 0, (0,) * len(index.shape))
    uniform = not isinstance(src, Tensor)
    write(walk, values, words, out.numel(), uniform=uniform)


def scatter_add(out: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Add the elements of `src` at `index`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    _scatter(out, dim, index, src, "core::scatter_add", _SUM)


def scatter_reduce(
    out: Tensor, dim: int, index: Tensor, src: Tensor, reduce: str
) -> None:
    """Combine the elements of `src` with those of `out` at `index`.

    `reduce` is prod, amax or amin.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    _scatter(out, dim, index, src, "core::scatter_reduce", _REDUCE[reduce])


def _scatter(
    out: Tensor, dim: int, index: Tensor, src: Tensor, operator: str, kernels: Joining
) -> None:
    chosen = check_index(index, out.shape, dim, operator)
    count = index.numel()
    if not count:
        return
    walk = along(_target(out, word_of(out)), chosen, dim)
    # The index may be smaller than the source.
    part = view_of(src, index.shape, src.strides, src.offset)
    add_targets(out, targets(walk), part, count, kernels=kernels)


def index_add(
    out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
) -> None:
    """Add `alpha` times the slices of `src` to the slices of `out` at `index`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    chosen = check_index(index, out.shape, dim, "core::index_add")
    outer, inner = prod(out.shape[:dim]), prod(out.shape[dim + 1 :])
    count = index.numel()
    add_targets(out, flat(chosen), src, count, outer=outer, inner=inner, alpha=alpha)


def _target(out: Tensor, words: str) -> TensorOperand:
    """Return an output with strides from its own first element."""
    return TensorOperand(flat(out, words), 0, contiguous_strides(out.shape))


def embedding_backward(
    dweight: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    """Write the gradient of the table: (rows, width) from (.., width) and (..).

    16-bit floats are summed in float32.  A negative `padding_idx` excludes no row.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    targets = check_index(indices, dweight.shape, 0, "core::embedding_backward")
    if padding_idx >= 0:
        left_out = empty_tensor(indices.shape, DType.named("bool"), indices.device)
        POINTWISE["eq"](left_out, targets, padding_idx)
        remaining = empty_tensor(indices.shape, targets.dtype, indices.device)
        POINTWISE["where"](remaining, left_out, -1, targets)
        targets = remaining
    fill(dweight, 0)
    add_targets(dweight, flat(targets), grad, indices.numel(), inner=dweight.shape[1])


Indices = Sequence[Tensor | None]


def _step(i, total, index, size, stride):  # type: ignore[no-untyped-def]  # compiled for the device
    at = _I(index[i])
    if at < 0:
        at += size
    total[i] += at * stride


_STEP = Elements(
    "index_step", lambda kind: _step, "int64[::1], T[::1], int64, int64", INTEGERS
)


def index(out: Tensor, x: Tensor, indices: Indices) -> None:
    """Fill `out` with `x[indices]`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    words = word_of(x)
    addressed = source(x, name=words)
    walk = _indexed(x, addressed, indices, "core::index")
    read(walk, source(out, name=words), words)


def index_put(
    out: Tensor, indices: Indices, values: Tensor, accumulate: bool = False
) -> None:
    """Write, or add, `values` (broadcast) to the places `out[indices]`.

    Raises:
        IndexOutOfRange: an index is out of range; nothing is written.
    """
    if not out.is_contiguous():
        # The positions below are those of contiguous elements.
        whole = empty_tensor(out.shape, out.dtype, out.device)
        copy(whole, out)
        index_put(whole, indices, values, accumulate)
        copy(out, whole)
        return
    words = word_of(out)
    walk = _indexed(out, _target(out, words), indices, "core::index_put")
    count = prod(walk.shape)
    if not count:
        return
    _, offset, strides = place_of(values)
    steps = broadcast_strides(values.shape, strides, walk.shape)
    spread = view_of(values, walk.shape, steps, offset)
    if accumulate:
        add_targets(out, targets(walk), spread, count)
    else:
        operand, uniform = source(spread, name=words), values.numel() == 1
        write(walk, operand, words, out.numel(), uniform=uniform)


def _indexed(
    x: Tensor, addressed: TensorOperand, indices: Indices, operator: str
) -> GatherWalk:
    shapes = tuple(None if one is None else one.shape for one in indices)
    layout = layout_of(x.shape, addressed.strides, shapes)
    places = flat_of(_places(layout, indices, x, operator))
    return GatherWalk(
        layout.shape,
        TensorOperand(addressed.array, addressed.offset, layout.walk),
        TensorOperand(places, 0, layout.steps),
        1,
        index_of(x),
    )


def _places(layout: GatherLayout, indices: Indices, x: Tensor, operator: str) -> Tensor:
    """Return the positions of the combined indices, relative to the offset of x."""
    where = index_of(x)
    total = empty_tensor(layout.common, _INT64, x.device)
    fill(total, 0)
    for dim, size, stride in layout.indexed:
        one = indices[dim]
        assert one is not None, "only dimensions with an index are listed"
        require_indices(operator, one, size, dim, wraps=True)
        _, offset, strides = place_of(one)
        steps = broadcast_strides(one.shape, strides, layout.common)
        wide = view_of(one, layout.common, steps, offset)
        count = total.numel()
        if count:
            arguments = flat(total), flat(wide), size, stride
            _STEP.run(one.dtype.name, count, where, *arguments)
    return total


KERNELS: dict[str, Callable[..., Any]] = {
    "gather": gather,
    "index_select": index_select,
    "scatter": scatter,
    "scatter_add": scatter_add,
    "scatter_reduce": scatter_reduce,
    "index_add": index_add,
    "embedding_backward": embedding_backward,
    "index": index,
    "index_put": index_put,
}
