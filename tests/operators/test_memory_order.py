"""In which order elements of results lie: as those of the arguments, or as asked."""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder import runtime
from everyorder.runtime import Tensor, ones, tensor, where, zeros_like
from everyorder.runtime.errors.tensor import UnfitValue, WrongOption
from tests.coded import code

LAST, LAST_3D = runtime.channels_last, runtime.channels_last_3d
ROWS, KEPT = runtime.contiguous_format, runtime.preserve_format


def turned(*shape: int) -> Tensor:
    """A tensor of a shape whose elements lie column by column."""
    rows: Tensor = ones(shape[::-1])
    found: Tensor = rows.permute(tuple(reversed(range(len(shape)))))
    return found


def test_what_is_dense_stays_so() -> None:
    """So that a view of the turned result is still one."""
    x = tensor([[1.0, 2.0], [3.0, 4.0]])
    assert x.t().exp().t().view(-1).shape == (4,)
    assert (x.t() * 2).t().view(-1).tolist() == [2.0, 4.0, 6.0, 8.0]


POINTWISE: list[Callable[[Tensor], Tensor]] = [
    lambda x: x.exp(),
    lambda x: x * 2,
    lambda x: 2 - x,
    lambda x: x + x,
    lambda x: x > 0,
    lambda x: where(x > 0, x, x),
    lambda x: x.clamp(0, 1),
    lambda x: x.double(),
    lambda x: x.double() + x,
    lambda x: x.clone(),
    zeros_like,
    runtime.rand_like,
    lambda x: runtime.full_like(x, 3.0),
    lambda x: x + ones(x.shape[-1], device=x.device),
    lambda x: x.flip([0]),
]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("call", POINTWISE)
def test_results_lie_as_their_arguments(
    call: Callable[[Tensor], Tensor], device: str
) -> None:
    x = turned(2, 3, 4).to(device=device)
    if device == "meta":
        x = runtime.empty((4, 3, 2), device="meta").permute((2, 1, 0))
    assert call(x).strides == (1, 2, 6)
    gaps = x[::2]
    assert call(gaps).strides == (1, 1, 3)


def test_the_first_that_tells_decides() -> None:
    x, y = turned(2, 3), ones((2, 3))
    assert (x + y).strides == (1, 2)
    assert (y + x).strides == (3, 1)
    assert (ones((1, 3)) + x).strides == (1, 2)


def test_new_tensors_and_filled_copies_lie_row_by_row() -> None:
    x = turned(2, 3)
    assert x.new_zeros((2, 3)).is_contiguous()
    assert x.masked_fill(x > 0, 1.0).is_contiguous()
    assert x.contiguous().is_contiguous()


def test_formats() -> None:
    x = ones((2, 3, 4, 5))
    last = (60, 1, 15, 3)
    made = x.contiguous(memory_format=LAST)
    assert made.strides == last
    assert made.is_contiguous(LAST)
    assert not made.is_contiguous()
    assert not x.is_contiguous(memory_format=LAST)
    assert made.contiguous(memory_format=LAST) is made
    assert made.to(memory_format=LAST) is made
    assert x.to(memory_format=LAST).strides == last
    assert x.clone(memory_format=LAST).strides == last
    assert zeros_like(x, memory_format=LAST).strides == last
    assert (made * 2).strides == made.clone(memory_format=KEPT).strides == last
    assert made.clone(memory_format=ROWS).is_contiguous(ROWS)
    assert made.exp().tolist() == x.exp().tolist()
    deep = ones((1, 2, 3, 4, 5)).contiguous(memory_format=LAST_3D)
    assert deep.strides == (120, 1, 40, 10, 2)
    assert deep.is_contiguous(LAST_3D)
    assert not deep.is_contiguous(LAST)


def test_formats_that_do_not_fit() -> None:
    x = ones((2, 3))
    with pytest.raises(
        WrongOption,
        check=code("WrongOption"),
        match="channels_last of a tensor of 2 dimensions",
    ):
        x.contiguous(memory_format=LAST)
    with pytest.raises(WrongOption, check=code("WrongOption"), match="preserve_format"):
        x.contiguous(memory_format=KEPT)
    with pytest.raises(UnfitValue, match="preserve_format"):
        x.is_contiguous(KEPT)


def test_gradients_go_through_turned_results() -> None:
    x = turned(2, 3).requires_grad_()
    (x.exp() * tensor([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])).sum().backward()
    assert x.grad is not None
    expected = np.exp(1.0) * np.array([[1, 2, 3], [4, 5, 6]])
    assert np.allclose(x.grad.numpy(), expected)


LAYOUTS: list[tuple[str, Callable[[Any, Any, Any], Any]]] = [
    ("add", lambda m, x, y: x + y),
    ("exp", lambda m, x, y: x.exp()),
    ("where", lambda m, x, y: m.where(x > 0.5, x, y)),
    ("clone", lambda m, x, y: x.clone()),
    ("zeros_like", lambda m, x, y: m.zeros_like(x)),
    ("number", lambda m, x, y: 2 - x),
    ("to", lambda m, x, y: x.to(m.float64)),
    ("promoted", lambda m, x, y: x + y.to(m.float64)),
    ("clamp", lambda m, x, y: x.clamp(0.2, 0.5)),
    ("steps", lambda m, x, y: x[::2].exp()),
    ("expanded", lambda m, x, y: x.expand(2, *x.shape).exp()),
]


@pytest.mark.torch
def test_orders_are_those_of_torch() -> None:
    """Random layouts of two operands that broadcast."""
    torch = pytest.importorskip("torch")
    seed = random.SystemRandom().getrandbits(32)
    print(f"seed {seed}")
    chance, compared = random.Random(seed), 0
    for _ in range(300):
        shape = [chance.choice([2, 3, 4]) for _ in range(chance.randint(1, 4))]
        operands = [_laid_out(chance, shape) for _ in range(2)]
        for name, call in LAYOUTS:
            found, expected = (
                call(m, *(make(m) for make in operands)) for m in (runtime, torch)
            )
            case = f"seed {seed}: {name} of {shape}"
            assert tuple(found.shape) == tuple(expected.shape), case
            assert _steps(found) == _steps(expected), case
            assert np.allclose(found.numpy(), expected.numpy()), case
            compared += 1
    assert compared == 300 * len(LAYOUTS)


def _laid_out(chance: random.Random, shape: list[int]) -> Callable[[Any], Any]:
    """An operand of a shape, or of its last dimensions, in any order of memory."""
    kept = shape[chance.choice([0, 0, len(shape) - 1]) :]
    order = chance.sample(range(len(kept)), len(kept))
    values = np.random.default_rng(chance.getrandbits(32))
    base = values.random([kept[dim] for dim in order], np.float32).tolist()
    back = [order.index(dim) for dim in range(len(kept))]
    return lambda m: m.tensor(base).permute(back)


def _steps(result: Any) -> list[int]:
    pairs = zip(result.shape, result.stride(), strict=True)
    return [step for size, step in pairs if size > 1]
