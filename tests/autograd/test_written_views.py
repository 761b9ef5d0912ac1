"""Writing in place: to what has no gradient, to views of nothing, below a handler."""

from typing import Any

import numpy as np
import pytest

import runtime
from runtime import Tensor, tensor
from tests.examples.nested_wrappers import Wrapper

WRITES: dict[str, Any] = {
    "copy_": lambda to, of: to.copy_(of),
    "all": lambda to, of: to.__setitem__(..., of),
    "slice": lambda to, of: to.__setitem__(slice(None), of),
    "view": lambda to, of: to.view(3, 1)[:, 0].copy_(of),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool"])
def test_what_is_written_to_integers_is_constant(write: str, dtype: str) -> None:
    weights: Any = tensor([1.0, 2.0, 3.0], requires_grad=True)
    target = runtime.zeros(3, dtype=dtype)
    WRITES[write](target, weights)
    assert not target.requires_grad
    assert target.grad_fn is None
    assert target.numpy().tolist() == np.array([1, 2, 3]).astype(dtype).tolist()
    (target * weights).sum().backward()
    assert weights.grad.tolist() == target.to(dtype="float32").tolist()


def test_views_of_no_elements_may_begin_behind_the_end() -> None:
    nothing: Any = runtime.zeros(0, 4, requires_grad=True)
    moved = nothing * 1
    moved[:, 1] = 0.0
    moved.sum().backward()
    assert nothing.grad.shape == (0, 4)
    row: Any = tensor([[1.0, 2.0, 3.0, 4.0]], requires_grad=True)
    moved = row * 1
    part = moved[1:, 2:]
    part.mul_(2)
    moved.mul_(2)
    (moved.sum() + part.sum()).backward()
    assert row.grad.tolist() == [[2.0, 2.0, 2.0, 2.0]]
    assert part.detach().numpy().shape == (0, 2)
    factor: Any = tensor(2.0, requires_grad=True)
    empty = runtime.zeros(0, 4)
    empty[:, 1:] *= factor
    empty.sum().backward()
    assert factor.grad.tolist() == 0.0


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y[0].mul_(2),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y.t().add_(1),
        lambda y: y.mul_(2),
    ],
)
def test_gradients_keep_the_class_of_what_was_written(write: Any) -> None:
    made: Any = Wrapper
    x = made(runtime.ones(2, 3), requires_grad=True)
    y = x * 1
    write(y)
    y.sum().backward()
    assert type(x.grad) is Wrapper


@pytest.mark.parametrize(
    "write",
    [
        lambda y: y.add_(1e-8),
        lambda y: y.zero_(),
        lambda y: y.__setitem__(0, 5.0),
        lambda y: y.clamp_(0.5),
    ],
)
def test_the_result_of_abs_may_be_written_to(write: Any) -> None:
    x: Any = tensor([-1.0, 2.0], requires_grad=True)
    kept: Any = tensor([-1.0, 2.0], requires_grad=True)
    y, expected = x.abs(), kept.abs() * 1
    write(y)
    write(expected)
    y.sum().backward()
    expected.sum().backward()
    assert x.grad.tolist() == kept.grad.tolist()


@pytest.mark.parametrize(
    ("at", "source", "expected"),
    [
        (tensor(0), tensor([1.0, 2.0]), [1.0, 0.0]),
        (tensor([1]), tensor(1.0), 1.0),
        (tensor([], dtype="int64"), tensor([[1.0], [2.0]]), [[0.0], [0.0]]),
    ],
)
def test_a_source_of_other_dimensions(at: Tensor, source: Any, expected: Any) -> None:
    base: Any = tensor([1.0, 2.0], requires_grad=True)
    source = source.clone().requires_grad_()
    base.scatter_add(0, at, source).sum().backward()
    assert source.grad.tolist() == expected
    assert base.grad.tolist() == [1.0, 1.0]
