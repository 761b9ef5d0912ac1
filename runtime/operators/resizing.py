"""Resizing: another shape for a tensor, in place, with room for it made where needed.

True only here: which storage a resized tensor has.  Where its own has room, or no
elements at all (its pointer is null then, as upstream pre-allocates what an operator
fills), it stays; else the tensor gets a longer one that begins with the same elements.

Rule: other tensors on a storage that was left behind keep the elements that they show;
none of them ever looks at memory that is not there.
"""

from collections.abc import Sequence
from math import prod

from runtime.errors.operands import ShapesRefused, WrongOption
from runtime.operators.backends import table_for
from runtime.operators.expanding import check_count
from runtime.operators.memory_format import strides_of
from runtime.operators.structured import Written
from runtime.schema.codes import MemoryFormat
from runtime.schema.device import Device
from runtime.tensors.arrays import claimed
from runtime.tensors.elements import itemsize
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import PRESERVE, contiguous_strides
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor

META = Device("meta")


def resize_(
    self: Tensor, size: Sequence[int], memory_format: MemoryFormat | None
) -> Tensor:
    """Give a tensor another shape; elements that it gains have any value.

    Raises `ShapesRefused` for a negative size, and `WrongOption` for a tensor that
    requires grad, and for a format of another number of dimensions.
    """
    call, shape = "core::resize_", tuple(size)
    if any(each < 0 for each in shape):
        raise ShapesRefused(operator=call, shapes=(shape,), fits="sizes of 0 and more")
    check_count(call, shape)
    if self._requires_grad:
        raise WrongOption(
            operator=call,
            argument="self",
            found="a tensor that requires grad",
            fits="one that does not: detach() it, or make a new one",
        )
    if memory_format is PRESERVE:
        raise WrongOption(
            operator=call,
            argument="memory_format",
            found=str(memory_format),
            fits="a format that says an order",
        )
    strides = contiguous_strides(shape)
    if memory_format is not None:
        like = empty_tensor(shape, self.dtype, META)
        strides = strides_of(call, like, memory_format) or strides
    elif shape == self.shape:
        return self
    place = _with_room(self, prod(shape))
    self._shape, self._place, self.number = shape, (*place, strides), None
    # Last, as it is filled in from the others.
    self._flat = None
    return self


def _with_room(self: Tensor, count: int) -> tuple[Storage, int]:
    """A storage in which so many elements fit behind the offset, and the offset."""
    storage, offset, _ = self._place or claimed(self)
    size, needed = itemsize(self.dtype), offset + count
    held = storage.nbytes() // size
    if needed <= held:
        return storage, offset
    if not storage.count:
        unit = itemsize(storage.dtype)
        storage.grow((needed * size + unit - 1) // unit)
        return storage, offset
    longer = empty_tensor((needed,), self.dtype, self.device)
    if self.device.type != "meta":
        first = [view_of(each, (held,), (1,), 0) for each in (longer, self)]
        table_for(self.device)["copy"](*first)
    made = claimed(longer)[0]
    # What was saved of the tensor is not what it shows now.
    made.version = storage.version
    return made, offset


OPERATORS = (
    Written(
        "resize_(Tensor(a!) self, int[] size, *, MemoryFormat? memory_format=None)"
        " -> Tensor(a!)",
        {"CompositeExplicitAutograd": resize_},
        ("inplace", "inplace_view"),
        says="Another shape, in place; elements that are gained have any value.",
    ),
)
