"""Gradients and autocast on a device: run by `tests.autograd.test_on_device`.

    python -m tests.autograd.on_device

Every computation is done on the CPU, too; the process fails where they differ, and says
in its last line how many were compared.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from everyorder.runtime import ops, tensor
from everyorder.runtime.autograd import autocast, grad
from everyorder.runtime.autograd.grad_mode import no_grad

X = np.array([[0.3, -0.4, 0.5], [0.7, 0.2, -0.6]], np.float32)
W = np.array([[0.1, 0.9, 0.8], [-0.2, 0.4, -0.7]], np.float32)
B = np.array([0.5, -0.25], np.float32)
WANTED = np.array([1, 0], np.int64)

Tensors = Sequence[Any]


def layer(device: str, tensors: Tensors) -> Any:
    x, w, b = tensors
    scores = ops.core.relu(ops.core.linear(x, w, b))
    return ops.core.cross_entropy(scores, tensor(WANTED, device=device))


def views(device: str, tensors: Tensors) -> Any:
    x, w, b = tensors
    y = x * w
    y[0].mul_(2)
    y.t()[1].add_(b)
    return (y.exp() * y.sum(1, keepdim=True)).mean()


def second(device: str, tensors: Tensors) -> Any:
    x, w, _ = tensors
    (slope,) = grad((x * x * w).sum(), x, create_graph=True)
    assert slope is not None
    return (slope * slope).sum() + ops.core.softmax(slope, 1)[0, 0]


def mixed(device: str, tensors: Tensors) -> Any:
    fast = "float16"
    with autocast(device, dtype=fast):
        low = ops.core.linear(*tensors)
        wide = low.exp()
        assert str(low.dtype).endswith(fast), low.dtype
        assert str(wide.dtype).endswith("float32"), wide.dtype
        with autocast(device, enabled=False):
            assert str((tensors[0] * 2).dtype).endswith("float32")
    return wide.sum()


def gradients(compute: Callable[[str, Tensors], Any], device: str) -> list[Any]:
    """The loss and the gradients, as arrays."""
    tensors = [tensor(a, device=device).detach().requires_grad_() for a in (X, W, B)]
    loss = compute(device, tensors)
    assert loss.device.type == device
    loss.backward()
    again = [each.grad for each in tensors if each.grad is not None]
    with no_grad():
        return [each.detach().cpu().numpy() for each in (loss, *again)]


def main() -> None:
    compared = 0
    for compute in (layer, views, second, mixed):
        found, wanted = gradients(compute, "cuda"), gradients(compute, "cpu")
        assert len(found) == len(wanted)
        for one, other in zip(found, wanted, strict=True):
            rtol = 2e-3 if compute is mixed else 1e-5
            np.testing.assert_allclose(one, other, rtol, 1e-6, err_msg=compute.__name__)
            compared += 1
    print(compared, "arrays are equal")


if __name__ == "__main__":
    main()
