"""Streams and events: the order of work on a device.

True only here: which stream a thread launches on.  Work on one stream runs in the
order it was given; work on two streams is ordered by events alone.  The default stream
of a device is number 0, on which every thread starts.

Rules: a stream belongs to one device, and using it on another raises `WrongDevice`.
Nothing here allocates; the arena asks `current_stream` for whom memory is meant.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from runtime.errors.cuda import WrongDevice
from runtime.kernels.cuda.device import current_device, on_device, require
from runtime.kernels.cuda.toolkit import SIMULATED, cuda


class Event:
    """A point in the work of a stream that other streams and the host can wait for."""

    __slots__ = ("_native", "device")

    def __init__(self, device: int, *, timing: bool = False) -> None:
        self.device = require(device)
        with on_device(device):
            self._native = cuda.event(timing=timing) if not SIMULATED else cuda.event()

    def record(self, stream: "Stream") -> "Event":
        """Mark the point that the stream's work has reached; returns itself."""
        _same(self.device, stream, "The event")
        self._native.record(stream.native)
        return self

    def query(self) -> bool:
        """Whether the marked point has been passed."""
        return SIMULATED or bool(self._native.query())

    def synchronize(self) -> None:
        """Wait, on the host, until the marked point has been passed."""
        self._native.synchronize()

    def elapsed(self, later: "Event") -> float:
        """Milliseconds from this point to a later one; both made with `timing`."""
        return float(self._native.elapsed_time(later._native))

    def hold(self, stream: "Stream") -> None:
        """Let what is given to the stream from now on wait for the marked point."""
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
        """Numba's stream, or 0 for the default one."""
        return self._native

    @property
    def is_default(self) -> bool:
        """Whether this is the stream that every thread starts on."""
        return bool(self._native == 0)

    def record(self) -> Event:
        """An event at the point that the work has reached."""
        return Event(self.device).record(self)

    def wait(self, other: "Stream | Event") -> None:
        """Let what is given to this stream from now on wait for another one's work."""
        event = other.record() if isinstance(other, Stream) else other
        event.hold(self)

    def synchronize(self) -> None:
        """Wait, on the host, until all work given so far is done."""
        with on_device(self.device):
            if self.is_default:
                cuda.default_stream().synchronize()
            else:
                self._native.synchronize()

    def __repr__(self) -> str:
        kind = "default" if self.is_default else hex(id(self._native))
        return f"Stream(cuda:{self.device}, {kind})"


_current = threading.local()
_DEFAULTS: dict[int, Stream] = {}


def default_stream(device: int) -> Stream:
    """The stream that every thread starts on.  Raises `DeviceUnavailable`."""
    found = _DEFAULTS.get(device)
    if found is None:
        found = _DEFAULTS.setdefault(device, Stream(device, _default=True))
    return found


def current_stream(device: int | None = None) -> Stream:
    """The stream that this thread launches on.  Raises `DeviceUnavailable`."""
    index = current_device() if device is None else device
    chosen: dict[int, Stream] | None = getattr(_current, "streams", None)
    found = None if chosen is None else chosen.get(index)
    return default_stream(index) if found is None else found


@contextmanager
def on_stream(stream: Stream) -> Iterator[Stream]:
    """Launch on a stream in this thread for the length of a block."""
    before = dict(getattr(_current, "streams", {}))
    _current.streams = {**before, stream.device: stream}
    try:
        with on_device(stream.device):
            yield stream
    finally:
        _current.streams = before


def _core(native: Any) -> Any:
    from importlib import import_module

    streams: Any = import_module("cuda.core").Stream
    return streams.from_handle(0 if native == 0 else int(native.handle))


def _same(device: int, stream: Stream, what: str) -> None:
    if stream.device != device:
        raise WrongDevice(
            what=what, belongs=f"cuda:{device}", used_on=f"cuda:{stream.device}"
        )
