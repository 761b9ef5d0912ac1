"""Tensors laid out anew for kernels: as rows, as one line, as contiguous copies.

True only here: what works below the dispatcher, on the table of one backend, so that an
operator can bring its operands to the shape that a kernel takes.  Nothing here records
anything: no history, no version.
"""

from runtime.operators.plan import KernelTable
from runtime.schema.codes import DType
from runtime.tensors.elements import real_dtype
from runtime.tensors.making import empty_tensor, view_of
from runtime.tensors.shape import contiguous_strides, view_strides
from runtime.tensors.tensor import Tensor


def shaped(table: KernelTable, tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """The elements in another shape; a view if there is one, else a copy."""
    if tensor.shape == shape:
        return tensor
    strides = view_strides(tensor.shape, tensor.strides, shape)
    if strides is None:
        tensor = in_order(table, tensor)
        strides = contiguous_strides(shape)
    return view_of(tensor, shape, strides, tensor.offset)


def as_rows(table: KernelTable, tensor: Tensor) -> Tensor:
    """(..., d) as (rows, d)."""
    rows = 1
    for size in tensor.shape[:-1]:
        rows *= size
    return shaped(table, tensor, (rows, tensor.shape[-1]))


def in_order(table: KernelTable, tensor: Tensor) -> Tensor:
    """The tensor itself if it is contiguous, else a contiguous copy."""
    if tensor.is_contiguous():
        return tensor
    return copied(table, tensor, tensor.dtype)


def copied(table: KernelTable, tensor: Tensor, dtype: DType) -> Tensor:
    """A contiguous copy in `dtype`."""
    made = empty_tensor(tensor.shape, dtype, tensor.device)
    table["copy"](made, tensor)
    return made


def as_dtype(table: KernelTable, tensor: Tensor, dtype: DType) -> Tensor:
    """The tensor itself if it has the dtype, else a copy that does."""
    return tensor if tensor.dtype is dtype else copied(table, tensor, dtype)


def parts(tensor: Tensor) -> tuple[Tensor, Tensor]:
    """The real and the imaginary parts of complex numbers, as views."""
    strides, half = tuple(2 * step for step in tensor.strides), real_dtype(tensor.dtype)
    real, imaginary = (
        view_of(tensor, tensor.shape, strides, 2 * tensor.offset + part, half)
        for part in (0, 1)
    )
    return real, imaginary


def expanded(tensor: Tensor, shape: tuple[int, ...]) -> Tensor:
    """A view that repeats dimensions of size 1 up to `shape`."""
    if tensor.shape == shape:
        return tensor
    added = len(shape) - len(tensor.shape)
    strides = [0] * added
    for size, stride, wanted in zip(
        tensor.shape, tensor.strides, shape[added:], strict=True
    ):
        strides.append(stride if size == wanted else 0)
    return view_of(tensor, shape, tuple(strides), tensor.offset)
