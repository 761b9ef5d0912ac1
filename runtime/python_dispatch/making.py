"""Making tensors of classes that handle operators: with elements, or around something.

| way                      | elements                 | for classes                    |
|--------------------------|--------------------------|--------------------------------|
| `_make_subclass`         | those of another tensor  | that *are* a tensor            |
| `as_subclass`            | as `_make_subclass`      | the same, said by the tensor   |
| `_make_wrapper_subclass` | none                     | that *have* tensors            |

Rules:
- whether the class has a handler is asked when a tensor is made, and never again; what
  no tensor can be made of is refused (`runtime.python_dispatch.wrappers`);
- the new tensor shares the elements of the other one and is not its view; a tensor with
  a handler is detached by its handler, all modes kept out;
- a wrapper allocates nothing, so that its size and its device may be any.
"""

from collections.abc import Iterable, Sequence
from math import prod
from operator import index
from sys import maxsize
from typing import Any, TypeVar

from runtime.autograd.history import sharing
from runtime.errors.python_dispatch import SubclassError
from runtime.errors.tensor import UnfitValue
from runtime.python_dispatch.context import check_wrapped_here
from runtime.python_dispatch.modes import disable_current_modes
from runtime.python_dispatch.policies import check_slots, set_policy
from runtime.python_dispatch.wrappers import check_class
from runtime.schema.calls import checked, described
from runtime.schema.codes import Device, DType
from runtime.tensors.arrays import claimed, instance_of
from runtime.tensors.elements import supported
from runtime.tensors.keys import PYTHON, fresh_key_bits, handler_bits
from runtime.tensors.shape import check_bounds, contiguous_strides, span
from runtime.tensors.storage import WrapperStorage
from runtime.tensors.tensor import CPU, FLOAT32, Tensor, install

T = TypeVar("T", bound=Tensor)
Ints = tuple[int, ...]


def make_subclass(
    cls: type[T],
    data: Tensor,
    require_grad: bool = False,
    *,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
    device_for_backend_keys: Device | str | None = None,
) -> T:
    """A tensor of class `cls` on the elements of `data`, a leaf.

    `device_for_backend_keys` gives it the keys of another device.  For the policy see
    `runtime.python_dispatch.policies`.

    Raises:
        SubclassError: `cls` is no subclass, or `data` no tensor.
        SubclassError: `data` is of another class with a handler.
        ContextError: `data` has a handler in another context.
        HandlerError: the handler of `cls` is no classmethod.
        UnfitValue: the device is none.
        UnfitValue: its dtype has no gradient.
        SubclassError: the policy is none.
    """
    check_class(cls, "_make_subclass")
    check_slots(cls, "_make_subclass")
    if not isinstance(data, Tensor):
        raise SubclassError(
            code="NotATensorClass",
            call="_make_subclass",
            argument="data",
            expected="a tensor",
            found=described(data),
        )
    check_wrapped_here(data, "_make_subclass")
    with disable_current_modes():
        detached = sharing(data)
    if type(detached) is not Tensor and detached.key_bits & PYTHON:
        if not isinstance(detached, cls):
            raise SubclassError(
                code="AlreadyWrapped", cls=cls.__name__, found=type(detached).__name__
            )
        made: T = detached
    else:
        bits = detached.key_bits
        if device_for_backend_keys is not None:
            where = _device("_make_subclass", device_for_backend_keys)
            bits = fresh_key_bits(where.type)
        made = instance_of(
            cls,
            detached._shape,
            detached._dtype,
            detached._device,
            bits,
            claimed(detached),
        )
    set_policy(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _requiring(made, require_grad)


def make_wrapper_subclass(
    cls: type[T],
    size: Sequence[int],
    strides: Sequence[int] | None = None,
    storage_offset: int | None = None,
    memory_format: Any = None,
    dtype: DType | None = None,
    layout: Any = None,
    device: Device | str | None = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    dispatch_sizes_strides_policy: str | None = None,
    dispatch_device: bool = False,
    dispatch_layout: bool = False,
) -> T:
    """A tensor of class `cls` that has a shape, and no elements.

    Strides and offset count elements; without strides it is contiguous.  `dtype` is
    float32 and `device` the CPU unless they are given.

    Raises:
        SubclassError: `cls` is no subclass of Tensor.
        SubclassError: it has no handler.
        HandlerError: its handler is no classmethod.
        UnfitValue: a size, a stride or the offset is no integer, or a size negative, or
            the device none.
        BadSize: what strides and the offset may not be.
        SubclassError: another memory format than `contiguous_format`, another
            layout than `strided`, or pinned memory.
        UnfitValue: its dtype has no gradient.
        SubclassError: the policy is none.
    """
    check_class(cls, "_make_wrapper_subclass")
    if not handler_bits(cls):
        raise SubclassError(code="NoHandler", cls=cls.__name__)
    _check_options(cls, memory_format, layout, pin_memory)
    shape = _numbers("size", size)
    if min(shape, default=0) < 0:
        raise UnfitValue(
            code="UnfitValue",
            asked="_make_wrapper_subclass",
            fits="sizes of 0 and more",
            found=str(shape),
        )
    steps = contiguous_strides(shape)
    if strides is not None:
        steps = _numbers("strides", strides)
    offset = 0
    if storage_offset is not None:
        offset = _number("storage_offset", storage_offset)
    # Of the size of the storage nothing is asked: there is none.
    check_bounds(shape, steps, offset, maxsize)
    where = _device("_make_wrapper_subclass", device)
    kind = FLOAT32 if dtype is None else supported(dtype)
    count = offset + span(shape, steps) if prod(shape) else offset
    storage = WrapperStorage(cls.__name__, where, kind, count)
    bits = fresh_key_bits(where.type)
    made = instance_of(cls, shape, kind, where, bits, (storage, offset, steps))
    set_policy(made, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _requiring(made, requires_grad)


def as_subclass(tensor: Tensor, cls: type[T]) -> T:
    """The elements of the tensor as a tensor of class `cls`.

    The new tensor is a leaf.  Raises as `_make_subclass`.
    """
    return make_subclass(cls, tensor)


# What a wrapper can be made with, besides None.
_OPTIONS = {
    "memory_format": ("contiguous_format", "preserve_format"),
    "layout": ("strided",),
    "pin_memory": ("False",),
}


def _check_options(cls: type, *given: Any) -> None:
    for (option, fits), value in zip(_OPTIONS.items(), given, strict=True):
        if value is not None and str(value) not in fits:
            raise SubclassError(
                code="UnsupportedForWrappers",
                cls=cls.__name__,
                option=option,
                found=str(value),
                fits=" or ".join(fits),
            )


def _numbers(argument: str, given: object) -> Ints:
    """Several integers, as they may be given.  Raises `UnfitValue`."""
    if isinstance(given, (str, bytes)) or not isinstance(given, Iterable):
        raise _unfit(f"a sequence of integers as `{argument}`", given)
    return tuple(_number(argument, each) for each in given)


def _number(argument: str, given: object) -> int:
    try:
        return int(index(given))  # type: ignore[arg-type]  # refused by a TypeError
    except TypeError:
        raise _unfit(f"integers as `{argument}`", given) from None


def _unfit(fits: str, given: object) -> UnfitValue:
    return UnfitValue(
        code="UnfitValue",
        asked="_make_wrapper_subclass",
        fits=fits,
        found=described(given),
    )


def _device(call: str, given: Device | str | None) -> Device:
    if given is None:
        return CPU
    if isinstance(given, str):
        return Device.parse(given)
    if not isinstance(given, Device):
        raise UnfitValue(
            code="UnfitValue",
            asked=call,
            fits="a device, or its name",
            found=described(given),
        )
    return given


def _requiring(made: T, requires_grad: bool) -> T:
    if requires_grad:
        if not (made._dtype.is_floating or made._dtype.is_complex):
            raise UnfitValue(code="NoGradient", dtype=str(made._dtype))
        made._requires_grad = True
    return made


def has_handler(tensor: Tensor) -> bool:
    """Whether the tensor's class had a handler when the tensor was made."""
    return bool(tensor.key_bits & PYTHON)


install("_make_subclass", staticmethod(checked(make_subclass)))
install("_make_wrapper_subclass", staticmethod(checked(make_wrapper_subclass)))
install("as_subclass", checked(as_subclass))
install("_python_dispatch", property(has_handler, doc=has_handler.__doc__))
