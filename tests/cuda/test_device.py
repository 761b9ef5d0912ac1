"""Devices, where there is none, and where there is no toolkit either."""

import importlib.util
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numba_cuda", reason="needs the extra `cuda`")

import numpy as np

from everyorder.runtime.errors.tensor import DeviceUnavailable
from everyorder.runtime.kernels.cuda import (
    KERNELS,
    device,
    device_count,
    is_available,
    properties,
)
from everyorder.runtime.kernels.cuda.device import require
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors.from_data import tensor
from everyorder.runtime.tensors.storage import memory_of
from everyorder.runtime.tensors.tensor import Tensor

ROOT = Path(__file__).resolve().parents[2]

without = pytest.mark.skipif(is_available(), reason="there is a CUDA device here")


@without
def test_kernels_are_not_launched_without_a_device() -> None:
    assert device_count() == 0
    for ask in (
        lambda: require(0),
        lambda: properties(0),
        lambda: memory_of("cuda").empty(3, np.dtype(np.int8), None),
        lambda: tensor([1, 2], device="cuda"),
    ):
        with pytest.raises(DeviceUnavailable) as caught:
            ask()
        assert str(caught.value) == (
            "The device `cuda:0` is not available: there is no driver or no GPU.\n"
            "  to do: use the device `cpu`, or run on a machine with an NVIDIA GPU"
        )


def test_an_index_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "everyorder.runtime.kernels.cuda.device.device_count", lambda: 2
    )
    assert require(1) == 1
    with pytest.raises(DeviceUnavailable) as caught:
        require(2)
    assert caught.value.fields() == {
        "device": "cuda:2",
        "reason": "there are 2 CUDA devices, numbered from 0",
        "remedy": "use one of cuda:0 to cuda:1",
    }


def test_without_the_toolkit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(DeviceUnavailable) as caught:
        runpy.run_path(str(device.__file__))
    assert caught.value.fields() == {
        "device": "cuda",
        "reason": "the package numba-cuda is not installed",
        "remedy": "install everyorder with the extra `cuda`",
    }


def test_the_runtime_does_not_import_the_toolkit() -> None:
    code = (
        "import sys; from everyorder import runtime\n"
        "runtime.tensor([1.0])\n"
        "loaded = [name for name in ('numba', 'numba_cuda') if name in sys.modules]\n"
        "assert loaded == [], loaded"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True, timeout=60)


@pytest.mark.skipif(
    not is_available(),
    reason="no CUDA device: kernels ran in the simulator and through the compiler only",
)
def test_kernels_on_a_real_device() -> None:
    """Where there is one, `tests/cuda/simulated` is collected and launched on it."""
    twice = memory_of("cuda").from_numpy(np.arange(4, dtype=np.float32), 0)
    found = Tensor(twice, (4,), DType.named("float32"), Device("cuda", 0), 0)
    KERNELS["add"](found, found, found, 1)
    np.testing.assert_array_equal(memory_of("cuda").to_numpy(twice), [0, 2, 4, 6])
