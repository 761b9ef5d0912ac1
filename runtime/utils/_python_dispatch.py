"""Dispatch to Python under torch's path and names; see `runtime.torch_dispatch`."""

from everyorder.runtime.torch_dispatch import (
    TorchDispatchMode,
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
    return_and_correct_aliasing,
)
from everyorder.runtime.torch_dispatch import current_mode as _get_current_dispatch_mode
from everyorder.runtime.torch_dispatch import (
    current_modes as _get_current_dispatch_mode_stack,
)
from everyorder.runtime.torch_dispatch import (
    disable_current_modes as _disable_current_modes,
)
from everyorder.runtime.torch_dispatch import (
    pop_mode_temporarily as _pop_mode_temporarily,
)

__all__ = [
    "TorchDispatchMode",
    "_disable_current_modes",
    "_get_current_dispatch_mode",
    "_get_current_dispatch_mode_stack",
    "_pop_mode_temporarily",
    "is_traceable_wrapper_subclass",
    "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing",
]
