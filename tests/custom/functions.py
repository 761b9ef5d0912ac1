# What is done with tensors gives Any.
# mypy: disable-error-code=no-any-return
"""Functions that operators are made of, and calls both ways."""

from collections.abc import Callable
from typing import Any

from everyorder.runtime import Tensor, ops, tensor
from everyorder.runtime.dispatch.kernel_lookup import WARM

# So many calls that the operator has had its call stub for some.
CALLS = WARM + 4


def double(x: Tensor) -> Tensor:
    return x * 2


def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    return x * factor


def add_one(x: Tensor) -> None:
    x.add_(1)


def repeatedly(call: Callable[[], Any]) -> list[Any]:
    """The results of calls the plain way, and by the call stub."""
    return [call() for _ in range(CALLS)]


def leaf(*values: float) -> Tensor:
    return tensor([*values], requires_grad=True)


def grad(output: Tensor, *inputs: Tensor, create_graph: bool = False) -> Any:
    from everyorder.runtime.autograd import grad as gradient

    return gradient(output, inputs, create_graph=create_graph)


def like(x: Tensor) -> Tensor:
    """A tensor of the same shape, with any elements."""
    made: Tensor = ops.core.empty_like(x)
    return made
