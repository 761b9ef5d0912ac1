"""Elementwise kernels: one body for any scalar function of one, two or three elements.

True only here: how operands of any layout, and numbers, meet in one launch.

Rules
- a scalar function is given as `scalar(T)`, which returns the function for the type;
- the output may have any strides; every operand is broadcast to its shape and either
  read or, where `fixed`, a number; `out` and operands may be the same memory where
  they are the same element by element;
- where all is flat, elements are walked over without a division; else by `parts`;
- flat loops read several elements before they write: what a multiprocessor has under
  way must cover bandwidth times latency, some 25 KiB on Hopper, and its 2,048 threads
  with one float32 each are 8.
"""

from collections.abc import Callable
from typing import Any

from runtime.kernels.cuda.geometry import parts, pieces, place
from runtime.kernels.cuda.jit import Body, Family, Key, device
from runtime.kernels.cuda.launch import spread
from runtime.kernels.cuda.operand import (
    Number,
    Source,
    Value,
    index_of,
    source,
    value,
)
from runtime.kernels.cuda.toolkit import cuda
from runtime.tensors.tensor import Tensor

Scalar = Callable[..., Any]
# From the scalar types of the key to the function of elements.
ScalarMaker = Callable[..., Scalar]

_OPERAND = "{0}[::1], {1}, int64, int64, int64*4, "


def family(
    name: str,
    scalar: ScalarMaker,
    keys: tuple[str | Key, ...],
    *,
    operands: str = "T",
    result: str = "T",
) -> Family:
    """Kernels of `scalar`; `operands` has a letter for each: `T`, `U`, `B` for bool."""
    wide = {"T": "W", "U": "V", "B": "int64"}
    named = {"T": "T", "U": "U", "B": "bool"}
    signature = f"{result}[::1], int64, int64*4, "
    for letter in operands:
        signature += _OPERAND.format(named[letter], wide[letter])
    makers: tuple[Callable[..., Body], ...] = (_unary, _binary, _ternary)
    maker = makers[len(operands) - 1]

    def make(*scalars: Any) -> Body:
        return maker(device(scalar(*scalars)), *_casts(operands, scalars))

    return Family(name, make, signature + "int64*4, int64", keys)


def run(
    kernels: Family, key: Key, out: Tensor, *given: tuple[Tensor | Number, str]
) -> None:
    """Launch for an output and its operands, each with the dtype it is read as."""
    at = index_of(out)
    values = tuple(value(item, out.shape, name, at) for item, name in given)
    run_values(kernels, key, out, values)


def run_values(
    kernels: Family,
    key: Key,
    out: Tensor,
    values: tuple[Value, ...],
    target: Source | None = None,
) -> None:
    """Launch for operands in the form of the body; `target` is how `out` is shown."""
    at = index_of(out)
    target = target or source(out)
    offsets = (target.offset, *(item.offset for item in values))
    strides = (target.strides, *(item.strides for item in values))
    for piece in pieces(out.shape, offsets, strides):
        arguments: list[Any] = [target.array, piece.offsets[0], piece.strides[0]]
        for item, offset, steps in zip(
            values, piece.offsets[1:], piece.strides[1:], strict=True
        ):
            arguments += (item.array, item.number, item.fixed, offset, steps)
        kernels[key](spread(piece.size, at), *arguments, piece.extents, piece.size)


def _casts(operands: str, scalars: tuple[Any, ...]) -> tuple[Any, ...]:
    from numpy import bool_

    types = dict(zip("TU", scalars, strict=False))
    return tuple(bool_ if letter == "B" else types[letter] for letter in operands)


def _unary(function: Scalar, kind: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out, out_at, out_by, a, a_number, a_fixed, a_at, a_by, extents, count
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        x = kind(a_number)
        if extents[3] == count:
            one, two, three = x, x, x
            while i + 3 * step < count:
                if not a_fixed:
                    x = a[a_at + i * a_by[3]]
                    one = a[a_at + (i + step) * a_by[3]]
                    two = a[a_at + (i + 2 * step) * a_by[3]]
                    three = a[a_at + (i + 3 * step) * a_by[3]]
                out[out_at + i * out_by[3]] = function(x)
                out[out_at + (i + step) * out_by[3]] = function(one)
                out[out_at + (i + 2 * step) * out_by[3]] = function(two)
                out[out_at + (i + 3 * step) * out_by[3]] = function(three)
                i += 4 * step
            while i < count:
                if not a_fixed:
                    x = a[a_at + i * a_by[3]]
                out[out_at + i * out_by[3]] = function(x)
                i += step
        else:
            while i < count:
                at = parts(i, extents)
                if not a_fixed:
                    x = a[place(a_at, at, a_by)]
                out[place(out_at, at, out_by)] = function(x)
                i += step

    return body


def _binary(function: Scalar, kind: Any, other: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out,
        out_at,
        out_by,
        a,
        a_number,
        a_fixed,
        a_at,
        a_by,
        b,
        b_number,
        b_fixed,
        b_at,
        b_by,
        extents,
        count,
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        x = kind(a_number)
        y = other(b_number)
        if extents[3] == count:
            one, sole = x, y
            while i + step < count:
                if not a_fixed:
                    x = a[a_at + i * a_by[3]]
                    one = a[a_at + (i + step) * a_by[3]]
                if not b_fixed:
                    y = b[b_at + i * b_by[3]]
                    sole = b[b_at + (i + step) * b_by[3]]
                out[out_at + i * out_by[3]] = function(x, y)
                out[out_at + (i + step) * out_by[3]] = function(one, sole)
                i += 2 * step
            while i < count:
                if not a_fixed:
                    x = a[a_at + i * a_by[3]]
                if not b_fixed:
                    y = b[b_at + i * b_by[3]]
                out[out_at + i * out_by[3]] = function(x, y)
                i += step
        else:
            while i < count:
                at = parts(i, extents)
                if not a_fixed:
                    x = a[place(a_at, at, a_by)]
                if not b_fixed:
                    y = b[place(b_at, at, b_by)]
                out[place(out_at, at, out_by)] = function(x, y)
                i += step

    return body


def _ternary(function: Scalar, kind: Any, other: Any, third: Any) -> Body:
    def body(  # type: ignore[no-untyped-def]  # compiled for the device
        out,
        out_at,
        out_by,
        a,
        a_number,
        a_fixed,
        a_at,
        a_by,
        b,
        b_number,
        b_fixed,
        b_at,
        b_by,
        c,
        c_number,
        c_fixed,
        c_at,
        c_by,
        extents,
        count,
    ):
        i = cuda.grid(1)
        step = cuda.gridsize(1)
        x = kind(a_number)
        y = other(b_number)
        z = third(c_number)
        if extents[3] == count:
            while i < count:
                if not a_fixed:
                    x = a[a_at + i * a_by[3]]
                if not b_fixed:
                    y = b[b_at + i * b_by[3]]
                if not c_fixed:
                    z = c[c_at + i * c_by[3]]
                out[out_at + i * out_by[3]] = function(x, y, z)
                i += step
        else:
            while i < count:
                at = parts(i, extents)
                if not a_fixed:
                    x = a[place(a_at, at, a_by)]
                if not b_fixed:
                    y = b[place(b_at, at, b_by)]
                if not c_fixed:
                    z = c[place(c_at, at, c_by)]
                out[place(out_at, at, out_by)] = function(x, y, z)
                i += step

    return body
