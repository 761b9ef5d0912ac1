"""By name: programs call through the worker of this process, and so does Python.

A call of a program becomes one of the agent's.

    call_program               the one function by which programs call
    _rpc_async_torchscript     calls a compiled function by its full name, from Python
                               and from programs

Rules:
- the name is all that is sent: the other worker looks the function up, and says so if
  it has none;
- a reference knows the type of its value from the program that asked for it.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from runtime.futures import Future
from runtime.rpc.agent import (
    UNSET_RPC_TIMEOUT,
    Agent,
    Request,
    current_agent,
    timeout_seconds,
)
from runtime.rpc.api import remote, rpc_async, rpc_sync
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.profiling import (
    is_profiling,
    measured,
    measured_creation,
    record_function,
)
from runtime.rpc.program.plug_in import Surface, plug_in
from runtime.rpc.program.steps import called
from runtime.rpc.references import RRef, handle_of, reference_of
from runtime.rpc.values.callables import Named
from runtime.script.emission import Manager, register_special_form
from runtime.script.program import SHARED_PROGRAM

To = str | WorkerInfo
Args = Sequence[Any] | None
Kwargs = Mapping[str, Any] | None


def call_program(
    mode: str,
    to: Any,
    name: str,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    timeout: float,
    type: str,  # noqa: A002  # the field's own word
) -> Any:
    """What the function called `name` gives on another worker.

    A future of it where `mode` is "async", a reference to it, whose value is of `type`,
    where it is "remote".

    Raises:
        NotInitialized, UnknownWorker, RpcMisuse: the call cannot be made.
        Exception: of "sync", as `rpc_sync`.
    """
    call = "remote" if mode == "remote" else f"rpc_{mode}"
    agent = current_agent(call)
    seconds = timeout_seconds(timeout, agent.rpc_timeout, call)
    request = Request(Named(name), args, kwargs, name)
    node = agent.find(to)
    if mode == "remote":
        create = measured_creation if is_profiling() else Agent.remote
        return reference_of(create(agent, node, request, timeout=seconds), type)
    if is_profiling():
        how = "async_jit" if mode == "async" else mode
        future = measured(how, agent, node, request, timeout=seconds)
        return future if mode == "async" else future.wait()
    if mode == "sync":
        return agent.call_and_wait(node, request, timeout=seconds)
    return agent.call(node, request, timeout=seconds)


def _type_of(rref: Any) -> str:
    handle = handle_of(rref)
    return "" if handle is None else handle.fork.type


T = TypeVar("T")


def _asked(
    mode: str, to: To, name: str, args: Args, kwargs: Kwargs, timeout: float
) -> Any:
    function = SHARED_PROGRAM.functions.get(name)
    schema = None if function is None else function.schema
    given = (to, tuple(args or ()), dict(kwargs or {}), timeout)
    return called(SURFACE, mode, name, schema, given, "")


def _rpc_async_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future[Any]:
    """A future of what a compiled function gives on the worker `to`, by its full name.

    Raises:
        RpcMisuse: they do not fit it, as far as it is known here.
        NotInitialized, UnknownWorker, RpcMisuse: the call cannot be made.
    """
    future: Future[Any] = _asked("async", to, qualified_name, args, kwargs, timeout)
    return future


def _rpc_sync_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """What a compiled function gives on the worker `to`, by its full name.

    Raises:
        RpcMisuse, NotInitialized, UnknownWorker, RpcMisuse: as of
            `_rpc_async_torchscript`.
        Exception: as `rpc_sync`.
    """
    return _asked("sync", to, qualified_name, args, kwargs, timeout)


def _remote_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef[Any]:
    """A reference to what a compiled function gives on the worker `to`.

    Raises:
        RpcMisuse, NotInitialized, UnknownWorker, RpcMisuse: as of
            `_rpc_async_torchscript`.
    """
    made: RRef[Any] = _asked("remote", to, qualified_name, args, kwargs, timeout)
    return made


SURFACE = Surface(
    rpc_async,
    rpc_sync,
    remote,
    _rpc_async_torchscript,
    _rpc_sync_torchscript,
    _remote_torchscript,
    RRef,
    _type_of,
    call_program,
)


def installed() -> Iterable[Callable[[], None]]:
    """Let programs have remote calls by the worker here; gives what takes that back."""
    yield plug_in(SURFACE).close
    # What is measured of a program has scopes in it.
    yield register_special_form(record_function, Manager(record_function)).close
