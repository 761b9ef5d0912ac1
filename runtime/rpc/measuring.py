"""Measuring: calls while a profiler is at work, at both ends.

True only here: what is asked for instead of a call that is measured: the same call, and
what it was measured by where it ran.  Nobody else knows of it: a worker runs a function
as any other.

Rules:
- an error is the call's own, and nothing that was measured comes with it;
- of a registered function, and of what stays where it is made (`remote`), nothing comes
  back but when it was done;
- values that are fetched are measured at this end only;
- a call on a value is called by its class and method; asking for its class is not
  measured.
"""

from typing import Any

from runtime.futures import Future
from runtime.rpc.agent import Agent, Request
from runtime.rpc.agent.handles import Handle
from runtime.rpc.functions import is_async
from runtime.rpc.identities import Node
from runtime.rpc.profiling import calling, run_profiled, run_profiled_later
from runtime.rpc.values.callables import REGISTERED, call_of


def measured(
    mode: str, agent: Agent, node: Node, request: Request, *, timeout: float | None
) -> Future[Any]:
    """As `agent.call`, and measured; the mode is one of `profiling.MODES`.

    Raises:
        NotInitialized: the worker has stopped.
        RpcError, Exception: the request cannot be written.
    """
    call = call_of(request.function, request.args, request.kwargs)
    name = request.name or call.name
    with calling(mode, name, agent.info.name, node.name) as scope:
        if call.kind == REGISTERED:
            return scope.ends_with(agent.call(node, request, timeout=timeout))
        later = is_async(call.function)
        function = run_profiled_later if later else run_profiled
        args = (name, call.function, call.args, call.kwargs)
        both = agent.call(
            node, Request(function, args, {}, request.text()), timeout=timeout
        )
        return scope.ends_with(scope.value_of(both))


def measured_creation(
    agent: Agent, node: Node, request: Request, *, timeout: float | None
) -> Handle:
    """As `agent.remote`, and measured until the value is known to be made.

    Raises:
        NotInitialized, RpcError, Exception: as `measured`.
    """
    call = call_of(request.function, request.args, request.kwargs)
    name = request.name or call.name
    with calling("remote", name, agent.info.name, node.name) as scope:
        handle = agent.remote(node, request, timeout=timeout)
        scope.ends_with(handle.created)
    return handle
