"""scatter, scatter_add and index_add on CUDA: writing and adding through an index.

True only here: `out` comes with a copy of self.  Of several values for one place
scatter keeps the last in the order of the index, and the others add them in that order,
as the CPU does (`runtime.kernels.cuda.lines` and `adding`).
"""

from collections.abc import Callable
from math import prod

from runtime.kernels.cuda.adding import add_targets
from runtime.kernels.cuda.copy import fill
from runtime.kernels.cuda.gather import checked
from runtime.kernels.cuda.lines import along, targets, write
from runtime.kernels.cuda.operand import Number, Source, flat, moved, source
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import contiguous_strides
from runtime.tensors.tensor import Tensor


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = checked(index, out.shape, dim, "core::scatter")
    words = moved(out)
    walk = along(_target(out, words), chosen, dim)
    alike = not isinstance(src, Tensor)
    if isinstance(src, Tensor):
        given = source(src, name=words)
    else:
        one = empty_tensor((), out.dtype, out.device)
        fill(one, src)
        given = Source(flat(one, words), 0, (0,) * len(index.shape))
    write(walk, given, words, out.numel(), alike=alike)


def scatter_add(out: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Add the elements of `src` where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = checked(index, out.shape, dim, "core::scatter_add")
    count = index.numel()
    if not count:
        return
    walk = along(_target(out, moved(out)), chosen, dim)
    # The index may be smaller than the source.
    given = view_of(src, index.shape, src.strides, src.offset)
    add_targets(out, targets(walk), given, count)


def index_add(
    out: Tensor, dim: int, index: Tensor, src: Tensor, alpha: Number = 1
) -> None:
    """Add `alpha` times the slices of `src` to the slices of `out` named by `index`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = checked(index, out.shape, dim, "core::index_add")
    outer, inner = prod(out.shape[:dim]), prod(out.shape[dim + 1 :])
    count = index.numel()
    add_targets(out, flat(chosen), src, count, outer=outer, inner=inner, alpha=alpha)


def _target(out: Tensor, words: str) -> Source:
    """An output, counted from its own first element."""
    return Source(flat(out, words), 0, contiguous_strides(out.shape))


KERNELS: dict[str, Callable[..., None]] = {
    "scatter": scatter,
    "scatter_add": scatter_add,
    "index_add": index_add,
}
