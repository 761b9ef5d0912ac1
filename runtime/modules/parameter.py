"""Parameters: tensors that belong to a module, and that are learned.

True only here: what a parameter is.

Rules:
- a parameter is a tensor on the elements that it is made of, without their history, and
  requires a gradient unless told otherwise;
- what operators compute of it is a tensor like any other.
"""

from typing import Any

from runtime.tensors import Tensor
from runtime.tensors.data import tensor as tensor_of


class Parameter(Tensor):
    """A tensor that a module has for learning: `Parameter(data, requires_grad=True)`.

    `data` is a tensor, or what `runtime.tensor` takes; without it there are no
    elements yet.
    """

    def __new__(cls, data: Any = (), requires_grad: bool = True) -> "Parameter":
        """A parameter on the elements of `data`."""
        found = data if isinstance(data, Tensor) else tensor_of(data)
        return Tensor._make_subclass(cls, found.detach(), requires_grad)
