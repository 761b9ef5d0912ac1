"""`tensor` and `as_tensor`: what becomes of data of every kind."""

from enum import IntEnum
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from everyorder.runtime.errors.registration import UnknownDevice
from everyorder.runtime.errors.tensor import (
    ArithmeticRefused,
    BadSize,
    NoData,
    UnfitValue,
)
from everyorder.runtime.schema.enums import Device, DType
from everyorder.runtime.tensors import as_tensor, tensor
from tests.coded import code, coded
from tests.counting import calls_of

UnsupportedData = coded(UnfitValue, "UnsupportedData")

BF16 = np.dtype(ml_dtypes.bfloat16)


class Colour(IntEnum):
    RED = 7


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (True, "bool", ()),
        (1.5, "float32", ()),
        (1j, "complex64", ()),
        (Colour.RED, "int64", ()),
        ([1, 2], "int64", (2,)),
        ([True, 2], "int64", (2,)),
        ([1, 2.5], "float32", (2,)),
        ((1, [2][0]), "int64", (2,)),
        ([[1.0], [2.0]], "float32", (2, 1)),
        ([], "float32", (0,)),
        ([[], []], "float32", (2, 0)),
        ([np.float64(1)], "float64", (1,)),
        ([[np.float64(1), 2]], "float64", (1, 2)),
        ([np.float64(1), True, Colour.RED], "float64", (3,)),
        ([np.complex128(1j), 1.0], "complex128", (2,)),
        ([np.float64(1), 1j], "complex128", (2,)),
        ([np.float32(1), 2.0], "float32", (2,)),
        ([np.float32(1), np.int64(2)], "float32", (2,)),
        ([np.int8(1), True], "int8", (2,)),
        ([np.int32(1)], "int32", (1,)),
        ([np.float16(1)], "float16", (1,)),
        ([np.uint16(5), 3], "int64", (2,)),
        ([[np.uint32(5)], [np.int8(3)]], "int64", (2, 1)),
        ([np.uint64(5), 3], "int64", (2,)),
        ([np.uint16(5), 3.0], "float32", (2,)),
        ([np.uint32(5), np.float64(3)], "float64", (2,)),
        ([np.uint16(5), np.ones((), np.int8)], "int64", (2,)),
        (np.uint16(5), "int64", ()),
        (np.float64(1), "float64", ()),
        (np.ones((2, 3)), "float64", (2, 3)),
        (np.ones(2, BF16), "bfloat16", (2,)),
        (np.ones(2, ">f4"), "float32", (2,)),
        ([np.ones(2, np.float32), [1.0, 2.0]], "float32", (2, 2)),
        ([np.ones(2, np.int8), [1, 2]], "int64", (2, 2)),
        (range(3), "int64", (3,)),
        (b"", "UnsupportedData", ()),
    ],
)
def test_data_decides_the_dtype(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    if dtype == "UnsupportedData":
        with pytest.raises(UnsupportedData):
            tensor(data)
        return
    made = tensor(data)
    assert str(made.dtype) == dtype
    assert made.shape == made.numpy().shape == shape
    assert made.ndim == len(shape)
    form = BF16 if dtype == "bfloat16" else np.dtype(dtype)
    assert made.numpy().dtype == form
    np.testing.assert_array_equal(made.numpy(), np.asarray(data))


@pytest.mark.parametrize("dtype", ["float64", "double", DType.named("float64")])
def test_a_given_dtype_wins(dtype: DType | str) -> None:
    made = tensor([1, 2], dtype=dtype)
    assert made.dtype is DType.named("float64")
    assert made.numpy().dtype == np.float64


@pytest.mark.parametrize("data", [1.5, [1.0, 2.0], [1, 2.0], [[1.0], [2.0]]])
def test_the_dtype_of_plain_numbers_costs_no_search(data: Any) -> None:
    for dtype in (None, "float32"):
        tensor(data, dtype=dtype)
    by_default = calls_of(lambda: tensor(data))
    assert by_default < calls_of(lambda: tensor(data, dtype="float32"))


@pytest.mark.parametrize(
    ("data", "dtype", "found"),
    [
        ([1.9, -1.9], "int32", [1, -1]),
        ([0.0, 0.5, 2], "bool", [False, True, True]),
        ([1j, 0j], "bool", [True, False]),
        ([1e6, -1e6], "float16", [float("inf"), float("-inf")]),
        ([3.14159], "bfloat16", [3.140625]),
        ([2**70], "float64", [2.0**70]),
        ([np.float16(1), 70000], None, [1.0, float("inf")]),
        ([70000], "float16", [float("inf")]),
        ([2**53 + 1], "int64", [2**53 + 1]),
        ([np.uint64(2**53 + 1), 3], None, [2**53 + 1, 3]),
        ([2**63 - 1, -(2**63)], None, [2**63 - 1, -(2**63)]),
        ([], "int8", []),
        (np.array([300, -1]), "uint8", [44, 255]),
        (np.array([1 + 2j]), "float64", [1.0]),
        (np.array([1j]), "bool", [True]),
    ],
)
def test_numbers_are_converted(data: Any, dtype: str | None, found: list[Any]) -> None:
    assert tensor(data, dtype=dtype).tolist() == found


@pytest.mark.parametrize(
    "data",
    [
        *(1j, np.complex64(1j), np.complex128(1j)),
        *([1.0, 2j], [np.complex64(1j)], [tensor(1j), 2.0], [np.array(1j)]),
    ],
)
@pytest.mark.parametrize("dtype", ["float64", "int8", "bfloat16"])
def test_complex_numbers_are_no_real_ones(data: Any, dtype: str) -> None:
    for make in (tensor, as_tensor):
        with pytest.raises(UnfitValue, check=code("UnfitValue")) as caught:
            make(data, dtype=dtype)
        assert caught.value.asked == f"dtype={dtype!r}"


@pytest.mark.parametrize(
    ("data", "dtype", "value", "held"),
    [
        (2**63, None, str(2**63), "int64"),
        ([1, 2**63], None, str(2**63), "int64"),
        ([-1, 2**63], None, str(2**63), "int64"),
        ([[0], [-(2**63) - 1]], None, str(-(2**63) - 1), "int64"),
        (10**999, None, "3319 bits", "int64"),
        (300, "uint8", "300", "uint8"),
        (np.uint16(300), "uint8", "300", "uint8"),
        ([np.uint64(2**63), 3], None, str(2**63), "int64"),
        ([0, -1], "uint8", "-1", "uint8"),
        ([1.0, 1e30], "int64", "1e+30", "int64"),
        ([float("nan")], "int8", "nan", "int8"),
        ([2**64], "uint8", str(2**64), "uint8"),
        (10**400, "float64", f"{(10**400).bit_length()} bits", "float64"),
    ],
)
def test_what_does_not_fit_is_named(
    data: Any, dtype: str | None, value: str, held: str
) -> None:
    with pytest.raises(ArithmeticRefused, check=code("NumberTooLarge")) as caught:
        tensor(data, dtype=dtype)
    assert (caught.value.value, caught.value.dtype) == (value, held)


def test_lists_of_tensors() -> None:
    rows = [tensor([1.0, 2.0]), tensor([3, 4])]
    assert tensor(rows).tolist() == [[1.0, 2.0], [3.0, 4.0]]
    assert str(tensor(rows).dtype) == "float32"
    low = [tensor([1.5], dtype="bfloat16"), tensor([2.5], dtype="bfloat16")]
    assert (str(tensor(low).dtype), tensor(low).tolist()) == (
        "bfloat16",
        [[1.5], [2.5]],
    )
    assert tensor([tensor(1.0, requires_grad=True), 2]).tolist() == [1.0, 2.0]
    assert tensor(rows, dtype="int8").tolist() == [[1, 2], [3, 4]]
    with pytest.raises(NoData, check=code("NoData")):
        tensor([tensor(1.0, device="meta")])
    with pytest.raises(UnsupportedData):
        tensor([tensor([1.0]), ["a"]])


def test_a_tensor_of_a_tensor_is_a_copy_of_its_dtype() -> None:
    first = tensor(np.ones(2))
    second = tensor(first)
    assert second.dtype is first.dtype
    second.numpy()[0] = 5
    assert first.numpy().tolist() == [1.0, 1.0]
    assert str(tensor(first, dtype="int8").dtype) == "int8"


def test_tensor_copies() -> None:
    data = np.zeros(2)
    made = tensor(data)
    data[0] = 1
    assert made.numpy().tolist() == [0.0, 0.0]
    assert tensor(np.arange(6).reshape(2, 3).T).tolist() == [[0, 3], [1, 4], [2, 5]]
    assert tensor(np.broadcast_to(1, (2, 2))).tolist() == [[1, 1], [1, 1]]


def test_devices() -> None:
    assert tensor(1).device is Device("cpu")
    assert tensor(1, device="cpu:0").device is Device("cpu")
    assert tensor(1, device=Device("hip", 1)).device is Device("hip", 1)
    assert tensor([1], device=None).device is Device("cpu")
    assert tensor(tensor(1, device=Device("hip", 1)), device=None).device == Device(
        "hip", 1
    )
    meta = tensor([1.0], device="meta")
    assert tensor(meta, device=None).is_meta
    again = tensor(meta, device="meta", dtype="int8")
    assert (again.shape, str(again.dtype), again.is_meta) == ((1,), "int8", True)
    with pytest.raises(NoData, check=code("NoData")):
        tensor(meta)
    with pytest.raises(UnknownDevice):
        tensor(1, device="foo")


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_only_floats_have_gradients(dtype: str) -> None:
    with pytest.raises(UnfitValue, check=code("NoGradient")) as caught:
        tensor([1], dtype=dtype, requires_grad=True)
    assert caught.value.dtype == dtype
    assert tensor([1j], requires_grad=True).requires_grad
    assert not tensor([1.0]).requires_grad


@pytest.mark.parametrize(
    ("data", "dtype", "found"),
    [
        ("a", None, "str"),
        (b"a", None, "bytes"),
        (["a"], None, "str"),
        (["1"], "float32", "str"),
        ([None], None, "object"),
        ([None], "float32", "object"),
        ([1, None], None, "object"),
        (np.array([None]), None, "object"),
        (np.ones(1, np.uint16), None, "uint16"),
        (np.ones(1, np.longdouble), None, np.dtype(np.longdouble).name),
        ([1], "flaot32", "flaot32"),
        ([1], DType.named("qint8"), "qint8"),
    ],
)
def test_elements_that_tensors_lack(data: Any, dtype: Any, found: str) -> None:
    with pytest.raises(UnsupportedData) as caught:
        tensor(data, dtype=dtype)
    assert caught.value.dtype == found


@pytest.mark.parametrize(
    ("data", "depth", "lengths"),
    [
        ([[1], [1, 2]], 1, (1, 2)),
        ([[[1]], [[1], [2]]], 1, (1, 2)),
        ([[[1], [2, 3]]], 2, (1, 2)),
        ([1, [2]], 1, (0, 1)),
    ],
)
def test_uneven_lists(data: Any, depth: int, lengths: tuple[int, ...]) -> None:
    with pytest.raises(BadSize, check=code("UnevenData")) as caught:
        tensor(data)
    assert caught.value.fields() == {"depth": depth, "lengths": lengths}


def test_as_tensor_shares_what_it_can() -> None:
    held = tensor([1.0, 2.0])
    assert as_tensor(held) is held
    assert as_tensor(held, dtype="float32", device="cpu") is held
    assert as_tensor(held, dtype="float64").tolist() == [1.0, 2.0]
    moved = as_tensor(held, device="hip")
    assert (moved.device, moved.tolist()) == (Device("hip"), [1.0, 2.0])
    array = np.arange(6.0).reshape(2, 3).T
    shared = as_tensor(array)
    array[0, 1] = 9
    assert shared.tolist() == [[0.0, 9.0], [1.0, 4.0], [2.0, 5.0]]
    for other in (array[::-1], np.ones(2, ">f8")):
        copy = as_tensor(other)
        assert copy.tolist() == other.tolist()
        assert not np.shares_memory(copy.numpy(), other)
    assert as_tensor([1, 2]).tolist() == [1, 2]
    assert as_tensor(array, device="hip").device is Device("hip")
