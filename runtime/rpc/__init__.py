"""Remote calls: workers, calls, references; values on the surface, messages below.

The names are those of `torch.distributed.rpc`.  They are loaded when they are first
asked for: only then are tensors, compiled functions and, for workers of other
processes, the packages of the extra `rpc` needed.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from runtime.locks import LOADING, load
from runtime.rpc.identities import WorkerInfo

if TYPE_CHECKING:
    from runtime.rpc import api as api
    from runtime.rpc import functions as functions
    from runtime.rpc.agent import (
        BackendType,
        RpcBackendOptions,
        TensorPipeRpcBackendOptions,
        backend_registered,
        construct_rpc_backend_options,
        init_backend,
        init_rpc,
        is_initialized,
        local_workers,
        register_backend,
        shutdown,
    )
    from runtime.rpc.api import (
        _all_gather,
        _barrier,
        _set_rpc_timeout,
        _wait_all,
        get_debug_info,
        get_rpc_timeout,
        get_worker_info,
        remote,
        rpc_async,
        rpc_sync,
    )
    from runtime.rpc.references import RRef
    from runtime.rpc.values import register, register_reducer, use_pickler

    PyRRef = RRef

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "TensorPipeRpcBackendOptions",
    "WorkerInfo",
    "api",
    "backend_registered",
    "construct_rpc_backend_options",
    "functions",
    "get_debug_info",
    "get_rpc_timeout",
    "get_worker_info",
    "init_backend",
    "init_rpc",
    "is_available",
    "is_initialized",
    "local_workers",
    "register",
    "register_backend",
    "register_reducer",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
    "use_pickler",
]

# What workers of different processes need.
_EXTRA = ("zmq", "cloudpickle")


def is_available() -> bool:
    """Whether the extra `rpc` is installed, which workers of other processes need."""
    return all(find_spec(package) is not None for package in _EXTRA)


# Names -> where they live.
_LAZY = {
    **dict.fromkeys(
        (
            *("RpcBackendOptions", "TensorPipeRpcBackendOptions", "shutdown"),
            *("backend_registered", "construct_rpc_backend_options", "init_backend"),
            *("init_rpc", "is_initialized", "local_workers", "register_backend"),
        ),
        "agent",
    ),
    **dict.fromkeys(
        (
            *("_all_gather", "_barrier", "_set_rpc_timeout", "_wait_all"),
            *("get_debug_info", "get_rpc_timeout", "get_worker_info"),
            *("remote", "rpc_async", "rpc_sync"),
        ),
        "api",
    ),
    **dict.fromkeys(("register", "register_reducer", "use_pickler"), "values"),
    "RRef": "references",
}
_MODULES = ("api", "functions")
# What programs for torch call them.
_SYNONYMS = {
    "PyRRef": "RRef",
    "_is_current_rpc_agent_set": "is_initialized",
    "_rref_context_get_debug_info": "get_debug_info",
    "_use_rpc_pickler": "use_pickler",
}


def _found(name: str) -> Any:
    """A lazy name, loaded; it is an ordinary one from then on."""
    name_of = _SYNONYMS.get(name, name)
    if name_of == "BackendType":
        # Another one whenever a backend is registered.
        return load("runtime.rpc.agent").backend_type()
    if name_of not in _LAZY and name_of not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name
        )
    with LOADING:
        if name_of in _MODULES:
            found: Any = load(f"{__name__}.{name_of}")
        else:
            found = getattr(load(f"{__name__}.{_LAZY[name_of]}"), name_of)
        globals()[name] = found
    return found


if not TYPE_CHECKING:
    # A checker knows the names, and says which there are not.
    __getattr__ = _found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_LAZY, *_MODULES, *_SYNONYMS})
