"""The tensor: elements with a shape, a dtype, a device and a set of dispatch keys.

`runtime.tensors.tensor_impl` has its parts; this module has its conversions: to
numbers, arrays and text, copies and pickles.  Operators, autograd and dispatch to
Python install their methods with `install` when they are imported, such as `x + y`,
`x.sum()` and `x.backward()`.

`runtime.tensors.display` prints tensors.

Pickles and copies keep elements, shape, strides, dtype, device, keys and
`requires_grad`; history and version are lost.  Tensors that share a storage share one
again if they are pickled, or copied deeply, together; `copy.copy` shares the storage
itself.  All attributes that a subclass sets on the tensor, in a `__dict__` or in
`__slots__`, are kept, unless `__getstate__` and `__setstate__` replace this rule.

Rules:
- `Tensor(flat, shape, dtype, device, key_bits)` is for code that has the parts, on the
  path of every call: it checks nothing; see `runtime.tensors.construction`; programs
  call `Tensor(data)` or `Tensor(2, 3)`, which `runtime.tensors.from_data` fills;
- one function installs a name; a second installation replaces the first;
- neither text nor pickle calls a handler; reading a tensor determines from its class if
  it has a handler;
- keys are pickled only if they differ from those of a plain tensor, so that a plain
  tensor has the keys of its device when it is read.
"""

import warnings
from collections.abc import Callable, Iterator
from operator import index
from sys import maxsize, modules
from types import FunctionType
from typing import TYPE_CHECKING, Any, TypeVar

from everyorder.runtime.base.hooks import APPLY_POLICY
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.keys import KeySet
from everyorder.runtime.schema.annotation import register_annotation
from everyorder.runtime.schema.call_errors import describe_value, shortened
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.schema.types import DeviceType, ScalarTypeType, TensorType
from everyorder.runtime.tensors.display import formatted, text_of
from everyorder.runtime.tensors.dtype_info import (
    NUMBERS,
    check_differentiable,
    itemsize,
    parse_dtype,
)
from everyorder.runtime.tensors.interop import (
    array_interface,
    capsule,
    cuda_array_interface,
    device_code,
    forced_array,
    python_numbers,
    shared_array,
)
from everyorder.runtime.tensors.keys import (
    HANDLED,
    PYTHON,
    UNHANDLED,
    disabled,
    fresh_key_bits,
    init_from_data,
    keys_of,
    report_read,
)
from everyorder.runtime.tensors.shape import check_bounds
from everyorder.runtime.tensors.storage import Storage, WrapperStorage
from everyorder.runtime.tensors.tensor_impl import (
    TensorBase,
    contains,
    element,
    ensure_place,
    instance_of,
    whole_number,
)

if TYPE_CHECKING:
    import numpy as np


# The defaults of the constructor, compared by identity to detect omitted arguments.
FLOAT32 = DType.named("float32")
CPU = Device("cpu")


def undirected(
    func: Callable[..., Any], types: Any, args: Any = (), kwargs: Any = None
) -> Any:
    """Call the function: a `__torch_function__` of a class that wants none."""
    return func(*args, **(kwargs or {}))


class Tensor(TensorBase):
    """A tensor; created by `tensor` and by operators."""

    __slots__ = ()

    # A subclass that defines a handler receives every operator.
    __torch_dispatch__: Any = disabled

    # NumPy's operators defer `array + tensor` to the tensor.
    __array_priority__ = 1000

    def __new__(cls, *args: Any, **options: Any) -> Any:
        """Return a tensor without elements, which `__init__` sets.

        A class whose own `__new__` passes a tensor here gets one on its elements, as by
        `_make_subclass`.
        """
        if cls.__new__ is not Tensor.__new__ and args and isinstance(args[0], Tensor):
            return cls._make_subclass(cls, *args, **options)
        return object.__new__(cls)

    def __init__(
        self,
        flat: Any = None,
        shape: Any = (),
        dtype: Any = FLOAT32,
        device: Any = CPU,
        key_bits: int = -1,
        *more: int,
    ) -> None:
        if key_bits < 0 or type(flat) is int:  # not its parts
            arguments = (flat, shape, dtype, device, key_bits)
            defaults = Tensor.__init__.__defaults__ or ()
            pairs = zip(arguments, defaults, strict=True)
            init_from_data(
                self, *[v for v, default in pairs if v is not default], *more
            )
            return
        self._flat = flat
        self._shape = shape
        self._dtype = dtype
        self._device = device
        self.key_bits = key_bits
        self._place = None
        self._requires_grad = False
        self._history = None
        self.number = None

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Any,
        args: Any = (),
        kwargs: Any = None,
    ) -> Any:
        """Call the function.  This runtime calls functions directly, never this."""
        return func(*args, **(kwargs or {}))

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        own = cls.__dict__.get("__torch_function__", undirected)
        if getattr(own, "__func__", own) is not undirected:
            warnings.warn(
                f"`{cls.__name__}.__torch_function__` is never called: functions of "
                "tensors are not handed to classes.  Define `__torch_dispatch__`, "
                "which gets the operators.",
                stacklevel=2,
            )
        if cls.__init__ is Tensor.__init__:
            # `__new__` creates its tensors; Python calls this `__init__` after it.
            cls.__init__ = init_from_data  # type: ignore[method-assign,assignment]  # takes the arguments of `__new__`

    def with_keyset(self, keyset: KeySet) -> "Tensor":
        """Return a tensor with these keys on the same data, for sparse and others."""
        other = alias_of(self, keyset.bits)
        other._requires_grad = self._requires_grad
        other.number = self.number
        return other

    # Gradients: the values without autograd, which installs its methods over these.

    @property
    def requires_grad(self) -> bool:
        """Return True if autograd records operations on the tensor."""
        return self._requires_grad

    @requires_grad.setter
    def requires_grad(self, requires_grad: bool) -> None:
        self.requires_grad_(requires_grad)

    def requires_grad_(self, requires_grad: bool = True) -> "Tensor":
        """Set `requires_grad`.

        Raises:
            UnfitValue: tensors of the dtype cannot have gradients.
        """
        if requires_grad:
            check_differentiable(self.dtype)
        self._requires_grad = bool(requires_grad)
        return self

    @property
    def grad(self) -> "Tensor | None":
        """Return the gradient accumulated by `backward`; None before."""
        return None

    @grad.setter
    def grad(self, gradient: "Tensor | None") -> None:
        assert gradient is None, "autograd, which stores gradients, is not loaded"

    @property
    def grad_fn(self) -> Any:
        """Return the graph node that computed the tensor; None for a leaf."""
        return None

    @property
    def is_leaf(self) -> bool:
        """Return True if the tensor was not computed under autograd."""
        return True

    # Conversions of the elements.

    def numpy(self, *, force: bool = False) -> "np.ndarray[Any, Any]":
        """Return the elements as an array that shares memory; `force`: or a copy.

        Raises:
            NoData: the tensor is on `meta`.
            NotShareable: without `force`, the elements are in a device's memory, or the
                tensor requires grad.
            SubclassError: the class of the tensor has a handler.
        """
        return forced_array(self) if force else shared_array(self, "numpy()")

    def item(self) -> Any:
        """Return the one element as a Python number.

        Raises:
            NoData: the tensor is on `meta`.
            BadSize: the tensor does not have exactly one element.
        """
        return self.number if self.number is not None else element(self, "item()")

    def tolist(self) -> Any:
        """Return the elements as nested lists, or the number of a 0-dim tensor."""
        return python_numbers(self)

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> "np.ndarray[Any, Any]":
        import numpy as np

        return np.array(shared_array(self, "__array__()"), dtype=dtype, copy=copy)

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return array_interface(self)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        return cuda_array_interface(self)

    def __dlpack__(self, **options: Any) -> Any:
        return capsule(self, **options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_code(self)

    def __len__(self) -> int:
        if not self.shape:
            raise UnfitValue(code="NoLength", asked="len()")
        report_read(self, "len()")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if not self.shape:
            raise UnfitValue(code="NoLength", asked="iter()")
        report_read(self, "iter()")
        return (self[index] for index in range(self.shape[0]))

    def __contains__(self, value: object) -> bool:
        """Return True if an element equals the number, or its place in a tensor.

        A tensor or array is compared with this one as by `==`.

        Raises:
            UnfitValue: the value is neither a number, a tensor nor an array.
            ShapesDoNotFit: the two do not broadcast.
        """
        return contains(self, value)

    def __bool__(self) -> bool:
        return bool(element(self, "bool()"))

    def __int__(self) -> int:
        return int(element(self, "int()"))  # type: ignore[arg-type]  # complex raises

    def __float__(self) -> float:
        return float(element(self, "float()"))  # type: ignore[arg-type]  # complex raises

    def __complex__(self) -> complex:
        return complex(element(self, "complex()"))

    def __index__(self) -> int:
        return whole_number(self)

    def __format__(self, spec: str) -> str:
        return formatted(self, spec)

    def __repr__(self) -> str:
        return text_of(self, _plain)

    # By identity, although operators install an elementwise `==`.
    __hash__ = object.__hash__

    def __reduce__(self) -> tuple[Any, ...]:
        return reduced(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> "Tensor":
        return deep_copy(self, memo)


register_annotation(Tensor, TensorType)
register_annotation(Device, DeviceType)
register_annotation(DType, ScalarTypeType)


def _plain(tensor: Tensor) -> Tensor:
    """Return a tensor on the same elements without its handler, to be printed."""
    return alias_of(tensor, tensor.key_bits & UNHANDLED)


def alias_of(tensor: Tensor, key_bits: int) -> Tensor:
    """Return a tensor with these keys on the same elements, without history."""
    place = tensor._place or ensure_place(tensor)
    alias = Tensor(tensor._flat, tensor._shape, tensor._dtype, tensor._device, key_bits)
    alias._place = place
    return alias


# The installed functions and properties, by name.
METHODS: dict[str, Callable[..., Any] | property] = {}


def install(name: str, function: Callable[..., Any] | property) -> None:
    """Make `function` the method, property or operator `name` of every tensor.

    Pickles name a function by its place.  One that is not in its module, because a
    factory made it, is in `Tensor`.
    """
    METHODS[name] = function
    setattr(Tensor, name, function)
    if isinstance(function, FunctionType) and not _is_in_its_module(function):
        function.__module__ = __name__
        function.__qualname__ = f"{Tensor.__name__}.{name}"


def _is_in_its_module(function: FunctionType) -> bool:
    module = modules.get(function.__module__)  # generated functions have none
    return getattr(module, function.__qualname__, None) is function


T = TypeVar("T", bound=Tensor)
Ints = tuple[int, ...]

# Python's own slots.
_NO_STATE = frozenset({"__dict__", "__weakref__"})


def reduced(tensor: Tensor) -> tuple[Any, ...]:
    """Return the parts of a tensor and its attributes for `pickle` and `copy`.

    The handler is not stored: the class determines it when the tensor is read.
    """
    storage, offset, strides = ensure_place(tensor)
    bits = tensor.key_bits & ~HANDLED
    plain = bits == keys_of(storage.device.type).bits
    keys = None if plain else KeySet.from_bits(bits)
    # A tensor whose keys were set explicitly lacks a policy.
    policy = getattr(tensor, "_policy", 0) if tensor.key_bits & PYTHON else 0
    parts = (
        *(tensor._shape, strides, offset, tensor._dtype.name, keys),
        *(tensor._requires_grad, tensor.number),
        *([policy] if policy else []),
    )
    state = _state_of(tensor)
    call = (restored, (type(tensor), storage, *parts))
    return (*call, state) if state is not None else call


def deep_copy(tensor: T, memo: dict[int, Any]) -> T:
    """Return a tensor on a copy of the storage, with copies of gradient and attributes.

    Raises:
        NotShareable: the tensor was computed under autograd.
    """
    from copy import deepcopy

    if not tensor.is_leaf:
        raise NotShareable(
            code="NotALeaf", asked="deepcopy()", operator=tensor.grad_fn.operator
        )
    restore, (kind, storage, *parts), *state = reduced(tensor)
    copied: T = restore(kind, deepcopy(storage, memo), *parts)
    memo[id(tensor)] = copied
    for each in state:
        _set_state(copied, deepcopy(each, memo))
    if tensor.grad is not None:
        copied.grad = deepcopy(tensor.grad, memo)
    return copied


def _state_of(tensor: Tensor) -> Any:
    """Return the attributes of a subclass in `pickle`'s form; None without any.

    The form is a dict, or a pair of a dict (or None) and the assigned slots.
    """
    kind = type(tensor)
    if kind.__getstate__ is not object.__getstate__:
        return kind.__getstate__(tensor)
    attributes = getattr(tensor, "__dict__", None) or None
    slots = {
        name: getattr(tensor, name) for name in _slots_of(kind) if hasattr(tensor, name)
    }
    return (attributes, slots) if slots else attributes


def _slots_of(kind: type) -> list[str]:
    """Return the slots of the classes below `Tensor`, with private names mangled."""
    names = []
    for each in kind.__mro__:
        if each is Tensor:
            break
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in _NO_STATE:
                hidden = name.startswith("__") and not name.endswith("__")
                owner = each.__name__.lstrip("_")
                names.append(f"_{owner}{name}" if hidden and owner else name)
    return names


def _set_state(tensor: Any, state: Any) -> None:
    """Restore the state of `_state_of` on a tensor."""
    # Looked up on the class: the tensor may forward lookups to a wrapped object, which
    # it does not have yet.
    if hasattr(type(tensor), "__setstate__"):
        tensor.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        tensor.__dict__.update(attributes)
    own = _slots_of(type(tensor)) if slots else ()
    for name, value in (slots or {}).items():
        # The slots of `Tensor` locate the elements: a state must not set them.
        if name not in own:
            raise _unfit(shortened(name), f"the slots of `{type(tensor).__name__}`")
        setattr(tensor, name, value)


def _unfit(value: str, fits: str) -> UnfitValue:
    return UnfitValue(asked="reading a pickled tensor", found=value, fits=fits)


def _check_parts(kind: Any, storage: Any, keys: Any, number: Any, shape: Ints) -> None:
    """Refuse pickled values that are not parts of a tensor.  Raises `UnfitValue`."""
    if not isinstance(kind, type) or not issubclass(kind, Tensor):
        raise _unfit(shortened(kind), "a class of tensors")
    if not isinstance(storage, Storage):
        raise _unfit(describe_value(storage), "a storage")
    if not (keys is None or isinstance(keys, KeySet)):
        raise _unfit(describe_value(keys), "a set of keys")
    if number is not None and (shape or not isinstance(number, NUMBERS)):
        raise _unfit(
            f"{describe_value(number)} for one of shape {shape}",
            "a number for a tensor without dimensions",
        )


def restored(
    kind: type[Tensor],
    storage: Storage,
    shape: Ints,
    strides: Ints,
    offset: int,
    dtype: str,
    keys: KeySet | None,
    requires_grad: bool,
    number: Any,
    policy: int = 0,
) -> Tensor:
    """Return a tensor from pickled parts.

    Raises:
        UnfitValue: a value is not a part of a tensor.
        BadSize: shape and strides exceed the storage.
    """
    # The pickle may be of an untrusted file.
    shape, strides = tuple(map(index, shape)), tuple(map(index, strides))
    offset = index(offset)
    _check_parts(kind, storage, keys, number, shape)
    device, parsed = storage.device, parse_dtype(dtype)
    # A wrapper may show more elements than its storage counts: nothing is read.
    bare = isinstance(storage, WrapperStorage)
    count = maxsize if bare else storage.nbytes() // itemsize(parsed)
    check_bounds(shape, strides, offset, count)
    if requires_grad:
        check_differentiable(parsed)
    bits = fresh_key_bits(device.type) if keys is None else keys.bits
    result = instance_of(kind, shape, parsed, device, bits, (storage, offset, strides))
    result._requires_grad = bool(requires_grad)
    result.number = number
    # A class without a handler lacks a policy; so does `Tensor` itself.
    if policy and result.key_bits & PYTHON:
        APPLY_POLICY.get()(result, index(policy))
    return result
