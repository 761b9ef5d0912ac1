"""Numbers counted up, for the tests of what moves elements."""

from typing import Any

import numpy as np

from runtime.tensors import tensor
from runtime.tensors.tensor import Tensor

Array = np.ndarray[Any, Any]


def grid(*shape: int) -> Array:
    """The numbers from 0 on in a shape."""
    return np.arange(int(np.prod(shape))).reshape(shape)


def on_meta(*tensors: Any) -> tuple[Any, ...]:
    """The same with tensors on meta; what is none stays."""
    return tuple(
        tensor(each, device="meta") if isinstance(each, Tensor) else each
        for each in tensors
    )


def cube() -> Tensor:
    """2 x 3 x 4 numbers."""
    return tensor(np.arange(24).reshape(2, 3, 4))


MATRIX = tensor(grid(2, 3))
