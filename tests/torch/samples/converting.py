"""Arguments of torch as arguments of the runtime, and results of both as arrays.

Rules: a tensor keeps dtype, shape, strides and offset, and what it shares with other
tensors of the same sample is not shared here, but one tensor given twice is one tensor;
memory is never shared with torch; what has no counterpart raises `NoCounterpart`.
"""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch

from everyorder import runtime
from everyorder.runtime import Tensor

# Values that mean the same to both.
PLAIN = (bool, int, float, complex, str, type(None), type(...), np.generic, np.ndarray)


class NoCounterpart(Exception):
    """An argument of this kind does not exist in the runtime."""


class Converter:
    """Converts the arguments of one sample; remembers the tensors that it made."""

    def __init__(self) -> None:
        # With the tensor of torch, whose identity is taken while it lives.
        self.made: dict[int, tuple[Any, Tensor]] = {}

    def __call__(self, value: Any) -> Any:
        """The same value, for the runtime."""
        if isinstance(value, torch.Tensor):
            if id(value) not in self.made:
                self.made[id(value)] = value, to_runtime(value)
            return self.made[id(value)][1]
        if isinstance(value, torch.Size):
            return tuple(value)
        if isinstance(value, list | tuple):
            return type(value)(self(each) for each in value)
        if isinstance(value, dict):
            return {name: self(each) for name, each in value.items()}
        if isinstance(value, slice):
            return slice(self(value.start), self(value.stop), self(value.step))
        return constant(value)


def constant(value: Any) -> Any:
    """What is no tensor and holds none."""
    if isinstance(value, torch.dtype | torch.memory_format):
        return getattr(runtime, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return runtime.device(str(value))
    if value is torch.strided:
        return runtime.tensor(0).layout
    if value in (bool, int, float, complex) or isinstance(value, PLAIN):
        return value
    raise NoCounterpart(type(value).__name__)


def to_runtime(tensor: Any) -> Tensor:
    """A tensor of the runtime with the same layout over memory of its own."""
    if tensor.layout is not torch.strided or tensor.device.type != "cpu":
        raise NoCounterpart(f"Tensor of {tensor.layout} on {tensor.device}")
    if tensor.dim() > 64:
        raise NoCounterpart("Tensor of more than 64 dimensions")
    plain = tensor.detach().resolve_conj().resolve_neg()
    name = str(plain.dtype).removeprefix("torch.")
    # NumPy has no such numbers; every one of them is one of float32.
    narrow = plain.dtype == torch.bfloat16
    whole = plain.untyped_storage().nbytes() // plain.element_size()
    if whole < span(plain) + plain.storage_offset():
        raise NoCounterpart("Tensor beyond its storage")
    try:
        memory = plain.as_strided((whole,), (1,), 0)
        memory = (memory.float() if narrow else memory).numpy().copy()
    except TypeError as error:
        raise NoCounterpart(f"Tensor of {name}") from error
    base = runtime.from_numpy(memory)
    base = base.to(runtime.bfloat16) if narrow else base
    made: Tensor = runtime.as_strided(
        base, tuple(plain.shape), tuple(plain.stride()), plain.storage_offset()
    ).detach()
    if tensor.requires_grad:
        made.requires_grad_()
    return made


def span(tensor: Any) -> int:
    """How many elements of its storage a tensor reaches, from its first one."""
    if not tensor.numel():
        return 0
    reach = zip(tensor.shape, tensor.stride(), strict=True)
    return 1 + sum(int((size - 1) * stride) for size, stride in reach)


def listed(result: Any) -> list[Any]:
    """The values of a result, in their order; nested ones too."""
    if isinstance(result, list | tuple) and not isinstance(result, torch.Size):
        return [each for one in result for each in listed(one)]
    return [result]


def array(value: Any) -> Any:
    """The elements of a tensor of either kind."""
    value = value.detach()
    if isinstance(value, torch.Tensor):
        value = value.resolve_conj().resolve_neg()
    name = str(value.dtype).removeprefix("torch.")
    if name in ("bfloat16", "float16"):
        value = value.float()
    elif name == "complex32":
        value = value.to(
            torch.complex64 if isinstance(value, torch.Tensor) else runtime.complex64
        )
    return value.numpy()


def tensors(value: Any) -> Iterator[Any]:
    """The tensors of torch in an argument."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, list | tuple):
        for each in value:
            yield from tensors(each)
    elif isinstance(value, dict):
        yield from tensors(list(value.values()))


def written(value: Any) -> str:
    """An argument in a few words: dtype, shape and, where they matter, strides."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).removeprefix("torch.")
        text = f"{name}{list(value.shape)}"
        return text if value.is_contiguous() else f"{text}/{list(value.stride())}"
    if isinstance(value, list | tuple) and not isinstance(value, torch.Size):
        inside = ", ".join(written(each) for each in value)
        comma = "," if len(value) == 1 else ""
        return f"({inside}{comma})" if isinstance(value, tuple) else f"[{inside}]"
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:.6g}"
    return repr(value)
