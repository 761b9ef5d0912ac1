"""numba-cuda and its simulator; devices, streams, events; shapes of launches.

This module alone imports `numba.cuda`, from the package numba-cuda, never from numba's
own deprecated copy.  Without numba-cuda the import of this module raises
`DeviceUnavailable`; `require` detects a missing driver, because kernels compile without
one.  The simulator has one device, `cuda:0`, with a few properties, and is patched in
two places.  Its threads look up a shared array by line, and create one if there is
none; two that look at the same time would create two, and no longer share. And it puts
the running kernel's `cuda` among the globals of the kernel's own file only; `Running`
is that of the running kernel, in any file.

The device that `cuda` without an index denotes, and the stream of new work, are
properties of the calling thread.  Work on one stream runs in the order of submission;
only events order work on two streams.  The default stream of a device is number 0, on
which every thread starts.  This module does not allocate; the arena asks
`current_stream` for the stream of an allocation.

Rules:
- a module with kernel bodies imports `cuda` from here under this very name: the
  simulator finds it by identity among the globals of the body; a function that kernels
  of other files call uses `running` instead;
- every function that needs a device calls `require`, which raises `DeviceUnavailable`
  without a driver or for an index that does not exist; a stream belongs to one device,
  and using it on another raises `DevicesDiffer`;
- all kernels walk in strides of the whole grid, so a grid may be smaller than the work,
  and is at most a few times larger than the device can run at once; a block always
  has `BLOCK` threads, which bodies use as a constant; the shape of a launch includes
  the device, because the stream to launch on depends on it.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from typing import Any, NamedTuple

from everyorder.runtime.errors.tensor import DevicesDiffer, DeviceUnavailable

if find_spec("numba_cuda") is None:
    raise DeviceUnavailable(
        device="cuda",
        reason="the package numba-cuda is not installed",
        remedy="install everyorder with the extra `cuda`",
    )

import numba
from numba import cuda as _cuda

# Untyped: at run time it is the device's module or the simulator's.
cuda: Any = _cuda

_config: Any = numba.config

# Under NUMBA_ENABLE_CUDASIM=1 kernels run as Python, one thread each.
SIMULATED = bool(_config.ENABLE_CUDASIM)


# Threads of a block.  256 gives every multiprocessor since Kepler its full number of
# threads; a simulated thread costs 80 µs, and 4 make a tree of two levels.
BLOCK = 4 if SIMULATED else 256


class SharedArrays(dict[Any, Any]):
    """Line of a body -> its array; only one of the threads that look creates it."""

    def __init__(self) -> None:
        super().__init__()
        self._creating: set[Any] = set()
        self._settled = threading.Condition()

    def get(self, key: Any, default: Any = None) -> Any:
        """Return the array; or the default, once, to the thread that must create it."""
        with self._settled:
            while key not in self:
                if key not in self._creating:
                    self._creating.add(key)
                    return default
                self._settled.wait()
            return self[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._settled:
            super().__setitem__(key, value)
            self._settled.notify_all()


class Running:
    """`cuda` for functions that kernels of several files call."""

    __slots__ = ("_kernels",)

    def __init__(self) -> None:
        from numba.cuda.simulator import kernel

        self._kernels: Any = kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._kernels._get_kernel_context(), name)


def mend() -> None:
    """Patch the simulator so that every block creates its shared arrays once."""
    from numba.cuda.simulator import kernelapi

    shared: Any = kernelapi.FakeCUDAShared
    plain = shared.__init__
    if getattr(plain, "mended", False):
        return

    def initialize(self: Any, size: int) -> None:
        plain(self, size)
        self._allocations = SharedArrays()

    initialize.mended = True  # type: ignore[attr-defined]  # a mark on the function
    shared.__init__ = initialize


if SIMULATED:
    mend()

# The same for functions of other files than the kernel's.
running: Any = Running() if SIMULATED else _cuda


@dataclass(frozen=True, slots=True)
class Properties:
    """The properties of a device for launches; `memory` is in bytes."""

    name: str
    capability: tuple[int, int]
    multiprocessors: int
    threads_per_multiprocessor: int
    shared_per_block: int
    memory: int


# The simulator's: two multiprocessors, so that grids have more than one block.
_SIMULATOR = Properties("simulator", (9, 0), 2, 4, 48 << 10, 1 << 30)

_thread = threading.local()


@cache
def device_count() -> int:
    """Return the number of CUDA devices; 0 without a driver."""
    if SIMULATED:
        return 1
    return len(cuda.gpus) if cuda.is_available() else 0


def is_available() -> bool:
    """Return True if there is a device to compute on."""
    return device_count() > 0


def require(index: int) -> int:
    """Return the index if the device exists.  Raises `DeviceUnavailable`."""
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
    """Return the index that `cuda` without a number denotes in this thread."""
    index: int = getattr(_thread, "index", 0)
    return require(index)


@contextmanager
def on_device(index: int) -> Iterator[int]:
    """Make `cuda` denote `cuda:index` in this thread for the duration of a block.

    Raises:
        DeviceUnavailable: the device does not exist.
    """
    before = getattr(_thread, "index", 0)
    _thread.index = require(index)
    try:
        with cuda.gpus[index]:
            yield index
    finally:
        _thread.index = before


@cache
def properties(index: int) -> Properties:
    """Return the properties of a device.  Raises `DeviceUnavailable`."""
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


class Event:
    """A point in the work of a stream that other streams and the host can wait for."""

    __slots__ = ("_native", "device")

    def __init__(self, device: int, *, timing: bool = False) -> None:
        self.device = require(device)
        with on_device(device):
            self._native = cuda.event(timing=timing) if not SIMULATED else cuda.event()

    def record(self, stream: "Stream") -> "Event":
        """Mark the current point of the stream's work; return this event."""
        _same(self.device, stream, "The event")
        self._native.record(stream.native)
        return self

    def query(self) -> bool:
        """Return True if the marked point has been passed."""
        return SIMULATED or bool(self._native.query())

    def synchronize(self) -> None:
        """Block the host until the marked point has been passed."""
        self._native.synchronize()

    def elapsed(self, later: "Event") -> float:
        """Return the milliseconds to a later event; both were created with `timing`."""
        return float(self._native.elapsed_time(later._native))

    def hold(self, stream: "Stream") -> None:
        """Make later work on the stream wait for the marked point."""
        _same(self.device, stream, "The event")
        self._native.wait(stream.native)


class Stream:
    """A queue of work on a device.  Raises `DeviceUnavailable`."""

    __slots__ = ("_native", "core", "device")

    def __init__(self, device: int | None = None, *, _default: bool = False) -> None:
        self.device = current_device() if device is None else require(device)
        with on_device(self.device):
            self._native: Any = 0 if _default else cuda.stream()
        self.core = None if SIMULATED else _core(self._native)

    @property
    def native(self) -> Any:
        """Return Numba's stream, or 0 for the default one."""
        return self._native

    @property
    def is_default(self) -> bool:
        """Return True for the stream on which every thread starts."""
        return bool(self._native == 0)

    def record(self) -> Event:
        """Return an event at the current point of the work."""
        return Event(self.device).record(self)

    def wait(self, other: "Stream | Event") -> None:
        """Make later work on this stream wait for another stream, or an event."""
        event = other.record() if isinstance(other, Stream) else other
        event.hold(self)

    def synchronize(self) -> None:
        """Block the host until all submitted work is done."""
        with on_device(self.device):
            if self.is_default:
                cuda.default_stream().synchronize()
            else:
                self._native.synchronize()

    def __repr__(self) -> str:
        kind = "default" if self.is_default else hex(id(self._native))
        return f"Stream(cuda:{self.device}, {kind})"


_chosen = threading.local()
_DEFAULTS: dict[int, Stream] = {}


def default_stream(device: int) -> Stream:
    """Return the stream on which every thread starts.  Raises `DeviceUnavailable`."""
    stream = _DEFAULTS.get(device)
    if stream is None:
        stream = _DEFAULTS.setdefault(device, Stream(device, _default=True))
    return stream


def current_stream(device: int | None = None) -> Stream:
    """Return the stream that this thread launches on.  Raises `DeviceUnavailable`."""
    index = current_device() if device is None else device
    chosen: dict[int, Stream] | None = getattr(_chosen, "streams", None)
    stream = None if chosen is None else chosen.get(index)
    return default_stream(index) if stream is None else stream


@contextmanager
def on_stream(stream: Stream) -> Iterator[Stream]:
    """Launch on a stream in this thread for the duration of a block."""
    before = dict(getattr(_chosen, "streams", {}))
    _chosen.streams = {**before, stream.device: stream}
    try:
        with on_device(stream.device):
            yield stream
    finally:
        _chosen.streams = before


def _core(native: Any) -> Any:
    from importlib import import_module

    streams: Any = import_module("cuda.core").Stream
    return streams.from_handle(0 if native == 0 else int(native.handle))


def _same(device: int, stream: Stream, what: str) -> None:
    if stream.device != device:
        raise DevicesDiffer(
            code="WrongDevice",
            what=what,
            belongs=f"cuda:{device}",
            used_on=f"cuda:{stream.device}",
        )


# Waves of blocks: more of them balance the load, and each costs a start (4 to 8 are
# usual).
WAVES = 1 if SIMULATED else 8


class LaunchShape(NamedTuple):
    """The shape of a launch: blocks, threads of each, and the device's index."""

    grid: int
    block: int
    device: int


def resident(device: int) -> int:
    """Return the number of blocks of `BLOCK` threads that the device runs at once."""
    of = properties(device)
    return of.multiprocessors * max(1, of.threads_per_multiprocessor // BLOCK)


def spread(count: int, device: int) -> LaunchShape:
    """Return the shape with a thread for each of `count` elements, up to the limit."""
    blocks = -(-count // BLOCK)
    return LaunchShape(max(1, min(blocks, WAVES * resident(device))), BLOCK, device)


def rows(count: int, device: int) -> LaunchShape:
    """Return the shape with a block for each of `count` rows, up to the limit."""
    return LaunchShape(max(1, min(count, WAVES * resident(device))), BLOCK, device)
