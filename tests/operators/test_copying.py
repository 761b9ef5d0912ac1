"""Copying: into tensors, between dtypes and devices, and out to Python."""

from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import (
    BadSize,
    DevicesDiffer,
    NoData,
    ShapesDoNotFit,
    TargetRefused,
    WrongOption,
)
from everyorder.runtime.operators import core, creation
from everyorder.runtime.schema.enums import Device
from tests.autograd.made import grad_of
from tests.coded import code
from tests.operators.tensors import LETTERS, META, of_letter, shown, tensor

FOREIGN = Device("privateuseone")


@pytest.mark.parametrize("source", LETTERS)
@pytest.mark.parametrize("target", LETTERS)
def test_every_dtype_to_every_other(source: str, target: str) -> None:
    x = of_letter(source, [0, 1, 1])
    into = core.copy_(core.empty([3], dtype=LETTERS[target]), x)
    other = core._to_copy(x, dtype=LETTERS[target])
    same = core.to(x, dtype=LETTERS[target])
    for found in (into, other, same):
        assert found.dtype is LETTERS[target]
        assert found.numpy().astype("complex64").tolist() == [0, 1, 1]
    assert (same is x) == (source == target)


def test_conversion_cuts_off() -> None:
    x = tensor([1.9, -1.9])
    assert shown(core.to(x, dtype=LETTERS["l"])) == ("int64", [1, -1])
    imaginary = tensor([1 + 2j], "complex64")
    assert shown(core.to(imaginary, dtype=LETTERS["f"])) == ("float32", [1.0])


def test_copying_broadcasts() -> None:
    target = core.zeros([2, 3])
    assert core.copy_(target, tensor([1, 2, 3], "int64")) is target
    assert target.numpy().tolist() == [[1, 2, 3], [1, 2, 3]]
    core.copy_(target, tensor(7.0))
    assert target.numpy().tolist() == [[7] * 3] * 2
    assert core.copy_(target, target) is target
    for shape in ((2,), (1, 2, 3)):
        with pytest.raises(ShapesDoNotFit, check=code("ShapesRefused")) as caught:
            core.copy_(target, core.ones(shape))
        assert caught.value.shapes == ((2, 3), shape)


def test_copying_between_views_of_one_storage() -> None:
    base = tensor([1, 2, 3, 4, 5], "int64")
    core.copy_(core.slice(base, 0, 1, 5), core.slice(base, 0, 0, 4))
    assert base.numpy().tolist() == [1, 1, 2, 3, 4]
    square = tensor([[1, 2], [3, 4]], "int64")
    core.copy_(square, core.transpose(square, 0, 1))
    assert square.numpy().tolist() == [[1, 3], [2, 4]]


def test_targets_that_overlap_themselves() -> None:
    wide = core.expand(tensor([[1.0], [2.0]]), [2, 3])
    calls: list[Any] = [
        lambda: core.copy_(wide, core.ones([2, 3])),
        lambda: core.add_(wide, 1.0),
        lambda: core.exp_out(core.ones([2, 3]), out=wide),
    ]
    for call in calls:
        with pytest.raises(TargetRefused, check=code("TargetOverlaps")) as caught:
            call()
        assert (caught.value.shape, caught.value.strides) == ((2, 3), (1, 0))
    assert str(caught.value) == (
        "`core::exp.out` cannot write to `out`: several of its elements share one "
        "place\nin memory.\n"
        "  shape: (2, 3), strides (1, 0)\n"
        "  to do: write to its `.clone()`"
    )
    assert wide.numpy().tolist() == [[1] * 3, [2] * 3]


def test_clone_lies_as_its_source_and_apart() -> None:
    base = tensor([[1, 2], [3, 4]])
    turned = core.transpose(base, 0, 1)
    copy = core.clone(turned)
    core.zero_(base)
    assert copy.numpy().tolist() == [[1, 3], [2, 4]]
    assert copy.strides == (1, 2)
    out = core.empty([0])
    assert core.clone_out(copy, out=out).numpy().tolist() == [[1, 3], [2, 4]]


def test_contiguous_copies_only_where_it_must() -> None:
    base = tensor([[1, 2], [3, 4]])
    assert core.contiguous(base) is base
    found = core.contiguous(core.transpose(base, 0, 1))
    assert found.strides == (2, 1)
    assert found.numpy().tolist() == [[1, 3], [2, 4]]


def test_to_returns_the_tensor_itself_where_it_can() -> None:
    x = tensor([1.0])
    assert core.to(x) is x
    assert core.to(x, dtype=x.dtype, device="cpu") is x
    assert core.to(x, device="cpu:0") is x
    copy = core.to(x, copy=True)
    assert copy is not x
    assert shown(copy) == ("float32", [1.0])


def test_devices_without_kernels_keep_their_elements_on_the_host() -> None:
    x = core.transpose(tensor([[1, 2], [3, 4]]), 0, 1)
    there = core._to_copy(x, device=FOREIGN)
    assert (there.device, there.shape) == (FOREIGN, (2, 2))
    core.fill_(x, 0.0)
    back = core._to_copy(there, device="cpu", dtype=LETTERS["l"])
    assert shown(back) == ("int64", [[1, 3], [2, 4]])
    whole = core._to_copy(back, device=FOREIGN, dtype=LETTERS["c"])
    assert core._to_copy(whole, device="cpu").numpy().tolist() == [[1, 3], [2, 4]]
    core.copy_(x, there)
    assert x.numpy().tolist() == [[1, 3], [2, 4]]


def test_copies_may_be_pinned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "pinned_array", np.empty)
    found = core._to_copy(tensor([1.5]), dtype=LETTERS["d"], pin_memory=True)
    assert shown(found) == ("float64", [1.5])
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core._to_copy(tensor([1.5]), device="meta", pin_memory=True)
    assert caught.value.operator == "core::_to_copy"


def test_meta_has_nothing_to_copy() -> None:
    there = core._to_copy(tensor([1.0]), device="meta", dtype=LETTERS["d"])
    assert (there.device, there.dtype) == (META, LETTERS["d"])
    assert core.copy_(there, tensor([2.0])) is there
    assert core._to_copy(there).device is META
    calls: list[Any] = [
        lambda: core.copy_(tensor([1.0]), there),
        lambda: core._to_copy(there, device="cpu"),
        lambda: core.equal(there, there),
    ]
    for call in calls:
        with pytest.raises(NoData, check=code("NoDataToRead")):
            call()
    with pytest.raises(NoData, check=code("NoDataToRead")) as caught:
        core.to(there, device="cpu")
    assert str(caught.value) == (
        "`core::_to_copy` copies elements, but a tensor on meta holds no elements.\n"
        "  to do: call it with a tensor on a device that holds data"
    )


@pytest.mark.parametrize("letter", LETTERS)
def test_fill_and_zero(letter: str) -> None:
    x = of_letter(letter, [[1, 0], [1, 1]])
    assert core.fill_(core.select(x, 1, 1), 1) is not x
    assert x.numpy().astype("complex64").tolist() == [[1, 1], [1, 1]]
    assert core.zero_(x) is x
    assert x.numpy().astype("complex64").tolist() == [[0, 0], [0, 0]]


def test_fill_of_what_elements_cannot_take() -> None:
    x = tensor([5], "int8")
    for value in (128, float("inf"), 1j):
        with pytest.raises(WrongOption, check=code("WrongOption")):
            core.fill_(x, value)
    assert core.fill_(x, -1.9).numpy().tolist() == [-1]
    meta = core.empty([2], device="meta")
    assert core.fill_(meta, 3) is meta
    assert core.zero_(meta) is meta


def test_equal() -> None:
    x = tensor([1.0, 2.0])
    assert core.equal(x, tensor([1, 2], "int64")) is True
    assert core.equal(x, tensor([1.0, 3.0])) is False
    assert core.equal(x, tensor([[1.0, 2.0]])) is False
    assert core.equal(tensor([np.nan]), tensor([np.nan])) is False
    assert core.equal(core.empty([0]), core.empty([0])) is True
    with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
        core.equal(x, core._to_copy(x, device=FOREIGN))


def test_one_element_to_python() -> None:
    assert core._local_scalar_dense(tensor([[3]], "int64")) == 3
    with pytest.raises(BadSize, check=code("NotOneElement")):
        core._local_scalar_dense(tensor([1.0, 2.0]))


def test_fill_by_a_tensor_without_dimensions() -> None:
    x = runtime.zeros(2, 2, requires_grad=True)
    value = runtime.tensor(2.5, dtype=runtime.float64, requires_grad=True)
    y = x * 1
    assert y.fill_(value) is y
    assert y.tolist() == [[2.5, 2.5], [2.5, 2.5]]
    y.sum().backward()
    assert value.grad == 4.0
    assert grad_of(x).tolist() == [[0.0, 0.0], [0.0, 0.0]]
    whole = runtime.zeros(2, dtype=runtime.int64)
    assert whole[1:].fill_(runtime.tensor(2.7)).tolist() == [2]
    assert whole.tolist() == [0, 2]


@pytest.mark.parametrize("value", [runtime.ones(1), runtime.tensor(1j)])
def test_fill_by_another_tensor_is_refused(value: Any) -> None:
    x = runtime.zeros(2)
    with pytest.raises(WrongOption, match=r"`core::fill_.Tensor` does not take"):
        x.fill_(value)
    assert (x.tolist(), x._version) == ([0.0, 0.0], 0)
