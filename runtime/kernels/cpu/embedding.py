"""embedding_backward: each row of the gradient is added to the row that was looked up.

True only here: rows of `padding_idx` are left out.  Rows that were looked up more than
once are added in the order of the indices, on any number of threads, because threads
share columns and not rows.
"""

from typing import Any

import numpy as np

from runtime.kernels.cpu.bounds import check_values
from runtime.kernels.cpu.operand import dense
from runtime.kernels.cpu.walks import COLUMNS, GRAIN
from runtime.kernels.jit import Family
from runtime.kernels.threads import parallel_for
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import compute_dtype, numpy_dtype
from runtime.tensors.tensor import Tensor


def _rows(
    total: Any, grad: Any, index: Any, padding: int, width: int, lo: int, hi: int
) -> None:
    for row in range(len(index)):
        at = index[row]
        if at != padding:
            target = total[at * width + lo : at * width + hi]
            source = grad[row * width + lo : row * width + hi]
            for j in range(hi - lo):
                target[j] += source[j]


_ROWS = Family(
    "embedding_rows",
    _rows,
    "void(T[::1], T[::1], int64[::1], int64, int64, int64, int64)",
)


def embedding_backward(
    dweight: Tensor, grad: Tensor, indices: Tensor, padding_idx: int
) -> None:
    """Write the gradient of the table: (rows, width) from (.., width) and (..).

    16-bit floats are summed in float32.  A negative `padding_idx` leaves nothing out.
    Raises `IndexOutOfRange`, before anything is written.
    """
    rows, width = dweight.shape
    index = dense(indices).astype(np.int64, copy=False)
    check_values(index, rows, "core::embedding_backward", 0)
    wide = compute_dtype(dweight.dtype)
    total: Any = flat_of(dweight)
    source = dense(grad)
    if wide is not dweight.dtype:
        total = np.zeros(rows * width, numpy_dtype(wide))
        source = source.astype(total.dtype)
    else:
        total.fill(0)
    entry = _ROWS[wide.name]

    def columns(lo: int, hi: int) -> None:
        entry(total, source, index, padding_idx, width, lo, hi)

    grain = max(COLUMNS, GRAIN // max(1, len(index)))
    parallel_for(width, grain, columns)
    if wide is not dweight.dtype:
        with np.errstate(all="ignore"):
            flat: Any = flat_of(dweight)
            flat[:] = total


KERNELS = {"embedding_backward": embedding_backward}
