"""Memories by device type: host memory, registered ones, and none to be had."""

import sys
from types import ModuleType

import numpy as np
import pytest

from runtime.errors.registration import UnknownDevice
from runtime.errors.tensor import DeviceUnavailable
from runtime.schema.codes import Device
from runtime.tensors import storage
from runtime.tensors.storage import (
    HOST,
    MEMORIES,
    PROVIDERS,
    is_host,
    memory_of,
    register_memory,
    resolved,
)
from tests.tensors.far import Far
from tests.tensors.loading import noted


def test_host_memory() -> None:
    array = HOST.empty(3, np.dtype("int8"), None)
    assert (array.shape, array.dtype) == ((3,), np.dtype("int8"))
    assert HOST.from_numpy(array, None) is HOST.to_numpy(array) is array
    assert HOST.pointer(array) == array.__array_interface__["data"][0]


def test_a_device_type_starts_in_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MEMORIES", dict(MEMORIES))
    assert memory_of("cpu") is memory_of("fpga") is HOST
    assert (is_host("fpga"), is_host("meta")) == (True, False)
    far = Far()
    register_memory("fpga", far)
    assert memory_of("fpga") is far
    assert not is_host("fpga")
    assert resolved("fpga") is Device("fpga")


def test_a_provider_is_loaded_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "MEMORIES", dict(MEMORIES))
    monkeypatch.setitem(PROVIDERS, "fpga", "provider")
    asked = noted(monkeypatch, None)
    with pytest.raises(DeviceUnavailable, match="its module brought no memory"):
        memory_of("fpga")
    assert asked == [("provider", True)]


def test_the_module_of_a_memory_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MEMORIES", dict(MEMORIES))
    monkeypatch.setitem(PROVIDERS, "fpga", "tests_of_a_provider")
    with pytest.raises(DeviceUnavailable) as caught:
        memory_of("fpga")
    assert caught.value.fields() == {
        "device": "fpga",
        "reason": "the module `tests_of_a_provider` is not installed",
        "remedy": "install everyorder with the extra `fpga`",
    }
    monkeypatch.setitem(sys.modules, "tests_of_a_provider", ModuleType("empty"))
    with pytest.raises(DeviceUnavailable) as caught:
        memory_of("fpga")
    assert caught.value.reason == "its module brought no memory"
    far = Far()
    # As if importing the module had done it.
    original = storage._provided

    def importing(kind: str, provider: str) -> storage.Memory:
        register_memory(kind, far)
        return original(kind, provider)

    monkeypatch.setattr(storage, "_provided", importing)
    assert memory_of("fpga") is far


def test_devices_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert resolved("cpu") is resolved("cpu:0") is resolved(Device("cpu", 0))
    assert resolved("meta:0") is Device("meta")
    assert resolved("hip:1") is Device("hip", 1)
    monkeypatch.setitem(MEMORIES, "cuda", Far())
    assert resolved("cuda") is resolved("cuda:0") is Device("cuda", 0)
    assert resolved("cuda:1") is Device("cuda", 1)
    monkeypatch.setitem(MEMORIES, "cuda", HOST)
    assert resolved("cuda") is Device("cuda", 0)
    with pytest.raises(UnknownDevice):
        resolved("foo")
