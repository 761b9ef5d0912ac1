"""Compiling CUDA kernels for a device that is not there: to PTX, and on to a cubin."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

from everyorder.runtime.kernels.cuda.device import cuda
from everyorder.runtime.kernels.cuda.jit import Key, LaunchFamily

# What is compiled for: Hopper.
CAPABILITY = (9, 0)
ARCHITECTURE = "sm_90"


@contextmanager
def lent_capability() -> Iterator[None]:
    """Device functions ask the current device for its capability; answer for it."""

    def device() -> Any:
        return SimpleNamespace(compute_capability=CAPABILITY)

    with (
        patch("numba.cuda.dispatcher.get_current_device", device),
        patch("numba.cuda.compiler.get_current_device", device),
    ):
        yield


def ptx_of(family: LaunchFamily, key: Key) -> str:
    """The PTX of one kernel."""
    with lent_capability():
        text, _ = cuda.compile_ptx(
            family.body(key),
            cuda.types.void(*family.types(key)),
            device=False,
            cc=CAPABILITY,
        )
    assert isinstance(text, str)
    return text


def cubin_of(ptx: str) -> bytes:
    """The machine code of a kernel."""
    core: Any = import_module("cuda.core")
    linker = core.Linker(
        core.ObjectCode.from_ptx(ptx.encode()),
        options=core.LinkerOptions(arch=ARCHITECTURE),
    )
    code = linker.link("cubin").code
    assert isinstance(code, bytes)
    return code
