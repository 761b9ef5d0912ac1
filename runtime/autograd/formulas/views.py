"""Formulas of views, of the gradients of views, and of copies.

True only here: a view shows some elements, so its gradient is a tensor of zeros with
the gradient in the place of these; a view of all elements is shown back.
"""

from collections.abc import Sequence
from typing import Any

from runtime.autograd.plan import Formulas
from runtime.operators.call import core
from runtime.tensors.shape import may_overlap_itself, span, wrap_dim

Shape = tuple[int, ...]
Layout = tuple[Shape, Shape, int]


def _slice(
    grad: Any,
    self_shape: Shape,
    dim: int,
    start: int | None,
    end: int | None,
    step: int,
) -> Any:
    size = self_shape[wrap_dim(dim, len(self_shape))]
    first, last, _ = slice(start, end, step).indices(size)
    return core.slice_backward(grad, self_shape, dim, first, last, step)


def _permute(grad: Any, dims: Sequence[int]) -> Any:
    back = [0] * len(dims)
    for place, dim in enumerate(dims):
        back[dim] = place
    return core.permute(grad, back)


def _as_strided(
    grad: Any,
    self_layout: Layout,
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: int | None,
) -> Any:
    shape, strides, offset = self_layout
    start = offset if storage_offset is None else storage_offset
    return core.as_strided_backward(grad, shape, strides, offset, size, stride, start)


def _as_strided_back(
    grad0: Any,
    input_sizes: Sequence[int],
    input_strides: Sequence[int],
    input_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    offset: int,
) -> Any:
    """The gradient laid out as the input was, and viewed as the result was.

    An element that only the result reaches has the gradient zero.  What stands several
    times in the input had an equal share of the gradient in each place.
    """
    first = min(input_offset, offset)
    room = max(
        input_offset + span(tuple(input_sizes), tuple(input_strides)),
        offset + span(tuple(size), tuple(stride)),
    )

    def gathered(gradient: Any) -> Any:
        """What comes together at each place of the memory of both."""
        place = input_offset - first
        return core.as_strided_backward(
            gradient, [room - first], [1], 0, input_sizes, input_strides, place
        )

    whole = gathered(grad0)
    if may_overlap_itself(tuple(input_sizes), tuple(input_strides)):
        shares = gathered(core.ones_like(grad0))
        whole = core.div(whole, core.masked_fill(shares, core.eq(shares, 0), 1))
    return core.as_strided(whole, size, stride, offset - first)


def _to_copy(grad: Any, self_dtype: Any, self_device: Any) -> Any:
    if grad.dtype is self_dtype and grad.device == self_device:
        return grad
    return core._to_copy(grad, dtype=self_dtype, device=self_device)


FORMULAS: dict[str, Formulas] = {
    "view": {"self": lambda grad, self_shape: core.reshape(grad, self_shape)},
    "select": {
        "self": lambda grad, self_shape, dim, index: core.select_backward(
            grad, self_shape, dim, index
        )
    },
    "slice": {"self": _slice},
    "transpose": {"self": lambda grad, dim0, dim1: core.transpose(grad, dim0, dim1)},
    "t": {"self": lambda grad: core.t(grad)},
    "permute": {"self": _permute},
    "expand": {"self": lambda grad: grad},
    "squeeze": {"self": lambda grad, self_shape: core.reshape(grad, self_shape)},
    "unsqueeze": {"self": lambda grad, self_shape: core.reshape(grad, self_shape)},
    "as_strided": {"self": _as_strided},
    "diagonal": {
        "self": lambda grad, self_shape, offset, dim1, dim2: core.diagonal_backward(
            grad, self_shape, offset, dim1, dim2
        )
    },
    "alias": {"self": lambda grad: grad},
    "view_as_real": {"self": lambda grad: core.view_as_complex(core.contiguous(grad))},
    "view_as_complex": {"self": lambda grad: core.view_as_real(grad)},
    "slice_backward": {
        "grad": lambda grad0, dim, start, end, step: core.slice(
            grad0, dim, start, end, step
        )
    },
    "select_backward": {
        "grad": lambda grad0, dim, index: core.select(grad0, dim, index)
    },
    "as_strided_backward": {"grad": _as_strided_back},
    "diagonal_backward": {
        "grad": lambda grad0, offset, dim1, dim2: core.diagonal(
            grad0, offset, dim1, dim2
        )
    },
    "clone": {"self": lambda grad: grad},
    "_to_copy": {"self": _to_copy},
    "copy_": {
        "self": lambda grad: core.zeros_like(grad),
        "src": lambda grad: grad,
    },
    **{
        name: {"self": lambda grad: core.zeros_like(grad)}
        for name in ("fill_", "zero_", "uniform_", "normal_", "bernoulli_.float")
    },
}
