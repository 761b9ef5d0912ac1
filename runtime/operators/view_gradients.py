"""Gradients of views: the gradient of a part, with zeros for what the part left out.

True only here: operators that have no counterpart among views, each the transpose of
one.  They are written with other operators and make a tensor of their own.

Rule: each reads its gradient once and is linear in it, so that its own derivative is
the view again.
"""

from collections.abc import Sequence

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import require_shape
from runtime.operators.call import core
from runtime.operators.plan import INT64
from runtime.operators.structured import Written
from runtime.tensors.shape import contiguous_strides, may_overlap_itself, span
from runtime.tensors.tensor import Tensor


def _zeros(grad: Tensor, size: Sequence[int]) -> Tensor:
    made: Tensor = core.zeros(list(size), dtype=grad.dtype, device=grad.device)
    return made


def _placed(call: str, whole: Tensor, part: Tensor, grad: Tensor) -> Tensor:
    require_shape(call, ("grad", grad), part.shape)
    core.copy_(part, grad)
    return whole


def slice_backward(
    grad: Tensor, input_sizes: Sequence[int], dim: int, start: int, end: int, step: int
) -> Tensor:
    """Zeros, with `grad` where the slice was taken."""
    whole = _zeros(grad, input_sizes)
    part = core.slice(whole, dim, start, end, step)
    return _placed("core::slice_backward", whole, part, grad)


def select_backward(
    grad: Tensor, input_sizes: Sequence[int], dim: int, index: int
) -> Tensor:
    """Zeros, with `grad` at the selected place."""
    whole = _zeros(grad, input_sizes)
    part = core.select(whole, dim, index)
    return _placed("core::select_backward", whole, part, grad)


def diagonal_backward(
    grad: Tensor, input_sizes: Sequence[int], offset: int, dim1: int, dim2: int
) -> Tensor:
    """Zeros, with `grad` on the diagonal."""
    whole = _zeros(grad, input_sizes)
    part = core.diagonal(whole, offset, dim1, dim2)
    return _placed("core::diagonal_backward", whole, part, grad)


def as_strided_backward(
    grad: Tensor,
    input_sizes: Sequence[int],
    input_strides: Sequence[int],
    input_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int,
) -> Tensor:
    """What `grad` gives to each element of the input of `as_strided`.

    The gradients of all that shows one place in memory add up there.  If the input
    itself shows a place several times, the sum is divided among these evenly.
    """
    require_shape("core::as_strided_backward", ("grad", grad), tuple(size))
    for name, sizes, strides in (
        ("input_strides", input_sizes, input_strides),
        ("stride", size, stride),
    ):
        if len(strides) != len(sizes):
            raise WrongOption(
                operator="core::as_strided_backward",
                argument=name,
                found=str(list(strides)),
                fits=f"one stride for each of {list(sizes)}",
            )
    first = min(input_offset, offset)
    shown = input_offset - first + span(tuple(input_sizes), tuple(input_strides))
    taken = offset - first + span(tuple(size), tuple(stride))
    memory = _zeros(grad, [max(shown, taken)])
    if not may_overlap_itself(tuple(size), tuple(stride)):
        core.copy_(core.as_strided(memory, size, stride, offset - first), grad)
    else:
        places = _places(memory, size, stride, offset - first)
        core.index_add_(memory, 0, places, core.reshape(grad, [-1]))
    if may_overlap_itself(tuple(input_sizes), tuple(input_strides)):
        places = _places(memory, input_sizes, input_strides, input_offset - first)
        # Counted in integers: halves cannot, and complex numbers have no bounds.
        ones = core.ones([places.numel()], dtype=INT64, device=grad.device)
        none = core.zeros(memory.shape, dtype=INT64, device=grad.device)
        counts = core.index_add(none, 0, places, ones)
        memory = core.div(memory, core.clamp(counts, 1))
    found = core.as_strided(memory, input_sizes, input_strides, input_offset - first)
    own = contiguous_strides(tuple(input_sizes)) == tuple(input_strides)
    whole = found.numel() == memory.numel()
    result: Tensor = found if own and whole else core.clone(found)
    return result


def _places(
    memory: Tensor, size: Sequence[int], stride: Sequence[int], offset: int
) -> Tensor:
    """The number of the place in memory of each element, in order."""
    numbers = core.arange(memory.numel(), device=memory.device)
    found: Tensor = core.reshape(core.as_strided(numbers, size, stride, offset), [-1])
    return found


OPERATORS = (
    Written(
        "slice_backward(Tensor grad, int[] input_sizes, int dim, int start, int end,"
        " int step) -> Tensor",
        {"CompositeExplicitAutograd": slice_backward},
    ),
    Written(
        "select_backward(Tensor grad, int[] input_sizes, int dim, int index) -> Tensor",
        {"CompositeExplicitAutograd": select_backward},
    ),
    Written(
        "diagonal_backward(Tensor grad, int[] input_sizes, int offset, int dim1,"
        " int dim2) -> Tensor",
        {"CompositeExplicitAutograd": diagonal_backward},
    ),
    Written(
        "as_strided_backward(Tensor grad, int[] input_sizes, int[] input_strides,"
        " int input_offset, int[] size, int[] stride, int offset) -> Tensor",
        {"CompositeExplicitAutograd": as_strided_backward},
    ),
)
