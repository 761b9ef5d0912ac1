"""Movement: the operators that put elements elsewhere and compute nothing.

True only here: `flip`, and which modules together make up the family of movement.
"""

from collections.abc import Sequence

from runtime.operators import gathering, reshaping, scattering
from runtime.operators.memory_format import strides_of
from runtime.operators.plan import INT64, KernelTable, Plan, many_dims
from runtime.operators.structured import Structured
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor


def plan_flip(call: str, self: Tensor, dims: Sequence[int]) -> Plan:
    """The elements in reverse order along each of the dimensions."""
    places = many_dims(call, dims, self.shape) if dims else ()
    outputs = ((self.shape, self.dtype),)
    strides = strides_of(call, self, None)
    return Plan(outputs, self.device, (self, places), kernel=_flip, strides=strides)


def _flip(table: KernelTable, out: Tensor, self: Tensor, dims: Sequence[int]) -> None:
    if not out.numel():
        return
    # Strides are never negative, so that a dimension is reversed by its numbers.
    source = self
    for at, dim in enumerate(dims):
        size = self.shape[dim]
        numbers = empty_tensor((size,), INT64, self.device)
        table["arange"](numbers, size - 1, -1)
        last = at == len(dims) - 1
        target = out if last else empty_tensor(self.shape, self.dtype, self.device)
        table["index_select"](target, source, dim, numbers)
        source = target
    if not dims:
        table["copy"](out, self)


OPERATORS = (
    *reshaping.OPERATORS,
    *gathering.OPERATORS,
    *scattering.OPERATORS,
    Structured(
        "flip",
        "Tensor self, int[] dims",
        plan_flip,
        out=False,
        says="The order along some dimensions reversed.",
    ),
)
