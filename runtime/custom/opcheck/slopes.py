"""Slopes: gradients against finite differences, of few elements or along one line.

True only here: what is compared where there are many elements.  Every element costs two
calls forwards, every element of an output one backwards; past `MOST_CALLS` the sample
moves along one fixed direction, of which each tensor has its own part, and outputs are
weighed into one number: that takes two calls forwards and one backwards, and a wrong
entry still shows, unless others cancel it out.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.autograd.gradcheck import ATOL, RTOL, gradcheck
from runtime.custom.opcheck.points import Points
from runtime.errors.autograd import GradcheckMisuse
from runtime.operators.call import core
from runtime.operators.functions import allclose
from runtime.tensors.data import tensor as tensor_of
from runtime.tensors.making import from_numpy
from runtime.tensors.tensor import Tensor

# At 10 us to 1 ms a call, that is a few seconds at most.
MOST_CALLS = 2000
WIDE = ("float64", "complex128")
# A relative step that float64 sees and float32 does not, and what float16 may be off.
FINE, COARSE = 1e-9, 1e-2


def is_wide(tensor: Tensor) -> bool:
    """Whether a tensor is of a dtype that finite differences can tell of."""
    return tensor.dtype.name in WIDE


def computes_wide(wide: Points, narrow: Points) -> bool:
    """Whether an operator does with `wide` numbers what it does with `narrow` ones.

    Not if it computes in narrow ones all the same: then a fine step changes nothing;
    nor if it does something else for another dtype.
    """
    leaves = wide.leaves()
    moved = [core.mul(core.detach(leaf), 1 + FINE).requires_grad_() for leaf in leaves]
    at, beside = wide.function(*leaves), wide.function(*moved)
    if all(core.equal(*pair) for pair in zip(at, beside, strict=True)):
        return False
    there = narrow.function(*narrow.leaves())
    return all(
        allclose(
            core.detach(one),
            core._to_copy(core.detach(two), dtype=one.dtype),
            COARSE,
            COARSE,
            equal_nan=True,
        )
        for one, two in zip(at, there, strict=True)
    )


def is_large(points: Points, leaves: Sequence[Tensor]) -> bool:
    """Whether comparing every element would take more than `MOST_CALLS`."""
    outputs = [part.tensor for part in points.outputs(leaves)]
    return sum(each.numel() for each in [*leaves, *outputs]) > MOST_CALLS


def compare_slopes(points: Points, leaves: Sequence[Tensor]) -> None:
    """Compare gradients at `leaves` with finite differences.

    Raises `GradcheckFailed`, and `GradcheckMisuse` where they say nothing.
    """
    if not all(map(is_wide, leaves)):
        raise GradcheckMisuse(fault="finite differences of narrow numbers say nothing")
    sample = points.sample
    atol = ATOL if sample.atol is None else sample.atol
    rtol = RTOL if sample.rtol is None else sample.rtol
    function, at = points.function, [*leaves]
    if is_large(points, leaves):
        function = _along(points, leaves)
        at = [tensor_of(0.0, dtype=leaf.dtype, requires_grad=True) for leaf in leaves]
    gradcheck(function, at, atol=atol, rtol=rtol)


def _along(points: Points, leaves: Sequence[Tensor]) -> Callable[..., Any]:
    """The weighed outputs as a function of how far each leaf has moved."""

    def function(*steps: Tensor) -> tuple[Tensor, ...]:
        moved = [
            core.add(core.detach(leaf), core.mul(_fixed(leaf), step))
            for leaf, step in zip(leaves, steps, strict=True)
        ]
        outputs = points.outputs(moved)
        return tuple(
            core.sum(core.mul(part.tensor, _fixed(part.tensor))) for part in outputs
        )

    return function


def _fixed(like: Tensor) -> Tensor:
    """Numbers of either sign in the shape and dtype of a tensor, always the same."""
    import numpy as np

    turns = np.arange(1, like.numel() + 1, dtype=np.float64) * 2.5
    made = from_numpy(np.cos(turns).reshape(like.shape))
    return made if made.dtype is like.dtype else core._to_copy(made, dtype=like.dtype)
