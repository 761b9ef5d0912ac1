"""Custom operators that come and go, with all that is added, called on real tensors.

True only here: what is called computes.  After every step all uses are performed and
their answers are part of what is expected: who ran, and whether the result is right.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

import everyorder.runtime.bootstrap  # noqa: F401  # registers `core` on the default dispatcher
from everyorder.harness.scenario import (
    ProbeMode,
    Scenario,
    UseStep,
    custom,
    define,
    impl,
    install_fallbacks,
    mode,
    register_autograd,
    register_fake,
    register_kernel,
    rule,
    use,
)
from everyorder.runtime import Tensor, tensor
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle
from everyorder.runtime.errors import EveryorderError
from everyorder.runtime.errors.base import code_of
from everyorder.runtime.schema import parse_name
from tests.scenarios.test_core import X, real, schema

Arrays = np.ndarray[Any, Any]


class Doubled(Tensor):
    """A tensor around another one, which operators meet doubled."""

    inner: Tensor

    @classmethod
    def around(cls, inner: Tensor) -> "Doubled":
        """The wrapper of a tensor."""
        made: Doubled = cls._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype)
        made.inner = inner
        return made

    @classmethod
    def __torch_dispatch__(
        cls, func: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        plain = [
            tensor(2 * each.inner.numpy()) if type(each) is cls else each
            for each in args
        ]
        return func(*plain, **(kwargs or {}))


def scale(x: Tensor, factor: float = 2.0) -> Tensor:
    """What the operator computes, and its schema."""
    return tensor(x.numpy() * np.float32(factor))


def scale_on_cpu(x: Tensor, factor: float = 2.0) -> Tensor:
    """The same, for one device."""
    return tensor(x.numpy() * np.float32(factor))


def scale_nowhere(x: Tensor, factor: float = 2.0) -> Tensor:
    """The shape of the result."""
    return tensor(np.zeros(x.shape, np.float32), device="meta")


def setup(ctx: Any, inputs: Any, output: Any) -> None:
    """Keep the factor."""
    ctx.factor = inputs[1]


def slope(ctx: Any, grad: Any) -> Any:
    """The gradient for `x`; there is none for the factor."""
    return tensor(grad.numpy() * np.float32(ctx.factor)), None


def with_fake_and_slope(made: Any) -> None:
    """What is added to the operator while it is made."""
    made.register_fake(scale_nowhere)
    made.register_autograd(slope, setup_context=setup)


def with_kernels(made: Any) -> None:
    """A kernel of its own for the CPU."""
    made.register_kernel("cpu", scale_on_cpu)


def ruled(who: Any, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """A rule that undoes the doubling."""
    return func(tensor(X), *args[1:])


def told(op: str, text: str, ask: Callable[[OperatorHandle], str]) -> UseStep:
    """A use that asks an operator, or tells the error, after who ran."""
    name = parse_name(op)

    def perform(target: Dispatcher) -> str:
        ran: list[str] = target.recorder.labels  # type: ignore[attr-defined]  # the system's dispatcher has one
        ran.clear()
        try:
            answer = ask(OperatorHandle(target, name))
        except EveryorderError as error:
            answer = code_of(error)
        return " > ".join([*ran, answer])

    return use(text, perform)


def verdict(found: Tensor, wanted: Arrays) -> str:
    """Whether a tensor is what NumPy says; of one without data, its shape."""
    if found.device.type == "meta":
        return f"{tuple(found.shape)} of nothing"
    return "right" if np.allclose(found.numpy(), wanted) else "wrong"


def backwards(handle: OperatorHandle) -> str:
    x = tensor(X, requires_grad=True)
    found = handle(x, 3.0)
    if found.grad_fn is None:
        return "no gradient"
    found.backward(tensor(np.ones_like(X)))
    assert x.grad is not None, "a leaf has one after a backward pass"
    return verdict(x.grad, np.full_like(X, 3.0))


SCALE = "demo::scale"
computed = told(SCALE, "scale", lambda handle: verdict(handle(tensor(X), 3.0), 3 * X))
nowhere = told(
    SCALE, "scale on meta", lambda handle: verdict(handle(tensor(X, device="meta")), X)
)
differentiated = told(SCALE, "scale backwards", backwards)
doubled = told(
    SCALE,
    "scale of a subclass",
    lambda handle: verdict(handle(Doubled.around(tensor(X))), 4 * X),
)


def verdicts(*uses: UseStep, between: bool = True) -> dict[str, Any]:
    """Use and observe: after each step, and `between` them as letters of their own."""

    def observe(target: Dispatcher) -> str:
        return "".join(f"{each.text}: {each.perform(target)}\n" for each in uses)

    return {"uses": uses if between else (), "observe": observe, "probes": []}


class Heard(ProbeMode):
    """Hands everything on."""


# A custom operator goes with its fake and its gradient; kernels of others stay.
custom_op_with_all = Scenario(
    custom(SCALE, scale, adding=with_fake_and_slope),
    impl(SCALE, scale_on_cpu, "CPU"),
    **verdicts(computed, nowhere, differentiated),
)

# A kernel for one device stands before the one for all; both go together.
custom_op_with_kernels = Scenario(
    custom(SCALE, scale, adding=with_kernels),
    impl(SCALE, scale, "CUDA", debug="another one's"),
    mode(Heard),
    given=[install_fallbacks()],
    **verdicts(computed, nowhere),
)

# An operator is made while a mode is entered, and a rule waits for it.
custom_op_under_a_mode = Scenario(
    custom(SCALE, scale),
    mode(Heard),
    rule(SCALE, Doubled, ruled),
    given=[install_fallbacks()],
    **verdicts(computed, doubled),
)

# The name is taken: whoever comes second is refused.
custom_op_or_library = Scenario(
    define("demo::scale(Tensor x, float factor=2.0) -> Tensor"),
    custom(SCALE, scale),
    **verdicts(computed),
)

# What is added by name to an operator of another kind comes and goes by itself.
added_by_name = Scenario(
    define("demo::scale(Tensor x, float factor=2.0) -> Tensor"),
    register_kernel(SCALE, "cpu", scale_on_cpu),
    register_fake(SCALE, scale_nowhere),
    register_autograd(SCALE, slope, setup),
    **verdicts(computed, nowhere, differentiated, between=False),
)

# `core`'s own kernels below a mode and a class with a handler, fallbacks in between.
mul_of_core = Scenario(
    schema("mul"),
    real("mul", "CPU"),
    install_fallbacks(),
    mode(Heard),
    **verdicts(
        told(
            "core::mul",
            "mul",
            lambda handle: verdict(handle(tensor(X), tensor(X)), X * X),
        ),
        told(
            "core::mul",
            "mul of a subclass",
            lambda handle: verdict(
                handle(Doubled.around(tensor(X)), tensor(X)), 2 * X * X
            ),
        ),
        between=False,
    ),
)
