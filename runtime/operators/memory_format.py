"""Memory formats: in which order the elements of a new tensor lie.

True only here: what `memory_format=` means to operators that copy a tensor, or make one
like it; the formats are those of `runtime.tensors.shape`.
"""

from runtime.errors.operands import WrongOption
from runtime.operators.plan import Shape
from runtime.schema.codes import MemoryFormat
from runtime.tensors.making import view_of
from runtime.tensors.shape import (
    CONTIGUOUS,
    LAST,
    PRESERVE,
    is_contiguous,
    ordered_strides,
    preserved_strides,
)
from runtime.tensors.tensor import Tensor


def strides_of(call: str, like: Tensor, wanted: MemoryFormat | None) -> Shape | None:
    """The strides of a new tensor like another one; None for those of row-major order.

    Raises `WrongOption` for a format of another number of dimensions.
    """
    shape = like.shape
    if wanted is None or wanted is PRESERVE:
        if like._place is None or is_contiguous(shape, like._place[2]):
            return None
        strides = preserved_strides(shape, like.strides)
    elif wanted is CONTIGUOUS:
        return None
    else:
        order = LAST[wanted]
        if len(shape) != len(order):
            raise WrongOption(
                operator=call,
                argument="memory_format",
                found=f"{wanted} of a tensor of {len(shape)} dimensions",
                fits=f"a tensor of {len(order)} dimensions, or another format",
            )
        strides = ordered_strides(shape, order)
    return None if is_contiguous(shape, strides) else strides


def laid(made: Tensor, strides: Shape | None) -> Tensor:
    """A new tensor, its elements in the order of some strides, whatever they are."""
    return made if strides is None else view_of(made, made.shape, strides, 0)
