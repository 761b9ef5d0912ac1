"""Targets: a finished result handed over to the tensor given as `out`.

True only here: the out= form of operators that are made of other operators.  The result
is whole before the target is touched, and the target is checked as in `produce`.  It is
written below the dispatcher, so that its version rises once, by the call itself.
"""

from runtime.operators.copying import copy_into
from runtime.operators.produce import adopt, check_target
from runtime.tensors.tensor import Tensor


def hand_over(result: Tensor, out: Tensor, call: str) -> Tensor:
    """Write `result` to `out`; returns `out`.

    Raises:
        DevicesDiffer, TargetDType, TargetShape, TargetOverlaps: it does not fit.
    """
    shape = result.shape
    check_target(out, "out", call, shape, result.dtype, result.device)
    if out.shape != shape:
        adopt(out, result)
    else:
        copy_into(out, result)
    return out
