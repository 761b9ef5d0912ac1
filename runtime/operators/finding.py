"""Finding: what is equal, near, not zero, unique, or lies between, and random choices.

True only here: comparisons that end in masks, places and counts.  All of these are
composites: every backend has them by what they call.
"""

from collections.abc import Sequence
from math import inf, pi
from typing import Any

from runtime.errors.operands import WrongOption
from runtime.operators.agreement import INDICES, misfit, require_ndim
from runtime.operators.call import core
from runtime.operators.plan import (
    ALL,
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOATS,
    INT64,
    PLAIN,
    one_dim,
    require_dtype,
)
from runtime.operators.produce import adopt
from runtime.operators.structured import Written, composite
from runtime.schema.codes import DType
from runtime.tensors.elements import info
from runtime.tensors.keys import is_handled
from runtime.tensors.tensor import Tensor

INT32 = DType.named("int32")


@composite(
    "isclose(Tensor self, Tensor other, float rtol=1e-05, float atol=1e-08,"
    " bool equal_nan=False) -> Tensor"
)
def isclose(
    self: Tensor, other: Tensor, rtol: float, atol: float, equal_nan: bool
) -> Any:
    """Where both sides are equal, or apart by at most atol + rtol |other|."""
    if self.dtype is not other.dtype:
        raise WrongOption(
            operator="core::isclose",
            argument="other",
            found=str(other.dtype),
            fits=f"{self.dtype}, as self",
        )
    if min(rtol, atol) < 0:
        raise WrongOption(
            operator="core::isclose",
            argument="rtol and atol",
            found=f"{rtol} and {atol}",
            fits="0 or more",
        )
    found = core.eq(self, other)
    if equal_nan and self.dtype in FLOATS | COMPLEXES:
        found = core.logical_or(
            found, core.logical_and(core.isnan(self), core.isnan(other))
        )
    if not rtol and not atol:
        return found
    one, two = self, other
    if self.dtype not in FLOATS | COMPLEXES:
        one, two = (
            core.to(each, dtype=DType.named("float64")) for each in (self, other)
        )
    apart = core.abs(core.sub(one, two))
    allowed = core.add(core.mul(core.abs(two), rtol), atol)
    near = core.logical_and(core.isfinite(apart), core.le(apart, allowed))
    return core.logical_or(found, near)


@composite(
    "nan_to_num(Tensor self, float? nan=None, float? posinf=None, float? neginf=None)"
    " -> Tensor",
    in_place=True,
    out=True,
)
def nan_to_num(
    self: Tensor,
    nan: float | None,
    posinf: float | None,
    neginf: float | None,
) -> Any:
    """Numbers for NaN and infinities: 0 and the greatest ones by themselves."""
    if self.dtype.is_complex:
        pairs = core.nan_to_num(core.view_as_real(self), nan, posinf, neginf)
        return core.view_as_complex(pairs)
    if self.dtype not in FLOATS:
        return core.clone(self)
    most = float(info(self.dtype).largest)
    least = -most if neginf is None else neginf
    found = core.where(core.isnan(self), 0.0 if nan is None else nan, self)
    found = core.where(core.eq(self, inf), most if posinf is None else posinf, found)
    return core.where(core.eq(self, -inf), least, found)


@composite("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor")
def count_nonzero(self: Tensor, dim: Sequence[int] | None) -> Any:
    """How many elements are not 0."""
    return core.sum(core.ne(self, 0), dim)


@composite("angle(Tensor self) -> Tensor", wide=True, out=True)
def angle(self: Tensor) -> Any:
    """The angle of complex numbers, in radians; pi for negative real ones."""
    if self.dtype.is_complex:
        parts = core.view_as_real(self)
        return core.atan2(core.select(parts, -1, 1), core.select(parts, -1, 0))
    if self.dtype not in FLOATS:
        self = core.to(self, dtype=FLOAT32)
    side = core.sign(self)
    found = core.mul(core.sub(core.abs(side), side), pi / 2)
    return core.where(core.isnan(self), self, found)


@composite(
    "_unique(Tensor self, bool return_inverse=False, bool return_counts=False,"
    " int? dim=None) -> (Tensor, Tensor, Tensor)",
    takes=ALL - COMPLEXES,
    tags=("dynamic_output_shape",),
)
def unique(
    self: Tensor, return_inverse: bool, return_counts: bool, dim: int | None
) -> Any:
    """The different elements or slices in order, where each is, and their counts."""
    # Which elements are chosen no gradient changes.
    source, self = self, core.detach(self)
    rows = core.reshape(self, [-1, 1])
    at = 0
    if dim is not None and self.shape:
        at = one_dim("core::unique", dim, self.shape)
        size = self.shape[at]
        width = self.numel() // size if size else 0
        rows = core.reshape(core.movedim(self, [at], [0]), [size, width])
    count, width = rows.shape
    order = core.arange(count, dtype=INT64, device=self.device)
    # By the last number first, and never out of an order that there is: radix sort.
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
    """Where numbers would stand in lines that are in order, before or behind equals."""
    call = "core::searchsorted"
    if side not in (None, "left", "right") or (side == "left" and right):
        raise WrongOption(
            operator=call,
            argument="side",
            found=repr(side),
            fits="'left' or 'right', as `right` says, if it says anything",
        )
    line: Any = sorted_sequence
    if sorter is not None:
        line = core.gather(line, -1, sorter)
    ndim = len(line.shape)
    if ndim != 1 and (len(self.shape) != ndim or self.shape[:-1] != line.shape[:-1]):
        raise misfit(
            call,
            "there is not one line for each row of numbers",
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
    found = core.reshape(low, shape)
    return core.to(found, dtype=INT32) if out_int32 else found


@composite(
    "bincount(Tensor self, Tensor? weights=None, int minlength=0) -> Tensor",
    tags=("dynamic_output_shape",),
)
def bincount(self: Tensor, weights: Tensor | None, minlength: int) -> Any:
    """How often each integer occurs, or the sum of its weights."""
    call = "core::bincount"
    require_ndim(call, ("self", self), 1)
    require_dtype(call, "self", self.dtype, INDICES, "integers")
    if minlength < 0 or (self.numel() and core.min(self).item() < 0):
        raise WrongOption(
            operator=call,
            argument="self and minlength",
            found="negative numbers",
            fits="0 or more",
        )
    if weights is not None and weights.shape != self.shape:
        raise misfit(
            call,
            "there is not one weight for each number",
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


@composite(
    "bernoulli(Tensor self, float? p=None, *, Generator? generator=None) -> Tensor",
    tags=("nondeterministic_seeded",),
    explicit=True,
    out=True,
)
def bernoulli(self: Tensor, p: float | None, generator: Any) -> Any:
    """1 with the probability of each element, or `p`, else 0."""
    # A number for all is taken of any dtype: what is drawn is compared with it.
    drawn = core.uniform_(
        core.empty_like(self, dtype=None if p is None else FLOAT32), generator=generator
    )
    for name, chance in (("p", p),) if p is not None else _ends(self):
        if not 0 <= chance <= 1:
            raise WrongOption(
                operator="core::bernoulli",
                argument=name,
                found=str(chance),
                fits="probabilities, 0 to 1",
            )
    return core.to(core.lt(drawn, self if p is None else p), dtype=self.dtype)


@composite(
    "bernoulli_.float(Tensor(a!) self, float p=0.5, *, Generator? generator=None)"
    " -> Tensor(a!)",
    tags=("nondeterministic_seeded",),
    explicit=True,
)
def bernoulli_(self: Tensor, p: float, generator: Any) -> Any:
    """Fill with 1, of probability `p`, and 0."""
    return adopt(self, core.bernoulli(self, p, generator=generator))


def _readable(self: Tensor) -> bool:
    """Whether there are elements, and nobody else to handle what is asked of them."""
    here = self.device.type != "meta" and self.numel() > 0
    return here and not is_handled(self)


def _ends(self: Tensor) -> tuple[tuple[str, float], ...]:
    """The least and the greatest element, where they can be read."""
    if not _readable(self):
        return ()
    return ("self", core.min(self).item()), ("self", core.max(self).item())


@composite(
    "multinomial(Tensor self, int num_samples, bool replacement=False, *,"
    " Generator? generator=None) -> Tensor",
    tags=("nondeterministic_seeded",),
    out=True,
)
def multinomial(
    self: Tensor, num_samples: int, replacement: bool, generator: Any
) -> Any:
    """Places drawn at random, each as often as its weight says."""
    call = "core::multinomial"
    require_ndim(call, ("self", self), 1, 2)
    require_dtype(call, "self", self.dtype, FLOATS, "floating-point dtypes")
    size = self.shape[-1]
    if num_samples < 1 or (not replacement and num_samples > size):
        raise WrongOption(
            operator=call,
            argument="num_samples",
            found=str(num_samples),
            fits=f"1 to {size}, or more with replacement",
        )
    if _readable(self):
        total = core.sum(self, [-1])
        bad = not bool(core.all(core.isfinite(total)).item())
        if bad or core.min(self).item() < 0 or core.min(total).item() <= 0:
            raise WrongOption(
                operator=call,
                argument="self",
                found="weights that are negative, not finite, or all 0",
                fits="finite weights of 0 or more, some of them more",
            )
    if replacement:
        sums = core.cumsum(self, -1)
        shape = [*self.shape[:-1], num_samples]
        drawn = core.uniform_(
            core.empty(shape, dtype=self.dtype, device=self.device), generator=generator
        )
        # Scaled by the last sum, so that rounding leaves nobody behind the end.
        scaled = core.mul(drawn, core.slice(sums, -1, size - 1, size))
        return core.clamp(core.searchsorted(sums, scaled, right=True), 0, size - 1)
    # Exponential races, won by weight: Efraimidis and Spirakis, 2006.
    drawn = core.uniform_(core.empty_like(self), generator=generator)
    races = core.div(self, core.neg(core.log1p(core.neg(drawn))))
    kept = core.masked_fill(races, core.eq(self, 0), -1)
    return core.topk(kept, num_samples, -1)[1]


OPERATORS: tuple[Written, ...] = (
    *(angle, isclose, nan_to_num, count_nonzero, unique, searchsorted, bincount),
    *(bernoulli, bernoulli_, multinomial),
)
