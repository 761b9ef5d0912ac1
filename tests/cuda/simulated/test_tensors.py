"""Tensors on the device through operators and autograd, as people use them."""

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import ArithmeticRefused
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code


def on_device(data: object, *, requires_grad: bool = False) -> Tensor:
    return runtime.tensor(data, device="cuda", requires_grad=requires_grad)


def test_arithmetic_promotes_and_broadcasts() -> None:
    x, y = on_device([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), on_device([1, 2, 3])
    found = (x + y) * 2 - 1
    assert (str(found.device), found.dtype.name) == ("cuda:0", "float32")
    assert found.to("cpu").tolist() == [[3.0, 7.0, 11.0], [9.0, 13.0, 17.0]]
    assert (y / 2).to("cpu").tolist() == [0.5, 1.0, 1.5]
    assert (y > 1).any().item() is True


def test_it_prints_its_elements() -> None:
    assert repr(on_device([1, 2])) == "tensor([1, 2], device='cuda:0')"


def test_views_share_memory() -> None:
    x = on_device([[1.0, 2.0], [3.0, 4.0]])
    x.t()[0].mul_(10.0)
    assert x.to("cpu").tolist() == [[10.0, 2.0], [30.0, 4.0]]


def test_a_turned_tensor_is_copied_as_it_was() -> None:
    data = np.arange(36, dtype=np.float32).reshape(6, 6)
    x = on_device(data)
    x.copy_(x.t())
    assert x.to("cpu").tolist() == data.T.tolist()


def test_sixteen_bits_compute_in_single_precision() -> None:
    x = on_device([1.0, 2.0, 3.0]).to(dtype=runtime.bfloat16)
    found = (x * 1.5).sum()
    assert (found.dtype.name, found.item()) == ("bfloat16", 9.0)


def test_gradients() -> None:
    data = np.array([[0.5, -1.0], [2.0, 0.25]], np.float32)
    x = on_device(data, requires_grad=True)
    (x.tanh() * x).sum().backward()
    expected = np.tanh(data) + data * (1 - np.tanh(data) ** 2)
    assert x.grad is not None
    np.testing.assert_allclose(x.grad.to("cpu").numpy(), expected, rtol=1e-5)


def test_a_refused_operation_leaves_its_operands_alone() -> None:
    x = on_device([4, 6])
    with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")):
        x.remainder_(on_device([2, 0]))
    assert x.to("cpu").tolist() == [4, 6]


def test_devices_are_not_mixed() -> None:
    with pytest.raises(runtime.errors.EveryorderError):
        on_device([1.0]) + runtime.tensor([1.0, 2.0])
