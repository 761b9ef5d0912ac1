"""The simulator's blocks, with threads that take turns.

numba-cuda's simulator starts a thread of the operating system for each thread of a
block, and asks all of them without a pause whether they wait for each other.  Here one
runs at a time: until it waits in `syncthreads`, or ends.  A block that never waits is a
loop.  What kernels read and write is the same, and so is the order of their blocks.

Rules:
- of a block the first thread begins, of the next block the last one; those that waited
  go on in the reverse order each time.  A kernel that lacks a `syncthreads` reads what
  is not written yet, or no more, whichever way round it is;
- what a kernel raises ends its block, and is raised by the launch;
- kernels get NumPy's arrays themselves.
"""

import sys
from collections.abc import Callable
from functools import partial
from threading import Lock, Thread
from typing import Any

import numpy as np
from numba.cuda.simulator import kernel, kernelapi

Index = tuple[int, int, int]

simulator: Any = kernel
api: Any = kernelapi


class Aborted(BaseException):
    """Another thread of the block raised an error."""


class Shared:
    """Shared arrays, by the line that asks for them; a block has its own."""

    def __init__(self) -> None:
        self._arrays: dict[tuple[object, int], Any] = {}

    def array(self, shape: Any, dtype: Any) -> Any:
        """The array of the line that calls, unwritten at first."""
        frame = sys._getframe(1)
        line = frame.f_code, frame.f_lineno
        if line not in self._arrays:
            self._arrays[line] = np.empty(shape, dtype)
        return self._arrays[line]


class Module:
    """What `cuda` means within a kernel; `threadIdx` is that of the running thread."""

    def __init__(self, grid: Index, block: Index) -> None:
        self.gridDim, self.blockDim = api.Dim3(*grid), api.Dim3(*block)
        self.blockIdx = self.threadIdx = api.Dim3(0, 0, 0)
        self.shared = Shared()
        self.syncthreads: Callable[[], None] = _no_block
        self.local, self.atomic = api.FakeCUDALocal(), api.FakeCUDAAtomic()

    def grid(self, dimensions: int) -> int:
        """The number of the running thread in the whole grid."""
        assert dimensions == 1, "no kernel has more"
        number: int = self.blockIdx.x * self.blockDim.x + self.threadIdx.x
        return number

    def gridsize(self, dimensions: int) -> int:
        """How many threads the grid has."""
        assert dimensions == 1, "no kernel has more"
        size: int = self.gridDim.x * self.blockDim.x
        return size


def _no_block() -> None:
    raise AssertionError("no block runs")


class Block:
    """One block: its threads, of which one has the turn."""

    def __init__(self, module: Module, body: Callable[[], None], backwards: bool):
        self._module, self._body = module, body
        points = [api.Dim3(*each) for each in np.ndindex(*module.blockDim)]
        # The last one of each list is the next.
        self._unbegun = points if backwards else points[::-1]
        self._round: list[Lock] = []
        self._waiting: list[Lock] = []
        self._over = Lock()
        self._error: BaseException | None = None

    def run(self) -> None:
        """Run all threads, the first of them here.  Raises what one of them raises."""
        self._module.syncthreads = self._wait
        self._over.acquire()
        self._begin()
        self._over.acquire()
        error, self._error = self._error, None
        if error is not None:
            try:
                raise error
            finally:
                # What it was raised in holds it.
                del error

    def _begin(self) -> None:
        """Run those that have not begun, one after the other; pass the turn on."""
        while self._unbegun:
            self._module.threadIdx = self._unbegun.pop()
            try:
                self._body()
            except Aborted:
                pass
            except BaseException as error:
                self._error = self._error or error
                self._unbegun.clear()
        self._pass()

    def _wait(self) -> None:
        """Wait until all others wait, too, or have ended."""
        thread, turn = self._module.threadIdx, Lock()
        turn.acquire()
        self._waiting.append(turn)
        self._pass()
        turn.acquire()
        self._module.threadIdx = thread
        if self._error is not None:
            raise Aborted

    def _pass(self) -> None:
        """Give the turn to the next one, if there is one."""
        if self._unbegun:
            Thread(target=self._begin, daemon=True).start()
            return
        if not self._round:
            self._round, self._waiting = self._waiting, []
        (self._round.pop() if self._round else self._over).release()


def launch(run: Any, *arguments: Any) -> None:
    """Launch a kernel, in the place of the simulator's own way to do it."""
    grid, block = simulator.normalize_kernel_dimensions(run.grid_dim, run.block_dim)
    module = Module(grid, block)
    given = [getattr(each, "_ary", each) for each in arguments]
    with (
        simulator._push_kernel_context(module),
        simulator.swapped_cuda_module(run.fn, module),
    ):
        for number, point in enumerate(np.ndindex(*grid)):
            module.blockIdx, module.shared = api.Dim3(*point), Shared()
            Block(module, partial(run.fn, *given), number % 2 == 1).run()
