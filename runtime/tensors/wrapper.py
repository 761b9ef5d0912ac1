"""The storage of a wrapper: a tensor that computes by its handler, without elements.

True only here: a storage that knows its device, its dtype and how many elements there
would be, and has none.  Whoever asks for them hears so by name, instead of computing
with nothing.

Rules:
- the version of a wrapper's elements is counted; a view that a handler made of a
  wrapper, with a storage of its own, counts together with it (`counts_with`), so that
  a write to either is noticed by who saved the other.
"""

from operator import index
from typing import TYPE_CHECKING, Any, NoReturn

from runtime.errors.python_dispatch import NoElements
from runtime.errors.tensor import BadSize
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.tensors.elements import supported
from runtime.tensors.storage import Storage

if TYPE_CHECKING:
    from runtime.tensors.memory import Array


class WrapperStorage(Storage):
    """A run of elements that are not there; `owner` names the class of the wrapper."""

    __slots__ = ("_counter", "owner")

    def __init__(self, owner: str, device: Device, dtype: DType, count: int) -> None:
        self.owner = owner
        self.device = device
        self.dtype = dtype
        self.count = count
        # One cell, shared by those who count together.
        self._counter = [0]

    if not TYPE_CHECKING:

        @property
        def array(self) -> "Array | None":
            """Nothing: raises `NoElements`."""
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
        """Raises `NoElements`."""
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
        # Who counts together goes on to.
        made._counter = memo.setdefault(id(self._counter), made._counter)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (self.owner, str(self.device), self.dtype.name, self.count)

    def _refuse(self) -> NoReturn:
        raise NoElements(cls=self.owner)


def _restored(owner: str, device: str, dtype: str, count: int) -> WrapperStorage:
    # What is loaded may have been written by anybody.
    count = index(count)
    if count < 0:
        raise BadSize(asked=(count,), elements=0)
    return WrapperStorage(str(owner), Device.parse(device), supported(dtype), count)
