"""Calling: what `rpc_sync`, `rpc_async`, `remote` and proxies do with what they get.

True only here: how the arguments of a call are read before anything is sent.  A mistake
in a call is raised at the caller at once, and nothing is sent.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from runtime.errors.future import described
from runtime.errors.rpc import RpcMisuse
from runtime.futures import Future
from runtime.rpc.agent import (
    UNSET_RPC_TIMEOUT,
    Handle,
    Request,
    current_agent,
    timeout_seconds,
)
from runtime.rpc.identities import WorkerInfo

To = str | int | WorkerInfo
Arguments = Sequence[Any]
Named = Mapping[str, Any]


def request(
    call: str, func: Callable[..., Any], args: Arguments | None, kwargs: Named | None
) -> Request:
    """What is asked of a worker.

    Raises:
        RpcMisuse: `func` cannot be called, or the arguments are no arguments.
    """
    if not callable(func):
        raise RpcMisuse(
            call=call, found=described(func), wanted="function should be callable"
        )
    for given, kind, word in (
        (args, (tuple, list), "a tuple or a list of arguments"),
        (kwargs, (Mapping,), "a dictionary of arguments by name"),
    ):
        if given and not isinstance(given, kind):
            raise RpcMisuse(call=call, found=described(given), wanted=word)
    names = dict(kwargs or {})
    for name in names:
        if not isinstance(name, str):
            raise RpcMisuse(
                call=call,
                found=f"{described(name)} as a keyword",
                wanted="keywords must be strings",
            )
    return Request(func, tuple(args or ()), names)


def begin(
    call: str,
    to: To,
    func: Callable[..., Any],
    args: Arguments | None = None,
    kwargs: Named | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future[Any]:
    """A future of what a function gives on another worker.

    Raises:
        NotInitialized, UnknownWorker, RpcMisuse: the call cannot be made.
    """
    agent = current_agent(call)
    asked = request(call, func, args, kwargs)
    seconds = timeout_seconds(timeout, agent.rpc_timeout, call)
    return agent.call(agent.find(to), asked, timeout=seconds)


def begin_remote(
    to: To,
    func: Callable[..., Any],
    args: Arguments | None = None,
    kwargs: Named | None = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Handle:
    """A reference to what a function gives on another worker, which keeps it.

    Raises:
        NotInitialized, UnknownWorker, RpcMisuse: the call cannot be made.
    """
    agent = current_agent("remote")
    asked = request("remote", func, args, kwargs)
    seconds = timeout_seconds(timeout, agent.rpc_timeout, "remote")
    return agent.remote(agent.find(to), asked, timeout=seconds)
