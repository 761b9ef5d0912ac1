"""Pickling and copying tensors.

True only here: what of a tensor survives.  Its elements, shape, strides, dtype, device,
keys and `requires_grad` do; its history and its version do not.  Tensors that share a
storage share one again if they are pickled, or copied deeply, together; `copy.copy`
shares the storage itself.

Rules: the keys are written down only where they are not those of a plain tensor, so
that a plain tensor gets the keys that its device has where it is read.
"""

from operator import index
from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import NoGradient, NotALeaf
from runtime.keys import KeySet
from runtime.schema.codes import DType
from runtime.tensors.arrays import claimed
from runtime.tensors.elements import itemsize
from runtime.tensors.keys_of import fresh_key_bits, keys_of
from runtime.tensors.shape import check_bounds
from runtime.tensors.storage import Storage

if TYPE_CHECKING:
    from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]


def reduced(tensor: "Tensor") -> tuple[Any, ...]:
    """The parts of a tensor, for `pickle` and `copy`."""
    storage, offset, strides = claimed(tensor)
    plain = tensor.key_bits == keys_of(tensor.device.type).bits
    keys = None if plain else tensor.keyset
    parts = (tensor.shape, strides, offset, tensor.dtype.name, keys)
    return _restored, (
        type(tensor),
        storage,
        *parts,
        tensor.requires_grad,
        tensor.number,
    )


def deep_copy(tensor: "Tensor", memo: dict[int, Any]) -> "Tensor":
    """A tensor on a copy of the storage, the gradient copied too.

    Raises `NotALeaf` for a tensor that was computed under autograd.
    """
    from copy import deepcopy

    if not tensor.is_leaf:
        raise NotALeaf(asked="deepcopy()", operator=tensor.grad_fn.operator)
    restore, (kind, storage, *parts) = reduced(tensor)
    made: Tensor = restore(kind, deepcopy(storage, memo), *parts)
    memo[id(tensor)] = made
    if tensor.grad is not None:
        made.grad = deepcopy(tensor.grad, memo)
    return made


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
) -> "Tensor":
    # What is loaded may have been written by anybody.
    device, known = storage.device, DType.named(dtype)
    shape, strides = tuple(map(index, shape)), tuple(map(index, strides))
    check_bounds(shape, strides, offset, storage.nbytes // itemsize(known))
    if requires_grad and not (known.is_floating or known.is_complex):
        raise NoGradient(dtype=dtype)
    bits = fresh_key_bits(device.type) if keys is None else keys.bits
    made = kind(None, shape, known, device, bits)
    made._place = storage, offset, strides
    made._requires_grad = requires_grad
    made.number = number
    return made
