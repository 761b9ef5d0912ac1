"""Gradients of elementwise functions that are worth a kernel of their own.

True only here: operators that autograd's formulas call.  They are differentiable
themselves where their formulas say so, and have no in-place forms.
"""

from collections.abc import Callable

from runtime.operators.binary import plan_pair
from runtime.operators.plan import COMPLEXES, FLOATS, Plan
from runtime.operators.structured import Structured
from runtime.operators.unary import Rows, check_approximate, same
from runtime.tensors.tensor import Tensor

ROWS: dict[str, Rows] = {
    "relu_backward": same(FLOATS),
    "sigmoid_backward": same(FLOATS | COMPLEXES),
    "tanh_backward": same(FLOATS | COMPLEXES),
}
_SMOOTH = same(FLOATS)
_SILU = same(FLOATS | COMPLEXES)


def _of_result(rows: Rows) -> Callable[..., Plan]:
    def plan(call: str, grad: Tensor, result: Tensor) -> Plan:
        return plan_pair(call, rows, grad, result)

    return plan


def plan_gelu_backward(call: str, grad: Tensor, self: Tensor, approximate: str) -> Plan:
    """The gradient of gelu at `self`, exact or by tanh."""
    check_approximate(call, approximate)
    return plan_pair(call, _SMOOTH, grad, self, (approximate,))


def plan_silu_backward(call: str, grad: Tensor, self: Tensor) -> Plan:
    """The gradient of silu at `self`."""
    return plan_pair(call, _SILU, grad, self)


OPERATORS = (
    *(
        Structured(
            name,
            "Tensor grad, Tensor result",
            _of_result(rows),
            out=False,
            tags=("pointwise",),
        )
        for name, rows in ROWS.items()
    ),
    Structured(
        "gelu_backward",
        'Tensor grad, Tensor self, *, str approximate="none"',
        plan_gelu_backward,
        out=False,
        tags=("pointwise",),
    ),
    Structured(
        "silu_backward",
        "Tensor grad, Tensor self",
        plan_silu_backward,
        out=False,
        tags=("pointwise",),
    ),
)
