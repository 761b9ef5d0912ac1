"""Operators of two tensors: promotion, factors, rounding, and what is refused.

What they compute is said by `tests.opinfo`.
"""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.errors.tensor import (
    ArithmeticRefused,
    DevicesDiffer,
    ShapesDoNotFit,
    TargetRefused,
    WrongOption,
)
from everyorder.runtime.operators import core
from everyorder.runtime.tensors.tensor import Tensor
from tests.coded import code
from tests.operators.tensors import META, of_letter, shown, tensor

# left, right, dtype of the sum: torch's three categories
PROMOTIONS = [
    (tensor([1], "int32"), tensor([1], "int64"), "int64"),
    (tensor([1], "int64"), tensor([1.0], "float16"), "float16"),
    (tensor([1.0], "float16"), tensor([1.0], "bfloat16"), "float32"),
    (tensor([1.0]), tensor(1.0, "float64"), "float32"),
    (tensor([1], "int32"), tensor(1.0, "float64"), "float64"),
    (tensor([1], "uint8"), tensor([1], "int8"), "int16"),
    (tensor([1], "int8"), 1000, "int8"),
    (tensor([1], "int8"), 1.5, "float32"),
    (tensor([1.0], "bfloat16"), 1.5, "bfloat16"),
    (tensor([1.0], "float64"), 1j, "complex128"),
    (tensor([True], "bool"), 1, "int64"),
    (2, 3, "int64"),
    (2, 3.5, "float32"),
    (2.5, 3.5, "float32"),
    (tensor(1.0, "float64"), 2.5, "float64"),
]


@pytest.mark.parametrize(("a", "b", "dtype"), PROMOTIONS)
def test_promotion(a: Any, b: Any, dtype: str) -> None:
    assert core.add(a, b).dtype.name == dtype
    assert core.add(b, a).dtype.name == dtype


def test_numbers_are_operands() -> None:
    assert shown(core.add(tensor([1, 2], "int64"), 3)) == ("int64", [4, 5])
    assert shown(core.sub(10, tensor([1, 2], "int64"))) == ("int64", [9, 8])
    assert shown(core.mul(2, 3)) == ("int64", 6)
    assert shown(core.add(tensor([250], "uint8"), 300)) == ("uint8", [38])
    assert shown(core.div(tensor([1.0], "bfloat16"), 4)) == ("bfloat16", [0.25])


NUMPY: dict[str, Any] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.true_divide,
    "maximum": np.maximum,
    "lt": np.less,
}


@pytest.mark.parametrize("name", NUMPY)
def test_the_short_way_with_a_number(name: str) -> None:
    x = np.array([1.0, 2.0, -3.0], "float32")
    for number in (2, 2.5, 1e300, True, 1j):
        if name in ("maximum", "lt") and number == 1j:
            continue
        with np.errstate(all="ignore"):
            element = np.array(number).astype(
                "complex64" if number == 1j else "float32"
            )
            expected = NUMPY[name](x, element).tolist()
        for _ in range(2):
            found = getattr(core, name)(tensor(x), number)
            assert found.numpy().tolist() == pytest.approx(expected)
    whole = core.mul(tensor([1, 2], "int64"), 3)
    again = core.mul(tensor([1, 2], "int64"), 2.5)
    assert (shown(whole), shown(again)) == (
        ("int64", [3, 6]),
        ("float32", [2.5, 5.0]),
    )


@pytest.mark.parametrize("name", ["add", "sub", "mul", "div"])
def test_the_short_way_in_place(name: str) -> None:
    for operand in (2, 2.5, tensor([2.0, 4.0])):
        for _ in range(2):
            x = tensor([1.0, 8.0])
            b = operand.numpy() if isinstance(operand, Tensor) else operand
            expected = NUMPY[name](x.numpy(), np.float32(b)).tolist()
            assert getattr(core, f"{name}_")(x, operand) is x
            assert shown(x) == ("float32", expected)
    for letter, scale in (("f", -0.5), ("f", 3), ("d", 0.25), ("l", 3)):
        for _ in range(2):
            y, z = of_letter(letter, [8, 2]), of_letter(letter, [4, -4])
            core.add_(y, z, alpha=scale)
            assert y.numpy().tolist() == [8 + 4 * scale, 2 - 4 * scale]
            core.sub_(y, z, alpha=scale)
            assert y.numpy().tolist() == [8, 2]
    whole = tensor([1, 2], "int64")
    for _ in range(2):
        core.add_(whole, 3)
        core.mul_(whole, whole)
    assert whole.numpy().tolist() == [361, 784]
    with pytest.raises(TargetRefused, check=code("TargetDType")):
        core.add_(whole, 0.5)


def test_alpha_scales_the_second_operand() -> None:
    a, b = tensor([1, 2], "int64"), tensor([10, 20], "int64")
    assert shown(core.add(a, b, alpha=3)) == ("int64", [31, 62])
    assert shown(core.sub(a, b, alpha=2)) == ("int64", [-19, -38])
    yes, no = tensor([True, False], "bool"), tensor([False, True], "bool")
    assert shown(core.add(yes, no)) == ("bool", [True, True])
    assert shown(core.add(yes, no, alpha=False)) == ("bool", [True, False])
    halves = core.add(tensor([1.0]), tensor([1.0]), alpha=0.5)
    assert shown(halves) == ("float32", [1.5])


@pytest.mark.parametrize(
    ("alpha", "dtype", "fits"),
    [
        (1.5, "int64", "an integer, as the result is int64"),
        (1.5, "bool", "an integer, as the result is bool"),
        (2j, "float32", "a real number, as the result is float32"),
    ],
)
def test_alpha_must_be_of_a_kind_that_the_result_has(
    alpha: Any, dtype: str, fits: str
) -> None:
    x = tensor([1], dtype)
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.add(x, x, alpha=alpha)
    assert caught.value.fields() == {
        "operator": "core::add",
        "argument": "alpha",
        "found": repr(alpha),
        "fits": fits,
    }


DIVIDED = [(7, 2), (-7, 2), (7, -2), (-7, -2), (6, 3), (-6, 3), (0, 5)]


@pytest.mark.parametrize("dtype", ["int32", "float32", "float16"])
def test_division_rounds_as_asked(dtype: str) -> None:
    tops, bottoms = zip(*DIVIDED, strict=True)
    a, b = tensor(tops, dtype), tensor(bottoms, dtype)
    floors = [top // bottom for top, bottom in DIVIDED]
    truncated = [int(top / bottom) for top, bottom in DIVIDED]
    assert shown(core.div(a, b, rounding_mode="floor")) == (dtype, floors)
    assert shown(core.div(a, b, rounding_mode="trunc")) == (dtype, truncated)
    assert shown(core.floor_divide(a, b)) == (dtype, floors)
    rests = [top % bottom for top, bottom in DIVIDED]
    assert shown(core.remainder(a, b)) == (dtype, rests)
    changed = tensor(tops, dtype)
    core.div_(changed, b, rounding_mode="trunc")
    assert shown(changed) == (dtype, truncated)


def test_division_knows_two_modes() -> None:
    with pytest.raises(WrongOption, check=code("WrongOption")) as caught:
        core.div(tensor([1.0]), 2, rounding_mode="up")
    assert str(caught.value) == (
        "`core::div` does not take 'up' for `rounding_mode`.\n"
        "  fits: None, 'floor' or 'trunc'"
    )


@pytest.mark.parametrize("name", ["floor_divide", "remainder"])
def test_integer_division_by_zero_writes_nothing(name: str) -> None:
    x = tensor([7, 8, 9], "int64")
    with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
        getattr(core, f"{name}_")(x, tensor([2, 0, 3], "int64"))
    assert caught.value.operator == f"core::{name}_"
    assert x.numpy().tolist() == [7, 8, 9]
    with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
        getattr(core, name)(x, 0)
    assert caught.value.operator == f"core::{name}"
    out = tensor([1, 1, 1], "int64")
    with pytest.raises(ArithmeticRefused, check=code("DivisionByZero")) as caught:
        getattr(core, f"{name}_out")(x, tensor([2, 0, 3], "int64"), out=out)
    assert caught.value.operator == f"core::{name}.out"
    assert out.numpy().tolist() == [1, 1, 1]


def test_integers_have_no_negative_power_that_is_a_number() -> None:
    with pytest.raises(WrongOption, check=code("NegativeExponent")) as caught:
        core.pow(tensor([2], "int64"), -1)
    assert caught.value.fields() == {"operator": "core::pow", "dtype": "int64"}
    assert shown(core.pow(tensor([2.0]), -1)) == ("float32", [0.5])


@pytest.mark.parametrize("dtype", ["int8", "int16", "int32", "int64"])
def test_of_negative_powers_of_integers_the_whole_part_is_left(dtype: str) -> None:
    base = tensor([2, 1, -1, -1, 0, 127, -3], dtype)
    exponents = tensor([-1, -2, -3, -4, -1, -2, 3], dtype)
    found = core.pow(base, exponents)
    assert shown(found) == (dtype, [0, 1, -1, 1, 0, 0, -27])
    assert core.pow(2, tensor(-1, "int64")).item() == 0
    core.pow_(base, tensor(-1, dtype))
    assert shown(base) == (dtype, [0, 1, -1, -1, 0, 0, 0])


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(ShapesDoNotFit, check=code("ShapesRefused")) as caught:
        core.add(tensor(np.ones((2, 3))), tensor(np.ones((4, 3, 3))))
    assert str(caught.value) == (
        "`core::add` cannot combine shapes (2, 3) and (4, 3, 3).\n"
        "  fits: equal sizes, or 1, in dimension -2 (here 2 and 3)"
    )


def test_devices_that_do_not_go_together() -> None:
    here, there = tensor([1.0, 2.0]), core.empty([2], device=META)
    with pytest.raises(DevicesDiffer) as caught:
        core.add(here, there)
    assert caught.value.devices == ("cpu", "meta")
    # A CPU tensor without dimensions fits any.
    assert core.add(there, tensor(1.0)).device is META
    with pytest.raises(DevicesDiffer, check=code("DevicesDiffer")):
        core.add_(tensor(1.0), there)


def test_in_place_shape_and_dtype_are_those_of_self() -> None:
    x = tensor([1.0, 2.0])
    with pytest.raises(TargetRefused, check=code("TargetShape")) as caught:
        core.add_(x, tensor(np.ones((3, 2))))
    assert str(caught.value) == (
        "`core::add_` computes shape (3, 2), which cannot be written to `self` of "
        "shape\n(2,).\n"
        "  fits: shape (3, 2)"
    )
    whole = tensor([1, 2], "int64")
    with pytest.raises(TargetRefused, check=code("TargetDType")):
        core.add_(whole, 1.5)
    assert whole.numpy().tolist() == [1, 2]
    core.add_(x, tensor([0.5, 0.5], "float64"))
    assert shown(x) == ("float32", [1.5, 2.5])
    half = tensor([1.0], "float16")
    core.mul_(half, 3)
    assert shown(half) == ("float16", [3.0])


def test_in_place_with_an_input_that_shares_memory() -> None:
    base = tensor([1, 2, 3, 4, 5], "int64")
    tail, head = core.slice(base, 0, 1, 5), core.slice(base, 0, 0, 4)
    core.add_(tail, head)
    assert base.numpy().tolist() == [1, 3, 5, 7, 9]
    square = tensor([[1, 2], [3, 4]], "int64")
    core.add_(square, core.transpose(square, 0, 1))
    assert square.numpy().tolist() == [[2, 5], [5, 8]]
    same = tensor([1, 2], "int64")
    core.mul_(same, same)
    assert same.numpy().tolist() == [1, 4]
