"""Kernels for tensors on NVIDIA devices, compiled by Numba-CUDA, and their memory."""

from everyorder.runtime.kernels.cpu.kernel_table import tables_of
from everyorder.runtime.kernels.cuda.arena import Statistics
from everyorder.runtime.kernels.cuda.device import (
    Event,
    Properties,
    Stream,
    current_device,
    current_stream,
    default_stream,
    device_count,
    is_available,
    on_device,
    on_stream,
    properties,
    synchronize,
)
from everyorder.runtime.kernels.cuda.memory import (
    empty_cache,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    memory_stats,
    pinned_array,
    record_stream,
    reset_peak,
)

__all__ = [
    "KERNELS",
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
    "record_stream",
    "reset_peak",
    "synchronize",
]

# Names and meanings are those of the CPU's table; a test compares the two.
KERNELS = tables_of(__name__, "KERNELS")
