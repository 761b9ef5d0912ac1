"""The accessors of arrays, scalars and types of numpy, which is not imported here.

An array is read by the descriptors of `numpy.ndarray`, so no code of a subclass runs.
Subclasses that are written in Python are read in the same way, with their attributes; a
subclass with slots, or one that is written in C, is opaque.  Of a large array the
digest of its bytes is read.
"""

import sys
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from everyorder.harness.state.layout import (
    HEAP_TYPE,
    Accessor,
    Parts,
    Unreadable,
    flags_of,
    module_of,
    mro_of,
    namespace_of,
)

# Contents that are longer are represented by a digest.
_LARGEST = 1 << 16


def array_reader(kind: type) -> Accessor | None:
    """Return the accessor of a type of numpy, or of a class of arrays, or None."""
    numpy = sys.modules.get("numpy")
    array = getattr(numpy, "ndarray", None)
    if array is None:
        return None
    bases = mro_of(kind)
    if any(each is array for each in bases):
        readable = all(map(_adds_attributes, bases[: bases.index(array)]))
        return Accessor(parts=_array) if readable else None
    if module_of(kind).partition(".")[0] != "numpy":
        return None
    numpy = sys.modules["numpy"]
    if any(each is numpy.dtype for each in bases):
        return Accessor(parts=lambda o: [("state", numpy.dtype.__reduce__(o)[1:])])
    strange = kind is numpy.void or kind is numpy.object_
    if any(each is numpy.generic for each in bases) and not strange:
        return Accessor(
            parts=lambda o: [
                ("dtype", numpy.generic.dtype.__get__(o).str),
                ("bytes", numpy.generic.tobytes(o)),
            ]
        )
    return None


def _adds_attributes(kind: type) -> bool:
    """Return True for a class that adds at most a dict of attributes."""
    return bool(flags_of(kind) & HEAP_TYPE) and not namespace_of(kind).get("__slots__")


def _array(o: Any) -> Parts:
    array = sys.modules["numpy"].ndarray
    read = namespace_of(array)
    base, dtype = read["base"].__get__(o), read["dtype"].__get__(o)
    offset = None
    if base is not None:
        offset = _address(o, read) - _start(base, array)
    contents = ("items", array.tolist(o)) if dtype.hasobject else ("bytes", _bytes(o))
    return [
        ("dtype", dtype),
        ("shape", read["shape"].__get__(o)),
        ("strides", read["strides"].__get__(o)),
        ("writable", read["flags"].__get__(o).writeable),
        ("base", base),
        ("offset", offset),
        contents,
    ]


def _bytes(o: Any) -> bytes:
    contents: bytes = sys.modules["numpy"].ndarray.tobytes(o)
    if len(contents) <= _LARGEST:
        return contents
    return blake2b(contents, digest_size=32).digest()


def _address(o: Any, read: Mapping[str, Any]) -> int:
    address: int = read["__array_interface__"].__get__(o)["data"][0]
    return address


def _start(base: Any, array: type) -> int:
    """Return the address of the first byte of the base of a view."""
    kind = type(base)
    if kind is bytes or kind is bytearray or kind is memoryview:
        base = sys.modules["numpy"].frombuffer(base, "u1")
    elif not any(each is array for each in mro_of(kind)):
        raise Unreadable
    return _address(base, namespace_of(array))
