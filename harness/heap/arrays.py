"""How arrays of numpy are read, without importing it.

An array is its bytes, its layout, whether it can be written, and what it is a view of.
"""

import sys
from typing import Any

from harness.heap.known import Known, Parts, Unreadable
from harness.heap.layout import module_of, mro_of


def array_reader(kind: type) -> Known | None:
    """How to read types of packages that are not imported here."""
    if module_of(kind).partition(".")[0] != "numpy":
        return None
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if kind is numpy.ndarray:
        return Known(parts=_array)
    mro = mro_of(kind)
    if any(each is numpy.dtype for each in mro):
        return Known(parts=lambda o: [("state", numpy.dtype.__reduce__(o)[1:])])
    strange = kind is numpy.void or kind is numpy.object_
    if any(each is numpy.generic for each in mro) and not strange:
        return Known(
            parts=lambda o: [
                ("dtype", numpy.generic.dtype.__get__(o).str),
                ("bytes", numpy.generic.tobytes(o)),
            ]
        )
    return None


def _array(o: Any) -> Parts:
    base = o.base
    offset = None
    if base is not None:
        offset = o.__array_interface__["data"][0] - _start(base, type(o))
    held = o.dtype.hasobject
    return [
        ("dtype", o.dtype),
        ("shape", o.shape),
        ("strides", o.strides),
        ("writable", o.flags.writeable),
        ("base", base),
        ("offset", offset),
        ("items" if held else "bytes", o.tolist() if held else o.tobytes()),
    ]


def _start(base: Any, array: type) -> int:
    """The address of the first byte of what an array is a view of."""
    kind = type(base)
    if kind is bytes or kind is bytearray or kind is memoryview:
        base = sys.modules["numpy"].frombuffer(base, "u1")
    elif kind is not array:
        raise Unreadable
    address: int = base.__array_interface__["data"][0]
    return address
