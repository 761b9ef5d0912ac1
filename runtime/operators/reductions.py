"""Reductions: operators that make one element of many, and running ones.

Rules:
- `dim` is one dimension or several; None and none at all mean every dimension;
- integers and bool are summed and multiplied as int64; means and variances need
  floating-point numbers (or `dtype=`); any and all give bool, of uint8 uint8;
- a sum of nothing is 0, a product 1, a mean NaN; what has no such value (`amax`,
  `argmax`) refuses to reduce no elements, unless the result has none either;
- `amax` takes several dimensions, `max.dim` one and says the places as well;
- norms and logarithms of sums are composites, which neither overflow nor have a slope
  that ends where they are smooth.
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
from everyorder.runtime.tensors.dtype_info import compute_dtype, real_dtype
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
        # Nothing is to be cast, before or after.
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


# Programs see few shapes; each answer is two small tuples.
@lru_cache(maxsize=1024)
def _geometry(
    shape: Shape, dim: tuple[int, ...], keepdim: bool
) -> tuple[tuple[int, ...], Shape]:
    """The dimensions that are reduced, and the shape that is left."""
    dims = many_dims(dim, shape)
    return dims, reduced_shape(shape, dims, keepdim)


def _accumulated(dtype: DType, wanted: DType | None) -> tuple[DType, DType | None]:
    """The dtype of a sum or product, and what its input is cast to."""
    if wanted is None:
        wanted = INT64 if dtype in WHOLE else dtype
    if wanted is INT64 and dtype in WHOLE:
        return INT64, None
    return wanted, compute_dtype(wanted)


def plan_total(
    self: Tensor,
    dim: list[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> CallPlan:
    """Sums and products."""
    result, compute = _accumulated(self.dtype, dtype)
    return _over(self, dim, keepdim, result, compute)


def plan_mean(
    self: Tensor,
    dim: list[int] | None,
    keepdim: bool,
    dtype: DType | None,
) -> CallPlan:
    """The arithmetic mean."""
    result = dtype or self.dtype
    require_dtype("self", result, FLOATS | COMPLEXES, _BROKEN)
    return _over(self, dim, keepdim, result, compute_dtype(result))


def plan_var(
    self: Tensor,
    dim: list[int] | None,
    correction: Any,
    keepdim: bool,
) -> CallPlan:
    """The variance, divided by the count less `correction` (1 if None); real."""
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
    """The variance of complex numbers: that of the real and the imaginary parts."""
    real, imaginary = parts(x)
    other = empty_tensor(out.shape, out.dtype, out.device)
    table["var"](out, real, dims, divisor)
    table["var"](other, imaginary, dims, divisor)
    table["add"](out, out, other, 1)


def plan_extreme(
    self: Tensor, dim: list[int] | None = None, keepdim: bool = False
) -> CallPlan:
    """The greatest or the least element; NaN if there is one."""
    dtype = self.dtype
    require_dtype("self", dtype, REALS | {BOOL}, "real dtypes")
    plan = _over(self, dim, keepdim, dtype, compute_dtype(dtype))
    check_elements(self.shape, plan.arguments[1])
    return plan


def plan_along(self: Tensor, dim: int, keepdim: bool) -> CallPlan:
    """The extremes along one dimension, and where each is; the first of equal ones."""
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
        kept = (*x.shape[:at], 1, *x.shape[at + 1 :])
        # What was made here lies row by row, whether it has that dimension or not.
        steps = contiguous_strides(kept)
        table["gather"](
            view_of(values, kept, steps, 0), x, at, view_of(indices, kept, steps, 0)
        )

    return run


def check_elements(shape: Shape, dims: tuple[int, ...]) -> None:
    """Refuse to reduce no elements to one.  Raises `IndexOutOfRange`."""
    if not prod(shape):
        kept = [size for at, size in enumerate(shape) if at not in dims]
        if prod(kept) and not prod(shape[dim] for dim in dims):
            raise IndexOutOfRange(code="NothingToReduce", shape=shape, dims=dims)


def _of_bytes(name: str) -> Callable[..., None]:
    def run(table: Any, out: Tensor, x: Tensor, dims: tuple[int, ...]) -> None:
        truth = empty_tensor(out.shape, BOOL, out.device)
        table[name](truth, x, dims)
        table["copy"](out, truth)

    return run


def truth_planner(name: str) -> Callable[..., CallPlan]:
    """The planning function of `any` and `all`."""
    of_bytes = _of_bytes(name)

    def plan(self: Tensor, dim: list[int] | None, keepdim: bool) -> CallPlan:
        dtype = self.dtype
        if dtype is UINT8:
            return _over(self, dim, keepdim, UINT8, UINT8, kernel=of_bytes)
        return _over(self, dim, keepdim, BOOL, compute_dtype(dtype))

    return plan


def plan_place(self: Tensor, dim: int | None, keepdim: bool) -> CallPlan:
    """Where the greatest or the least element is; the first of equal ones."""
    dtype = self.dtype
    require_dtype("self", dtype, REALS, "real dtypes, not bool")
    at, shape = _place_geometry(self.shape, dim, keepdim)
    return CallPlan(((shape, INT64),), self.device, (self, at), computing(dtype), (0,))


@lru_cache(maxsize=1024)
def _place_geometry(
    shape: Shape, dim: int | None, keepdim: bool
) -> tuple[int | None, Shape]:
    """The dimension that is searched (None: all), and the shape that is left."""
    at = None if dim is None else one_dim(dim, shape)
    dims = many_dims(None if at is None else [at], shape)
    check_elements(shape, dims)
    return at if shape else None, reduced_shape(shape, dims, keepdim)


def plan_cumsum(self: Tensor, dim: int, dtype: DType | None) -> CallPlan:
    """The running sum along one dimension."""
    at = one_dim(dim, self.shape)
    result, compute = _accumulated(self.dtype, dtype)
    require_dtype("dtype", result, NUMBERS, "numbers, not bool")
    outputs = ((self.shape, result),)
    return CallPlan(outputs, self.device, (self, at), compute, (0,))


def _root(
    table: Any, out: Tensor, x: Tensor, dims: tuple[int, ...], divisor: float
) -> None:
    # What overflows as a square has a root in range.
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
    """The root of the variance."""
    plan = plan_var(self, dim, correction, keepdim)
    return plan._replace(kernel=_root)


def std_anywhere(
    self: Tensor, dim: list[int] | None, correction: Any, keepdim: bool
) -> Any:
    """`std` by other operators, on whatever backend."""
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
    """The length of vectors: the p-th root of the sum of the p-th powers."""
    if dtype is not None:
        fits = COMPLEXES if self.dtype.is_complex else FLOATS
        require_dtype("dtype", dtype, fits, ", ".join(sorted(map(str, fits))))
        self = core.to(self, dtype=dtype)
    if self.dtype in HALVES:
        wide = core.norm(core.to(self, dtype=FLOAT32), p, dim, keepdim)
        return core.to(wide, dtype=self.dtype)
    dims, order = list(dim or ()), 2.0 if p is None else float(p)
    if order == 2:
        # Without the sizes, whose slopes end at zero.
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
    if order == -inf:
        return core.amin(sizes, dims, keepdim)
    if order == 0:
        # A count, of which the gradient is 0.
        return core.sum(core.masked_fill(sizes, core.ne(sizes, 0), 1), dims, keepdim)
    if order == 1:
        return core.sum(sizes, dims, keepdim)
    return _rooted(core.sum(core.pow(sizes, order), dims, keepdim), order)


def _rooted(total: Any, order: float = 2.0) -> Any:
    """The root of sums of powers; at zero a length has no slope, and the gradient 0."""
    none = core.eq(total, 0)
    safe = core.masked_fill(total, none, 1)
    root = core.sqrt(safe) if order == 2 else core.pow(safe, 1 / order)
    return core.masked_fill(root, none, 0 if order > 0 else inf)


@composite(
    "logsumexp(Tensor self, int[1] dim, bool keepdim=False) -> Tensor",
    wide=True,
    out=True,
)
def logsumexp(self: Tensor, dim: Sequence[int], keepdim: bool) -> Any:
    """The logarithm of the sum of exponentials, without overflow."""
    if self.dtype in INTEGERS | {BOOL}:
        self = core.to(self, dtype=FLOAT32)
    dims = list(dim) or list(range(len(self.shape)))
    if not self.numel():
        return core.log(core.sum(core.exp(self), dims, keepdim))
    real = core.real(self) if self.dtype.is_complex else self
    most = core.detach(core.amax(real, dims, True))
    most = core.masked_fill(most, core.eq(core.abs(most), inf), 0)
    total = core.log(core.sum(core.exp(core.sub(self, most)), dims, keepdim))
    return core.add(total, most if keepdim else core.reshape(most, total.shape))


@composite(
    "cumprod(Tensor self, int dim, *, ScalarType? dtype=None) -> Tensor",
    autocast="float32",
    in_place=True,
    out=True,
)
def cumprod(self: Tensor, dim: int, dtype: DType | None) -> Any:
    """The products up to each place of a dimension."""
    if dtype is None and self.dtype in INTEGERS | {BOOL}:
        dtype = INT64
    found = self if dtype is None else core.to(self, dtype=dtype)
    at = one_dim(dim, self.shape)
    size, step = (self.shape or (1,))[at], 1
    # Each by the one `step` before it, which doubles: Hillis and Steele, 1986.
    while step < size:
        first = core.slice(found, at, 0, step)
        rest = core.slice(found, at, step, size)
        moved = core.slice(found, at, 0, size - step)
        found = core.cat([first, core.mul(rest, moved)], at)
        step *= 2
    return core.clone(found) if found is self else found


@composite("count_nonzero(Tensor self, int[1]? dim=None) -> Tensor")
def count_nonzero(self: Tensor, dim: Sequence[int] | None) -> Any:
    """How many elements are not 0."""
    return core.sum(core.ne(self, 0), dim)


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
    """A reduction, which saves its plans."""
    return Structured(
        name, arguments, plan, tags=_TAGS, saves_plans=True, says=says, **options
    )


OPERATORS: tuple[Structured | Unstructured, ...] = (
    _reducing(
        "sum", _TOTAL, plan_total, "The sum of the elements.", autocast="float32"
    ),
    _reducing(
        "prod", _TOTAL, plan_total, "The product of the elements.", autocast="float32"
    ),
    _reducing("mean", _TOTAL, plan_mean, "The mean of the elements."),
    _reducing(
        "var", _SPREAD, plan_var, "The variance of the elements.", autocast="float32"
    ),
    Structured(
        "std",
        _SPREAD,
        plan_std,
        tags=_TAGS,
        anywhere=std_anywhere,
        says="The standard deviation of the elements.",
        autocast="float32",
    ),
    _reducing("max", "Tensor self", plan_extreme, "The greatest element."),
    _reducing("min", "Tensor self", plan_extreme, "The least element."),
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
        "The greatest element, over one dimension or several.",
        kernel="max",
    ),
    _reducing(
        "amin",
        _EXTREMES,
        plan_extreme,
        "The least element, over one dimension or several.",
        kernel="min",
    ),
    _reducing("any", _DIMS, truth_planner("any"), "Whether any element is true."),
    _reducing("all", _DIMS, truth_planner("all"), "Whether all elements are true."),
    _reducing("argmax", _PLACE, plan_place, "Where the greatest element is."),
    _reducing("argmin", _PLACE, plan_place, "Where the least element is."),
    Structured(
        "cumsum",
        "Tensor self, int dim, *, ScalarType? dtype=None",
        plan_cumsum,
        in_place=True,
        saves_plans=True,
        says="The sums up to each place of a dimension.",
        autocast="float32",
    ),
    *(count_nonzero, norm, logsumexp, cumprod),
)
