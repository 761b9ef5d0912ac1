"""Reductions on CUDA: sum, prod, mean, max, min, any, all, var.

Trees of fixed shape, so that a result depends on the shape and the strides only, never
on the device or on other work.  Axes become passes of (outer, reduced, inner) as on the
CPU (`runtime.kernels.shared.reduction_passes`).

Rules:
- if reduced elements are adjacent, a block processes a run of `RUN` of them: four sums
  per thread, then a tree in shared memory; if not, a thread processes `TALL` elements
  of one column, so that adjacent threads read adjacent elements;
- if a pass leaves more than one run, the results are reduced again in the same way;
- the tree is the same in the simulator; it does not use shuffles, because it runs once
  for thousands of loads, and tests should run the same code;
- integers are summed and multiplied as int64, modulo 2**64; NaN propagates in `max` and
  `min`; `any` and `all` reduce the mask of nonzero elements.
"""

import operator
from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.kernels.cuda.copy import contiguous, copy, fill, flat
from everyorder.runtime.kernels.cuda.device import BLOCK, SIMULATED, running
from everyorder.runtime.kernels.cuda.elementwise import Array, index_of
from everyorder.runtime.kernels.cuda.jit import (
    BlockKernels,
    Elements,
    Key,
    Maker,
    block_tree,
    device,
    functions,
    scalar_type,
)
from everyorder.runtime.kernels.cuda.memory import device_array
from everyorder.runtime.kernels.cuda.pointwise import KERNELS as POINTWISE
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import (
    COMPLEXES,
    FLOATS,
    INTEGERS,
    greatest,
    least,
)
from everyorder.runtime.kernels.shared.reduction_passes import ReductionPass, passes
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.shape import reduced_shape
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import place_of

Ints = tuple[int, ...]

# Elements that a block reduces in one go: 64 loads a thread, enough to hide the tree.
RUN = 64 * BLOCK

# Elements of a column that a thread reduces: the error of a sum stays that of 256.
TALL = 16 if SIMULATED else 256

# Rows shorter than this are columns of one element's width: a block would idle.
SHORT = BLOCK // 2


class ReductionKernels(NamedTuple):
    """The two kernels of a reduction, and the result of an empty reduction."""

    rows: BlockKernels
    columns: Elements
    nothing: Callable[[str], Any]


def _rows(combine: Scalar, first: Callable[[Any], Any], divides: bool) -> Maker:
    def make(kind: Any, to: Any) -> Scalar:
        both, start = device(combine), to(first(to))
        over, tree = functions(to).divide, block_tree(lambda a, b: to(both(a, b)))

        def reduce_run(  # type: ignore[no-untyped-def]  # compiled for the device
            task, shared, out, x, at, runs, reduced, run, outer_by, by, divisor
        ):
            row = task // runs
            low = (task - row * runs) * run
            high = min(low + run, reduced)
            base = at + row * outer_by
            one, two, three, four = start, start, start, start
            thread = running.threadIdx.x
            i = low + thread
            while i + 3 * BLOCK < high:
                one = to(both(one, to(x[base + i * by])))
                two = to(both(two, to(x[base + (i + BLOCK) * by])))
                three = to(both(three, to(x[base + (i + 2 * BLOCK) * by])))
                four = to(both(four, to(x[base + (i + 3 * BLOCK) * by])))
                i += 4 * BLOCK
            while i < high:
                one = to(both(one, to(x[base + i * by])))
                i += BLOCK
            own = to(both(to(both(one, two)), to(both(three, four))))
            total = tree(shared, own)
            if thread == 0:
                if divides:
                    out[task] = over(total, to(divisor))
                else:
                    out[task] = total

        return reduce_run

    return make


def _columns(combine: Scalar, first: Callable[[Any], Any], divides: bool) -> Maker:
    def make(kind: Any, to: Any) -> Scalar:
        both, start = device(combine), to(first(to))
        over = functions(to).divide

        def element(  # type: ignore[no-untyped-def]  # compiled for the device
            task, out, x, at, runs, reduced, run, outer_by, by, inner, divisor
        ):
            above = task // inner
            column = task - above * inner
            outer = above // runs
            low = (above - outer * runs) * run
            high = min(low + run, reduced)
            base = at + outer * outer_by + column
            total = start
            i = low
            while i < high:
                total = to(both(total, to(x[base + i * by])))
                i += 1
            if divides:
                out[task] = over(total, to(divisor))
            else:
                out[task] = total

        return element

    return make


_ROWS = "U[::1], T[::1]" + ", int64" * 6 + ", float64"
_COLUMNS = "U[::1], T[::1]" + ", int64" * 7 + ", float64"


def _operation(
    name: str,
    combine: Scalar,
    first: Callable[[Any], Any],
    keys: tuple[str | Key, ...],
    divides: bool = False,
) -> ReductionKernels:
    return ReductionKernels(
        BlockKernels(f"{name}_rows", _rows(combine, first, divides), _ROWS, keys),
        Elements(f"{name}_columns", _columns(combine, first, divides), _COLUMNS, keys),
        lambda of: first(scalar_type(of)),
    )


def _least(kind: Any) -> Any:
    """Return the value below every element of a type."""
    if np.issubdtype(kind, np.floating):
        return -np.inf
    return False if kind is np.bool_ else np.iinfo(kind).min


def _greatest(kind: Any) -> Any:
    """Return the value above every element of a type."""
    if np.issubdtype(kind, np.floating):
        return np.inf
    return True if kind is np.bool_ else np.iinfo(kind).max


# Integers are widened when they are read.
_WIDENED = tuple((name, "int64") for name in ("bool", *INTEGERS))
_SAME = tuple((name, name) for name in (*FLOATS, *COMPLEXES))
_REAL = tuple((name, name) for name in ("bool", *INTEGERS, *FLOATS))
_TRUTH: tuple[Key, ...] = (("bool", "bool"),)

_SUM = _operation("sum_of_floats", operator.add, lambda to: 0, _SAME, divides=True)
_COUNT = _operation("sum_of_integers", operator.add, lambda to: 0, _WIDENED)
_PROD = _operation("prod", operator.mul, lambda to: 1, (*_WIDENED, *_SAME))
_MAX = _operation("max", greatest, _least, _REAL)
_MIN = _operation("min", least, _greatest, _REAL)
_ANY = _operation("any", lambda a, b: a or b, lambda to: False, _TRUTH)
_ALL = _operation("all", lambda a, b: a and b, lambda to: True, _TRUTH)


def reduce(
    operation: ReductionKernels,
    out: Tensor,
    x: Tensor,
    dims: Ints,
    divisor: float = 1.0,
) -> None:
    """Reduce `dims` of `x` into `out`; a divisor is for sums of floats."""
    name = out.dtype.name
    if not prod(x.shape):
        # The quotient of zero by zero, also for complex numbers.
        nan = float("nan")
        number = complex(nan, nan) if out.dtype.is_complex else nan
        fill(out, operation.nothing(name) if divisor else number)
        return
    plan = passes(x.shape, x.strides, dims)
    if plan is None:
        x, plan = _moved_last(x, dims)
    array, at, _ = place_of(x)
    where, read = index_of(x), x.dtype.name
    for number, step in enumerate(plan):
        last = number == len(plan) - 1
        into = flat(out) if last else None
        by = divisor if last else 1.0
        array = _passed(operation, (read, name), array, at, step, into, where, by)
        at, read = 0, name


def _passed(
    operation: ReductionKernels,
    key: Key,
    array: Array,
    at: int,
    step: ReductionPass,
    into: Array | None,
    where: int,
    divisor: float,
) -> Array:
    """Run one pass, and further ones on its results, until each row has one result."""
    by_rows = step.inner == 1 and step.reduced >= SHORT
    run = RUN if by_rows else TALL
    runs = -(-step.reduced // run)
    tasks = step.outer * runs * step.inner
    one = runs == 1
    out = into
    if out is None or not one:
        out = device_array(tasks, np.dtype(scalar_type(key[1])), where)
    sizes = runs, step.reduced, run, step.outer_stride, step.reduced_stride
    last = float(divisor) if one else 1.0
    inner = step.inner
    if by_rows:
        operation.rows.run(key, tasks, where, out, array, at, *sizes, last)
    else:
        operation.columns.run(key, tasks, where, out, array, at, *sizes, inner, last)
    if one:
        return out
    rest = ReductionPass(step.outer, runs * inner, runs, inner, inner)
    return _passed(operation, (key[1], key[1]), out, 0, rest, into, where, divisor)


def _moved_last(x: Tensor, dims: Ints) -> tuple[Tensor, tuple[ReductionPass, ...]]:
    """Return a copy with the reduced axes last, and the one pass over it."""
    order = [*(at for at in range(x.ndim) if at not in dims), *dims]
    shape = tuple(x.shape[at] for at in order)
    strides = tuple(x.strides[at] for at in order)
    moved = contiguous(view_of(x, shape, strides, x.offset))
    row = prod(x.shape[at] for at in dims)
    return moved, (ReductionPass(prod(shape) // row, row, row, 1, 1),)


def _total(floating: ReductionKernels, whole: ReductionKernels) -> Callable[..., None]:
    def kernel(out: Tensor, x: Tensor, dims: Ints) -> None:
        if out.dtype.name in (*FLOATS, *COMPLEXES):
            reduce(floating, out, x, dims)
        elif out.dtype.name == "int64":
            reduce(whole, out, x, dims)
        else:
            wide = empty_tensor(out.shape, DType.named("int64"), out.device)
            reduce(whole, wide, x, dims)
            copy(out, wide)

    return kernel


def mean(out: Tensor, x: Tensor, dims: Ints) -> None:
    """Compute the mean; NaN without elements."""
    reduce(_SUM, out, x, dims, float(prod(x.shape[dim] for dim in dims)))


def _truth(operation: ReductionKernels) -> Callable[..., None]:
    def kernel(out: Tensor, x: Tensor, dims: Ints) -> None:
        mask = x
        if x.dtype.name != "bool":
            mask = empty_tensor(x.shape, DType.named("bool"), x.device)
            POINTWISE["ne"](mask, x, 0)
        reduce(operation, out, mask, dims)

    return kernel


def _extreme(operation: ReductionKernels) -> Callable[..., None]:
    def kernel(out: Tensor, x: Tensor, dims: Ints) -> None:
        reduce(operation, out, x, dims)

    return kernel


def var(out: Tensor, x: Tensor, dims: Ints, correction: float) -> None:
    """Compute the variance: squared distances from the mean, by count - correction.

    In float64, also for float32, whose own squares would overflow at the root of its
    range; the output has the dtype of `x`, or float64.
    """
    if x.dtype.name != "float64":
        wide = empty_tensor(x.shape, DType.named("float64"), x.device)
        copy(wide, x)
        target = out
        if out.dtype is not wide.dtype:
            target = empty_tensor(out.shape, wide.dtype, out.device)
        var(target, wide, dims, correction)
        if target is not out:
            copy(out, target)
        return
    count = prod(x.shape[dim] for dim in dims)
    shape = reduced_shape(x.shape, dims, True)
    middle = empty_tensor(shape, x.dtype, x.device)
    mean(middle, x, dims)
    apart = empty_tensor(x.shape, x.dtype, x.device)
    POINTWISE["sub"](apart, x, middle, 1)
    POINTWISE["mul"](apart, apart, apart)
    divisor = float(max(count - correction, 0))
    if not divisor:
        # A nonzero sum by 0 is infinite, a zero sum by 0 is NaN.
        reduce(_SUM, out, apart, dims)
        POINTWISE["div"](out, out, 0.0)
        return
    reduce(_SUM, out, apart, dims, divisor)


KERNELS: dict[str, Callable[..., None]] = {
    "sum": _total(_SUM, _COUNT),
    "prod": _total(_PROD, _PROD),
    "mean": mean,
    "max": _extreme(_MAX),
    "min": _extreme(_MIN),
    "any": _truth(_ANY),
    "all": _truth(_ALL),
    "var": var,
}
