"""Tensor methods that are compiled as programs: `chunk`, `unbind`, `view_as`, ...

They are compiled where a program calls them, as a method of a tensor or as a function
of `runtime`; there are no operators of their names.

Rules:
- each behaves as the function of its name in `runtime.operators`, but returns a list
  instead of a tuple, whose length is not known at compile time;
- errors that differ only in their wording have one sentence here.
"""

# In programs `split` returns a list.
# mypy: disable-error-code="return-value"

from collections.abc import Callable
from typing import Any

from everyorder.runtime.tensors.tensor import Tensor


def allclose(
    self: Tensor,
    other: Tensor,
    rtol: float = 1e-05,
    atol: float = 1e-08,
    equal_nan: bool = False,
) -> bool:
    """Return True if all elements are close."""
    return bool(self.isclose(other, rtol, atol, equal_nan).all())


def chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """Return at most `chunks` pieces of equal size; the last may be smaller."""
    if chunks < 1:
        raise RuntimeError("`chunk` takes 1 and more chunks, not " + str(chunks))
    size = self.size(dim)
    if size == 0:
        return self.split([0] * chunks, dim)
    return self.split((size + chunks - 1) // chunks, dim)


def cpu(self: Tensor) -> Tensor:
    """Return the tensor in host memory."""
    return self.to("cpu")


def cuda(self: Tensor) -> Tensor:
    """Return the tensor on the CUDA device."""
    return self.to("cuda")


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `expand` to the shape of `other`."""
    return self.expand(other.shape)


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return `length` places of a dimension from `start`, as a view."""
    size = self.size(dim)
    first = start + size if start < 0 else start
    if first < 0 or length < 0 or first + length > size:
        raise RuntimeError(
            "`narrow` takes a part of dimension "
            + str(dim)
            + ", which has size "
            + str(size)
            + ", not "
            + str(length)
            + " from "
            + str(start)
        )
    return self.split([first, length, size - first - length], dim)[1]


def reshape_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `reshape` to the shape of `other`."""
    return self.reshape(other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """Return the tensor with the dtype and on the device of `other`."""
    return self.to(other)


def unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    """Return every place of a dimension as a view."""
    return [self.select(dim, place) for place in range(self.size(dim))]


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """Return `view` to the shape of `other`."""
    return self.view(other.shape)


# Name -> the function that is compiled.
PROGRAMS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(allclose, chunk, cpu, cuda, expand_as, narrow, reshape_as, type_as),
        *(unbind, view_as),
    )
}
# Name -> operator with another name.
SAME = {"clip": "clamp", "clip_": "clamp_"}
