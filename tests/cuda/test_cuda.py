"""`runtime.cuda`, with and without what CUDA needs."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

import everyorder.runtime.cuda
from everyorder.runtime.errors.tensor import DeviceUnavailable
from tests.tensors.loading import noted

ROOT = Path(__file__).resolve().parents[2]
WITHOUT = """
import sys
sys.modules["numba_cuda"] = None
import importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name: None if name == "numba_cuda" else real(name)
from everyorder import runtime
import everyorder.runtime.cuda
assert "numpy" not in sys.modules and "numba" not in sys.modules
print(runtime.cuda.is_available(), runtime.cuda.device_count())
try:
    runtime.cuda.Stream
except runtime.errors.DeviceUnavailable as error:
    print(error.reason)
"""


def test_without_numba_cuda_there_is_no_device_and_no_error() -> None:
    command = [sys.executable, "-c", WITHOUT]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "False 0\nthe package numba-cuda is not installed\n"


def test_every_public_name_is_there() -> None:
    pytest.importorskip("numba_cuda", reason="needs the extra `cuda`: numba-cuda")
    assert dir(everyorder.runtime.cuda) == sorted(everyorder.runtime.cuda.__all__)
    assert all(
        getattr(everyorder.runtime.cuda, name)
        for name in everyorder.runtime.cuda.__all__
    )


def test_names_load_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    provided = SimpleNamespace(Stream="stream", device_count=lambda: 3)
    asked = noted(monkeypatch, provided)
    monkeypatch.setattr(everyorder.runtime.cuda, "find_spec", lambda name: name)
    monkeypatch.setitem(vars(everyorder.runtime.cuda), "Stream", None)
    del vars(everyorder.runtime.cuda)["Stream"]
    found: object = everyorder.runtime.cuda.Stream
    assert found == "stream"
    assert everyorder.runtime.cuda.device_count() == 3
    names = (
        "everyorder",
        "everyorder.runtime",
        "everyorder.runtime.kernels",
        "everyorder.runtime.kernels.cuda",
    )
    assert asked == [(name, True) for name in names * 2]


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = everyorder.runtime.cuda.graphs
    assert str(caught.value) == "module `everyorder.runtime.cuda` has no `graphs`"


@pytest.mark.skipif(
    find_spec("numba_cuda") is None or everyorder.runtime.cuda.is_available(),
    reason="needs numba-cuda, and no GPU",
)
def test_without_a_gpu() -> None:
    assert everyorder.runtime.cuda.device_count() == 0
    with pytest.raises(DeviceUnavailable) as caught:
        everyorder.runtime.cuda.current_device()
    assert caught.value.reason == "there is no driver or no GPU"
