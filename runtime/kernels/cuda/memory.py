"""Device memory for tensors: arrays out of the arena, and copies to and from the host.

How an array of the arena becomes one that numba-cuda launches with.  An array is
one-dimensional and typed, like every array of `runtime.tensors.storage`, and keeps its
lease alive: slices and views of it do, too.

Rules: copies run on the current stream.  `from_numpy` and `to_numpy` return when the
host's array may be changed, or read; `upload` and `download` do not wait, and need
pinned host memory and an array that stays alive until the stream has passed them.
Bytes are what is copied, so every dtype goes, bfloat16 too.
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
    """A run of device memory with its address; the native part keeps it."""

    __slots__ = ("native", "pointer")

    def __init__(self, native: Any) -> None:
        self.native = native
        self.pointer = (
            native.__array_interface__["data"][0]
            if SIMULATED
            else int(native.device_pointer)
        )


class DriverSource:
    """The driver's allocator; in the simulator, host memory of `limit` bytes."""

    # What the simulated device has: small enough to be used up in a test.
    LIMIT = 1 << 30

    def __init__(self, index: int) -> None:
        self.index = require(index)
        self._left = self.LIMIT

    def take(self, nbytes: int) -> _Segment:
        """A segment of device memory.  Raises `OutOfDeviceMemory`."""
        if SIMULATED:
            if nbytes > self._left:
                raise OutOfDeviceMemory
            self._left -= nbytes
            return _Segment(np.empty(nbytes, _BYTE))
        with on_device(self.index):
            try:
                return _Segment(cuda.current_context().memalloc(nbytes))
            except cuda.cudadrv.driver.CudaAPIError as error:
                # 2 is CUDA_ERROR_OUT_OF_MEMORY of the driver's own list.
                if int(error.code) != 2:
                    raise
                raise OutOfDeviceMemory from error

    def give(self, segments: list[_Segment]) -> None:
        """Return segments, after all work on the device is done."""
        with on_device(self.index):
            cuda.synchronize()
            if SIMULATED:
                self._left += sum(segment.native.nbytes for segment in segments)
                return
            for segment in segments:
                segment.native.free()
            # The toolkit puts frees off; whoever emptied the cache wants them now.
            cuda.current_context().memory_manager.deallocations.clear()

    def free(self) -> int:
        """The bytes that the device has left."""
        if SIMULATED:
            return self._left
        with on_device(self.index):
            return int(cuda.current_context().get_memory_info().free)

    def mark(self, stream: Stream) -> Event:
        """An event at the point that a stream has reached."""
        return stream.record()


_LOCK = threading.Lock()
_ARENAS: dict[int, Arena] = {}


def arena(index: int | None = None) -> Arena:
    """The arena of a device (the current one).  Raises `DeviceUnavailable`."""
    at = current_device() if index is None else require(index)
    found = _ARENAS.get(at)
    if found is None:
        with _LOCK:
            found = _ARENAS.setdefault(at, Arena(DriverSource(at), f"cuda:{at}"))
    return found


def device_array(count: int, form: "np.dtype[Any]", index: int | None = None) -> Array:
    """An array of any values for work on the current stream of a device.

    Raises `DeviceUnavailable` and `OutOfMemory`.
    """
    at = current_device() if index is None else require(index)
    form = np.dtype(form)
    lease = arena(at).lend(count * form.itemsize, current_stream(at))
    return _array(lease, lease.pointer, count, form, at)


class CudaMemory:
    """The memory of device type `cuda`, as `runtime.tensors.storage` wants it."""

    __slots__ = ()

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """An array of any values.  Raises `DeviceUnavailable` and `OutOfMemory`."""
        return device_array(count, np_dtype, index)

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """A copy on the device.  Raises `DeviceUnavailable` and `OutOfMemory`."""
        at = current_device() if index is None else index
        made = device_array(array.size, array.dtype, at)
        upload(made, np.ascontiguousarray(array), at)
        current_stream(at).synchronize()
        return made

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """A copy in host memory, when all work before it is done."""
        host = np.empty(array.size, array.dtype)
        at = device_of(array)
        download(host, array, at)
        current_stream(at).synchronize()
        return host

    def pointer(self, array: Array) -> int:
        """The address of the first element on the device; 0 without elements."""
        if not array.size:
            return 0
        if SIMULATED:
            return int(array.__array_interface__["data"][0])
        return int(array.__cuda_array_interface__["data"][0])

    def adopted(
        self, pointer: int, nbytes: int, owner: Any, stream: int | None
    ) -> tuple[Array, int]:
        """Bytes that somebody else has on a device, and the device's index.

        `owner` lives as long as the array; on `stream`, a handle of the driver, the
        bytes are being made: this waits for it.  Raises `DeviceUnavailable`.
        """
        at = current_device() if SIMULATED else _device_at(pointer)
        if stream is not None and not SIMULATED:
            with on_device(at):
                cuda.external_stream(stream).synchronize()
        return _array(owner, pointer, nbytes, _BYTE, at), at

    def current_index(self) -> int:
        """Which device `cuda` without a number means in this thread."""
        return current_device()


def upload(
    array: Array, host: "np.ndarray[Any, Any]", index: int | None = None
) -> None:
    """Copy a contiguous array of the host into one of the device; does not wait."""
    _transfer("copy_to_device", array, host, index)


def download(
    host: "np.ndarray[Any, Any]", array: Array, index: int | None = None
) -> None:
    """Copy an array of the device into a contiguous one of the host; does not wait."""
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
    """Host memory that the device reads and writes by itself, of any values.

    Raises `DeviceUnavailable`.
    """
    form = np.dtype(form)
    with on_device(current_device()):
        whole: np.ndarray[Any, Any] = cuda.pinned_array(count * form.itemsize, _BYTE)
    return whole.view(form)


def record_stream(array: Array, stream: Stream) -> None:
    """Let the memory of an array wait, once it is dropped, for a stream's work."""
    lease = _lease_of(array)
    if lease is not None:
        lease.used_on(stream)


def device_of(array: Array) -> int:
    """The index of the device that an array lies on."""
    if SIMULATED or not array.size:
        return current_device()
    return int(array.gpu_data.context.device.id)


def memory_allocated(index: int | None = None) -> int:
    """Bytes lent to live arrays."""
    return arena(index).statistics().allocated


def max_memory_allocated(index: int | None = None) -> int:
    """The most bytes ever lent at once, or since `reset_peak`."""
    return arena(index).statistics().max_allocated


def memory_reserved(index: int | None = None) -> int:
    """Bytes that the arena holds of the device."""
    return arena(index).statistics().reserved


def memory_stats(index: int | None = None) -> Statistics:
    """All numbers of the arena of a device."""
    return arena(index).statistics()


def reset_peak(index: int | None = None) -> None:
    """Let the largest values be those of now."""
    arena(index).reset_peak()


def empty_cache(index: int | None = None) -> int:
    """Give unused segments back to the device; the bytes that went."""
    return arena(index).empty_cache()


class _Held:
    """Simulated device memory: what NumPy's array keeps alive, its owner with it."""

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
    """The array of a run of device memory, which keeps the owner of it alive."""
    if SIMULATED:
        return _simulated(owner, pointer, count, form)
    with on_device(index):
        return _native(owner, pointer, count, form)


def _simulated(owner: Any, pointer: int, count: int, form: "np.dtype[Any]") -> Array:
    from numba.cuda.simulator.cudadrv.devicearray import FakeCUDAArray

    make: Any = FakeCUDAArray
    held = _Held(owner, pointer, count * form.itemsize)
    return make(np.asarray(held).view(form))


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
    """The index of the device that an address of the driver belongs to."""
    from numba.cuda.cudadrv import driver

    require(0)
    # The driver has to be at work before it is asked.
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
        found = getattr(array.gpu_data, "owner", None)
        return found if isinstance(found, BlockLease) else None
    base = array._ary
    while isinstance(base, np.ndarray):
        base = base.base
    owner = base.owner if isinstance(base, _Held) else None
    return owner if isinstance(owner, BlockLease) else None


register_memory("cuda", CudaMemory())
