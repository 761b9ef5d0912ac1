"""CUDA devices for programs: their number, streams, events and memory.

This module can be imported without a GPU and without numba-cuda.  `is_available()` and
`device_count()` work there, too; every other name is loaded from `runtime.kernels.cuda`
on first access, and raises `DeviceUnavailable` if CUDA cannot be used.

Rules: importing this module imports neither NumPy nor Numba; a public name is in
`__all__`, and below `TYPE_CHECKING` if it is loaded late.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.locks import load

if TYPE_CHECKING:
    from everyorder.runtime.kernels.cuda import (
        Event,
        Properties,
        Statistics,
        Stream,
        current_device,
        current_stream,
        default_stream,
        empty_cache,
        max_memory_allocated,
        memory_allocated,
        memory_reserved,
        memory_stats,
        on_device,
        on_stream,
        pinned_array,
        properties,
        reset_peak,
        synchronize,
    )

__all__ = [
    "Event",
    "Properties",
    "Statistics",
    "Stream",
    "current_device",
    "current_stream",
    "default_stream",
    "device_count",
    "empty_cache",
    "is_available",
    "max_memory_allocated",
    "memory_allocated",
    "memory_reserved",
    "memory_stats",
    "on_device",
    "on_stream",
    "pinned_array",
    "properties",
    "reset_peak",
    "synchronize",
]


def device_count() -> int:
    """Return the number of CUDA devices: 0 without a driver or without numba-cuda."""
    if find_spec("numba_cuda") is None:
        return 0
    count: int = load("everyorder.runtime.kernels.cuda").device_count()
    return count


def is_available() -> bool:
    """Return True if there is a CUDA device to compute on; never raise."""
    return device_count() > 0


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no `{name}`", name=name)
    value = getattr(load("everyorder.runtime.kernels.cuda"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
