"""everyorder: prove that a registry does not depend on the order of registrations.

    from everyorder import Scenario, step, use, explore

The names of this module are those of `everyorder.harness`, and load on first access.
`everyorder.runtime` is the operator dispatcher with its runtime, and
`everyorder.invariants` holds the laws of the dispatcher's state. In the repository the
three packages are folders at the top, and links in this folder.
"""

from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from everyorder import harness

_PACKAGES = ("harness", "invariants", "runtime")

__all__ = [*harness.__all__, *_PACKAGES, "__version__"]


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        try:
            return version(__name__)
        except PackageNotFoundError:  # a checkout that is not installed
            return "0+unknown"
    if name not in harness.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(harness, name)


def __dir__() -> list[str]:
    return sorted(__all__)
