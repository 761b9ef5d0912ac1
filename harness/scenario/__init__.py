"""Scenarios, and the steps and uses that they are made of."""

from harness.scenario.contexts import context, in_main
from harness.scenario.custom import (
    custom,
    register_autograd,
    register_fake,
    register_kernel,
)
from harness.scenario.handlers import handler, install_fallbacks, rule
from harness.scenario.modes import ProbeMode, mode
from harness.scenario.probes import PROBES
from harness.scenario.registrations import (
    define,
    fallback,
    impl,
    library,
    listen,
    merges_alias_kinds,
    reserve,
    shared,
    together,
)
from harness.scenario.scenario import Scenario
from harness.scenario.step import Step, UseStep, step, steps, use
from harness.scenario.subclass import ProbeSubclass
from harness.scenario.uses import call, look_up

__all__ = [
    "PROBES",
    "ProbeMode",
    "ProbeSubclass",
    "Scenario",
    "Step",
    "UseStep",
    "call",
    "context",
    "custom",
    "define",
    "fallback",
    "handler",
    "impl",
    "in_main",
    "install_fallbacks",
    "library",
    "listen",
    "look_up",
    "merges_alias_kinds",
    "mode",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "reserve",
    "rule",
    "shared",
    "step",
    "steps",
    "together",
    "use",
]
