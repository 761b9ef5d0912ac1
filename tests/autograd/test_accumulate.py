"""Which gradients are taken as they are, and which are added in place."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import Tensor, channels_last, from_numpy, ones, zeros
from everyorder.runtime.autograd import Function, accumulate, grad
from everyorder.runtime.autograd.accumulate import accumulate_buffer
from everyorder.runtime.operators.declare.handles import Core, core
from tests.autograd.made import grad_of, leaf


class Noting(Core):
    """The operators, and which of them were called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __getattr__(self, name: str) -> Any:
        def run(*args: Any) -> Any:
            self.called.append(name)
            return getattr(core, name)(*args)

        return run


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    noting = Noting()
    monkeypatch.setattr(accumulate, "core", noting)
    return noting.called


def giving(array: Any) -> Any:
    """A Function whose gradient shares the memory of an array."""

    class Giving(Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return from_numpy(array)

    return Giving


def test_a_gradient_of_the_engine_is_taken(called: list[str]) -> None:
    x = leaf(1, 2)
    (x * x).exp().sum().backward()
    # Both factors are x: their gradients meet, and the sum is a new tensor.
    assert called == ["add"]


def test_a_leaf_that_was_frozen_meanwhile_gets_no_gradient() -> None:
    x, w = leaf(1, 2), leaf(3, 4)
    log: list[Any] = []
    x.register_hook(lambda gradient: log.append(gradient.tolist()))
    x.register_post_accumulate_grad_hook(lambda leaf: log.append(leaf.grad))
    product = (x * w).sum()
    x.requires_grad_(False)
    product.backward()
    assert x.grad is None
    assert grad_of(w).tolist() == [1, 2]
    # Hooks are run, as they are upstream.
    assert log == [[3, 4], None]


def test_the_second_gradient_is_added_in_place(called: list[str]) -> None:
    x = leaf(1, 2)
    for _ in range(2):
        (x * 3).sum().backward()
    assert called == ["add_"]
    assert grad_of(x).tolist() == [6, 6]


def test_many_gradients_meet_in_one(called: list[str]) -> None:
    x = leaf(1, 2)
    y = x * 1
    (y * 2 + y * 3 + y * 4).sum().backward()
    assert called == ["add_", "add_"]
    assert grad_of(x).tolist() == [9, 9]


def test_gradients_that_hooks_keep_stay_as_they_are(called: list[str]) -> None:
    x = leaf(1, 2)
    kept: list[Any] = []
    y = x * 1
    first, second = y * 2, y * 3
    # What reaches y first is what the hook of the later node returns.
    second.grad_fn.register_hook(lambda inputs, outputs: kept.append(inputs[0]))
    x.register_hook(lambda gradient: kept.append(gradient.numpy()))
    (first + second).sum().backward()
    x.grad.mul_(10)
    assert [np.asarray(each).tolist() for each in kept] == [[3, 3], [5, 5]]
    assert called == ["add", "clone"]


def test_arrays_of_others_are_never_written_to(called: list[str]) -> None:
    array = np.ones(2)
    twice = giving(array)
    x = leaf(1, 2)
    y = x * 1
    (twice.apply(y) + twice.apply(y)).sum().backward()
    twice.apply(x).sum().backward()
    assert array.tolist() == [1, 1]
    assert grad_of(x).tolist() == [3, 3]
    assert called == ["add", "add_"]


def test_a_gradient_for_two_is_given_to_one_and_copied_for_the_other(
    called: list[str],
) -> None:
    x, y = leaf(1, 2), leaf(3, 4)
    ((x + y) * 3).sum().backward()
    assert called == ["clone"]
    grad_of(x).mul_(2)
    assert grad_of(y).tolist() == [3, 3]


def test_recorded_gradients_are_new_tensors(called: list[str]) -> None:
    x = leaf(1, 2)
    (x * x).sum().backward(create_graph=True)
    assert called == ["add", "clone"]
    assert grad_of(x).requires_grad


def test_what_is_held_elsewhere_is_not_added_to() -> None:
    from everyorder.runtime.autograd import no_grad

    mine, other = leaf(1, 2).detach(), leaf(3, 4).detach()
    with no_grad():
        total = accumulate_buffer(mine, other)
    assert total is not mine
    assert (mine.tolist(), total.tolist()) == ([1, 2], [4, 6])


def test_a_gradient_is_deleted() -> None:
    x = leaf(1, 2)
    (x * 1).sum().backward()
    del x.grad
    assert x.grad is None
    del x.grad
    (x * 3).sum().backward()
    assert grad_of(x).tolist() == [3, 3]


LEAVES: dict[str, tuple[Callable[[], Tensor], tuple[int, ...]]] = {
    "rows": (lambda: zeros(2, 3), (3, 1)),
    "columns": (lambda: zeros(3, 2).t(), (1, 2)),
    "turned": (lambda: zeros(4, 2, 3).permute(1, 2, 0), (3, 1, 6)),
    "gaps": (lambda: zeros(2, 6)[:, ::2], (3, 1)),
    "turned gaps": (lambda: zeros(3, 4)[:, ::2].t(), (3, 1)),
    "overlaps": (lambda: zeros(1, 3).expand(2, 3), (3, 1)),
    "channels last": (
        lambda: zeros(2, 3, 2, 2).to(memory_format=channels_last),
        (12, 1, 6, 3),
    ),
}
GRADIENTS: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda like: ones(*like.shape),
    "columns": lambda like: ones(*like.shape[::-1]).permute(
        *range(like.dim() - 1, -1, -1)
    ),
    "expanded": lambda like: ones(1).expand(like.shape),
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("gradient", GRADIENTS)
@pytest.mark.parametrize("name", LEAVES)
def test_a_gradient_has_the_strides_of_its_leaf(
    name: str, gradient: str, create_graph: bool
) -> None:
    """Those of rows, if the elements of the leaf have gaps or overlap."""
    make, expected = LEAVES[name]
    x: Any = make().detach().requires_grad_()
    for times in (1, 2):
        (x * 1).backward(GRADIENTS[gradient](x), create_graph=create_graph)
        assert grad_of(x).stride() == expected
        assert grad_of(x).sum().item() == times * x.numel()
    x.grad = None
    (x * x * x).sum().backward(create_graph=True)
    (second,) = grad(grad_of(x).sum(), x)
    assert second is not None
    assert second.tolist() == (x.detach() * 6).tolist()
