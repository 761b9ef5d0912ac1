"""Tensors of a device on their way to other workers: by host memory, and back."""

from typing import Any

import pytest

import runtime
from runtime.rpc.values import pack, restricted, unpack


def there(value: Any) -> Any:
    return unpack([bytearray(each) for each in pack(value).payload])


def restricted_there(value: Any) -> Any:
    payload = restricted.pack(value).payload
    return unpack([bytearray(each) for each in payload], trusted=False)


@pytest.mark.parametrize("send", [there, restricted_there])
def test_tensors_arrive_on_their_device(send: Any) -> None:
    sent = runtime.arange(12, dtype="float32").reshape(3, 4).to("cuda").transpose(0, 1)
    found = send(sent)
    assert (found.device, found.strides) == (sent.device, (1, 4))
    assert found.tolist() == sent.tolist()
    assert found.data_ptr() != sent.data_ptr()


@pytest.mark.parametrize("send", [there, restricted_there])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "complex64", "bool"])
def test_views_stay_views_and_send_what_they_show(send: Any, dtype: str) -> None:
    whole = runtime.tensor([0, 1] * 500, dtype=dtype).to("cuda")
    first, second = send([whole[100:104], whole[102:110]])
    assert first.storage() is second.storage()
    assert first.storage().nbytes() <= 10 * whole.itemsize + 16
    assert first.tolist() == whole[100:104].tolist()
    column = whole.reshape(100, 10)[:, 3]
    assert send(column).tolist() == column.tolist()


def test_large_ones_have_a_frame() -> None:
    sent = runtime.zeros(5000).to("cuda")
    packed = pack(sent)
    assert [memoryview(each).nbytes for each in packed.payload[1:]] == [20_000]
    found = unpack(packed.payload)
    found[0] = 1
    assert (sent[0].item(), found[0].item()) == (0, 1)
