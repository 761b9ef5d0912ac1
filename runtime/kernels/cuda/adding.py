"""Adding through an index on CUDA, always in the same order.

True only here: no atomics.  The targets are sorted, stably; the thread that stands at
the first of equal ones adds all their elements, in the order of the index.  So sums are
those of the CPU, bit by bit where `alpha` is 1 (a device multiplies and adds in one
step), and a second run gives what the first gave.

Rules
- a target names a row of `inner` elements of each of `outer` slices; a negative target
  is left out;
- 16-bit floats are summed in float32 and rounded once; integers wrap around; of
  booleans the sum is `any`;
- many equal targets with few columns leave most threads without work: that is the price
  of the order.
"""

from typing import Any

import numpy as np

from runtime.kernels.cuda.half import (
    from_bfloat16,
    from_float16,
    to_bfloat16,
    to_float16,
)
from runtime.kernels.cuda.jit import Body, Family, Maker, device, number_of
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.operand import Array, Number, flat, index_of
from runtime.kernels.cuda.order import ordered_places
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.toolkit import cuda
from runtime.kernels.cuda.unary import ALL
from runtime.tensors.tensor import Tensor


def _plus(kind: Any) -> Scalar:
    if kind is np.bool_:
        return lambda total, factor, x: total or (factor and x)
    if np.issubdtype(kind, np.integer):
        return lambda total, factor, x: kind(total + kind(factor * x))
    return lambda total, factor, x: total + factor * x


def _same(kind: Any) -> tuple[Any, Scalar, Scalar]:
    return kind, lambda x: x, lambda x: x


def _body(wide: Any, read: Scalar, write: Scalar) -> Body:
    plus, load, store = device(_plus(wide)), device(read), device(write)

    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, source, targets, places, tasks, count, inner, size, alpha
    ):
        task = cuda.grid(1)
        step = cuda.gridsize(1)
        factor = wide(alpha)
        while task < tasks:
            line = task // inner
            column = task - line * inner
            outer = line // count
            at = line - outer * count
            target = targets[at]
            first = True
            if at > 0:
                first = targets[at - 1] != target
            if first and target >= 0:
                to = (outer * size + target) * inner + column
                total = load(out[to])
                while at < count and targets[at] == target:
                    row = outer * count + places[at]
                    total = plus(total, factor, load(source[row * inner + column]))
                    at += 1
                out[to] = store(total)
            task += step

    return body


def _plain(kind: Any) -> Body:
    return _body(*_same(kind))


def _half(read: Scalar, write: Scalar) -> Maker:
    return lambda kind: _body(np.float32, read, write)


_ARRAYS = "T[::1], T[::1], int64[::1], int64[::1], int64, int64, int64, int64, "
_PLAIN = Family("add_targets", _plain, _ARRAYS + "W", ALL)
_HALVES = {
    name: Family(
        f"add_targets_{name}", _half(read, write), _ARRAYS + "float64", ("uint16",)
    )
    for name, read, write in (
        ("float16", from_float16, to_float16),
        ("bfloat16", from_bfloat16, to_bfloat16),
    )
}


def add_targets(
    out: Tensor,
    targets: Array,
    source: Tensor,
    count: int,
    *,
    outer: int = 1,
    inner: int = 1,
    alpha: Number = 1,
) -> None:
    """Add `alpha` times row j of `source` to row `targets[j]` of `out`, of `count`.

    Rows have `inner` elements; both tensors are `outer` lists of rows.
    """
    tasks = outer * count * inner
    if not tasks or not out.numel():
        return
    where, name = index_of(out), out.dtype.name
    size = out.numel() // (outer * inner)
    ordered, places = ordered_places(targets, count, where)
    half = _HALVES.get(name)
    kernel = _PLAIN[name] if half is None else half["uint16"]
    factor = number_of(alpha, name if half is None else "float32")
    kernel(
        spread(tasks, where),
        *(flat(out), flat(source), ordered, places, tasks, count, inner, size, factor),
    )
