"""gather: out[.., i, ..] = x[.., index[.., i, ..], ..] along one dimension.

True only here: the elements are moved as words, so few kernels serve every dtype.
An index that repeats along the inner dimensions (stride 0) gathers whole rows.
"""

from runtime.kernels.cpu.bounds import refused
from runtime.kernels.cpu.lines import READ
from runtime.kernels.cpu.operand import (
    WORDS,
    Geometry,
    Ints,
    Run,
    integers,
    strides_of,
    words,
)
from runtime.kernels.cpu.walks import Call, Walks, along, checked
from runtime.schema.codes import DType
from runtime.tensors.tensor import Tensor


def _made(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    out: Ints | None,
) -> Call:
    by = strides_of(chosen, steps)
    return along(
        READ,
        WORDS[dtype],
        shape,
        strides_of(shape, strides),
        dim,
        (chosen, by, by),
        strides_of(chosen, out),
        chosen,
    )


_WALKS = Walks(_made)


def gather(out: Tensor, x: Tensor, dim: int, index: Tensor) -> None:
    """Fill `out` (the shape of `index`) from `x`.

    Raises `IndexOutOfRange`, before anything is written.
    """
    source, a, strides = words(x)
    places, i, steps = integers(index)
    target, o, to = words(out)
    call = _WALKS[x.dtype, x.shape, strides, dim, index.shape, steps, to]
    if call(source, places, target, a, i, o, 0):
        chosen = places, i, steps
        raise refused(chosen, index.shape, x.shape, "core::gather", dim)


def _ready(out: Geometry, x: Geometry, dim: int, index: Geometry) -> Run:
    """By an index of int64."""
    call = _WALKS[x.dtype, x.shape, x.strides, dim, index.shape, index.strides, None]
    return checked(call, x, dim, index, "core::gather")


KERNELS = {"gather": gather}
READY = {"gather": _ready}
