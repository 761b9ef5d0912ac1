"""scatter and scatter_add: out[.., index[.., i, ..], ..] = or += src[.., i, ..].

True only here: `out` comes with a copy of self.  Of several values for one place,
scatter keeps the last in the order of the index, and scatter_add adds them in that
order, on any number of threads.
"""

import numpy as np

from runtime.kernels.cpu.adding import Number, Sums
from runtime.kernels.cpu.bounds import refused
from runtime.kernels.cpu.lines import WRITE
from runtime.kernels.cpu.operand import WORDS, Ints, integers, strides_of, words
from runtime.kernels.cpu.walks import Call, Walks, along
from runtime.kernels.jit import Family
from runtime.schema.codes import DType
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.tensor import Tensor


def _made(
    family: Family,
    name: str,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    source: Ints | None,
    given: Ints,
) -> Call:
    """The walk over the index; the source has the shape `given`, or a larger one."""
    by = strides_of(chosen, steps)
    return along(
        family,
        name,
        shape,
        strides_of(shape, strides),
        dim,
        (chosen, by, by),
        strides_of(given, source),
        chosen,
    )


def _written(
    dtype: DType,
    shape: Ints,
    strides: Ints | None,
    dim: int,
    chosen: Ints,
    steps: Ints | None,
    source: Ints | None,
    given: Ints,
) -> Call:
    name = WORDS[dtype]
    return _made(WRITE, name, shape, strides, dim, chosen, steps, source, given)


_WRITTEN = Walks(_written)
_ADDED = Sums(_made)


def scatter(out: Tensor, dim: int, index: Tensor, src: Tensor | Number) -> None:
    """Write the elements of `src`, or the one number, where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    places, i, steps = integers(index)
    target, a, strides = words(out)
    given, own = index.shape, index.shape
    if isinstance(src, Tensor):
        source, o, by = words(src)
        given = src.shape
    else:
        source = np.full(1, src, numpy_dtype(out.dtype)).view(WORDS[out.dtype])
        o, by = 0, (0,) * len(own)
    call = _WRITTEN[out.dtype, out.shape, strides, dim, own, steps, by, given]
    if call(target, places, source, a, i, o, 0):
        raise refused((places, i, steps), own, out.shape, "core::scatter", dim)


def scatter_add(out: Tensor, dim: int, index: Tensor, src: Tensor) -> None:
    """Add the elements of `src` where `index` says.

    Raises `IndexOutOfRange`, before anything is written.
    """
    chosen = integers(index)
    if _ADDED.add(out, dim, index.shape, chosen, src):
        raise refused(chosen, index.shape, out.shape, "core::scatter_add", dim)


KERNELS = {"scatter": scatter, "scatter_add": scatter_add}
