"""Tensors: elements with a shape, a dtype and a device, on shared storages."""

from everyorder.runtime.tensors.construction import (
    empty_like_spec,
    empty_strided,
    empty_tensor,
    from_dlpack,
    from_numpy,
    resize_empty,
    view_of,
    wrap_number,
)
from everyorder.runtime.tensors.from_data import as_tensor, tensor
from everyorder.runtime.tensors.generator import (
    Generator,
    default_generator,
    manual_seed,
)
from everyorder.runtime.tensors.promotion import can_cast, promote_types, result_type
from everyorder.runtime.tensors.shape import Size
from everyorder.runtime.tensors.storage import Memory, Storage, register_memory
from everyorder.runtime.tensors.tensor import Tensor, install
from everyorder.runtime.tensors.tensor_impl import (
    array_of,
    ensure_place,
    flat_of,
    host_copy,
    place_of,
)

__all__ = [
    "Generator",
    "Memory",
    "Size",
    "Storage",
    "Tensor",
    "array_of",
    "as_tensor",
    "can_cast",
    "default_generator",
    "empty_like_spec",
    "empty_strided",
    "empty_tensor",
    "ensure_place",
    "flat_of",
    "from_dlpack",
    "from_numpy",
    "host_copy",
    "install",
    "manual_seed",
    "place_of",
    "promote_types",
    "register_memory",
    "resize_empty",
    "result_type",
    "tensor",
    "view_of",
    "wrap_number",
]
