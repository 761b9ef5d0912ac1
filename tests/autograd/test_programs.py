"""Random programs of views and writes, side by side with the real torch.

A program is a list of steps over a growing list of tensors; each step takes tensors by
chance.  Both sides run it; values and gradients must be equal, and what one refuses the
other must refuse.  Two differences are known, and such programs are left out:
- torch refuses to read and write tensors that overlap in part; here they are copied;
- torch saves the other factor of `y.mul_(y)` as it is, and finds it modified.
"""

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import from_numpy
from everyorder.runtime.autograd import no_grad

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch

START = np.array([[0.3, -0.4, 0.5], [0.7, 0.2, -0.6], [0.1, 0.9, 0.8]])

# Name -> dimensions that it needs, and what it makes of a tensor; None: nothing new.
ALONE: dict[str, tuple[range, Callable[[Any], Any]]] = {
    "exp": (range(3), lambda a: (a * 0.1).exp()),
    "sigmoid": (range(3), lambda a: a.sigmoid()),
    "clone": (range(3), lambda a: a.clone()),
    "detach": (range(3), lambda a: a.detach()),
    "tail": (range(1, 3), lambda a: a[1:]),
    "row": (range(1, 3), lambda a: a[0]),
    "t": (range(2, 3), lambda a: a.t()),
    "diagonal": (range(2, 3), lambda a: a.diagonal()),
    "sum": (range(2, 3), lambda a: a.sum(0)),
    "expand": (range(1, 2), lambda a: a.expand(2, a.shape[0])),
    "split": (range(1, 3), lambda a: a.split(1)[0]),
    "exp_": (range(3), lambda a: (a.mul_(0.1).exp_(), None)[1]),
    "tanh_": (range(3), lambda a: (a.tanh_(), None)[1]),
    "fill_": (range(3), lambda a: (a.fill_(0.5), None)[1]),
    "tail_": (range(1, 3), lambda a: (a[1:].mul_(2), None)[1]),
}
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "mul": lambda a, b: a * b,
    "add": lambda a, b: a + b,
    "mul_": lambda a, b: (a.mul_(b), None)[1],
    "add_": lambda a, b: (a.add_(b), None)[1],
    "copy_": lambda a, b: (a.copy_(b), None)[1],
}
QUIET = ("row", "tail", "exp_", "tail_")
Step = tuple[str, bool, float, float]


def program(seed: int) -> list[Step]:
    chance = random.Random(seed)
    return [
        (name, chance.random() < 0.2, chance.random(), chance.random())
        for name in chance.choices([*ALONE, *PAIRS], k=chance.randint(3, 9))
    ]


def run(steps: list[Step], x: Any, quiet: Callable[[], Any]) -> Any:
    """The loss and the gradient, or the name of the part that refused."""
    tensors = [x, x * 1.5]
    try:
        for name, silent, first, second in steps:
            a = tensors[int(first * len(tensors))]
            if name in PAIRS:
                alike = [
                    b
                    for b in tensors
                    if tuple(b.shape) == tuple(a.shape) and b is not a
                ]
                if not alike:
                    continue
                made = PAIRS[name](a, alike[int(second * len(alike))])
            else:
                dims, function = ALONE[name]
                if len(a.shape) not in dims or (a.shape and a.shape[0] < 2):
                    continue
                if silent and name in QUIET:
                    with quiet():
                        made = function(a)
                else:
                    made = function(a)
            if made is not None:
                tensors.append(made)
        loss = sum((t * (k + 1)).sum() for k, t in enumerate(tensors[1:]))
    except (RuntimeError, ValueError) as error:
        if "single memory location" in str(error):
            return "overlap"
        return "forward"
    try:
        loss.backward()
    except RuntimeError:
        return "backward"
    return loss.item(), None if x.grad is None else x.grad.tolist()


@pytest.mark.parametrize("block", range(8))
def test_programs(block: int) -> None:
    kinds = set()
    for seed in range(block * 40, block * 40 + 40):
        steps = program(seed)
        theirs = run(
            steps, torch.from_numpy(START.copy()).requires_grad_(), torch.no_grad
        )
        if theirs == "overlap":
            continue
        mine = run(steps, from_numpy(START.copy()).requires_grad_(), no_grad)
        if isinstance(theirs, str) or isinstance(mine, str):
            assert mine == theirs, (seed, steps)
            kinds.add(theirs)
            continue
        kinds.add("value")
        assert (mine[1] is None) == (theirs[1] is None), (seed, steps)
        np.testing.assert_allclose(mine[0], theirs[0], err_msg=str((seed, steps)))
        if mine[1] is not None:
            np.testing.assert_allclose(mine[1], theirs[1], err_msg=str((seed, steps)))
    # Programs that all end the same way would test little.
    assert {"value", "forward"} <= kinds
