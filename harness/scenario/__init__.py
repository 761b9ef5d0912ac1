"""Scenarios, and the steps and uses that they are made of."""

from harness.scenario.registrations import (
    define,
    fallback,
    impl,
    library,
    listen,
    reserve,
    together,
)
from harness.scenario.scenario import Scenario
from harness.scenario.step import Step, UseStep, step, use
from harness.scenario.uses import PROBES, call, look_up

__all__ = [
    "PROBES",
    "Scenario",
    "Step",
    "UseStep",
    "call",
    "define",
    "fallback",
    "impl",
    "library",
    "listen",
    "look_up",
    "reserve",
    "step",
    "together",
    "use",
]
