"""Device memory for tensors: arrays from the arena, and copies to and from the host.

This module converts a block of the arena to an array that numba-cuda can launch with.
An array is one-dimensional and typed, like every array of `runtime.tensors.storage`,
and keeps its lease alive, as its slices and views do.

Rules: copies run on the current stream.  `from_numpy` and `to_numpy` return when the
host's array may be changed, or read; `upload` and `download` do not wait, and require
pinned host memory and an array that stays alive until the stream has passed them.
Copies are bytes, so every dtype is supported, including bfloat16.
"""

import threading
from typing import Any

import numpy as np

from everyorder.runtime.kernels.cuda.arena import (
    Arena,
    BlockLease,
    OutOfDeviceMemory,
    Statistics,
)
from everyorder.runtime.kernels.cuda.device import (
    SIMULATED,
    Event,
    Stream,
    cuda,
    current_device,
    current_stream,
    on_device,
    require,
)
from everyorder.runtime.tensors.storage import register_memory

Array = Any
_BYTE = np.dtype(np.uint8)


class _Segment:
    """A run of device memory with its address; the native part keeps it alive."""

    __slots__ = ("native", "pointer")

    def __init__(self, native: Any) -> None:
        self.native = native
        self.pointer = (
            native.__array_interface__["data"][0]
            if SIMULATED
            else int(native.device_pointer)
        )


class DriverSource:
    """The driver's allocator; in the simulator, host memory of `LIMIT` bytes."""

    # The memory of the simulated device: small enough for a test to exhaust it.
    LIMIT = 1 << 30

    def __init__(self, index: int) -> None:
        self.index = require(index)
        self._left = self.LIMIT

    def take(self, nbytes: int) -> _Segment:
        """Allocate a segment of device memory.  Raises `OutOfDeviceMemory`."""
        if SIMULATED:
            if nbytes > self._left:
                raise OutOfDeviceMemory
            self._left -= nbytes
            return _Segment(np.empty(nbytes, _BYTE))
        with on_device(self.index):
            try:
                return _Segment(cuda.current_context().memalloc(nbytes))
            except cuda.cudadrv.driver.CudaAPIError as error:
                # 2 is CUDA_ERROR_OUT_OF_MEMORY in the driver's list.
                if int(error.code) != 2:
                    raise
                raise OutOfDeviceMemory from error

    def give(self, segments: list[_Segment]) -> None:
        """Return segments to the device, after all work on it is done."""
        with on_device(self.index):
            cuda.synchronize()
            if SIMULATED:
                self._left += sum(segment.native.nbytes for segment in segments)
                return
            for segment in segments:
                segment.native.free()
            # The toolkit defers frees; a caller that empties the cache needs them now.
            cuda.current_context().memory_manager.deallocations.clear()

    def free(self) -> int:
        """Return the number of free bytes of the device."""
        if SIMULATED:
            return self._left
        with on_device(self.index):
            return int(cuda.current_context().get_memory_info().free)

    def mark(self, stream: Stream) -> Event:
        """Return an event at the current point of a stream."""
        return stream.record()


_LOCK = threading.Lock()
_ARENAS: dict[int, Arena] = {}


def arena(index: int | None = None) -> Arena:
    """Return the arena of a device (the current one).  Raises `DeviceUnavailable`."""
    at = current_device() if index is None else require(index)
    cached = _ARENAS.get(at)
    if cached is None:
        with _LOCK:
            cached = _ARENAS.setdefault(at, Arena(DriverSource(at), f"cuda:{at}"))
    return cached


def device_array(count: int, form: "np.dtype[Any]", index: int | None = None) -> Array:
    """Return an uninitialized array for work on the current stream of a device.

    Raises:
        DeviceUnavailable: the device does not exist.
        OutOfMemory: the device cannot hold the elements.
    """
    at = current_device() if index is None else require(index)
    form = np.dtype(form)
    lease = arena(at).lend(count * form.itemsize, current_stream(at))
    return _array(lease, lease.pointer, count, form, at)


class CudaMemory:
    """The memory of device type `cuda`; see `runtime.tensors.storage.Memory`."""

    __slots__ = ()

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """Return an uninitialized array.

        Raises:
            DeviceUnavailable: the device does not exist.
            OutOfMemory: the device cannot hold the elements.
        """
        return device_array(count, np_dtype, index)

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """Return a copy on the device.

        Raises:
            DeviceUnavailable: the device does not exist.
            OutOfMemory: the device cannot hold the elements.
        """
        at = current_device() if index is None else index
        result = device_array(array.size, array.dtype, at)
        upload(result, np.ascontiguousarray(array), at)
        current_stream(at).synchronize()
        return result

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """Return a copy in host memory, after all earlier work is done."""
        host = np.empty(array.size, array.dtype)
        at = device_of(array)
        download(host, array, at)
        current_stream(at).synchronize()
        return host

    def pointer(self, array: Array) -> int:
        """Return the address of the first element on the device; 0 without elements."""
        if not array.size:
            return 0
        if SIMULATED:
            return int(array.__array_interface__["data"][0])
        return int(array.__cuda_array_interface__["data"][0])

    def adopted(
        self, pointer: int, nbytes: int, owner: Any, stream: int | None
    ) -> tuple[Array, int]:
        """Return foreign bytes on a device as an array, and the device's index.

        `owner` lives as long as the array; `stream`, a handle of the driver, is the one
        that computes the bytes: this waits for it.

        Raises:
            DeviceUnavailable: there is no driver or GPU.
        """
        at = current_device() if SIMULATED else _device_at(pointer)
        if stream is not None and not SIMULATED:
            with on_device(at):
                cuda.external_stream(stream).synchronize()
        return _array(owner, pointer, nbytes, _BYTE, at), at

    def current_index(self) -> int:
        """Return the device that `cuda` without a number denotes in this thread."""
        return current_device()


def upload(
    array: Array, host: "np.ndarray[Any, Any]", index: int | None = None
) -> None:
    """Copy a contiguous array of the host into one of the device; do not wait."""
    _transfer("copy_to_device", array, host, index)


def download(
    host: "np.ndarray[Any, Any]", array: Array, index: int | None = None
) -> None:
    """Copy an array of the device into a contiguous one of the host; do not wait."""
    _transfer("copy_to_host", array, host, index)


def _transfer(
    way: str, array: Array, host: "np.ndarray[Any, Any]", index: int | None
) -> None:
    if host.size:
        at = device_of(array) if index is None else index
        with on_device(at):
            copy = getattr(array.view(_BYTE), way)
            copy(host.reshape(-1).view(_BYTE), stream=current_stream(at).native)


def pinned_array(count: int, form: "np.dtype[Any]") -> "np.ndarray[Any, Any]":
    """Return uninitialized host memory that the device reads and writes directly.

    Raises:
        DeviceUnavailable: there is no device.
    """
    form = np.dtype(form)
    with on_device(current_device()):
        whole: np.ndarray[Any, Any] = cuda.pinned_array(count * form.itemsize, _BYTE)
    return whole.view(form)


def record_stream(array: Array, stream: Stream) -> None:
    """Make the memory of an array wait for a stream's work once it is dropped."""
    lease = _lease_of(array)
    if lease is not None:
        lease.used_on(stream)


def device_of(array: Array) -> int:
    """Return the index of the device of an array."""
    if SIMULATED or not array.size:
        return current_device()
    return int(array.gpu_data.context.device.id)


def memory_allocated(index: int | None = None) -> int:
    """Return the bytes lent to live arrays."""
    return arena(index).statistics().allocated


def max_memory_allocated(index: int | None = None) -> int:
    """Return the most bytes ever lent at once, or since `reset_peak`."""
    return arena(index).statistics().max_allocated


def memory_reserved(index: int | None = None) -> int:
    """Return the bytes that the arena has allocated on the device."""
    return arena(index).statistics().reserved


def memory_stats(index: int | None = None) -> Statistics:
    """Return all numbers of the arena of a device."""
    return arena(index).statistics()


def reset_peak(index: int | None = None) -> None:
    """Set the peak values to the current ones."""
    arena(index).reset_peak()


def empty_cache(index: int | None = None) -> int:
    """Return unused segments to the device, and their total bytes to the caller."""
    return arena(index).empty_cache()


class _OwnedBytes:
    """Simulated device memory: NumPy's base array, which keeps the owner alive."""

    __slots__ = ("__array_interface__", "owner")

    def __init__(self, owner: Any, pointer: int, nbytes: int) -> None:
        self.owner = owner
        self.__array_interface__ = {
            "shape": (nbytes,),
            "typestr": "|u1",
            "data": (pointer, False),
            "version": 3,
        }


def _array(
    owner: Any, pointer: int, count: int, form: "np.dtype[Any]", index: int
) -> Array:
    """Return the array of a run of device memory, which keeps its owner alive."""
    if SIMULATED:
        return _simulated(owner, pointer, count, form)
    with on_device(index):
        return _native(owner, pointer, count, form)


def _simulated(owner: Any, pointer: int, count: int, form: "np.dtype[Any]") -> Array:
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    make: Any = FakeCUDAArray
    source = _OwnedBytes(owner, pointer, count * form.itemsize)
    return make(np.asarray(source).view(form))


def _native(owner: Any, pointer: int, count: int, form: "np.dtype[Any]") -> Array:
    from ctypes import c_void_p

    from numba.cuda.cudadrv.devicearray import DeviceNDArray
    from numba.cuda.cudadrv.driver import MemoryPointer

    point: Any = MemoryPointer
    memory = point(
        cuda.current_context(),
        c_void_p(pointer),
        count * form.itemsize,
        owner=owner,
    )
    make: Any = DeviceNDArray
    return make((count,), (form.itemsize,), form, gpu_data=memory)


def _device_at(pointer: int) -> int:
    """Return the index of the device that an address of the driver belongs to."""
    from numba.cuda.cudadrv import driver

    require(0)
    # The driver must be initialized before the query.
    cuda.current_context()
    native: Any = driver
    names = native.binding.CUpointer_attribute
    return int(
        native.driver.cuPointerGetAttribute(
            names.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            native.binding.CUdeviceptr(pointer),
        )
    )


def _lease_of(array: Array) -> BlockLease | None:
    if not SIMULATED:
        owner = getattr(array.gpu_data, "owner", None)
        return owner if isinstance(owner, BlockLease) else None
    base = array._ary
    while isinstance(base, np.ndarray):
        base = base.base
    owner = base.owner if isinstance(base, _OwnedBytes) else None
    return owner if isinstance(owner, BlockLease) else None


register_memory("cuda", CudaMemory())
