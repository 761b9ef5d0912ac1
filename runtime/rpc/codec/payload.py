"""Payloads: the buffers of one message, with tensors and buffers beside the pickle.

    frame 0     the encoded value, then the table of tensors if there is one, then the
                sizes of both, and in the last byte the encoding
    others      elements of large tensors, then other large buffers, as they are

The payload that a thread writes or reads is in `CURRENT`, where reducers find it.

The table of tensors is written last, when it is known which part of each storage is
used:

    table       how many storages, how many views
    a storage   where it is (device, frame or table), dtype, bytes
    a view      storage, dtype, offset, shape, strides

Rules of tensors:
- two views of one storage in one message are views of one storage where they arrive;
- of a storage only the used part travels: from the first byte that a view touches to
  the last one; a single view that skips more than it touches is made dense, its
  dimensions in the order of their strides;
- elements in host memory leave without a copy, a device copies them to the host; small
  tensors travel in the table, larger ones have a frame of their own;
- sent buffers are read-only, so that a receiver in the same process never writes into
  the memory of the sender: it makes a copy;
- received buffers are writable and aligned: a buffer that is not is copied;
- a payload may come from anybody: every number in it is checked.
"""

import struct
from collections.abc import Sequence
from functools import cache
from math import prod
from threading import local
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

from everyorder.runtime.dispatch.handle import provide_namespace
from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.errors.rpc import Undecodable
from everyorder.runtime.rpc.protocol.events import Buffer, Payload
from everyorder.runtime.schema.enums import DType
from everyorder.runtime.tensors.dtype_info import itemsize, numpy_dtype, parse_dtype
from everyorder.runtime.tensors.keys import fresh_key_bits
from everyorder.runtime.tensors.shape import check_bounds, contiguous_strides, span
from everyorder.runtime.tensors.storage import (
    Storage,
    is_host,
    memory_of,
    resolve_device,
)
from everyorder.runtime.tensors.tensor import Tensor
from everyorder.runtime.tensors.tensor_impl import (
    MOST_DIMENSIONS,
    ensure_place,
    instance_of,
)

if TYPE_CHECKING:
    import numpy as np


T = TypeVar("T", bound=Tensor)
Ints = tuple[int, ...]

_COUNTS = struct.Struct("<II")
# Where the bytes are, dtype, the length of the device's name, bytes.
_STORAGE = struct.Struct("<BBBQ")
# Storage, dtype, dimensions, offset.
_VIEW = struct.Struct("<IBBQ")

# Buffers up to this size are copied into frame 0: a frame of its own costs as much.
SMALL = 4096

# What numbers of any kind are aligned to, and memory that is asked of the system.
ALIGNMENT = 16

# Where the bytes of a storage are.
_TABLE, _FRAME, _NOWHERE = range(3)

# So many dtypes and dimensions have a place in a byte.
assert len(DType.NAMES) < 256
assert MOST_DIMENSIONS < 256


class _StoragePart:
    """The part of a storage that is used, in bytes, and by how many views."""

    __slots__ = ("end", "start", "storage", "views", "whole")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.start = self.end = 0
        self.whole = False
        self.views = 0

    def use(self, start: int, end: int) -> None:
        """Add a range of bytes to those that travel."""
        if start == end:
            return
        # Whole elements of any dtype.
        start -= start % ALIGNMENT
        if self.start == self.end:
            self.start, self.end = start, end
        else:
            self.start, self.end = min(start, self.start), max(end, self.end)


class TensorWriter:
    """The tensors of a message that is written."""

    __slots__ = ("_parts", "_places", "_views")

    def __init__(self) -> None:
        self._parts: list[_StoragePart] = []
        self._places: dict[int, int] = {}
        # Storage, dtype, shape, strides, offset.
        self._views: list[tuple[int, DType, Ints, Ints, int]] = []

    def _place(self, storage: Storage) -> int:
        # By identity: `_parts` keeps it alive.
        place = self._places.get(id(storage))
        if place is None:
            place = self._places[id(storage)] = len(self._parts)
            self._parts.append(_StoragePart(storage))
        return place

    def storage(self, storage: Storage) -> int:
        """The place of a storage, all of which travels."""
        place = self._place(storage)
        part = self._parts[place]
        part.use(0, storage.nbytes())
        part.whole = True
        return place

    def view(self, tensor: Tensor) -> int:
        """The place of a view: shape, strides and offset of a tensor in its storage."""
        storage, offset, strides = ensure_place(tensor)
        place = self._place(storage)
        part, shape, dtype = self._parts[place], tensor._shape, tensor._dtype
        size = itemsize(dtype)
        part.use(offset * size, (offset + span(shape, strides)) * size)
        part.views += 1
        self._views.append((place, dtype, shape, strides, offset))
        return len(self._views) - 1

    def written(self) -> tuple[bytes, list[Buffer]]:
        """The table, and the frames of large storages."""
        dense = self._dense()
        table: list[Buffer] = [_COUNTS.pack(len(self._parts), len(self._views))]
        frames: list[Buffer] = []
        for place, part in enumerate(self._parts):
            raw = dense[place][0] if place in dense else _bytes_of(part)
            table += _storage_row(part.storage, raw, part.end - part.start, frames)
        for place, dtype, shape, strides, offset in self._views:
            if place in dense:
                strides, offset = dense[place][1], 0
            elif prod(shape):
                offset -= self._parts[place].start // itemsize(dtype)
            else:
                offset = 0
            table += (
                _VIEW.pack(place, dtype.code, len(shape), offset),
                struct.pack(f"<{2 * len(shape)}q", *shape, *strides),
            )
        return b"".join(table), frames

    def _dense(self) -> "dict[int, tuple[memoryview, Ints]]":
        """Copies of single views that skip more than they touch, and their strides."""
        found = {}
        for place, dtype, shape, strides, offset in self._views:
            part = self._parts[place]
            count = prod(shape)
            skips = count and 2 * count < span(shape, strides)
            if not skips or part.whole or part.views > 1:
                continue
            storage = part.storage
            if storage.array is None or storage.dtype is not dtype:
                continue
            found[place] = _compact(
                _bytes_of(part), part, dtype, shape, strides, offset
            )
        return found


def _compact(
    raw: memoryview,
    part: _StoragePart,
    dtype: DType,
    shape: Ints,
    strides: Ints,
    offset: int,
) -> tuple[memoryview, Ints]:
    """The elements of a view without gaps, and their strides."""
    import numpy as np

    size, form = itemsize(dtype), numpy_dtype(dtype)
    steps = tuple(each * size for each in strides)
    start = offset * size - part.start
    view: np.ndarray[Any, Any] = np.ndarray(shape, form, raw, start, steps)
    # Outermost first; what is repeated (stride 0) is there once.
    order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
    lying = view.transpose(order)
    once = lying[tuple(slice(None) if steps[dim] else slice(1) for dim in order)]
    copied = np.ascontiguousarray(once).reshape(-1)
    found = [0] * len(shape)
    for dim, step in zip(order, contiguous_strides(once.shape), strict=True):
        found[dim] = step if strides[dim] else 0
    part.start, part.end = 0, copied.nbytes
    return readonly_bytes(copied.view(np.uint8)), tuple(found)


def _bytes_of(part: _StoragePart) -> memoryview:
    """The bytes that travel: of host memory without a copy, else copied to the host."""
    storage = part.storage
    array, kind = storage.array, storage.device.type
    if array is None or part.start == part.end:
        return memoryview(b"")
    import numpy as np

    if is_host(kind):
        return readonly_bytes(array.view(np.uint8)[part.start : part.end])
    size = itemsize(storage.dtype)
    held = array[part.start // size : -(-part.end // size)]
    return readonly_bytes(memory_of(kind).to_numpy(held).view(np.uint8))


def _storage_row(
    storage: Storage, raw: memoryview, count: int, frames: list[Buffer]
) -> tuple[Buffer, ...]:
    device = str(storage.device).encode()
    dtype = storage.dtype.code
    if storage.array is None:
        return _STORAGE.pack(_NOWHERE, dtype, len(device), count), device
    if len(raw) > SMALL:
        frames.append(raw)
        return _STORAGE.pack(_FRAME, dtype, len(device), len(raw)), device
    return _STORAGE.pack(_TABLE, dtype, len(device), len(raw)), device, raw


class TensorReader:
    """The tensors of a message that is read.

    Raises:
        Undecodable: the table is none, or does not fit the frames.
    """

    __slots__ = ("_rows", "_storages", "_views")

    def __init__(self, table: memoryview, frames: Sequence[Buffer]) -> None:
        try:
            self._read(table, iter(frames))
        except (struct.error, IndexError, StopIteration, UnicodeError) as error:
            raise _damaged("it is cut, or was written otherwise") from error

    def _read(self, table: memoryview, frames: Any) -> None:
        storages, views = _COUNTS.unpack_from(table)
        at = _COUNTS.size
        if at + storages * _STORAGE.size + views * _VIEW.size > len(table):
            raise _damaged("it counts more than it holds")
        # Dtype, device, bytes, and where they are; a storage is made when asked for.
        self._rows: list[tuple[DType, str, int, Buffer | None]] = []
        self._storages: list[Storage | None] = [None] * storages
        for _ in range(storages):
            where, code, length, count = _STORAGE.unpack_from(table, at)
            at += _STORAGE.size
            device = str(table[at : at + length], "ascii")
            at += length
            raw: Buffer | None = None
            if where == _TABLE:
                raw = table[at : at + count]
                at += count
            elif where == _FRAME:
                raw = next(frames)
            elif where != _NOWHERE:
                raise _damaged(f"there is no place {where} for a storage")
            if raw is not None and memoryview(raw).nbytes != count:
                raise _damaged("a storage has another size than it says")
            self._rows.append((DType(code), device, count, raw))
        self._views: list[tuple[int, DType, Ints, Ints, int]] = []
        for _ in range(views):
            place, code, ndim, offset = _VIEW.unpack_from(table, at)
            at += _VIEW.size
            numbers = struct.unpack_from(f"<{2 * ndim}q", table, at)
            at += 16 * ndim
            shape, strides = numbers[:ndim], numbers[ndim:]
            self._views.append((place, DType(code), shape, strides, offset))

    def storage(self, place: int) -> Storage:
        """The storage at a place, the same one whenever it is asked for.

        Raises:
            Undecodable: there is none.
            DeviceUnavailable: its device is not here.
        """
        if not 0 <= place < len(self._rows):
            raise _damaged("it lacks a storage")
        found = self._storages[place]
        if found is None:
            found = self._storages[place] = _storage(*self._rows[place])
        return found

    def view(self, place: int) -> tuple[Storage, DType, Ints, Ints, int]:
        """Storage, dtype, shape, strides and offset of the view at a place.

        Raises:
            Undecodable: there is none, or it reaches outside of its storage.
        """
        if not 0 <= place < len(self._views):
            raise _damaged("it lacks a view")
        at, code, shape, strides, offset = self._views[place]
        storage = self.storage(at)
        if len(shape) > MOST_DIMENSIONS:
            raise _damaged(f"a view has {len(shape)} dimensions")
        dtype = _dtype(code)
        try:
            check_bounds(shape, strides, offset, storage.nbytes() // itemsize(dtype))
        except Exception as error:
            raise _damaged("a view reaches outside of its storage") from error
        return storage, dtype, shape, strides, offset

    def plain(self, kind: type[T], place: int, requires_grad: bool) -> T:
        """A tensor of the view at a place, with the keys of its device.

        Raises:
            Undecodable: there is none, or it can have no gradient.
        """
        storage, dtype, shape, strides, offset = self.view(place)
        if requires_grad and not (dtype.is_floating or dtype.is_complex):
            raise _damaged(f"a tensor of {dtype} has no gradient")
        device = storage.device
        bits = fresh_key_bits(device.type)
        made = instance_of(kind, shape, dtype, device, bits, (storage, offset, strides))
        made._requires_grad = bool(requires_grad)
        return made


def _storage(dtype: DType, device: str, count: int, raw: Buffer | None) -> Storage:
    form = numpy_dtype(_dtype(dtype))
    size = itemsize(dtype)
    if count % size:
        raise _damaged(f"{count} bytes are no elements of {size} bytes")
    try:
        place = resolve_device(device)
    except UnknownDevice as error:
        raise _damaged("a storage is on a device that nobody knows") from error
    if (raw is None) is not (place.type == "meta"):
        raise _damaged(f"it says otherwise where the bytes of {device} are")
    if raw is None:
        return Storage(None, place, dtype, count // size)
    elements = writable_bytes(raw).view(form)
    held = memory_of(place.type).from_numpy(elements, place.index)
    return Storage(held, place, dtype, count // size)


def readonly_bytes(buffer: Any) -> memoryview:
    """A contiguous buffer as read-only bytes, without a copy."""
    return memoryview(buffer).cast("B").toreadonly()


def writable_bytes(raw: Buffer) -> "np.ndarray[Any, Any]":
    """Bytes that are writable and aligned: the buffer itself, or a copy."""
    import numpy as np

    found = np.frombuffer(raw, np.uint8)
    flags = found.flags
    aligned = not found.__array_interface__["data"][0] % ALIGNMENT
    return found if flags.writeable and aligned else found.copy()


def _dtype(code: DType) -> DType:
    try:
        return parse_dtype(code)
    except Exception as error:
        raise _damaged(f"no tensor here is of {code}") from error


def _damaged(reason: str) -> Undecodable:
    return Undecodable(found="A table of tensors", reason=reason)


# How a payload was written: its last byte.  Plain ones have one frame, and no table.
PLAIN, PICKLED, RESTRICTED, CUSTOM = 1, 2, 3, 4

# Of the table, and of the frames that tensors have for themselves.
_SIZES = struct.Struct("<IIB")


class Packed(NamedTuple):
    """A payload, and the references that it carries."""

    payload: list[Buffer]
    carries: list[Any]


class ReferenceCodec(Protocol):
    """How a codec writes and reads references to values of other workers."""

    # The classes of references.
    kinds: tuple[type, ...]

    def carry(self, reference: Any) -> Any:
        """The name under which a session sends a reference."""

    def receive(self, carried: Any) -> Any:
        """The reference for a name that a session received."""


class SilentReferences:
    """References of the same classes without effects: to test whether a value fits."""

    def __init__(self, kinds: tuple[type, ...] = ()) -> None:
        self.kinds = kinds

    def carry(self, reference: Any) -> Any:
        """Nothing."""
        return None

    def receive(self, carried: Any) -> Any:
        """Nothing."""
        return None


# Where there are no classes of references, there are none.
NO_REFERENCES: ReferenceCodec = SilentReferences()


class PayloadWriter:
    """The parts of a payload while it is written."""

    # Most messages have none of these.
    _places: dict[int, tuple[int, Any]] | None = None
    _tensors: TensorWriter | None = None
    buffers: list[Buffer] | None = None

    def __init__(self, references: ReferenceCodec) -> None:
        self.references = references
        self.carries: list[Any] = []

    @property
    def is_plain(self) -> bool:
        """Whether the encoded value is all: no references, buffers and tensors."""
        return not (self.carries or self.buffers or self._tensors)

    @property
    def tensors(self) -> TensorWriter:
        """The tensors of the payload."""
        if self._tensors is None:
            self._tensors = TensorWriter()
        return self._tensors

    def add_reference(self, reference: Any) -> int:
        """The index of a reference in `carries`; one index for each object."""
        if self._places is None:
            self._places = {}
        place, _ = self._places.get(id(reference), (-1, None))
        if place < 0:
            place = len(self.carries)
            self.carries.append(self.references.carry(reference))
            # As long as it is kept, no other object has its number.
            self._places[id(reference)] = place, reference
        return place

    def add_buffer(self, buffer: Buffer) -> None:
        """Add a buffer as a frame of its own."""
        if self.buffers is None:
            self.buffers = []
        self.buffers.append(buffer)

    def tail(self, kind: int) -> tuple[bytes, list[Buffer]]:
        """The end of frame 0, and the other frames."""
        table, frames = (b"", []) if self._tensors is None else self._tensors.written()
        sizes = _SIZES.pack(len(table), len(frames), kind)
        return table + sizes, [*frames, *(self.buffers or ())]


@cache
def _whole() -> None:
    """Load the operators, so that received tensors can be used."""
    provide_namespace("core")


class PayloadReader:
    """The parts of a payload while it is read.

    Raises:
        Undecodable: its frames are not those of a payload.
    """

    __slots__ = ("_table", "_tensors", "body", "buffers", "carries", "references")

    def __init__(
        self, payload: Payload, references: ReferenceCodec, carries: Sequence[Any]
    ) -> None:
        frame = memoryview(payload[0])
        end = len(frame) - _SIZES.size
        if end < 0:
            raise Undecodable(found="A payload", reason="it is cut")
        size, count, _ = _SIZES.unpack_from(frame, end)
        if size > end or count > len(payload) - 1:
            raise Undecodable(found="A payload", reason="it is cut")
        self.references = references
        # All of them, used or not: the sender waits for each to be received.
        self.carries = [references.receive(each) for each in carries]
        self.body = frame[: end - size]
        self.buffers = payload[1 + count :]
        self._table = frame[end - size : end], payload[1 : 1 + count]
        self._tensors: TensorReader | None = None

    @property
    def tensors(self) -> TensorReader:
        """The tensors of the payload.  Raises `Undecodable`."""
        if self._tensors is None:
            _whole()
            self._tensors = TensorReader(*self._table)
        return self._tensors

    def reference(self, place: int) -> Any:
        """The reference at a place.  Raises `Undecodable`."""
        if not 0 <= place < len(self.carries):
            raise Undecodable(found="A reference", reason="it was not carried along")
        return self.carries[place]


class Current(local):
    """The payloads that this thread writes and reads now."""

    writer: PayloadWriter | None = None
    reader: PayloadReader | None = None
    # A pickler and its file, for the next message.
    pickler: Any = None


CURRENT = Current()


def current_writer() -> PayloadWriter:
    """The payload that this thread writes."""
    found = CURRENT.writer
    assert found is not None, "reducers of payloads run while one is written"
    return found


def current_reader() -> PayloadReader:
    """The payload that this thread reads.  Raises `Undecodable` outside of one."""
    found = CURRENT.reader
    if found is None:
        raise Undecodable(found="A part of a message", reason="it is read outside")
    return found
