"""Random programs of in-place views, views and writes, side by side with torch.

True only here: every loss weighs each element differently, so that a gradient which is
turned the wrong way is seen.  What one side refuses the other must refuse.  Programs
are left out in which torch finds memory that overlaps, which is copied here; and no
leaf is turned past a graph that has it already.
"""

import random
from typing import Any

import numpy as np
import pytest

from everyorder.runtime import from_numpy
from everyorder.runtime.autograd import no_grad

torch: Any = pytest.importorskip("torch", reason="torch is not installed")
pytestmark = pytest.mark.torch

START = np.arange(1.0, 10.0).reshape(3, 3) / 8

# What is done to a tensor of the program; what it returns joins the program.
STEPS: dict[str, Any] = {
    "t_": lambda a: a.t_(),
    "transpose_": lambda a: a.transpose_(0, -1),
    "unsqueeze_": lambda a: a.unsqueeze_(0),
    "unsqueeze_ last": lambda a: a.unsqueeze_(-1),
    "squeeze_": lambda a: a.squeeze_(),
    "squeeze_ first": lambda a: a.squeeze_(0),
    "row": lambda a: a[0],
    "whole": lambda a: a[:],
    "narrow": lambda a: a[..., :2],
    "split": lambda a: a.split(1)[0],
    "expand": lambda a: a.expand(2, *a.shape),
    "double": lambda a: a * 2,
    "sin": lambda a: a.sin(),
    "detach": lambda a: a.detach(),
    "mul_": lambda a: a.mul_(3),
    "scale_": lambda a: a.mul_(weights(a)),
    "cut_": lambda a: a[..., :1].mul_(0.5),
}
# These may also run where nothing is recorded.
QUIET = ("whole", "row", "unsqueeze_", "mul_")
Step = tuple[str, bool, float]


def weights(a: Any) -> Any:
    """A tensor of the shape of `a`, on its side, all elements different."""
    count = int(np.prod(tuple(a.shape), dtype=int))
    made = (np.arange(1.0, count + 1) / 4).reshape(tuple(a.shape))
    return torch.from_numpy(made) if isinstance(a, torch.Tensor) else from_numpy(made)


def program(seed: int) -> list[Step]:
    chance = random.Random(seed)
    return [
        (name, chance.random() < 0.2, chance.random())
        for name in chance.choices([*STEPS], k=chance.randint(2, 9))
    ]


def run(steps: list[Step], x: Any, quiet: Any) -> Any:
    """Shapes, the loss and the gradient, or where it was refused."""
    tensors = [x, x * 1.5]
    try:
        for name, silent, place in steps:
            a = tensors[int(place * len(tensors))]
            if len(a.shape) > 3 or (name == "t_" and len(a.shape) > 2):
                continue
            if name in ("row", "narrow", "split", "cut_", "transpose_") and not a.shape:
                continue
            if silent and name in QUIET and a is not x:
                with quiet():
                    made = STEPS[name](a)
            else:
                made = STEPS[name](a)
            if made is not a and name != "cut_":
                tensors.append(made)
        loss = sum((each * weights(each)).sum() for each in tensors[1:])
    except (RuntimeError, ValueError, IndexError) as error:
        told = str(error)
        return "overlap" if "single memory location" in told else "forward"
    shapes = [tuple(t.shape) for t in tensors]
    kinds = [(t.requires_grad, t.is_leaf) for t in tensors]
    try:
        loss.backward()
    except RuntimeError:
        return "backward"
    gradient = None if x.grad is None else x.grad.tolist()
    return shapes, kinds, round(loss.item(), 6), gradient


@pytest.mark.parametrize("block", range(4))
def test_programs(block: int) -> None:
    seen = set()
    for seed in range(block * 200, block * 200 + 200):
        steps = program(seed)
        theirs = run(
            steps, torch.from_numpy(START.copy()).requires_grad_(), torch.no_grad
        )
        if theirs == "overlap":
            continue
        mine = run(steps, from_numpy(START.copy()).requires_grad_(), no_grad)
        seen.add(theirs if isinstance(theirs, str) else "value")
        if isinstance(mine, str) or isinstance(theirs, str):
            assert mine == theirs, (seed, steps)
            continue
        assert mine[:3] == theirs[:3], (seed, steps)
        assert (mine[3] is None) == (theirs[3] is None), (seed, steps)
        if mine[3] is not None:
            np.testing.assert_allclose(mine[3], theirs[3], err_msg=str((seed, steps)))
    assert {"value", "forward"} <= seen
