"""Numbers at even steps: arange on CUDA.

True only here: element i is `start + i * step`, so that no error adds up.

Rules: integers are computed as int64, all else in double precision and rounded once;
what is neither int64 nor float64 is converted from them.
"""

from collections.abc import Callable
from typing import Any

from runtime.kernels.cuda.copy import copy
from runtime.kernels.cuda.jit import Body, Family, number_of
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.operand import Number, flat, index_of
from runtime.kernels.cuda.toolkit import cuda
from runtime.schema.codes import DType
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def _steps(kind: Any) -> Body:
    def body(out, start, step, count):  # type: ignore[no-untyped-def]  # compiled for the device
        i = cuda.grid(1)
        width = cuda.gridsize(1)
        while i < count:
            out[i] = start + kind(i) * step
            i += width

    return body


_STEPS = Family("arange", _steps, "T[::1], T, T, int64", ("int64", "float64"))


def arange(out: Tensor, start: Number, step: Number) -> None:
    """Write `start + i * step` into element i."""
    count = out.numel()
    if not count:
        return
    kind = out.dtype
    whole = not (kind.is_floating or kind.is_complex)
    name = "int64" if whole and not _fraction(start, step) else "float64"
    made = out if kind.name == name else _like(out, name)
    numbers = number_of(start, name), number_of(step, name)
    _STEPS[name](spread(count, index_of(out)), flat(made), *numbers, count)
    if made is not out:
        copy(out, made)


def _fraction(start: Number, step: Number) -> bool:
    return isinstance(start, float) or isinstance(step, float)


def _like(out: Tensor, name: str) -> Tensor:
    return empty_tensor(out.shape, DType.named(name), out.device)


KERNELS: dict[str, Callable[..., None]] = {"arange": arange}
