"""Reductions: operators that combine many elements into one, and running ones.

Rules:
- `dim` is one dimension or several; None and an empty list mean every dimension;
- integers and bool are summed and multiplied as int64; means and variances need
  floating-point numbers (or `dtype=`); `any` and `all` return bool, and uint8 for
  uint8;
- an empty sum is 0, an empty product 1, an empty mean NaN; reductions without such a
  value (`amax`, `argmax`) refuse to reduce no elements, unless the result is empty too;
- `amax` accepts several dimensions; `max.dim` accepts one and returns the places as
  well;
- norms and logarithms of sums are composites, which do not overflow, and whose slopes
  stay finite wherever the function is smooth.
"""

from collections.abc import Callable, Sequence
from functools import lru_cache
from math import inf, prod
from typing import Any

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.operators.declare.allocate_outputs import parts
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.operators.declare.plan import (
    BOOL,
    COMPLEXES,
    FLOAT32,
    FLOAT64,
    FLOATS,
    HALVES,
    INT64,
    INTEGERS,
    NUMBERS,
    REALS,
    CallPlan,
    Shape,
    bad_option,
    computing,
    many_dims,
    one_dim,
    require_dtype,
)
from everyorder.runtime.operators.declare.structured import (
    Planner,
    Structured,
    Unstructured,
    composite,
)
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import (
    DEFAULTS,
    compute_dtype,
    real_dtype,
)
from everyorder.runtime.tensors.promotion import promote_types
from everyorder.runtime.tensors.shape import contiguous_strides, reduced_shape
from everyorder.runtime.tensors.tensor import Tensor

WHOLE = INTEGERS | {BOOL}
UINT8 = DType.named("uint8")
_BROKEN = "floating-point and complex dtypes; `dtype=` converts"


def _over(
    self: Tensor,
    dim: list[int] | None,
    keepdim: bool,
    result: DType,
    compute: DType | None,
    extra: tuple[Any, ...] = (),
    kernel: Any = None,
) -> CallPlan:
    dims, shape = _geometry(self.shape, tuple(dim) if dim else (), keepdim)
    if compute is self.dtype and compute_dtype(result) is result:
        # No cast is needed, before or after.
        compute = None
    return CallPlan(
        ((shape, result),),
        self.device,
        (self, dims, *extra),
        compute,
        (0,),
        None,
        kernel,
    )


# Programs use few shapes; an entry is two small tuples.
@lru_cache(maxsize=1024)
def _geometry(
    shape: Shape, dim: tuple[int, ...], keepdim: bool
) -> tuple[tuple[int, ...], Shape]:
    """Return the reduced dimensions, and the shape of the result."""
    dims = many_dims(dim, shape)
    return dims, reduced_shape(shape, dims, keepdim)


def _accumulated(dtype: DType, target: DType | None) -> tuple[DType, DType | None]:
    """Return the dtype of a sum or product, and the dtype to cast its input to."""
    if target is None:
        target = INT64 if dtype in WHOLE else dtype
    if target is INT64 and dtype in WHOLE:
        return INT64, None
    return target, compute_dtype(target)


def plan_total(
    self: Tensor,
    dim: list[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> CallPlan:
    """Return the plan of a sum or product."""
    result, compute = _accumulated(self.dtype, dtype)
    return _over(self, dim, keepdim, result, compute)


def plan_mean(
    self: Tensor,
    dim: list[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> CallPlan:
    """Return the plan of the arithmetic mean."""
    result = dtype or self.dtype
    require_dtype("self", result, FLOATS | COMPLEXES, _BROKEN)
    return _over(self, dim, keepdim, result, compute_dtype(result))


def plan_var(
    self: Tensor,
    dim: list[int] | None,
    correction: Any,
    keepdim: bool,
) -> CallPlan:
    """Return the plan of the variance, a real number.

    The divisor is the count less `correction`, which is 1 if None.
    """
    dtype = self.dtype
    accepted = FLOATS | COMPLEXES
    require_dtype("self", dtype, accepted, "floating-point and complex dtypes")
    if isinstance(correction, complex):
        raise bad_option("correction", repr(correction), "a real number")
    divisor = 1.0 if correction is None else float(correction)
    kernel = _of_parts if dtype.is_complex else None
    result, compute = real_dtype(dtype), compute_dtype(dtype)
    return _over(self, dim, keepdim, result, compute, (divisor,), kernel)


def _of_parts(
    table: Any, out: Tensor, x: Tensor, dims: tuple[int, ...], divisor: float
) -> None:
    """Compute the variance of complex numbers: the sum of that of the parts."""
    real, imaginary = parts(x)
    other = empty_tensor(out.shape, out.dtype, out.device)
    table["var"](out, real, dims, divisor)
    table["var"](other, imaginary, dims, divisor)
    table["add"](out, out, other, 1)


def plan_extreme(
    self: Tensor, dim: list[int] | None = None, keepdim: bool = False
) -> CallPlan:
    """Return the plan of the greatest or the least element; NaN if there is one."""
    dtype = self.dtype
    require_dtype("self", dtype, REALS | {BOOL}, "real dtypes")
    plan = _over(self, dim, keepdim, dtype, compute_dtype(dtype))
    check_elements(self.shape, plan.arguments[1])
    return plan


def plan_along(self: Tensor, dim: int, keepdim: bool) -> CallPlan:
    """Return the plan of extremes along a dimension, and the first index of each."""
    dtype = self.dtype
    require_dtype("self", dtype, REALS | {BOOL}, "real dtypes")
    at, shape = _place_geometry(self.shape, dim, keepdim)
    outputs = ((shape, dtype), (shape, INT64))
    return CallPlan(outputs, self.device, (self, at), compute_dtype(dtype), (0,))


def _along(place: str) -> Callable[..., None]:
    def run(
        table: Any, values: Tensor, indices: Tensor, x: Tensor, at: int | None
    ) -> None:
        if not values.numel():
            return
        if at is None:
            table["fill"](indices, 0)
            table["copy"](values, x)
            return
        table[place](indices, x, at)
        shape = (*x.shape[:at], 1, *x.shape[at + 1 :])
        # The outputs are row-major, whether they keep the dimension or not.
        steps = contiguous_strides(shape)
        table["gather"](
            view_of(values, shape, steps, 0), x, at, view_of(indices, shape, steps, 0)
        )

    return run


def check_elements(shape: Shape, dims: tuple[int, ...]) -> None:
    """Refuse to reduce no elements to one.  Raises `IndexOutOfRange`."""
    if not prod(shape):
        remaining = [size for at, size in enumerate(shape) if at not in dims]
        if prod(remaining) and not prod(shape[dim] for dim in dims):
            raise IndexOutOfRange(code="NothingToReduce", shape=shape, dims=dims)


def _of_bytes(name: str) -> Callable[..., None]:
    def run(table: Any, out: Tensor, x: Tensor, dims: tuple[int, ...]) -> None:
        truth = empty_tensor(out.shape, BOOL, out.device)
        table[name](truth, x, dims)
        table["copy"](out, truth)

    return run


def truth_planner(name: str) -> Callable[..., CallPlan]:
    """Return the planning function of `any` and `all`."""
    of_bytes = _of_bytes(name)

    def plan(self: Tensor, dim: list[int] | None, keepdim: bool) -> CallPlan:
        dtype = self.dtype
        if dtype is UINT8:
            return _over(self, dim, keepdim, UINT8, UINT8, kernel=of_bytes)
        return _over(self, dim, keepdim, BOOL, compute_dtype(dtype))

    return plan


def plan_place(self: Tensor, dim: int | None, keepdim: bool) -> CallPlan:
    """Return the plan of the first index of the greatest or the least element."""
    dtype = self.dtype
    require_dtype("self", dtype, REALS, "real dtypes, not bool")
    at, shape = _place_geometry(self.shape, dim, keepdim)
    return CallPlan(((shape, INT64),), self.device, (self, at), computing(dtype), (0,))


@lru_cache(maxsize=1024)
def _place_geometry(
    shape: Shape, dim: int | None, keepdim: bool
) -> tuple[int | None, Shape]:
    """Return the searched dimension (None: all), and the shape of the result."""
    at = None if dim is None else one_dim(dim, shape)
    dims = many_dims(None if at is None else [at], shape)
    check_elements(shape, dims)
    return at if shape else None, reduced_shape(shape, dims, keepdim)


def plan_cumsum(self: Tensor, dim: int, dtype: DType | None) -> CallPlan:
    """Return the plan of the running sum along one dimension."""
    at = one_dim(dim, self.shape)
    result, compute = _accumulated(self.dtype, dtype)
    require_dtype("dtype", result, NUMBERS, "numbers, not bool")
    outputs = ((self.shape, result),)
    return CallPlan(outputs, self.device, (self, at), compute, (0,))


def _root(
    table: Any, out: Tensor, x: Tensor, dims: tuple[int, ...], divisor: float
) -> None:
    # In float64: a square may overflow although its root is in range.
    wide = out if out.dtype is FLOAT64 else empty_tensor(out.shape, FLOAT64, out.device)
    if x.dtype.is_complex:
        _of_parts(table, wide, x, dims, divisor)
    else:
        table["var"](wide, x, dims, divisor)
    table["sqrt"](wide, wide)
    if wide is not out:
        table["copy"](out, wide)


def plan_std(
    self: Tensor,
    dim: list[int] | None,
    correction: Any,
    keepdim: bool,
) -> CallPlan:
    """Return the plan of the root of the variance."""
    plan = plan_var(self, dim, correction, keepdim)
    return plan._replace(kernel=_root)


def std_anywhere(
    self: Tensor, dim: list[int] | None, correction: Any, keepdim: bool
) -> Any:
    """Compute `std` by other operators, on any backend."""
    return core.sqrt(core.var(self, dim, correction=correction, keepdim=keepdim))


@composite(
    "norm(Tensor self, Scalar? p=None, int[1]? dim=None, bool keepdim=False, *,"
    " ScalarType? dtype=None) -> Tensor",
    takes=FLOATS | COMPLEXES,
    autocast="float32",
    out=True,
)
def norm(
    self: Tensor, p: Any, dim: Sequence[int] | None, keepdim: bool, dtype: DType | None
) -> Any:
    """Return the norm of vectors: the p-th root of the sum of the p-th powers."""
    self = in_dtype(self, dtype)
    if self.dtype in HALVES:
        wide = core.norm(core.to(self, dtype=FLOAT32), p, dim, keepdim)
        return core.to(wide, dtype=self.dtype)
    dims, order = list(dim or ()), 2.0 if p is None else float(p)
    if order == 2:
        # Not by magnitudes, which have no slope at zero.
        parts = core.view_as_real(self) if self.dtype.is_complex else self
        every = list(range(len(self.shape)))
        along = [one_dim(each, self.shape) for each in dims] or every
        along = along if self.shape else []
        ends = [len(self.shape)] if self.dtype.is_complex else []
        over = [*along, *ends]
        total = (
            core.sum(core.square(parts), over, keepdim) if over else core.square(parts)
        )
        return _rooted(core.squeeze(total, [-1]) if keepdim and ends else total)
    sizes = core.abs(self)
    if order == inf:
        return core.amax(sizes, dims, keepdim)
    if order == -inf or (order < 0 and not self.numel()):
        # No elements have no norm of a negative order: `amin` refuses them.
        return core.amin(sizes, dims, keepdim)
    if order == 0:
        # A count has the gradient 0.
        return core.sum(core.masked_fill(sizes, core.ne(sizes, 0), 1), dims, keepdim)
    if order == 1:
        return core.sum(sizes, dims, keepdim)
    if order > 1:
        return _rooted(core.sum(core.pow(sizes, order), dims, keepdim), order)
    # The power of a zero has no slope; a negative one makes the norm 0.
    zero = core.eq(sizes, 0)
    powers = core.pow(core.masked_fill(sizes, zero, 1), order)
    powers = core.masked_fill(powers, zero, 0 if order > 0 else inf)
    return _rooted(core.sum(powers, dims, keepdim), order)


def in_dtype(self: Tensor, dtype: DType | None) -> Any:
    """Return the tensor in the dtype that its norm is computed in.

    Raises:
        DTypeRefused: the dtype does not hold each element of the tensor's dtype.
    """
    if dtype is None:
        return self
    kind = COMPLEXES if self.dtype.is_complex else FLOATS
    fits = frozenset(each for each in kind if promote_types(self.dtype, each) is each)
    require_dtype("dtype", dtype, fits, ", ".join(sorted(map(str, fits))))
    return core.to(self, dtype=dtype)


def _rooted(total: Any, order: float = 2.0) -> Any:
    """Return the root of sums of powers, with the gradient 0 at zero and at infinity.

    The sum of powers is infinite for a negative order only if the norm is 0.
    """
    none = core.eq(total, 0)
    safe = core.masked_fill(total, none, 1)
    if order > 0:
        root = core.sqrt(safe) if order == 2 else core.pow(safe, 1 / order)
        return core.masked_fill(root, none, 0)
    every = core.eq(total, inf)
    root = core.pow(core.masked_fill(safe, every, 1), 1 / order)
    return core.masked_fill(core.masked_fill(root, none, inf), every, 0)


@composite(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    explicit=True,
    wide=True,
    out=True,
)
def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool) -> Any:
    """Return the logarithm of the sum of exponentials, without overflow."""
    if self.dtype in INTEGERS | {BOOL}:
        return core.logsumexp(core.to(self, dtype=DEFAULTS.real), dim, keepdim)
    dims = list(dim) or list(range(len(self.shape)))
    if not self.numel():
        return core.log(core.sum(core.exp(self), dims, keepdim))
    real = core.real(self) if self.dtype.is_complex else self
    most = core.amax(real, dims, True)
    most = core.masked_fill(most, core.eq(core.abs(most), inf), 0)
    total = core.log(core.sum(core.exp(core.sub(self, most)), dims, keepdim))
    return core.add(total, most if keepdim else core.reshape(most, total.shape))


@composite(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    autocast="float32",
    in_place=True,
    out=True,
    dtype_of_out=True,
)
def cumprod(self: Tensor, dim: int, dtype: DType | None) -> Any:
    """Return the products up to each place of a dimension."""
    if dtype is None and self.dtype in INTEGERS | {BOOL}:
        dtype = INT64
    result = self if dtype is None else core.to(self, dtype=dtype)
    at = one_dim(dim, self.shape)
    size, step = (self.shape or (1,))[at], 1
    # Multiply each by the one `step` before it, and double the step: Hillis and Steele,
    # 1986.
    while step < size:
        first = core.slice(result, at, 0, step)
        rest = core.slice(result, at, step, size)
        moved = core.slice(result, at, 0, size - step)
        result = core.cat([first, core.mul(rest, moved)], at)
        step *= 2
    return core.clone(result) if result is self else result


@composite("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor", out=True)
def count_nonzero(self: Tensor, dim: Sequence[int] | None) -> Any:
    """Return the number of nonzero elements."""
    return core.sum(core.ne(self, 0), dim)


def _with_mean(name: str, says: str) -> Unstructured:
    """Return the operator of a spread together with the mean."""

    def run(
        self: Tensor, dim: Sequence[int] | None, correction: Any, keepdim: bool
    ) -> Any:
        spread = getattr(core, name)(self, dim, correction=correction, keepdim=keepdim)
        return spread, core.mean(self, dim, keepdim)

    run.__doc__ = says
    declare = composite(f"{name}_mean({_SPREAD}) -> (Tensor, Tensor)", only="function")
    return declare(run)


_DIMS = "Tensor self, int[1]? dim=None, bool keepdim=False"

_SPREAD = (
    "Tensor self, int[1]? dim=None, *, Scalar? correction=None, bool keepdim=False"
)

_PLACE = "Tensor self, int? dim=None, bool keepdim=False"
_TOTAL = f"{_DIMS}, *, ScalarType? dtype=None"
_EXTREMES = "Tensor self, int[1] dim=[], bool keepdim=False"
_BOTH = "(Tensor values, Tensor indices)"
_TAGS = ("reduction",)


def _reducing(
    name: str, arguments: str, plan: Planner, says: str, **options: Any
) -> Structured:
    """Return a reduction that saves its plans."""
    return Structured(
        name, arguments, plan, tags=_TAGS, saves_plans=True, says=says, **options
    )


OPERATORS: tuple[Structured | Unstructured, ...] = (
    _reducing(
        "sum", _TOTAL, plan_total, "Return the sum of the elements.", autocast="float32"
    ),
    _reducing(
        "prod",
        _TOTAL,
        plan_total,
        "Return the product of all elements.",
        autocast="float32",
    ),
    _reducing("mean", _TOTAL, plan_mean, "Return the mean of the elements."),
    _reducing(
        "var",
        _SPREAD,
        plan_var,
        "Return the variance of the elements.",
        autocast="float32",
    ),
    Structured(
        "std",
        _SPREAD,
        plan_std,
        tags=_TAGS,
        anywhere=std_anywhere,
        says="Return the standard deviation of the elements.",
        autocast="float32",
    ),
    _reducing("max", "Tensor self", plan_extreme, "Return the greatest element."),
    _reducing("min", "Tensor self", plan_extreme, "Return the least element."),
    *(
        Structured(
            f"{name}.dim",
            "Tensor self, int dim, bool keepdim=False",
            plan_along,
            returns=_BOTH,
            kernel=_along(f"arg{name}"),
            tags=_TAGS,
        )
        for name in ("max", "min")
    ),
    composite("max.other(Tensor self, Tensor other) -> Tensor")(
        lambda self, other: core.maximum(self, other)
    ),
    composite("min.other(Tensor self, Tensor other) -> Tensor")(
        lambda self, other: core.minimum(self, other)
    ),
    _reducing(
        "amax",
        _EXTREMES,
        plan_extreme,
        "Return the greatest element over one dimension or several.",
        kernel="max",
    ),
    _reducing(
        "amin",
        _EXTREMES,
        plan_extreme,
        "Return the least element over one dimension or several.",
        kernel="min",
    ),
    _reducing("any", _DIMS, truth_planner("any"), "Return True if any element is."),
    _reducing("all", _DIMS, truth_planner("all"), "Return True if all elements are."),
    _reducing("argmax", _PLACE, plan_place, "Return the index of the maximum."),
    _reducing("argmin", _PLACE, plan_place, "Return the index of the minimum."),
    Structured(
        "cumsum",
        "Tensor self, int dim, *, ScalarType? dtype=None",
        plan_cumsum,
        in_place=True,
        saves_plans=True,
        says="Return the sums up to each place of a dimension.",
        autocast="float32",
    ),
    *(count_nonzero, norm, logsumexp, cumprod),
    _with_mean("var", "Return the variance and the mean of the elements."),
    _with_mean("std", "Return the standard deviation and the mean of the elements."),
)
