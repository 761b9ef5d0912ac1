"""Pickling and copying tensors.

True only here: what of a tensor survives.  Its elements, shape, strides, dtype, device,
keys and `requires_grad` do; its history and its version do not.  Tensors that share a
storage share one again if they are pickled, or copied deeply, together; `copy.copy`
shares the storage itself.

Of a subclass everything that it put on the tensor survives, in a `__dict__` or in
`__slots__`, the tensors that a wrapper wraps among it; no handler is asked.  A class
that has a `__getstate__` and a `__setstate__` says itself what survives.

Rules:
- the keys are written down only where they are not those of a plain tensor, so that a
  plain tensor gets the keys that its device has where it is read; and what a handler
  tells of its metadata only where it tells any;
- whether there is a handler is decided anew where the tensor is read, by its class.
"""

from operator import index
from sys import maxsize
from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import NoGradient, NotALeaf, UnfitValue
from runtime.keys import KeySet
from runtime.schema.excerpt import described, shortened
from runtime.tensors.arrays import claimed
from runtime.tensors.elements import itemsize, supported
from runtime.tensors.handled import HANDLED, PYTHON
from runtime.tensors.instance import POLICIES, instance_of
from runtime.tensors.keys_of import fresh_key_bits, keys_of
from runtime.tensors.shape import check_bounds
from runtime.tensors.storage import Storage
from runtime.tensors.wrapper import WrapperStorage

if TYPE_CHECKING:
    from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]

# What a wrapped number can be.
_NUMBERS = (bool, int, float, complex)

# Slots that are Python's own.
_NO_STATE = frozenset({"__dict__", "__weakref__"})


def reduced(tensor: "Tensor") -> tuple[Any, ...]:
    """The parts of a tensor, for `pickle` and `copy`; a subclass keeps its attributes.

    Its class decides anew whether it has a handler, and belongs to who reads it.
    """
    storage, offset, strides = claimed(tensor)
    bits = tensor.key_bits & ~HANDLED
    plain = bits == keys_of(storage.device.type).bits
    keys = None if plain else KeySet.from_bits(bits)
    parts = (
        *(tensor._shape, strides, offset, tensor._dtype.name, keys),
        *(tensor._requires_grad, tensor.number),
        *_policy_of(tensor),
    )
    state = _state_of(tensor)
    made = (_restored, (type(tensor), storage, *parts))
    return (*made, state) if state is not None else made


def deep_copy(tensor: "Tensor", memo: dict[int, Any]) -> "Tensor":
    """A tensor on a copy of the storage, the gradient and all attributes copied too.

    Raises `NotALeaf` for a tensor that was computed under autograd.
    """
    from copy import deepcopy

    if not tensor.is_leaf:
        raise NotALeaf(asked="deepcopy()", operator=tensor.grad_fn.operator)
    restore, (kind, storage, *parts), *state = reduced(tensor)
    made: Tensor = restore(kind, deepcopy(storage, memo), *parts)
    memo[id(tensor)] = made
    for each in state:
        _give(made, deepcopy(each, memo))
    if tensor.grad is not None:
        made.grad = deepcopy(tensor.grad, memo)
    return made


def _policy_of(tensor: "Tensor") -> tuple[int, ...]:
    # Whose keys were set by hand has none.
    policy = getattr(tensor, "_policy", 0) if tensor.key_bits & PYTHON else 0
    return (policy,) if policy else ()


def _state_of(tensor: "Tensor") -> Any:
    """What a class put on a tensor, in the form that `pickle` knows; None for nothing.

    That is a dict, or a pair of one (or None) and of the slots that are filled.
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
    """The slots that the classes below `Tensor` brought, as Python names them."""
    found = []
    for each in kind.__mro__:
        if "key_bits" in each.__dict__:
            # It is `Tensor`.
            break
        slots = each.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if name not in _NO_STATE:
                hidden = name.startswith("__") and not name.endswith("__")
                owner = each.__name__.lstrip("_")
                found.append(f"_{owner}{name}" if hidden and owner else name)
    return found


def _give(made: "Tensor", state: Any) -> None:
    """Put the state of `_state_of` on a tensor."""
    # Of the class: the tensor may answer for what it wraps, which it has not yet.
    if hasattr(type(made), "__setstate__"):
        restored: Any = made
        restored.__setstate__(state)
        return
    attributes, slots = state if isinstance(state, tuple) else (state, None)
    if attributes:
        made.__dict__.update(attributes)
    own = _slots_of(type(made)) if slots else ()
    for name, value in (slots or {}).items():
        # Those of every tensor say where its elements are: they are not for the taking.
        if name not in own:
            raise _unfit(shortened(name), f"the slots of `{type(made).__name__}`")
        setattr(made, name, value)


def _unfit(found: str, fits: str) -> UnfitValue:
    return UnfitValue(asked="reading a pickled tensor", found=found, fits=fits)


def _check_parts(kind: Any, storage: Any, keys: Any, number: Any, shape: Ints) -> None:
    """Whether these are parts of a tensor.  Raises `UnfitValue`."""
    if not isinstance(kind, type) or "key_bits" not in dir(kind):
        raise _unfit(shortened(kind), "a class of tensors")
    if not isinstance(storage, Storage):
        raise _unfit(described(storage), "a storage")
    if not (keys is None or isinstance(keys, KeySet)):
        raise _unfit(described(keys), "a set of keys")
    if number is not None and (shape or not isinstance(number, _NUMBERS)):
        raise _unfit(
            f"{described(number)} for one of shape {shape}",
            "a number for a tensor without dimensions",
        )


def _restored(
    kind: "type[Tensor]",
    storage: Storage,
    shape: Ints,
    strides: Ints,
    offset: int,
    dtype: str,
    keys: KeySet | None,
    requires_grad: bool,
    number: Any,
    policy: int = 0,
) -> "Tensor":
    # What is loaded may have been written by anybody.
    shape, strides = tuple(map(index, shape)), tuple(map(index, strides))
    offset = index(offset)
    _check_parts(kind, storage, keys, number, shape)
    device, known = storage.device, supported(dtype)
    # A wrapper may show more than there would be: nothing is read.
    bare = isinstance(storage, WrapperStorage)
    count = maxsize if bare else storage.nbytes() // itemsize(known)
    check_bounds(shape, strides, offset, count)
    if requires_grad and not (known.is_floating or known.is_complex):
        raise NoGradient(dtype=dtype)
    bits = fresh_key_bits(device.type) if keys is None else keys.bits
    made = instance_of(kind, shape, known, device, bits, (storage, offset, strides))
    made._requires_grad = bool(requires_grad)
    made.number = number
    # A class without handler is not made to ask one, least of all the one of all.
    if policy and made.key_bits & PYTHON:
        POLICIES[-1](made, index(policy))
    return made
