"""Autograd: gradients of what operators computed, by running the graph backwards.

Importing this package installs its kernels on the default dispatcher, and its methods
on tensors.
"""

from typing import TYPE_CHECKING

from everyorder.runtime.autograd import graph
from everyorder.runtime.autograd.autocast import (
    autocast,
    clear_autocast_cache,
    is_autocast_enabled,
)
from everyorder.runtime.autograd.engine import backward, grad
from everyorder.runtime.autograd.function import (
    Function,
    FunctionCtx,
    once_differentiable,
)
from everyorder.runtime.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from everyorder.runtime.autograd.gradcheck import (
    InaccurateGradcheck,
    gradcheck,
    gradgradcheck,
)
from everyorder.runtime.autograd.install import (
    GradientMissing,
    fallback_mode,
    install,
    install_fallbacks,
    set_fallback_mode,
)
from everyorder.runtime.autograd.methods import METHODS, PROPERTIES
from everyorder.runtime.autograd.node import Node, RemovableHandle

if not TYPE_CHECKING:
    # A type checker reports unknown names.
    from everyorder.runtime.autograd.outside import __getattr__  # noqa: F401  # called by Python

__all__ = [
    "METHODS",
    "PROPERTIES",
    "Function",
    "FunctionCtx",
    "GradientMissing",
    "InaccurateGradcheck",
    "Node",
    "RemovableHandle",
    "autocast",
    "backward",
    "clear_autocast_cache",
    "enable_grad",
    "fallback_mode",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "install",
    "install_fallbacks",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "no_grad",
    "once_differentiable",
    "set_fallback_mode",
    "set_grad_enabled",
]
