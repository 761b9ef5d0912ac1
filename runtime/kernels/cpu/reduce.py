"""Reductions on the CPU: sum, prod, mean, max, min, any, all.

True only here: an operation is its loops over rows and over columns, and what combining
begins with.  The passes come from `runtime.kernels.cpu.reduce_layout`, the loops from
`runtime.kernels.cpu.reduce_bodies`.

Rules: a result depends on the shape and the strides only, never on the number of
threads; a pass that splits rows into leaves, or columns into blocks, writes their
results to a temporary, which is reduced again.  Integers are summed and multiplied in
the output's dtype, which is int64.  Greatest and least of nothing do not exist: the
operators refuse to ask.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cpu.operand import Geometry
from runtime.kernels.cpu.reduce_axis import result
from runtime.kernels.cpu.reduce_bodies import (
    BLOCK,
    COLUMNS,
    EXACT_LEAF,
    LEAF,
    ROWS,
    TILE,
    add,
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
    multiply,
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
from runtime.kernels.cpu.reduce_layout import Array, Pass, moved_last, passes
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
KERNELS: dict[str, Kernel] = {name: _kernel(*row) for name, row in _ROWS.items()}
READY = {name: _ready(*row[:2]) for name, row in _ROWS.items()}
