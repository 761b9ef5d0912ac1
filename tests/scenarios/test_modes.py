"""Modes that are entered and left in any order, among registrations.

A mode belongs to the thread, and is asked by dispatchers that know of dispatch to
Python.  User modes stand in the order of entering, which is pinned; infra modes have a
place each, so that no order makes a difference.
"""

from typing import Any

from everyorder.harness.scenario import (
    ProbeSubclass,
    Scenario,
    call,
    define,
    fallback,
    impl,
    install_fallbacks,
    mode,
    rule,
    use,
)
from everyorder.runtime.dispatch import Dispatcher, OperatorHandle, fallthrough
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.schema import parse_name
from everyorder.runtime.torch_dispatch import current_modes, disable_current_modes
from tests.scenarios.handlers import (
    Declining,
    Failing,
    Fake,
    Hiding,
    Inner,
    Leaking,
    OtherProxy,
    Outer,
    Proxy,
    Reentering,
    ruled,
)
from tests.scenarios.kernels import composed, on_cpu, on_cuda, with_gradient

_rank = define("graph::rank(Tensor x) -> Tensor")
_on_cpu = impl("graph::rank", on_cpu, "CPU")
_asked = install_fallbacks()
_few = ("cpu", "cpu below autograd", "subclass")


def _modes(dispatcher: Dispatcher) -> str:
    return ", ".join(type(each).__name__ for each in current_modes())


def _aside(dispatcher: Dispatcher) -> str:
    with disable_current_modes() as modes:
        answer = call("graph::rank", "subclass").perform(dispatcher)
    return f"{len(modes)} aside: {answer}"


def _a_kernel_inside(dispatcher: Dispatcher) -> str:
    """A mode registers a kernel while it is asked, and takes it down again."""
    library = Library("graph", "IMPL", dispatcher=dispatcher, origin="inside")
    handle = OperatorHandle(dispatcher, parse_name("graph::rank"))
    said = []

    class Registering(Outer):
        def handle(self, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
            with library.impl("rank", with_gradient, "CPU", debug="inside"):
                said.append(str(func.has_kernel("CPU")))
            said.append(str(func is handle))
            return func(*args, **kwargs)

    with Registering():
        said.append(str(call("graph::rank").perform(dispatcher)))
    return ", ".join(said)


# A mode is asked as soon as there is a fallback that asks it, and no longer.
a_mode_and_its_fallbacks = Scenario(
    _rank,
    _on_cpu,
    _asked,
    mode(Outer),
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)

# mode x impl x mode: the innermost one is asked first, the other one by what it calls.
two_modes = Scenario(
    mode(Outer),
    _on_cpu,
    mode(Inner),
    given=[_rank, _asked],
    probes=_few,
    order_dependent="the mode that was entered last is asked first",
    uses=[use("current_modes()", _modes), use("disable_current_modes()", _aside)],
)

# Infra modes have a place each: nobody sees which one was entered first.
infra_modes = Scenario(
    mode(Fake),
    mode(Proxy),
    mode(Outer),
    _on_cpu,
    given=[_rank, _asked],
    probes=_few,
    uses=[use("current_modes()", _modes)],
)

# The second one for a place is refused, whichever came first.
a_place_is_taken = Scenario(
    mode(Proxy),
    mode(OtherProxy),
    _on_cpu,
    given=[_rank, _asked],
    probes=_few,
)

# Modes that raise, decline or leak leave the thread as it was.
modes_that_fail = Scenario(
    _on_cpu,
    mode(Failing),
    mode(Fake),
    given=[_rank, _asked],
    probes=_few,
    uses=[call("graph::rank", "subclass")],
)
modes_that_decline = Scenario(
    _on_cpu,
    mode(Declining),
    rule("graph::rank", ProbeSubclass, ruled),
    given=[_rank, _asked],
    probes=_few,
)
modes_that_leak = Scenario(
    _on_cpu,
    mode(Leaking),
    impl("graph::rank", on_cuda, "CUDA"),
    given=[_rank, _asked],
    probes=("cpu", "cuda", "subclass"),
    uses=[use("current_modes()", _modes)],
)

# A mode that enters itself again is asked again; one that hides all is the last.
modes_in_themselves = Scenario(
    _on_cpu,
    mode(Reentering),
    impl("graph::rank", composed),
    given=[_rank, _asked],
    probes=_few,
)
modes_that_hide = Scenario(
    mode(Fake),
    mode(Hiding),
    _on_cpu,
    given=[_rank, _asked],
    probes=_few,
)

# Where calls fall through at Python no mode is asked, entered or not.
fallthrough_at_python = Scenario(
    _on_cpu,
    mode(Outer),
    fallback(fallthrough, "Python"),
    fallback(fallthrough, "PythonTLSSnapshot"),
    given=[_rank],
    probes=_few,
)

# An operator that is defined while a mode is entered is like any other.
defined_while_a_mode_is_entered = Scenario(
    _rank,
    _on_cpu,
    impl("graph::rank", with_gradient, "Autograd"),
    given=[_asked, mode(Outer)],
    probes=_few,
    uses=[call("graph::rank", "cpu")],
)

# What a handler registers and takes down again, its own call and others see or not.
registering_inside = Scenario(
    _rank,
    _on_cpu,
    given=[_asked],
    probes=(),
    uses=[use("a kernel comes and goes inside", _a_kernel_inside)],
)
