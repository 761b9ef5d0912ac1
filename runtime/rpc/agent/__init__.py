"""Agents: workers that make calls and serve the calls of other workers."""

from everyorder.runtime.errors.rpc import RpcError
from everyorder.runtime.rpc.agent.agent import (
    Agent,
    WorkerSlot,
    current_agent,
    in_worker_slot,
    is_initialized,
    worker_slot,
)
from everyorder.runtime.rpc.agent.options import (
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
from everyorder.runtime.rpc.agent.owned_values import (
    REFERENCE_CLASS,
    ReferenceClass,
    ReferenceHandle,
)
from everyorder.runtime.rpc.agent.pending_calls import CallRequest

__all__ = [
    "REFERENCE_CLASS",
    "UNSET_RPC_TIMEOUT",
    "Agent",
    "BackendType",
    "CallRequest",
    "ReferenceClass",
    "ReferenceHandle",
    "RpcBackendOptions",
    "RpcError",
    "WorkerSlot",
    "backend_registered",
    "backend_type",
    "construct_rpc_backend_options",
    "current_agent",
    "in_worker_slot",
    "init_backend",
    "is_initialized",
    "register_backend",
    "timeout_seconds",
    "worker_slot",
]
