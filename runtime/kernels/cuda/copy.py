"""Copies, fills, evenly spaced numbers, random numbers and checks on CUDA.

Rules:
- equal dtypes are moved by the size of their elements; if both are contiguous, the
  driver copies; operands may be the same memory element by element;
- 16-bit floats convert from and to float32; other conversions of them take two steps;
- converting a float to an integer truncates its fraction (out of range, the result
  depends on the device, as in C), a complex number to a real one drops its imaginary
  part, and everything but zero is true;
- between the host and a device, the side of `src` converts;
- `flat` is for kernels that traverse elements in order: other layouts are copied;
- element i of `arange` is `start + i * step`, so that errors do not accumulate:
  integers in int64, all else in double precision, rounded once;
- `cat` copies each tensor into a view of its part of the output;
- random numbers are those of `runtime.kernels.cpu.random`, bit by bit: a thread
  computes a block of Philox words and its numbers.  Every 64-bit integer stays
  unsigned: combined with a signed one it would become a float.

A kernel that must not write a partial result runs a checking kernel first
(`first_outside`, `first_zero`): the lowest bad position, in row-major order, wins in a
flag on the device, for which the host waits.  That costs a round trip; operators whose
elements cannot be invalid skip it.
"""

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cpu.random import DRAWS, Draw, block, kernels
from everyorder.runtime.kernels.cuda.device import (
    SIMULATED,
    current_stream,
    on_device,
    running,
)
from everyorder.runtime.kernels.cuda.elementwise import (
    Array,
    Number,
    as_dtype,
    family,
    form,
    index_of,
    run,
    run_values,
    source,
    value,
    word_of,
)
from everyorder.runtime.kernels.cuda.jit import (
    Elements,
    LaunchFamily,
    Maker,
    from_bfloat16,
    from_float16,
    number_of,
    ported,
    to_bfloat16,
    to_float16,
)
from everyorder.runtime.kernels.cuda.memory import CudaMemory, download, upload
from everyorder.runtime.kernels.math.complex import Scalar
from everyorder.runtime.kernels.math.scalars import ALL, INTEGERS
from everyorder.runtime.kernels.shared.operands import BY_SIZE, out_of_range
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.construction import empty_tensor, view_of
from everyorder.runtime.tensors.dtype_info import numpy_dtype
from everyorder.runtime.tensors.generator import Generator
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import flat_of, place_of

_HALVES = ("float16", "bfloat16")


def _convert(kind: Any, second: Any) -> Scalar:
    zero = second(0)
    if kind is np.bool_:
        return lambda x: x != zero
    parts = np.issubdtype(second, np.complexfloating)
    if parts and not np.issubdtype(kind, np.complexfloating):
        return (lambda x: x.real.astype(kind)) if SIMULATED else (lambda x: x.real)
    # The store converts; NumPy would refuse values that do not fit.
    return (lambda x: x.astype(kind)) if SIMULATED else (lambda x: x)


# The function is the identity; the store converts the number.
_MOVE = family("move", lambda kind: lambda x: x, tuple(BY_SIZE.values()))
_FILL = family("fill", lambda kind: lambda x: x, (*ALL, "uint16"))
_CONVERT = family(
    "convert",
    _convert,
    tuple((to, of) for to in ALL for of in ALL if to != of),
    operands="U",
)


def _of_halves(name: str, function: Scalar, key: tuple[str, str]) -> LaunchFamily:
    return family(name, lambda kind, other: function, (key,), operands="U")


_WIDEN = {
    name: _of_halves(f"widen_{name}", function, ("float32", "uint16"))
    for name, function in (("float16", from_float16), ("bfloat16", from_bfloat16))
}
_NARROW = {
    name: _of_halves(f"narrow_{name}", function, ("uint16", "float32"))
    for name, function in (("float16", to_float16), ("bfloat16", to_bfloat16))
}


def contiguous(tensor: Tensor) -> Tensor:
    """Return the tensor, or a copy of it if it is not contiguous."""
    if flat_of(tensor) is not None:
        return tensor
    result = empty_tensor(tensor.shape, tensor.dtype, tensor.device)
    copy(result, tensor)
    return result


def flat(tensor: Tensor, name: str | None = None) -> Array:
    """Return the elements in order, viewed as `name`; copied if not contiguous."""
    array = flat_of(tensor)
    if array is None:
        array = flat_of(contiguous(tensor))
    return as_dtype(array, name or form(tensor))


def copy(dst: Tensor, src: Tensor) -> None:
    """Write `src`, broadcast, into `dst`; either may be on the host."""
    if not prod(dst.shape):
        return
    if src.number is not None:
        fill(dst, src.number)
    elif src.device.type != dst.device.type:
        _between(dst, src)
    elif index_of(src) != index_of(dst):
        _across(dst, src)
    else:
        _on_device(dst, src)


def fill(dst: Tensor, value: Number) -> None:
    """Write one number into every element."""
    name = form(dst)
    run(_FILL, (name,), dst, (bits_of(value, dst.dtype), name))


def bits_of(number: Number, dtype: DType) -> Number:
    """Return a number as an element in kernels: bits for 16-bit floats."""
    if dtype.name not in _HALVES:
        return number
    single = np.array([number], np.float32).astype(numpy_dtype(dtype))
    return int(single.view(np.uint16)[0])


def _on_device(dst: Tensor, src: Tensor) -> None:
    to, of = dst.dtype.name, src.dtype.name
    if to == of:
        _move(dst, src)
    elif of in _HALVES:
        if to == "float32":
            run(_WIDEN[of], ("float32", "uint16"), dst, (src, "uint16"))
        else:
            _by_way_of_float32(dst, src)
    elif to in _HALVES:
        if of == "float32":
            run(_NARROW[to], ("uint16", "float32"), dst, (src, "float32"))
        else:
            _by_way_of_float32(dst, src)
    else:
        run(_CONVERT, (to, of), dst, (src, of))


def _by_way_of_float32(dst: Tensor, src: Tensor) -> None:
    between = empty_tensor(src.shape, DType.named("float32"), src.device)
    _on_device(between, src)
    _on_device(dst, between)


def _move(dst: Tensor, src: Tensor) -> None:
    at, name = index_of(dst), word_of(dst)
    into, out_of = flat_of(dst), flat_of(src)
    if into is not None and out_of is not None and dst.shape == src.shape:
        with on_device(at):
            into.view(np.uint8).copy_to_device(
                out_of.view(np.uint8), stream=current_stream(at).native
            )
        return
    target = source(dst, None, name)
    operand = value(src, dst.shape, name, at)
    run_values(_MOVE, (name,), dst, (operand,), target)


def _between(dst: Tensor, src: Tensor) -> None:
    """Copy between the host and a device: as bytes, in the dtype of `dst`."""
    from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as HOST

    if dst.device.type == "cpu":
        here = src
        if src.dtype is not dst.dtype:
            here = empty_tensor(src.shape, dst.dtype, src.device)
            _on_device(here, src)
        here = contiguous(here)
        array = flat_of(here)
        host = empty_tensor(here.shape, here.dtype, dst.device)
        landing = flat_of(host)
        assert array is not None, "it has just been made contiguous"
        assert landing is not None, "it has just been made"
        download(landing, array, index_of(here))
        current_stream(index_of(here)).synchronize()
        HOST["copy"](dst, host)
        return
    packed = empty_tensor(src.shape, dst.dtype, src.device)
    HOST["copy"](packed, src)
    there = dst if flat_of(dst) is not None and dst.shape == src.shape else None
    if there is None:
        there = empty_tensor(src.shape, dst.dtype, dst.device)
    landing, array = flat_of(packed), flat_of(there)
    assert array is not None, "it is contiguous"
    assert landing is not None, "it has just been made"
    upload(array, landing, index_of(there))
    current_stream(index_of(there)).synchronize()
    if there is not dst:
        _on_device(dst, there)


def _across(dst: Tensor, src: Tensor) -> None:
    """Copy from one device to another, through the host."""
    host = empty_tensor(src.shape, src.dtype, Device("cpu"))
    _between(host, src)
    _between(dst, host)


_MEMORY = CudaMemory()

# The value of the flag without a bad position: above every position.
NOTHING = (1 << 63) - 1


def _outside(kind: Any) -> Scalar:
    def element(i, flag, x, low, high):  # type: ignore[no-untyped-def]  # compiled for the device
        if x[i] < low or x[i] > high:
            running.atomic.min(flag, 0, i)

    return element


def _equal(kind: Any) -> Scalar:
    zero = kind(0)

    def element(i, flag, x):  # type: ignore[no-untyped-def]  # as above
        if x[i] == zero:
            running.atomic.min(flag, 0, i)

    return element


_OUTSIDE = Elements(
    "find_outside", _outside, "int64[::1], T[::1], int64, int64", INTEGERS
)
_ZERO = Elements("find_zero", _equal, "int64[::1], T[::1]", INTEGERS)


def first_outside(x: Tensor, low: int, high: int) -> tuple[int, int] | None:
    """Return position and value of the first integer not in `low..high`, or None."""
    return _first(_OUTSIDE, x, low, high)


def first_zero(x: Tensor) -> tuple[int, int] | None:
    """Return position and value of the first integer that is zero, or None."""
    return _first(_ZERO, x)


def require_indices(
    operator: str, index: Tensor, size: int, dim: int, *, wraps: bool = False
) -> None:
    """Refuse indices that dimension `dim` of size `size` lacks.

    With `wraps`, negative indices count from the end.

    Raises:
        IndexOutOfRange: an index is out of range.
    """
    bad = first_outside(index, -size if wraps else 0, size - 1)
    if bad is not None:
        raise out_of_range(operator, bad[1], size, dim, wraps)


def _first(kernels: Elements, x: Tensor, *bounds: int) -> tuple[int, int] | None:
    count = x.numel()
    if not count:
        return None
    at, array = index_of(x), flat(x)
    flag = _MEMORY.from_numpy(np.array([NOTHING], np.int64), at)
    kernels.run(x.dtype.name, count, at, flag, array, *bounds)
    position = int(_MEMORY.to_numpy(flag)[0])
    if position == NOTHING:
        return None
    return position, int(_MEMORY.to_numpy(array[position : position + 1])[0])


def _steps(kind: Any) -> Scalar:
    def element(i, out, start, step):  # type: ignore[no-untyped-def]  # as above
        out[i] = start + kind(i) * step

    return element


_STEPS = Elements("arange", _steps, "T[::1], T, T", ("int64", "float64"))


def arange(out: Tensor, start: Number, step: Number) -> None:
    """Write `start + i * step` into element i."""
    count = out.numel()
    if not count:
        return
    kind = out.dtype
    fraction = isinstance(start, float) or isinstance(step, float)
    name = "float64"
    if not (kind.is_floating or kind.is_complex or fraction):
        name = "int64"
    target = out
    if kind.name != name:
        target = empty_tensor(out.shape, DType.named(name), out.device)
    numbers = number_of(start, name), number_of(step, name)
    _STEPS.run(name, count, index_of(out), flat(target), *numbers)
    if target is not out:
        copy(out, target)


def cat(out: Tensor, tensors: Sequence[Tensor], dim: int) -> None:
    """Fill `out` with the tensors, which have its dtype.

    An empty tensor of one dimension fits everywhere, as in NumPy's old rule.
    """
    _, offset, strides = place_of(out)
    for tensor in tensors:
        if 0 in tensor.shape:
            continue
        copy(view_of(out, tensor.shape, strides, offset), tensor)
        offset += tensor.shape[dim] * strides[dim]


_U = np.uint64
_block = ported(block)


def _drawing(draw: Draw) -> Maker:
    numbers, of_block = ported(draw.draw), draw.of_block

    def fill_block(b, out, count, seed, offset, p, q, r):  # type: ignore[no-untyped-def]  # compiled for the device
        w0, w1, w2, w3 = _block(_U(seed), _U(offset), b)
        drawn = numbers(w0, w1, w2, w3, p, q, r)
        for i in range(of_block):
            if b * of_block + i < count:
                out[b * of_block + i] = drawn[i]

    return lambda kind: fill_block


_DRAWS = {
    name: Elements(
        name,
        _drawing(draw),
        f"T[::1], int64, uint64, uint64{f', {draw.parameters}' * 3}",
        draw.dtypes,
    )
    for name, draw in DRAWS.items()
}


def _random(name: str, out: Tensor, generator: Generator, *numbers: Any) -> None:
    count = out.numel()
    if not count:
        return
    blocks = -(-count // DRAWS[name].of_block)
    arguments = flat(out), count, *generator.take(blocks), *numbers
    _DRAWS[name].run(out.dtype.name, blocks, index_of(out), *arguments)


KERNELS: dict[str, Callable[..., Any]] = {
    "copy": copy,
    "fill": fill,
    "arange": arange,
    "cat": cat,
    **kernels(_random),
}
