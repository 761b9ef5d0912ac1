"""Types of tensors by their old names: constructors, `isinstance`, `Tensor.type`."""

import pickle
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime import Size, tensor
from everyorder.runtime.errors.call import NotOffered
from everyorder.runtime.errors.tensor import UnfitValue
from everyorder.runtime.operators.bindings.typed import TensorType

NAMES = {
    "FloatTensor": "float32",
    "DoubleTensor": "float64",
    "HalfTensor": "float16",
    "BFloat16Tensor": "bfloat16",
    "ByteTensor": "uint8",
    "CharTensor": "int8",
    "ShortTensor": "int16",
    "IntTensor": "int32",
    "LongTensor": "int64",
    "BoolTensor": "bool",
}


@pytest.mark.parametrize(("name", "dtype"), NAMES.items())
def test_a_name_stands_for_a_dtype(name: str, dtype: str) -> None:
    kind: Any = getattr(runtime, name)
    assert type(kind).__name__ == TensorType.__name__
    x = kind([0, 1])
    assert x.dtype.name == dtype
    assert x.tolist() == [0, 1]
    assert x.type() == f"torch.{name}"
    assert isinstance(x, kind)
    assert not isinstance(x.to(runtime.complex64), kind)
    assert not isinstance(1, kind)
    assert pickle.loads(pickle.dumps(kind)) is kind


def test_constructors_take_sizes_and_data() -> None:
    assert runtime.FloatTensor(2, 3).shape == (2, 3)
    assert runtime.FloatTensor(Size((2, 3))).shape == (2, 3)
    assert runtime.FloatTensor(Size(())).shape == ()
    assert runtime.FloatTensor().shape == (0,)
    assert runtime.LongTensor([[1.5, 2]]).tolist() == [[1, 2]]
    assert runtime.LongTensor((1, 2)).tolist() == [1, 2]
    assert runtime.LongTensor(tensor([1.5, 2])).tolist() == [1, 2]
    assert runtime.FloatTensor(2, device="meta").device.type == "meta"


def test_other_arguments_are_refused() -> None:
    with pytest.raises(UnfitValue, match="`FloatTensor` takes sizes, or data"):
        runtime.FloatTensor(3.0)
    with pytest.raises(UnfitValue, match="`LongTensor` takes sizes, or data"):
        runtime.LongTensor([1], [2])


@pytest.mark.parametrize(
    "dtype", [runtime.int64, runtime.LongTensor, "torch.LongTensor"]
)
def test_type_converts(dtype: Any) -> None:
    x = tensor([1.5, 2.5])
    assert x.type(dtype).tolist() == [1, 2]
    assert x.type(dtype).dtype is runtime.int64
    whole = tensor([1])
    assert whole.type(dtype) is whole


def test_type_of_the_base_is_the_default() -> None:
    assert tensor([1]).type(runtime.Tensor).dtype is runtime.float32


def test_facts_of_tensors() -> None:
    assert tensor([[1, 2]]).nelement() == 2
    assert [tensor([1]).is_signed(), tensor([True]).is_signed()] == [True, False]


def test_type_names_every_device() -> None:
    assert tensor([1j]).type() == "torch.ComplexFloatTensor"
    assert runtime.ones(1, device="meta").type() == "torch.meta.FloatTensor"
    meta = tensor([1.5]).type("torch.meta.DoubleTensor")
    assert (meta.device.type, meta.dtype) == ("meta", runtime.float64)


def test_type_keeps_the_gradient() -> None:
    x = tensor([1.5], requires_grad=True)
    x.type(runtime.float64).sum().backward()
    assert x.grad is not None
    assert x.grad.dtype is runtime.float32


@pytest.mark.parametrize("dtype", ["float", "FloatTensor", "torch.SomeTensor", 3, list])
def test_another_type_is_refused(dtype: Any) -> None:
    with pytest.raises(UnfitValue, match=r'or\s"torch.LongTensor"'):
        tensor([1.5]).type(dtype)


def test_the_old_name_of_the_default_is_refused() -> None:
    with pytest.raises(NotOffered, match="call set_default_dtype"):
        runtime.set_default_tensor_type(runtime.DoubleTensor)


def test_facts_of_dtypes() -> None:
    assert [
        runtime.float16.itemsize,
        runtime.complex128.itemsize,
        runtime.bool.itemsize,
    ] == [2, 16, 1]
    for dtype in (
        runtime.uint8,
        runtime.int32,
        runtime.int64,
        runtime.float32,
        runtime.float64,
        runtime.bfloat16,
    ):
        assert dtype.itemsize == runtime.ones(1, dtype=dtype).itemsize
    assert runtime.complex64.to_real() is runtime.float32
    assert runtime.int64.to_real() is runtime.int64
    assert runtime.float64.to_complex() is runtime.complex128
    assert (
        runtime.bfloat16.to_complex()
        is runtime.complex64.to_complex()
        is runtime.complex64
    )
    assert runtime.complex64.is_signed
    assert not runtime.bool.is_signed
    with pytest.raises(TypeError, match="int64 has no complex form"):
        runtime.int64.to_complex()
