"""Tensors out of band: what survives, what is sent, and tables that nobody wrote."""

import struct
from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime import Parameter, Tensor
from everyorder.runtime.errors import DeviceUnavailable, Undecodable
from everyorder.runtime.rpc.codec import pack, restricted, unpack
from everyorder.runtime.rpc.codec.payload import TensorReader, TensorWriter
from everyorder.runtime.tensors.storage import Storage
from tests.rpc.codec.things import as_received, there

DTYPES = (
    *("uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"),
    *("bfloat16", "complex64", "complex128", "bool"),
)


def bytes_sent(value: Any) -> int:
    """Bytes of elements that travel; they are told from all else by their number."""
    return len(pack(value).payload[0]) - len(pack(runtime.ones(0)).payload[0])


def restricted_there(value: Any) -> Any:
    return unpack(as_received(restricted.pack(value)), trusted=False)


THERE = pytest.mark.parametrize(
    "send", [there, restricted_there], ids=["pickled", "restricted"]
)


@THERE
@pytest.mark.parametrize("dtype", DTYPES)
def test_dtypes(dtype: str, send: Any) -> None:
    sent = runtime.tensor([[0, 1, 1], [1, 0, 1]], dtype=dtype)
    found = send(sent)
    assert (found.dtype, found.shape, found.strides) == (sent.dtype, (2, 3), (3, 1))
    assert found.tolist() == sent.tolist()
    assert found.storage() is not sent.storage()


@THERE
def test_strides_are_kept(send: Any) -> None:
    """4.12: a transposed view arrives as one."""
    sent = runtime.arange(12).reshape(3, 4).transpose(0, 1)
    found = send(sent)
    assert found.strides == (1, 4)
    assert found.tolist() == sent.tolist()
    assert not found.is_contiguous()


@THERE
def test_requires_grad_is_kept(send: Any) -> None:
    assert send(runtime.ones(2, requires_grad=True)).requires_grad
    assert not send(runtime.ones(2)).requires_grad
    computed = runtime.ones(2, requires_grad=True) * 2
    found = send(computed)
    assert found.requires_grad
    assert found.grad_fn is None
    (found * found).sum().backward()
    assert found.grad.tolist() == [4.0, 4.0]


@THERE
@pytest.mark.parametrize("shape", [(0,), (3, 0, 2), ()])
def test_no_elements_and_no_dimensions(shape: tuple[int, ...], send: Any) -> None:
    sent = runtime.ones(shape, dtype="int16")
    found = send(sent)
    assert (found.shape, found.dtype) == (shape, sent.dtype)
    assert found.tolist() == sent.tolist()


@THERE
def test_a_slice_sends_what_it_shows(send: Any) -> None:
    whole = runtime.arange(10_000)
    part = whole[5000:5004]
    assert bytes_sent(part) < 200
    found = send(part)
    assert found.tolist() == [5000, 5001, 5002, 5003]
    assert found.storage().nbytes() <= 48


@THERE
def test_views_of_one_storage_stay_views_of_one(send: Any) -> None:
    whole = runtime.arange(100)
    first, second = send([whole[10:20], whole[15:30:5]])
    assert first.storage() is second.storage()
    assert first.storage().count <= 22
    first[5] = -1
    assert second.tolist() == [-1, 20, 25]
    assert whole[15].item() == 15


def test_views_of_other_dtypes_too() -> None:
    whole = runtime.arange(8, dtype="int32")
    bits = whole.view(runtime.float32)
    first, second = there([whole[3:], bits[4:]])
    assert first.storage() is second.storage()
    assert first.tolist() == [3, 4, 5, 6, 7]
    assert second.tolist() == bits[4:].tolist()
    # What is sent begins where elements of each of them may begin.
    narrow = runtime.arange(8, dtype="int16")
    wide = narrow.view(runtime.int32)
    first, second = there([narrow[1:], wide[1:]])
    assert first.tolist() == [1, 2, 3, 4, 5, 6, 7]
    assert second.tolist() == wide[1:].tolist()


@THERE
def test_a_column_is_made_dense(send: Any) -> None:
    """Of 100 by 100 elements one column: 100 travel."""
    column = runtime.arange(10_000).reshape(100, 100)[:, 7]
    found = send(column)
    assert found.tolist() == column.tolist()
    assert found.strides == (1,)
    assert bytes_sent(column) < 1000


@THERE
@pytest.mark.parametrize(
    "view",
    [
        lambda whole: whole[:, 7],
        lambda whole: whole[::3, ::4],
        lambda whole: whole.t(),
        lambda whole: whole[:, :2].t(),
        lambda whole: whole[:0].t(),
        lambda whole: whole[:, 3:4].expand(24, 5),
    ],
)
def test_strides_of_small_views_are_kept(send: Any, view: Any) -> None:
    """A few kilobytes of gaps travel, too."""
    sent = view(runtime.arange(24 * 24).reshape(24, 24))
    found = send(sent)
    assert (found.strides, found.tolist()) == (sent.strides, sent.tolist())


@THERE
def test_what_is_made_dense_keeps_its_order(send: Any) -> None:
    sent = runtime.arange(8000).reshape(20, 20, 20)[::5, :, ::10].transpose(0, 2)
    found = send(sent)
    assert found.tolist() == sent.tolist()
    assert found.strides == (1, 2, 40)


@THERE
def test_what_is_repeated_is_sent_once(send: Any) -> None:
    sent = runtime.arange(3).reshape(3, 1).expand(3, 10_000)
    found = send(sent)
    assert found.strides == (1, 0)
    assert found[2, 9999].item() == 2
    assert bytes_sent(sent) < 200
    # Also of elements that lie far apart.
    apart = runtime.arange(10_000)[::1000].reshape(10, 1).expand(10, 3)
    found = send(apart)
    assert found.strides == (1, 0)
    assert found.tolist() == apart.tolist()


def test_a_storage_itself_is_sent_whole() -> None:
    whole = runtime.arange(1000)
    storage, view = there([whole.storage(), whole[900:910:3]])
    assert storage is view.storage()
    assert storage.count == 1000
    assert view.tolist() == [900, 903, 906, 909]


def test_one_tensor_is_one_tensor() -> None:
    sent = runtime.ones(3)
    found = there({"a": sent, "b": [sent]})
    assert found["a"] is found["b"][0]


def test_64_mb_leave_without_a_copy() -> None:
    """The frame is the memory of the tensor, read-only."""
    sent = runtime.zeros(16 * 2**20)
    frame = pack(sent).payload[1]
    assert isinstance(frame, memoryview)
    assert frame.readonly
    address = np.frombuffer(frame, np.uint8).__array_interface__["data"][0]
    assert (frame.nbytes, address) == (64 * 2**20, sent.data_ptr())


def test_received_memory_is_used_as_it_is() -> None:
    frames = as_received(pack(runtime.zeros(10_000)))
    found = unpack(frames)
    assert found.data_ptr() == np.frombuffer(frames[1], np.uint8).ctypes.data
    found[3] = 1
    assert np.frombuffer(frames[1], np.float32)[3] == 1


@THERE
def test_nothing_is_the_senders_own(send: Any) -> None:
    """P13: also where the frames are handed over within one process."""
    for count in (3, 10_000):
        sent = runtime.zeros(count)
        payload = pack(sent) if send is there else restricted.pack(sent)
        found = unpack(payload.payload)
        found[0] = 1
        assert sent[0].item() == 0


def test_parameters_stay_parameters() -> None:
    for send in (there, restricted_there):
        found = send(Parameter(runtime.ones(2)))
        assert type(found) is Parameter
        assert found.requires_grad


class Labelled(Tensor):
    """A class of tensors with attributes of its own."""


class Wrapper(Tensor):
    """Computes by its handler; has no elements itself."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "Wrapper":
        made = Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        inner = [each.inner if type(each) is cls else each for each in args]
        return cls(func(*inner, **(kwargs or {})))


def test_classes_of_tensors_keep_their_class() -> None:
    sent = Tensor._make_subclass(Labelled, runtime.arange(100.0)[90:95])
    sent.label = "mine"  # type: ignore[attr-defined]  # it takes any
    found = there([sent])[0]
    assert (type(found), found.label, found.tolist()) == (
        Labelled,
        "mine",
        [90.0, 91.0, 92.0, 93.0, 94.0],
    )
    assert found.storage().count < 12


def test_wrappers_keep_their_class_and_what_they_wrap() -> None:
    found = there({"x": Wrapper(runtime.ones(2))})["x"]
    assert type(found) is Wrapper
    assert found.inner.tolist() == [1.0, 1.0]
    twice: Any = found + found
    assert (type(twice), twice.inner.tolist()) == (Wrapper, [2.0, 2.0])


class Own(Tensor):
    def __reduce__(self) -> Any:
        return int, ("7",)


def test_a_class_that_says_itself_how_it_is_pickled() -> None:
    sent = Tensor._make_subclass(Own, runtime.ones(2))
    assert there(sent) == 7


def test_meta_tensors_have_no_bytes() -> None:
    for send in (there, restricted_there):
        found = send(runtime.ones(1000, 1000, device="meta"))
        assert (found.is_meta, found.shape) == (True, (1000, 1000))
    assert len(pack(runtime.ones(1000, 1000, device="meta")).payload) == 1


def test_numbers_that_stand_for_tensors() -> None:
    from everyorder.runtime.tensors.construction import wrap_number

    found = there(wrap_number(3))
    assert (found.number, found.item()) == (3, 3)


@settings(max_examples=50)
@given(
    st.lists(st.integers(0, 4), max_size=4),
    st.permutations(range(4)),
    st.lists(st.integers(1, 3), min_size=4, max_size=4),
    st.sampled_from(["uint8", "int16", "float32", "bfloat16", "complex128"]),
    st.integers(0, 9),
)
def test_any_view_arrives(
    shape: list[int], order: list[int], steps: list[int], dtype: str, start: int
) -> None:
    full = [size * step for size, step in zip(shape, steps, strict=False)]
    whole = runtime.arange(start + prod(full), dtype="int64").to(dtype=dtype)
    sent = whole[start:].reshape(tuple(full))
    for dim, step in enumerate(steps[: len(shape)]):
        places = runtime.arange(0, full[dim], step) if full[dim] else None
        if places is not None:
            sent = runtime.ops.core.slice(sent, dim, 0, full[dim], step)
    kept = [dim for dim in order if dim < len(shape)]
    sent = runtime.ops.core.permute(sent, kept) if shape else sent
    for send in (there, restricted_there):
        found = send(sent)
        assert found.shape == sent.shape
        assert found.tolist() == sent.tolist()
        one, other = send([sent, whole])
        assert one.storage() is other.storage()
        assert (one.strides, other.tolist()) == (sent.strides, whole.tolist())


def test_a_device_that_is_not_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its error says so, whichever codec wrote the tensor."""

    def none(kind: str) -> Any:
        raise DeviceUnavailable(device=kind, reason="there is none", remedy="")

    for write in (pack, restricted.pack):
        payload = write(runtime.ones(2)).payload
        with monkeypatch.context() as patched:
            patched.setattr("everyorder.runtime.rpc.codec.payload.memory_of", none)
            with pytest.raises(DeviceUnavailable):
                unpack(payload)


# Tables that nobody wrote.


def table(*values: Tensor | Storage) -> bytes:
    tensors = TensorWriter()
    for each in values:
        if isinstance(each, Storage):
            tensors.storage(each)
        else:
            tensors.view(each)
    return tensors.written()[0]


def read(data: bytes) -> None:
    """All of a table."""
    found = TensorReader(memoryview(data), ())
    for place in range(3):
        found.storage(place)
        found.view(place)


def test_tables_are_checked() -> None:
    """Each number of it, changed to what it cannot be."""
    whole = table(runtime.arange(6).reshape(2, 3))
    at = 8 + 11 + len("cpu") + 48  # the view, behind counts, storage, name, elements
    for offset, form, value in [
        (0, "<I", 2**32 - 1),  # storages
        (4, "<I", 2**32 - 1),  # views
        (8, "<B", 9),  # the place of the bytes
        (8, "<B", 1),  # a frame, which is not there
        (8, "<B", 2),  # nowhere, on the CPU
        (9, "<B", 255),  # dtype
        (9, "<B", 8),  # a dtype that tensors lack
        (10, "<B", 200),  # the length of a name
        (11, "<Q", 2**63),  # bytes
        (11, "<Q", 47),
        (at, "<I", 7),  # storage
        (at + 4, "<B", 255),  # dtype
        (at + 5, "<B", 255),  # dimensions
        (at + 6, "<Q", 5),  # offset
        (at + 14, "<q", -1),  # a size
        (at + 14, "<q", 3),
        (at + 14, "<q", 2**62),
        (at + 30, "<q", -1),  # a stride
        (at + 30, "<q", 2**62),
    ]:
        broken = bytearray(whole)
        struct.pack_into(form, broken, offset, value)
        with pytest.raises(Undecodable):
            TensorReader(memoryview(broken), ()).view(0)
    TensorReader(memoryview(whole), ()).view(0)
    for end in range(len(whole)):
        with pytest.raises(Undecodable):
            TensorReader(memoryview(whole[:end]), ()).view(0)
    for place in (1, -1):
        with pytest.raises(Undecodable):
            TensorReader(memoryview(whole), ()).storage(place)
        with pytest.raises(Undecodable):
            TensorReader(memoryview(whole), ()).view(place)


def written(where: int, device: bytes, count: int, data: bytes, ndim: int = 1) -> bytes:
    """A table of one storage of int64 and one view of one element."""
    return b"".join(
        (
            struct.pack("<II", 1, 1),
            struct.pack("<BBBQ", where, 4, len(device), count) + device + data,
            struct.pack("<IBBQ", 0, 4, ndim, 0),
            struct.pack(f"<{2 * ndim}q", *[1] * 2 * ndim),
        )
    )


@pytest.mark.parametrize(
    ("table", "frames", "reason"),
    [
        (written(0, b"cpu", 8, bytes(8)), (), ""),
        (written(1, b"cpu", 8, b""), (bytes(8),), ""),
        (written(2, b"meta", 8, b""), (), ""),
        (written(0, b"cpu", 8, bytes(8), 64), (), ""),
        (written(0, b"cpu", 8, bytes(8), 65), (), "65 dimensions"),
        (written(0, b"cpu", 9, bytes(9)), (), "9 bytes are not a multiple"),
        (written(1, b"cpu", 8, b""), (bytes(9),), "differs from its row"),
        (written(2, b"cpu", 8, b""), (), "the bytes does not match cpu"),
        (written(0, b"meta", 8, bytes(8)), (), "the bytes does not match meta"),
        (written(0, b"nowhere", 8, bytes(8)), (), "an unknown device"),
        (written(0, b"cpu", 0, b""), (), "outside of its storage"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_wrong_with_a_table(
    table: bytes, frames: tuple[bytes, ...], reason: str
) -> None:
    if not reason:
        assert set(TensorReader(memoryview(table), frames).view(0)[2]) == {1}
        return
    with pytest.raises(Undecodable) as caught:
        TensorReader(memoryview(table), frames).view(0)
    assert reason in " ".join(str(caught.value).split())


def test_integers_have_no_gradient() -> None:
    """Whatever a payload says."""
    found = TensorReader(memoryview(table(runtime.arange(3))), ())
    assert not found.plain(Tensor, 0, False).requires_grad
    with pytest.raises(Undecodable, match="cannot require gradients"):
        found.plain(Tensor, 0, True)


@given(st.binary(max_size=200))
def test_any_bytes_as_a_table(data: bytes) -> None:
    """Only our error comes out."""
    with pytest.raises(Undecodable):
        read(data)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=8))
def test_any_change_of_a_table(at: int, change: bytes) -> None:
    """It is another tensor, or our error: never memory that is not there."""
    data = bytearray(table(runtime.arange(6).reshape(2, 3), runtime.ones(4)))
    data[at : at + len(change)] = change
    try:
        found = TensorReader(memoryview(data), ())
        storage, dtype, shape, strides, offset = found.view(0)
    except Undecodable:
        return
    assert storage.nbytes() <= len(data)
    reach = sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    size = runtime.empty(0, dtype=dtype).element_size()
    assert not prod(shape) or (offset + reach + 1) * size <= storage.nbytes()
