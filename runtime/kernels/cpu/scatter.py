"""scatter and scatter_add: out[.., index[.., i, ..], ..] = or += src[.., i, ..].

True only here: `out` comes with a copy of self.  Of several values for one place,
scatter keeps the last in the order of the index, and scatter_add adds them in that
order, on any number of threads.
"""

import numpy as np

from runtime.kernels.cpu.adding import Number, add_lines
from runtime.kernels.cpu.bounds import check_index
from runtime.kernels.cpu.lines import WRITE, Operand, run_lines
from runtime.kernels.cpu.operand import WORDS, integers, words
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.tensor import Tensor, place_of


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = _checked(out, dim, index, "core::scatter")
    name = WORDS[out.dtype]
    if isinstance(src, Tensor):
        linear = words(src)
    else:
        value = np.full(1, src, numpy_dtype(out.dtype)).view(name)
        linear = value, 0, (0,) * len(index.shape)
    run_lines(WRITE, name, index.shape, words(out), dim, chosen, linear)


def scatter_add(out: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Add the elements of `src` where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = _checked(out, dim, index, "core::scatter_add")
    strides = place_of(out)[2]
    add_lines(out, index.shape, strides, dim, chosen, place_of(src))


def _checked(out: Tensor, dim: int, index: Tensor, operator: str) -> Operand:
    chosen = integers(index)
    size = out.shape[dim] if out.shape else 1
    check_index(chosen, index.shape, size, operator, dim)
    return chosen


KERNELS = {"scatter": scatter, "scatter_add": scatter_add}
