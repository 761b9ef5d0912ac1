"""The runtime: an operator dispatcher, and tensors to call its operators with.

The public surface: everything a program needs is a name of this module; where a name
lives below it may change, the name may not.

Rules:
- importing this module imports neither NumPy nor Numba, and is cheap: what is not
  needed to register and to call loads when it is first asked for (see `_LAZY`);
- nothing below this file imports names from here;
- a public name is in `__all__`, and in `_LAZY` as well if it is lazy.
"""

import math
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
    direct,
    fallthrough,
    linked,
    named_not_supported,
)
from runtime.dispatch.handle import PROVIDERS
from runtime.errors.base import EveryorderError
from runtime.keys import DispatchKey, KeySet, exclude_keys, full_after, include_keys
from runtime.locks import LOADING, load
from runtime.schema import Schema, parse_schema
from runtime.schema.codes import Device, DType, Layout, MemoryFormat

if TYPE_CHECKING:
    from runtime import autograd as autograd
    from runtime import cuda as cuda
    from runtime import errors as errors
    from runtime import futures as futures
    from runtime import jit as jit
    from runtime import library as library
    from runtime import python_dispatch as python_dispatch
    from runtime import random as random
    from runtime import rpc as rpc
    from runtime import testing as testing
    from runtime import utils as utils
    from runtime.autograd import (
        Function,
        autocast,
        enable_grad,
        inference_mode,
        is_autocast_enabled,
        is_grad_enabled,
        is_inference_mode_enabled,
        no_grad,
        set_grad_enabled,
    )
    from runtime.custom import custom_op, define, impl, infer_schema
    from runtime.custom.opcheck import opcheck
    from runtime.declared import *  # noqa: F403  # the names that are lazy
    from runtime.kernels.threads import get_num_threads, set_num_threads
    from runtime.modules import (
        Module,
        ModuleDict,
        ModuleList,
        Parameter,
        Sequential,
    )
    from runtime.python_dispatch import Context, TorchDispatchMode
    from runtime.tensors import (
        Generator,
        Size,
        Storage,
        Tensor,
        as_tensor,
        can_cast,
        default_generator,
        from_dlpack,
        from_numpy,
        manual_seed,
        promote_types,
        register_memory,
        result_type,
        tensor,
    )
    from runtime.tensors.elements import finfo, iinfo

__all__ = [
    "Context",
    "DType",
    "Device",
    "DispatchKey",
    "Dispatcher",
    "EveryorderError",
    "Function",
    "Generator",
    "KernelOverridden",
    "KeySet",
    "Library",
    "Module",
    "ModuleDict",
    "ModuleList",
    "OperatorHandle",
    "Parameter",
    "Registration",
    "Schema",
    "Sequential",
    "Size",
    "Storage",
    "Tensor",
    "TorchDispatchMode",
    "as_tensor",
    "autocast",
    "boxed",
    "can_cast",
    "custom_op",
    "default_dispatcher",
    "default_generator",
    "define",
    "device",
    "direct",
    "dtype",
    "enable_grad",
    "exclude_keys",
    "fallthrough",
    "finfo",
    "from_dlpack",
    "from_numpy",
    "full_after",
    "get_num_threads",
    "iinfo",
    "impl",
    "include_keys",
    "infer_schema",
    "inference_mode",
    "is_autocast_enabled",
    "is_grad_enabled",
    "is_inference_mode_enabled",
    "layout",
    "linked",
    "manual_seed",
    "memory_format",
    "named_not_supported",
    "no_grad",
    "opcheck",
    "ops",
    "parse_schema",
    "promote_types",
    "register_memory",
    "result_type",
    "set_grad_enabled",
    "set_num_threads",
    "tensor",
]

# What programs for torch call the classes of dtypes, of devices and of layouts.
dtype = DType
device = Device
layout = Layout
memory_format = MemoryFormat

# The operators of the default dispatcher, by attribute; `core` is the runtime's own,
# which programs for torch call `aten`.
ops = Operators(
    default_dispatcher,
    PROVIDERS,
    {"aten": "core"},
)

# Public names that load their module when they are first asked for.
_LAZY = {
    "Context": "runtime.python_dispatch",
    "Function": "runtime.autograd",
    "Generator": "runtime.tensors",
    "Module": "runtime.modules",
    "ModuleDict": "runtime.modules",
    "ModuleList": "runtime.modules",
    "Parameter": "runtime.modules",
    "Sequential": "runtime.modules",
    "Size": "runtime.tensors",
    "Storage": "runtime.tensors",
    "Tensor": "runtime.whole",
    "TorchDispatchMode": "runtime.python_dispatch",
    "as_tensor": "runtime.tensors",
    "can_cast": "runtime.tensors",
    "autocast": "runtime.autograd",
    "custom_op": "runtime.custom",
    "default_generator": "runtime.tensors",
    "define": "runtime.custom",
    "enable_grad": "runtime.autograd",
    "finfo": "runtime.tensors.elements",
    "from_dlpack": "runtime.tensors",
    "from_numpy": "runtime.tensors",
    "get_num_threads": "runtime.kernels.threads",
    "iinfo": "runtime.tensors.elements",
    "impl": "runtime.custom",
    "infer_schema": "runtime.custom",
    "inference_mode": "runtime.autograd",
    "is_autocast_enabled": "runtime.autograd",
    "is_grad_enabled": "runtime.autograd",
    "is_inference_mode_enabled": "runtime.autograd",
    "manual_seed": "runtime.tensors",
    "no_grad": "runtime.autograd",
    "opcheck": "runtime.custom.opcheck",
    "promote_types": "runtime.tensors",
    "register_memory": "runtime.tensors",
    "result_type": "runtime.tensors",
    "set_grad_enabled": "runtime.autograd",
    "set_num_threads": "runtime.kernels.threads",
    "tensor": "runtime.whole",
}


# Numbers that programs for torch take from it.
_CONSTANTS = ("e", "inf", "nan", "pi")

# Modules of the surface, loaded like the names; those that need no tensors apart.
_MODULES = (
    *("autograd", "cuda", "library", "python_dispatch", "random", "testing"),
    "utils",
)
_LIGHT_MODULES = ("futures", "jit", "rpc")


def _found(name: str) -> Any:
    """A lazy name, loaded; it is an ordinary one from then on.

    Names of dtypes are lazy too, and so are the functions of operators: `zeros`,
    `matmul`, ... (`runtime.operators.functions`).
    """
    if name.startswith("_"):
        raise _unknown(name)
    with LOADING:
        found = _loaded(name)
        globals()[name] = found
    return found


if not TYPE_CHECKING:
    # A checker knows the names, and says which there are not.
    __getattr__ = _found


def _loaded(name: str) -> Any:
    home = _LAZY.get(name)
    if name in _LIGHT_MODULES:
        try:
            return load(f"runtime.{name}")
        except ModuleNotFoundError as error:
            # Remote calls may be left out; then it is a name like any other.
            if error.name == f"runtime.{name}":
                raise _unknown(name) from error
            raise
    if name in _MODULES:
        load("runtime.whole")
        return load(f"runtime.{name}")
    if home is not None:
        # Whoever asks for a tensor, or for what makes one, gets it whole.
        load("runtime.whole")
        return getattr(load(home), name)
    if name in _CONSTANTS:
        return getattr(math, name)
    if name in DType.NAMES or name in DType.SYNONYMS:
        return DType.named(name)
    if name in MemoryFormat.NAMES:
        return MemoryFormat.named(name)
    if name == "strided":
        return Layout.named(name)
    functions: Any = load("runtime.whole").functions
    if name not in functions.FUNCTIONS:
        raise _unknown(name)
    return getattr(functions, name)


def _unknown(name: str) -> AttributeError:
    return AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name)


def __dir__() -> list[str]:
    functions = load("runtime.whole").functions.FUNCTIONS
    dtypes = (*DType.NAMES, *DType.SYNONYMS, *MemoryFormat.NAMES, "strided")
    lazy = (*_LAZY, *_MODULES, *_LIGHT_MODULES, *_CONSTANTS, *dtypes, *functions)
    return sorted({*globals(), *__all__, *lazy})
