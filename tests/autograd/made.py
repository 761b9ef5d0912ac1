"""What the tests of autograd make and read."""

from typing import Any

import numpy as np

from everyorder.runtime import Tensor, tensor
from everyorder.runtime.tensors.construction import from_numpy


def leaf(*values: float, dtype: str = "float64") -> Any:
    """A tensor that requires grad."""
    return tensor(list(values), dtype=dtype, requires_grad=True)


def grad_of(x: Tensor) -> Tensor:
    """The gradient that was accumulated."""
    assert x.grad is not None
    return x.grad


def points(*shapes: tuple[int, ...], low: float = 0.3, high: float = 1.7) -> list[Any]:
    """Float64 tensors that require grad, with different elements in a mixed order."""
    made = []
    for turn, shape in enumerate(shapes):
        count = int(np.prod(shape))
        steps = np.random.default_rng(turn + 7).permutation(count) + 0.5
        values = low + (high - low) * steps / max(count, 1)
        made.append(real(values.reshape(shape)))
    return made


def real(values: Any) -> Tensor:
    return from_numpy(np.array(values, np.float64)).requires_grad_()


def complex_(*shape: int) -> Tensor:
    rng = np.random.default_rng(3)
    values = rng.uniform(0.3, 1.2, shape) + 1j * rng.uniform(0.2, 1.1, shape)
    return from_numpy(np.array(values)).requires_grad_()


def whole(values: Any) -> Tensor:
    return from_numpy(np.array(values, np.int64))


def truth(values: Any) -> Tensor:
    return from_numpy(np.array(values, np.bool_))
