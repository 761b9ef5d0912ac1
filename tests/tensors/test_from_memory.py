"""`asarray` and `frombuffer`: memory that is shared, copied, or refused."""

import array
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, asarray, from_dlpack, frombuffer, tensor
from everyorder.runtime.errors.tensor import NotShareable, UnfitValue
from everyorder.runtime.tensors.interop import ReadOnlyMemory
from everyorder.runtime.utils import dlpack


def test_an_array_is_shared() -> None:
    elements = np.ones(3)
    shared = asarray(elements)
    shared[0] = 5
    assert elements.tolist() == [5, 1, 1]
    assert shared.dtype is runtime.float64
    assert asarray(elements, copy=False).data_ptr() == elements.ctypes.data


def test_a_copy_has_its_own_memory() -> None:
    elements = np.ones(3)
    tensors = tensor([1.0, 2.0])
    for source in (elements, tensors):
        copied = asarray(source, copy=True)
        copied.zero_()
    assert elements.tolist() == [1, 1, 1]
    assert tensors.tolist() == [1, 2]


def test_elements_are_converted_if_they_have_to_be() -> None:
    elements = np.ones(2)
    assert asarray(elements, dtype=runtime.int64).tolist() == [1, 1]
    assert asarray(elements, device="meta").device.type == "meta"
    assert asarray([1, 2], dtype="float64").dtype is runtime.float64
    assert asarray(np.float32(3)).item() == 3
    assert asarray(array.array("i", [1, 2])).dtype is runtime.int32
    assert asarray(elements[::-1]).tolist() == [1, 1]


def test_a_tensor_is_returned_itself() -> None:
    leaf = tensor([1.5], requires_grad=True)
    assert asarray(leaf) is leaf
    result = leaf * 2
    assert asarray(result) is result
    asarray(result, dtype="float64").sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2]
    plain = tensor([1.5])
    assert asarray(plain, requires_grad=True) is plain
    assert plain.requires_grad


@pytest.mark.parametrize(
    ("source", "options", "why"),
    [
        ([1.5], {}, "numbers and lists are copied"),
        (3, {}, "numbers and lists are copied"),
        (np.ones(2), {"dtype": "float32"}, "its elements are float64, not float32"),
        (np.ones(2), {"device": "meta"}, "it is on cpu, not on meta"),
        (np.ones(2)[::-1], {}, "a tensor cannot have its form"),
        (tensor([1.5]), {"dtype": "int64"}, "its elements are float32, not int64"),
    ],
)
def test_what_cannot_be_shared_is_refused(source: Any, options: Any, why: str) -> None:
    with pytest.raises(NotShareable, match="copy") as error:
        asarray(source, copy=False, **options)
    assert why in " ".join(str(error.value).split())
    assert error.value.code == "CopyNeeded"


def test_requires_grad_of_an_array() -> None:
    assert asarray([1.5], requires_grad=True).requires_grad
    with pytest.raises(UnfitValue, match="requires_grad=True"):
        asarray([1], requires_grad=True)
    with pytest.raises(UnfitValue, match="takes True, False or None"):
        asarray([1], copy=1)  # type: ignore[arg-type]  # the mistake


def test_bytes_are_read_and_not_converted() -> None:
    memory = bytearray(b"\x01\x00\x02\x00")
    assert asarray(memory).tolist() == [1, 0, 2, 0]
    shared = asarray(memory, dtype=runtime.int16)
    shared[0] = 5
    assert memory == b"\x05\x00\x02\x00"


def test_a_memoryview_of_other_elements_is_an_array_of_these() -> None:
    memories: list[Any] = [np.array([1.0, 2.0]), array.array("d", [1, 2])]
    view: Any
    for memory in memories:
        view = memoryview(memory)
        shared = asarray(view)
        assert (shared.dtype, shared.tolist()) == (runtime.float64, [1, 2])
        shared[0] = 5
        assert view[0] == 5
        assert asarray(view, copy=False).data_ptr() == shared.data_ptr()
        assert asarray(view, dtype="float32").tolist() == [5, 2]
    assert asarray(memoryview(array.array("i", range(6)))[::2]).tolist() == [0, 2, 4]
    for code in ("B", "c"):
        view = memoryview(bytearray(8)).cast(code)
        assert asarray(view).dtype is runtime.uint8
        assert asarray(view, dtype="float32").tolist() == [0, 0]
    with pytest.warns(ReadOnlyMemory, match="asarray"):
        asarray(memoryview(bytes(8)).cast("d"))


def test_bytes_that_do_not_fit_are_refused_by_the_name_of_the_call() -> None:
    with pytest.raises(UnfitValue, match="`asarray` takes an offset"):
        asarray(bytearray(7), dtype="int32")


def test_read_only_memory_is_shared_with_a_warning() -> None:
    elements = np.ones(2)
    elements.flags.writeable = False
    calls: tuple[Callable[[], Tensor], ...] = (
        lambda: asarray(elements),
        lambda: asarray(b"ab"),
        lambda: frombuffer(b"ab", dtype=runtime.uint8),
    )
    for call in calls:
        with pytest.warns(ReadOnlyMemory) as warned:
            call()
        assert warned[0].filename == __file__


class Exported:
    """An object with DLPack's protocol, and no other."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.asked: dict[str, Any] = {}

    def __dlpack__(self, **options: Any) -> Any:
        self.asked = options
        return self.source.__dlpack__(**options)

    def __dlpack_device__(self) -> Any:
        return self.source.__dlpack_device__()


def read_only() -> Any:
    elements = np.ones(2)
    elements.flags.writeable = False
    return Exported(elements)


def test_read_only_memory_of_dlpack_is_shared_with_a_warning() -> None:
    calls: dict[str, Callable[[], Tensor]] = {
        "asarray": lambda: asarray(read_only()),
        "from_dlpack": lambda: from_dlpack(read_only()),
    }
    for name, call in calls.items():
        with pytest.warns(ReadOnlyMemory, match=f"`{name}` shares") as warned:
            call()
        assert [each.filename for each in warned] == [__file__]


def test_a_copy_of_read_only_memory_does_not_warn() -> None:
    # Warnings are errors here.
    for result in (
        asarray(read_only(), copy=True),
        asarray(read_only(), dtype="float32"),
        asarray(read_only(), device="meta"),
        from_dlpack(read_only(), copy=True),
        from_dlpack(read_only(), device="meta"),
    ):
        assert result.shape == (2,)


def test_dlpack_copies_if_it_is_asked() -> None:
    elements = np.ones(2)
    plain = tensor([1.0, 1.0])
    for source in (elements, Exported(elements), plain):
        from_dlpack(source, copy=True).zero_()
        from_dlpack(source, device="meta")
    assert elements.tolist() == plain.tolist() == [1, 1]
    for source in (elements, Exported(elements)):
        for copy in (None, False):
            shared = from_dlpack(source, copy=copy, device="cpu")
            assert shared.data_ptr() == elements.ctypes.data
    assert from_dlpack(plain, copy=False).data_ptr() == plain.data_ptr()


def test_dlpack_does_not_copy_if_it_must_not() -> None:
    source = Exported(np.ones(2))
    for call in (from_dlpack, asarray):
        call(source, copy=False)
        assert source.asked["copy"] is False
    with pytest.raises(NotShareable) as error:
        from_dlpack(source, device="meta", copy=False)
    assert error.value.code == "CopyNeeded"
    assert "`from_dlpack(copy=False)`" in str(error.value)
    assert "on cpu, not on meta" in " ".join(str(error.value).split())
    with pytest.raises(UnfitValue, match="takes True, False or None"):
        from_dlpack(source, copy=1)  # type: ignore[arg-type]  # the mistake


def test_a_dlpack_object_is_shared() -> None:
    source = tensor([1.5, 2.5])
    assert asarray(Exported(source)).data_ptr() == source.data_ptr()


def test_a_buffer_is_shared() -> None:
    memory = bytearray(8)
    shared = frombuffer(memory, dtype=runtime.int32)
    shared[1] = 1
    assert memory == b"\0\0\0\0\1\0\0\0"
    with pytest.raises(BufferError):
        memory.append(1)


def test_a_part_of_a_buffer() -> None:
    memory = bytearray(range(8))
    assert frombuffer(memory, dtype="uint8", count=2, offset=3).tolist() == [3, 4]
    assert frombuffer(memory, dtype="uint8", offset=6).tolist() == [6, 7]
    assert frombuffer(memory, dtype="int16", count=1, offset=2).tolist() == [770]
    assert frombuffer(memory, dtype="uint8", count=-7).numel() == 8
    assert frombuffer(array.array("d", [1, 2]), dtype="float64").tolist() == [1, 2]
    assert frombuffer(np.ones((2, 2)), dtype="float64").shape == (4,)
    grown = frombuffer(bytearray(8), dtype="float32", requires_grad=True)
    assert grown.requires_grad
    assert frombuffer(bytearray(b"\x80\x3f"), dtype="bfloat16").tolist() == [1]
    assert frombuffer(bytearray(b"\0\1"), dtype="bool").tolist() == [False, True]


@pytest.mark.parametrize(
    ("size", "options", "found"),
    [
        (8, {"count": 3}, "3 elements of 4 bytes, of 8 behind the offset"),
        (7, {}, "7 bytes behind the offset, not a multiple of 4"),
        (8, {"offset": 9}, "offset=9 and count=-1, of 8 bytes"),
        (8, {"offset": 8}, "offset=8 and count=-1, of 8 bytes"),
        (8, {"offset": -1}, "offset=-1 and count=-1, of 8 bytes"),
        (8, {"count": 0}, "offset=0 and count=0, of 8 bytes"),
        (0, {}, "offset=0 and count=-1, of 0 bytes"),
        (8, {"count": 1, "offset": 2}, "offset=2"),
    ],
)
def test_elements_outside_of_the_buffer_are_refused(
    size: int, options: Any, found: str
) -> None:
    with pytest.raises(UnfitValue) as error:
        frombuffer(bytearray(size), dtype=runtime.int32, **options)
    assert f"given {found}" in " ".join(str(error.value).split())


def test_other_objects_and_dtypes_are_refused() -> None:
    with pytest.raises(UnfitValue, match="contiguous buffer"):
        frombuffer([1], dtype="uint8")
    with pytest.raises(UnfitValue, match="contiguous buffer"):
        frombuffer(np.ones((2, 2))[:, 0], dtype="float64")
    with pytest.raises(UnfitValue, match="read them as uint8"):
        frombuffer(bytearray(b"\x02"), dtype="bool")
    with pytest.raises(UnfitValue, match="complex32"):
        frombuffer(bytearray(4), dtype="complex32")
    with pytest.raises(UnfitValue, match="requires_grad=True"):
        frombuffer(bytearray(4), dtype="int32", requires_grad=True)


def test_dlpack_under_its_path() -> None:
    source = tensor([1.5, 2.5])
    capsule = dlpack.to_dlpack(source)
    shared = dlpack.from_dlpack(capsule)
    assert shared.data_ptr() == source.data_ptr()
    assert source.__dlpack_device__()[0] == dlpack.DLDeviceType.kDLCPU
    with pytest.raises(NotShareable, match=r"detach\(\)"):
        dlpack.to_dlpack(tensor([1.5], requires_grad=True))
