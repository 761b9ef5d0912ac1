"""Ordering: elements sorted along a dimension, made unique, searched and counted.

`sort` and `topk` have kernels; the others combine them with other operators.

Rule: real numbers and bool are ordered; NaN counts as greater than every number.
"""

from collections.abc import Callable
from math import inf, nan
from typing import Any

from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
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
from everyorder.runtime.tensors.promotion import result_type
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
    tags=("numbers_as_tensors",),
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


@composite("median(Tensor self) -> Tensor", takes=REALS, out=True)
def median(self: Tensor) -> Any:
    """Return the median of all elements: the lower of two; NaN if one is."""
    if not self.numel() and self.dtype in FLOATS:
        return core.full([], nan, dtype=self.dtype, device=self.device)
    value = core.median_dim(core.reshape(core.detach(self), [-1]), 0, False)[0]
    if self.dtype not in FLOATS:
        return value
    # Equal elements share the gradient, as those of `max`: the others are below them,
    # or above them if they are -inf.
    others = core.logical_not(core.logical_or(core.eq(self, value), core.isnan(self)))
    return core.where(
        core.eq(value, -inf),
        core.min(core.masked_fill(self, others, inf)),
        core.max(core.masked_fill(self, others, -inf)),
    )


@composite(
    "median.dim(Tensor self, int dim, bool keepdim=False) -> "
    "(Tensor values, Tensor indices)",
    takes=REALS,
    out=True,
)
def median_along(self: Tensor, dim: int, keepdim: bool) -> Any:
    """Return the median of each line of a dimension, and its place."""
    at = one_dim(dim, self.shape)
    line = self if self.shape else core.reshape(self, [1])
    size = line.shape[at]
    if not size and line.numel() == 0:
        raise bad_shapes("no element has the median", "1 and more", ("self", self))
    fixed = core.detach(line)
    places = core.sort(fixed, at)[1]
    chosen = core.slice(places, at, (size - 1) // 2, (size - 1) // 2 + 1)
    if self.dtype in FLOATS:
        # NaNs are behind all numbers, so that one is last.
        last = core.slice(places, at, size - 1, size)
        chosen = core.where(core.isnan(core.gather(fixed, at, last)), last, chosen)
    else:
        chosen = core.clone(chosen)
    values = core.gather(line, at, chosen)
    if keepdim and self.shape:
        return values, chosen
    return core.squeeze(values, at), core.squeeze(chosen, at)


_MEANS = ("linear", "lower", "higher", "midpoint", "nearest")


@composite(
    "quantile(Tensor self, Tensor q, int? dim=None, bool keepdim=False, *,"
    ' str interpolation="linear") -> Tensor',
    takes=frozenset({FLOAT32, FLOAT64}),
    out=True,
)
def quantile(
    self: Tensor, q: Tensor, dim: int | None, keepdim: bool, interpolation: str
) -> Any:
    """Return the elements at fractions of the sorted lines of a dimension.

    A fraction between two places is joined by `interpolation`; a line with NaN has NaN.
    """
    if interpolation not in _MEANS:
        raise bad_option("interpolation", repr(interpolation), ", ".join(_MEANS))
    require_dtype("q", q.dtype, frozenset({self.dtype}), f"{self.dtype}, as `self`")
    if len(q.shape) > 1:
        raise bad_shapes("q has several dimensions", "0 or 1", ("q", q))
    if not self.numel():
        raise bad_shapes("there are no elements", "1 and more", ("self", self))
    if self.device.type != "meta":
        inside = core.logical_and(core.ge(q, 0), core.le(q, 1))
        if not bool(core.all(inside)):
            raise bad_option("q", "what is outside of [0, 1]", "fractions, 0 to 1")
    at = 0 if dim is None else one_dim(dim, self.shape)
    whole = dim is None or not self.shape
    line = core.reshape(self, [-1]) if whole else core.movedim(self, [at], [-1])
    values = core.sort(line, -1)[0]
    last = line.shape[-1] - 1
    broken = core.any(core.isnan(line), [-1], True)
    place = core.mul(core.reshape(q, [-1]), last)
    place = core.where(broken, last, place)
    if interpolation == "lower":
        place = core.floor(place)
    elif interpolation == "higher":
        place = core.ceil(place)
    elif interpolation == "nearest":
        place = core.round(place)
    below = core.to(core.floor(place), dtype=INT64)
    found = core.gather(values, -1, below)
    if interpolation in ("linear", "midpoint"):
        above = core.to(core.ceil(place), dtype=INT64)
        share = core.sub(place, below)
        if interpolation == "midpoint":
            share = core.full_like(share, 0.5)
        found = core.lerp_Tensor(found, core.gather(values, -1, above), share)
    # The fractions are in front, if there are several.
    result = core.movedim(found, [-1], [0])
    if keepdim:
        rest = [1] * len(self.shape) if dim is None else list(self.shape)
        if self.shape:
            rest[at] = 1
        result = core.reshape(result, [-1, *rest])
    return result if q.shape else core.squeeze(result, 0)


@composite(
    "isin(Tensor elements, Tensor test_elements, *,"
    " bool assume_unique=False, bool invert=False) -> Tensor",
    only="function",
    takes=REALS,
    tags=("numbers_as_tensors",),
    out=True,
)
def isin(
    elements: Tensor, test_elements: Tensor, assume_unique: bool, invert: bool
) -> Any:
    """Return True for each element that is among the test elements."""
    dtype = result_type(elements, test_elements)
    line = core.reshape(core.detach(test_elements), [-1])
    count = line.numel()
    if count:
        # Memory for one place per element, and not for every pair.
        line = core.sort(core.to(line, dtype=dtype), 0)[0]
        values = core.to(core.detach(elements), dtype=dtype)
        places = core.clamp(core.searchsorted(line, values), 0, count - 1)
        nearest = core.gather(line, 0, core.reshape(places, [-1]))
        found = core.eq(core.reshape(nearest, values.shape), values)
    else:
        found = core.zeros(elements.shape, dtype=BOOL, device=elements.device)
    return core.logical_not(found) if invert else found


def _record(keeps: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return the running extreme by the comparison `keeps`, ties to the later one."""

    def run(self: Tensor, dim: int) -> Any:
        at = one_dim(dim, self.shape)
        line = self if self.shape else core.reshape(self, [1])
        fixed = core.detach(line)
        size, step = line.shape[at], 1
        counts = core.arange(size, device=self.device)
        single = [1] * len(line.shape)
        single[at] = size
        places = core.expand(core.reshape(counts, single), line.shape)
        # Each is compared with the one `step` before it, as sums in `cumprod`.
        while step < size:
            best = core.gather(fixed, at, places)
            earlier = core.slice(best, at, 0, size - step)
            later = core.slice(best, at, step, size)
            moved = core.where(
                keeps(earlier, later),
                core.slice(places, at, 0, size - step),
                core.slice(places, at, step, size),
            )
            places = core.cat([core.slice(places, at, 0, step), moved], at)
            step *= 2
        values = core.gather(line, at, places)
        shape = self.shape
        return core.reshape(values, shape), core.reshape(core.clone(places), shape)

    return run


def _is_more(earlier: Any, later: Any) -> Any:
    """Return True where the earlier number is greater; NaN is, but not than NaN."""
    broken = core.logical_and(core.isnan(earlier), core.logical_not(core.isnan(later)))
    return core.logical_or(core.gt(earlier, later), broken)


def _is_less(earlier: Any, later: Any) -> Any:
    """Return True where the earlier number is less; NaN is, but not than NaN."""
    broken = core.logical_and(core.isnan(earlier), core.logical_not(core.isnan(later)))
    return core.logical_or(core.lt(earlier, later), broken)


def cummax(self: Tensor, dim: int) -> Any:
    """Return the greatest element up to each place, and its place."""
    return _record(_is_more)(self, dim)


def cummin(self: Tensor, dim: int) -> Any:
    """Return the least element up to each place, and its place."""
    return _record(_is_less)(self, dim)


@composite(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    tags=("dynamic_output_shape",),
    out=True,
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
    composite(f"argsort({_SORTED}) -> Tensor", out=True)(argsort),
    Structured(
        "topk",
        "Tensor self, int k, int dim=-1, bool largest=True, bool sorted=True",
        plan_topk,
        returns=_BOTH,
    ),
    *(
        composite(
            f"{run.__name__}(Tensor self, int dim) -> {_BOTH}", takes=_ORDERED, out=True
        )(run)
        for run in (cummax, cummin)
    ),
    *(unique, searchsorted, bincount, median, median_along, quantile, isin),
)
