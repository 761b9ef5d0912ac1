"""The runtime: an operator dispatcher, and tensors to call its operators with.

This module is the public surface: every name that a program needs is here.  The module
that defines a name may change, the name may not.

Rules:
- importing this module imports neither NumPy nor Numba, and is cheap: names that are
  not needed to register and to call load on first access (see `_LAZY`);
- no module below this file imports names from here;
- a public name is in `__all__`, and in `_LAZY` as well if it is lazy.
"""

import math
from typing import TYPE_CHECKING, Any

from everyorder.runtime import errors
from everyorder.runtime.base.hooks import CODE_OF, MEMORY_PROVIDERS, SAVE
from everyorder.runtime.base.locks import LOADING, load
from everyorder.runtime.dispatch import (
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
from everyorder.runtime.dispatch.handle import PROVIDERS
from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.keys import (
    DispatchKey,
    KeySet,
    exclude_keys,
    full_after,
    include_keys,
)
from everyorder.runtime.outside import OUTSIDE
from everyorder.runtime.schema import Schema, parse_schema
from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat

if TYPE_CHECKING:
    from everyorder.runtime import autograd as autograd
    from everyorder.runtime import cuda as cuda
    from everyorder.runtime import futures as futures
    from everyorder.runtime import jit as jit
    from everyorder.runtime import library as library
    from everyorder.runtime import linalg as linalg
    from everyorder.runtime import nn as nn
    from everyorder.runtime import overrides as _C  # noqa: F401, N812  # a public name
    from everyorder.runtime import overrides as overrides
    from everyorder.runtime import rpc as rpc
    from everyorder.runtime import testing as testing
    from everyorder.runtime import torch_dispatch as python_dispatch  # noqa: F401  # a public name
    from everyorder.runtime import utils as utils
    from everyorder.runtime.autograd import (
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
    from everyorder.runtime.custom import custom_op, define, impl, infer_schema
    from everyorder.runtime.custom.opcheck import opcheck
    from everyorder.runtime.declared import *  # noqa: F403  # the names that are lazy
    from everyorder.runtime.kernels.shared.thread_pool import (
        get_num_threads,
        set_num_threads,
    )
    from everyorder.runtime.nn import (
        Module,
        ModuleDict,
        ModuleList,
        Parameter,
        Sequential,
    )
    from everyorder.runtime.operators.bindings.typed import (
        BFloat16Tensor as BFloat16Tensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        BoolTensor as BoolTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        ByteTensor as ByteTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        CharTensor as CharTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        DoubleTensor as DoubleTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        FloatTensor as FloatTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        HalfTensor as HalfTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        IntTensor as IntTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        LongTensor as LongTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        ShortTensor as ShortTensor,
    )
    from everyorder.runtime.operators.bindings.typed import (
        set_default_tensor_type as set_default_tensor_type,
    )
    from everyorder.runtime.tensors import (
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
    from everyorder.runtime.tensors import generator as random  # noqa: F401  # the same
    from everyorder.runtime.tensors.display import (
        get_printoptions,
        printoptions,
        set_printoptions,
    )
    from everyorder.runtime.tensors.dtype_info import (
        finfo,
        get_default_dtype,
        iinfo,
        set_default_dtype,
    )
    from everyorder.runtime.tensors.from_memory import asarray, frombuffer
    from everyorder.runtime.torch_dispatch import Context, TorchDispatchMode

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
    "asarray",
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
    "frombuffer",
    "full_after",
    "get_default_dtype",
    "get_num_threads",
    "get_printoptions",
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
    "printoptions",
    "promote_types",
    "register_memory",
    "result_type",
    "set_default_dtype",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "tensor",
]

# The names of these classes in programs for torch.
dtype = DType
device = Device
layout = Layout
memory_format = MemoryFormat


def _register_core() -> None:
    from everyorder.runtime import bootstrap  # noqa: F401  # registers on import


def _register_script() -> None:
    from everyorder.runtime.script import primitives  # noqa: F401  # the same


def _register_cuda() -> None:
    from everyorder.runtime.kernels import cuda  # noqa: F401  # the same


def _code_of(function: Any) -> str:
    from everyorder.runtime.script.archive import code_of

    return code_of(function)


def _save(module: Any, file: Any, **options: Any) -> None:
    from everyorder.runtime.script.archive import save

    save(module, file, **options)


errors.set_loader(load)
CODE_OF.set(_code_of)
SAVE.set(_save)
PROVIDERS.register_all({"core": _register_core, "script": _register_script})
MEMORY_PROVIDERS.register("cuda", _register_cuda)

# The operators of the default dispatcher, by attribute.  `core` is the runtime's
# namespace; programs for torch call it `aten`.
ops = Operators(
    default_dispatcher,
    PROVIDERS,
    {"aten": "core"},
)

# Public names that load their module on first access.
_LAZY = {
    "Context": "everyorder.runtime.torch_dispatch",
    "Function": "everyorder.runtime.autograd",
    "Generator": "everyorder.runtime.tensors",
    "Module": "everyorder.runtime.nn",
    "ModuleDict": "everyorder.runtime.nn",
    "ModuleList": "everyorder.runtime.nn",
    "Parameter": "everyorder.runtime.nn",
    "Sequential": "everyorder.runtime.nn",
    "Size": "everyorder.runtime.tensors",
    "Storage": "everyorder.runtime.tensors",
    "Tensor": "everyorder.runtime.bootstrap",
    "TorchDispatchMode": "everyorder.runtime.torch_dispatch",
    "as_tensor": "everyorder.runtime.tensors",
    "asarray": "everyorder.runtime.tensors.from_memory",
    "can_cast": "everyorder.runtime.tensors",
    "autocast": "everyorder.runtime.autograd",
    "custom_op": "everyorder.runtime.custom",
    "default_generator": "everyorder.runtime.tensors",
    "define": "everyorder.runtime.custom",
    "enable_grad": "everyorder.runtime.autograd",
    "finfo": "everyorder.runtime.tensors.dtype_info",
    "from_dlpack": "everyorder.runtime.tensors",
    "from_numpy": "everyorder.runtime.tensors",
    "frombuffer": "everyorder.runtime.tensors.from_memory",
    "get_printoptions": "everyorder.runtime.tensors.display",
    "printoptions": "everyorder.runtime.tensors.display",
    "set_printoptions": "everyorder.runtime.tensors.display",
    "get_default_dtype": "everyorder.runtime.tensors.dtype_info",
    "get_num_threads": "everyorder.runtime.kernels.shared.thread_pool",
    "iinfo": "everyorder.runtime.tensors.dtype_info",
    "impl": "everyorder.runtime.custom",
    "infer_schema": "everyorder.runtime.custom",
    "inference_mode": "everyorder.runtime.autograd",
    "is_autocast_enabled": "everyorder.runtime.autograd",
    "is_grad_enabled": "everyorder.runtime.autograd",
    "is_inference_mode_enabled": "everyorder.runtime.autograd",
    "manual_seed": "everyorder.runtime.tensors",
    "no_grad": "everyorder.runtime.autograd",
    "opcheck": "everyorder.runtime.custom.opcheck",
    "promote_types": "everyorder.runtime.tensors",
    "register_memory": "everyorder.runtime.tensors",
    "result_type": "everyorder.runtime.tensors",
    "set_default_dtype": "everyorder.runtime.tensors.dtype_info",
    "set_grad_enabled": "everyorder.runtime.autograd",
    "set_num_threads": "everyorder.runtime.kernels.shared.thread_pool",
    "tensor": "everyorder.runtime.bootstrap",
    **dict.fromkeys(
        (
            *("BFloat16Tensor", "BoolTensor", "ByteTensor", "CharTensor"),
            *("DoubleTensor", "FloatTensor", "HalfTensor", "IntTensor", "LongTensor"),
            *("ShortTensor", "set_default_tensor_type"),
        ),
        "everyorder.runtime.operators.bindings.typed",
    ),
}


# Numbers that programs for torch take from it.
_CONSTANTS = ("e", "inf", "nan", "pi")

# Modules of the public surface -> their paths; loaded like the names.  Modules that do
# not need tensors load without them.
_MODULES = {
    "_C": "overrides",
    "autograd": "autograd",
    "cuda": "cuda",
    "library": "library",
    "nn": "nn",
    "linalg": "linalg",
    "overrides": "overrides",
    "python_dispatch": "torch_dispatch",
    "random": "tensors.generator",
    "testing": "testing",
    "utils": "utils",
}
_LIGHT_MODULES = ("futures", "jit", "rpc")


def _load_lazy(name: str) -> Any:
    """Load a lazy name, which is an ordinary one from then on.

    Names of dtypes are lazy too, and so are the functions of operators: `zeros`,
    `matmul`, ... (`runtime.operators.bindings.functions`).
    """
    if name.startswith("_") and name not in _MODULES:
        raise _unknown(name)
    with LOADING:
        value = _loaded(name)
        globals()[name] = value
    return value


if not TYPE_CHECKING:
    # A type checker knows the names, and reports unknown ones.
    __getattr__ = _load_lazy


def _loaded(name: str) -> Any:
    home = _LAZY.get(name)
    if name in _LIGHT_MODULES:
        try:
            return load(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            # The package for remote calls may be missing; then its name is unknown.
            if error.name == f"{__name__}.{name}":
                raise _unknown(name) from error
            raise
    if name in _MODULES:
        load("everyorder.runtime.bootstrap")
        return load(f"{__name__}.{_MODULES[name]}")
    if home is not None:
        # Access to tensors, or to functions that create them, loads the whole
        # bootstrap.
        load("everyorder.runtime.bootstrap")
        return getattr(load(home), name)
    if name in _CONSTANTS:
        return getattr(math, name)
    if name in DType.NAMES or name in DType.SYNONYMS:
        return DType.named(name)
    if name in MemoryFormat.NAMES:
        return MemoryFormat.named(name)
    if name == "strided":
        return Layout.named(name)
    functions: Any = load("everyorder.runtime.bootstrap").functions
    if name not in functions.FUNCTIONS:
        raise _unknown(name)
    return getattr(functions, name)


def _unknown(name: str) -> AttributeError:
    text = f"module {__name__!r} has no attribute {name!r}"
    reason = OUTSIDE.get(name)
    return AttributeError(f"{text}: {reason}" if reason else text, name=name)


def __dir__() -> list[str]:
    functions = load("everyorder.runtime.bootstrap").functions.FUNCTIONS
    dtypes = (*DType.NAMES, *DType.SYNONYMS, *MemoryFormat.NAMES, "strided")
    lazy = (*_LAZY, *_MODULES, *_LIGHT_MODULES, *_CONSTANTS, *dtypes, *functions)
    return sorted({*globals(), *__all__, *lazy})
