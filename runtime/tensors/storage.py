"""Where elements lie: the memories of devices, and the storages that tensors share.

A *memory* says how the elements of a device type are had.  Host memory is NumPy's.  A
device type that has no memory of its own keeps its elements in host memory: that is how
a new backend starts, and it may bring its own by `register_memory`.  `meta` has none.

A *storage* is a run of elements on a device.  Two tensors are views of each other
exactly if they have one storage; each write to the elements raises `version`, by which
a saved tensor is known to be unchanged.  A storage is never absent: on `meta` it has a
device, a dtype and a count, but no array, and its address is 0.  A wrapper, which
computes by its handler, has a `WrapperStorage`, whose elements are refused by name.

Rules:
- `array` is one-dimensional and holds exactly `count` elements of `dtype`, or is None
  on `meta`; nobody replaces it, except `grow` of a storage without elements;
- a memory of a higher area is registered by a function of `MEMORY_PROVIDERS`, which is
  called when the memory is first used;
- pickled, a storage is its bytes, its dtype and its device; never its version;
- copied deeply, it is copied once, however many tensors share it;
- a view that a handler made of a wrapper, with a storage of its own, counts versions
  together with it (`counts_with`), so that a write to either is noticed.
"""

from collections.abc import Callable
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from everyorder.runtime.base.hooks import MEMORY_PROVIDERS
from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.errors.tensor import (
    BadSize,
    DeviceUnavailable,
    NoData,
    UnfitValue,
)
from everyorder.runtime.errors.torch_dispatch import SubclassError
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.dtype_info import itemsize, numpy_dtype, parse_dtype

if TYPE_CHECKING:
    import numpy as np


_CPU = Device("cpu")

# A one-dimensional typed array of some backend.
Array = Any


class Memory(Protocol):
    """What a device type offers; `index` is that of the device, or None."""

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """An array of `count` elements of any value."""

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """A copy of a one-dimensional NumPy array (host memory: the array itself)."""

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """A copy in host memory (host memory: the array itself)."""

    def pointer(self, array: Array) -> int:
        """The address of the first element."""


@cache
def _numpy() -> Any:
    """NumPy, at a tenth of the price of an import statement; tensors are made often."""
    import numpy as np

    return np


class HostMemory:
    """NumPy's arrays."""

    __slots__ = ()

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """An array of `count` elements of any value."""
        return _numpy().empty(count, np_dtype)

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """The array itself."""
        return array

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """The array itself."""
        found: np.ndarray[Any, Any] = array
        return found

    def pointer(self, array: Array) -> int:
        """The address of the first element."""
        address: int = array.__array_interface__["data"][0]
        return address


HOST = HostMemory()

# Device type -> its memory; a type that is not here uses host memory.
MEMORIES: dict[str, Memory] = {"cpu": HOST}


def register_memory(kind: str, memory: Memory) -> None:
    """Let tensors on the device type `kind` keep their elements in `memory`."""
    MEMORIES[kind] = memory


def memory_of(kind: str) -> Memory:
    """The memory of a device type.

    Raises `DeviceUnavailable` where the type has a memory that cannot be had here.
    """
    found = MEMORIES.get(kind)
    if found is not None:
        return found
    provider = MEMORY_PROVIDERS.get(kind)
    return HOST if provider is None else _provided(kind, provider)


def is_host(kind: str) -> bool:
    """Whether the elements of a device type lie in host memory."""
    return kind != "meta" and kind not in MEMORY_PROVIDERS and memory_of(kind) is HOST


def resolve_device(device: Device | str) -> Device:
    """The device that a tensor is made on: `cpu:0` is `cpu`, `cuda` the current one.

    A memory that tells devices apart says which one is meant without an index by a
    method `current_index()`.  Raises `UnknownDevice` and `DeviceUnavailable`.
    """
    if device == "cpu":
        return _CPU
    place = device if isinstance(device, Device) else Device.parse(device)
    if place.index is None:
        if place.type in MEMORY_PROVIDERS:
            current = getattr(memory_of(place.type), "current_index", None)
            return Device(place.type, 0 if current is None else current())
        return place
    return Device(place.type) if place.type in ("cpu", "meta") else place


def _provided(kind: str, register: Callable[[], object]) -> Memory:
    try:
        with LOADING:
            register()
    except ModuleNotFoundError as error:
        raise DeviceUnavailable(
            device=kind,
            reason=f"the module `{error.name}` is not installed",
            remedy=f"install everyorder with the extra `{kind}`",
        ) from error
    if kind not in MEMORIES:
        raise DeviceUnavailable(
            device=kind, reason="its module brought no memory", remedy=""
        )
    return MEMORIES[kind]


class Storage:
    """A run of elements on a device."""

    __slots__ = ("__weakref__", "array", "count", "device", "dtype", "version")

    def __init__(
        self, array: Array | None, device: Device, dtype: DType, count: int
    ) -> None:
        self.array = array
        self.device = device
        self.dtype = dtype
        self.count = count
        # How often the elements were written to in place.
        self.version = 0

    def size(self) -> int:
        """How many elements there are."""
        return self.count

    def element_size(self) -> int:
        """The bytes of one element."""
        return itemsize(self.dtype)

    def nbytes(self) -> int:
        """The size in bytes; on `meta` that which it would have."""
        return self.count * itemsize(self.dtype)

    def data_ptr(self) -> int:
        """The address of the first element, or 0 if there are no bytes."""
        if self.array is None or not self.count:
            return 0
        return memory_of(self.device.type).pointer(self.array)

    def numpy(self) -> "np.ndarray[Any, Any] | None":
        """The elements in host memory, shared if they lie there; None on `meta`."""
        if self.array is None:
            return None
        held = memory_of(self.device.type).to_numpy(self.array)
        # A memory may keep a dtype that its device lacks under another of its size.
        form = numpy_dtype(self.dtype)
        return held if held.dtype == form else held.view(form)

    def grow(self, count: int) -> None:
        """Give a storage without elements room for `count`, of any value."""
        assert not self.count, "views of elements would be left behind"
        if self.array is not None:
            form = numpy_dtype(self.dtype)
            memory = memory_of(self.device.type)
            self.array = memory.empty(count, form, self.device.index)
        self.count = count

    def copy(self) -> "Storage":
        """A storage of the same elements, its version 0."""
        elements = self.numpy()
        return _stored(
            None if elements is None else elements.copy(),
            self.device,
            self.dtype,
            self.count,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Storage":
        # `deepcopy` looks a thing up in the memo before it asks it.
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        import numpy as np

        elements = self.numpy()
        # As bytes: NumPy alone reads them, also where ml_dtypes is a later one.
        raw = None if elements is None else elements.view(np.uint8)
        return restored_storage, (raw, str(self.device), self.dtype.name, self.count)

    def tolist(self) -> list[Any]:
        """The elements as Python numbers.  Raises `NoData` on `meta`."""
        found: list[Any] = self[:]
        return found

    def __getitem__(self, place: int | slice) -> Any:
        elements = self.numpy()
        if elements is None:
            raise NoData(
                device=str(self.device),
                dtype=self.dtype.name,
                shape=(self.count,),
                asked="elements of a storage",
            )
        return elements[place].tolist()

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        return (
            f"<Storage of {self.count} {self.dtype} on {self.device}, "
            f"version {self.version}>"
        )


def _stored(
    elements: "np.ndarray[Any, Any] | None", device: Device, dtype: DType, count: int
) -> Storage:
    if elements is not None:
        elements = memory_of(device.type).from_numpy(elements, device.index)
    return Storage(elements, device, dtype, count)


def restored_storage(
    raw: "np.ndarray[Any, Any] | None", device: str, dtype: str, count: int
) -> Storage:
    """A storage of pickled bytes.  Raises `UnfitValue`."""
    kind = DType.named(dtype)
    import numpy as np

    place = Device.parse(device)
    # A mapped file is an array of a class of its own.
    raw = np.asarray(raw) if isinstance(raw, np.ndarray) else raw
    _check_bytes(raw, place, itemsize(kind))
    if raw is not None:
        # Out-of-band buffers may be read-only, and lie anywhere.
        typed = raw.view(numpy_dtype(kind))
        raw = typed if typed.flags.writeable and typed.flags.aligned else typed.copy()
        count = len(raw)
    return _stored(raw, place, kind, count)


def _check_bytes(raw: Any, device: Device, size: int) -> None:
    """Refuse loaded bytes, from an untrusted file perhaps, that are no elements.

    Raises `UnfitValue`.
    """
    import numpy as np

    if raw is None and device.type == "meta":
        return
    if (
        type(raw) is np.ndarray
        and device.type != "meta"
        and raw.dtype == np.uint8
        and raw.ndim == 1
        and raw.flags.c_contiguous
        and not raw.size % size
    ):
        return
    shown = f"{raw.dtype} {raw.shape}" if isinstance(raw, np.ndarray) else f"{raw!r}"
    raise UnfitValue(
        asked="unpickling a storage",
        found=f"{shown[:60]} for elements of {size} bytes on {device}",
        fits="one run of whole elements, as uint8; nothing on meta",
    )


class WrapperStorage(Storage):
    """A run of elements that are not there; `owner` names the class of the wrapper."""

    __slots__ = ("_counter", "owner")

    def __init__(self, owner: str, device: Device, dtype: DType, count: int) -> None:
        self.owner = owner
        self.device = device
        self.dtype = dtype
        self.count = count
        # One cell, shared by the storages that count together.
        self._counter = [0]

    if not TYPE_CHECKING:

        @property
        def array(self) -> "Array | None":
            """Nothing: raises `SubclassError`."""
            self._refuse()

        @property
        def version(self) -> int:
            """How often the elements were written to in place."""
            return self._counter[0]

        @version.setter
        def version(self, version: int) -> None:
            self._counter[0] = version

    def counts_with(self, other: Storage) -> None:
        """Count the versions of both together, if `other` has no elements either."""
        if isinstance(other, WrapperStorage):
            self._counter = other._counter

    def data_ptr(self) -> int:
        """0: there is no first element."""
        return 0

    def numpy(self) -> NoReturn:
        """Raises `SubclassError`."""
        self._refuse()

    def grow(self, count: int) -> None:
        """Give a storage without elements room for `count`, which are not there."""
        assert not self.count, "views of elements would be left behind"
        self.count = count

    def copy(self) -> "WrapperStorage":
        """Another one of that size, its version 0."""
        return WrapperStorage(self.owner, self.device, self.dtype, self.count)

    def __deepcopy__(self, memo: dict[int, Any]) -> "WrapperStorage":
        made = self.copy()
        # Copies of storages that count together count together.
        made._counter = memo.setdefault(id(self._counter), made._counter)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return restored_wrapper, (
            self.owner,
            str(self.device),
            self.dtype.name,
            self.count,
        )

    def _refuse(self) -> NoReturn:
        raise SubclassError(code="NoElements", cls=self.owner)


def restored_wrapper(owner: str, device: str, dtype: str, count: int) -> WrapperStorage:
    """A storage without elements.  Raises `BadSize`."""
    # The pickle may be of an untrusted file.
    count = index(count)
    if count < 0:
        raise BadSize(asked=(count,), elements=0)
    return WrapperStorage(str(owner), Device.parse(device), parse_dtype(dtype), count)
