"""Memories of devices, and the storages that tensors share.

A *memory* allocates and copies the elements of a device type.  Host memory is NumPy's.
A device type without a registered memory keeps its elements in host memory; a new
backend starts that way and may register its memory with `register_memory`.  `meta` has
no memory.

A *storage* is a run of elements on a device.  Two tensors are views of each other
exactly if they share a storage.  Each write to the elements increments `version`, so
that autograd detects changes of a saved tensor.  Every tensor has a storage: on `meta`
it has a device, a dtype and a count, but no array, and its address is 0.  A wrapper,
which computes through its handler, has a `WrapperStorage`; access to its elements
raises an error that names the wrapper's class.

Rules:
- `array` is one-dimensional and holds exactly `count` elements of `dtype`, or is None
  on `meta`; only `grow`, of a storage without elements, replaces it;
- a function in `MEMORY_PROVIDERS` registers the memory of a higher area; it is called
  at the first use of the memory;
- a pickled storage consists of bytes, dtype and device, without the version;
- a deep copy copies a storage once, however many tensors share it;
- a view that a handler made of a wrapper, with a separate storage, counts versions
  together with the wrapper (`counts_with`), so that a write to either is detected.
"""

from collections.abc import Callable
from functools import cache
from operator import index
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from everyorder.runtime.base.hooks import MEMORY_PROVIDERS
from everyorder.runtime.base.locks import LOADING
from everyorder.runtime.base.registry import Registry, RegistryHandle
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
    """The operations of a device type; `index` is the device's index, or None."""

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """Return an array of `count` uninitialized elements."""

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """Return a copy of a 1-D NumPy array; host memory returns the array itself."""

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """Return a copy in host memory (in host memory: the array itself)."""

    def pointer(self, array: Array) -> int:
        """Return the address of the first element."""


@cache
def _numpy() -> Any:
    """Return NumPy, at a tenth of the cost of an import statement."""
    import numpy as np

    return np


class HostMemory:
    """The memory of the host: NumPy's arrays."""

    __slots__ = ()

    def empty(self, count: int, np_dtype: "np.dtype[Any]", index: int | None) -> Array:
        """Return an array of `count` uninitialized elements."""
        return _numpy().empty(count, np_dtype)

    def from_numpy(self, array: "np.ndarray[Any, Any]", index: int | None) -> Array:
        """Return the array itself."""
        return array

    def to_numpy(self, array: Array) -> "np.ndarray[Any, Any]":
        """Return the array itself."""
        elements: np.ndarray[Any, Any] = array
        return elements

    def pointer(self, array: Array) -> int:
        """Return the address of the first element."""
        address: int = array.__array_interface__["data"][0]
        return address


HOST = HostMemory()

# Device type -> its memory; a type that is missing here uses host memory.
MEMORIES: Registry[str, Memory] = Registry("memories of device types", {"cpu": HOST})


def register_memory(kind: str, memory: Memory) -> RegistryHandle:
    """Store the elements of tensors on device type `kind` in `memory`.

    Raises:
        AlreadyRegistered: the type has a memory.
    """
    return MEMORIES.register(kind, memory, stacklevel=2)


def memory_of(kind: str) -> Memory:
    """Return the memory of a device type.

    Raises:
        DeviceUnavailable: the memory of the type cannot be used here.
    """
    memory = MEMORIES.rows.get(kind)
    if memory is not None:
        return memory
    provider = MEMORY_PROVIDERS.rows.get(kind)
    return HOST if provider is None else _provided(kind, provider)


def is_host(kind: str) -> bool:
    """Return True if the elements of a device type are in host memory."""
    return (
        kind != "meta" and kind not in MEMORY_PROVIDERS.rows and memory_of(kind) is HOST
    )


def resolve_device(device: Device | str) -> Device:
    """Return the device of a new tensor: `cpu` for `cpu:0`, the current one for `cuda`.

    The method `current_index()` of a memory, if present, returns the index that a
    device without an index denotes; the default is 0.

    Raises:
        UnknownDevice: `device` is not the name of a device.
        DeviceUnavailable: the memory of the type cannot be used here.
    """
    if device == "cpu":
        return _CPU
    place = device if isinstance(device, Device) else Device.parse(device)
    if place.index is None:
        if place.type in MEMORY_PROVIDERS.rows:
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
    memory = MEMORIES.rows.get(kind)
    if memory is None:
        raise DeviceUnavailable(
            device=kind, reason="its module registered no memory", remedy=""
        )
    return memory


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
        # The number of in-place writes to the elements.
        self.version = 0

    def size(self) -> int:
        """Return the number of elements."""
        return self.count

    def element_size(self) -> int:
        """Return the size of one element in bytes."""
        return itemsize(self.dtype)

    def nbytes(self) -> int:
        """Return the size in bytes; on `meta`, that of the absent elements."""
        return self.count * itemsize(self.dtype)

    @property
    def _cdata(self) -> int:
        """Return a number that no other living storage has."""
        return id(self)

    def data_ptr(self) -> int:
        """Return the address of the first element, or 0 without bytes."""
        if self.array is None or not self.count:
            return 0
        return memory_of(self.device.type).pointer(self.array)

    def numpy(self) -> "np.ndarray[Any, Any] | None":
        """Return the elements in host memory, shared if possible; None on `meta`."""
        if self.array is None:
            return None
        elements = memory_of(self.device.type).to_numpy(self.array)
        # A memory may store a dtype that its device lacks as another of the same size.
        form = numpy_dtype(self.dtype)
        return elements if elements.dtype == form else elements.view(form)

    def grow(self, count: int) -> None:
        """Allocate `count` uninitialized elements in a storage without elements."""
        assert not self.count, "views of elements would be left behind"
        if self.array is not None:
            form = numpy_dtype(self.dtype)
            memory = memory_of(self.device.type)
            self.array = memory.empty(count, form, self.device.index)
        self.count = count

    def copy(self) -> "Storage":
        """Return a storage with a copy of the elements and version 0."""
        elements = self.numpy()
        return _stored(
            None if elements is None else elements.copy(),
            self.device,
            self.dtype,
            self.count,
        )

    def __deepcopy__(self, memo: dict[int, Any]) -> "Storage":
        # `deepcopy` consults the memo before it calls this.
        return self.copy()

    def __reduce__(self) -> tuple[Any, ...]:
        import numpy as np

        elements = self.numpy()
        # As bytes: NumPy alone can read them, even if ml_dtypes has another version.
        raw = None if elements is None else elements.view(np.uint8)
        return restored_storage, (raw, str(self.device), self.dtype.name, self.count)

    def tolist(self) -> list[Any]:
        """Return the elements as Python numbers.  Raises `NoData` on `meta`."""
        numbers: list[Any] = self[:]
        return numbers

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
    """Return a storage from pickled bytes.  Raises `UnfitValue`."""
    kind = DType.named(dtype)
    import numpy as np

    place = Device.parse(device)
    # A mapped file is an instance of a subclass, `np.memmap`.
    raw = np.asarray(raw) if isinstance(raw, np.ndarray) else raw
    _check_bytes(raw, place, itemsize(kind))
    if raw is not None:
        # Out-of-band buffers may be read-only or unaligned.
        typed = raw.view(numpy_dtype(kind))
        raw = typed if typed.flags.writeable and typed.flags.aligned else typed.copy()
        count = len(raw)
    return _stored(raw, place, kind, count)


def _check_bytes(raw: Any, device: Device, size: int) -> None:
    """Refuse bytes of a pickle, possibly untrusted, that are not whole elements.

    Raises:
        UnfitValue: `raw` is not a contiguous 1-D uint8 array of whole elements.
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
    text = f"{raw.dtype} {raw.shape}" if isinstance(raw, np.ndarray) else f"{raw!r}"
    raise UnfitValue(
        asked="unpickling a storage",
        found=f"{text[:60]} for elements of {size} bytes on {device}",
        fits="one run of whole elements, as uint8; nothing on meta",
    )


class WrapperStorage(Storage):
    """A storage whose elements do not exist; `owner` names the class of the wrapper."""

    __slots__ = ("_counter", "owner")

    def __init__(self, owner: str, device: Device, dtype: DType, count: int) -> None:
        self.owner = owner
        self.device = device
        self.dtype = dtype
        self.count = count
        # One cell, shared by storages that count together.
        self._counter = [0]

    if not TYPE_CHECKING:

        @property
        def array(self) -> "Array | None":
            """Raise `SubclassError`: a wrapper does not have an array."""
            self._refuse()

        @property
        def version(self) -> int:
            """Return the number of in-place writes to the elements."""
            return self._counter[0]

        @version.setter
        def version(self, version: int) -> None:
            self._counter[0] = version

    def counts_with(self, other: Storage) -> None:
        """Count the versions of both together, if `other` is a wrapper's too."""
        if isinstance(other, WrapperStorage):
            self._counter = other._counter

    def data_ptr(self) -> int:
        """Return 0: there is no first element."""
        return 0

    def numpy(self) -> NoReturn:
        """Raise `SubclassError`: the elements do not exist."""
        self._refuse()

    def grow(self, count: int) -> None:
        """Set the count of a storage without elements."""
        assert not self.count, "views of elements would be left behind"
        self.count = count

    def copy(self) -> "WrapperStorage":
        """Return another wrapper storage of that size, with version 0."""
        return WrapperStorage(self.owner, self.device, self.dtype, self.count)

    def __deepcopy__(self, memo: dict[int, Any]) -> "WrapperStorage":
        copied = self.copy()
        # Copies of storages that count together count together.
        copied._counter = memo.setdefault(id(self._counter), copied._counter)
        return copied

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
    """Return a wrapper storage from pickled parts.  Raises `BadSize`."""
    # The pickle may come from an untrusted file.
    count = index(count)
    if count < 0:
        raise BadSize(asked=(count,), elements=0)
    return WrapperStorage(str(owner), Device.parse(device), parse_dtype(dtype), count)
