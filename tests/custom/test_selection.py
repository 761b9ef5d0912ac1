# What is done with tensors gives Any.
# mypy: disable-error-code="no-any-return, arg-type"
"""Operators without tensors: the `device` argument chooses (spec 5.10)."""

from typing import Any

import pytest

from runtime import Device, Tensor, ops, tensor
from runtime.errors.call import MissingKernel
from runtime.errors.custom_op import MissingFake, NoDeviceArgument
from runtime.library import custom_op
from tests.custom.functions import repeatedly


def made_on(n: int, device: Device) -> Tensor:
    made: Tensor = ops.core.zeros([n], device=device)
    return made


def perhaps_on(device: Device | None = None) -> Tensor:
    return ops.core.ones([1])


def test_the_device_finds_its_kernel() -> None:
    with custom_op("mine::f", made_on, mutates_args=(), device_types="cpu") as made:
        assert made.handle.has_kernel("BackendSelect")
        for result in repeatedly(lambda: made(2, "cpu")):
            assert result.tolist() == [0.0, 0.0]
        made.register_fake(made_on)
        for result in repeatedly(lambda: made(2, device=Device.parse("meta"))):
            assert (result.device.type, result.shape) == ("meta", (2,))


def test_a_device_without_kernel() -> None:
    with custom_op("mine::f", made_on, mutates_args=(), device_types="cpu") as made:
        for _ in range(12):
            with pytest.raises(MissingKernel) as refused:
                made(2, "cuda")
            assert refused.value.key == "CUDA"
        with pytest.raises(MissingFake):
            made(2, "meta")


def test_no_device_is_the_cpu() -> None:
    with custom_op("mine::f", perhaps_on, mutates_args=(), device_types="cpu") as made:
        assert made().tolist() == [1.0]


def test_a_kernel_for_a_device_comes_later() -> None:
    with custom_op("mine::f", made_on, mutates_args=()) as made:
        assert made(1, "cpu").tolist() == [0.0]
        assert not made.handle.has_kernel("BackendSelect")

        @made.register_kernel("cpu")
        def ones(n: int, device: Device) -> Any:
            return ops.core.ones([n])

        assert made.handle.has_kernel("BackendSelect")
        assert made(1, "cpu").tolist() == [1.0]
        # A second device needs no second selection.
        made.register_kernel("cuda", made_on)
        assert made.handle.dump_state().count("BackendSelect") == 1


def test_what_says_no_device() -> None:
    def sized(n: int) -> Tensor:
        return ops.core.ones([n])

    with custom_op("mine::f", sized, mutates_args=()) as made:
        assert made(1).tolist() == [1.0]
        with pytest.raises(NoDeviceArgument):
            made.register_kernel("cpu", sized)


def test_tensors_need_no_selection() -> None:
    def moved(x: Tensor, device: Device) -> Tensor:
        return x * 2

    with custom_op("mine::f", moved, mutates_args=(), device_types="cpu") as made:
        assert not made.handle.has_kernel("BackendSelect")
        assert made(tensor([1.0]), "cpu").tolist() == [2.0]
