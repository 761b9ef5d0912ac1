"""Copiers: values copied for a call, so that the caller's own stay as they are.

True only here: what a copy of a tensor has of the original: the shape, the strides, the
offset and the keys, on a copy of its whole storage.  Tensors that share a storage share
its copy.  No copy requires grad.

Rule: what nobody can change (numbers, texts, dtypes, devices) is passed on as it is.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.keys import BACKEND_BITS, DispatchKey
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.arrays import claimed
from runtime.tensors.keys import keys_of
from runtime.tensors.making import place_on
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor

META = Device("meta")
_META_BIT = DispatchKey.Meta.bits & BACKEND_BITS
# Values that nobody can change.
_LASTING = (type(None), bool, int, float, complex, str, DType, Device)


class Copier:
    """Copies values; what it copies together stays together.

    `apart` gives each tensor a storage of its own; `meta` copies no elements; `given`
    are tensors that stand for others, by the identity of these.
    """

    def __init__(
        self,
        *,
        apart: bool = False,
        meta: bool = False,
        given: Mapping[int, Tensor] | None = None,
    ) -> None:
        self._apart = apart
        self._meta = meta
        self._tensors = dict(given or {})
        self._storages: dict[int, Storage] = {}

    def values(self, values: Sequence[Any]) -> list[Any]:
        """Copies of the values, in a new list."""
        return [self.value(each) for each in values]

    def value(self, value: Any) -> Any:
        """A copy of one value."""
        if isinstance(value, Tensor):
            return self.tensor(value)
        if isinstance(value, _LASTING):
            return value
        if type(value) in (list, tuple):
            return type(value)(map(self.value, value))
        if type(value) is dict:
            return {key: self.value(each) for key, each in value.items()}
        from copy import deepcopy

        return deepcopy(value)

    def tensor(self, tensor: Tensor) -> Tensor:
        """A copy of a tensor."""
        made = self._tensors.get(id(tensor))
        if made is None:
            storage, offset, strides = claimed(tensor)
            layout = tensor.shape, strides, offset, tensor.dtype
            bits = tensor.key_bits
            if self._meta:
                bits = _on_meta(bits, tensor.device)
            made = place_on(self._storage(storage), *layout, bits)
            if not self._meta:
                made.number = tensor.number
            self._tensors[id(tensor)] = made
        return made

    def _storage(self, storage: Storage) -> Storage:
        made = self._storages.get(id(storage))
        if made is None or self._apart:
            if self._meta:
                made = Storage(None, META, storage.dtype, storage.count)
            else:
                made = storage.copy()
            self._storages[id(storage)] = made
        return made


def _on_meta(bits: int, device: Device) -> int:
    """The keys of a tensor, had it no elements."""
    if bits == keys_of(device.type).bits:
        return keys_of("meta").bits
    return bits & ~BACKEND_BITS | _META_BIT
