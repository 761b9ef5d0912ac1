"""Performing one description on the real torch, and reading its answers.

True only here: the private bindings `torch._C._dispatch_*` are called in this file
(and read by the system and the reference), and torch is imported on first use only.

What the bindings really do in 2.13 (each verified by running it):
- `_dispatch_library` objects deregister on `reset()` as well as when they die; after
  a reset the object is usable again, and a DEF has given its namespace back;
- `define_with_kernel` is two registrations: when the second fails, the first stays
  until the library object is reset;
- a definition refused late (65 arguments) leaves an entry without owner, which even
  `reset()` keeps; the next registration under that name takes it down when it ends;
- a fallback for an alias key that fails halfway keeps the keys it already took, until
  `reset()`; a fallback costs about 1 ms, because every operator is recomputed;
- overriding a kernel warns once per process; from a Python kernel as a Python
  warning, which a strict filter turns into an error that lies about the registration
  (it has happened).  `load_torch` spends that warning first;
- each library object stores its file name for good, some 50 bytes, and each Python
  kernel keeps one reference for good: neither ever dies, so kernels are made once;
- live: an ordinary call, `redispatch_boxed` of the handle, and
  `_dispatch_has_computed_kernel_for_dispatch_key`.  Recomputed from the kernels, so
  blind to a stale table: `_dispatch_dump_table` and
  `_dispatch_get_computed_kernel_for_dispatch_key`.  Neither: the second function of
  `_get_operation_overload` takes the kernel registered for exactly that key, or the
  fallback, whatever the table says;
- `_dispatch_check_invariants` of a name that nobody registered passes; it compares
  kernels by function pointer, so that two Python kernels look equal to it.
"""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from everyorder.harness.systems.torch import error_text
from tests.torch.steps import (
    TorchCall,
    TorchDefine,
    TorchDefineInferred,
    TorchDefineWithKernel,
    TorchFallback,
    TorchImpl,
    TorchStep,
)

Kernel = Callable[..., object]


@functools.cache
def load_torch() -> Any:
    """The torch module, with its once-per-process override warning already spent.

    Raises ImportError, naming the extra to install, where there is no torch.
    """
    try:
        import torch
    except ImportError as error:
        raise ImportError(
            "this system drives the real torch: install the extra `torch`"
        ) from error
    torch_module: Any = torch
    library = torch_module._C._dispatch_library("IMPL", "everyorder_t", "")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        library.impl("overridden", "CPU", lambda x: x)
        library.impl("overridden", "CPU", lambda x: x)
    library.reset()
    return torch_module


def perform(
    step: TorchStep, operator: str, kernel: Kernel, kept: list[Any] | None = None
) -> Any:
    """Do `step` to `operator` in a new library object, which is returned.

    `kernel` is the callable behind the kind `python`.  Whatever torch raises passes
    through; the library object is then reset or, where `kept` is a list, put there as
    it is, which is what a program sees that catches the error and keeps its library.
    """
    torch = load_torch()
    file, _, line = step.origin.rpartition(":")
    namespace, _, name = operator.partition("::")
    if isinstance(step, TorchFallback):
        namespace = "_"
    block = getattr(step, "library", "IMPL")
    library = torch._C._dispatch_library(block, namespace, "", file, int(line))
    try:
        _register(torch, library, step, name, kernel)
    except Exception:
        if kept is None:
            library.reset()
        else:
            kept.append(library)
        raise
    return library


def _register(
    torch: Any, library: Any, step: TorchStep, name: str, kernel: Kernel
) -> None:
    match step:
        case TorchImpl(kind="t_t"):
            library.impl_t_t(name, step.key or "", step.printed)
        case TorchImpl():
            python = kernel if step.kind == "python" else _fallthrough(torch)
            library.impl(name, step.key or "CompositeImplicitAutograd", python)
        case TorchDefine(alias="unset"):
            library.def_legacy(step.schema)
        case TorchDefine():
            library.def_(step.schema, step.alias)
        case TorchDefineInferred():
            library.def_name_t_t(name, step.key or "", step.debug)
        case TorchDefineWithKernel():
            library.def_schema_t_t(step.schema, step.key or "", step.alias, step.debug)
        case TorchFallback(kind="fallthrough"):
            library.fallback_fallthrough(step.key)
        case _:
            library.fallback(step.key, kernel)


def _fallthrough(torch: Any) -> Kernel:
    marker: Kernel = torch.library.fallthrough_kernel
    return marker


def arguments_of(call: TorchCall) -> tuple[Any, ...]:
    """The tensors that `call` passes: two by two, ones, in the layout asked for.

    Raises whatever torch raises for a layout that this build does not have.
    """
    torch = load_torch()
    dense = torch.ones(2, 2, device="meta" if call.layout == "meta" else "cpu")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # compressed layouts call themselves beta
        tensor = {
            "cpu": lambda: dense,
            "meta": lambda: dense,
            "sparse": lambda: dense.to_sparse(),
            "csr": lambda: dense.to_sparse_csr(),
            "mkldnn": lambda: dense.to_mkldnn(),
        }[call.layout]()
    return (tensor.requires_grad_(call.requires_grad),) * call.arguments


def invoke(call: TorchCall, operator: str, arguments: tuple[Any, ...]) -> str:
    """Make the call through the live table: `returned`, or the error as text."""
    c = load_torch()._C
    name, _, overload = operator.partition(".")
    try:
        handle = c._dispatch_find_schema_or_throw(name, overload)
        if call.slot is None:
            c._dispatch_call_boxed(handle, *arguments)
        else:
            key = getattr(c.DispatchKey, call.slot)
            handle.redispatch_boxed(c.DispatchKeySet(key), *arguments)
    except Exception as error:
        return ": ".join(error_text(error))
    return "returned"


def invariants_text(operator: str) -> str:
    """Empty where torch's own check of this operator passes, else what it says."""
    try:
        load_torch()._C._dispatch_check_invariants(operator)
    except RuntimeError as error:
        return error_text(error)[1]
    return ""
