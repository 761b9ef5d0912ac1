"""Tensors like another one: shape, dtype and device, unless others are given."""

import pytest

from runtime.errors.operands import WrongOption
from runtime.operators import core
from runtime.operators.creation import CONSTANTS, NAMES
from tests.operators.made import LETTERS, META, shown, tensor


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_given_is_that_of_the_tensor(name: str) -> None:
    make = getattr(core, f"{name}_like")
    for letter in "hd":
        x = core.t(tensor([[1, 2, 3]], LETTERS[letter].name))
        for base in (x, core.empty([3, 1], dtype=x.dtype, device=META)):
            found = make(base)
            assert (found.shape, found.dtype) == ((3, 1), x.dtype)
            assert found.device == base.device
            assert found.is_contiguous()
    wide = make(tensor([1.0]), dtype=LETTERS["d"])
    assert wide.dtype is LETTERS["d"]
    assert make(tensor([1.0]), device=META).device == META


def test_constants() -> None:
    x = tensor([5, 6], "int64")
    for name, value in CONSTANTS.items():
        if value is not None:
            assert shown(getattr(core, f"{name}_like")(x)) == ("int64", [value] * 2)
    assert shown(core.full_like(x, 2.9)) == ("int64", [2, 2])
    assert shown(core.full_like(x, 2.5, dtype=LETTERS["f"])) == ("float32", [2.5] * 2)
    assert core.full_like(x, 1, device=META).device == META
    with pytest.raises(WrongOption) as caught:
        core.full_like(x, 1j)
    assert (caught.value.operator, caught.value.argument) == (
        "core::full_like",
        "fill_value",
    )


def test_random_numbers_lie_where_they_should() -> None:
    x = core.zeros([1000])
    uniform, normal = core.rand_like(x).numpy(), core.randn_like(x).numpy()
    assert 0 <= uniform.min() < 0.1 < 0.9 < uniform.max() < 1
    assert normal.min() < -1.5
    assert normal.max() > 1.5
