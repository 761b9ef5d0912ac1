"""Enum constants and devices: dtypes, layouts, memory formats, and places of tensors.

These are values without a Python type.  There is one object for each, so that `is`
compares them, as every call does.  It is found by its number or name; if two threads
create one at once, both get the first.

Rules:
- on the boxed stack a constant is a plain int (its fake type is `int`); a kernel gets
  the object;
- numbers and names are upstream's, because schemas print defaults as the number; the
  tables below were compared with torch 2.13 by passing every object through an operator
  that returns its number;
- a number is the position in its table, and no entry ever moves; a second name of
  upstream's (`long` for `int64`) is in `SYNONYMS`;
- `cpu` has no index and differs from `cpu:0`, as upstream compares them.  Which types
  of devices exist, and how one is written, is defined by `runtime.keys`.
"""

import re
from operator import index as as_int
from typing import Any, ClassVar, Self

from everyorder.runtime.keys import key_of_device


class _Constant:
    """A value: its attributes cannot be set."""

    __slots__ = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"{type(self).__name__}.{name} cannot be set: it is a value"
        )


class EnumConstant(_Constant):
    """A named integer of one of the tables; one object each, prints its name.

    Raises IndexError for a number that the table does not have, and TypeError for what
    is not an integer.
    """

    NAMES: ClassVar[tuple[str, ...]] = ()
    SYNONYMS: ClassVar[dict[str, str]] = {}
    # The entries by number; every subclass has a separate dict.
    ENTRIES: ClassVar[dict[int, Any]] = {}

    __slots__ = ("code", "name")

    code: int
    name: str

    def __new__(cls, code: int) -> Self:
        """Return the entry with this number."""
        if code.__class__ is not int:
            # A float finds the entry of an equal number, if there is one already.
            code = as_int(code)
        entry: Self | None = cls.ENTRIES.get(code)
        if entry is None:
            if not cls.is_code(code):
                raise IndexError(f"{cls.__name__} has no number {code}")
            entry = super().__new__(cls)
            object.__setattr__(entry, "code", int(code))
            object.__setattr__(entry, "name", cls.NAMES[code])
            entry = cls.ENTRIES.setdefault(int(code), entry)
        return entry

    def __init_subclass__(cls) -> None:
        cls.ENTRIES = {}

    @classmethod
    def named(cls, name: str) -> Self:
        """Return the value with this name or synonym.

        Raises KeyError if the table lacks the name.
        """
        try:
            return cls(cls.NAMES.index(cls.SYNONYMS.get(name, name)))
        except ValueError:
            raise KeyError(name) from None

    @classmethod
    def is_code(cls, code: int) -> bool:
        """Return True if the table has an entry with this number."""
        return 0 <= code < len(cls.NAMES)

    def __reduce__(self) -> tuple[type[Self], tuple[int]]:
        return type(self), (self.code,)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name


class DType(EnumConstant):
    """The type of a tensor's elements (upstream: ScalarType)."""

    __slots__ = ()

    NAMES = (
        *("uint8", "int8", "int16", "int32", "int64"),
        *("float16", "float32", "float64"),
        *("complex32", "complex64", "complex128", "bool"),
        *("qint8", "quint8", "qint32", "bfloat16", "quint4x2", "quint2x4"),
        *("bits1x8", "bits2x4", "bits4x2", "bits8", "bits16"),
        *("float8_e5m2", "float8_e4m3fn", "float8_e5m2fnuz", "float8_e4m3fnuz"),
        *("uint16", "uint32", "uint64"),
        *("uint1", "uint2", "uint3", "uint4", "uint5", "uint6", "uint7"),
        *("int1", "int2", "int3", "int4", "int5", "int6", "int7"),
        *("float8_e8m0fnu", "float4_e2m1fn_x2"),
    )
    SYNONYMS: ClassVar[dict[str, str]] = {
        "short": "int16",
        "int": "int32",
        "long": "int64",
        "half": "float16",
        "float": "float32",
        "double": "float64",
        "chalf": "complex32",
        "cfloat": "complex64",
        "cdouble": "complex128",
    }

    # Complex dtype -> the dtype of its parts.
    PARTS: ClassVar[dict[str, str]] = {
        "complex32": "float16",
        "complex64": "float32",
        "complex128": "float64",
    }

    @property
    def is_floating(self) -> bool:
        """Return True if the elements are real floating-point numbers."""
        return "float" in self.NAMES[self.code]

    @property
    def is_floating_point(self) -> bool:
        """Return True if the elements are real floating-point numbers, as in torch."""
        return self.is_floating

    @property
    def is_complex(self) -> bool:
        """Return True if the elements are complex numbers."""
        return self.NAMES[self.code].startswith("complex")

    @property
    def is_signed(self) -> bool:
        """Return True if the elements can be negative."""
        return not self.NAMES[self.code].startswith(("bool", "uint", "quint", "bits"))

    @property
    def itemsize(self) -> int:
        """Return the size of an element in bytes; 1 if several share a byte."""
        bits = re.search(r"\d+", self.NAMES[self.code])
        return max(1, int(bits[0]) // 8) if bits else 1

    def to_real(self) -> "DType":
        """Return the dtype of the parts of a complex dtype, or a real dtype itself."""
        return DType.named(self.PARTS[self.name]) if self.is_complex else self

    def to_complex(self) -> "DType":
        """Return the dtype of complex numbers whose parts have this dtype.

        bfloat16 has complex64.

        Raises:
            TypeError: the dtype is not of floating-point numbers.
        """
        if self.is_complex:
            return self
        for name, part in self.PARTS.items():
            if self.name == part:
                return DType.named(name)
        if self.name == "bfloat16":
            return DType.named("complex64")
        raise TypeError(
            f"{self} has no complex form: expected a floating-point dtype of 16 bits "
            "or more; convert to one first"
        )


class Layout(EnumConstant):
    """The arrangement of a tensor's elements: dense, or one of the sparse forms."""

    __slots__ = ()

    NAMES = (
        *("strided", "sparse_coo", "sparse_csr", "_mkldnn"),
        *("sparse_csc", "sparse_bsr", "sparse_bsc", "jagged"),
    )


class MemoryFormat(EnumConstant):
    """The order of dimensions in the memory of a dense tensor."""

    __slots__ = ()

    NAMES = (
        "contiguous_format",
        "preserve_format",
        "channels_last",
        "channels_last_3d",
    )


class Device(_Constant):
    """A device type such as `cuda`, with an index or None; prints `cuda:1`."""

    __slots__ = ("index", "type")

    type: str
    index: int | None

    # A program names few devices.
    KNOWN: ClassVar[dict[tuple[str, int | None], "Device"]] = {}

    def __new__(cls, type: "str | Device", index: int | None = None) -> Self:  # noqa: A002  # the field's own word
        """Return the device of a type and index, of a text, or the given device.

        Raises `UnknownDevice` for a type that no backend has, and for another form.
        """
        if isinstance(type, Device):
            return type  # type: ignore[return-value]  # nothing derives from it
        # 1.0 and True are equal to 1, and are not indexes.
        whole = index is None or index.__class__ is int
        device = cls.KNOWN.get((type, index)) if whole else None
        if device is None:
            key_of_device(f"{type}" if index is None else f"{type}:{index!r}")
        if device is None and index is None and ":" in type:
            device = cls.parse(type)
        if device is None:
            device = super().__new__(cls)
            object.__setattr__(device, "type", type)
            object.__setattr__(device, "index", index)
            device = cls.KNOWN.setdefault((type, index), device)
        return device  # type: ignore[return-value]  # as above

    @classmethod
    def parse(cls, text: str) -> "Device":
        """Return the device written as `type` or `type:index`.

        Raises `UnknownDevice` for a type that no backend has, and for another form.
        """
        key_of_device(text)
        kind, colon, index = text.partition(":")
        return cls(kind, int(index) if colon else None)

    def __reduce__(self) -> tuple[object, ...]:
        return Device, (self.type, self.index)

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __repr__(self) -> str:
        index = "" if self.index is None else f", index={self.index}"
        return f"Device(type={self.type!r}{index})"
