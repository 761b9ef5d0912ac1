"""Errors of making a tensor and of reading its data."""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class NoData(EveryorderError, RuntimeError):
    """The numbers of a tensor that holds none were asked for.

    Make the tensor on a device that holds data, or ask for shape and dtype only.
    """

    device: str
    dtype: str
    shape: tuple[int, ...]
    asked: str

    def render(self) -> str:
        """The sentence, and what such a tensor does have."""
        return page(
            f"`{self.asked}` needs the numbers, but a tensor on `{self.device}` "
            "holds none.",
            ("it has", f"shape {self.shape} and dtype {self.dtype}, nothing else"),
        )


@dataclass(eq=False, kw_only=True)
class UnsupportedData(EveryorderError, TypeError):
    """The data, or the asked dtype, has no NumPy form that a tensor can hold."""

    dtype: str
    near: tuple[str, ...]

    def render(self) -> str:
        """The dtype, and the names that are like it."""
        near = ", ".join(self.near)
        return page(
            f"A tensor cannot hold elements of dtype `{self.dtype}`.",
            *((("near", near),) if near else ()),
        )


@dataclass(eq=False, kw_only=True)
class NoGradient(EveryorderError, TypeError):
    """`requires_grad=True` was asked for elements that have no derivative."""

    dtype: str

    def render(self) -> str:
        """The dtype, and which dtypes would do."""
        return page(
            f"`requires_grad=True` needs real or complex floating-point elements, "
            f"but these are `{self.dtype}`.",
            ("to do", "pass dtype='float32', or leave requires_grad out"),
        )


@dataclass(eq=False, kw_only=True)
class NotOneElement(EveryorderError, ValueError):
    """`item()` was asked of a tensor with none, or with more than one element."""

    shape: tuple[int, ...]
    elements: int

    def render(self) -> str:
        """The shape and the count."""
        return page(
            f"`item()` reads a tensor of one element; this one has "
            f"{self.elements}, in shape {self.shape}."
        )
