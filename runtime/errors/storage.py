"""Errors of storages and of the memory below them: devices, bounds, sharing.

Who must act: whoever asked for a device that is not there (`DeviceUnavailable`), for a
view that does not fit its storage (`OutOfStorage`), or for memory to be shared that
cannot be (`NotShareable`).
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class DeviceUnavailable(EveryorderError, RuntimeError):
    """A device was asked for that this machine or installation cannot give.

    `remedy` says what would make it available.
    """

    device: str
    reason: str
    remedy: str

    def render(self) -> str:
        """The device, why it is not there, and what to do."""
        return page(
            f"There is no device `{self.device}` to be had: {self.reason}.",
            *((("to do", self.remedy),) if self.remedy else ()),
        )


@dataclass(eq=False, kw_only=True)
class OutOfStorage(EveryorderError, ValueError, RuntimeError):
    """A view would reach outside of its storage.

    All numbers count elements; `needed` is one past the last element of the view.
    """

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    needed: int
    held: int

    def render(self) -> str:
        """The view, how far it would reach, and how far the storage goes."""
        return page(
            f"A view of shape {self.shape} with strides {self.strides} from offset "
            f"{self.offset} does not fit its storage.",
            ("needs", f"{self.needed} elements"),
            ("there are", str(self.held)),
        )


@dataclass(eq=False, kw_only=True)
class BadStrides(EveryorderError, ValueError, RuntimeError):
    """There is not one stride a dimension, or one is negative or beyond 64 bits."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int

    def render(self) -> str:
        """The shape, the strides and the offset."""
        if max(self.strides, default=0) >= 1 << 63:
            return page(
                f"A tensor of shape {self.shape} cannot lie row by row: its strides "
                f"{self.strides} do not fit 64 bits.",
                ("fits", "a shape whose sizes, 0 taken as 1, have a smaller product"),
            )
        return page(
            f"Strides {self.strides} and offset {self.offset} describe no view of "
            f"shape {self.shape}: there must be one stride a dimension, and none of "
            "the numbers may be negative."
        )


@dataclass(eq=False, kw_only=True)
class NotShareable(EveryorderError, ValueError):
    """Memory of somebody else cannot be shared as it is; a copy can be made.

    `reason` is one of the keys of `REASONS`.
    """

    reason: str
    shape: tuple[int, ...]
    dtype: str

    def render(self) -> str:
        """The array, why not, and what to do."""
        return page(
            f"An array of shape {self.shape} and dtype {self.dtype} cannot be shared "
            f"with a tensor: {REASONS[self.reason]}.",
            ("to do", "copy it: `runtime.tensor(array)`"),
        )


# Why memory is not shared.
REASONS = {
    "read-only": "it is read-only, and whoever has a tensor may write to it",
    "negative stride": "it runs backwards through memory, which tensors never do",
    "uneven stride": "its strides are no multiples of the size of an element",
    "byte order": "its bytes are not in the order of this machine",
}


@dataclass(eq=False, kw_only=True)
class NotExportable(EveryorderError, BufferError):
    """A tensor cannot be handed to another library through the protocol asked for."""

    protocol: str
    reason: str
    remedy: str

    def render(self) -> str:
        """The protocol, why not, and what to do."""
        return page(
            f"This tensor cannot be handed over by {self.protocol}: {self.reason}.",
            *((("to do", self.remedy),) if self.remedy else ()),
        )


@dataclass(eq=False, kw_only=True)
class NoElementsLeft(EveryorderError, ValueError):
    """A tensor of a fixed number of elements was asked to take another shape."""

    shape: tuple[int, ...]
    asked: tuple[int, ...]

    def render(self) -> str:
        """Both shapes."""
        return page(
            f"A tensor of shape {self.shape} holds elements, so it does not become one "
            f"of shape {self.asked}; only a tensor without elements takes a new shape."
        )


@dataclass(eq=False, kw_only=True)
class NotEnoughMemory(EveryorderError, MemoryError):
    """A tensor was asked for that is larger than the memory to be had."""

    shape: tuple[int, ...]
    dtype: str
    device: str
    needed: int

    def render(self) -> str:
        """The tensor, and how many bytes it would be."""
        return page(
            f"There is no memory for a tensor of shape {self.shape} and dtype "
            f"{self.dtype} on `{self.device}`.",
            ("needs", f"{self.needed} bytes"),
            ("to do", "make it smaller, or on `meta`, which needs shapes only"),
        )
