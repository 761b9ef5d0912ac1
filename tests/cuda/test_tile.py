"""What the compiler makes of tiles: the part of a product that no simulator shows."""

import re

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

from everyorder.runtime.kernels.cuda import KERNELS
from everyorder.runtime.kernels.cuda.device import BLOCK
from everyorder.runtime.kernels.cuda.jit import DECLARED
from everyorder.runtime.kernels.cuda.matmul import EACH, SIDE, TILES
from tests.cuda.compiling import ptx_of

PRODUCTS = ("matmul", "conv2d", "conv2d_input", "conv2d_weight")


def test_a_square_of_threads_is_a_block() -> None:
    assert "mm" in KERNELS
    assert SIDE * SIDE == BLOCK


@pytest.mark.parametrize("name", PRODUCTS)
def test_results_stay_in_registers(name: str) -> None:
    ptx = ptx_of(DECLARED[name], ("float32",))
    assert ".local" not in ptx
    # One multiplication for each of a thread's results, and a loop around them.
    assert ptx.count("fma.rn.f32") % (EACH * EACH) == 0
    assert ptx.count("fma.rn.f32") > 0
    assert "f64" not in ptx


@pytest.mark.parametrize("key", [("float32",), ("float64",), ("complex128",)])
def test_tiles_fit_into_the_memory_of_a_block(key: tuple[str, ...]) -> None:
    sizes = {"float32": 4, "float64": 8, "complex128": 16}
    ptx = ptx_of(DECLARED["matmul"], key)
    found = re.findall(r"\.shared .*?\[(\d+)\];", ptx)
    elements = 2 * TILES[0] * TILES[1]
    assert sum(map(int, found)) == elements * sizes[key[0]]
    # What every device gives a block without being asked.
    assert sum(map(int, found)) <= 48 << 10
