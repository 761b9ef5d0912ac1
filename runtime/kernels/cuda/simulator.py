"""The simulator, mended in one place: shared arrays, and functions of other files.

True only here: what the simulator of numba-cuda does otherwise than a device.  Its
threads look for a shared array of their line, and make one if there is none; two that
look at the same time make two, and no longer share.  The table below lets the second
wait for the first one's array.  And it puts the running kernel's `cuda` among the
globals of the kernel's own file only; `Running` is that of whichever kernel runs.

Rules: nothing is changed where kernels are compiled; `mend` may be called again.
"""

import threading
from typing import Any


class SharedArrays(dict[Any, Any]):
    """Line of a body -> its array; one alone of those that ask is told to make it."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: set[Any] = set()
        self._settled = threading.Condition()

    def get(self, key: Any, default: Any = None) -> Any:
        """The array; or the default, once, to whoever has to make it."""
        with self._settled:
            while key not in self:
                if key not in self._asked:
                    self._asked.add(key)
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
    """Let every block of the simulator make its shared arrays once."""
    from numba.cuda.simulator import kernelapi

    shared: Any = kernelapi.FakeCUDAShared
    plain = shared.__init__
    if getattr(plain, "mended", False):
        return

    def made(self: Any, size: int) -> None:
        plain(self, size)
        self._allocations = SharedArrays()

    made.mended = True  # type: ignore[attr-defined]  # a mark on the function
    shared.__init__ = made
