"""Memories: where the elements of a device type lie, and how they get there.

True only here: the table from device type to memory.  Host memory is NumPy's.  A device
type that has no memory of its own keeps its elements in host memory: that is how a new
backend starts, and it may bring its own by `register_memory` when it has one.  `meta`
has none at all; nobody asks for it.

Rules:
- an array here is one-dimensional, typed, and knows its own length;
- a memory that comes with a module of a higher area is named in `PROVIDERS` and loaded
  when it is first asked for.
"""

from functools import cache
from typing import TYPE_CHECKING, Any, Protocol

from runtime.errors.storage import DeviceUnavailable
from runtime.locks import load
from runtime.schema.device import Device

if TYPE_CHECKING:
    import numpy as np

_CPU = Device("cpu")

# A one-dimensional typed array of some backend.
Array = Any


class Memory(Protocol):
    """What a device type offers; `index` is that of the device, or None."""

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """An array of `count` elements of any value."""

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """A copy of a one-dimensional NumPy array (host memory: the array itself)."""

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """A copy in host memory (host memory: the array itself)."""

    def pointer(self, array: Array) -> int:
        """The address of the first element."""


@cache
def _numpy() -> Any:
    """NumPy, at a tenth of the price of an import statement; tensors are made often."""
    import numpy as np

    return np


class HostMemory:
    """NumPy's arrays."""

    __slots__ = ()

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """An array of `count` elements of any value."""
        return _numpy().empty(count, np_dtype)

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """The array itself."""
        return array

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """The array itself."""
        found: np.ndarray[Any, Any] = array
        return found

    def pointer(self, array: Array) -> int:
        """The address of the first element."""
        address: int = array.__array_interface__["data"][0]
        return address


HOST = HostMemory()

# Device type -> its memory; a type that is not here uses host memory.
MEMORIES: dict[str, Memory] = {"cpu": HOST}

# Device type -> the module that registers its memory when it is imported.
PROVIDERS = {"cuda": "runtime.kernels.cuda"}


def register_memory(kind: str, memory: Memory) -> None:
    """Let tensors on the device type `kind` keep their elements in `memory`."""
    MEMORIES[kind] = memory


def memory_of(kind: str) -> Memory:
    """The memory of a device type.

    Raises `DeviceUnavailable` where the type has a memory that cannot be had here.
    """
    found = MEMORIES.get(kind)
    if found is not None:
        return found
    provider = PROVIDERS.get(kind)
    return HOST if provider is None else _provided(kind, provider)


def is_host(kind: str) -> bool:
    """Whether the elements of a device type lie in host memory."""
    return kind != "meta" and kind not in PROVIDERS and memory_of(kind) is HOST


def resolved(device: Device | str) -> Device:
    """The device that a tensor is made on: `cpu:0` is `cpu`, `cuda` the current one.

    A memory that tells devices apart says which one is meant without an index by a
    method `current_index()`.  Raises `UnknownDevice` and `DeviceUnavailable`.
    """
    if device == "cpu":
        return _CPU
    place = device if isinstance(device, Device) else Device.parse(device)
    if place.index is None:
        if place.type in PROVIDERS:
            current = getattr(memory_of(place.type), "current_index", None)
            return Device(place.type, 0 if current is None else current())
        return place
    return Device(place.type) if place.type in ("cpu", "meta") else place


def _provided(kind: str, provider: str) -> Memory:
    try:
        load(provider)
    except ModuleNotFoundError as error:
        raise DeviceUnavailable(
            device=kind,
            reason=f"the module `{error.name}` is not installed",
            remedy=f"install everyorder with the extra `{kind}`",
        ) from error
    if kind not in MEMORIES:
        raise DeviceUnavailable(
            device=kind, reason="its module brought no memory", remedy=""
        )
    return MEMORIES[kind]
