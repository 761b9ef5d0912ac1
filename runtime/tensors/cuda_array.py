"""Tensors of other libraries' arrays on a CUDA device, by the CUDA array interface.

True only here: which device memory of others becomes a tensor's own, and what is copied
(the interface, version 3: numba's documentation of it).  What tensors tell others of
themselves by it is in `runtime.tensors.interop`.

Rules: the memory of device type `cuda` has a method `adopted(address, nbytes, owner,
stream)`, which gives the bytes as an array and the index of their device; the owner
lives as long as the array.
"""

from math import prod
from typing import Any

from runtime.errors.cuda import MaskedArray
from runtime.schema.device import Device
from runtime.tensors.elements import dtype_of
from runtime.tensors.making import empty_tensor, from_flat, place_on
from runtime.tensors.memory import memory_of
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.storage import Storage
from runtime.tensors.tensor import Tensor


def from_cuda_array(source: Any) -> Tensor:
    """A CUDA tensor of an object with `__cuda_array_interface__`, sharing its memory.

    The elements are copied if they are read-only, in another byte order, or at steps
    that are negative or no whole elements.  Work that the object's stream has to do is
    waited for.  Raises `MaskedArray`, `UnsupportedData` and `DeviceUnavailable`.
    """
    import numpy as np

    told = source.__cuda_array_interface__
    shape, form = tuple(told["shape"]), np.dtype(told["typestr"])
    if told.get("mask") is not None:
        raise MaskedArray(shape=shape)
    native = form.newbyteorder("=")
    dtype, size = dtype_of(native), form.itemsize
    memory: Any = memory_of("cuda")
    if not prod(shape):
        return empty_tensor(shape, dtype, Device("cuda"))
    steps = told.get("strides") or tuple(size * n for n in contiguous_strides(shape))
    reach = [step * (extent - 1) for step, extent in zip(steps, shape, strict=True)]
    before = -sum(way for way in reach if way < 0)
    nbytes = before + sum(way for way in reach if way > 0) + size
    address, fixed = told["data"]
    raw, index = memory.adopted(address - before, nbytes, source, told.get("stream"))
    device = Device("cuda", index)
    whole = min(steps, default=0) >= 0 and not any(step % size for step in steps)
    if whole and form.isnative and not fixed:
        held = Storage(raw.view(form), device, dtype, nbytes // size)
        return place_on(held, shape, tuple(step // size for step in steps), 0)
    elements = np.ndarray(shape, form, memory.to_numpy(raw), before, steps)
    return from_flat(elements.astype(native).flatten(), shape, device)
