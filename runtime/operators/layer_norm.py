"""Layer normalisation over the last dimensions.

True only here: which dimensions those are, and what the three results and the three
gradients look like.  Means and reciprocal deviations keep the dtype computed in, so
that nothing is lost between the two directions; weight and bias have the dtype of the
input, or float32 beside an input of sixteen bits.
"""

from collections.abc import Sequence

from runtime.errors.operands import DTypeRefused
from runtime.operators.agreement import computing, misfit, require_shape
from runtime.operators.call import core
from runtime.operators.plan import (
    FLOATS,
    Plan,
    require_dtype,
    same_device,
)
from runtime.operators.structured import Structured, Written, composed
from runtime.tensors.elements import compute_dtype
from runtime.tensors.tensor import Tensor


def _inner(call: str, x: Tensor, normalized: tuple[int, ...]) -> int:
    """How many elements one group has.  Raises `ShapesDoNotFit`."""
    count = len(normalized)
    if not count or x.shape[-count:] != normalized:
        raise misfit(
            call,
            f"input does not end in the normalised shape {normalized}",
            f"input of shape (..., {', '.join(map(str, normalized))})"
            if count
            else "a normalised shape of at least one dimension",
            ("input", x),
        )
    inner = 1
    for size in normalized:
        inner *= size
    return inner


def _check_dtype(call: str, name: str, given: Tensor | None, x: Tensor) -> None:
    """Make sure of the dtype of the input, or of the one it is computed in."""
    if given is not None and given.dtype not in (
        x.dtype,
        compute_dtype(x.dtype),
    ):
        raise DTypeRefused(
            operator=call,
            argument=name,
            dtype=str(given.dtype),
            fits=f"{x.dtype}, the dtype of input",
        )


def plan_forward(
    call: str,
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Plan:
    """The normalised input, the means and the reciprocal deviations."""
    device = same_device(call, x, weight, bias)
    require_dtype(call, "input", x.dtype, FLOATS, "floating-point numbers")
    normalized = tuple(normalized_shape)
    inner = _inner(call, x, normalized)
    for name, given in (("weight", weight), ("bias", bias)):
        require_shape(call, (name, given), normalized)
        _check_dtype(call, name, given, x)
    computed = compute_dtype(x.dtype)
    groups = x.shape[: -len(normalized)] + (1,) * len(normalized)
    return Plan(
        ((x.shape, x.dtype), (groups, computed), (groups, computed)),
        device,
        (x, inner, weight, bias, eps),
        computing(x.dtype),
        (0, 2, 3),
        kernel="layer_norm",
    )


def plan_backward(
    call: str,
    grad: Tensor,
    x: Tensor,
    normalized_shape: Sequence[int],
    mean: Tensor,
    rstd: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    output_mask: Sequence[bool],
) -> Plan:
    """The gradients of input, weight and bias; None where the mask is false."""
    device = same_device(call, grad, x, mean, rstd, weight, bias)
    require_dtype(call, "input", x.dtype, FLOATS, "floating-point numbers")
    normalized = tuple(normalized_shape)
    inner = _inner(call, x, normalized)
    groups = x.shape[: -len(normalized)] + (1,) * len(normalized)
    require_shape(call, ("grad", grad), x.shape)
    require_shape(call, ("mean", mean), groups)
    require_shape(call, ("rstd", rstd), groups)
    require_shape(call, ("weight", weight), normalized)
    for name, given in (
        *(("grad", grad), ("mean", mean), ("rstd", rstd)),
        *(("weight", weight), ("bias", bias)),
    ):
        _check_dtype(call, name, given, x)
    to_input, to_weight, to_bias = output_mask
    outputs = (
        (x.shape, x.dtype) if to_input else None,
        (normalized, weight.dtype) if to_weight and weight is not None else None,
        (normalized, bias.dtype) if to_bias and bias is not None else None,
    )
    return Plan(
        outputs,
        device,
        (grad, x, mean, rstd, weight, inner),
        computing(x.dtype),
        (0, 1, 2, 3, 4),
        kernel="layer_norm_backward",
    )


def layer_norm(
    x: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None,
    bias: Tensor | None,
    eps: float,
) -> Tensor:
    """The normalised input alone."""
    result: Tensor = core.native_layer_norm(x, normalized_shape, weight, bias, eps)[0]
    return result


OPERATORS = (
    Structured(
        "native_layer_norm",
        "Tensor input, int[] normalized_shape, Tensor? weight, Tensor? bias, float eps",
        plan_forward,
        returns="(Tensor, Tensor, Tensor)",
        remembers=True,
        autocast="float32",
    ),
    Structured(
        "native_layer_norm_backward",
        "Tensor grad, Tensor input, int[] normalized_shape, Tensor mean, Tensor rstd,"
        " Tensor? weight, Tensor? bias, bool[3] output_mask",
        plan_backward,
        returns="(Tensor?, Tensor?, Tensor?)",
    ),
    Written(
        "layer_norm(Tensor input, int[] normalized_shape, Tensor? weight=None,"
        " Tensor? bias=None, float eps=1e-05) -> Tensor",
        {"CompositeImplicitAutograd": composed("core::layer_norm", layer_norm)},
        says="The last dimensions brought to mean 0 and variance 1.",
        autocast="float32",
    ),
)
