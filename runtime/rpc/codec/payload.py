"""Payloads: the frames of one message, with tensors and large buffers as frames.

    frame 0     the encoded value, then the table of tensors if there are any, then the
                sizes of both, and in the last byte the encoding
    others      elements of large tensors, then other large buffers, unchanged

The payload that a thread writes or reads is in `CURRENT`, where reducers find it.

The table of tensors is written last, when the used part of each storage is known:

    table       the number of storages, the number of views
    a storage   where its bytes are (device, frame or table), dtype, bytes
    a view      storage, dtype, offset, shape, strides

Rules of tensors:
- two views of one storage in one message are views of one storage at the receiver;
- only the used part of a storage is sent: from the first byte that a view touches to
  the last one, and strides are kept; only a single view of `SPARSE` bytes that skips
  more than it touches is made dense, its dimensions in the order of their strides;
- elements in host memory are sent without a copy, a device copies them to the host;
  small tensors are sent in the table, larger ones in separate frames;
- sent buffers are read-only, so that a receiver in the same process never writes into
  the memory of the sender: it makes a copy;
- received buffers are writable and aligned: any other buffer is copied;
- a payload may be forged: every number in it is checked.
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
# Location of the bytes, dtype, length of the device's name, number of bytes.
_STORAGE = struct.Struct("<BBBQ")
# Storage, dtype, dimensions, offset.
_VIEW = struct.Struct("<IBBQ")

# In bytes: smaller buffers are copied into frame 0, as a separate frame costs as much
# as the copy.
SMALL = 4096

# In bytes, from the first to the last used one: a smaller view is sent with its gaps.
# The limit of torch 2.13.
SPARSE = 8192

# Alignment in bytes of numbers of any dtype, and of memory that the system allocates.
ALIGNMENT = 16

# Locations of the bytes of a storage.
_TABLE, _FRAME, _NOWHERE = range(3)

# DType codes and numbers of dimensions are encoded as one byte.
assert len(DType.NAMES) < 256
assert MOST_DIMENSIONS < 256


class _StoragePart:
    """The used part of a storage, in bytes, and the number of its views."""

    __slots__ = ("end", "start", "storage", "views", "whole")

    def __init__(self, storage: Storage) -> None:
        self.storage = storage
        self.start = self.end = 0
        self.whole = False
        self.views = 0

    def use(self, start: int, end: int) -> None:
        """Extend the part by a range of bytes."""
        if start == end:
            return
        # Aligned down, so that the part starts at a whole element of any dtype.
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
        # By identity: `_parts` keeps the storage alive.
        place = self._places.get(id(storage))
        if place is None:
            place = self._places[id(storage)] = len(self._parts)
            self._parts.append(_StoragePart(storage))
        return place

    def storage(self, storage: Storage) -> int:
        """Return the index of a storage that is sent completely."""
        place = self._place(storage)
        part = self._parts[place]
        part.use(0, storage.nbytes())
        part.whole = True
        return place

    def view(self, tensor: Tensor) -> int:
        """Return the index of a view: shape, strides and offset of a tensor in its
        storage.
        """
        storage, offset, strides = ensure_place(tensor)
        place = self._place(storage)
        part, shape, dtype = self._parts[place], tensor._shape, tensor._dtype
        size = itemsize(dtype)
        part.use(offset * size, (offset + span(shape, strides)) * size)
        part.views += 1
        self._views.append((place, dtype, shape, strides, offset))
        return len(self._views) - 1

    def written(self) -> tuple[bytes, list[Buffer]]:
        """Return the encoded table, and the frames of large storages."""
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
        """Return dense copies of single views that skip more than they touch, and
        strides.
        """
        copies = {}
        for place, dtype, shape, strides, offset in self._views:
            part = self._parts[place]
            count = prod(shape)
            skips = count and 2 * count < span(shape, strides)
            if not skips or part.whole or part.views > 1:
                continue
            if part.end - part.start < SPARSE:
                continue
            storage = part.storage
            if storage.array is None or storage.dtype is not dtype:
                continue
            copies[place] = _compact(
                _bytes_of(part), part, dtype, shape, strides, offset
            )
        return copies


def _compact(
    raw: memoryview,
    part: _StoragePart,
    dtype: DType,
    shape: Ints,
    strides: Ints,
    offset: int,
) -> tuple[memoryview, Ints]:
    """Return the elements of a view without gaps, and their strides."""
    import numpy as np

    size, form = itemsize(dtype), numpy_dtype(dtype)
    steps = tuple(each * size for each in strides)
    start = offset * size - part.start
    view: np.ndarray[Any, Any] = np.ndarray(shape, form, raw, start, steps)
    # Outermost dimension first; repeated elements (stride 0) are sent once.
    order = sorted(range(len(shape)), key=lambda dim: -strides[dim])
    transposed = view.transpose(order)
    once = transposed[tuple(slice(None) if steps[dim] else slice(1) for dim in order)]
    copied = np.ascontiguousarray(once).reshape(-1)
    dense = [0] * len(shape)
    for dim, step in zip(order, contiguous_strides(once.shape), strict=True):
        dense[dim] = step if strides[dim] else 0
    part.start, part.end = 0, copied.nbytes
    return readonly_bytes(copied.view(np.uint8)), tuple(dense)


def _bytes_of(part: _StoragePart) -> memoryview:
    """Return the bytes to send: a view of host memory, else a copy on the host."""
    storage = part.storage
    array, kind = storage.array, storage.device.type
    if array is None or part.start == part.end:
        return memoryview(b"")
    import numpy as np

    if is_host(kind):
        return readonly_bytes(array.view(np.uint8)[part.start : part.end])
    size = itemsize(storage.dtype)
    used = array[part.start // size : -(-part.end // size)]
    return readonly_bytes(memory_of(kind).to_numpy(used).view(np.uint8))


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
        Undecodable: the table is malformed, or does not match the frames.
    """

    __slots__ = ("_rows", "_storages", "_views")

    def __init__(self, table: memoryview, frames: Sequence[Buffer]) -> None:
        try:
            self._read(table, iter(frames))
        except (struct.error, IndexError, StopIteration, UnicodeError) as error:
            raise _damaged("it is truncated or malformed") from error

    def _read(self, table: memoryview, frames: Any) -> None:
        storages, views = _COUNTS.unpack_from(table)
        at = _COUNTS.size
        if at + storages * _STORAGE.size + views * _VIEW.size > len(table):
            raise _damaged("its counts exceed its size")
        # Dtype, device, number of bytes, and the bytes; storages are built on first
        # use.
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
                raise _damaged(f"invalid location {where} of a storage")
            if raw is not None and memoryview(raw).nbytes != count:
                raise _damaged("the size of a storage differs from its row")
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
        """Return the storage at an index, the same object each time.

        Raises:
            Undecodable: there is no such storage.
            DeviceUnavailable: this machine lacks the device of the storage.
        """
        if not 0 <= place < len(self._rows):
            raise _damaged("it lacks a storage")
        storage = self._storages[place]
        if storage is None:
            storage = self._storages[place] = _storage(*self._rows[place])
        return storage

    def view(self, place: int) -> tuple[Storage, DType, Ints, Ints, int]:
        """Return storage, dtype, shape, strides and offset of the view at an index.

        Raises:
            Undecodable: there is no such view, or it reaches outside of its storage.
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
        """Return a tensor of the view at an index, with the keys of its device.

        Raises:
            Undecodable: there is no such view, or its dtype cannot have a gradient.
        """
        storage, dtype, shape, strides, offset = self.view(place)
        if requires_grad and not (dtype.is_floating or dtype.is_complex):
            raise _damaged(f"a tensor of {dtype} cannot require gradients")
        device = storage.device
        bits = fresh_key_bits(device.type)
        tensor = instance_of(
            kind, shape, dtype, device, bits, (storage, offset, strides)
        )
        tensor._requires_grad = bool(requires_grad)
        return tensor


def _storage(dtype: DType, device: str, count: int, raw: Buffer | None) -> Storage:
    form = numpy_dtype(_dtype(dtype))
    size = itemsize(dtype)
    if count % size:
        raise _damaged(f"{count} bytes are not a multiple of the element size {size}")
    try:
        place = resolve_device(device)
    except UnknownDevice as error:
        raise _damaged("a storage is on an unknown device") from error
    if (raw is None) is not (place.type == "meta"):
        raise _damaged(f"the location of the bytes does not match {device}")
    if raw is None:
        return Storage(None, place, dtype, count // size)
    elements = writable_bytes(raw).view(form)
    array = memory_of(place.type).from_numpy(elements, place.index)
    return Storage(array, place, dtype, count // size)


def readonly_bytes(buffer: Any) -> memoryview:
    """Return a contiguous buffer as read-only bytes, without a copy."""
    return memoryview(buffer).cast("B").toreadonly()


def writable_bytes(raw: Buffer) -> "np.ndarray[Any, Any]":
    """Return writable and aligned bytes: the buffer itself, or a copy."""
    import numpy as np

    array = np.frombuffer(raw, np.uint8)
    flags = array.flags
    aligned = not array.__array_interface__["data"][0] % ALIGNMENT
    return array if flags.writeable and aligned else array.copy()


def _dtype(code: DType) -> DType:
    try:
        return parse_dtype(code)
    except Exception as error:
        raise _damaged(f"no tensor can have the dtype {code}") from error


def _damaged(reason: str) -> Undecodable:
    return Undecodable(found="A table of tensors", reason=reason)


# The encoding of a payload: its last byte.  Plain ones have one frame and no table.
PLAIN, PICKLED, RESTRICTED, CUSTOM = 1, 2, 3, 4

# Size of the table, number of tensor frames, encoding.
_SIZES = struct.Struct("<IIB")


class Packed(NamedTuple):
    """A payload, and the references that it carries."""

    payload: list[Buffer]
    carries: list[Any]


class ReferenceCodec(Protocol):
    """How a codec writes and reads references to values of other workers."""

    @property
    def kinds(self) -> tuple[type, ...]:
        """Return the classes of references."""

    def carry(self, reference: Any) -> Any:
        """Return the id under which a session sends a reference."""

    def receive(self, carried: Any) -> Any:
        """Return the reference for an id that a session received."""


class SilentReferences:
    """References of the same classes without effects, to test values."""

    def __init__(self, kinds: tuple[type, ...] = ()) -> None:
        self.kinds = kinds

    def carry(self, reference: Any) -> Any:
        """Return None; no reference is recorded."""
        return None

    def receive(self, carried: Any) -> Any:
        """Return None; no reference is created."""
        return None


# Without classes of references, there are no references.
NO_REFERENCES: ReferenceCodec = SilentReferences()


class PayloadWriter:
    """The parts of a payload while it is written."""

    # Most messages have none of these, so they are created on first use.
    _places: dict[int, tuple[int, Any]] | None = None
    _tensors: TensorWriter | None = None
    buffers: list[Buffer] | None = None

    def __init__(self, references: ReferenceCodec) -> None:
        self.references = references
        self.carries: list[Any] = []

    @property
    def is_plain(self) -> bool:
        """Return True if the payload has no references, buffers or tensors."""
        return not (self.carries or self.buffers or self._tensors)

    @property
    def tensors(self) -> TensorWriter:
        """Return the tensors of the payload."""
        if self._tensors is None:
            self._tensors = TensorWriter()
        return self._tensors

    def add_reference(self, reference: Any) -> int:
        """Return the index of a reference in `carries`; one index for each object."""
        if self._places is None:
            self._places = {}
        place, _ = self._places.get(id(reference), (-1, None))
        if place < 0:
            place = len(self.carries)
            self.carries.append(self.references.carry(reference))
            # Stored, so that no other object reuses the id.
            self._places[id(reference)] = place, reference
        return place

    def add_buffer(self, buffer: Buffer) -> None:
        """Add a buffer as a separate frame."""
        if self.buffers is None:
            self.buffers = []
        self.buffers.append(buffer)

    def tail(self, kind: int) -> tuple[bytes, list[Buffer]]:
        """Return the end of frame 0, and the other frames."""
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
            raise Undecodable(found="A payload", reason="it is truncated")
        size, count, _ = _SIZES.unpack_from(frame, end)
        if size > end or count > len(payload) - 1:
            raise Undecodable(found="A payload", reason="it is truncated")
        self.references = references
        # Receive each, used or not: the sender waits for every reference it sent.
        self.carries = [references.receive(each) for each in carries]
        self.body = frame[: end - size]
        self.buffers = payload[1 + count :]
        self._table = frame[end - size : end], payload[1 : 1 + count]
        self._tensors: TensorReader | None = None

    @property
    def tensors(self) -> TensorReader:
        """Return the tensors of the payload.

        Raises:
            Undecodable: the table of tensors is malformed.
        """
        if self._tensors is None:
            _whole()
            self._tensors = TensorReader(*self._table)
        return self._tensors

    def reference(self, place: int) -> Any:
        """Return the reference at an index.

        Raises:
            Undecodable: the message has no such reference.
        """
        if not 0 <= place < len(self.carries):
            raise Undecodable(
                found="A reference", reason="the message does not carry it"
            )
        return self.carries[place]


class Current(local):
    """The payloads that this thread currently writes and reads."""

    writer: PayloadWriter | None = None
    reader: PayloadReader | None = None
    # A pickler and its file, reused for the next message.
    pickler: Any = None


CURRENT = Current()


def current_writer() -> PayloadWriter:
    """Return the payload that this thread writes."""
    writer = CURRENT.writer
    assert writer is not None, "reducers of payloads run while one is written"
    return writer


def current_reader() -> PayloadReader:
    """Return the payload that this thread reads.

    Raises:
        Undecodable: this thread does not read a payload.
    """
    reader = CURRENT.reader
    if reader is None:
        raise Undecodable(found="A part of a message", reason="it is read outside")
    return reader
