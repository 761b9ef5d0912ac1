"""Reservations: a name that is kept although nothing is registered under it."""

from everyorder.harness.scenario import Scenario, call, define, impl, look_up, reserve
from tests.scenarios.kernels import composed, on_cpu

# A reserved name is an operator without schema and kernels; a call is refused.
name_only = Scenario(
    reserve("store::fetch"),
    uses=[look_up("store::fetch", constant=True), call("store::fetch", "cpu")],
)

# The name outlives its definition and its kernel.
name_outlives = Scenario(
    reserve("store::fetch"),
    define("store::fetch(Tensor x) -> Tensor"),
    impl("store::fetch", composed),
    uses=[call("store::fetch", "cpu")],
)

# Two reservations of one name are counted, and it does not matter which goes first.
reserved_twice = Scenario(
    reserve("store::fetch"),
    reserve("store::fetch"),
    impl("store::fetch", on_cpu, "CPU"),
)

# Reserving one operator does nothing for another.
two_names = Scenario(
    reserve("store::fetch"),
    reserve("store::keep"),
    define("store::keep(Tensor x) -> Tensor"),
    probes=("cpu",),
)
