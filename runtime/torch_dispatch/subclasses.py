"""Tensors of subclasses: their creation, and metadata that their handlers compute.

| function                 | elements                 | for classes                    |
|--------------------------|--------------------------|--------------------------------|
| `_make_subclass`         | those of another tensor  | that *are* a tensor            |
| `as_subclass`            | as `_make_subclass`      | the same; keeps the gradient   |
| `_make_wrapper_subclass` | none                     | that *have* tensors            |

With a *policy*, the handler of such a tensor computes shape, strides, device or layout:

| policy                                    | operators                               |
|-------------------------------------------|-----------------------------------------|
| `dispatch_sizes_strides_policy="strides"` | `is_contiguous`, `sym_stride`           |
| `dispatch_sizes_strides_policy="sizes"`   | these, and `dim`, `sym_size`,           |
|                                           | `sym_numel`, `sym_storage_offset`       |
| `dispatch_device`                         | `device`                                |
| `dispatch_layout`                         | `layout`                                |

How it works: when the first tensor of a class is created with a policy, this class gets
properties that call the operator of that name; tensors of other classes are not
affected. Modes, rules and contexts apply as to any other call. These operators are
registered here, with `set_`, which replaces the values that they read. Reading one
element of a handled tensor, for `item()`, calls an operator too.

Rules of creation:
- a tensor has a handler if its class has one when the tensor is created; later changes
  of the class have no effect; a class whose tensors cannot be created is refused
  (`runtime.torch_dispatch.wrappers`);
- the new tensor shares the elements of the other one; only that of `as_subclass` is its
  view for autograd; a tensor with a handler is detached by its handler, with all modes
  disabled;
- a wrapper does not allocate memory, so that it may have any size and device.

Rules of policies:
- the operators are in namespace `core`, also those in upstream's `prim`, which belongs
  to an interpreter that this runtime does not have; their results cannot have a
  gradient, so nothing is recorded, and `set_` does not have a formula;
- their kernels read slots, never the properties of a tensor: a property may call the
  operator again;
- an answer has the operator's return type, and numbers are not negative;
- if a handler returns None, the answer is the default, the value that the tensor was
  created with; NotImplemented is an error, as for every operator;
- where dispatch to Python is switched off the operator's kernel returns the default;
- an attribute that a class defines itself is not replaced: it can call `super()`.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from functools import wraps
from inspect import getattr_static
from math import prod
from operator import attrgetter, index
from sys import maxsize
from typing import Any, TypeVar

from everyorder.runtime.autograd.grad_edges import detached_alias, record_alias
from everyorder.runtime.autograd.install import kernels_of
from everyorder.runtime.autograd.methods import set_source
from everyorder.runtime.base.hooks import APPLY_POLICY, ELEMENT
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.kernel import direct, fallthrough
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.errors.torch_dispatch import SubclassError
from everyorder.runtime.operators.declare.handles import NAMESPACE, core
from everyorder.runtime.operators.install import ORIGIN
from everyorder.runtime.schema import parse_schema
from everyorder.runtime.schema.call_errors import checked, describe_value
from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    check_differentiable,
    parse_dtype,
)
from everyorder.runtime.tensors.keys import PYTHON, fresh_key_bits, handler_bits
from everyorder.runtime.tensors.shape import (
    check_bounds,
    contiguous_strides,
    is_contiguous,
    is_in_format,
    span,
)
from everyorder.runtime.tensors.storage import WrapperStorage
from everyorder.runtime.tensors.tensor import CPU, Tensor, alias_of, install
from everyorder.runtime.tensors.tensor_impl import ensure_place, instance_of
from everyorder.runtime.torch_dispatch.context import check_wrapped_here
from everyorder.runtime.torch_dispatch.modes import disable_current_modes
from everyorder.runtime.torch_dispatch.wrappers import check_class

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
    """Return a tensor of class `cls` on the elements of `data`, a leaf.

    `device_for_backend_keys` adds the keys of another device.

    Raises:
        SubclassError: `cls` is not a subclass, or `data` not a tensor.
        SubclassError: `data` has another class with a handler.
        ContextError: `data` has a handler in another context.
        HandlerError: the handler of `cls` is not a classmethod.
        UnfitValue: the device is invalid.
        UnfitValue: its dtype cannot have gradients.
        SubclassError: the policy is unknown.
    """
    result = _on_elements("_make_subclass", cls, data, device_for_backend_keys)
    set_policy(result, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _requiring(result, require_grad)


def _on_elements(
    call: str, cls: type[T], data: Tensor, device: Device | str | None = None
) -> T:
    """Return a tensor of class `cls` on the elements of `data`, without history.

    `call` names the called function in errors.
    """
    check_class(cls, call)
    check_slots(cls, call)
    if not isinstance(data, Tensor):
        raise SubclassError(
            code="NotATensorClass",
            call=call,
            argument="data",
            expected="a tensor",
            found=describe_value(data),
        )
    check_wrapped_here(data, call)
    with disable_current_modes():
        detached = detached_alias(data)
    if type(detached) is not Tensor and detached.key_bits & PYTHON:
        if not isinstance(detached, cls):
            raise SubclassError(
                code="AlreadyWrapped", cls=cls.__name__, found=type(detached).__name__
            )
        return detached
    bits = detached.key_bits
    if device is not None:
        bits = fresh_key_bits(_device(call, device).type)
    result: T = instance_of(
        cls,
        detached._shape,
        detached._dtype,
        detached._device,
        bits,
        ensure_place(detached),
    )
    return result


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
    """Return a tensor of class `cls` that has a shape, but not elements.

    Strides and offset count elements; without strides it is contiguous. `dtype`
    defaults to the default dtype and `device` to the CPU.

    Raises:
        SubclassError: `cls` is not a subclass of Tensor.
        SubclassError: it does not have a handler.
        HandlerError: its handler is not a classmethod.
        UnfitValue: a size, a stride or the offset is not an integer, a size is
            negative, or the device is invalid.
        BadSize: strides and offset are out of bounds.
        SubclassError: another memory format than `contiguous_format`, another
            layout than `strided`, or pinned memory.
        UnfitValue: its dtype cannot have gradients.
        SubclassError: the policy is unknown.
    """
    check_class(cls, "_make_wrapper_subclass")
    if not handler_bits(cls):
        raise SubclassError(code="NoHandler", cls=cls.__name__)
    _check_options(cls, memory_format, layout, pin_memory)
    shape = _numbers("size", size)
    if min(shape, default=0) < 0:
        raise UnfitValue(
            asked="_make_wrapper_subclass", fits="sizes of 0 and more", found=str(shape)
        )
    steps = contiguous_strides(shape)
    if strides is not None:
        steps = _numbers("strides", strides)
    offset = 0
    if storage_offset is not None:
        offset = _number("storage_offset", storage_offset)
    # The storage does not exist, so its size is not checked.
    check_bounds(shape, steps, offset, maxsize)
    where = _device("_make_wrapper_subclass", device)
    kind = DEFAULTS.real if dtype is None else parse_dtype(dtype)
    count = offset + span(shape, steps) if prod(shape) else offset
    storage = WrapperStorage(cls.__name__, where, kind, count)
    bits = fresh_key_bits(where.type)
    wrapper = instance_of(cls, shape, kind, where, bits, (storage, offset, steps))
    set_policy(wrapper, dispatch_sizes_strides_policy, dispatch_device, dispatch_layout)
    return _requiring(wrapper, requires_grad)


def as_subclass(tensor: Tensor, cls: type[T]) -> T:
    """Return a tensor of class `cls` on the elements of the tensor, a view of it.

    `cls` may be `Tensor` itself, for a tensor without a handler. Gradients pass through
    the view, as through `alias`.

    Raises:
        SubclassError, ContextError, HandlerError: as `_make_subclass`.
        WriteRefused: the tensor is a view that cannot follow its base.
    """
    result: T
    if cls is Tensor:
        if tensor.key_bits & PYTHON:
            raise SubclassError(
                code="StaysHandled", cls="Tensor", found=type(tensor).__name__
            )
        result = alias_of(tensor, tensor.key_bits)  # type: ignore[assignment]  # T is Tensor
    else:
        result = _on_elements("as_subclass", cls, tensor)
        set_policy(result, None, False, False)
    if result is not tensor:
        record_alias(tensor, result)
    return result


# The values of a wrapper's options that are allowed, besides None.
_OPTIONS = {
    "memory_format": ("contiguous_format", "preserve_format"),
    "layout": ("strided",),
    "pin_memory": ("False",),
}


def _check_options(cls: type, *options: Any) -> None:
    for (option, fits), value in zip(_OPTIONS.items(), options, strict=True):
        if value is not None and str(value) not in fits:
            raise SubclassError(
                code="UnsupportedForWrappers",
                cls=cls.__name__,
                option=option,
                found=str(value),
                fits=" or ".join(fits),
            )


def _numbers(argument: str, value: object) -> Ints:
    """Return a sequence of integers as a tuple.

    Raises:
        UnfitValue: `given` is not a sequence of integers.
    """
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise _unfit(f"a sequence of integers as `{argument}`", value)
    return tuple(_number(argument, each) for each in value)


def _number(argument: str, value: object) -> int:
    try:
        return int(index(value))  # type: ignore[arg-type]  # refused by a TypeError
    except TypeError:
        raise _unfit(f"integers as `{argument}`", value) from None


def _unfit(fits: str, value: object) -> UnfitValue:
    return UnfitValue(
        asked="_make_wrapper_subclass", fits=fits, found=describe_value(value)
    )


def _device(call: str, value: Device | str | None) -> Device:
    if value is None:
        return CPU
    if isinstance(value, str):
        return Device.parse(value)
    if not isinstance(value, Device):
        raise UnfitValue(
            asked=call, fits="a device, or its name", found=describe_value(value)
        )
    return value


def _requiring(tensor: T, requires_grad: bool) -> T:
    if requires_grad:
        check_differentiable(tensor._dtype)
        tensor._requires_grad = True
    return tensor


STRIDED = Layout.named("strided")


def layout(self: Tensor) -> Layout:
    """Return the layout of the elements: every tensor of this runtime is strided."""
    return STRIDED


# The operators of the policies, and the functions that their kernels call.
OPERATORS: tuple[tuple[str, Callable[[Tensor], Any]], ...] = (
    ("dim(Tensor self) -> int?", lambda self: len(self._shape)),
    ("sym_size(Tensor self) -> SymInt[]?", lambda self: [*self._shape]),
    ("sym_numel(Tensor self) -> SymInt?", lambda self: prod(self._shape)),
    ("sym_stride(Tensor self) -> SymInt[]?", lambda self: [*_strides(self)]),
    (
        "sym_storage_offset(Tensor self) -> SymInt?",
        lambda self: 0 if self._place is None else self._place[1],
    ),
    (
        "is_contiguous(Tensor self) -> bool?",
        lambda self: is_contiguous(self._shape, _strides(self)),
    ),
    ("device(Tensor self) -> Device?", attrgetter("_device")),
    ("layout(Tensor self) -> Layout?", layout),
)
_READ = {schema.partition("(")[0]: read for schema, read in OPERATORS}


def _strides(tensor: Tensor) -> Ints:
    place = tensor._place
    return contiguous_strides(tensor._shape) if place is None else place[2]


# The operator that replaces all of these values.
SET = "set_.source_Tensor(Tensor(a!) self, Tensor source) -> Tensor(a!)"
EVERYWHERE = "CompositeExplicitAutograd"


def install_metadata(library: Library) -> None:
    """Define these operators in a library of namespace `core`."""
    for schema, read in OPERATORS:
        name = schema.partition("(")[0]
        library.define(schema)
        library.impl(name, direct(read, f"{name}_explicit"), EVERYWHERE)
        for key in ("Autograd", "ADInplaceOrView"):
            library.impl(name, fallthrough, key)
    library.define(SET, tags=("inplace", "inplace_view"))
    name = SET.partition("(")[0]
    library.impl(name, direct(set_source, "set__source_Tensor_explicit"), EVERYWHERE)
    for key, kernel in kernels_of(parse_schema(f"{NAMESPACE}::{SET}")):
        library.impl(name, kernel, key)


def set_(self: Tensor, source: Tensor) -> Tensor:
    """Use the elements, shape and strides of `source`, sharing memory.

    Raises:
        NotReplaceable: the tensor is a view, or the tensors do not fit.
    """
    core.set__source_Tensor(self, source)
    return self


# The bits of a tensor's `_policy`; sizes include strides.
STRIDES, SIZES, DEVICE, LAYOUT = 1, 2, 4, 8
# Answers to these are numbers, or booleans.
COUNTS = STRIDES | SIZES

WORDS: dict[str | None, int] = {None: 0, "strides": STRIDES, "sizes": COUNTS}

# Kernels read these of a tensor with elements: with other values they would access
# memory outside of the tensor.
_KERNELS_READ = ("shape", "dtype", "key_bits")


def check_slots(cls: type, call: str) -> None:
    """Refuse a class that replaces an attribute that kernels read.

    Raises:
        SubclassError: the class defines such an attribute.
    """
    for name in _KERNELS_READ:
        # A property of a policy calls the handler, or else uses Tensor's attribute.
        own = getattr(cls, name)
        if own is not getattr(Tensor, name) and own is not ASKING.get(name):
            raise SubclassError(
                code="NotATensorClass",
                call=call,
                argument="cls",
                expected=f"a class that leaves `{name}` to Tensor, as kernels read it,",
                found=f"the class {cls.__name__}, which has its own",
            )


def set_policy(tensor: Tensor, sizes: str | None, device: bool, layout: bool) -> None:
    """Make the handler of a new tensor answer for its metadata.

    Raises:
        SubclassError: the policy is unknown.
    """
    if not isinstance(sizes, str | None) or sizes not in WORDS:
        raise SubclassError(
            code="UnknownPolicy",
            cls=type(tensor).__name__,
            found=str(sizes),
            known=tuple(word for word in WORDS if word is not None),
        )
    policy = WORDS[sizes] | (DEVICE if device else 0) | (LAYOUT if layout else 0)
    if policy:
        apply_policy(tensor, policy)


def apply_policy(tensor: Tensor, policy: int) -> None:
    """Make the handler of a tensor answer for the metadata in `policy`, a sum of
    bits.
    """
    kind = type(tensor)
    for name, asking in ASKING.items():
        # Replace only attributes inherited from Tensor, not those of a class in
        # between.
        if getattr_static(kind, name) is getattr_static(Tensor, name):
            setattr(kind, name, asking)
    tensor._policy = policy


def _answer(
    tensor: Tensor, bit: int, func: OperatorHandle, read: Callable[[Tensor], Any]
) -> Any:
    # The class may have tensors without a policy, and without a handler.
    if tensor.key_bits & PYTHON and getattr(tensor, "_policy", 0) & bit:
        answer = func(tensor)
        if answer is not None:
            if bit & COUNTS:
                _check_counts(tensor, func, answer)
            return answer
    return read(tensor)


def _check_counts(
    tensor: Tensor, func: OperatorHandle, answer: int | list[int]
) -> None:
    """Check that sizes, strides and the like are not negative.

    Raises:
        SubclassError: a number is negative.
    """
    numbers = answer if isinstance(answer, list) else [answer]
    if min(numbers, default=0) < 0:
        raise SubclassError(
            code="WrongMetadata",
            cls=type(tensor).__name__,
            operator=str(func),
            found=str(answer),
        )


def _policy_attribute(
    name: str, bit: int, operator: str, convert: Callable[[Any], Any] | None = None
) -> tuple[str, Any]:
    """Return the attribute `name` of a tensor for a class with a policy."""
    func, read = getattr(core, operator), _READ[operator]

    def ask(self: Tensor) -> Any:
        answer = _answer(self, bit, func, read)
        return answer if convert is None else convert(answer)

    own = getattr_static(Tensor, name)
    if isinstance(own, property):
        # Keep the setter: a value that Tensor refuses is refused here too.
        return name, property(ask, own.fset, doc=own.__doc__)
    return name, wraps(own)(ask)


def _policy_is_contiguous() -> tuple[str, Any]:
    """Return `is_contiguous`: by the strides for a format, else by the handler."""
    name, ask = _policy_attribute("is_contiguous", STRIDES, "is_contiguous")

    @wraps(Tensor.is_contiguous)
    def in_order(self: Tensor, memory_format: MemoryFormat | None = None) -> Any:
        if memory_format is None:
            return ask(self)
        return is_in_format(self.shape, self.strides, memory_format)

    return name, in_order


def _as_layout(answer: Layout | int) -> Layout:
    # Operators return codes as ints.
    return answer if isinstance(answer, Layout) else Layout(answer)


def element(tensor: Tensor) -> Any:
    """Return the one element, from the handler."""
    return core._local_scalar_dense(tensor)


def has_handler(tensor: Tensor) -> bool:
    """Return True if the tensor's class had a handler when the tensor was created."""
    return bool(tensor.key_bits & PYTHON)


# An interrupted import withdraws its registrations, so that it can be repeated.
with ExitStack() as undo:
    # It lives as long as the default dispatcher.
    LIBRARY = undo.enter_context(
        Library(NAMESPACE, "FRAGMENT", dispatcher=default_dispatcher(), origin=ORIGIN)
    )
    install_metadata(LIBRARY)
    install("set_", checked(set_))
    install("layout", property(layout))
    install("_make_subclass", staticmethod(checked(make_subclass)))
    install("_make_wrapper_subclass", staticmethod(checked(make_wrapper_subclass)))
    install("as_subclass", checked(as_subclass))
    install("_python_dispatch", property(has_handler))
    # The attributes for a class; all other properties of a tensor are computed from
    # these.
    ASKING: dict[str, Any] = dict(
        (
            _policy_attribute("shape", SIZES, "sym_size", tuple),
            _policy_attribute("ndim", SIZES, "dim"),
            _policy_attribute("dim", SIZES, "dim"),
            _policy_attribute("numel", SIZES, "sym_numel"),
            _policy_attribute("offset", SIZES, "sym_storage_offset"),
            _policy_attribute("storage_offset", SIZES, "sym_storage_offset"),
            _policy_attribute("strides", STRIDES, "sym_stride", tuple),
            _policy_is_contiguous(),
            _policy_attribute("device", DEVICE, "device"),
            _policy_attribute("layout", LAYOUT, "layout", _as_layout),
        )
    )
    APPLY_POLICY.set(apply_policy)
    ELEMENT.set(element)
    undo.pop_all()
