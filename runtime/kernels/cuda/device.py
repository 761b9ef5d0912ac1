"""CUDA devices: which there are, what they can do, and which one is current.

True only here: the conversation with the driver about devices.  The simulator has one
device, `cuda:0`, with the few properties below.

Rules: everything that needs a device goes through `require`, which raises
`DeviceUnavailable` without a driver or for an index that is not there.  The current
device is a matter of the calling thread.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache

from runtime.errors.storage import DeviceUnavailable
from runtime.kernels.cuda.toolkit import SIMULATED, cuda


@dataclass(frozen=True, slots=True)
class Properties:
    """What launches need to know of a device; `memory` in bytes."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    shared_per_block: int
    memory: int


# The simulator's: two multiprocessors, so that grids have more than one block.
_SIMULATOR = Properties("simulator", (9, 0), 2, 4, 48 << 10, 1 << 30)

_current = threading.local()


@cache
def device_count() -> int:
    """How many CUDA devices there are; 0 without a driver."""
    if SIMULATED:
        return 1
    return len(cuda.gpus) if cuda.is_available() else 0


def is_available() -> bool:
    """Whether there is a device to compute on."""
    return device_count() > 0


def require(index: int) -> int:
    """The index, if there is such a device.  Raises `DeviceUnavailable`."""
    count = device_count()
    if 0 <= index < count:
        return index
    raise DeviceUnavailable(
        device=f"cuda:{index}",
        reason="there is no driver or no GPU"
        if not count
        else f"there are {count} CUDA devices, numbered from 0",
        remedy="use the device `cpu`, or run on a machine with an NVIDIA GPU"
        if not count
        else f"use one of cuda:0 to cuda:{count - 1}",
    )


def current_device() -> int:
    """The index that `cuda` without a number means in this thread."""
    index: int = getattr(_current, "index", 0)
    return require(index)


@contextmanager
def on_device(index: int) -> Iterator[int]:
    """Let `cuda` mean `cuda:index` in this thread for the length of a block.

    Raises `DeviceUnavailable`.
    """
    before = getattr(_current, "index", 0)
    _current.index = require(index)
    try:
        with cuda.gpus[index]:
            yield index
    finally:
        _current.index = before


@cache
def properties(index: int) -> Properties:
    """The properties of a device.  Raises `DeviceUnavailable`."""
    require(index)
    if SIMULATED:
        return _SIMULATOR
    with cuda.gpus[index]:
        device = cuda.get_current_device()
        name = device.name
        return Properties(
            name=name.decode() if isinstance(name, bytes) else str(name),
            capability=tuple(device.compute_capability)[:2],
            multiprocessors=int(device.MULTIPROCESSOR_COUNT),
            threads_per_multiprocessor=int(device.MAX_THREADS_PER_MULTIPROCESSOR),
            shared_per_block=int(device.MAX_SHARED_MEMORY_PER_BLOCK),
            memory=int(cuda.current_context().get_memory_info().total),
        )


def synchronize(index: int | None = None) -> None:
    """Wait until all work on a device (the current one) is done."""
    with on_device(current_device() if index is None else index):
        cuda.synchronize()
