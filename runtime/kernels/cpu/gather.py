"""gather: out[.., i, ..] = x[.., index[.., i, ..], ..] along one dimension.

True only here: the elements are moved as words, so every dtype is one of five kernels.
An index that repeats along the inner dimensions (stride 0) gathers whole rows.
"""

from runtime.kernels.cpu.bounds import check_index
from runtime.kernels.cpu.lines import READ, run_lines
from runtime.kernels.cpu.operand import WORDS, integers, words
from runtime.tensors.tensor import Tensor


def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` (the shape of `index`) from `x`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = integers(index)
    size = x.shape[dim] if x.shape else 1
    check_index(chosen, index.shape, size, "core::gather", dim)
    run_lines(READ, WORDS[x.dtype], index.shape, words(x), dim, chosen, words(out))


KERNELS = {"gather": gather}
