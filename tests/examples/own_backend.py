"""A backend of one's own: what somebody writes to bring a device to the runtime.

Three kernels are enough to compute, and for sums of products to be differentiated: the
formulas of `core` are written with its operators, so they run wherever those have
kernels (that of `relu` wants `relu_backward`, and says so by name).  Storages of a
device that registers no memory lie in host memory, which is where a backend starts.
"""

from typing import Any

import numpy as np

from everyorder.runtime import Tensor, direct, tensor
from everyorder.runtime.dispatch.kernel import Kernel
from everyorder.runtime.tensors import array_of

# The device whose tensors carry the key PrivateUse1.
DEVICE = "privateuseone"


def made(values: Any) -> Tensor:
    return tensor(np.asarray(values, dtype=np.float32), device=DEVICE)


def add_own(self: Tensor, other: Tensor, alpha: Any) -> Tensor:
    return made(array_of(self) + alpha * array_of(other))


def mul_own(self: Tensor, other: Tensor) -> Tensor:
    return made(array_of(self) * array_of(other))


def relu_own(self: Tensor) -> Tensor:
    return made(np.maximum(array_of(self), 0))


# Operator of `core` -> the kernel for it.
KERNELS: dict[str, Kernel] = {
    "add": direct(add_own),
    "mul": direct(mul_own),
    "relu": direct(relu_own),
}
