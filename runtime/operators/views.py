"""Views: other shapes and strides on the same elements.

Nothing is copied, and no element is read, so one function serves every backend: it is
registered once, at CompositeExplicitAutograd, and computes shape, strides and offset.
The keys above handle versions, and the link of a view to its base; gradients of
views are in `runtime.operators.reshaping`.

Rules:
- a view operator checks everything before it creates a tensor;
- its in-place form creates the view and assigns the view's place to the tensor itself:
  no element is written, and other views of the same elements stay unchanged;
- sizes and dimensions follow torch: negative dimensions count from the end, one size of
  `view` may be -1, and -1 in `expand` keeps the existing size.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import prod
from typing import Any

from everyorder.runtime.errors.tensor import (
    BadSize,
    IndexOutOfRange,
    ShapesDoNotFit,
    WrongOption,
)
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    PLAIN,
    bad_dim,
    bad_dtype,
    bad_option,
    bad_shapes,
    check_count,
    distinct_dims,
    one_dim,
)
from everyorder.runtime.operators.declare.structured import (
    EXPLICIT,
    Unstructured,
    composite,
    naming,
    summary,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import view_of
from everyorder.runtime.tensors.dtype_info import complex_dtype, itemsize, real_dtype
from everyorder.runtime.tensors.shape import (
    check_bounds,
    view_strides,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place

Ints = tuple[int, ...]


def real_dim(dim: int, shape: tuple[int, ...], call: str = "") -> int:
    """Return `one_dim` for a tensor that must have dimensions."""
    if not shape:
        raise bad_dim(dim, shape, call=call)
    return one_dim(dim, shape, call=call)


def sized(shape: tuple[int, ...], target: Sequence[int], call: str = "") -> list[int]:
    """Return the sizes of `target`, with the one -1 among them computed.

    Raises:
        ShapesDoNotFit: the number of elements differs, or a size is invalid.
    """
    count, product, open_ = prod(shape), 1, -1
    for place, size in enumerate(target):
        if size == -1 and open_ < 0:
            open_ = place
        elif size < 0:
            raise bad_shapes(
                f"size {size} at position {place} is not a size",
                "sizes of zero and more, and -1 once",
                ("self", shape),
                ("wanted", tuple(target)),
                call=call,
            )
        else:
            product *= size
    sizes = list(target)
    if open_ >= 0 and product and count % product == 0:
        sizes[open_] = count // product
    elif open_ >= 0 or product != count:
        raise bad_shapes(
            "they do not have the same number of elements",
            f"sizes whose product is {count}",
            ("self", shape),
            ("wanted", tuple(target)),
            call=call,
        )
    return sizes


def view(self: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view in another shape.  Raises `ShapesDoNotFit`."""
    _, offset, strides = self._place or ensure_place(self)
    return view_of(self, *_viewed(self.shape, strides, tuple(size)), offset)


# Programs use few shapes; an entry is two small tuples.
@lru_cache(maxsize=1024)
def _viewed(shape: Ints, strides: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return shape and strides of a view in another shape.  Raises as `view`."""
    target = tuple(sized(shape, size, call="core::view"))
    steps = view_strides(shape, strides, target)
    if steps is None:
        raise ShapesDoNotFit(
            code="ViewImpossible",
            operator="core::view",
            shape=shape,
            strides=strides,
            wanted=target,
        )
    return target, steps


def select(self: Tensor, dim: int, index: int) -> Tensor:
    """Return a view of one place of a dimension."""
    dim = real_dim(dim, self.shape, call="core::select")
    size = self.shape[dim]
    if not -size <= index < size:
        raise IndexOutOfRange(
            operator="core::select", index=index, size=size, dim=dim, wraps=True
        )
    shape = self.shape
    _, offset, strides = self._place or ensure_place(self)
    start = offset + strides[dim] * (index if index >= 0 else index + size)
    return view_of(
        self,
        shape[:dim] + shape[dim + 1 :],
        strides[:dim] + strides[dim + 1 :],
        start,
    )


def bounds(start: int | None, end: int | None, size: int) -> tuple[int, int]:
    """Return the start and end of a slice, clamped to the dimension, and ordered."""
    first = 0 if start is None else start + size if start < 0 else start
    last = size if end is None else end + size if end < 0 else end
    first = min(max(first, 0), size)
    return first, min(max(last, first), size)


def slice_(
    self: Tensor, dim: int, start: int | None, end: int | None, step: int
) -> Tensor:
    """Return every `step`-th place from `start` to `end`, clamped as in Python."""
    dim = real_dim(dim, self.shape, call="core::slice")
    if step <= 0:
        raise bad_option("step", str(step), "1 and more", call="core::slice")
    shape = self.shape
    _, offset, strides = self._place or ensure_place(self)
    first, last = bounds(start, end, shape[dim])
    count = (last - first + step - 1) // step
    return view_of(
        self,
        (*shape[:dim], count, *shape[dim + 1 :]),
        (*strides[:dim], strides[dim] * step, *strides[dim + 1 :]),
        offset + first * strides[dim],
    )


def transpose(self: Tensor, dim0: int, dim1: int) -> Tensor:
    """Return a view with two dimensions exchanged."""
    first = one_dim(dim0, self.shape, call="core::transpose")
    second = one_dim(dim1, self.shape, call="core::transpose")
    if first == second:
        return alias(self)
    _, offset, steps = self._place or ensure_place(self)
    shape, strides = list(self.shape), list(steps)
    shape[first], shape[second] = shape[second], shape[first]
    strides[first], strides[second] = strides[second], strides[first]
    return view_of(self, tuple(shape), tuple(strides), offset)


def t(self: Tensor) -> Tensor:
    """Return a view of a matrix with its dimensions exchanged."""
    shape = self.shape
    if len(shape) == 2:
        _, offset, (down, right) = self._place or ensure_place(self)
        return view_of(self, shape[::-1], (right, down), offset)
    if len(shape) > 2:
        raise bad_shapes(
            f"{len(self.shape)} dimensions are not a matrix",
            "at most two dimensions; transpose(dim0, dim1) takes any",
            ("self", self),
            call="core::t",
        )
    return alias(self)


def permute(self: Tensor, dims: Sequence[int]) -> Tensor:
    """Return a view with the dimensions in another order."""
    if len(dims) != len(self.shape):
        raise bad_shapes(
            f"{len(dims)} dimensions are named",
            f"each of the {len(self.shape)} dimensions once",
            ("self", self),
            ("dims", tuple(dims)),
            call="core::permute",
        )
    order = distinct_dims(dims, self.shape, call="core::permute")
    shape, strides = self.shape, self.strides
    return view_of(
        self,
        tuple([shape[dim] for dim in order]),
        tuple([strides[dim] for dim in order]),
        self.offset,
    )


def expand(self: Tensor, size: Sequence[int]) -> Tensor:
    """Return a view with dimensions of size 1 repeated, and new ones in front."""
    _, offset, strides = self._place or ensure_place(self)
    return view_of(self, *_expanded(self.shape, strides, tuple(size)), offset)


@lru_cache(maxsize=1024)
def _expanded(old: Ints, steps: Ints, size: Ints) -> tuple[Ints, Ints]:
    """Return shape and strides with dimensions repeated.  Raises as `expand`."""
    added = len(size) - len(old)
    shape: list[int] = []
    strides: list[int] = []
    for place, target in enumerate(size):
        have = old[place - added] if place >= added else 1
        step = steps[place - added] if place >= added else 0
        result = have if target == -1 and place >= added else target
        if result < 0 or (result != have and have != 1):
            raise _not_expandable(old, size)
        shape.append(result)
        strides.append(step if result == have else 0)
    if added < 0:
        raise _not_expandable(old, size)
    check_count(tuple(shape), call="core::expand")
    return tuple(shape), tuple(strides)


def _not_expandable(shape: tuple[int, ...], size: Sequence[int]) -> ShapesDoNotFit:
    return bad_shapes(
        "only a dimension of size 1 can be repeated",
        f"sizes that end in {shape}, where each 1 and each new size is free",
        ("self", shape),
        ("wanted", tuple(size)),
        call="core::expand",
    )


def squeeze(self: Tensor, dim: Sequence[int] | None) -> Tensor:
    """Return a view without dimensions of size 1.

    Without all of them, or without those among `dim`.
    """
    count = len(self.shape)
    named = (
        range(count)
        if dim is None
        else distinct_dims(dim, self.shape, call="core::squeeze")
    )
    remaining = [d for d in range(count) if self.shape[d] != 1 or d not in named]
    shape = tuple([self.shape[d] for d in remaining])
    return view_of(
        self, shape, tuple([self.strides[d] for d in remaining]), self.offset
    )


def unsqueeze(self: Tensor, dim: int) -> Tensor:
    """Return a view with a new dimension of size 1 before `dim`."""
    count = len(self.shape) + 1
    if not -count <= dim < count:
        raise bad_dim(dim, (*self.shape, 1), call="core::unsqueeze")
    place = dim if dim >= 0 else dim + count
    shape, strides = self.shape, self.strides
    # As if it were the outermost part of the following dimension.
    step = shape[place] * strides[place] if place < len(shape) else 1
    return view_of(
        self,
        (*shape[:place], 1, *shape[place:]),
        (*strides[:place], step, *strides[place:]),
        self.offset,
    )


def as_strided(
    self: Tensor,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> Tensor:
    """Return a view with these sizes, strides and offset.

    Raises:
        WrongOption: the view reaches outside of the storage.
        ShapesDoNotFit: `size` and `stride` differ in length.
    """
    if len(size) != len(stride):
        raise bad_shapes(
            "stride does not have one number for each size",
            "as many strides as sizes",
            ("size", tuple(size)),
            ("stride", tuple(stride)),
            call="core::as_strided",
        )
    offset = self.offset if storage_offset is None else storage_offset
    shape, strides = tuple(size), tuple(stride)
    check_count(shape, call="core::as_strided")
    available = self.storage().nbytes() // itemsize(self.dtype)
    try:
        check_bounds(shape, strides, offset, available)
    except BadSize as error:
        raise bad_option(
            "size, stride and storage_offset",
            f"{shape}, {strides} and {offset}",
            f"a view of the {available} elements of the storage",
            call="core::as_strided",
        ) from error
    return view_of(self, shape, strides, offset)


def diagonal(self: Tensor, offset: int, dim1: int, dim2: int) -> Tensor:
    """Return a view of the diagonal of two dimensions; `offset` moves it right."""
    first = real_dim(dim1, self.shape, call="core::diagonal")
    second = real_dim(dim2, self.shape, call="core::diagonal")
    if first == second:
        raise bad_dim(dim2, self.shape, repeated=True, call="core::diagonal")
    rows, columns = self.shape[first], self.shape[second]
    down, right = self.strides[first], self.strides[second]
    if offset >= 0:
        length, start = min(rows, columns - offset), offset * right
    else:
        length, start = min(rows + offset, columns), -offset * down
    length = max(length, 0)
    others = [d for d in range(len(self.shape)) if d not in (first, second)]
    return view_of(
        self,
        (*[self.shape[d] for d in others], length),
        (*[self.strides[d] for d in others], down + right),
        self.offset + (start if length else 0),
    )


def alias(self: Tensor) -> Tensor:
    """Return a view of the whole tensor."""
    return view_of(self, self.shape, self.strides, self.offset)


def split(self: Tensor, split_size: int, dim: int) -> list[Tensor]:
    """Split along a dimension into pieces of `split_size`; the last may be smaller."""
    place = real_dim(dim, self.shape, call="core::split")
    size = self.shape[place]
    if split_size < 0 or (split_size == 0 and size):
        raise bad_option(
            "split_size",
            str(split_size),
            f"1 and more, as dimension {place} has size {size}",
            call="core::split",
        )
    pieces = max(-(-size // split_size), 1) if split_size else 1
    return _pieces(
        self,
        place,
        [min(split_size, size - k * split_size) for k in range(pieces)],
    )


def split_sizes(self: Tensor, split_sizes: Sequence[int], dim: int) -> list[Tensor]:
    """Split along a dimension into pieces of these sizes, which add up to its size."""
    place = real_dim(dim, self.shape, call="core::split.sizes")
    size = self.shape[place]
    if sum(split_sizes) != size or any(each < 0 for each in split_sizes):
        raise bad_option(
            "split_sizes",
            str(list(split_sizes)),
            f"sizes that add up to {size}, which dimension {place} has",
            call="core::split.sizes",
        )
    return _pieces(self, place, split_sizes)


def _pieces(self: Tensor, dim: int, sizes: Sequence[int]) -> list[Tensor]:
    pieces, start = [], self.offset
    shape, strides = self.shape, self.strides
    for size in sizes:
        part = (*shape[:dim], size, *shape[dim + 1 :])
        pieces.append(view_of(self, part, strides, start))
        start += size * strides[dim]
    return pieces


def unbind(self: Tensor, dim: int) -> list[Tensor]:
    """Return every place of a dimension as a view."""
    place = real_dim(dim, self.shape, call="core::unbind")
    shape = self.shape[:place] + self.shape[place + 1 :]
    strides, start = self.strides, self.offset
    steps, each = strides[:place] + strides[place + 1 :], strides[place]
    return [
        view_of(self, shape, steps, start + each * at)
        for at in range(self.shape[place])
    ]


def view_as_real(self: Tensor) -> Tensor:
    """Return a view of complex numbers as pairs of their parts, in a last dimension."""
    if not self.dtype.is_complex:
        raise bad_dtype(
            "self", self.dtype, "complex64, complex128", call="core::view_as_real"
        )
    _, offset, steps = self._place or ensure_place(self)
    strides = tuple([2 * stride for stride in steps])
    return view_of(
        self, (*self.shape, 2), (*strides, 1), 2 * offset, real_dtype(self.dtype)
    )


def view_as_complex(self: Tensor) -> Tensor:
    """Return a view of pairs of numbers, in a last dimension, as complex ones."""
    call = "core::view_as_complex"
    if self.dtype not in PLAIN:
        raise bad_dtype("self", self.dtype, "float32, float64", call=call)
    if self.shape[-1:] != (2,):
        raise bad_shapes(
            "the last dimension does not hold two parts",
            "a last dimension of size 2",
            ("self", self),
            call=call,
        )
    _, offset, strides = self._place or ensure_place(self)
    if strides[-1] != 1 or any(stride % 2 for stride in strides[:-1]) or offset % 2:
        raise bad_option(
            "self",
            f"a tensor of strides {strides}, {offset} elements into its storage",
            "stride 1 in the last dimension, and even numbers else: "
            "contiguous() has them",
            call=call,
        )
    halved = tuple([stride // 2 for stride in strides[:-1]])
    dtype = complex_dtype(self.dtype)
    return view_of(self, self.shape[:-1], halved, offset // 2, dtype)


def view_dtype(self: Tensor, dtype: DType) -> Tensor:
    """Return the bytes of the elements as elements of another dtype.

    With another size, the last dimension changes its size and must have stride 1; for
    larger elements, its size, the offset and the other strides must be multiples.
    """
    call, old, new = "core::view.dtype", itemsize(self.dtype), itemsize(dtype)
    _, offset, strides = self._place or ensure_place(self)
    if old == new:
        return view_of(self, self.shape, strides, offset, dtype)
    shape = self.shape
    if not shape or (strides[-1] != 1 and shape[-1] != 1):
        raise _unfit(self, dtype, call=call)
    if old > new:
        times = old // new
        wider = tuple([stride * times for stride in strides[:-1]])
        return view_of(
            self, (*shape[:-1], shape[-1] * times), (*wider, 1), offset * times, dtype
        )
    times = new // old
    if shape[-1] % times or offset % times or any(s % times for s in strides[:-1]):
        raise _unfit(self, dtype, call=call)
    fewer = tuple([stride // times for stride in strides[:-1]])
    return view_of(
        self, (*shape[:-1], shape[-1] // times), (*fewer, 1), offset // times, dtype
    )


def _unfit(self: Tensor, dtype: DType, call: str = "") -> WrongOption:
    """Return the error for elements whose layout does not permit a view of `dtype`."""
    return bad_option(
        "dtype",
        f"{dtype} of {self.dtype} in shape {self.shape}, strides {self.strides}, "
        f"{self.offset} elements into the storage",
        "a dtype of the same size; another one where the last dimension has "
        "stride 1 and all is made of whole elements",
        call=call,
    )


def real(self: Tensor) -> Any:
    """Return a view of the real parts; real numbers unchanged."""
    if not self.dtype.is_complex:
        return self
    return core.select(core.view_as_real(self), -1, 0)


def imag(self: Tensor) -> Any:
    """Return a view of the imaginary parts of complex numbers."""
    if not self.dtype.is_complex:
        raise bad_dtype(
            "self",
            self.dtype,
            "complex64, complex128 (other dtypes lack imaginary parts)",
        )
    return core.select(core.view_as_real(self), -1, 1)


def _view(
    schema: str, function: Callable[..., Any], says: str | None = None, only: str = ""
) -> Unstructured:
    """Return a view operator, described by its function's first sentence or `says`."""
    sentence = summary(function) if says is None else says
    return Unstructured(schema, {EXPLICIT: function}, says=sentence, only=only)


def _in_place(schema: str, function: Callable[..., Tensor]) -> Unstructured:
    """Return the form that turns the tensor itself into the view."""
    show = naming(f"core::{schema.partition('(')[0]}", function)

    def kernel(self: Tensor, *arguments: Any) -> Tensor:
        view = show(self, *arguments)
        self._shape, self._place, self.number = view._shape, view._place, None
        # Last, as it is derived from the others.
        self._flat = None
        return self

    says = f"{summary(function).removesuffix('.')}, in place."
    return Unstructured(
        schema, {EXPLICIT: kernel}, ("inplace", "inplace_view"), says=says
    )


OPERATORS = (
    _view("view(Tensor(a) self, int[] size) -> Tensor(a)", view, only="method"),
    # Of what nobody else holds: not a view to autograd.
    _view("_unsafe_view(Tensor self, int[] size) -> Tensor", view, says=""),
    _view("select(Tensor(a) self, int dim, int index) -> Tensor(a)", select),
    _view(
        "slice(Tensor(a) self, int dim=0, int? start=None, int? end=None, int step=1)"
        " -> Tensor(a)",
        slice_,
        says="",
    ),
    _view("transpose(Tensor(a) self, int dim0, int dim1) -> Tensor(a)", transpose),
    _view("t(Tensor(a) self) -> Tensor(a)", t),
    _view("permute(Tensor(a) self, int[] dims) -> Tensor(a)", permute),
    _view("expand(Tensor(a) self, int[] size) -> Tensor(a)", expand, only="method"),
    _view("squeeze(Tensor(a) self, int[1]? dim=None) -> Tensor(a)", squeeze),
    _view("unsqueeze(Tensor(a) self, int dim) -> Tensor(a)", unsqueeze),
    _in_place(
        "transpose_(Tensor(a!) self, int dim0, int dim1) -> Tensor(a!)", transpose
    ),
    _in_place("t_(Tensor(a!) self) -> Tensor(a!)", t),
    _in_place("squeeze_(Tensor(a!) self, int[1]? dim=None) -> Tensor(a!)", squeeze),
    _in_place("unsqueeze_(Tensor(a!) self, int dim) -> Tensor(a!)", unsqueeze),
    _view(
        "as_strided(Tensor(a) self, int[] size, int[] stride,"
        " int? storage_offset=None) -> Tensor(a)",
        as_strided,
    ),
    _view(
        "diagonal(Tensor(a) self, int offset=0, int dim1=0, int dim2=1) -> Tensor(a)",
        diagonal,
    ),
    _view("view_as_real(Tensor(a) self) -> Tensor(a)", view_as_real, only="function"),
    _view(
        "view_as_complex(Tensor(a) self) -> Tensor(a)",
        view_as_complex,
        only="function",
    ),
    _view("view.dtype(Tensor(a) self, ScalarType dtype) -> Tensor(a)", view_dtype, ""),
    composite("real(Tensor(a) self) -> Tensor(a)", only="function")(real),
    composite("imag(Tensor(a) self) -> Tensor(a)", only="function")(imag),
    # Without history: autograd records it at a key above.
    _view(
        "detach(Tensor(a) self) -> Tensor(a)",
        alias,
        "Return a view that gradients do not follow.",
    ),
    _view("alias(Tensor(a) self) -> Tensor(a)", alias, only="method"),
    _view(
        "split(Tensor(a -> *) self, int split_size, int dim=0) -> Tensor(a)[]",
        split,
        says="",
    ),
    _view(
        "unbind(Tensor(a -> *) self, int dim=0) -> Tensor(a)[]",
        unbind,
        says="",
    ),
    _view(
        "split.sizes(Tensor(a -> *) self, int[] split_sizes, int dim=0) -> Tensor(a)[]",
        split_sizes,
        says="",
    ),
)
