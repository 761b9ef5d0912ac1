"""Errors of an operator's operands: shapes, dtypes, devices, targets and options.

Who must act: the caller.  All are raised before anything is written.

Rules: `operator` is the operator as called (`core::add_`, `core::add.out`); shapes
are tuples of ints, dtypes and devices are texts; `fits` says what would be taken.
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class OperandError(EveryorderError, RuntimeError):
    """Base: an operator refuses what it was given; nothing was written."""

    operator: str


@dataclass(eq=False, kw_only=True)
class ShapesRefused(OperandError, ValueError):
    """The shapes of the operands do not go together."""

    shapes: tuple[tuple[int, ...], ...]
    fits: str

    def render(self) -> str:
        """The shapes, and what would go together."""
        shown = " and ".join(str(shape) for shape in self.shapes)
        return page(
            f"`{self.operator}` cannot combine shapes {shown}.", ("fits", self.fits)
        )


@dataclass(eq=False, kw_only=True)
class DTypeRefused(OperandError, TypeError):
    """The operator is not defined for elements of this dtype."""

    argument: str
    dtype: str
    fits: str

    def render(self) -> str:
        """The argument, its dtype, and which dtypes would do."""
        return page(
            f"`{self.operator}` does not take `{self.argument}` of dtype {self.dtype}.",
            ("fits", self.fits),
        )


@dataclass(eq=False, kw_only=True)
class DevicesDiffer(OperandError, ValueError):
    """The tensors of one call lie on different devices."""

    devices: tuple[str, ...]

    def render(self) -> str:
        """The devices, and what may be mixed."""
        return page(
            f"`{self.operator}` needs its tensors on one device, but they lie on "
            f"{' and '.join(self.devices)}.",
            ("fits", "one device for all; a CPU tensor without dimensions goes along"),
            ("to do", "move them with `.to(device)`"),
        )


@dataclass(eq=False, kw_only=True)
class TargetShape(OperandError, ValueError):
    """The tensor that is written to has not the shape of the result."""

    argument: str
    shape: tuple[int, ...]
    result: tuple[int, ...]

    def render(self) -> str:
        """Both shapes, and what would fit."""
        fits = f"shape {self.result}"
        if self.argument != "self":
            fits += ", or a tensor without elements, which is resized"
        return page(
            f"`{self.operator}` computes shape {self.result}, which cannot be written "
            f"to `{self.argument}` of shape {self.shape}.",
            ("fits", fits),
        )


@dataclass(eq=False, kw_only=True)
class TargetDType(OperandError, TypeError):
    """The tensor that is written to cannot hold the dtype of the result."""

    argument: str
    dtype: str
    result: str

    def render(self) -> str:
        """Both dtypes, and what would fit."""
        return page(
            f"`{self.operator}` computes {self.result}, which does not convert to the "
            f"{self.dtype} of `{self.argument}`.",
            ("fits", f"{self.result}, or a dtype that it converts to"),
        )


@dataclass(eq=False, kw_only=True)
class TargetOverlaps(OperandError, ValueError):
    """Several elements of the tensor that is written to share one place in memory."""

    argument: str
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def render(self) -> str:
        """The shape and strides, and what to do."""
        return page(
            f"`{self.operator}` cannot write to `{self.argument}`: several of its "
            "elements share one place in memory.",
            ("shape", f"{self.shape}, strides {self.strides}"),
            ("to do", "write to its `.clone()`"),
        )


@dataclass(eq=False, kw_only=True)
class DimensionOutOfRange(OperandError, IndexError):
    """A dimension that the tensor does not have, or that was named twice."""

    dim: int
    shape: tuple[int, ...]
    repeated: bool = False

    def render(self) -> str:
        """The dimension, the shape, and which dimensions there are."""
        count = max(len(self.shape), 1)
        what = "names it twice" if self.repeated else "has no such dimension"
        return page(
            f"`{self.operator}` was given dimension {self.dim} for shape "
            f"{self.shape}, which {what}."
            if not self.repeated
            else f"`{self.operator}` was given dimension {self.dim} of shape "
            f"{self.shape} twice.",
            ("fits", f"{-count} to {count - 1}, each once"),
        )


@dataclass(eq=False, kw_only=True)
class NothingToReduce(OperandError, ValueError, IndexError):
    """A reduction without an identity over no elements."""

    shape: tuple[int, ...]
    dims: tuple[int, ...]

    def render(self) -> str:
        """The shape and the dimensions."""
        return page(
            f"`{self.operator}` has no result for no elements: shape {self.shape} "
            f"over dimensions {self.dims}.",
            ("fits", "dimensions whose sizes are not 0"),
        )


@dataclass(eq=False, kw_only=True)
class WrongOption(OperandError, ValueError):
    """The value of an option is not one that the operator knows."""

    argument: str
    found: str
    fits: str

    def render(self) -> str:
        """The option, its value, and what would do."""
        return page(
            f"`{self.operator}` does not take {self.found} for `{self.argument}`.",
            ("fits", self.fits),
        )


@dataclass(eq=False, kw_only=True)
class PartOutOfRange(WrongOption, IndexError):
    """A part was asked for that a dimension does not have."""


@dataclass(eq=False, kw_only=True)
class NoDataToRead(OperandError):
    """The result depends on the elements of a tensor that holds none (meta)."""

    device: str
    asked: str

    def render(self) -> str:
        """What was asked for, and why there is nothing to read."""
        return page(
            f"`{self.operator}` {self.asked}, but a tensor on {self.device} holds no "
            "elements.",
            ("to do", "call it with a tensor on a device that holds data"),
        )
