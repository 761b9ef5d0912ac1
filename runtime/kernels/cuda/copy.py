"""Copies and fills: any layout to any other, any dtype to any other.

True only here: conversion between dtypes, and between the host and a device.

Rules
- equal dtypes are moved by the size of their elements; where both lie in order, the
  driver copies; operands may be the same memory element by element;
- 16-bit floats convert from and to float32; others go that way in two steps;
- a float becomes an integer by cutting off its fraction (what does not fit is up to the
  device, as in C), a complex number a real one by dropping its imaginary part, and
  everything but zero is true;
- between the host and a device, conversion happens on the side of `src`.
"""

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from runtime.kernels.cuda.device import on_device
from runtime.kernels.cuda.elementwise import family, run, run_values
from runtime.kernels.cuda.half import (
    from_bfloat16,
    from_float16,
    to_bfloat16,
    to_float16,
)
from runtime.kernels.cuda.memory import download, upload
from runtime.kernels.cuda.operand import (
    MOVED,
    Number,
    form,
    index_of,
    install_packing,
    moved,
    source,
    value,
)
from runtime.kernels.cuda.scalars import Scalar
from runtime.kernels.cuda.stream import current_stream
from runtime.kernels.cuda.toolkit import SIMULATED
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.arrays import flat_of
from runtime.tensors.elements import numpy_dtype
from runtime.tensors.making import empty_tensor
from runtime.tensors.tensor import Tensor

_COMPUTED = (
    *("bool", "uint8", "int8", "int16", "int32", "int64"),
    *("float32", "float64", "complex64", "complex128"),
)
_HALVES = ("float16", "bfloat16")


def _convert(kind: Any, second: Any) -> Scalar:
    zero = second(0)
    if kind is np.bool_:
        return lambda x: x != zero
    parts = np.issubdtype(second, np.complexfloating)
    if parts and not np.issubdtype(kind, np.complexfloating):
        return (lambda x: x.real.astype(kind)) if SIMULATED else (lambda x: x.real)
    # The store converts; NumPy's would refuse what does not fit.
    return (lambda x: x.astype(kind)) if SIMULATED else (lambda x: x)


# A number converts to itself; the store makes it the element.
_MOVE = family("move", lambda kind: lambda x: x, tuple(MOVED.values()))
_FILL = family("fill", lambda kind: lambda x: x, (*_COMPUTED, "uint16"))
_CONVERT = family(
    "convert",
    _convert,
    tuple((to, of) for to in _COMPUTED for of in _COMPUTED if to != of),
    operands="U",
)
_WIDEN = {
    name: family(
        f"widen_{name}",
        lambda kind, other, function=function: function,
        (("float32", "uint16"),),
        operands="U",
    )
    for name, function in (("float16", from_float16), ("bfloat16", from_bfloat16))
}
_NARROW = {
    name: family(
        f"narrow_{name}",
        lambda kind, other, function=function: function,
        (("uint16", "float32"),),
        operands="U",
    )
    for name, function in (("float16", to_float16), ("bfloat16", to_bfloat16))
}


def contiguous(tensor: Tensor) -> Tensor:
    """The tensor, or a copy of it where its elements do not lie in order."""
    if flat_of(tensor) is not None:
        return tensor
    made = empty_tensor(tensor.shape, tensor.dtype, tensor.device)
    copy(made, tensor)
    return made


def copy(dst: Tensor, src: Tensor) -> None:
    """Write `src`, broadcast, into `dst`; either may lie on the host."""
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
    """A number as kernels see an element of the dtype: 16-bit floats are their bits."""
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
    at, name = index_of(dst), moved(dst)
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
    """Between the host and a device: as bytes, in the dtype of `dst`."""
    from runtime.kernels.cpu.table import KERNELS as HOST

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
    """From one device to another, by way of the host."""
    host = empty_tensor(src.shape, src.dtype, Device("cpu"))
    _between(host, src)
    _between(dst, host)


install_packing(contiguous)

KERNELS: dict[str, Callable[..., None]] = {"copy": copy, "fill": fill}
