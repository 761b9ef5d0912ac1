"""Formulas of operators that move elements, of views and of copies.

The gradient of an operator that picks elements puts them back in their places, and adds
where an element was picked more than once; the inverse holds too. A view shows some
elements, so its gradient is a tensor of zeros with the gradient in their places; the
gradient of a view of all elements is the inverse view.
"""

from collections.abc import Sequence
from typing import Any

from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.shape import (
    broadcast_shapes,
    contiguous_strides,
    may_overlap_itself,
    span,
    wrap_dim,
)

Shape = tuple[int, ...]


def _zeros(like: Any, shape: Sequence[int]) -> Any:
    return core.zeros([*shape], dtype=like.dtype, device=like.device)


def _cat(grad: Any, tensors_shape: tuple[Shape, ...], dim: int) -> list[Any]:
    at = wrap_dim(dim, len(grad.shape))
    parts: list[Any] = []
    start = 0
    for shape in tensors_shape:
        if shape == (0,) and len(grad.shape) != 1:
            # An empty tensor that `cat` ignores, whatever its other dimensions are.
            parts.append(_zeros(grad, shape))
            continue
        parts.append(core.slice(grad, at, start, start + shape[at]))
        start += shape[at]
    return parts


def _split(grads: Sequence[Any], self: Any, sizes: Sequence[int], dim: int) -> Any:
    at = wrap_dim(dim, len(self))
    sample = next(grad for grad in grads if grad is not None)
    parts = [
        _zeros(sample, (*self[:at], size, *self[at + 1 :])) if grad is None else grad
        for grad, size in zip(grads, sizes, strict=True)
    ]
    return core.cat(parts, at)


def _split_even(
    grads: Sequence[Any], self_shape: Shape, split_size: int, dim: int
) -> Any:
    size = self_shape[wrap_dim(dim, len(self_shape))]
    sizes = [min(split_size, size - at * split_size) for at in range(len(grads))]
    return _split(grads, self_shape, sizes, dim)


def _gather(grad: Any, self_shape: Shape, dim: int, index: Any) -> Any:
    return core.scatter_add(_zeros(grad, self_shape), dim, index, grad)


def _scatter_src(grad: Any, dim: int, index: Any, src_shape: Shape) -> Any:
    """Return the gradient of `src`; elements of `src` beyond `index` were not used."""
    return padded(core.gather(grad, dim, index), src_shape)


def padded(picked: Any, src_shape: Shape) -> Any:
    """Return gradients of a part of a source with zeros for the rest."""
    if len(picked.shape) != len(src_shape):
        # Zero dimensions count as one of size 1, and an empty index fits any shape.
        if not picked.numel():
            return _zeros(picked, src_shape)
        picked = core.reshape(picked, (1,) * len(src_shape))
    for at, size in enumerate(src_shape):
        if picked.shape[at] != size:
            sizes = [*picked.shape[:at], size, *picked.shape[at + 1 :]]
            picked = core.slice_backward(picked, sizes, at, 0, picked.shape[at], 1)
    return picked


def _index_select(grad: Any, self_shape: Shape, dim: int, index: Any) -> Any:
    if not self_shape:
        return core.sum(grad)
    return core.index_add(_zeros(grad, self_shape), dim, index, grad)


def _index_add_source(
    grad: Any, dim: int, index: Any, alpha: Any, source_shape: Shape
) -> Any:
    picked = core.reshape(core.index_select(grad, dim, index), source_shape)
    return picked if alpha == 1 else core.mul(picked, alpha)


def _index_put_self(grad: Any, indices: Any, accumulate: bool) -> Any:
    if accumulate:
        return grad
    return core.index_put(grad, indices, _zeros(grad, ()), False)


def _masked_select(grad: Any, self_shape: Shape, mask: Any) -> Any:
    shape = broadcast_shapes(self_shape, mask.shape)
    whole, chosen = _zeros(grad, shape), core.expand(mask, shape)
    if not shape:
        return core.where(chosen, core.sum(grad), whole)
    return core.index_put(whole, [chosen], grad, False)


def _ordered(grad: Any, self_shape: Shape, dim: int, result1: Any) -> Any:
    if not self_shape:
        return grad
    return core.scatter(_zeros(grad, self_shape), dim, result1, grad)


def _unbind(grads: Sequence[Any], self_shape: Shape, dim: int) -> Any:
    at = wrap_dim(dim, len(self_shape))
    sample = next(grad for grad in grads if grad is not None)
    parts = [_zeros(sample, sample.shape) if grad is None else grad for grad in grads]
    return core.stack(parts, at)


def _repeat(grad: Any, self_shape: Shape, repeats: Sequence[int]) -> Any:
    """Return the sum over all copies."""
    shape = (*(1,) * (len(repeats) - len(self_shape)), *self_shape)
    pairs = [size for both in zip(repeats, shape, strict=True) for size in both]
    copies = [*range(0, len(pairs), 2)]
    if not pairs:
        return grad
    return core.reshape(core.sum(core.reshape(grad, pairs), copies), self_shape)


MOVEMENT: dict[str, Formulas] = {
    "cat": {"tensors": _cat},
    "stack": {
        "tensors": lambda grad, tensors_shape, dim: [
            core.select(grad, dim, at) for at in range(len(tensors_shape))
        ]
    },
    "unbind": {"self": _unbind},
    "repeat": {"self": _repeat},
    "tril": {"self": lambda grad, diagonal: core.tril(grad, diagonal)},
    "triu": {"self": lambda grad, diagonal: core.triu(grad, diagonal)},
    "constant_pad_nd": {
        "self": lambda grad, pad: core.constant_pad_nd(grad, [-each for each in pad])
    },
    "_unsafe_view": {"self": lambda grad, self_shape: core.reshape(grad, self_shape)},
    "split": {"self": _split_even},
    "split.sizes": {
        "self": lambda grads, self_shape, split_sizes, dim: _split(
            grads, self_shape, split_sizes, dim
        )
    },
    "gather": {"self": _gather},
    "scatter": {
        "self": lambda grad, dim, index: core.scatter_value(grad, dim, index, 0),
        "src": _scatter_src,
    },
    "scatter.value": {
        "self": lambda grad, dim, index: core.scatter_value(grad, dim, index, 0)
    },
    "scatter_add": {"self": lambda grad: grad, "src": _scatter_src},
    "index_select": {"self": _index_select},
    "index_add": {"self": lambda grad: grad, "source": _index_add_source},
    "index": {
        "self": lambda grad, self_shape, indices: core.index_put(
            core.new_zeros(grad, [*self_shape]), indices, grad, True
        )
    },
    "index_put": {
        "self": _index_put_self,
        "values": lambda grad, indices: core.index(grad, indices),
    },
    "masked_select": {"self": _masked_select},
    "sort": {"self": _ordered},
    "topk": {"self": _ordered},
    "flip": {"self": lambda grad, dims: core.flip(grad, dims)},
}


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
    """Return the gradient, arranged like the input and viewed like the result.

    An element that only the result reaches has the gradient zero. An element that
    occurs several times in the input had an equal share of the gradient in each place.
    """
    first = min(input_offset, offset)
    room = max(
        input_offset + span(tuple(input_sizes), tuple(input_strides)),
        offset + span(tuple(size), tuple(stride)),
    )

    def gathered(gradient: Any) -> Any:
        """Return the sum of the gradients at each place of the memory of both."""
        place = input_offset - first
        return core.as_strided_backward(
            gradient, [room - first], [1], 0, input_sizes, input_strides, place
        )

    whole = gathered(grad0)
    if may_overlap_itself(tuple(input_sizes), tuple(input_strides)):
        shares = gathered(core.ones_like(grad0))
        whole = core.div(whole, core.masked_fill(shares, core.eq(shares, 0), 1))
    return core.as_strided(whole, size, stride, offset - first)


def _unfold(grad: Any, self_shape: Shape, dimension: int, size: int, step: int) -> Any:
    """Return the sum over the windows that show an element."""
    if not self_shape:
        return core.sum(grad)
    dim, strides = wrap_dim(dimension, len(self_shape)), contiguous_strides(self_shape)
    steps = (*strides[:dim], step * strides[dim], *strides[dim + 1 :], strides[dim])
    return core.as_strided_backward(grad, self_shape, strides, 0, grad.shape, steps, 0)


def _to_copy(grad: Any, self_dtype: Any, self_device: Any) -> Any:
    if grad.dtype is self_dtype and grad.device == self_device:
        return grad
    return core._to_copy(grad, dtype=self_dtype, device=self_device)


VIEWS: dict[str, Formulas] = {
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
    "unfold": {"self": _unfold},
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
        for name in (
            *("fill_", "zero_", "uniform_", "normal_", "bernoulli_.float"),
            *("random_", "random_.to", "random_.from"),
        )
    },
}
