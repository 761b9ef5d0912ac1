"""`new_zeros` and its kin: a size of one's own, the rest that of a tensor."""

from typing import Any

import pytest

from runtime import Tensor, default_dispatcher, ops
from runtime.errors.call import CallError
from runtime.errors.operands import WrongOption
from runtime.operators import core
from runtime.operators.creation import CONSTANTS
from runtime.python_dispatch import TorchDispatchMode
from tests.coded import code
from tests.operators.made import LETTERS, META, shown, tensor
from tests.operators.told import refused

NAMES = tuple(f"new_{name}" for name in (*CONSTANTS, "full"))


def call(name: str, x: Tensor, size: Any, **options: Any) -> Any:
    more = (7,) if name == "new_full" else ()
    return getattr(core, name)(x, size, *more, **options)


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_given_is_that_of_the_tensor(name: str) -> None:
    for letter in "bhdc":
        x = core.t(tensor([[1, 2, 3]], LETTERS[letter].name))
        for base in (x, core.empty([3, 1], dtype=x.dtype, device=META)):
            found = call(name, base, [2, 0, 4])
            assert (found.shape, found.dtype) == ((2, 0, 4), x.dtype)
            assert found.device == base.device
            assert found.strides == (4, 4, 1)
    x = tensor([1.0])
    assert call(name, x, [2], dtype=LETTERS["l"]).dtype is LETTERS["l"]
    assert call(name, x, [2], device=META).device == META


def test_constants() -> None:
    x = tensor([5, 6], "int64")
    assert shown(core.new_zeros(x, [3])) == ("int64", [0, 0, 0])
    assert shown(core.new_ones(x, [])) == ("int64", 1)
    assert shown(core.new_full(x, [2], 2.9)) == ("int64", [2, 2])
    assert shown(core.new_full(x, [1], 2.5, dtype=LETTERS["f"])) == ("float32", [2.5])


@pytest.mark.parametrize("name", NAMES)
def test_refused_by_name(name: str) -> None:
    for device in (None, META):
        with pytest.raises(WrongOption) as caught:
            call(name, tensor([1.0]), [2, -3], device=device)
        assert (caught.value.operator, caught.value.argument, caught.value.found) == (
            f"core::{name}",
            "size[1]",
            "-3",
        )
    refused(
        lambda: call(name, tensor([1.0]), [1], device=META, pin_memory=True),
        WrongOption,
        f"`core::{name}` does not take True for `pin_memory`. fits: False on meta: "
        "only host memory is pinned",
    )


def test_a_number_that_the_dtype_cannot_hold() -> None:
    with pytest.raises(WrongOption) as caught:
        core.new_full(tensor([1.0]), [1], 1j)
    assert (caught.value.operator, caught.value.argument) == (
        "core::new_full",
        "fill_value",
    )
    with pytest.raises(WrongOption) as caught:
        core.full_like(tensor([1.0]), 1j, device=META)
    assert caught.value.operator == "core::full_like"


@pytest.mark.parametrize("name", NAMES)
def test_the_result_has_no_gradient(name: str) -> None:
    x = tensor([1.0, 2.0]).requires_grad_()
    found = call(name, x, [2])
    assert (found.requires_grad, found.is_leaf) == (False, True)


def test_the_keys_are_those_of_likes() -> None:
    for name in CONSTANTS:
        new, like = (
            default_dispatcher().find_op(f"core::{each}")
            for each in (f"new_{name}", f"{name}_like")
        )
        assert new is not None
        assert like is not None
        for key in ("CompositeExplicitAutograd", "CPU", "Autograd", "BackendSelect"):
            assert new.has_kernel(key) == like.has_kernel(key), (name, key)


def test_a_mode_hears_of_them() -> None:
    heard = []

    class Hearing(TorchDispatchMode):
        def __torch_dispatch__(
            self, func: Any, types: Any, args: Any = (), kwargs: Any = None
        ) -> Any:
            heard.append(str(func))
            return func(*args, **(kwargs or {}))

    with Hearing():
        ops.core.new_zeros(tensor([1.0]), [2])
    assert heard == ["core.new_zeros.default"]


def test_without_a_size() -> None:
    with pytest.raises(CallError, check=code("MissingArgument")):
        core.new_zeros(tensor([1.0]))
