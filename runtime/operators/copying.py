"""Copying: into a tensor, to another dtype or device, and to Python.

On one device, the backend's `copy` does everything: any strides, any dtype to any
other. Between devices, the elements are transferred as one contiguous array through
host memory, in the dtype of the source; a side with kernels casts and broadcasts.

Rules:
- a copy into a tensor broadcasts the source, and converts its elements: a fraction is
  truncated, an imaginary part dropped, regardless of promotion;
- nothing can be copied from meta; a copy to meta has the shape and dtype;
- a copy has the memory order of its source, or that of `memory_format=` (`strides_of`);
  a copy from another device is contiguous;
- `contiguous` and `to` return the tensor itself if it fits already.
"""

from typing import Any

from everyorder.runtime.errors.tensor import NoData, ShapesDoNotFit
from everyorder.runtime.operators.creation import pinned
from everyorder.runtime.operators.declare.allocate_outputs import (
    MODULES,
    check_no_overlap,
    clashes,
    expanded,
    table_for,
)
from everyorder.runtime.operators.declare.fast_paths import SERIAL, fast_fill
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    CPU,
    CallPlan,
    Shape,
    bad_option,
    check_fill,
    number_for,
    same_device,
    strides_of,
    with_strides,
)
from everyorder.runtime.operators.declare.structured import (
    EXPLICIT,
    IMPLICIT,
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.schema.enums import Device, DType, MemoryFormat
from everyorder.runtime.tensors.construction import empty_tensor, from_flat
from everyorder.runtime.tensors.shape import PRESERVE
from everyorder.runtime.tensors.storage import is_host, memory_of, resolve_device
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of

COPY = "core::copy_"
TO_COPY = "core::_to_copy"


def copy_into(target: Tensor, source: Tensor, non_blocking: bool = False) -> Tensor:
    """Write the elements of `source`, broadcast, into `target`; return it.

    Raises:
        ShapesDoNotFit: `source` does not broadcast to the shape of `target`.
        TargetRefused: elements of `target` share memory.
        NoData: `source` is on meta, `target` is not.
    """
    if target is source or _fast_copy(target, source):
        return target
    fitting(target.shape, source.shape, call=COPY)
    check_no_overlap(target, "self", COPY)
    if target.device.type == "meta":
        return target
    refuse_meta(source, call=COPY)
    if source.device is not target.device:
        source = moved(source, target.device)
    source = expanded(source, target.shape)
    table = table_for(target.device)
    if clashes(target, source, True):
        apart = empty_tensor(source.shape, source.dtype, source.device)
        table["copy"](apart, source)
        source = apart
    table["copy"](target, source)
    return target


def _fast_copy(target: Tensor, source: Tensor) -> bool:
    """Copy few contiguous elements of one dtype on the host; True if copied."""
    to, elements = target._flat, source._flat
    if (
        to is None
        or elements is None
        or target.dtype is not source.dtype
        or target.shape != source.shape
        or target.device is not CPU
        or source.device is not CPU
        or len(to) > SERIAL
    ):
        return False
    # NumPy handles an overlap of the two arrays.
    to[...] = elements
    return True


def fitting(shape: Shape, source: Shape, call: str = "") -> None:
    """Make sure that `source` broadcasts to `shape`.  Raises `ShapesDoNotFit`."""
    back = len(shape) - len(source)
    if back >= 0 and all(
        size in (1, target) for size, target in zip(source, shape[back:], strict=True)
    ):
        return
    fits = f"a source of shape {shape}, or one that broadcasts to it"
    raise ShapesDoNotFit(
        code="ShapesRefused", operator=call, shapes=(shape, source), fits=fits
    )


def refuse_meta(source: Tensor, call: str = "") -> None:
    """Refuse a tensor without elements as a source.  Raises `NoData`."""
    if source.device.type == "meta":
        raise NoData(
            code="NoDataToRead", operator=call, device="meta", asked="copies elements"
        )


def moved(tensor: Tensor, device: Device) -> Tensor:
    """Return a contiguous copy of a tensor on another device, which is not meta."""
    flat = flat_of(tensor)
    if flat is None:
        tensor = duplicate(tensor)
        flat = flat_of(tensor)
    host = memory_of(tensor.device.type).to_numpy(flat)
    if is_host(tensor.device.type) and is_host(device.type):
        host = host.copy()
    result = from_flat(host, tensor.shape, device)
    assert result.dtype is tensor.dtype, "host memory keeps the dtype"
    return result


def duplicate(tensor: Tensor, dtype: DType | None = None) -> Tensor:
    """Return a contiguous copy on the same device, in `dtype` or its own dtype."""
    result = empty_tensor(tensor.shape, dtype or tensor.dtype, tensor.device)
    if tensor.device.type != "meta":
        table_for(tensor.device)["copy"](result, tensor)
    return result


def to_copy(
    self: Tensor,
    dtype: DType | None,
    device: Device | None,
    pin_memory: bool,
    non_blocking: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    """Return a new tensor with the elements of `self`, in another dtype or on a device.

    Raises:
        NoData: from meta to a device that holds elements.
        WrongOption: `pin_memory` for a device other than the CPU, `memory_format` of
            another number of dimensions.
        DeviceUnavailable, UnfitValue: the device cannot be used, or the dtype is not
            supported.
    """
    place = self.device if device is None else resolve_device(device)
    kind = self.dtype if dtype is None else dtype
    strides = strides_of(self, memory_format, call=TO_COPY)
    if place is self.device and strides is not None:
        result = with_strides(empty_tensor(self.shape, kind, place), strides)
        if place.type != "meta":
            table_for(place)["copy"](result, self)
    else:
        result = _copied(self, kind, place)
    return pinned(result, call=TO_COPY) if pin_memory else result


def _copied(self: Tensor, kind: DType, place: Device) -> Tensor:
    if place is self.device:
        return duplicate(self, kind)
    if place.type == "meta":
        return empty_tensor(self.shape, kind, place)
    refuse_meta(self, call=TO_COPY)
    # Cast the source if that transfers fewer bytes, else the copy.
    if kind is self.dtype:
        return moved(self, place)
    if kind.is_complex == self.dtype.is_complex:
        return moved(duplicate(self, kind), place)
    return duplicate(moved(self, place), kind)


def to(
    self: Tensor,
    dtype: DType | None,
    device: Device | None,
    non_blocking: bool,
    copy: bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    """Return the tensor in a dtype and on a device: itself if it fits, else a copy."""
    same_dtype = dtype is None or dtype is self.dtype
    if (
        same_dtype
        and not copy
        and _is_on(self, device)
        and _has_format(self, memory_format)
    ):
        return self
    copied: Tensor = core._to_copy(
        self,
        dtype=dtype,
        device=device,
        non_blocking=non_blocking,
        memory_format=memory_format,
    )
    return copied


def _has_format(tensor: Tensor, memory_format: MemoryFormat | None) -> bool:
    """Return True if the elements are in the order of a format."""
    if memory_format is None or memory_format is PRESERVE:
        return True
    strides = strides_of(tensor, memory_format, call=TO_COPY)
    if strides is None:
        return tensor.is_contiguous()
    return tensor.strides == strides


def _is_on(tensor: Tensor, device: Device | None) -> bool:
    """Return True if a tensor is on a device.

    A device of another type is not resolved, so that it need not be available.
    """
    if device is None or device is tensor.device:
        return True
    return device.type == tensor.device.type and resolve_device(device) is tensor.device


def contiguous(self: Tensor, memory_format: MemoryFormat) -> Tensor:
    """Return the tensor itself if its elements are in the format's order, else a copy.

    Raises:
        WrongOption: the format is for another number of dimensions, or is
            `preserve_format`, which defines no order.
    """
    if memory_format is PRESERVE:
        raise bad_option(
            "memory_format",
            str(memory_format),
            "a format that defines an order",
            call="core::contiguous",
        )
    if _has_format(self, memory_format):
        return self
    copied: Tensor = core.clone(self, memory_format=memory_format)
    return copied


def plan_clone(self: Tensor, memory_format: MemoryFormat | None) -> CallPlan:
    """Return the plan of a copy in the memory order of the format."""
    outputs = ((self.shape, self.dtype),)
    strides = strides_of(self, memory_format)
    return CallPlan(outputs, self.device, (self,), kernel="copy", strides=strides)


def fill(self: Tensor, value: Any) -> Tensor:
    """Write one number to every element; return `self`.

    Raises:
        WrongOption: elements of this dtype cannot hold the number.
    """
    check_fill(value, self.dtype, call="core::fill_")
    number = number_for(value, self.dtype)
    if not fast_fill(self, number) and self.device.type != "meta":
        table_for(self.device)["fill"](self, number)
    return self


@composite("fill_.Tensor(Tensor(a!) self, Tensor value) -> Tensor(a!)")
def fill_by_tensor(self: Tensor, value: Tensor) -> Tensor:
    """Write the number of a tensor without dimensions to every element.

    Its gradient is the sum of those of the elements.

    Raises:
        WrongOption: `value` has dimensions, or is complex and `self` is not.
    """
    result: Tensor = core.copy_(self, number_in(self, value))
    return result


def number_in(self: Tensor, value: Tensor) -> Tensor:
    """Return the number of a tensor without dimensions in the dtype of another.

    Raises:
        WrongOption: it has dimensions, or is complex and the other is not.
    """
    if value.shape:
        found = f"a tensor of shape {value.shape}"
        fits = "a number, or a tensor without dimensions"
        raise bad_option("value", found, fits)
    if value.dtype.is_complex and not self.dtype.is_complex:
        fits = f"a real number, as the elements are {self.dtype}"
        raise bad_option("value", f"a tensor of {value.dtype}", fits)
    converted: Tensor = core.to(value, dtype=self.dtype)
    return converted


def zero(self: Tensor) -> Tensor:
    """Write zero to every element; return `self`."""
    if fast_fill(self, 0):
        return self
    return fill(self, 0)


def equal(self: Tensor, other: Tensor) -> bool:
    """Return True if two tensors have one shape and equal elements; NaN never equals.

    Raises:
        DevicesDiffer: they are on different devices.
        NoData: one is on meta.
    """
    if self.device.type == "meta" or other.device.type == "meta":
        raise NoData(
            code="NoDataToRead", operator="core::equal", device="meta", asked="compares"
        )
    same_device(self, other, call="core::equal")
    if self.shape != other.shape:
        return False
    result = core.all(core.eq(self, other))
    return bool(result.item())


def local_scalar(self: Tensor) -> bool | int | float | complex:
    """Return the one element as a Python number.

    Raises:
        BadSize: the tensor does not have exactly one element.
        NoData: the tensor is on meta.
    """
    number: bool | int | float | complex = self.item()
    return number


# The operators that read elements and do not return them as a tensor.
_READS = ("data_dependent_output",)

OPERATORS = (
    Unstructured(
        "copy_(Tensor(a!) self, Tensor src, bool non_blocking=False) -> Tensor(a!)",
        {EXPLICIT: copy_into},
        says="Copy the elements of another tensor.",
    ),
    Unstructured(
        "_to_copy(Tensor self, *, ScalarType? dtype=None, Device? device=None, "
        "bool pin_memory=False, bool non_blocking=False, "
        "MemoryFormat? memory_format=None) -> Tensor",
        {EXPLICIT: to_copy},
    ),
    Unstructured(
        "to(Tensor(a) self, *, ScalarType? dtype=None, Device? device=None, "
        "bool non_blocking=False, bool copy=False, "
        "MemoryFormat? memory_format=None) -> Tensor(a)",
        {IMPLICIT: to},
    ),
    Unstructured(
        "contiguous(Tensor(a) self, *, "
        "MemoryFormat memory_format=contiguous_format) -> Tensor(a)",
        {IMPLICIT: contiguous},
        says="Return the tensor in row-major order, itself if it is contiguous.",
        only="method",
    ),
    Structured(
        "clone",
        "Tensor self, *, MemoryFormat? memory_format=None",
        plan_clone,
        saves_plans=True,
        says="Return a copy.",
    ),
    Unstructured(
        "fill_(Tensor(a!) self, Scalar value) -> Tensor(a!)",
        dict.fromkeys(MODULES, fill),
        says="Set every element to a number.",
    ),
    fill_by_tensor,
    Unstructured(
        "zero_(Tensor(a!) self) -> Tensor(a!)",
        dict.fromkeys(MODULES, zero),
        says="Set every element to 0.",
    ),
    Unstructured(
        "equal(Tensor self, Tensor other) -> bool",
        {EXPLICIT: equal},
        _READS,
        says="Return True if shapes and all elements are equal.",
    ),
    Unstructured(
        "_local_scalar_dense(Tensor self) -> Scalar", {EXPLICIT: local_scalar}, _READS
    ),
)
