"""Storages, and the memories of device types that they lie in."""

import sys
from copy import deepcopy
from functools import partial
from importlib import import_module
from pickle import dumps, loads
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.base.hooks import MEMORY_PROVIDERS
from everyorder.runtime.base.locks import load
from everyorder.runtime.base.registry import Registry
from everyorder.runtime.errors.registration import AlreadyRegistered, UnknownDevice
from everyorder.runtime.errors.tensor import DeviceUnavailable
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors import Storage, storage, tensor
from everyorder.runtime.tensors.dtype_info import SUPPORTED
from everyorder.runtime.tensors.storage import (
    HOST,
    is_host,
    memory_of,
    register_memory,
    resolve_device,
)
from tests.tensors.far import Far, use_memory
from tests.tensors.loading import noted

F32, CPU, META = DType.named("float32"), Device("cpu"), Device("meta")


def test_what_it_knows() -> None:
    held = tensor([1.0, 2.0]).storage()
    assert (held.count, len(held), held.nbytes()) == (2, 2, 8)
    assert (held.device, held.dtype, held.version) == (CPU, F32, 0)
    assert held.array is not None
    assert held.data_ptr() == held.array.__array_interface__["data"][0]
    assert repr(held) == "<Storage of 2 float32 on cpu, version 0>"


def test_without_bytes_it_knows_its_device() -> None:
    meta = Storage(None, META, F32, 5)
    assert (meta.nbytes(), meta.data_ptr(), meta.device) == (20, 0, META)
    assert meta.numpy() is None
    empty = tensor([]).storage()
    assert (empty.nbytes(), empty.data_ptr(), empty.device) == (0, 0, CPU)


def test_growing_from_nothing() -> None:
    empty = tensor([]).storage()
    empty.grow(3)
    assert (empty.count, empty.array is not None) == (3, True)
    assert len(empty.array) == 3  # type: ignore[arg-type]  # it was just asserted
    meta = Storage(None, META, F32, 0)
    meta.grow(3)
    assert (meta.count, meta.array) == (3, None)
    with pytest.raises(AssertionError, match="views of elements"):
        empty.grow(4)


@pytest.mark.parametrize("dtype", SUPPORTED)
@pytest.mark.parametrize("device", ["cpu", "hip:1", "meta"])
def test_it_survives_pickling_and_copying(dtype: str, device: str) -> None:
    held = tensor([0, 1, 1], dtype=dtype, device=device).storage()
    held.version = 3
    for other in (loads(dumps(held)), loads(dumps(held, 5)), deepcopy(held)):
        assert (other.device, other.dtype, other.count) == (
            held.device,
            held.dtype,
            held.count,
        )
        assert other.version == 0
        one, two = held.numpy(), other.numpy()
        if one is None:
            assert two is None
            continue
        assert two is not None
        assert (one.dtype, one.tolist()) == (two.dtype, two.tolist())
        assert not np.shares_memory(one, two)
        assert two.flags.writeable


def test_out_of_band_pickles_are_copied_where_they_are_read_only() -> None:
    buffers: list[Any] = []
    held = tensor([1.0, 2.0]).storage()
    text = dumps(held, 5, buffer_callback=buffers.append)
    assert len(buffers) == 1
    raw = bytes(buffers[0])
    other = loads(text, buffers=[raw])
    elements = other.numpy()
    elements[0] = 5
    assert elements.tolist() == [5.0, 2.0]


def test_in_the_memory_of_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    use_memory(monkeypatch, "fpga", Far())
    held = tensor([1.5, 2.5], dtype="bfloat16", device="fpga").storage()
    for other in (held, held.copy(), loads(dumps(held))):
        elements = other.numpy()
        assert elements is not None
        assert (str(elements.dtype), elements.tolist()) == ("bfloat16", [1.5, 2.5])
        assert other.data_ptr() != 0


def test_host_memory() -> None:
    array = HOST.empty(3, np.dtype("int8"), None)
    assert (array.shape, array.dtype) == ((3,), np.dtype("int8"))
    assert HOST.from_numpy(array, None) is HOST.to_numpy(array) is array
    assert HOST.pointer(array) == array.__array_interface__["data"][0]


def test_a_device_type_starts_in_host_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(storage, "MEMORIES", Registry("memories", {"cpu": HOST}))
    assert memory_of("cpu") is memory_of("fpga") is HOST
    assert (is_host("fpga"), is_host("meta")) == (True, False)
    far = Far()
    with register_memory("fpga", far):
        assert memory_of("fpga") is far
        assert not is_host("fpga")
        assert resolve_device("fpga") is Device("fpga")
        with pytest.raises(AlreadyRegistered, match="fpga"):
            register_memory("fpga", Far())
        assert memory_of("fpga") is far
    assert memory_of("fpga") is HOST


def test_a_provider_is_loaded_by_one_thread_at_a_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(storage, "MEMORIES", Registry("memories"))
    asked = noted(monkeypatch, None)
    with (
        MEMORY_PROVIDERS.register("fpga", partial(load, "provider")),
        pytest.raises(DeviceUnavailable, match="its module registered no memory"),
    ):
        memory_of("fpga")
    assert asked == [("provider", True)]


def test_the_module_of_a_memory_is_loaded(
    monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    monkeypatch.setattr(storage, "MEMORIES", Registry("memories"))
    request.addfinalizer(
        MEMORY_PROVIDERS.register(
            "fpga", partial(import_module, "tests_of_a_provider")
        ).close
    )
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
    assert caught.value.reason == "its module registered no memory"
    far = Far()
    # As if importing the module had done it.
    original = storage._provided

    def importing(kind: str, provider: Any) -> storage.Memory:
        register_memory(kind, far)
        return original(kind, provider)

    monkeypatch.setattr(storage, "_provided", importing)
    assert memory_of("fpga") is far


def test_devices_are_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    assert (
        resolve_device("cpu")
        is resolve_device("cpu:0")
        is resolve_device(Device("cpu", 0))
    )
    assert resolve_device("meta:0") is Device("meta")
    assert resolve_device("hip:1") is Device("hip", 1)
    use_memory(monkeypatch, "cuda", Far())
    assert resolve_device("cuda") is resolve_device("cuda:0") is Device("cuda", 0)
    assert resolve_device("cuda:1") is Device("cuda", 1)
    use_memory(monkeypatch, "cuda", HOST)
    assert resolve_device("cuda") is Device("cuda", 0)
    with pytest.raises(UnknownDevice):
        resolve_device("foo")
