"""Formulas of operators that write by index: `runtime.operators.index_writes`.

An element that was replaced has no gradient; a source has the gradient of the place to
which it was written. A source that shares a place with others, and with the element of
`self`, has its part of the gradient: its slope in their sum, product, mean or extreme.

Elements of a source beyond its index have the gradient 0.
"""

from typing import Any

from everyorder.runtime.autograd.elementwise_formulas import conj
from everyorder.runtime.autograd.grad_mode import GRAD
from everyorder.runtime.autograd.gradient_plan import Formulas
from everyorder.runtime.autograd.movement_formulas import padded
from everyorder.runtime.operators.declare.handles import core

Shape = tuple[int, ...]


def _index_copy_source(grad: Any, dim: int, index: Any, source_shape: Shape) -> Any:
    return core.reshape(core.index_select(grad, dim, index), source_shape)


def _index_fill_value(grad: Any, dim: int, index: Any) -> Any:
    """Return the sum over the places that were filled, each of them once."""
    others = core.index_fill(core.ones_like(grad), dim, index, 0)
    return core.sum(core.masked_fill(grad, core.ne(others, 0), 0))


def _masked_scatter_source(grad: Any, mask: Any, source_shape: Shape) -> Any:
    """Return the gradients at the true places of the mask, in order.

    Those at its false places are added to one more element, which is left out, so that
    no shape depends on the mask.
    """
    size = 1
    for each in source_shape:
        size *= each
    chosen = core.reshape(core.expand(mask, grad.shape), [-1])
    places = core.sub(core.cumsum(chosen, 0), 1)
    places = core.where(chosen, places, size)
    line = core.zeros([size + 1], dtype=grad.dtype, device=grad.device)
    line = core.scatter_add(line, 0, places, core.reshape(grad, [-1]))
    return core.reshape(core.slice(line, 0, 0, size), source_shape)


def _cut(src: Any, shape: Shape) -> Any:
    """Return the part of a source that an index of this shape reads."""
    if len(src.shape) == len(shape):
        for dim, size in enumerate(shape):
            if src.shape[dim] != size:
                src = core.slice(src, dim, 0, size)
        return src
    # Zero dimensions count as one of size 1.
    return core.reshape(core.slice(core.reshape(src, [-1]), 0, 0, 1), shape)


def _scatter_reduce(
    grad: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    reduce: str,
    include_self: bool,
    result: Any,
    needs: Any,
) -> Any:
    """Return the gradients of `self` and of `src`."""
    if not index.numel():
        return grad, core.zeros_like(src)

    def of_self(values: Any) -> Any:
        """Return the values with 0 where elements of `self` were replaced."""
        if include_self:
            return values
        return core.scatter_value(values, dim, index, 0)

    def at_index(values: Any) -> Any:
        return core.gather(values, dim, index)

    whole = src.shape
    src = _cut(src, index.shape)
    if reduce == "prod":
        own, other = _factors(
            grad, self, dim, index, src, include_self, result, of_self, at_index
        )
    elif reduce in ("amax", "amin"):
        hits = of_self(_equal(self, result)), _equal(src, at_index(result))
        count = core.scatter_add(hits[0], dim, index, hits[1])
        share = core.div(grad, count)
        own, other = (
            core.masked_fill(each, core.eq(hit, 0), 0)
            for each, hit in zip((share, at_index(share)), hits, strict=True)
        )
    else:
        share = grad
        if reduce == "mean":
            ones = core.ones_like(src)
            count = core.scatter_add(of_self(core.ones_like(self)), dim, index, ones)
            share = core.div(grad, count)
        own, other = of_self(share), at_index(share)
    return own if needs[0] else None, padded(other, whole) if needs[1] else None


def _equal(values: Any, extreme: Any) -> Any:
    """Return 1 for each extreme, as which each NaN counts, and 0 for the others."""
    chosen = core.logical_or(core.eq(values, extreme), core.isnan(values))
    return core.to(chosen, dtype=values.dtype)


def _factors(
    grad: Any,
    self: Any,
    dim: int,
    index: Any,
    src: Any,
    include_self: bool,
    result: Any,
    of_self: Any,
    at_index: Any,
) -> tuple[Any, Any]:
    """Return the gradients of the factors of products.

    The slope of a factor is the product of the others: the result divided by it. For a
    zero it is the product of all that are not zero, times the other zero, if there is
    one, so that a recorded pass has its slope: the sum of both minus this one.
    """
    zeros = core.eq(self, 0), core.eq(src, 0)
    ones = [core.to(each, dtype=self.dtype) for each in zeros]
    count = core.scatter_add(of_self(ones[0]), dim, index, ones[1])
    others = core.scatter_reduce(
        core.masked_fill(self, zeros[0], 1),
        dim,
        index,
        core.masked_fill(src, zeros[1], 1),
        "prod",
        include_self=include_self,
    )
    single = core.masked_fill(others, core.ne(count, 1), 0)
    if GRAD.enabled:
        own, other = (
            core.masked_fill(each, core.logical_not(zero), 0)
            for each, zero in zip((self, src), zeros, strict=True)
        )
        total = core.scatter_add(of_self(own), dim, index, other)
        pair = core.masked_fill(others, core.ne(count, 2), 0)

    def slope(factor: Any, zero: Any, place: Any) -> Any:
        divided = core.div(place(result), core.masked_fill(factor, zero, 1))
        by_zero = place(single)
        if GRAD.enabled:
            rest = core.sub(place(total), factor)
            by_zero = core.add(by_zero, core.mul(rest, place(pair)))
        return conj(core.where(zero, by_zero, divided))

    own = core.mul(grad, slope(self, zeros[0], lambda values: values))
    return of_self(own), core.mul(at_index(grad), slope(src, zeros[1], at_index))


WRITES: dict[str, Formulas] = {
    "index_copy": {
        "self": lambda grad, dim, index: core.index_fill(grad, dim, index, 0),
        "source": _index_copy_source,
    },
    "index_fill": {
        "self": lambda grad, dim, index: core.index_fill(grad, dim, index, 0)
    },
    "index_fill.int_Tensor": {
        "self": lambda grad, dim, index: core.index_fill(grad, dim, index, 0),
        "value": _index_fill_value,
    },
    "masked_scatter": {
        "self": lambda grad, mask: core.masked_fill(grad, mask, 0),
        "source": _masked_scatter_source,
    },
    "scatter_reduce": {("self", "src"): _scatter_reduce},
}
