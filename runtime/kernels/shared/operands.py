"""Access of kernels to tensors, as flat arrays, offsets and strides, and to numbers.

If the value of elements does not matter, they are moved as words of their size, so that
few compiled kernels serve every dtype; the commonest dtypes are words themselves, which
saves a view.  Nothing here copies, except `dense`, `integers` and `in_rows`; strides
and offsets count elements of the tensor's own dtype; None denotes the strides of
row-major order, so that a look-up need not compute them.

A number that the dtype cannot hold is converted as arithmetic would do, without
warnings: integers wrap, floating-point numbers become infinite, a fraction is
truncated, and the imaginary part is dropped for real dtypes (`element`).
"""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from everyorder.runtime.errors.tensor import IndexOutOfRange
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import SUPPORTED, info, itemsize, numpy_dtype
from everyorder.runtime.tensors.shape import contiguous_strides
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import array_of, flat_of, place_of

Ints = tuple[int, ...]


class Geometry(NamedTuple):
    """The geometry of a tensor without its elements, for which a kernel is prepared."""

    shape: Ints
    dtype: DType
    # None: row-major.
    strides: Ints | None


# The argument of a kernel's preparation, and its result: called with flat arrays.
Operand = Tensor | Geometry
Run = Callable[..., Any]

# (flat array, offset of the first element, strides or None)
Strided = tuple[Any, int, Ints | None]

# Dtypes that move under their own names; others move as words of their size.
_OWN = frozenset(("uint8", "float32", "float64", "int64", "complex128"))
# Bytes of an element -> the words that move it.
BY_SIZE = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}

# dtype -> the name of its words.
WORDS = {
    dtype: dtype.name if dtype.name in _OWN else BY_SIZE[itemsize(dtype)]
    for dtype in (DType.named(name) for name in SUPPORTED)
}

# dtype -> the dtype to view its array as.
FORMS = {
    dtype: None if dtype.name == name else np.dtype(name)
    for dtype, name in WORDS.items()
}
_INT64 = DType.named("int64")


def strided(tensor: Tensor) -> Strided:
    """Return the array, the offset and the strides of a tensor."""
    place = tensor._place
    if place is None:
        flat = tensor._flat
        return (flat_of(tensor) if flat is None else flat), 0, None
    storage, offset, strides = place
    if storage.dtype is tensor.dtype:
        return storage.array, offset, strides
    return place_of(tensor)


def words(tensor: Tensor) -> Strided:
    """Return the location of a tensor, its elements as words."""
    array: Any
    array, offset, strides = strided(tensor)
    form = FORMS[tensor.dtype]
    return (array if form is None else array.view(form)), offset, strides


def dense_words(tensor: Tensor) -> Any:
    """Return the elements in row-major order as words; copied if in another order."""
    flat = tensor._flat
    if flat is None:
        flat = dense(tensor)
    form = FORMS[tensor.dtype]
    return flat if form is None else flat.view(form)


def dense(tensor: Tensor) -> Any:
    """Return the elements in row-major order, flat; copied if in another order."""
    flat = flat_of(tensor)
    return np.ascontiguousarray(array_of(tensor)).reshape(-1) if flat is None else flat


def integers(tensor: Tensor) -> Strided:
    """Return the location of an index tensor; copied to int64 from another dtype."""
    if tensor.dtype is _INT64:
        return strided(tensor)
    return dense(tensor).astype(np.int64), 0, None


def strides_of(shape: Ints, strides: Ints | None) -> Ints:
    """Return strides as numbers; those of row-major order for None."""
    return contiguous_strides(shape) if strides is None else strides


def coalesced(shape: Ints, *strides: Ints) -> tuple[Ints, tuple[Ints, ...]]:
    """Return the shape and strides with adjacent dimensions merged.

    There is always at least one dimension.
    """
    sizes: list[int] = []
    steps: list[list[int]] = [[] for _ in strides]
    for dim, size in enumerate(shape):
        if size == 1:
            continue
        here = [each[dim] for each in strides]
        if sizes and all(
            own[-1] == step * size for own, step in zip(steps, here, strict=True)
        ):
            sizes[-1] *= size
            for own, step in zip(steps, here, strict=True):
                own[-1] = step
        else:
            sizes.append(size)
            for own, step in zip(steps, here, strict=True):
                own.append(step)
    if not sizes:
        return (1,), tuple((0,) for _ in strides)
    return tuple(sizes), tuple(tuple(own) for own in steps)


def nothing(*arrays: Any) -> None:
    """Do nothing; runs instead of a kernel if there are no elements."""


def viewer(tensor: Geometry) -> Callable[[Any], Any]:
    """Return a function from the array of a tensor's elements to its N-d array."""
    shape, dtype, strides = tensor
    if strides is None:
        return lambda array: array.reshape(shape)
    size, form = itemsize(dtype), numpy_dtype(dtype)
    steps = tuple(stride * size for stride in strides)
    # As bytes, because ml_dtypes' arrays do not export a buffer.
    return lambda array: np.ndarray(shape, form, array.view(np.uint8), 0, steps)


def in_rows(ready: Callable[..., Any], outputs: int = 1) -> Callable[..., Any]:
    """Wrap the `ready` of a kernel that reads rows only.

    Tensors in another layout are copied to rows first.
    """

    def ready_in_rows(*parts: Any) -> Any:
        run = ready(*parts)
        tensors = [each for each in parts[outputs:] if isinstance(each, Geometry)]
        if run is None or all(each.strides is None for each in tensors):
            return run
        views = [None if each.strides is None else viewer(each) for each in tensors]

        def copied(*arrays: Any) -> Any:
            rows = [
                np.ascontiguousarray(view(array)).reshape(-1) if view else array
                for view, array in zip(views, arrays, strict=False)
            ]
            return run(*rows, *arrays[len(rows) :])

        return copied

    return ready_in_rows


def out_of_range(
    operator: str, index: int, size: int, dim: int, wraps: bool = False
) -> IndexOutOfRange:
    """Return the error for an index that dimension `dim` of size `size` lacks.

    With `wraps`, negative values count from the end.
    """
    return IndexOutOfRange(
        operator=operator, index=index, size=size, dim=dim, wraps=wraps
    )


Number = bool | int | float | complex


@cache
def _facts(name: str) -> tuple[Any, str, Any, Any]:
    """Return the scalar type, its kind, and the bounds of its unchecked range."""
    dtype = DType.named(name)
    facts = info(dtype)
    kind = facts.kind
    low = facts.smallest if kind in "ui" else -facts.largest
    return numpy_dtype(dtype).type, kind, low, facts.largest


def element(name: str, number: Any) -> Any:
    """Return the number as a NumPy scalar of the dtype of that name."""
    make, kind, low, high = _facts(name)
    if type(number) is complex:
        if kind in "cb":
            with np.errstate(all="ignore"):
                return make(number)
        number = number.real
    if kind in "ui":
        whole = int(number)
        # Masking to the width gives the integer that wraps to.
        return make(whole) if low <= whole <= high else _wrapped(make, whole)
    if low <= number <= high:
        return make(number)
    with np.errstate(all="ignore"):
        return make(float(number) if abs(number) < 2**1023 else _infinite(number))


def _wrapped(make: Any, whole: int) -> Any:
    bits = 8 * np.dtype(make).itemsize
    raw = (whole & (2**bits - 1)).to_bytes(bits // 8, "little")
    return np.frombuffer(raw, np.dtype(make).newbyteorder("<")).astype(make)[0]


def _infinite(number: Any) -> float:
    """Return an infinity for an integer beyond every float, else the number."""
    if isinstance(number, int):
        return float("inf") if number > 0 else float("-inf")
    return float(number)
