"""gather and index_select on CUDA: elements, or whole slices, named by an index.

True only here: how a list of slices becomes an index of every element of the output: by
strides of 0 everywhere but along the dimension.
"""

from collections.abc import Callable

from runtime.kernels.cuda.check import require_indices
from runtime.kernels.cuda.lines import along, integers, read
from runtime.kernels.cuda.operand import Ints, moved, source
from runtime.tensors.arrays import place_of
from runtime.tensors.making import view_of
from runtime.tensors.tensor import Tensor


def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """out[.., i, ..] = x[.., index[.., i, ..], ..].

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = checked(index, x.shape, dim, "core::gather")
    words = moved(x)
    read(along(source(x, name=words), chosen, dim), source(out, name=words), words)


def index_select(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` with the slices of `x` that `index` names.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = spanning(
        checked(index, x.shape, dim, "core::index_select"), out.shape, dim
    )
    words = moved(x)
    read(along(source(x, name=words), chosen, dim), source(out, name=words), words)


def checked(index: Tensor, shape: Ints, dim: int, operator: str) -> Tensor:
    """The index as int64, inside of a dimension.  Raises `IndexOutOfRange`."""
    require_indices(operator, index, shape[dim] if shape else 1, dim)
    return integers(index)


def spanning(index: Tensor, shape: Ints, dim: int) -> Tensor:
    """A list of indices, or one, repeated over all dimensions but `dim`."""
    _, offset, strides = place_of(index)
    along_dim = strides or (0,) * bool(shape)
    steps = (0,) * dim + along_dim + (0,) * (len(shape) - dim - 1)
    return view_of(index, shape, steps, offset)


KERNELS: dict[str, Callable[..., None]] = {
    "gather": gather,
    "index_select": index_select,
}
