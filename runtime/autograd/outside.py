"""Names of torch's `autograd` that are not here, and what to use instead."""

from typing import Any

# Name -> why it is absent, and what to use.
OUTSIDE = {
    "detect_anomaly": "errors of a backward pass name the operator; use hooks of nodes",
    "forward_ad": "gradients are computed backwards; differentiate the result of "
    "`grad(..., create_graph=True)`",
    "functional": "call `grad` for each row of a Jacobian; it can be differentiated "
    "again with `create_graph=True`",
    "profiler": "use `default_dispatcher().trace()`, which lists every call",
}


def __getattr__(name: str) -> Any:
    """Raise AttributeError with the replacement; the package imports this function."""
    reason = OUTSIDE.get(name)
    text = f"module 'everyorder.runtime.autograd' has no attribute {name!r}"
    raise AttributeError(f"{text}: {reason}" if reason else text, name=name)
