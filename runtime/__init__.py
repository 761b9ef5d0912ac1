"""The runtime: an operator dispatcher, and tensors to call its operators with.

True only here: the public surface.  Everything a program needs is a name of this
module; where a name lives below it may change, the name may not.

Rules:
- importing this module imports neither NumPy nor Numba, and is cheap: what is not
  needed to register and to call loads when it is first asked for (see `_LAZY`);
- nothing below this file imports names from here;
- a public name is in `__all__`, and in `_LAZY` as well if it is lazy.
"""

from typing import TYPE_CHECKING, Any

from runtime.dispatch import (
    Dispatcher,
    KernelOverridden,
    Library,
    OperatorHandle,
    Operators,
    Registration,
    boxed,
    default_dispatcher,
    fallthrough,
    named_not_supported,
)
from runtime.errors import EveryorderError
from runtime.keys import DispatchKey, KeySet, exclude_keys, full_after, include_keys
from runtime.schema import Schema, parse_schema

if TYPE_CHECKING:
    from runtime.dispatch.teaching import PythonDispatcher
    from runtime.tensors import Tensor, tensor

__all__ = [
    "DispatchKey",
    "Dispatcher",
    "EveryorderError",
    "KernelOverridden",
    "KeySet",
    "Library",
    "OperatorHandle",
    "PythonDispatcher",
    "Registration",
    "Schema",
    "Tensor",
    "boxed",
    "default_dispatcher",
    "exclude_keys",
    "fallthrough",
    "full_after",
    "include_keys",
    "named_not_supported",
    "ops",
    "parse_schema",
    "tensor",
]

# The operators of the default dispatcher, by attribute; `core` is the runtime's own.
ops = Operators(default_dispatcher, {"core": "runtime.autograd"})

# Public names that load their module when they are first asked for.
_LAZY = {
    "PythonDispatcher": "runtime.dispatch.teaching",
    "Tensor": "runtime.tensors",
    "tensor": "runtime.tensors",
}


def __getattr__(name: str) -> Any:
    """A lazy name, loaded; it is an ordinary one from then on."""
    home = _LAZY.get(name)
    if home is None:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name
        )
    from importlib import import_module

    found = globals()[name] = getattr(import_module(home), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
