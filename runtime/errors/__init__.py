"""All errors of the runtime under one import path, for callers and tests.

The modules of errors are imported on first access: most programs raise few errors.
"""

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # ruff: noqa: F403, F405  # all error classes of the areas
    from everyorder.runtime.errors.autograd import *
    from everyorder.runtime.errors.base import EveryorderError as EveryorderError
    from everyorder.runtime.errors.call import *
    from everyorder.runtime.errors.custom import *
    from everyorder.runtime.errors.extras import *
    from everyorder.runtime.errors.future import *
    from everyorder.runtime.errors.registration import *
    from everyorder.runtime.errors.rpc import *
    from everyorder.runtime.errors.schema import *
    from everyorder.runtime.errors.script import *
    from everyorder.runtime.errors.tensor import *
    from everyorder.runtime.errors.torch_dispatch import *

_load: Callable[[str], ModuleType] = import_module


def set_loader(load: Callable[[str], ModuleType]) -> None:
    """Import areas by `load` from now on.

    `everyorder.runtime` passes the function that holds a lock which a fork waits for:
    locks are a layer above errors.
    """
    global _load
    _load = load


def __getattr__(name: str) -> Any:
    """Return an error class of one of the areas, or all their names as `__all__`.

    Raises:
        AttributeError: no area defines an error class of this name.
    """
    if name == "__all__" or not name.startswith("_"):
        every = globals().get("_EVERY")
        if every is None:
            areas = [_load(f"{__name__}.{at.name}") for at in iter_modules(__path__)]
            # Whole, or not at all: others look while this one does.
            every = {
                name: kind for area in areas for name, kind in _errors(area).items()
            }
            globals()["_EVERY"] = every
        if name == "__all__":
            return sorted(every)
        if name in every:
            return every[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _errors(area: Any) -> dict[str, Any]:
    """Return the error classes that the module `area` defines, by name."""
    return {
        name: kind
        for name, kind in vars(area).items()
        if isinstance(kind, type)
        and not name.startswith("_")
        and issubclass(kind, Exception)
        and not issubclass(kind, Warning)
        and kind.__module__ == area.__name__
    }


def __dir__() -> list[str]:
    """Return all names, including those of modules that are not loaded yet."""
    return sorted({*globals(), *__getattr__("__all__")})
