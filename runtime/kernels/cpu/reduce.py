"""Reductions: sum, prod, mean, max, min, any, all, and the variance.

An operation is its loops over rows and over columns, and its initial value.
`runtime.kernels.shared.reduction_passes` provides the passes and the loops.

The variance takes two passes: the mean, then the squared differences from it (Chan,
Golub, LeVeque 1983): no digits are lost if the mean is large compared with the spread.
Means and squares are float64, also for float32, whose own squares would overflow at the
root of its range; an output may be either.  The divisor is the number of elements less
`correction`, and never negative: 0 / 0 is NaN.

Rules: a result depends on the shape and the strides only, never on the number of
threads; a pass that splits rows into leaves, or columns into blocks, writes their
results to a temporary, which is reduced again.  Axes that do not reduce in passes are
copied to (kept, reduced) first.  Integers are summed and multiplied in the output's
dtype, which is int64. Empty reductions have no extremes: the operators refuse them.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.compile.jit import Family
from everyorder.runtime.kernels.cpu.axis import result
from everyorder.runtime.kernels.shared.operands import Geometry, Ints
from everyorder.runtime.kernels.shared.reduction_passes import (
    BLOCK,
    COLUMNS,
    EXACT_LEAF,
    LEAF,
    ROWS,
    TILE,
    Array,
    ReductionPass,
    add,
    block_of,
    both,
    columns,
    divide,
    double,
    either,
    extreme_rows,
    greater,
    integer,
    keep,
    less,
    moved_last,
    multiply,
    passes,
    product_rows,
    rows,
    same,
    signed32,
    signed64,
    sum_rows,
    truth,
    unsigned32,
    unsigned64,
)
from everyorder.runtime.kernels.shared.thread_pool import parallel_for
from everyorder.runtime.tensors.shape import contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of, place_of

Form = np.dtype[Any]
Kernel = Callable[[Tensor, Tensor, Ints], None]

# Cached geometries; a program uses few.
REMEMBERED = 1024
# The number of operations that share the cache: none may evict those of another.
OPERATIONS = 16

# The call for one geometry: from a flat input to a flat output.
Call = Callable[[Array, Array], None]

# Elements below which another thread does not pay off: about 8 us of a sum that reads
# from the second-level cache; handing work over costs about 2 us and a lock.
GRAIN = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class ReductionOperation:
    """The loops and the initial value of a reduction for one kind of element."""

    rows: Family
    columns: Family
    # The initial value, which is the result of an empty reduction; a name: that limit
    # of the integer type.
    start: float | str
    # Elements that are combined in lanes before the lanes are combined.
    leaf: int = LEAF
    # True if the result is divided by the number of elements.
    mean: bool = False

    def first(self, form: Form) -> Any:
        """Return the initial value in the output's dtype."""
        start = self.start
        if isinstance(start, str):
            start = (
                start == "max" if form.kind == "b" else getattr(np.iinfo(form), start)
            )
        return form.type(start)


def _operation(
    name: str, by_rows: Any, by_columns: Any, start: float | str
) -> ReductionOperation:
    return ReductionOperation(
        Family(f"{name}_rows", by_rows, ROWS, fastmath=by_rows in FAST),
        Family(f"{name}_columns", by_columns, COLUMNS),
        start,
        LEAF if by_rows in FAST else EXACT_LEAF,
    )


# Loops whose sums may be reassociated: they do nothing else.
FAST = (sum_rows, product_rows)

_INFINITY = float("inf")
SUM = _operation("sum", sum_rows, columns(same, add, divide), 0)
MEAN = replace(SUM, mean=True)
# The sum of floats in float64.
WIDE_MEAN = _operation("wide_sum", sum_rows, columns(double, add, divide), 0)
_COUNT = _operation("count", rows(add), columns(integer, add, keep), 0)
_PROD = _operation("prod", product_rows, columns(same, multiply, keep), 1)
_INT_PROD = _operation("int_prod", rows(multiply), columns(integer, multiply, keep), 1)
_GREATEST = columns(same, greater, keep)
_LEAST = columns(same, less, keep)
_MAX = {
    "float32": _operation(
        "max32", extreme_rows(True, signed32, unsigned32), _GREATEST, -_INFINITY
    ),
    "float64": _operation(
        "max64", extreme_rows(True, signed64, unsigned64), _GREATEST, -_INFINITY
    ),
}
_MIN = {
    "float32": _operation(
        "min32", extreme_rows(False, signed32, unsigned32), _LEAST, _INFINITY
    ),
    "float64": _operation(
        "min64", extreme_rows(False, signed64, unsigned64), _LEAST, _INFINITY
    ),
}
_INT_MAX = _operation("int_max", rows(greater), _GREATEST, "min")
_INT_MIN = _operation("int_min", rows(less), _LEAST, "max")
_ANY = _operation("any", rows(either), columns(truth, either, keep), 0)
_ALL = _operation("all", rows(both), columns(truth, both, keep), 1)


def _loop(
    operation: ReductionOperation,
    name: str,
    form: Form,
    step: ReductionPass,
    divisor: float,
    by_rows: bool,
) -> Call:
    """Return one pass: rows leaf by leaf, or columns block by block of rows.

    If that leaves more than one result each, these are reduced again.
    """
    outer, stride, length, row, inner = step
    size = operation.leaf if by_rows else BLOCK
    parts = -(-length // size)
    grain = -(-GRAIN // (min(length, size) * min(inner, TILE)))
    last = float(divisor) if parts == 1 else 1.0
    part: Callable[[Array, Array, int, int], None]
    if by_rows:
        tasks = outer * parts
        entry, first = operation.rows[name, form.name], operation.first(form)

        def once(a: Array, out: Array) -> None:
            entry(a, out, 0, parts, length, stride, size, first, last)

        def part(a: Array, out: Array, lo: int, hi: int) -> None:
            entry(a, out[lo:hi], lo, parts, length, stride, size, first, last)

    else:
        tasks = outer * parts * -(-inner // TILE)
        entry = operation.columns[name, form.name]

        def once(a: Array, out: Array) -> None:
            entry(a, out, 0, tasks, length, row, stride, inner, last)

        def part(a: Array, out: Array, lo: int, hi: int) -> None:
            entry(a, out, lo, hi, length, row, stride, inner, last)

    def shared(a: Array, out: Array) -> None:
        parallel_for(tasks, grain, lambda lo, hi: part(a, out, lo, hi))

    call = once if tasks < 2 * grain else shared
    if parts == 1:
        return call
    rest = ReductionPass(outer, parts * inner, parts, inner, inner)
    again = _loop(operation, form.name, form, rest, divisor, by_rows)
    return _chained(call, outer * parts * inner, form, again)


def _chained(first: Call, between: int, form: Form, second: Call) -> Call:
    def both_passes(a: Array, out: Array) -> None:
        temporary = np.empty(between, form)
        first(a, temporary)
        second(temporary, out)

    return both_passes


def _is_of_rows(step: ReductionPass) -> bool:
    return step.inner == 1 and step.reduced_stride == 1


@lru_cache(REMEMBERED)
def planned(
    operation: ReductionOperation,
    name: str,
    form: Form,
    plan: tuple[ReductionPass, ...],
    divisor: float = 1,
) -> Call:
    """Return the call that executes the passes of a plan, then divides."""
    step, *rest = plan
    whole = 1 if rest else divisor
    call = _loop(operation, name, form, step, whole, _is_of_rows(step))
    if not rest:
        return call
    again = planned(operation, form.name, form, tuple(rest), divisor)
    return _chained(call, step.outer * step.inner, form, again)


def _reduce(
    operation: ReductionOperation, out: Tensor, x: Tensor, dims: tuple[int, ...]
) -> None:
    place = x._place
    call = _ready_call(
        operation, x.shape, place and place[2], dims, x.dtype.name, out.dtype.name
    )
    call(flat_input(x), result(out))


def flat_input(x: Tensor) -> Array:
    """Return the flat array from the tensor's first element on."""
    flat: Array | None = flat_of(x)
    if flat is None:
        flat, offset, _ = place_of(x)
        assert flat is not None, "inputs have elements in memory"
        flat = flat[offset:]
    return flat


def _of_geometry(
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    nothing: Call,
    through: Callable[[tuple[ReductionPass, ...]], Call | None],
) -> Call:
    """Return the call for a geometry: `through` its passes, or `nothing` if empty.

    If there are no passes, or `through` rejects them, a copy makes rows first.
    """
    if 0 in shape:
        return nothing
    steps = contiguous_strides(shape) if strides is None else strides
    plan = passes(shape, steps, dims)
    call = None if plan is None else through(plan)
    if call is not None:
        return call
    row = prod(shape[dim] for dim in dims)
    whole = through((ReductionPass(prod(shape) // row, row, row, 1, 1),))
    assert whole is not None, "rows are one pass"
    return lambda a, out: whole(moved_last(a, shape, steps, dims), out)


@lru_cache(OPERATIONS * REMEMBERED)
def _ready_call(
    operation: ReductionOperation,
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    name: str,
    out_name: str,
) -> Call:
    """Return the call of an operation for a geometry."""
    form = np.dtype(out_name)
    divisor = prod(shape[dim] for dim in dims) if operation.mean else 1
    # The quotient of zero by zero, also for complex numbers.
    number = complex(np.nan, np.nan) if form.kind == "c" else np.nan
    start = operation.first(form) if divisor else form.type(number)
    return _of_geometry(
        shape,
        strides,
        dims,
        lambda a, out: out.fill(start),
        lambda plan: planned(operation, name, form, plan, divisor),
    )


def _kernel(
    by_dtype: dict[str, ReductionOperation], other: ReductionOperation, doc: str
) -> Kernel:
    """Return the kernel that selects the operation by the output's dtype."""

    def kernel(out: Tensor, x: Tensor, dims: Ints) -> None:
        _reduce(by_dtype.get(out.dtype.name, other), out, x, dims)

    kernel.__doc__ = doc
    return kernel


def _ready(
    by_dtype: dict[str, ReductionOperation], other: ReductionOperation
) -> Callable[..., Call]:
    """Return the preparation of such a kernel."""

    def ready(out: Geometry, x: Geometry, dims: Ints) -> Call:
        operation = by_dtype.get(out.dtype.name, other)
        names = x.dtype.name, out.dtype.name
        return _ready_call(operation, x.shape, x.strides, dims, *names)

    return ready


def _floats(operation: ReductionOperation) -> dict[str, ReductionOperation]:
    return dict.fromkeys(("float32", "float64", "complex64", "complex128"), operation)


# The operations by the dtype of the output, the default, and the docstring.
_ROWS: dict[str, tuple[dict[str, ReductionOperation], ReductionOperation, str]] = {
    "sum": (
        _floats(SUM),
        _COUNT,
        "Compute the sum: pairwise for floats, or mod 2**64.",
    ),
    "mean": ({}, MEAN, "Compute the mean; NaN without elements."),
    "prod": (_floats(_PROD), _INT_PROD, "Compute the product; for integers mod 2**64."),
    "max": (_MAX, _INT_MAX, "Compute the greatest element, or NaN if present."),
    "min": (_MIN, _INT_MIN, "Compute the least element, or NaN if present."),
    "any": ({}, _ANY, "Compute if any element is true."),
    "all": ({}, _ALL, "Compute if all elements are true."),
}


def square_rows(
    a: Any,
    means: Any,
    out: Any,
    task: int,
    leaves: int,
    length: int,
    stride: int,
    leaf: int,
) -> None:
    """Compute sums of squared differences from the row's mean, leaf by leaf."""
    for k in range(len(out)):
        # As `leaf_of`, whose division would be a second one for every short row.
        row = (task + k) // leaves
        first = (task + k - row * leaves) * leaf
        at = row * stride + first
        part = a[at : at + min(leaf, length - first)]
        mean = means[row]
        total = mean - mean
        for i in range(len(part)):
            total += (part[i] - mean) * (part[i] - mean)
        out[k] = total


def square_columns(
    a: Any,
    means: Any,
    out: Any,
    task: int,
    end: int,
    length: int,
    row_step: int,
    stride: int,
    inner: int,
) -> None:
    """Compute sums of squared differences from the column's mean, by block of rows."""
    for t in range(task, end):
        part, outer, row, column = block_of(t, length, inner)
        width = min(TILE, inner - column)
        acc = out[part * inner + column : part * inner + column + width]
        mean = means[outer * inner + column : outer * inner + column + width]
        at = outer * stride + row * row_step + column
        for i in range(width):
            acc[i] = 0
        for _ in range(min(BLOCK, length - row)):
            p = a[at : at + width]
            at += row_step
            for i in range(width):
                acc[i] += (p[i] - mean[i]) * (p[i] - mean[i])


def narrow(a: Any, out: Any) -> None:
    """Convert numbers to the dtype of the output; infinite beyond its range."""
    for i in range(len(out)):
        out[i] = a[i]


_SQUARE_ROWS = Family(
    "variance_rows",
    square_rows,
    "void(T[::1], float64[::1], float64[::1], int64, int64, int64, int64, int64)",
    fastmath=True,
)
_SQUARE_COLUMNS = Family(
    "variance_columns",
    square_columns,
    "void(T[::1], float64[::1], float64[::1],"
    " int64, int64, int64, int64, int64, int64)",
)
_NARROW = Family("variance_narrow", narrow, "void(float64[::1], T[::1])")
_WIDE = np.dtype("float64")


def _squares(name: str, step: ReductionPass, divisor: float) -> Call:
    """Return the call for the mean, then the squared differences from it."""
    outer, stride, length, row, inner = step
    by_rows = _is_of_rows(step)
    size = LEAF if by_rows else BLOCK
    parts = -(-length // size)
    tasks = outer * parts * (1 if by_rows else -(-inner // TILE))
    grain = -(-GRAIN // (min(length, size) * min(inner, TILE)))
    entry = (_SQUARE_ROWS if by_rows else _SQUARE_COLUMNS)[name]
    mean = planned(WIDE_MEAN, name, _WIDE, (step,), length)
    left = ReductionPass(outer, parts * inner, parts, inner, inner)
    rest = planned(SUM, _WIDE.name, _WIDE, (left,), divisor)

    def call(a: Array, out: Array) -> None:
        means = np.empty(outer * inner, _WIDE)
        mean(a, means)
        squares = np.empty(outer * parts * inner, _WIDE)

        def rows(lo: int, hi: int) -> None:
            entry(a, means, squares[lo:hi], lo, parts, length, stride, LEAF)

        def columns(lo: int, hi: int) -> None:
            entry(a, means, squares, lo, hi, length, row, stride, inner)

        parallel_for(tasks, grain, rows if by_rows else columns)
        rest(squares, out)

    return call


@lru_cache(REMEMBERED)
def _variance_call(
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    name: str,
    out_name: str,
    correction: float,
) -> Call:
    """Return the call of the variance for a geometry."""
    divisor = float(max(prod(shape[dim] for dim in dims) - correction, 0))

    def through(plan: tuple[ReductionPass, ...]) -> Call | None:
        return _squares(name, plan[0], divisor) if len(plan) == 1 else None

    call = _of_geometry(shape, strides, dims, _nothing, through)
    if out_name == _WIDE.name or 0 in shape:
        return call
    entry = _NARROW[out_name]

    def narrowed(a: Array, out: Array) -> None:
        wide = np.empty(len(out), _WIDE)
        call(a, wide)
        entry(wide, out)

    return narrowed


def _nothing(a: Array, out: Array) -> None:
    out.fill(np.nan)


def var(out: Tensor, x: Tensor, dims: Ints, correction: float) -> None:
    """Compute the variance over `dims` of floats: the sum of squares by n - correction.

    The output has the dtype of `x`, or float64.
    """
    place, names = x._place, (x.dtype.name, out.dtype.name)
    call = _variance_call(x.shape, place and place[2], dims, *names, correction)
    call(flat_input(x), result(out))


def _ready_variance(out: Geometry, x: Geometry, dims: Ints, correction: float) -> Call:
    names = x.dtype.name, out.dtype.name
    return _variance_call(x.shape, x.strides, dims, *names, correction)


KERNELS: dict[str, Callable[..., Any]] = {
    **{name: _kernel(*row) for name, row in _ROWS.items()},
    "var": var,
}
READY: dict[str, Callable[..., Any]] = {
    **{name: _ready(*row[:2]) for name, row in _ROWS.items()},
    "var": _ready_variance,
}
