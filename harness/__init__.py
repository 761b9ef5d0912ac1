"""The harness: plays every order of registrations and says what was proven.

This is the public surface.  Names load when they are first asked for, because a pytest
plugin must cost nothing to those who do not use it.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from harness.engine import Budget, Exploration, Violation
    from harness.exploration import explore
    from harness.imports import of_imports
    from harness.outcome import Report
    from harness.scenario import (
        PROBES,
        ProbeMode,
        ProbeSubclass,
        Scenario,
        Step,
        UseStep,
        call,
        context,
        custom,
        define,
        fallback,
        handler,
        impl,
        in_main,
        install_fallbacks,
        library,
        listen,
        look_up,
        mode,
        register_autograd,
        register_fake,
        register_kernel,
        reserve,
        rule,
        step,
        steps,
        together,
        use,
    )

__all__ = [
    "PROBES",
    "Budget",
    "Exploration",
    "ProbeMode",
    "ProbeSubclass",
    "Report",
    "Scenario",
    "Step",
    "UseStep",
    "Violation",
    "call",
    "context",
    "custom",
    "define",
    "explore",
    "fallback",
    "handler",
    "impl",
    "in_main",
    "install_fallbacks",
    "library",
    "listen",
    "look_up",
    "mode",
    "of_imports",
    "register_autograd",
    "register_fake",
    "register_kernel",
    "reserve",
    "rule",
    "step",
    "steps",
    "together",
    "use",
]

# Where each name lives; names of `harness.scenario` are all others.
_ELSEWHERE = {
    "Budget": "harness.engine",
    "Exploration": "harness.engine",
    "Violation": "harness.engine",
    "Report": "harness.outcome",
    "explore": "harness.exploration",
    "of_imports": "harness.imports",
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'harness' has no attribute {name!r}")
    value = getattr(import_module(_ELSEWHERE.get(name, "harness.scenario")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
