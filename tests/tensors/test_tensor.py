"""The small tensor: making it, its keys, its data, and how it prints."""

import subprocess
import sys
from collections.abc import Callable
from typing import Any
from weakref import ref

import numpy as np
import pytest

from runtime.errors.key import UnknownDevice
from runtime.errors.tensor import NoData, NoGradient, NotOneElement, UnsupportedData
from runtime.keys import DispatchKey, KeySet
from runtime.schema.binding import bind
from runtime.schema.codes import DType
from runtime.schema.device import Device
from runtime.schema.infer import infer_schema_of
from runtime.schema.parser import parse_schema
from runtime.tensors import Tensor, tensor


@pytest.mark.parametrize(
    ("data", "dtype", "shape"),
    [
        (1, "int64", ()),
        (True, "bool", ()),
        (1.5, "float32", ()),
        (1j, "complex64", ()),
        ([1, 2], "int64", (2,)),
        ([[1.0], [2.0]], "float32", (2, 1)),
        ([], "float32", (0,)),
        ([np.float64(1)], "float32", (1,)),
        (np.float64(1), "float64", ()),
        (np.ones((2, 3)), "float64", (2, 3)),
        (np.ones(2, np.uint16), "uint16", (2,)),
    ],
)
def test_data_decides_the_dtype(data: Any, dtype: str, shape: tuple[int, ...]) -> None:
    made = tensor(data)
    assert str(made.dtype) == dtype
    assert made.shape == made.numpy().shape == shape
    assert made.ndim == len(shape)
    assert made.numpy().dtype == np.dtype(dtype)
    np.testing.assert_array_equal(made.numpy(), np.asarray(data))


@pytest.mark.parametrize("dtype", ["float64", "double", DType.named("float64")])
def test_a_given_dtype_wins(dtype: DType | str) -> None:
    made = tensor([1, 2], dtype=dtype)
    assert made.dtype == DType.named("float64")
    assert made.numpy().dtype == np.float64


def test_a_tensor_of_a_tensor_is_a_copy_of_its_dtype() -> None:
    first = tensor(np.ones(2))
    second = tensor(first)
    assert second.dtype == first.dtype
    second.numpy()[0] = 5
    assert first.numpy().tolist() == [1.0, 1.0]


def test_tensor_copies_and_numpy_shares() -> None:
    data = np.zeros(2)
    made = tensor(data)
    data[0] = 1
    assert made.numpy().tolist() == [0.0, 0.0]
    made.numpy()[1] = 2
    assert made.numpy().tolist() == [0.0, 2.0]
    assert np.asarray(made) is made.numpy()
    assert np.array(made) is not made.numpy()
    assert np.asarray(made, dtype=np.int64).tolist() == [0, 2]


def test_keys_come_from_the_device() -> None:
    made = tensor([1.0])
    assert repr(made.keyset) == "KeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert type(made.key_bits) is int
    assert made.key_bits == made.keyset.bits
    assert tensor([1.0], requires_grad=True).keyset == made.keyset
    assert tensor([1.0], device="cuda:1").keyset == tensor([1.0], device="cuda").keyset
    assert made.device == Device("cpu")
    assert tensor(1, device=Device("cuda", 1)).device == Device("cuda", 1)


def test_other_keys_make_another_tensor_on_the_same_data() -> None:
    made = tensor([1.0], requires_grad=True)
    keys = KeySet(DispatchKey.SparseCPU, DispatchKey.AutogradCPU)
    other = made.with_keyset(keys)
    assert other.keyset == keys
    assert repr(made.keyset) == "KeySet(CPU, ADInplaceOrView, AutogradCPU, AutocastCPU)"
    assert other.numpy() is made.numpy()
    assert other.requires_grad
    assert (other.shape, other.dtype, other.device) == (
        made.shape,
        made.dtype,
        made.device,
    )


def test_a_meta_tensor_has_everything_but_data() -> None:
    made = tensor([[1.0, 2.0]], device="meta")
    assert (made.shape, str(made.dtype), made.numel()) == ((1, 2), "float32", 2)
    asks: dict[str, Callable[[], object]] = {
        "numpy()": made.numpy,
        "item()": made.item,
        "__array__()": made.__array__,
    }
    for asked, ask in asks.items():
        with pytest.raises(NoData) as caught:
            ask()
        assert caught.value.fields() == {
            "device": "meta",
            "dtype": "float32",
            "shape": (1, 2),
            "asked": asked,
        }
    assert repr(made) == "tensor(..., shape=(1, 2), dtype=float32, device='meta')"


def test_item_reads_one_element() -> None:
    assert tensor([[2.5]]).item() == 2.5
    assert type(tensor(3).item()) is int
    with pytest.raises(NotOneElement) as caught:
        tensor([1, 2]).item()
    assert caught.value.fields() == {"shape": (2,), "elements": 2}


def test_it_prints_as_it_is_made() -> None:
    assert repr(tensor([1.0, 2.5])) == "tensor([1. , 2.5], dtype=float32)"
    assert repr(tensor([[1], [2]])) == "tensor([[1],\n        [2]], dtype=int64)"
    made = tensor(1.5, device="cuda:1", requires_grad=True)
    assert repr(made) == (
        "tensor(1.5, dtype=float32, device='cuda:1', requires_grad=True)"
    )


@pytest.mark.parametrize("dtype", ["int64", "bool"])
def test_only_floats_have_gradients(dtype: str) -> None:
    with pytest.raises(NoGradient) as caught:
        tensor([1], dtype=dtype, requires_grad=True)
    assert caught.value.dtype == dtype
    assert tensor([1j], requires_grad=True).requires_grad
    assert not tensor([1.0]).requires_grad


@pytest.mark.parametrize(
    ("data", "dtype", "found"),
    [
        (["a"], None, "str32"),
        ([None], None, "object"),
        ([1], "bfloat16", "bfloat16"),
        ([1], "flaot32", "flaot32"),
        ([1], DType.named("qint8"), "qint8"),
    ],
)
def test_elements_that_numpy_lacks(data: Any, dtype: Any, found: str) -> None:
    with pytest.raises(UnsupportedData) as caught:
        tensor(data, dtype=dtype)
    assert caught.value.dtype == found


def test_bad_data_and_devices() -> None:
    with pytest.raises(ValueError, match="inhomogeneous"):
        tensor([[1], [1, 2]])
    with pytest.raises(UnknownDevice):
        tensor(1, device="foo")


def test_schemas_take_it() -> None:
    schema = parse_schema("t::f(Tensor x, int k, float y) -> Tensor")
    one = tensor([3.5])
    assert bind(schema, (one, one, one), {}) == [one, 3, 3.5]

    def kernel(x: Tensor, d: Device, t: DType) -> Tensor:
        return x

    inferred = infer_schema_of(kernel)
    assert str(inferred) == "(Tensor _0, Device _1, ScalarType _2) -> Tensor _0"


def test_it_can_be_referred_to_weakly() -> None:
    made = tensor(1)
    seen = ref(made)
    assert seen() is made
    del made
    assert seen() is None


def test_numpy_waits_for_the_first_tensor() -> None:
    code = "import sys, runtime.tensors; print('numpy' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"
