"""Agents: workers that call and are called; values on their surface."""

from runtime.errors.rpc import RpcError
from runtime.rpc.agent.agent import Agent
from runtime.rpc.agent.handles import Handle, set_reference_class
from runtime.rpc.agent.options import (
    UNSET_RPC_TIMEOUT,
    BackendType,
    RpcBackendOptions,
    backend_registered,
    backend_type,
    construct_rpc_backend_options,
    init_backend,
    register_backend,
    timeout_seconds,
)
from runtime.rpc.agent.requests import Request
from runtime.rpc.agent.starting import (
    debug_info,
    get_rpc_timeout,
    get_worker_info,
    init_rpc,
    set_rpc_timeout,
    shutdown,
    stop,
)
from runtime.rpc.agent.threads import (
    Seat,
    current_agent,
    is_initialized,
    seat,
    seated,
)

__all__ = [
    "UNSET_RPC_TIMEOUT",
    "Agent",
    "BackendType",
    "Handle",
    "Request",
    "RpcBackendOptions",
    "RpcError",
    "Seat",
    "backend_registered",
    "backend_type",
    "construct_rpc_backend_options",
    "current_agent",
    "debug_info",
    "get_rpc_timeout",
    "get_worker_info",
    "init_backend",
    "init_rpc",
    "is_initialized",
    "register_backend",
    "seat",
    "seated",
    "set_reference_class",
    "set_rpc_timeout",
    "shutdown",
    "stop",
    "timeout_seconds",
]
