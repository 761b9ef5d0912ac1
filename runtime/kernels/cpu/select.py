"""index_select and index_add: whole slices along one dimension, chosen by a list.

True only here: the index is one-dimensional (or one number), the slices are rows where
the inner dimensions are contiguous.  Equal targets of index_add are added in the order
of the index.
"""

from runtime.kernels.cpu.adding import Number, add_lines
from runtime.kernels.cpu.bounds import check_index
from runtime.kernels.cpu.lines import READ, Ints, Operand, run_lines
from runtime.kernels.cpu.operand import WORDS, integers, words
from runtime.tensors.tensor import Tensor, place_of


def index_select(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` with the slices of `x` that `index` names.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = _along(index, x.shape, dim, "core::index_select")
    name = WORDS[x.dtype]
    run_lines(READ, name, out.shape, words(x), dim, chosen, words(out))


def index_add(
    out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
) -> None:
    """Add `alpha` times the slices of `src` to the slices of `out` named by `index`.

    `out` comes with a copy of self.  Raises `IndexOutOfRange`, before anything is
    written.
    """
    chosen = _along(index, out.shape, dim, "core::index_add")
    add_lines(out, src.shape, place_of(out)[2], dim, chosen, place_of(src), alpha)


def _along(index: Tensor, shape: Ints, dim: int, operator: str) -> Operand:
    """The checked index, walked along `dim` only."""
    flat, offset, strides = integers(index)
    size = shape[dim] if shape else 1
    check_index((flat, offset, strides), index.shape, size, operator, dim)
    after = len(shape) - dim - 1
    return flat, offset, (0,) * dim + (strides or (0,) * bool(shape)) + (0,) * after


KERNELS = {"index_select": index_select, "index_add": index_add}
