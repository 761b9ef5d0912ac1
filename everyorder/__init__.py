"""everyorder: prove that a registry does not depend on the order of registrations.

    from everyorder import Scenario, step, use, explore

The names of this module are those of `everyorder.harness`, and load on first access.
`everyorder.runtime` is the operator dispatcher with its runtime, and
`everyorder.invariants` holds the laws of the dispatcher's state. In the repository the
three packages are folders at the top, and links in this folder; `coded_error`, the base
of their errors, belongs to none of them.
"""

from importlib import import_module
from typing import Any

_PACKAGES = ("harness", "invariants", "runtime")


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"{__name__}.{name}")
    if name == "__version__":
        return _version()
    # The harness is imported here, so that programs of the runtime do without it.
    from everyorder import harness

    if name == "__all__":
        return sorted([*harness.__all__, *_PACKAGES, "__version__"])
    if name not in harness.__all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(harness, name)


def __dir__() -> list[str]:
    from everyorder import harness

    # Packages once they are loaded: a tool that looks at all names loads none.
    packages = [name for name in _PACKAGES if name in globals()]
    return sorted([*dir(harness), *packages, "__version__"])


def _version() -> str:
    # It loads sockets and mail, which an import of this package should not do.
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(__name__)
    except PackageNotFoundError:  # a checkout that is not installed
        return "0+unknown"
