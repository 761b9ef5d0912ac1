"""The table of methods that higher areas put on `Tensor` when they are imported.

True only here: `install`.  A tensor by itself knows its shape, its elements and how it
prints; `x + y`, `x.sum()` and `x.backward()` come from operators and autograd.

Rules: a name is installed by one function; installing it again by the same one is
harmless, by another it takes the place of the first.  `grad`, `grad_fn` and `is_leaf`
are those of a tensor without history until autograd installs its own.
"""

from collections.abc import Callable
from typing import Any

from runtime.tensors.tensor import Tensor

# What was installed, by name: functions and properties.
METHODS: dict[str, Callable[..., Any] | property] = {}


def install(name: str, function: Callable[..., Any] | property) -> None:
    """Make `function` the method, property or operator `name` of every tensor."""
    METHODS[name] = function
    setattr(Tensor, name, function)
