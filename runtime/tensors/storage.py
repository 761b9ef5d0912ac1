"""Storage: the elements that a tensor and its views share, and their version.

True only here: sharing.  Two tensors are views of each other exactly if they have one
storage; whoever writes to the elements raises `version`, so that who kept a tensor can
tell.  A storage is never absent: on `meta` it has a device, a dtype and a count, but no
array, and its address is 0, as is that of one without bytes.

Rules:
- `array` is one-dimensional and holds exactly `count` elements of `dtype`, or is None
  on `meta`; nobody replaces it, except `grow` of a storage without elements;
- pickled, a storage is its bytes, its dtype and its device; never its version;
- copied deeply, it is copied once, however many tensors share it.
"""

from typing import TYPE_CHECKING, Any

from runtime.errors.tensor import NoData, UnfitValue
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.elements import itemsize, numpy_dtype
from runtime.tensors.memory import Array, memory_of

if TYPE_CHECKING:
    import numpy as np


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
        return _restored, (raw, str(self.device), self.dtype.name, self.count)

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


def _restored(
    raw: "np.ndarray[Any, Any] | None", device: str, dtype: str, count: int
) -> Storage:
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
    """What is loaded may have been written by anybody.  Raises `UnfitValue`."""
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
