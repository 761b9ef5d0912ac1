"""where, clamp and masked_fill: promotion, broadcasting, and what is refused."""

from typing import Any

import pytest

from everyorder.runtime.errors.tensor import (
    DevicesDiffer,
    DTypeRefused,
    ShapesDoNotFit,
    TargetRefused,
    WrongOption,
)
from everyorder.runtime.operators import core
from tests.coded import code
from tests.operators.tensors import META, shown, tensor

YES_NO = tensor([True, False], "bool")


def test_where_promotes_and_broadcasts() -> None:
    found = core.where(YES_NO, tensor([[1], [2]], "int64"), 0.5)
    assert shown(found) == ("float32", [[1.0, 0.5], [2.0, 0.5]])
    assert shown(core.where(YES_NO, 1, 2)) == ("int64", [1, 2])
    meta = core.empty([2], device=META)
    mask = core.empty([3, 2], device=META, dtype=YES_NO.dtype)
    assert core.where(mask, meta, meta).shape == (3, 2)


def test_a_condition_is_bool_and_lies_with_the_rest() -> None:
    with pytest.raises(DTypeRefused) as caught:
        core.where(tensor([1, 0], "uint8"), 1, 2)
    assert caught.value.fields() == {
        "operator": "core::where",
        "argument": "condition",
        "dtype": "uint8",
        "fits": "bool",
    }
    with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
        core.where(tensor(True, "bool"), core.empty([2], device=META), 1.0)


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [(2, None, [2, 2, 3]), (None, 2, [1, 2, 2]), (2, 2.5, [2.0, 2.0, 2.5])],
)
def test_clamp_by_numbers(low: Any, high: Any, expected: list[float]) -> None:
    x = tensor([1, 2, 3], "int64")
    dtype = "float32" if isinstance(high, float) else "int64"
    assert shown(core.clamp(x, low, high)) == (dtype, expected)
    changed = tensor([1, 2, 3])
    core.clamp_(changed, low, high)
    assert changed.numpy().tolist() == expected
    out = core.empty([3], dtype=core.clamp(x, low, high).dtype)
    assert core.clamp_out(x, low, high, out=out).numpy().tolist() == expected


def test_clamp_by_tensors() -> None:
    x = tensor([1.0, 5.0])
    low, high = tensor([[2.0], [0.0]]), tensor(4.0)
    found = core.clamp_Tensor(x, low, high)
    assert found.numpy().tolist() == [[2.0, 4.0], [1.0, 4.0]]
    assert core.clamp_Tensor(x, None, high).numpy().tolist() == [1.0, 4.0]
    with pytest.raises(TargetRefused, check=code("TargetShape")):
        core.clamp__Tensor(x, low)


def test_clamp_needs_a_bound_and_an_order() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.clamp(tensor([1.0]))
    assert caught.value.fits == "a bound for at least one of them"
    with pytest.raises(DTypeRefused):
        core.clamp(tensor([1j], "complex64"), 0)


def test_masked_fill() -> None:
    x = tensor([[1, 2], [3, 4]], "int64")
    assert shown(core.masked_fill(x, YES_NO, 9.0)) == ("int64", [[9, 2], [9, 4]])
    core.masked_fill_(x, YES_NO, -1)
    assert x.numpy().tolist() == [[-1, 2], [-1, 4]]
    half = tensor([1.0, 2.0], "bfloat16")
    assert shown(core.masked_fill(half, YES_NO, float("inf"))) == (
        "bfloat16",
        [float("inf"), 2.0],
    )


def test_masked_fill_refuses() -> None:
    x = tensor([1, 2], "int8")
    for value in (300, float("nan"), 2j):
        with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
            core.masked_fill(x, YES_NO, value)
        assert caught.value.argument == "value"
    with pytest.raises(ShapesDoNotFit, check=code("ShapesRefused")):
        core.masked_fill(x, tensor([True] * 3, "bool"), 1)
    with pytest.raises(DTypeRefused):
        core.masked_fill(x, x, 1)
    with pytest.raises(TargetRefused, check=code("TargetShape")):
        core.masked_fill_(x, tensor([[True], [False]], "bool"), 1)
    assert x.numpy().tolist() == [1, 2]
