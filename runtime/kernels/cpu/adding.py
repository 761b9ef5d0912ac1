"""Adding through an index: what scatter_add, index_add and index_put have in common.

True only here: which dtype the sums are taken in.  16-bit floats are summed in a
float32 copy of the whole target, rounded once when it is written back; integers wrap
around; of booleans the sum is "any".
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.lines import ADD, Ints, Operand, run_lines
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.tensor import Tensor, place_of

Number = bool | int | float | complex


def add_lines(
    out: Tensor,
    shape: Ints,
    strides: Ints,
    dim: int,
    index: Operand,
    linear: Operand,
    alpha: Number = 1,
) -> None:
    """Add `alpha` times the linear operand into `out`, which is contiguous.

    `strides` are those of the addressed operand, see `run_lines`.
    """
    target: Any
    target, start, _ = place_of(out)
    wide = compute_dtype(out.dtype)
    if type(alpha) is not int or alpha != 1 or wide.name == "bool":
        alpha = numpy_dtype(wide).type(alpha).item()
    if wide is out.dtype:
        addressed = target, start, strides
        run_lines(ADD, wide.name, shape, addressed, dim, index, linear, alpha)
        return
    array, offset, steps = linear
    end = start + out.numel()
    total = target[start:end].astype(np.float32)
    source = array.astype(np.float32), offset, steps
    run_lines(ADD, wide.name, shape, (total, 0, strides), dim, index, source, alpha)
    with np.errstate(all="ignore"):
        target[start:end] = total
