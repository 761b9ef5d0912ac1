"""Ordering: elements sorted along a dimension, made unique, searched and counted.

`sort` and `topk` have kernels; the others combine them with other operators.

Rule: real numbers and bool are ordered; NaN counts as greater than every number.
"""

from collections.abc import Callable
from typing import Any

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    INDICES,
    INT64,
    PLAIN,
    REALS,
    CallPlan,
    KernelTable,
    bad_option,
    bad_shapes,
    one_dim,
    require_dtype,
    require_ndim,
)
from everyorder.runtime.operators.declare.structured import (
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.operators.gather_scatter import one_or_more
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.tensor import Tensor

INT32 = DType.named("int32")
_ORDERED = REALS | {BOOL}
_FITS = "real numbers and bool, which have an order"


def _running(kernel: str) -> Callable[..., None]:
    """Return the function that runs a sorting kernel on lines that have elements."""

    def run(
        table: KernelTable, values: Tensor, indices: Tensor, self: Tensor, *options: Any
    ) -> None:
        if values.numel():
            lines = [one_or_more(table, each) for each in (values, indices, self)]
            table[kernel](*lines, *options)

    return run


_sort, _topk = _running("sort"), _running("topk")


def plan_sort(self: Tensor, dim: int, descending: bool, stable: bool) -> CallPlan:
    """Return the plan of the values in order, and their indices."""
    require_dtype("self", self.dtype, _ORDERED, _FITS)
    place = one_dim(dim, self.shape)
    outputs = ((self.shape, self.dtype), (self.shape, INT64))
    arguments = (self, place, descending, stable)
    return CallPlan(outputs, self.device, arguments, kernel=_sort)


def plan_topk(
    self: Tensor,
    k: int,
    dim: int,
    largest: bool,
    sorted: bool,  # noqa: A002  # the schema's name
) -> CallPlan:
    """Return the plan of the k greatest or least values, and their indices."""
    require_dtype("self", self.dtype, _ORDERED, _FITS)
    place = one_dim(dim, self.shape)
    # The result of a 0-dim tensor has one element, never zero.
    least, size = (0, self.shape[place]) if self.shape else (1, 1)
    if not least <= k <= size:
        raise bad_option(
            "k", str(k), f"{least} to {size}, the size of dimension {place}"
        )
    shape = (*self.shape[:place], k, *self.shape[place + 1 :]) if self.shape else ()
    outputs = ((shape, self.dtype), (shape, INT64))
    arguments = (self, k, place, largest, sorted)
    return CallPlan(outputs, self.device, arguments, kernel=_topk)


def argsort(self: Tensor, *options: Any) -> Any:
    """Return the indices of the elements in order of their values."""
    return core.sort(self, *options)[1]


@composite(
    "_unique(Tensor self, bool return_inverse=False, bool return_counts=False,"
    " int? dim=None) -> (Tensor, Tensor, Tensor)",
    takes=ALL - COMPLEXES,
    tags=("dynamic_output_shape",),
)
def unique(
    self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any:
    """Return the distinct elements or slices in order, with indices and counts."""
    # The selection of elements does not depend on gradients.
    source, self = self, core.detach(self)
    rows = core.reshape(self, [-1, 1])
    at = 0
    if dim is not None and self.shape:
        at = one_dim(dim, self.shape)
        size = self.shape[at]
        width = self.numel() // size if size else 0
        rows = core.reshape(core.movedim(self, [at], [0]), [size, width])
    count, width = rows.shape
    order = core.arange(count, dtype=INT64, device=self.device)
    # Radix sort: columns from last to first, each by a stable sort.
    for column in range(width - 1, -1, -1):
        keys = core.index_select(core.select(rows, 1, column), 0, order)
        order = core.index_select(order, 0, core.argsort(keys, 0, stable=True))
    ordered = core.index_select(rows, 0, order)
    first = core.ones([min(count, 1)], dtype=BOOL, device=self.device)
    apart = core.ne(
        core.slice(ordered, 0, 1), core.slice(ordered, 0, 0, max(count - 1, 0))
    )
    starts = core.cat([first, core.any(apart, [1])], 0) if count else first
    places = core.reshape(core.nonzero(starts), [-1])
    chosen = core.index_select(order, 0, places)
    if dim is None or not self.shape:
        values = core.index_select(core.reshape(source, [-1]), 0, chosen)
    else:
        values = core.index_select(source, at, chosen)
    inverse = core.empty([0], dtype=INT64, device=self.device)
    counts = inverse
    if return_inverse:
        number = core.sub(core.cumsum(starts, 0), 1)
        inverse = core.scatter(core.zeros_like(number), 0, order, number)
        if dim is None:
            inverse = core.reshape(inverse, self.shape)
    if return_counts:
        end = core.full([1], count, dtype=INT64, device=self.device)
        ends = core.cat([core.slice(places, 0, 1), end], 0) if count else places
        counts = core.sub(ends, places)
    return values, inverse, counts


@composite(
    "searchsorted(Tensor sorted_sequence, Tensor self, *, bool out_int32=False,"
    " bool right=False, str? side=None, Tensor? sorter=None) -> Tensor",
    takes=ALL - COMPLEXES,
    out=True,
)
def searchsorted(
    sorted_sequence: Tensor,
    self: Tensor,
    out_int32: bool,
    right: bool,
    side: str | None,
    sorter: Tensor | None,
) -> Any:
    """Return the insertion points of numbers in sorted lines."""
    if side not in (None, "left", "right") or (side == "left" and right):
        raise bad_option(
            "side",
            repr(side),
            "'left', or 'right', consistent with `right`",
        )
    line: Any = sorted_sequence
    if sorter is not None:
        line = core.gather(line, -1, sorter)
    ndim = len(line.shape)
    rows = len(self.shape) == ndim > 0 and self.shape[:-1] == line.shape[:-1]
    if ndim != 1 and not rows:
        raise bad_shapes(
            "sorted_sequence does not have one line for each row of numbers",
            "one line, or as many as rows",
            ("sorted_sequence", sorted_sequence),
            ("self", self),
        )
    size = line.shape[-1]
    shape = self.shape
    values = core.reshape(self, [-1]) if ndim == 1 else self
    low = core.zeros(values.shape, dtype=INT64, device=self.device)
    high = core.full(values.shape, size, dtype=INT64, device=self.device)
    before = core.le if right or side == "right" else core.lt
    for _ in range(size.bit_length() if size else 0):
        open_ = core.lt(low, high)
        middle = core.div(core.add(low, high), 2, rounding_mode="floor")
        place = core.clamp(middle, 0, size - 1)
        less = core.logical_and(before(core.gather(line, -1, place), values), open_)
        low = core.where(less, core.add(middle, 1), low)
        high = core.where(core.logical_and(open_, core.logical_not(less)), middle, high)
    result = core.reshape(low, shape)
    return core.to(result, dtype=INT32) if out_int32 else result


@composite(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    tags=("dynamic_output_shape",),
)
def bincount(self: Tensor, weights: Tensor | None, minlength: int) -> Any:
    """Return the count of each integer, or the sum of its weights."""
    require_ndim(("self", self), 1)
    require_dtype("self", self.dtype, INDICES, "integers")
    if minlength < 0 or (self.numel() and core.min(self).item() < 0):
        raise bad_option("self and minlength", "negative numbers", "0 or more")
    if weights is not None and weights.shape != self.shape:
        raise bad_shapes(
            "weights does not have one weight for each number",
            f"weights of shape {self.shape}",
            ("self", self),
            ("weights", weights),
        )
    count = max(int(core.max(self).item()) + 1 if self.numel() else 0, minlength)
    one: Any = weights
    if one is None:
        one = core.ones(self.shape, dtype=INT64, device=self.device)
    elif one.dtype not in PLAIN:
        one = core.to(one, dtype=DType.named("float64"))
    none = core.zeros([count], dtype=one.dtype, device=self.device)
    return core.index_add(none, 0, core.to(self, dtype=INT64), one)


_SORTED = "Tensor self, int dim=-1, bool descending=False, bool stable=False"
_BOTH = "(Tensor values, Tensor indices)"

OPERATORS: tuple[Structured | Unstructured, ...] = (
    Structured("sort", _SORTED, plan_sort, returns=_BOTH),
    composite(f"argsort({_SORTED}) -> Tensor")(argsort),
    Structured(
        "topk",
        "Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True",
        plan_topk,
        returns=_BOTH,
    ),
    *(unique, searchsorted, bincount),
)
