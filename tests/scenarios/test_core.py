"""The runtime's own kernels, registered in every order and called on real tensors.

True only here: what is called computes.  The kernels are those of namespace `core`,
taken from the default dispatcher and registered anew.  After every step all uses are
performed and compared with NumPy, and the verdicts are part of what is expected.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import everyorder.runtime.bootstrap  # noqa: F401  # registers `core` on the default dispatcher
from everyorder.harness.scenario import Scenario, define, impl, use
from everyorder.harness.scenario.step import Step, UseStep
from everyorder.runtime import default_dispatcher, tensor
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle
from everyorder.runtime.dispatch.kernel import Kernel
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.keys import DispatchKey
from everyorder.runtime.schema import parse_name

X = np.array([[1.0, -2.0, 3.0], [0.5, 4.0, -1.0]], dtype=np.float32)
Y = np.array([2.0, 3.0, -4.0], dtype=np.float32)


def schema(op: str) -> Step:
    """Define an operator as `core` does."""
    return define(str(default_dispatcher().find_schema_or_raise(f"core::{op}")))


def real(op: str, key: str) -> Step:
    """Register `core`'s own kernel for a key."""
    entry = default_dispatcher().entry(f"core::{op}")
    assert entry is not None
    kernel: Kernel = entry.implementations[DispatchKey[key]][0].kernel
    return impl(f"core::{op}", kernel, key, debug=kernel.facts.name)


def computes(
    op: str,
    reference: Callable[..., Any],
    *given: Any,
    device: str = "cpu",
    **named: Any,
) -> UseStep:
    """Call an operator on tensors of the arrays in `given`; the answer is a verdict."""
    name = parse_name(f"core::{op}")

    def perform(target: Dispatcher) -> str:
        def placed(value: Any) -> Any:
            is_array = isinstance(value, np.ndarray)
            return tensor(value, device=device) if is_array else value

        try:
            found = OperatorHandle(target, name)(*map(placed, given), **named)
        except EveryorderError as error:
            return code_of(error)
        wanted = np.asarray(reference(*given))
        if found.device.type == "meta":
            same = found.shape == wanted.shape
            return f"a shape {'as' if same else 'unlike'} NumPy's"
        same = np.allclose(found.numpy(), wanted, rtol=1e-6)
        return f"{'as' if same else 'unlike'} NumPy"

    return use(f"{op} on {device}", perform)


def differentiates(op: str, slope: Callable[[Any], Any]) -> UseStep:
    """Call an operator on a tensor that requires grad, and run it backwards."""
    name = parse_name(f"core::{op}")

    def perform(target: Dispatcher) -> str:
        x = tensor(X, requires_grad=True)
        try:
            found = OperatorHandle(target, name)(x)
        except EveryorderError as error:
            return code_of(error)
        if found.grad_fn is None:
            return "no gradient"
        found.backward(tensor(np.ones_like(X)))
        assert x.grad is not None, "a leaf has one after a backward pass"
        return "as derived" if np.allclose(x.grad.numpy(), slope(X)) else "wrong"

    return use(f"{op} backwards", perform)


def verdicts(*uses: UseStep) -> dict[str, Any]:
    """Use and observe: at any point between steps, and after each."""

    def observe(target: Dispatcher) -> str:
        return "".join(f"{each.text}: {each.perform(target)}\n" for each in uses)

    return {"uses": uses, "observe": observe, "probes": []}


# An operator with all its kernels: whichever are there do what they do alone.
exp_by_every_key = Scenario(
    schema("exp"),
    real("exp", "CPU"),
    real("exp", "Meta"),
    real("exp", "Autograd"),
    **verdicts(
        computes("exp", np.exp, X),
        computes("exp", np.exp, X, device="meta"),
        differentiates("exp", np.exp),
    ),
)

# Two operators share nothing but a namespace, and broadcast on their own.
add_and_mul = Scenario(
    schema("add"),
    schema("mul"),
    real("add", "CPU"),
    real("mul", "CPU"),
    **verdicts(computes("add", np.add, X, Y), computes("mul", np.multiply, X, Y)),
)

# In place and out of place are operators of their own; a view below is kept.
relu_and_its_in_place_form = Scenario(
    schema("relu"),
    schema("relu_"),
    real("relu", "CPU"),
    real("relu_", "CPU"),
    real("relu_", "ADInplaceOrView"),
    **verdicts(
        computes("relu", lambda x: np.maximum(x, 0), X),
        computes("relu_", lambda x: np.maximum(x, 0), X),
    ),
)

# A composite serves every backend until a kernel of its own comes.
softmax_and_sum = Scenario(
    schema("sum"),
    real("sum", "CPU"),
    schema("softmax"),
    real("softmax", "CPU"),
    **verdicts(
        computes("sum", np.sum, X),
        computes(
            "softmax",
            lambda x, dim: np.exp(x) / np.exp(x).sum(dim, keepdims=True),
            X,
            1,
        ),
    ),
)

# Views are one kernel for every backend, noted where versions are counted.
transposed = Scenario(
    schema("transpose"),
    real("transpose", "CompositeExplicitAutograd"),
    real("transpose", "ADInplaceOrView"),
    real("transpose", "Autograd"),
    **verdicts(
        computes("transpose", lambda x, a, b: x.swapaxes(a, b), X, 0, 1),
        computes("transpose", lambda x, a, b: x.swapaxes(a, b), X, 0, 1, device="meta"),
    ),
)

# Factories have no tensors: the backend is chosen by the device.
zeros_by_device = Scenario(
    schema("zeros"),
    real("zeros", "BackendSelect"),
    real("zeros", "CPU"),
    real("zeros", "Meta"),
    **verdicts(computes("zeros", lambda size: np.zeros(size), (2, 3))),
)
