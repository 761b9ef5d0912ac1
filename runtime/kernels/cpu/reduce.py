"""Reductions: sum, prod, mean, max, min, any, all, and the variance.

An operation is its loops over rows and over columns, and what combining begins with.
The passes, and the loops, come from `runtime.kernels.cpu.reduce_bodies`.

The variance takes two passes: the mean, then the squares of what is off it (Chan,
Golub, LeVeque 1983): no digits are lost where the mean is large beside the spread.
Means and squares are float64, also of float32, whose own squares would overflow at the
root of its range; an output may be either.  The divisor is the number of elements less
`correction`, and never negative: nothing over nothing is NaN.

Rules: a result depends on the shape and the strides only, never on the number of
threads; a pass that splits rows into leaves, or columns into blocks, writes their
results to a temporary, which is reduced again.  Axes that do not reduce in passes are
copied to (kept, reduced) first.  Integers are summed and multiplied in the output's
dtype, which is int64. Greatest and least of nothing do not exist: the operators refuse
to ask.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.axis import result
from runtime.kernels.cpu.operand import Geometry
from runtime.kernels.cpu.reduce_bodies import (
    BLOCK,
    COLUMNS,
    EXACT_LEAF,
    LEAF,
    ROWS,
    TILE,
    Array,
    Pass,
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
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import flat_of, place_of
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor

Ints = tuple[int, ...]
Form = np.dtype[Any]
Kernel = Callable[[Tensor, Tensor, Ints], None]

# Geometries remembered for each operation; a program has few.
REMEMBERED = 1024

# What is done for one geometry: from a flat input to a flat output.
Call = Callable[[Array, Array], None]

# Elements below which a thread of its own does not pay: about 8 us of a sum that reads
# from the second-level cache; handing work over costs about 2 us and a lock.
GRAIN = 1 << 18


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """What a reduction does to one kind of element."""

    rows: Family
    columns: Family
    # What combining begins with, which is the result of combining nothing; a name: that
    # limit of the integer type.
    start: float | str
    # Elements that are combined in lanes before their outcome is.
    leaf: int = LEAF
    # Whether the result is divided by the number of elements.
    mean: bool = False
    # Calls made ready, by all that they depend on.
    ready: dict[Any, Call] = field(default_factory=dict)

    def first(self, form: Form) -> Any:
        """What combining begins with, in the output's dtype."""
        start = self.start
        if isinstance(start, str):
            start = (
                start == "max" if form.kind == "b" else getattr(np.iinfo(form), start)
            )
        return form.type(start)


def _operation(
    name: str, by_rows: Any, by_columns: Any, start: float | str
) -> Operation:
    return Operation(
        Family(f"{name}_rows", by_rows, ROWS, fastmath=by_rows in FAST),
        Family(f"{name}_columns", by_columns, COLUMNS),
        start,
        LEAF if by_rows in FAST else EXACT_LEAF,
    )


# Loops whose sums may be reassociated: they do nothing else.
FAST = (sum_rows, product_rows)

_INFINITY = float("inf")
SUM = _operation("sum", sum_rows, columns(same, add, divide), 0)
MEAN = replace(SUM, mean=True, ready={})
# Of floats in float64.
WIDE_MEAN = _operation("wide_sum", sum_rows, columns(double, add, divide), 0)
_COUNT = _operation("count", rows(add), columns(integer, add, keep), 0)
_PROD = _operation("prod", product_rows, columns(same, multiply, keep), 1)
_INT_PROD = _operation("int_prod", rows(multiply), columns(integer, multiply, keep), 1)
_GREATEST = columns(same, greater, keep)
_LEAST = columns(same, less, keep)
_MAX = {
    "float32": _operation(
        "max", extreme_rows(True, signed32, unsigned32), _GREATEST, -_INFINITY
    ),
    "float64": _operation(
        "max", extreme_rows(True, signed64, unsigned64), _GREATEST, -_INFINITY
    ),
}
_MIN = {
    "float32": _operation(
        "min", extreme_rows(False, signed32, unsigned32), _LEAST, _INFINITY
    ),
    "float64": _operation(
        "min", extreme_rows(False, signed64, unsigned64), _LEAST, _INFINITY
    ),
}
_INT_MAX = _operation("int_max", rows(greater), _GREATEST, "min")
_INT_MIN = _operation("int_min", rows(less), _LEAST, "max")
_ANY = _operation("any", rows(either), columns(truth, either, keep), 0)
_ALL = _operation("all", rows(both), columns(truth, both, keep), 1)


def _rows(
    operation: Operation, name: str, form: Form, step: Pass, divisor: float
) -> Call:
    """Rows leaf by leaf, and the leaves again until one is left."""
    length, stride = step.reduced, step.outer_stride
    leaf = operation.leaf
    leaves = -(-length // leaf)
    count = step.outer * leaves
    grain = -(-GRAIN // min(length, leaf))
    entry = operation.rows[name, form.name]
    last = float(divisor) if leaves == 1 else 1.0
    first = operation.first(form)

    def leaf_by_leaf(a: Array, out: Array) -> None:
        if count < 2 * grain:
            entry(a, out, 0, leaves, length, stride, leaf, first, last)
            return

        def run(lo: int, hi: int) -> None:
            entry(a, out[lo:hi], lo, leaves, length, stride, leaf, first, last)

        parallel_for(count, grain, run)

    if leaves == 1:
        return leaf_by_leaf
    again = _rows(
        operation, form.name, form, Pass(step.outer, leaves, leaves, 1, 1), divisor
    )
    return _chained(leaf_by_leaf, count, form, again)


def _columns(
    operation: Operation, name: str, form: Form, step: Pass, divisor: float
) -> Call:
    """Columns block by block of rows, and the blocks again until one is left."""
    outer, stride, length, row, inner = step
    blocks = -(-length // BLOCK)
    tasks = outer * blocks * -(-inner // TILE)
    grain = -(-GRAIN // (min(length, BLOCK) * min(inner, TILE)))
    entry = operation.columns[name, form.name]
    last = float(divisor) if blocks == 1 else 1.0

    def block_by_block(a: Array, out: Array) -> None:
        if tasks < 2 * grain:
            entry(a, out, 0, tasks, length, row, stride, inner, last)
            return

        def run(lo: int, hi: int) -> None:
            entry(a, out, lo, hi, length, row, stride, inner, last)

        parallel_for(tasks, grain, run)

    if blocks == 1:
        return block_by_block
    step = Pass(outer, blocks * inner, blocks, inner, inner)
    again = _columns(operation, form.name, form, step, divisor)
    return _chained(block_by_block, outer * blocks * inner, form, again)


def _chained(first: Call, between: int, form: Form, second: Call) -> Call:
    def both_passes(a: Array, out: Array) -> None:
        temporary = np.empty(between, form)
        first(a, temporary)
        second(temporary, out)

    return both_passes


@lru_cache(REMEMBERED)
def planned(
    operation: Operation,
    name: str,
    form: Form,
    plan: tuple[Pass, ...],
    divisor: float = 1,
) -> Call:
    """The call that goes through the passes of a plan, then divides."""
    step, *rest = plan
    loop = _rows if step.inner == 1 and step.reduced_stride == 1 else _columns
    call = loop(operation, name, form, step, 1 if rest else divisor)
    if not rest:
        return call
    again = planned(operation, form.name, form, tuple(rest), divisor)
    return _chained(call, step.outer * step.inner, form, again)


def _reduce(
    operation: Operation, out: Tensor, x: Tensor, dims: tuple[int, ...]
) -> None:
    place = x._place
    key = x.shape, place and place[2], dims, x.dtype.name, out.dtype.name
    call = operation.ready.get(key) or _make_ready(operation, *key)
    call(flat_input(x), result(out))


def flat_input(x: Tensor) -> Array:
    """The flat array from the tensor's first element on."""
    flat: Array | None = flat_of(x)
    if flat is None:
        flat, offset, _ = place_of(x)
        assert flat is not None, "inputs have elements in memory"
        flat = flat[offset:]
    return flat


def _make_ready(
    operation: Operation,
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    name: str,
    out_name: str,
) -> Call:
    """Make the call for a geometry, and remember it."""
    form = np.dtype(out_name)
    steps = contiguous_strides(shape) if strides is None else strides
    divisor = prod(shape[dim] for dim in dims) if operation.mean else 1
    plan = None if 0 in shape else passes(shape, steps, dims)
    call: Call
    if 0 in shape:
        # The quotient of zero by zero, also of complex numbers.
        number = complex(np.nan, np.nan) if form.kind == "c" else np.nan
        nothing = operation.first(form) if divisor else form.type(number)

        def call(a: Array, out: Array) -> None:
            out.fill(nothing)

    elif plan is not None:
        call = planned(operation, name, form, plan, divisor)
    else:
        rows = prod(n for dim, n in enumerate(shape) if dim not in dims)
        row = prod(shape[dim] for dim in dims)
        whole = planned(operation, name, form, (Pass(rows, row, row, 1, 1),), divisor)

        def call(a: Array, out: Array) -> None:
            whole(moved_last(a, shape, steps, dims), out)

    if len(operation.ready) >= REMEMBERED:
        operation.ready.clear()
    operation.ready[shape, strides, dims, name, out_name] = call
    return call


def _kernel(by_dtype: dict[str, Operation], other: Operation, doc: str) -> Kernel:
    """The kernel that works by the operation of the output's dtype, or the other."""

    def kernel(out: Tensor, x: Tensor, dims: Ints) -> None:
        _reduce(by_dtype.get(out.dtype.name, other), out, x, dims)

    kernel.__doc__ = doc
    return kernel


def _ready(by_dtype: dict[str, Operation], other: Operation) -> Callable[..., Call]:
    """What makes the same ready."""

    def ready(out: Geometry, x: Geometry, dims: Ints) -> Call:
        operation = by_dtype.get(out.dtype.name, other)
        key = x.shape, x.strides, dims, x.dtype.name, out.dtype.name
        return _make_ready(operation, *key)

    return ready


def _floats(operation: Operation) -> dict[str, Operation]:
    return dict.fromkeys(("float32", "float64", "complex64", "complex128"), operation)


# By the dtype of the output, for any other, and what it does.
_ROWS: dict[str, tuple[dict[str, Operation], Operation, str]] = {
    "sum": (_floats(SUM), _COUNT, "The sum: pairwise of floats, or mod 2**64."),
    "mean": ({}, MEAN, "The sum by the number of elements; NaN of none."),
    "prod": (_floats(_PROD), _INT_PROD, "The product; of integers mod 2**64."),
    "max": (_MAX, _INT_MAX, "The greatest element; NaN where there is one."),
    "min": (_MIN, _INT_MIN, "The least element; NaN where there is one."),
    "any": ({}, _ANY, "Whether an element is true; false where none is."),
    "all": ({}, _ALL, "Whether all elements are true; true where none is."),
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
    """Sums of squared differences from the row's mean, leaf by leaf."""
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
    """Sums of squared differences from the column's mean, block by block of rows."""
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
    """Numbers in the dtype of the output; infinite beyond its range."""
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
VARIANCES: dict[Any, Call] = {}


def _by_rows(name: str, step: Pass, divisor: float) -> Call:
    length, stride = step.reduced, step.outer_stride
    leaves = -(-length // LEAF)
    count = step.outer * leaves
    grain = -(-GRAIN // min(length, LEAF))
    entry = _SQUARE_ROWS[name]
    mean = planned(WIDE_MEAN, name, _WIDE, (step,), length)
    left = Pass(step.outer, leaves, leaves, 1, 1)
    rest = planned(SUM, _WIDE.name, _WIDE, (left,), divisor)

    def call(a: Array, out: Array) -> None:
        means = np.empty(step.outer, _WIDE)
        mean(a, means)
        squares = np.empty(count, _WIDE)

        def run(lo: int, hi: int) -> None:
            entry(a, means, squares[lo:hi], lo, leaves, length, stride, LEAF)

        parallel_for(count, grain, run)
        rest(squares, out)

    return call


def _by_columns(name: str, step: Pass, divisor: float) -> Call:
    outer, stride, length, row, inner = step
    blocks = -(-length // BLOCK)
    grain = -(-GRAIN // (min(length, BLOCK) * min(inner, TILE)))
    entry = _SQUARE_COLUMNS[name]
    mean = planned(WIDE_MEAN, name, _WIDE, (step,), length)
    left = Pass(outer, blocks * inner, blocks, inner, inner)
    rest = planned(SUM, _WIDE.name, _WIDE, (left,), divisor)

    def call(a: Array, out: Array) -> None:
        means = np.empty(outer * inner, _WIDE)
        mean(a, means)
        squares = np.empty(outer * blocks * inner, _WIDE)

        def run(lo: int, hi: int) -> None:
            entry(a, means, squares, lo, hi, length, row, stride, inner)

        parallel_for(outer * blocks * -(-inner // TILE), grain, run)
        rest(squares, out)

    return call


def _make_variance(
    shape: Ints,
    strides: Ints | None,
    dims: Ints,
    name: str,
    out_name: str,
    correction: float,
) -> Call:
    """Make the call for a geometry, and remember it."""
    length = prod(shape[dim] for dim in dims)
    divisor = float(max(length - correction, 0))
    steps = contiguous_strides(shape) if strides is None else strides
    plan = None if 0 in shape else passes(shape, steps, dims)
    call: Call
    if 0 in shape:
        call = _nothing
    elif plan is not None and len(plan) == 1:
        by_rows = plan[0].inner == 1 and plan[0].reduced_stride == 1
        call = (_by_rows if by_rows else _by_columns)(name, plan[0], divisor)
    else:
        rows = prod(shape) // length
        whole = _by_rows(name, Pass(rows, length, length, 1, 1), divisor)

        def call(a: Array, out: Array) -> None:
            whole(moved_last(a, shape, steps, dims), out)

    if out_name != _WIDE.name and 0 not in shape:
        call = _narrowed(call, out_name)
    if len(VARIANCES) >= REMEMBERED:
        VARIANCES.clear()
    VARIANCES[shape, strides, dims, name, out_name, correction] = call
    return call


def _narrowed(call: Call, name: str) -> Call:
    """The call, for an output of less than float64."""
    entry = _NARROW[name]

    def narrowed(a: Array, out: Array) -> None:
        wide = np.empty(len(out), _WIDE)
        call(a, wide)
        entry(wide, out)

    return narrowed


def _nothing(a: Array, out: Array) -> None:
    out.fill(np.nan)


def var(out: Tensor, x: Tensor, dims: Ints, correction: float) -> None:
    """The variance over `dims` of floats: squares off the mean by n - correction.

    The output is of the dtype of `x`, or float64.
    """
    place = x._place
    names = x.dtype.name, out.dtype.name
    key = x.shape, place and place[2], dims, *names, correction
    call = VARIANCES.get(key) or _make_variance(*key)
    call(flat_input(x), result(out))


def _ready_variance(out: Geometry, x: Geometry, dims: Ints, correction: float) -> Call:
    names = x.dtype.name, out.dtype.name
    return _make_variance(x.shape, x.strides, dims, *names, correction)


KERNELS: dict[str, Callable[..., Any]] = {
    **{name: _kernel(*row) for name, row in _ROWS.items()},
    "var": var,
}
READY: dict[str, Callable[..., Any]] = {
    **{name: _ready(*row[:2]) for name, row in _ROWS.items()},
    "var": _ready_variance,
}
