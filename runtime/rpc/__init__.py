"""Remote calls between workers: calls, references to remote values, profiling.

The names are those of `torch.distributed.rpc`.  Each name is loaded on first access,
because loading needs tensors, compiled functions and, for workers in other processes,
the packages of the extra `rpc`.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from everyorder.runtime.base.locks import LOADING, load
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.script import plug_in_workers

if TYPE_CHECKING:
    from everyorder.runtime.rpc import api as api
    from everyorder.runtime.rpc import functions as functions
    from everyorder.runtime.rpc.agent import (
        BackendType,
        RpcBackendOptions,
        backend_registered,
        construct_rpc_backend_options,
        init_backend,
        is_initialized,
        register_backend,
    )
    from everyorder.runtime.rpc.agent.options import Settings
    from everyorder.runtime.rpc.api.gatherings import (
        _all_gather as _all_gather,
    )
    from everyorder.runtime.rpc.api.gatherings import (
        _barrier as _barrier,
    )
    from everyorder.runtime.rpc.api.lifecycle import debug_info as get_debug_info
    from everyorder.runtime.rpc.api.lifecycle import (
        get_rpc_timeout,
        get_worker_info,
        init_rpc,
        local_workers,
        set_rpc_timeout,
        shutdown,
    )
    from everyorder.runtime.rpc.api.profiling import (
        profile,
        record_function,
    )
    from everyorder.runtime.rpc.api.remote_calls import (
        _wait_all as _wait_all,
    )
    from everyorder.runtime.rpc.api.remote_calls import (
        remote,
        rpc_async,
        rpc_sync,
    )
    from everyorder.runtime.rpc.api.rref import RRef
    from everyorder.runtime.rpc.codec import (
        register,
        register_reducer,
        registered,
        use_pickler,
    )
    from everyorder.runtime.rpc.script.remote_execution import (
        _remote_torchscript as _remote_torchscript,
    )
    from everyorder.runtime.rpc.script.remote_execution import (
        _rpc_async_torchscript as _rpc_async_torchscript,
    )
    from everyorder.runtime.rpc.script.remote_execution import (
        _rpc_sync_torchscript as _rpc_sync_torchscript,
    )
    from everyorder.runtime.rpc.transport.addresses import Keys as Keys

    PyRRef = RRef
    TensorPipeRpcBackendOptions = RpcBackendOptions
    _set_rpc_timeout = set_rpc_timeout

__all__ = [
    "BackendType",
    "PyRRef",
    "RRef",
    "RpcBackendOptions",
    "Settings",
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
    "profile",
    "record_function",
    "register",
    "register_backend",
    "register_reducer",
    "registered",
    "remote",
    "rpc_async",
    "rpc_sync",
    "shutdown",
    "use_pickler",
]

# Script programs can call workers as soon as any name of this package is imported.
_PROGRAMS = plug_in_workers()

# Packages that workers of different processes need.
_EXTRA = ("zmq", "cloudpickle")


def is_available() -> bool:
    """Return True if the extra `rpc` is installed, which other processes need."""
    return all(find_spec(package) is not None for package in _EXTRA)


# Module of each lazy name.
_LAZY = {
    "agent": (
        *("RpcBackendOptions", "backend_registered", "construct_rpc_backend_options"),
        *("init_backend", "is_initialized", "register_backend"),
    ),
    "agent.options": ("Settings",),
    "api.lifecycle": (
        *("debug_info", "get_rpc_timeout", "get_worker_info", "init_rpc"),
        *("local_workers", "set_rpc_timeout", "shutdown"),
    ),
    "api": ("_all_gather", "_barrier", "_wait_all", "remote", "rpc_async", "rpc_sync"),
    "script.remote_execution": (
        *("_remote_torchscript", "_rpc_async_torchscript", "_rpc_sync_torchscript"),
    ),
    "api.profiling": ("profile", "record_function"),
    "api.rref": ("RRef",),
    "transport.addresses": ("Keys",),
    "codec": ("register", "register_reducer", "registered", "use_pickler"),
}
_HOMES = {name: home for home, names in _LAZY.items() for name in names}
_MODULES = ("api", "functions")
# Names that programs for torch use, and the names here.
_SYNONYMS = {
    "PyRRef": "RRef",
    "TensorPipeRpcBackendOptions": "RpcBackendOptions",
    "_is_current_rpc_agent_set": "is_initialized",
    "_rref_context_get_debug_info": "debug_info",
    "_set_rpc_timeout": "set_rpc_timeout",
    "_use_rpc_pickler": "use_pickler",
    "get_debug_info": "debug_info",
}


def _load_attribute(name: str) -> Any:
    """Load a lazy name and store it as an ordinary module attribute."""
    target = _SYNONYMS.get(name, name)
    if target == "BackendType":
        # Not stored: registering a backend replaces the enumeration.
        return load(f"{__name__}.agent").backend_type()
    if target not in _HOMES and target not in _MODULES:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name
        )
    with LOADING:
        # A received message can hold references, so a worker needs the whole API.
        load(f"{__name__}.api")
        if target in _MODULES:
            attribute: Any = load(f"{__name__}.{target}")
        else:
            attribute = getattr(load(f"{__name__}.{_HOMES[target]}"), target)
        globals()[name] = attribute
    return attribute


if not TYPE_CHECKING:
    # A type checker sees the imports above and reports unknown names.
    __getattr__ = _load_attribute


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_HOMES, *_MODULES, *_SYNONYMS})
