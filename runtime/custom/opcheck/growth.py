"""Growth: the same sample with other sizes, to tell a rule from a number.

True only here: which sizes change.  Dimensions of one size are taken for one and the
same unknown, as tracers do, and grow together, by one; what is added repeats the last
elements, so that indices stay in range.  Sizes 0 and 1 stay what they are.

Rules: a grown tensor has the order of the original's strides, and repeats what that
repeats; where different tensors share a storage nothing is grown, as they could not
share one afterwards.
"""

from collections.abc import Iterator
from typing import Any

from runtime.custom.opcheck.copier import Copier
from runtime.custom.opcheck.sample import Sample
from runtime.tensors.arrays import array_of, claimed, host_copy
from runtime.tensors.making import from_numpy, place_on, view_of
from runtime.tensors.shape import span
from runtime.tensors.storage import Storage, memory_of
from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]


def grown(sample: Sample) -> Iterator[tuple[str, list[Any]]]:
    """Samples with other sizes, and what was done to them."""
    tensors = {id(p.tensor): p.tensor for p in sample.arguments(sample.values)}
    storages = {id(claimed(tensor)[0]) for tensor in tensors.values()}
    on_meta = any(tensor.is_meta for tensor in tensors.values())
    if on_meta or len(storages) < len(tensors):
        return
    sizes = sorted({size for t in tensors.values() for size in t.shape if size > 1})
    for size in sizes:
        made = {at: _grown(each, size) for at, each in tensors.items()}
        words = f"the sample with size {size} grown to {size + 1}"
        yield words, Copier(given=made).values(sample.values)


def _grown(tensor: Tensor, size: int) -> Tensor:
    import numpy as np

    grows = [(0, int(have == size)) for have in tensor.shape]
    plain = Copier().tensor(tensor)
    values = host_copy(plain, "opcheck()")
    shape = tuple(
        have + more for have, (_, more) in zip(values.shape, grows, strict=True)
    )
    strides = _strides(tensor, shape)
    buffer = from_numpy(np.zeros(span(shape, strides), values.dtype))
    host = view_of(buffer, shape, strides, 0)
    array_of(host)[...] = np.pad(values, grows, mode="edge") if grows else values
    device = tensor.device
    held = memory_of(device.type).from_numpy(array_of(buffer), device.index)
    storage = Storage(held, device, tensor.dtype, buffer.numel())
    return place_on(storage, shape, strides, 0, None, tensor.key_bits)


def _strides(tensor: Tensor, shape: Ints) -> Ints:
    """Dense strides in the order of the tensor's own; zeros stay."""
    old = tensor.strides
    order = sorted(range(len(old)), key=lambda dim: (-old[dim], dim))
    strides, step = [0] * len(old), 1
    for dim in reversed(order):
        if old[dim]:
            strides[dim] = step
            step *= shape[dim]
    return tuple(strides)
