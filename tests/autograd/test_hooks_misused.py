"""Hooks that return no gradients, gradients that are none, half-written functions."""

from typing import Any

import pytest

from runtime import Function, tensor
from runtime.errors.autograd import AutogradMisuse
from runtime.tensors.tensor import Tensor
from tests.coded import code


def leaf() -> Tensor:
    return tensor([1.0, 2.0], requires_grad=True)


@pytest.mark.parametrize("computed", [False, True])
def test_a_hook_returns_a_tensor_or_none(computed: bool) -> None:
    start = leaf()
    hooked = start * 2 if computed else start
    hooked.register_hook(lambda gradient: 5)
    with pytest.raises(AutogradMisuse, check=code("HookMisuse")) as caught:
        (hooked * 3).sum().backward()
    assert str(caught.value) == (
        "`register_hook`: the hook returned a int, not a tensor or None."
    )


@pytest.mark.parametrize(
    ("asked", "returned", "fault"),
    [
        ("register_hook", 5, "the hook returned a int, not a tensor or None"),
        ("register_prehook", "a", "the hook returned a str, not a tensor or None"),
        ("register_prehook", (), "the hook returned 0 gradients, not 1"),
    ],
)
def test_a_hook_of_a_node_returns_gradients(
    asked: str, returned: Any, fault: str
) -> None:
    result = leaf().exp()
    getattr(result.grad_fn, asked)(lambda *_: returned)
    with pytest.raises(AutogradMisuse, check=code("HookMisuse")) as caught:
        result.sum().backward()
    assert caught.value.fields() == {"asked": asked, "fault": fault}


@pytest.mark.parametrize("gradient", [5, "a", 1.0])
def test_a_gradient_is_a_tensor(gradient: Any) -> None:
    with pytest.raises(AutogradMisuse) as caught:
        (leaf() * 2).backward(gradient=gradient)
    assert caught.value.fields() == {
        "where": "The call of `backward`, for output 0,",
        "what": "type",
        "expected": "Tensor",
        "found": type(gradient).__name__,
    }


def test_a_function_without_forward_or_backward_is_named() -> None:
    class Bad(Function):
        pass

    class Half(Function):
        @staticmethod
        def forward(_ctx: Any, given: Tensor) -> Any:
            return given * 2

    with pytest.raises(AutogradMisuse, check=code("FunctionMisuse")) as caught:
        Bad.apply(leaf())
    assert caught.value.function == "Bad"
    with pytest.raises(AutogradMisuse, check=code("FunctionMisuse")) as half:
        Half.apply(leaf()).sum().backward()
    assert half.value.function == "Half"
