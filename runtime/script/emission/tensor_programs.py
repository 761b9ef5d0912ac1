"""What tensors have in Python alone, as programs: `chunk`, `unbind`, `view_as`, ...

They are compiled where a program calls them, as a method of a tensor or as a function
of `runtime`; no operator of their name is there.

Rules:
- each says what `runtime.operators` says of its name, with a list for a tuple, whose
  length a program does not know;
- what differs in the words of an error only is not written twice: one sentence is here.
"""

# In programs `split` gives a list.
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
    """Whether all elements are close."""
    return bool(self.isclose(other, rtol, atol, equal_nan).all())


def chunk(self: Tensor, chunks: int, dim: int = 0) -> list[Tensor]:
    """At most that many pieces of one size; the last may be smaller."""
    if chunks < 1:
        raise RuntimeError("`chunk` takes 1 and more chunks, not " + str(chunks))
    size = self.size(dim)
    if size == 0:
        return self.split([0] * chunks, dim)
    return self.split((size + chunks - 1) // chunks, dim)


def cpu(self: Tensor) -> Tensor:
    """The tensor in host memory."""
    return self.to("cpu")


def cuda(self: Tensor) -> Tensor:
    """The tensor on the CUDA device."""
    return self.to("cuda")


def expand_as(self: Tensor, other: Tensor) -> Tensor:
    """`expand` to the shape of `other`."""
    return self.expand(other.shape)


def narrow(self: Tensor, dim: int, start: int, length: int) -> Tensor:
    """`length` places of a dimension from `start`, as a view."""
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
    """`reshape` to the shape of `other`."""
    return self.reshape(other.shape)


def type_as(self: Tensor, other: Tensor) -> Tensor:
    """The tensor with the dtype and on the device of `other`."""
    return self.to(other)


def unbind(self: Tensor, dim: int = 0) -> list[Tensor]:
    """Every place of a dimension as a view."""
    return [self.select(dim, place) for place in range(self.size(dim))]


def view_as(self: Tensor, other: Tensor) -> Tensor:
    """`view` to the shape of `other`."""
    return self.view(other.shape)


# Name -> the function that is compiled.
PROGRAMS: dict[str, Callable[..., Any]] = {
    each.__name__: each
    for each in (
        *(allclose, chunk, cpu, cuda, expand_as, narrow, reshape_as, type_as),
        *(unbind, view_as),
    )
}
# Name -> the operator that has another name.
SAME = {"clip": "clamp", "clip_": "clamp_"}
