"""Threads of simulated blocks take turns, and a `syncthreads` that lacks is missed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.kernels.cuda.device import BLOCK, SIMULATED, cuda
from tests.cuda.simulated.agreement import agree, empty, numbers

if not SIMULATED:
    pytest.skip("a device has threads of its own", allow_module_level=True)


def launched(body: Callable[..., None], grid: int = 2) -> list[int]:
    """What a kernel writes, one number for each thread."""
    out = np.full(grid * BLOCK, -1)
    cuda.jit(body)[grid, BLOCK](out)
    return out.tolist()


def mirrored(out: Any) -> None:
    """Each thread writes what the thread opposite has told; twice."""
    told = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    for turn in range(2):
        told[thread] = cuda.grid(1) + turn
        cuda.syncthreads()
        out[cuda.grid(1)] = told[BLOCK - 1 - thread]
        cuda.syncthreads()


def unready(out: Any) -> None:
    """As `mirrored`, and nobody waits until all have told."""
    told = cuda.shared.array(BLOCK, np.int64)
    told[cuda.threadIdx.x] = -5
    cuda.syncthreads()
    told[cuda.threadIdx.x] = cuda.grid(1)
    out[cuda.grid(1)] = told[BLOCK - 1 - cuda.threadIdx.x]


def overwriting(out: Any) -> None:
    """As `mirrored`, and nobody waits until all have read."""
    told = cuda.shared.array(BLOCK, np.int64)
    thread = cuda.threadIdx.x
    for turn in range(2):
        told[thread] = cuda.grid(1) + turn
        cuda.syncthreads()
        if turn == 0:
            out[cuda.grid(1)] = told[BLOCK - 1 - thread]


def uneven(out: Any) -> None:
    """Some threads end while others wait."""
    for turn in range(cuda.threadIdx.x):
        cuda.syncthreads()
        out[cuda.grid(1)] = turn


def test_all_threads_wait_for_each_other() -> None:
    opposite = [BLOCK * (n // BLOCK) + BLOCK - 1 - n % BLOCK for n in range(2 * BLOCK)]
    assert launched(mirrored) == [n + 1 for n in opposite]
    assert launched(uneven) == [-1, 0, 1, 2] * 2


def test_who_does_not_wait_reads_what_is_not_there() -> None:
    """Whichever of two threads would have to be the later one."""
    found = launched(unready)
    # Of the first block the last thread goes on first, of the second one the first.
    assert found == [3, 2, -5, -5, -5, -5, 5, 4]
    told = launched(overwriting)
    # Those that go on first write before the others have read.
    assert told == [4, 3, 1, 0, 7, 6, 6, 5]


@pytest.mark.parametrize("at", [0, BLOCK - 1])
def test_an_error_of_a_thread_is_that_of_the_launch(at: int) -> None:
    began: list[int] = []

    def raising(out: Any) -> None:
        began.append(cuda.threadIdx.x)
        cuda.syncthreads()
        if cuda.threadIdx.x == at:
            raise ZeroDivisionError(at)
        cuda.syncthreads()
        out[cuda.grid(1)] = 1

    with pytest.raises(ZeroDivisionError, match=str(at)):
        launched(raising)
    assert began == list(range(BLOCK))
    # And the next launch is whole.
    assert -1 not in launched(mirrored)


@pytest.mark.usefixtures("plain_simulator")
@pytest.mark.parametrize("name", ["softmax", "cumsum", "sum"])
def test_the_simulator_by_itself_agrees(name: str) -> None:
    x = numbers((3, 9), "float32")
    shape = (3,) if name == "sum" else (3, 9)
    axes: Any = (1,) if name == "sum" else 1
    agree(name, [empty(shape, "float32")], x, axes)
