"""Operators and gradients on the device, as programs call them, against the CPU."""

from typing import Any

import numpy as np
import pytest

from everyorder.runtime.bootstrap import Tensor, tensor
from everyorder.runtime.operators.declare.handles import core
from tests.cuda.simulated.agreement import numbers
from tests.cuda.simulated.arrays import Array, close

IMAGES = numbers((2, 2, 5, 5), np.float32)
FILTERS = numbers((3, 2, 3, 3), np.float32, 2)
LINES = numbers((4, 5), np.float32, 3)
OTHERS = numbers((5, 3), np.float32, 4)


def network(make: Any, images: Tensor, filters: Tensor, weight: Tensor) -> Tensor:
    """Convolution, pooling, a linear layer, and the loss of two classes."""
    seen = core.relu(core.conv2d(images, filters, None, (1, 1), (1, 1), (1, 1), 1))
    small = core.max_pool2d(seen, (2, 2), (2, 2))
    scores = core.linear(core.reshape(small, (2, 12)), weight, None)
    loss: Tensor = core.cross_entropy(scores, make([1, 0]))
    return loss


def sentence(make: Any, table: Tensor) -> Tensor:
    """An embedding, normalised, and attended to."""
    words = core.embedding(table, make([0, 3, 3, 1]))
    plain = core.layer_norm(words, [5], None, None, 1e-5)
    shares = core.softmax(core.mm(plain, core.transpose(plain, 0, 1)), 1)
    made: Tensor = core.sum(core.square(core.mm(shares, words)))
    return made


def picked(make: Any, lines: Tensor, others: Tensor) -> Tensor:
    """Elements by index, by order, and as running sums."""
    chosen = core.mul(lines[make([0, 2, 2])], 2.0)
    found = core.gather(lines, 1, make([[0, 1], [1, 1], [4, 0], [2, 2]]))
    greatest, _ = core.topk(others, 2, 1, True, True)
    parts = [core.reshape(part, (-1,)) for part in (chosen, found, greatest)]
    made: Tensor = core.sum(core.square(core.cumsum(core.cat(parts, 0), 0)))
    return made


def outcome(program: Any, device: str, given: tuple[Array, ...]) -> list[Array]:
    """The loss and the gradients of what was given."""

    def make(data: Any) -> Tensor:
        return tensor(data, device=device)

    leaves = [make(array.tolist()) for array in given]
    for leaf in leaves:
        leaf.requires_grad_()
    loss = program(make, *leaves)
    loss.backward()
    results = [loss.detach(), *(leaf.grad for leaf in leaves)]
    assert {str(result.device) for result in results} == {device}
    return [np.array(result.tolist(), np.float32) for result in results]


@pytest.mark.parametrize(
    ("program", "given"),
    [
        (network, (IMAGES, FILTERS, numbers((2, 12), np.float32, 5))),
        (sentence, (LINES,)),
        (picked, (LINES, OTHERS)),
    ],
)
def test_a_program_and_its_gradients(program: Any, given: tuple[Array, ...]) -> None:
    expected = outcome(program, "cpu", given)
    for one, other in zip(outcome(program, "cuda:0", given), expected, strict=True):
        close(one, other)
