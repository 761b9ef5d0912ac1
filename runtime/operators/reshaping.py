"""Reshaping: views if possible, copies if necessary, and resized tensors.

Operators of views and of copying do the reshaping, so that these alone need
derivatives.  The gradients of views are here as well: the gradient of the part, with
zeros for the rest.  Each combines other operators in fresh memory, reads its gradient
once and is linear in it, so that its derivative is the view again.

`resize_` changes the shape of a tensor in place.  If its storage has room, or no
elements at all (its pointer is null then, as torch pre-allocates the outputs of
operators), the tensor keeps it; else the tensor receives a longer storage that starts
with the same elements.  Other tensors on the old storage keep their elements; no tensor
ever refers to memory outside of a storage.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from everyorder.runtime.errors.tensor import ShapesDoNotFit
from everyorder.runtime.operators.declare.allocate_outputs import table_for
from everyorder.runtime.operators.declare.handles import core, direct_call
from everyorder.runtime.operators.declare.plan import (
    INT64,
    bad_option,
    bad_shapes,
    check_count,
    one_dim,
    require_shape,
    strides_of,
)
from everyorder.runtime.operators.declare.structured import (
    EXPLICIT,
    IMPLICIT,
    Unstructured,
    composite,
    naming,
    summary,
)
from everyorder.runtime.operators.views import sized
from everyorder.runtime.schema.enums import Device, MemoryFormat
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import itemsize
from everyorder.runtime.tensors.shape import (
    PRESERVE,
    contiguous_strides,
    may_overlap_itself,
    span,
    view_strides,
)
from everyorder.runtime.tensors.storage import Storage
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import ensure_place


def reshape(self: Tensor, shape: Sequence[int]) -> Tensor:
    """Return the elements in another shape, as a view if possible.

    Raises:
        ShapesDoNotFit: the number of elements differs.
    """
    show = _view
    # A contiguous run of elements has a view of every shape.
    if self._flat is None and not _viewable(self.shape, self.strides, tuple(shape)):
        # Nobody else has the copy, so that its view counts as no view.
        self, show = core.contiguous(self), core._unsafe_view
    try:
        viewed: Tensor = show(self, shape)
    except ShapesDoNotFit as error:
        if error.operator == "core::view":
            error.operator = "core::reshape"
        raise
    return viewed


_view = direct_call("view")


# Programs use few shapes.
@lru_cache(maxsize=1024)
def _viewable(
    shape: tuple[int, ...], strides: tuple[int, ...], target: tuple[int, ...]
) -> bool:
    """Return True if the elements have a view as `target`.  Raises as `reshape`."""
    sizes = tuple(sized(shape, target, call="core::reshape"))
    return view_strides(shape, strides, sizes) is not None


def flatten(self: Tensor, start_dim: int, end_dim: int) -> Tensor:
    """Return a view, or copy, with a range of dimensions as one."""
    call = "core::flatten"
    shape = self.shape
    first = one_dim(start_dim, shape, call=call)
    last = one_dim(end_dim, shape, call=call)
    if first > last:
        raise bad_option(
            "start_dim",
            f"{start_dim}",
            f"a dimension before or at end_dim, which is {end_dim}",
            call=call,
        )
    if not shape:
        return reshape(self, (1,))
    if first == last:
        # torch returns the tensor itself: a leaf stays one, and is writable.
        return self
    count = prod(shape[first : last + 1])
    return reshape(self, (*shape[:first], count, *shape[last + 1 :]))


def sum_to_size(self: Tensor, size: Sequence[int]) -> Tensor:
    """Return the sum over the elements that broadcasting from `size` repeats."""
    shape, target = self.shape, tuple(size)
    added = len(shape) - len(target)
    fits = added >= 0 and all(
        have in (1, size) for have, size in zip(target, shape[added:], strict=True)
    )
    if not fits:
        raise bad_shapes(
            "the size does not broadcast to the shape",
            "a size that broadcasts to the shape of self",
            ("self", shape),
            ("size", target),
            call="core::sum_to_size",
        )
    dims = [
        dim
        for dim, have in enumerate(shape)
        if dim < added or (target[dim - added] == 1 and have != 1)
    ]
    if dims:
        self = core.sum(self, dims, True)
    result: Tensor = core.view(self, target) if added else self
    return result


@composite("movedim(Tensor(a) self, int[1] source, int[1] destination) -> Tensor(a)")
def movedim(self: Tensor, source: Sequence[int], destination: Sequence[int]) -> Any:
    """Return a view with some dimensions moved, the rest in their order."""
    moved = [one_dim(dim, self.shape) for dim in source]
    places = [one_dim(dim, self.shape) for dim in destination]
    for name, chosen in (("source", moved), ("destination", places)):
        if len(set(chosen)) != len(moved):
            raise bad_option(name, str(chosen), f"{len(moved)} different dimensions")
    rest = iter(dim for dim in range(len(self.shape)) if dim not in moved)
    back = dict(zip(places, moved, strict=True))
    order = [back[at] if at in back else next(rest) for at in range(len(self.shape))]
    return core.permute(self, order)


@composite("unflatten(Tensor(a) self, int dim, int[] sizes) -> Tensor(a)")
def unflatten(self: Tensor, dim: int, sizes: Sequence[int]) -> Any:
    """Return a view with one dimension split into several."""
    at = one_dim(dim, self.shape)
    # A 0-dim tensor counts as one dimension of one element, which may be split.
    several = _sizes(self.shape[at] if self.shape else 1, sizes)
    return core.view(self, [*self.shape[:at], *several, *self.shape[at + 1 :]])


def _sizes(size: int, sizes: Sequence[int]) -> Sequence[int]:
    """Return the sizes with the one -1 computed.  Raises `WrongOption`."""
    product = 1
    for each in sizes:
        product *= each if each != -1 else 1
    if list(sizes).count(-1) == 1 and product and size % product == 0:
        sizes, product = [size // product if n == -1 else n for n in sizes], size
    if product != size or min(sizes, default=0) < 0:
        raise bad_option(
            "sizes",
            str(list(sizes)),
            f"sizes with the product {size}; one of them may be -1",
            call="core::unflatten",
        )
    return sizes


@composite("broadcast_to(Tensor(a) self, int[] size) -> Tensor(a)")
def broadcast_to(self: Tensor, size: Sequence[int]) -> Any:
    """Return a view with dimensions of size 1 repeated."""
    return core.expand(self, size)


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return a view of all windows of a dimension, whose places are a last dimension.

    A window of `size` places begins at every `step`-th place where it fits.

    Raises:
        WrongOption: `size` is negative, or greater than the dimension, or `step` is
            less than 1.
    """
    call, shape = "core::unfold", self.shape
    dim = one_dim(dimension, shape, call=call)
    length = shape[dim] if shape else 1
    if not 0 <= size <= length:
        fits = f"0 to {length}, the size of dimension {dim}"
        raise bad_option("size", str(size), fits, call=call)
    if step < 1:
        raise bad_option("step", str(step), "1 and more", call=call)
    _, offset, strides = self._place or ensure_place(self)
    if not shape:
        return view_of(self, (size,), (1,), offset)
    return view_of(
        self,
        (*shape[:dim], (length - size) // step + 1, *shape[dim + 1 :], size),
        (*strides[:dim], step * strides[dim], *strides[dim + 1 :], strides[dim]),
        offset,
    )


META = Device("meta")


def resize_(
    self: Tensor, size: Sequence[int], memory_format: MemoryFormat | None
) -> Tensor:
    """Change the shape in place; additional elements are uninitialized.

    Raises:
        ShapesDoNotFit: a size is negative.
        WrongOption: the tensor requires grad, or the format is for another number of
            dimensions.
    """
    call, shape = "core::resize_", tuple(size)
    if any(each < 0 for each in shape):
        raise ShapesDoNotFit(
            code="ShapesRefused",
            operator=call,
            shapes=(shape,),
            fits="sizes of 0 and more",
        )
    check_count(shape, call=call)
    if self._requires_grad:
        raise bad_option(
            "self",
            "a tensor that requires grad",
            "one that does not: detach() it, or make a new one",
            call=call,
        )
    if memory_format is PRESERVE:
        raise bad_option(
            "memory_format",
            str(memory_format),
            "a format that defines an order",
            call=call,
        )
    strides = contiguous_strides(shape)
    if memory_format is not None:
        like = empty_tensor(shape, self.dtype, META)
        strides = strides_of(like, memory_format, call=call) or strides
    elif shape == self.shape:
        return self
    place = _with_room(self, prod(shape))
    self._shape, self._place, self.number = shape, (*place, strides), None
    # Last, as it is derived from the others.
    self._flat = None
    return self


def _with_room(self: Tensor, count: int) -> tuple[Storage, int]:
    """Return a storage with room for `count` elements after the offset, and it."""
    storage, offset, _ = self._place or ensure_place(self)
    size, needed = itemsize(self.dtype), offset + count
    available = storage.nbytes() // size
    if needed <= available:
        return storage, offset
    if not storage.count:
        unit = itemsize(storage.dtype)
        storage.grow((needed * size + unit - 1) // unit)
        return storage, offset
    longer = empty_tensor((needed,), self.dtype, self.device)
    if self.device.type != "meta":
        first = [view_of(each, (available,), (1,), 0) for each in (longer, self)]
        table_for(self.device)["copy"](*first)
    longer_storage = ensure_place(longer)[0]
    # The old version goes on, so that a saved tensor counts as changed.
    longer_storage.version = storage.version
    return longer_storage, offset


def _zeros(grad: Tensor, size: Sequence[int]) -> Tensor:
    result: Tensor = core.zeros(list(size), dtype=grad.dtype, device=grad.device)
    return result


def _backward(view: str, arguments: str) -> Unstructured:
    """Return the gradient of a view's base: zeros, and `grad` at the view."""

    def run(grad: Tensor, input_sizes: Sequence[int], *arguments: Any) -> Tensor:
        whole = _zeros(grad, input_sizes)
        part = getattr(core, view)(whole, *arguments)
        require_shape(("grad", grad), part.shape)
        core.copy_(part, grad)
        return whole

    schema = f"{view}_backward(Tensor grad, int[] input_sizes, {arguments}) -> Tensor"
    return composite(schema, explicit=True)(run)


def as_strided_backward(
    grad: Tensor,
    input_sizes: Sequence[int],
    input_strides: Sequence[int],
    input_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int,
) -> Tensor:
    """Return the gradient of each element of the input of `as_strided`.

    The gradients of all elements at one place in memory are added.  If the input itself
    has several elements at one place, the sum is divided among them evenly.
    """
    require_shape(("grad", grad), tuple(size))
    for name, sizes, strides in (
        ("input_strides", input_sizes, input_strides),
        ("stride", size, stride),
    ):
        if len(strides) != len(sizes):
            raise bad_option(
                name,
                str(list(strides)),
                f"one stride for each of {list(sizes)}",
            )
    first = min(input_offset, offset)
    input_end = input_offset - first + span(tuple(input_sizes), tuple(input_strides))
    view_end = offset - first + span(tuple(size), tuple(stride))
    memory = _zeros(grad, [max(input_end, view_end)])
    if not may_overlap_itself(tuple(size), tuple(stride)):
        core.copy_(core.as_strided(memory, size, stride, offset - first), grad)
    else:
        places = _places(memory, size, stride, offset - first)
        core.index_add_(memory, 0, places, core.reshape(grad, [-1]))
    if may_overlap_itself(tuple(input_sizes), tuple(input_strides)):
        places = _places(memory, input_sizes, input_strides, input_offset - first)
        # Counted in integers: 16-bit floats lose counts, and complex numbers have no
        # clamp.
        ones = core.ones([places.numel()], dtype=INT64, device=grad.device)
        none = core.zeros(memory.shape, dtype=INT64, device=grad.device)
        counts = core.index_add(none, 0, places, ones)
        memory = core.div(memory, core.clamp(counts, 1))
    part = core.as_strided(memory, input_sizes, input_strides, input_offset - first)
    own = contiguous_strides(tuple(input_sizes)) == tuple(input_strides)
    whole = part.numel() == memory.numel()
    result: Tensor = part if own and whole else core.clone(part)
    return result


def _places(
    memory: Tensor, size: Sequence[int], stride: Sequence[int], offset: int
) -> Tensor:
    """Return the place in memory of each element, in order."""
    numbers = core.arange(memory.numel(), device=memory.device)
    places: Tensor = core.reshape(core.as_strided(numbers, size, stride, offset), [-1])
    return places


OPERATORS = (
    Unstructured(
        "reshape(Tensor(a) self, int[] shape) -> Tensor(a)",
        {IMPLICIT: reshape},
        says=summary(reshape),
    ),
    Unstructured(
        "flatten(Tensor(a) self, int start_dim=0, int end_dim=-1) -> Tensor(a)",
        {IMPLICIT: flatten},
        says=summary(flatten),
    ),
    Unstructured(
        "sum_to_size(Tensor(a) self, int[] size) -> Tensor(a)",
        {IMPLICIT: sum_to_size},
        says=summary(sum_to_size),
        only="method",
    ),
    *(movedim, unflatten, broadcast_to),
    Unstructured(
        "unfold(Tensor(a) self, int dimension, int size, int step) -> Tensor(a)",
        {EXPLICIT: unfold},
        says=summary(unfold),
        only="method",
    ),
    Unstructured(
        "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None)"
        " -> Tensor(a!)",
        {EXPLICIT: resize_},
        ("inplace", "inplace_view"),
        says=summary(resize_),
    ),
    _backward("slice", "int dim, int start, int end, int step"),
    _backward("select", "int dim, int index"),
    _backward("diagonal", "int offset, int dim1, int dim2"),
    Unstructured(
        "as_strided_backward(Tensor grad, int[] input_sizes, int[] input_strides,"
        " int input_offset, int[] size, int[] stride, int offset) -> Tensor",
        {EXPLICIT: naming("core::as_strided_backward", as_strided_backward)},
    ),
)
