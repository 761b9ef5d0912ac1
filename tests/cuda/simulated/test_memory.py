"""Device memory: arrays, copies, pinned memory, streams, and what they hold alive."""

import gc
import pickle
from copy import deepcopy
from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DeviceUnavailable,
    OutOfMemory,
)
from everyorder.runtime.kernels.cuda import (
    KERNELS,
    Event,
    Stream,
    current_device,
    current_stream,
    default_stream,
    device_count,
    empty_cache,
    is_available,
    max_memory_allocated,
    memory_allocated,
    memory_reserved,
    memory_stats,
    on_device,
    on_stream,
    pinned_array,
    properties,
    record_stream,
    reset_peak,
    synchronize,
)
from everyorder.runtime.kernels.cuda.memory import (
    CudaMemory,
    device_array,
    device_of,
    download,
    upload,
)
from everyorder.runtime.tensors.construction import view_of
from everyorder.runtime.tensors.storage import memory_of, resolve_device
from everyorder.runtime.tensors.tensor_impl import flat_of
from tests.coded import code
from tests.cuda.simulated.arrays import DEVICE, STORED, form, fresh, get, put

MEMORY = CudaMemory()


def test_the_device_type_has_this_memory() -> None:
    assert isinstance(memory_of("cuda"), CudaMemory)
    assert resolve_device("cuda") is DEVICE


@pytest.mark.parametrize("name", STORED)
def test_every_dtype_goes_there_and_back(name: str) -> None:
    array = np.arange(6).astype(form(name))
    there = MEMORY.from_numpy(array, 0)
    back = MEMORY.to_numpy(there)
    assert back.dtype == array.dtype
    np.testing.assert_array_equal(back, array)
    assert back is not array
    np.testing.assert_array_equal(MEMORY.to_numpy(there[2:4]), array[2:4])


def test_addresses() -> None:
    array = MEMORY.empty(4, np.dtype(np.float64), 0)
    assert MEMORY.pointer(array) % 16 == 0
    assert MEMORY.pointer(array[1:]) == MEMORY.pointer(array) + 8
    assert MEMORY.pointer(MEMORY.empty(0, np.dtype(np.float64), 0)) == 0


def test_memory_is_counted_while_a_view_lives() -> None:
    gc.collect()
    before = memory_allocated()
    reset_peak()
    tensor = fresh((1000,), "float32")
    assert memory_allocated() == before + 4096
    view = view_of(tensor, (10,), (2,), 5)
    flat: Any = flat_of(tensor)
    part = flat[3:]
    del tensor, flat
    assert memory_allocated() == before + 4096
    del view
    gc.collect()
    assert memory_allocated() == before + 4096
    del part
    gc.collect()
    assert memory_allocated() == before
    assert max_memory_allocated() == before + 4096


def test_what_is_dropped_is_lent_again() -> None:
    first = device_array(100, np.dtype(np.int32))
    address = MEMORY.pointer(first)
    del first
    assert MEMORY.pointer(device_array(100, np.dtype(np.int32))) == address


def test_the_cache_goes_back_to_the_device() -> None:
    large = device_array(30 << 20, np.dtype(np.uint8))
    held = memory_reserved()
    assert held >= 30 << 20
    del large
    assert memory_reserved() == held
    assert empty_cache() >= 30 << 20
    assert memory_reserved() <= held - (30 << 20)


def test_more_than_there_is() -> None:
    with pytest.raises(OutOfMemory) as caught:
        device_array(1 << 50, np.dtype(np.uint8))
    fields = caught.value.fields()
    assert (fields["device"], fields["asked"]) == ("cuda:0", 1 << 50)
    assert fields["reserved"] == memory_stats().reserved


def test_pinned_memory_and_copies_that_do_not_wait() -> None:
    host = pinned_array(8, np.dtype(np.float32))
    host[:] = np.arange(8)
    there = device_array(8, np.dtype(np.float32))
    back = pinned_array(8, np.dtype(np.float32))
    with on_stream(Stream()) as stream:
        upload(there, host)
        download(back, there)
        stream.synchronize()
    np.testing.assert_array_equal(back, host)


def test_devices() -> None:
    assert is_available()
    assert device_count() >= 1
    assert current_device() == 0
    with on_device(0) as index:
        assert index == 0
    assert properties(0).multiprocessors > 0
    synchronize()
    assert device_of(device_array(1, np.dtype(np.int8))) == 0
    with pytest.raises(DeviceUnavailable) as caught:
        device_array(1, np.dtype(np.int8), 99)
    assert caught.value.device == "cuda:99"


def test_the_stream_of_a_thread() -> None:
    assert current_stream() is default_stream(0)
    assert default_stream(0).is_default
    with on_stream(Stream(0)) as stream:
        assert current_stream() is stream
        assert not stream.is_default
        with on_stream(Stream(0)) as inner:
            assert current_stream(0) is inner
        assert current_stream() is stream
    assert current_stream() is default_stream(0)


def test_streams_wait_for_each_other() -> None:
    one, two = Stream(), Stream()
    source = np.arange(1000, dtype=np.float32)
    with on_stream(one):
        tensor = put(source)
        out = fresh((1000,), "float32")
        KERNELS["mul"](out, tensor, 3)
    two.wait(one)
    with on_stream(two):
        again = fresh((1000,), "float32")
        KERNELS["add"](again, out, out, 1)
        record_stream(flat_of(out), two)
        np.testing.assert_array_equal(get(again), source * 6)
    event = two.record()
    event.synchronize()
    assert event.query()
    one.wait(event)
    one.synchronize()
    default_stream(0).synchronize()
    assert isinstance(Event(0, timing=True), Event)


def test_memory_used_by_two_streams_waits_before_it_is_lent() -> None:
    other = Stream()
    array = device_array(100, np.dtype(np.int32))
    record_stream(array, other)
    record_stream(array[10:], other)
    del array
    synchronize()
    # The mark has been passed, so it may be lent again; its bytes are not counted.
    assert memory_stats().allocated == memory_allocated()


def test_things_of_another_device_are_refused() -> None:
    stream = Stream()
    object.__setattr__(stream, "device", 1)
    with pytest.raises(DevicesDiffer, check=code("WrongDevice")) as caught:
        Event(0).record(stream)
    assert str(caught.value) == (
        "The event belongs to `cuda:0` and cannot be used on `cuda:1`."
    )


def test_tensors_are_pickled_and_copied() -> None:
    tensor = put(np.arange(6, dtype=np.float32).reshape(2, 3))
    for twin in (deepcopy(tensor), pickle.loads(pickle.dumps(tensor))):
        assert twin.device is DEVICE
        np.testing.assert_array_equal(get(twin), get(tensor))
        assert twin.data_ptr() != tensor.data_ptr()


def test_a_stream_says_where_it_is() -> None:
    assert repr(default_stream(0)) == "Stream(cuda:0, default)"
    assert repr(Stream()).startswith("Stream(cuda:0, 0x")
