"""A user's backend, explored together with the built-in kernels of the same operators.

The catalogue holds `own_backend`: whatever was registered before and is registered
besides, each device computes by its own kernels and gradients go through both.
"""

from typing import Any

import numpy as np

import everyorder.runtime.bootstrap  # noqa: F401  # registers `core` on the default dispatcher
from everyorder.harness.scenario import Scenario, impl
from everyorder.harness.scenario.step import Step
from everyorder.runtime import Library, ops, tensor
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.schema import parse_name
from everyorder.runtime.tensors import array_of
from tests.examples.own_backend import DEVICE, KERNELS
from tests.scenarios.test_core import real, schema

X = np.array([1.0, -2.0, 3.0], dtype=np.float32)


def on(target: Dispatcher, device: str) -> str:
    """relu(x * x + x) on a device, and the slope of x * x there."""

    def call(name: str, *given: Any) -> Any:
        return OperatorHandle(target, parse_name(f"core::{name}"))(*given)

    x = tensor(X, device=device)
    try:
        found = call("relu", call("add", call("mul", x, x), x))
    except EveryorderError as error:
        return code_of(error)
    assert found.device.type == device
    return str(array_of(found).tolist())


def observed(target: Dispatcher) -> str:
    return "".join(f"{d}: {on(target, d)}\n" for d in ("cpu", DEVICE))


def own(op: str) -> Step:
    kernel = KERNELS[op]
    return impl(f"core::{op}", kernel, "PrivateUse1", debug=kernel.facts.name)


own_backend = Scenario(
    own("add"),
    own("mul"),
    own("relu"),
    real("mul", "CPU"),
    given=[
        *(schema("add"), schema("mul"), schema("relu")),
        *(real("add", "CPU"), real("relu", "CPU"), real("mul", "Autograd")),
    ],
    observe=observed,
    probes=[],
)


def test_gradients_come_without_a_line_of_the_backends() -> None:
    with Library("core", "IMPL", "PrivateUse1") as library:
        for op, kernel in KERNELS.items():
            library.impl(op, kernel)
        x = tensor(X, device=DEVICE, requires_grad=True)
        y = ops.core.mul(x, ops.core.add(x, x))
        y.backward(tensor(np.ones_like(X), device=DEVICE))
        assert x.grad is not None
        assert x.grad.device.type == DEVICE
        assert array_of(x.grad).tolist() == (4 * X).tolist()


def test_the_backend_goes_as_it_came() -> None:
    before = ops.core.add.default.dump_table()
    library = Library("core", "IMPL", "PrivateUse1")
    library.impl("add", KERNELS["add"])
    x = tensor(X, device=DEVICE)
    assert array_of(ops.core.add(x, x)).tolist() == (X + X).tolist()
    library.close()
    assert ops.core.add.default.dump_table() == before
