"""Hooks of tensors, nodes and leaves; what they may not return."""

from typing import Any

import pytest

from everyorder.runtime import Function, tensor
from everyorder.runtime.autograd import grad
from everyorder.runtime.errors.autograd import AutogradMisuse
from everyorder.runtime.tensors.tensor import Tensor
from tests.autograd.made import grad_of
from tests.coded import code


def test_a_hook_sees_and_changes_the_gradient() -> None:
    x = tensor([1.0, 2.0], requires_grad=True)
    y = x * 3
    seen = []
    y.register_hook(lambda g: seen.append(g.tolist()))
    y.register_hook(lambda g: g * 10)
    (y * 2).sum().backward()
    assert seen == [[2, 2]]
    assert grad_of(x).tolist() == [60, 60]


def test_a_removed_hook_is_not_called() -> None:
    x = tensor([1.0], requires_grad=True)
    handle = x.register_hook(lambda g: g * 10)
    with x.register_hook(lambda g: g * 5):
        x.sum().backward()
    assert grad_of(x).tolist() == [50]
    handle.remove()
    handle.remove()
    x.sum().backward()
    assert grad_of(x).tolist() == [51]


def test_hooks_of_a_leaf_are_asked_by_grad_too() -> None:
    x = tensor([1.0], requires_grad=True)
    x.register_hook(lambda g: g + 1)
    (found,) = grad(x * 2, x)
    assert found is not None
    assert found.tolist() == [3]


def test_node_hooks() -> None:
    x = tensor([2.0], requires_grad=True)
    y = x * x
    order = []

    def before(gradients: tuple[object, ...]) -> tuple[object, ...]:
        order.append(f"before {gradients[0].tolist()}")  # type: ignore[attr-defined]
        return (gradients[0] * 3,)  # type: ignore[operator]

    def after(inputs: tuple[object, ...], outputs: tuple[object, ...]) -> object:
        order.append(f"after {inputs[0].tolist()} {outputs[0].tolist()}")  # type: ignore[attr-defined]
        return (inputs[0], None)

    y.grad_fn.register_prehook(before)
    y.grad_fn.register_hook(after)
    y.sum().backward()
    assert order == ["before [1.0]", "after [6.0] [3.0]"]
    assert grad_of(x).tolist() == [6]


def noting(order: list[str], name: str, factor: float) -> Any:
    """A hook of a tensor or a node that notes what it sees, and multiplies it."""

    def hook(*gradients: Any) -> Any:
        seen = gradients[0][0] if isinstance(gradients[0], tuple) else gradients[0]
        order.append(f"{name} {seen.tolist()}")
        changed = seen * factor
        return (changed,) if isinstance(gradients[0], tuple) else changed

    return hook


def test_hooks_of_a_tensor_come_before_those_of_its_node() -> None:
    x = tensor([2.0], requires_grad=True)
    y, order = x * 1, list[str]()
    accumulator = y.grad_fn.next_functions[0][0]
    for name, each in (("y", y), ("x", x)):
        node = accumulator if each is x else each.grad_fn
        node.register_prehook(noting(order, f"node of {name}", 10))
        each.register_hook(noting(order, name, 2))
    y.retain_grad()
    y.backward(tensor([1.0]))
    assert order == ["y [1.0]", "node of y [2.0]", "x [20.0]", "node of x [40.0]"]
    assert grad_of(x).tolist() == [400]
    # It is kept as the hooks of the tensor leave it.
    assert grad_of(y).tolist() == [2]


@pytest.mark.parametrize(
    ("asked", "expected", "found"),
    [
        ("y", ["y [1.0]"], [2]),
        ("x", ["y [1.0]", "node of y [2.0]", "x [20.0]"], [40]),
        ("y x", ["y [1.0]", "node of y [2.0]", "x [20.0]"], [2, 40]),
    ],
)
def test_a_node_that_does_not_run_has_its_hooks_left_alone(
    asked: str, expected: list[str], found: list[float]
) -> None:
    """The gradient that `grad` is asked for is that before the hooks of the node."""
    x = tensor([2.0], requires_grad=True)
    y, order = x * 1, list[str]()
    accumulator = y.grad_fn.next_functions[0][0]
    y.grad_fn.register_prehook(noting(order, "node of y", 10))
    accumulator.register_prehook(noting(order, "node of x", 10))
    y.register_hook(noting(order, "y", 2))
    x.register_hook(noting(order, "x", 2))
    inputs = [{"x": x, "y": y}[name] for name in asked.split()]
    gradients = grad(y, inputs, tensor([1.0]))
    assert order == expected
    assert [each.item() for each in gradients if each is not None] == found


def test_the_node_of_an_input_does_not_run() -> None:
    y, order = tensor([2.0], requires_grad=True) * 1, list[str]()
    y.grad_fn.register_prehook(noting(order, "before", 10))
    y.grad_fn.register_hook(noting(order, "after", 10))
    (y * 3).backward(inputs=[y])
    assert (order, grad_of(y).tolist()) == ([], [3])


def test_after_accumulation() -> None:
    x = tensor([2.0], requires_grad=True)
    seen = []
    handle = x.register_post_accumulate_grad_hook(lambda t: seen.append(t.grad))
    (x * 3).sum().backward()
    (x * 3).sum().backward()
    handle.remove()
    (x * 3).sum().backward()
    assert [each is grad_of(x) for each in seen] == [True, True]
    assert grad_of(x).tolist() == [9]
    with pytest.raises(AutogradMisuse, check=code("HookMisuse")) as misuse:
        (x * 3).register_post_accumulate_grad_hook(lambda t: None)
    assert misuse.value.fields() == {
        "asked": "register_post_accumulate_grad_hook",
        "fault": "gradients are accumulated in leaves only",
    }


def test_retained_gradients() -> None:
    x = tensor([2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.retain_grad()
    y.register_hook(lambda g: g * 2)
    (y * y).sum().backward()
    assert grad_of(y).tolist() == [24]
    assert (y.retains_grad, x.retains_grad) == (True, False)
    x.retain_grad()
    assert x.retains_grad is False


def test_retained_gradients_follow_a_write() -> None:
    x = tensor([2.0], requires_grad=True)
    y = x * 3
    y.retain_grad()
    y.mul_(5)
    (y * 7).sum().backward()
    assert grad_of(y).tolist() == [7]
    assert grad_of(x).tolist() == [105]


def test_hooks_need_a_gradient() -> None:
    with pytest.raises(AutogradMisuse, check=code("HookMisuse")):
        tensor([1.0]).register_hook(print)


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
