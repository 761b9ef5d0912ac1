# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""`register_autocast`."""

from typing import Any

import pytest

from runtime import DType, Tensor, autocast, tensor
from runtime.errors.autograd import AutocastRefused
from runtime.library import custom_op, register_autocast
from tests.custom.functions import double, repeatedly


def seen_by(x: Tensor, others: list[Tensor], n: int) -> Tensor:
    SEEN.append((x.dtype.name, [each.dtype.name for each in others]))
    return x * 2


SEEN: list[Any] = []


def test_floating_tensors_are_cast() -> None:
    SEEN.clear()
    with custom_op("mine::f", seen_by, mutates_args=()) as made:
        made.register_autocast("cpu", "bfloat16")
        x = tensor([1.0])
        given = [
            x,
            tensor([1]),
            tensor([1.0], dtype="float64"),
            tensor([1.0], dtype="bfloat16"),
        ]
        assert made(x, given, 1).dtype.name == "float32"
        with autocast("cpu"):
            for result in repeatedly(lambda: made(x, given, 1)):
                assert result.dtype.name == "bfloat16"
    kinds = ["int64", "float64", "bfloat16"]
    assert SEEN[0] == ("float32", ["float32", *kinds])
    assert SEEN[-1] == ("bfloat16", ["bfloat16", *kinds])


def test_the_gradient_comes_back_in_the_argument_s_dtype() -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        made.register_autocast("cpu", DType.named("float16"))
        made.register_autograd(lambda ctx, g: g * 2)
        x = tensor([1.0], requires_grad=True)
        with autocast("cpu"):
            y = made(x)
        assert y.dtype.name == "float16"
        y.float().sum().backward()
        assert x.grad is not None
        assert (x.grad.dtype.name, x.grad.tolist()) == ("float32", [2.0])


def test_what_it_calls_runs_without_autocast() -> None:
    def product(x: Tensor) -> Tensor:
        return x @ x

    with custom_op("mine::f", product, mutates_args=()) as made:
        register_autocast(made, "cpu", "float")
        with autocast("cpu"):
            assert made(tensor([[1.0]])).dtype.name == "float32"
            assert (tensor([[1.0]]) @ tensor([[1.0]])).dtype.name == "bfloat16"


def test_a_number_stays_a_number() -> None:
    from runtime.custom.schema_kernels import _cast
    from runtime.tensors.making import wrap_number

    number = wrap_number(1.5)
    assert _cast(number, "cpu", DType.named("float16")) is number


@pytest.mark.parametrize(
    ("device", "dtype"), [("meta", "float16"), ("cpu", "int64"), ("cpu", "float64")]
)
def test_what_is_not_served(device: str, dtype: str) -> None:
    with custom_op("mine::f", double, mutates_args=()) as made:
        with pytest.raises(AutocastRefused) as refused:
            made.register_autocast(device, dtype)
        assert refused.value.fields() == {
            "device": device,
            "dtype": dtype,
            "known": ("cpu and cuda", "float16, bfloat16, float32"),
        }
