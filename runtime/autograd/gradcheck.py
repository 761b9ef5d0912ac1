"""gradcheck: compare gradients with finite differences of the function.

A Jacobian is an array (parts of the output, input elements, output elements), computed
twice: by central differences and by running backwards. A gradient belongs to a real
function, so a complex output is checked twice: its real part (with the output gradient
1) and its imaginary part (with 1j). For a complex input the entry is the derivative
along the real axis plus 1j times the derivative along the imaginary axis.

Rules:
- inputs whose gradients are checked require grad, and should be float64 or complex128:
  finite differences of narrower numbers are inaccurate, which a warning says;
- outputs that do not require grad are not compared, unless no output requires grad:
  then the outputs must not depend on the inputs;
- the function runs again with one element changed at a time; it must depend on its
  inputs only, which is checked by running it backwards twice;
- a failure is an error with the entry of the greatest difference, or False where
  `raise_exception` is off.

Source: central differences; Nocedal and Wright, "Numerical Optimization", 2nd edition,
section 8.1.
"""

from collections.abc import Callable, Sequence
from typing import Any
from warnings import warn

import numpy as np

from everyorder.runtime.autograd.engine import grad
from everyorder.runtime.errors.autograd import AutogradMisuse, GradcheckFailed
from everyorder.runtime.operators.declare.handles import core
from everyorder.runtime.tensors.construction import from_numpy
from everyorder.runtime.tensors.dtype_info import DIFFERENTIABLE
from everyorder.runtime.tensors.shape import may_overlap_itself
from everyorder.runtime.tensors.tensor import Tensor

Outputs = Callable[[], Sequence[Tensor]]


def parts_of(output: Tensor) -> tuple[complex, ...]:
    """Return the output gradients with which the parts of an output are checked."""
    return (1, 1j) if output.dtype.is_complex else (1,)


def numerical(
    outputs: Outputs, point: Tensor, eps: float
) -> list[np.ndarray[Any, Any]]:
    """Return the Jacobian of each output by the elements of `point`.

    `outputs` computes the outputs from `point`. The central differences change the
    elements of `point` temporarily, but not its version.
    """
    elements = core.detach(point).numpy()
    jacobian_rows: list[list[Any]] = []
    steps = (eps, 1j * eps) if point.dtype.is_complex else (eps,)
    for place in np.ndindex(point.shape):
        columns = []
        original = elements[place]
        for step in steps:
            elements[place] = original + step
            after = _arrays(outputs())
            elements[place] = original - step
            before = _arrays(outputs())
            elements[place] = original
            turn = 1j if isinstance(step, complex) else 1
            columns.append(
                [
                    turn * _split((high - low) / (2 * eps))
                    for high, low in zip(after, before, strict=True)
                ]
            )
        jacobian_rows.append([sum(each) for each in zip(*columns, strict=True)])
    if not jacobian_rows:
        return [_empty(output, 0) for output in outputs()]
    return [np.stack(rows, axis=1) for rows in zip(*jacobian_rows, strict=True)]


def analytical(output: Tensor, points: Sequence[Tensor]) -> list[np.ndarray[Any, Any]]:
    """Return the Jacobian of one output by each of `points`, by running backwards."""
    count = output.numel()
    parts = parts_of(output)
    jacobians = [
        np.zeros((len(parts), point.numel(), count), np.complex128) for point in points
    ]
    if not output._requires_grad:
        return jacobians
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
            for jacobian, gradient in zip(jacobians, gradients, strict=True):
                if gradient is not None:
                    values = core.detach(gradient).numpy()
                    jacobian[which, :, element] = values.reshape(-1)
    return jacobians


def _arrays(outputs: Sequence[Tensor]) -> list[np.ndarray[Any, Any]]:
    return [np.array(core.detach(output).numpy()).reshape(-1) for output in outputs]


def _split(difference: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the real and imaginary parts of the difference, each as a row."""
    if np.iscomplexobj(difference):
        return np.stack([difference.real, difference.imag]).astype(np.complex128)
    return difference[None].astype(np.complex128)


def _empty(output: Tensor, rows: int) -> np.ndarray[Any, Any]:
    return np.zeros((len(parts_of(output)), rows, output.numel()), np.complex128)


# The step of central differences in float64: near the cube root of its precision, where
# rounding and curvature cost about the same.
EPS = 1e-6
ATOL, RTOL = 1e-5, 1e-3
_WIDE = ("float64", "complex128")


class InaccurateGradcheck(UserWarning):
    """A warning that finite differences of an input's dtype are inaccurate."""


def gradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Return True if the gradients of `func` at `inputs` match finite differences.

    Args:
        func: accepts the inputs, returns one tensor or several.
        inputs: its arguments; tensors that require grad are checked.
        eps: the step of the differences.
        atol, rtol: the tolerated difference of entries, absolute and relative to the
            numerical one.
        raise_exception: raise an error for a wrong gradient, or else return False.
        nondet_tol: the tolerated difference between two backward runs.

    An input of another dtype than float64 and complex128 causes a warning,
    `InaccurateGradcheck`.

    Raises:
        AutogradMisuse: no input can be checked, or an input that requires grad cannot.
        GradcheckFailed: an entry differs.
    """
    arguments = [inputs] if isinstance(inputs, Tensor) else [*inputs]
    points = _points(arguments)
    try:
        _check(func, arguments, points, (eps, atol, rtol, nondet_tol))
    except GradcheckFailed:
        if raise_exception:
            raise
        return False
    return True


def gradgradcheck(
    func: Callable[..., Any],
    inputs: Tensor | Sequence[Any],
    grad_outputs: Sequence[Tensor] | None = None,
    *,
    eps: float = EPS,
    atol: float = ATOL,
    rtol: float = RTOL,
    raise_exception: bool = True,
    nondet_tol: float = 0.0,
) -> bool:
    """Run `gradcheck` on the gradients of `func`, by its inputs and by `grad_outputs`.

    Without `grad_outputs`, fixed numbers of both signs are used.
    """
    values = [inputs] if isinstance(inputs, Tensor) else [*inputs]
    count = len(values)
    point_places = [i for i, value in enumerate(values) if _is_point(value)]
    if grad_outputs is None:
        outputs = _outputs(func, values)
        grad_outputs = [fixed_numbers(output).requires_grad_() for output in outputs]

    def gradients(*arguments: Any) -> Any:
        own, outer = arguments[:count], arguments[count:]
        outputs = _outputs(func, own)
        results = grad(
            outputs,
            [own[place] for place in point_places],
            outer,
            create_graph=True,
            allow_unused=True,
        )
        return tuple(
            each for each in results if each is not None and each._requires_grad
        )

    return gradcheck(
        gradients,
        [*values, *grad_outputs],
        eps=eps,
        atol=atol,
        rtol=rtol,
        raise_exception=raise_exception,
        nondet_tol=nondet_tol,
    )


def _check(
    func: Callable[..., Any],
    arguments: Sequence[Any],
    points: Sequence[Tensor],
    limits: tuple[float, float, float, float],
) -> None:
    eps, atol, rtol, nondet = limits
    outputs = _outputs(func, arguments)
    by_backward = [analytical(output, points) for output in outputs]
    again = [analytical(output, points) for output in _outputs(func, arguments)]
    compared = [at for at, output in enumerate(outputs) if output._requires_grad]
    for number, point in enumerate(points):
        by_steps = numerical(lambda: _outputs(func, arguments), point, eps)
        for which in compared or range(len(outputs)):
            actual, expected = by_backward[which][number], by_steps[which]
            place = which, number
            _compare(place, actual, again[which][number], nondet, 0.0, _TWICE)
            _compare(place, actual, expected, atol, rtol, _DIFFERS)


_TWICE = "the function run backwards twice gave two gradients"
_DIFFERS = "the gradient is not that of finite differences"


def _compare(
    which: tuple[int, int],
    actual: np.ndarray[Any, Any],
    expected: np.ndarray[Any, Any],
    atol: float,
    rtol: float,
    reason: str,
) -> None:
    near = np.isclose(actual, expected, rtol, atol, equal_nan=True)
    if near.all():
        return
    apart = np.where(near, -1.0, np.nan_to_num(np.abs(actual - expected), nan=np.inf))
    worst = np.unravel_index(int(apart.argmax()), apart.shape)
    raise GradcheckFailed(
        output=which[0],
        input=which[1],
        place=(int(worst[1]), int(worst[2])),
        analytical=_shown(actual[worst]),
        numerical=_shown(expected[worst]),
        difference=f"{float(np.abs(actual[worst] - expected[worst])):.6g}",
        reason=reason,
    )


def _shown(number: Any) -> str:
    return f"{number.real:.9g}" if number.imag == 0 else f"{complex(number):.9g}"


def _outputs(func: Callable[..., Any], arguments: Sequence[Any]) -> list[Tensor]:
    """Return the outputs of the function whose dtype can have gradients."""
    result = func(*arguments)
    several = [result] if isinstance(result, Tensor) else [*result]
    return [each for each in several if each.dtype in DIFFERENTIABLE]


def _is_point(value: Any) -> bool:
    return isinstance(value, Tensor) and value._requires_grad


def gradcheck_misuse(fault: str) -> AutogradMisuse:
    """Return the error for inputs that cannot be checked."""
    return AutogradMisuse(code="GradcheckMisuse", fault=fault)


def _points(arguments: Sequence[Any]) -> list[Tensor]:
    points = [value for value in arguments if _is_point(value)]
    if not points:
        raise gradcheck_misuse("no input requires grad")
    for point in points:
        if point.dtype.name not in _WIDE:
            warn(
                f"gradcheck: an input is {point.dtype}, whose finite differences are "
                f"inaccurate; pass {' or '.join(_WIDE)}, or greater tolerances",
                InaccurateGradcheck,
                stacklevel=3,
            )
        if point.device.type != "cpu":
            raise gradcheck_misuse(f"an input is on {point.device}, not on cpu")
        if may_overlap_itself(point.shape, point.strides):
            raise gradcheck_misuse(
                f"elements of an input of shape {point.shape} and strides "
                f"{point.strides} share memory"
            )
    return points


def fixed_numbers(like: Tensor) -> Tensor:
    """Return fixed numbers of both signs in the shape and dtype of a tensor."""
    steps = np.arange(1, like.numel() + 1, dtype=np.float64)
    values: Any = np.cos(steps * 2.5)
    if like.dtype.is_complex:
        values = values + 1j * np.sin(steps)
    numbers = from_numpy(values.reshape(like.shape))
    return numbers if numbers.dtype is like.dtype else numbers.to(like.dtype)
