"""Errors of operators that refuse what they were given, before anything is written.

Who must act: the caller.

Rules: `operator` is the operator as called (`core::add_`, `core::add.out`); shapes
are tuples of ints, dtypes and devices are texts; `fits` says what would be taken.
"""

from typing import ClassVar

from runtime.errors.base import EveryorderError, Words


class OperandError(EveryorderError, RuntimeError):
    """Base: an operator refuses what it was given; nothing was written."""

    operator: str = ""


class ShapesDoNotFit(OperandError, ValueError):
    """Shapes of the arguments of an operator that do not go together.

    `shapes` are the shapes, with the names of the arguments where these say more;
    `fits` says what would do.
    """

    shapes: tuple[tuple[str, tuple[int, ...]], ...] | tuple[tuple[int, ...], ...] = ()
    reason: str = ""
    fits: str = ""
    shape: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    wanted: tuple[int, ...] = ()

    words: ClassVar[Words] = {
        "ShapesDoNotFit": (
            "`{operator}` cannot work on these shapes: {reason}.",
            ("given", "{_given}"),
            ("fits", "{fits}"),
        ),
        "ShapesRefused": (
            "`{operator}` cannot combine shapes {shapes: and }.",
            ("fits", "{fits}"),
        ),
        "ViewImpossible": (
            "`{operator}` cannot show shape {shape} as {wanted} without a copy.",
            ("strides", "{strides}"),
            ("to do", "use reshape(...), which copies where it must"),
        ),
    }

    @property
    def _given(self) -> str:
        return ", ".join(f"{name} {shape}" for name, shape in self.shapes)


class ShapesDiffer(EveryorderError, ValueError, RuntimeError):
    """Shapes do not broadcast together."""

    shapes: tuple[tuple[int, ...], ...]

    words: ClassVar[Words] = {
        "ShapesDiffer": (
            "The shapes {shapes: and } do not broadcast.",
            ("would fit", "counted from the last, sizes that are equal or 1"),
        ),
    }


class DTypeRefused(OperandError, TypeError):
    """The operator is not defined for elements of this dtype."""

    argument: str
    dtype: str
    fits: str

    words: ClassVar[Words] = {
        "DTypeRefused": (
            "`{operator}` does not take `{argument}` of dtype {dtype}.",
            ("fits", "{fits}"),
        ),
    }


class DevicesDiffer(OperandError, ValueError):
    """What one call works on lies on different devices."""

    devices: tuple[str, ...] = ()
    what: str = ""
    belongs: str = ""
    used_on: str = ""

    words: ClassVar[Words] = {
        "DevicesDiffer": (
            "`{operator}` needs its tensors on one device, but they lie on "
            "{devices: and }.",
            ("fits", "one device for all; a CPU tensor without dimensions goes along"),
            ("to do", "move them with `.to(device)`"),
        ),
        "WrongDevice": (
            "{what} belongs to `{belongs}` and cannot be used on `{used_on}`.",
        ),
    }


class TargetRefused(OperandError, ValueError, TypeError):
    """The tensor that is written to cannot take the result."""

    argument: str
    shape: tuple[int, ...] = ()
    result: tuple[int, ...] | str = ()
    dtype: str = ""
    strides: tuple[int, ...] = ()

    words: ClassVar[Words] = {
        "TargetShape": (
            "`{operator}` computes shape {result}, which cannot be written to "
            "`{argument}` of shape {shape}.",
            ("fits", "shape {result}{_resized}"),
        ),
        "TargetDType": (
            "`{operator}` computes {result}, which does not convert to the "
            "{dtype} of `{argument}`.",
            ("fits", "{result}, or a dtype that it converts to"),
        ),
        "TargetOverlaps": (
            "`{operator}` cannot write to `{argument}`: several of its elements "
            "share one place in memory.",
            ("shape", "{shape}, strides {strides}"),
            ("to do", "write to its `.clone()`"),
        ),
    }

    @property
    def _resized(self) -> str:
        if self.argument == "self":
            return ""
        return ", or a tensor without elements, which is resized"


class DimensionOutOfRange(OperandError, IndexError, ValueError):
    """A dimension that the tensor does not have, that was named twice, or that is
    empty.
    """

    dim: int = 0
    shape: tuple[int, ...] = ()
    repeated: bool = False
    dims: tuple[int, ...] = ()
    ndim: int = 0

    words: ClassVar[Words] = {
        "DimensionOutOfRange": (
            "`{operator}` was given dimension {dim} {_fault}.",
            ("fits", "{_room}, each once"),
        ),
        "NothingToReduce": (
            "`{operator}` has no result for no elements: shape {shape} over "
            "dimensions {dims}.",
            ("fits", "dimensions whose sizes are not 0"),
        ),
        "BadDimension": (
            "There is no dimension {dim} in a tensor of {ndim} dimensions.",
            ("there are", "{_room}"),
        ),
        "RepeatedDimension": (
            "A dimension is named twice in {dims}, for a tensor of {ndim} dimensions.",
        ),
    }

    @property
    def _fault(self) -> str:
        if self.repeated:
            return f"of shape {self.shape} twice"
        return f"for shape {self.shape}, which has no such dimension"

    @property
    def _room(self) -> str:
        if self.code == "DimensionOutOfRange":
            count = max(len(self.shape), 1)
        else:
            count = self.ndim or 1
            # Some take 0 and -1 where there is no dimension; others say nothing.
            if not self.ndim and -count <= self.dim < count:
                return ""
        return f"{-count} to {count - 1}"


class IndexOutOfRange(OperandError, IndexError):
    """An index names a place that the indexed tensor lacks, or picks nothing.

    `size` is that of dimension `dim` of the indexed tensor; `wraps` says whether the
    operator counts negative indices from the end; a part of `tensor[...]` is at fault
    as written, at its `position` in the brackets.
    """

    index: int | str
    size: int = 0
    dim: int = 0
    wraps: bool = False
    position: int = 0
    shape: tuple[int, ...] = ()
    reason: str = ""
    fits: str = ""

    words: ClassVar[Words] = {
        "IndexOutOfRange": (
            "`{operator}` was given index {index} for dimension {dim}, which has "
            "size {size}.",
            ("fits", "{_room}"),
            ("state", "nothing was written"),
        ),
        "IndexRefused": (
            "`tensor[{_written}]`: {reason}.",
            ("shape", "{shape}"),
            ("fits", "{fits}"),
        ),
    }

    @property
    def _room(self) -> str:
        if not self.size:
            return "nothing: the dimension is empty"
        return f"{-self.size if self.wraps else 0} to {self.size - 1}"

    @property
    def _written(self) -> str:
        return f"{':, ' * self.position}{self.index}"


class WrongOption(OperandError, ValueError):
    """The value of an option is not one that the operator knows."""

    argument: str
    found: str
    fits: str

    words: ClassVar[Words] = {
        "WrongOption": (
            "`{operator}` does not take {found} for `{argument}`.",
            ("fits", "{fits}"),
        ),
    }


class PartOutOfRange(WrongOption, IndexError):
    """A part was asked for that a dimension does not have."""

    words: ClassVar[Words] = {
        "PartOutOfRange": (
            "`{operator}` does not take {found} for `{argument}`.",
            ("fits", "{fits}"),
        ),
    }


class NoData(OperandError):
    """The numbers of a tensor that holds none (meta) were asked for.

    Make the tensor on a device that holds data, or ask for shape and dtype only.
    """

    device: str
    dtype: str = ""
    shape: tuple[int, ...] = ()
    asked: str

    words: ClassVar[Words] = {
        "NoData": (
            "`{asked}` needs the numbers, but a tensor on `{device}` holds none.",
            ("it has", "shape {shape} and dtype {dtype}, nothing else"),
        ),
        "NoDataToRead": (
            "`{operator}` {asked}, but a tensor on {device} holds no elements.",
            ("to do", "call it with a tensor on a device that holds data"),
        ),
    }


class DivisionByZero(EveryorderError, ZeroDivisionError, RuntimeError):
    """An integer was to be divided by zero."""

    operator: str
    dtype: str

    words: ClassVar[Words] = {
        "DivisionByZero": (
            "`{operator}` would divide {dtype} by zero: no integer is that.",
            ("fits", "divisors without zeros, or floating-point elements"),
            ("state", "nothing was written"),
        ),
    }


class NegativeExponent(EveryorderError, ValueError, RuntimeError):
    """An integer was to be raised to a negative integer power."""

    operator: str
    dtype: str

    words: ClassVar[Words] = {
        "NegativeExponent": (
            "`{operator}` was given a negative exponent, and {dtype} has no fractions.",
            ("fits", "exponents from 0 on, or floating-point elements"),
            ("state", "nothing was written"),
        ),
    }
