"""CUDA devices for programs: which there are, their streams, events and memory.

These questions may be asked where there is no GPU, and where numba-cuda is not
installed.  `is_available()` and `device_count()` answer there, too; every other name is
loaded from `runtime.kernels.cuda` when it is first asked for, and raises
`DeviceUnavailable` where that cannot be had.

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
    """How many CUDA devices there are: 0 without a driver or without numba-cuda."""
    if find_spec("numba_cuda") is None:
        return 0
    count: int = load("everyorder.runtime.kernels.cuda").device_count()
    return count


def is_available() -> bool:
    """Whether there is a CUDA device to compute on; never an error."""
    return device_count() > 0


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module `{__name__}` has no `{name}`", name=name)
    found = getattr(load("everyorder.runtime.kernels.cuda"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(__all__)
