"""Scenarios, and the steps and uses that they consist of.

Steps and uses of the dispatcher load on first access, because scenarios of other
registries do not need the runtime.
"""

import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from everyorder.harness.scenario.normalisers import Normaliser, normaliser
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.scenario.step import Step, UseStep, step, steps, use

if TYPE_CHECKING:
    from everyorder.harness.scenario.effects import PROBES, ProbeSubclass
    from everyorder.harness.scenario.extensions import (
        ProbeMode,
        context,
        custom,
        handler,
        in_main,
        install_fallbacks,
        mode,
        register_autograd,
        register_fake,
        register_kernel,
        rule,
    )
    from everyorder.harness.scenario.registrations import (
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
    from everyorder.harness.scenario.uses import call, look_up

__all__ = [
    "PROBES",
    "Normaliser",
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
    "normaliser",
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

# The modules of the names that load later.
_LATER = ("effects", "registrations", "uses", "extensions")


def __getattr__(name: str) -> Any:
    for chapter in _LATER if name in __all__ else ():
        names = vars(import_module(f"{__name__}.{chapter}"))
        if name in names:
            return globals().setdefault(name, names[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    # A tool that looks at every name of every module must not import the runtime.
    loaded = "everyorder.runtime" in sys.modules
    return sorted(name for name in __all__ if loaded or name in globals())
