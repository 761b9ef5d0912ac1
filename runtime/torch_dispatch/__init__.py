"""Dispatch to Python: classes of tensors and modes that handle every operator.

Names of torch that are different here:

| torch                                       | here                        |
|---------------------------------------------|-----------------------------|
| `_get_current_dispatch_mode`                | `current_mode`              |
| `_get_current_dispatch_mode_stack`          | `current_modes`             |
| `_disable_current_modes`                    | `disable_current_modes`     |
| `_pop_mode_temporarily`                     | `pop_mode_temporarily`      |
| `transform_subclass`                        | `flatten`, then `unflatten` |
| `_disabled_torch_dispatch_impl`             | `disabled`                  |
| `no_dispatch`, `_DisableTorchDispatch`      | `no_dispatch`               |
| `is_infra_mode`, `_mode_key`                | `TorchDispatchMode.infra`   |
"""

from everyorder.runtime.tensors.keys import disabled
from everyorder.runtime.torch_dispatch.context import MAIN, Context, current_context
from everyorder.runtime.torch_dispatch.fallback import (
    install_fallbacks,
    register_torch_dispatch,
)
from everyorder.runtime.torch_dispatch.modes import (
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
from everyorder.runtime.torch_dispatch.wrappers import (
    Flattened,
    WrapperPlan,
    flatten,
    is_traceable_wrapper_subclass,
    is_traceable_wrapper_subclass_type,
    return_and_correct_aliasing,
    unflatten,
)

__all__ = [
    "MAIN",
    "Context",
    "Flattened",
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
