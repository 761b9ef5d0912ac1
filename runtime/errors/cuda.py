"""Errors of CUDA devices: their memory, and what was asked of them.

Who must act: whoever asked for more memory than the device has left (`OutOfMemory`),
used a stream or an array on a device that it does not belong to (`WrongDevice`), or
made a tensor of an array that hides elements (`MaskedArray`).
"""

from dataclasses import dataclass

from runtime.errors.base import EveryorderError
from runtime.errors.call import page


@dataclass(eq=False, kw_only=True)
class OutOfMemory(EveryorderError, MemoryError):
    """A device has no room for a request, not even after its cache was given back.

    All numbers are bytes.  `allocated` is held by live tensors, `reserved` is what the
    arena holds of the device in all, `free` what the device says is left.
    """

    device: str
    asked: int
    allocated: int
    reserved: int
    free: int

    def render(self) -> str:
        """What was asked for, and who holds the memory."""
        return page(
            f"`{self.device}` has no room for {bytes_text(self.asked)}.",
            ("tensors hold", bytes_text(self.allocated)),
            ("arena holds", bytes_text(self.reserved)),
            ("device has left", bytes_text(self.free)),
            (
                "to do",
                "drop tensors that are not needed, or work on smaller pieces; what the "
                "arena had cached is given back already",
            ),
        )


@dataclass(eq=False, kw_only=True)
class WrongDevice(EveryorderError, ValueError):
    """Something of one CUDA device was used with another one."""

    what: str
    belongs: str
    used_on: str

    def render(self) -> str:
        """The thing, its device, and the other one."""
        return page(
            f"{self.what} belongs to `{self.belongs}` and cannot be used on "
            f"`{self.used_on}`."
        )


@dataclass(eq=False, kw_only=True)
class MaskedArray(EveryorderError, ValueError):
    """A CUDA array that hides elements by a mask was to become a tensor."""

    shape: tuple[int, ...]

    def render(self) -> str:
        """The array, and what to do."""
        return page(
            f"A CUDA array of shape {self.shape} brings a mask, and tensors have none.",
            ("to do", "fill in what the mask hides, then hand over the elements"),
        )


def bytes_text(count: int) -> str:
    """A number of bytes for people: `3.5 MiB (3670016 bytes)`."""
    size = float(count)
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit} ({count} bytes)"
