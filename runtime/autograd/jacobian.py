"""Jacobians of functions of tensors, by finite differences and by running backwards.

True only here: what is compared where numbers are complex.  A gradient is that of a
real function, so a complex output is looked at twice: its real part (the gradient that
comes in is 1) and its imaginary part (it is 1j).  By a complex input the entry is the
derivative along the real axis plus 1j times that along the imaginary axis.

A Jacobian is an array (parts of the output, input elements, output elements).

Source: central differences; Nocedal and Wright, "Numerical Optimization", 2nd edition,
section 8.1.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from runtime.autograd.backward import grad
from runtime.operators.call import core
from runtime.tensors.making import from_numpy
from runtime.tensors.tensor import Tensor

if TYPE_CHECKING:
    import numpy as np

Outputs = Callable[[], Sequence[Tensor]]


def parts_of(output: Tensor) -> tuple[complex, ...]:
    """The gradients that the parts of an output are looked at with."""
    return (1, 1j) if output.dtype.is_complex else (1,)


def numerical(
    outputs: Outputs, point: Tensor, eps: float
) -> "list[np.ndarray[Any, Any]]":
    """The Jacobian of each output by the elements of `point`, by central differences.

    `outputs` computes them from `point`, whose elements are changed for a moment; its
    version is not.
    """
    import numpy as np

    elements = core.detach(point).numpy()
    found: list[list[Any]] = []
    steps = (eps, 1j * eps) if point.dtype.is_complex else (eps,)
    for place in np.ndindex(point.shape):
        columns = []
        kept = elements[place]
        for step in steps:
            elements[place] = kept + step
            after = _arrays(outputs())
            elements[place] = kept - step
            before = _arrays(outputs())
            elements[place] = kept
            turn = 1j if isinstance(step, complex) else 1
            columns.append(
                [
                    turn * _split((high - low) / (2 * eps))
                    for high, low in zip(after, before, strict=True)
                ]
            )
        found.append([sum(each) for each in zip(*columns, strict=True)])
    if not found:
        return [_empty(output, 0) for output in outputs()]
    return [np.stack(rows, axis=1) for rows in zip(*found, strict=True)]


def analytical(
    output: Tensor, points: Sequence[Tensor]
) -> "list[np.ndarray[Any, Any]]":
    """The Jacobian of one output by each of `points`, by running backwards."""
    import numpy as np

    count = output.numel()
    parts = parts_of(output)
    found = [
        np.zeros((len(parts), point.numel(), count), np.complex128) for point in points
    ]
    if not output._requires_grad:
        return found
    form = output.detach().numpy().dtype
    for which, part in enumerate(parts):
        for element in range(count):
            one = np.zeros(count, form)
            one[element] = part
            gradients = grad(
                output,
                points,
                from_numpy(one.reshape(output.shape)),
                retain_graph=True,
                allow_unused=True,
            )
            for jacobian, gradient in zip(found, gradients, strict=True):
                if gradient is not None:
                    values = core.detach(gradient).numpy()
                    jacobian[which, :, element] = values.reshape(-1)
    return found


def _arrays(outputs: Sequence[Tensor]) -> "list[np.ndarray[Any, Any]]":
    import numpy as np

    return [np.array(core.detach(output).numpy()).reshape(-1) for output in outputs]


def _split(difference: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """The difference as its parts, each a row."""
    import numpy as np

    if np.iscomplexobj(difference):
        return np.stack([difference.real, difference.imag]).astype(np.complex128)
    return difference[None].astype(np.complex128)


def _empty(output: Tensor, rows: int) -> "np.ndarray[Any, Any]":
    import numpy as np

    return np.zeros((len(parts_of(output)), rows, output.numel()), np.complex128)
