"""Adding through an index: what scatter_add, index_add and index_put have in common.

True only here: which dtype the sums are taken in.  16-bit floats are summed in a
float32 copy of the whole target, rounded once when it is written back; integers wrap
around; of booleans the sum is "any".
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from runtime.kernels.cpu.lines import ADD
from runtime.kernels.cpu.operand import Ints, Lying, lying
from runtime.kernels.cpu.walks import Call, Walks
from runtime.schema.codes import DType
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.tensor import Tensor

Number = bool | int | float | complex

# flat target, where it begins, flat source, where it begins, factor
Sum = Callable[[Any, int, Any, int, Any], bool]


def factor(alpha: Number, dtype: DType) -> Number:
    """The factor as a number of the dtype that sums are taken in."""
    wide = compute_dtype(dtype)
    if type(alpha) is int and alpha == 1 and wide.name != "bool":
        return alpha
    number: Number = numpy_dtype(wide).type(alpha).item()
    return number


def summed(dtype: DType, count: int, run: Sum) -> Sum:
    """`run` on arrays of the dtype that sums are taken in; the target has `count`."""
    wide = compute_dtype(dtype)
    if wide is dtype:
        return run
    form = numpy_dtype(wide)

    def widened(target: Any, a: int, source: Any, o: int, alpha: Any) -> bool:
        total = target[a : a + count].astype(form)
        if run(total, 0, source.astype(form), o, alpha):
            return True
        with np.errstate(all="ignore"):
            target[a : a + count] = total
        return False

    return widened


class Sums:
    """The sums of one kernel along a dimension, by geometry."""

    __slots__ = ("walks",)

    def __init__(self, make: Callable[..., Call]) -> None:
        def made(dtype: DType, *geometry: Any) -> Call:
            return make(ADD, compute_dtype(dtype).name, *geometry)

        self.walks = Walks(made)

    def add(
        self,
        out: Tensor,
        dim: int,
        own: Ints,
        index: Lying,
        src: Tensor,
        alpha: Number = 1,
    ) -> bool:
        """Add `alpha` times `src` into `out`, which is contiguous.

        The answer is whether a value of the index, of shape `own`, lies outside; then
        nothing was written.
        """
        places, i, steps = index
        target, a, strides = lying(out)
        source, o, by = lying(src)
        dtype = out.dtype
        call = self.walks[dtype, out.shape, strides, dim, own, steps, by, src.shape]
        if dtype.name in ("float32", "float64") and alpha == 1:
            return call(target, places, source, a, i, o, 1)

        def run(total: Any, a: int, other: Any, o: int, alpha: Any) -> bool:
            return call(total, places, other, a, i, o, alpha)

        add = summed(dtype, out.numel(), run)
        return add(target, a, source, o, factor(alpha, dtype))
