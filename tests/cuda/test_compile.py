"""Every CUDA kernel compiles to PTX and to machine code, without a device.

Rules: by default each family is compiled for two of its keys and for one in eight of
the others, always the same ones; for all where EVERYORDER_ALL_KERNELS is set, which
takes minutes.  That all of them are declared is
asserted by the table: a kernel of the CPU without one for CUDA is a failure.
"""

import os
import re
from zlib import crc32

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

from everyorder.runtime.kernels.cpu.kernel_table import KERNELS as CPU
from everyorder.runtime.kernels.cuda import KERNELS
from everyorder.runtime.kernels.cuda.jit import DECLARED, Key, LaunchFamily
from tests.cuda.compiling import ARCHITECTURE, cubin_of, ptx_of

ALL = "EVERYORDER_ALL_KERNELS" in os.environ
SHARE = 8


def chosen(family: LaunchFamily) -> tuple[Key, ...]:
    """float32 if it is there, the last (mostly the widest) key, and some; or all."""
    if ALL:
        return family.keys
    single = [key for key in family.keys if key[0] == "float32"]
    some = [
        key for key in family.keys if crc32(f"{family.name}{key}".encode()) % SHARE == 0
    ]
    return tuple(dict.fromkeys((*single[:1], family.keys[-1], *some)))


@pytest.mark.parametrize("name", sorted(DECLARED))
def test_family(name: str) -> None:
    family = DECLARED[name]
    for key in chosen(family):
        ptx = ptx_of(family, key)
        assert f".target {ARCHITECTURE}" in ptx
        # One kernel that the host can launch, under the name of its family.
        assert len(re.findall(r"^\s*\.visible \.entry ", ptx, re.MULTILINE)) == 1
        assert "_".join((name, *key)) in ptx
        assert cubin_of(ptx)[:4] == b"\x7fELF"


def test_every_kernel_of_the_cpu_has_one_for_cuda() -> None:
    # NumPy computes linear algebra, and on the CPU only.
    assert sorted(KERNELS) == [n for n in sorted(CPU) if not n.startswith("linalg_")]


def test_single_precision_stays_single() -> None:
    """A literal of the wrong width would widen the arithmetic of float32."""
    slow = ("fma.rn.f64", "mul.rn.f64", "add.rn.f64", "div.rn.f64")
    for name in ("add", "silu", "gelu", "sum_of_floats_rows", "silu_backward"):
        ptx = ptx_of(DECLARED[name], (("float32",) * len(DECLARED[name].keys[0])))
        assert [word for word in slow if word in ptx] == [], name


def test_indices_divide_in_32_bits() -> None:
    """Signed 64-bit division would be a call for each extent of each element."""
    ptx = ptx_of(DECLARED["add"], ("float32",))
    assert "div.u32" in ptx
    assert "div.s64" not in ptx


def test_flat_loops_read_before_they_write() -> None:
    """Several loads under way at once are what fills the device's bandwidth."""
    ptx = ptx_of(DECLARED["neg"], ("float32",))
    found = re.findall(r"ld\.global\.f32|st\.global\.f32", ptx)
    assert "ld ld ld ld st st st st" in " ".join(word[:2] for word in found)


def test_normal_numbers_are_contracted_nowhere() -> None:
    """The fused steps of the CPU and no others: 11 of the logarithm, 19 of the circle.

    One more, and the numbers of the device would not be those of the CPU.
    """
    for name, dtype, pairs in (
        ("normal", "float32", 2),
        ("normal_double", "float64", 1),
    ):
        ptx = ptx_of(DECLARED[name], (dtype,))
        assert len(re.findall(r"fma\.rn\.f64", ptx)) == 30 * pairs
        assert "call" not in ptx
