"""Dispatch to Python: classes of tensors and modes that handle every operator."""

from runtime.python_dispatch.aliasing import return_and_correct_aliasing
from runtime.python_dispatch.context import MAIN, Context, current_context
from runtime.python_dispatch.fallback import install_fallbacks
from runtime.python_dispatch.modes import (
    TorchDispatchMode,
    current_mode,
    current_modes,
    disable_current_modes,
    enable_reentrant_dispatch,
    leave,
    mode_at,
    no_dispatch,
    pop_mode_temporarily,
)
from runtime.python_dispatch.rules import RuleHandle, register_torch_dispatch
from runtime.python_dispatch.wrapper_protocol import (
    Flattened,
    WrapperPlan,
    flatten,
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
    unflatten,
)
from runtime.tensors.handled import disabled

__all__ = [
    "MAIN",
    "Context",
    "Flattened",
    "RuleHandle",
    "TorchDispatchMode",
    "WrapperPlan",
    "current_context",
    "current_mode",
    "current_modes",
    "disable_current_modes",
    "disabled",
    "enable_reentrant_dispatch",
    "flatten",
    "install_fallbacks",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "leave",
    "mode_at",
    "no_dispatch",
    "pop_mode_temporarily",
    "register_torch_dispatch",
    "return_and_correct_aliasing",
    "unflatten",
]
