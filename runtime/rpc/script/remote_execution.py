"""Remote calls when a program runs: the checks of their arguments and results.

    fit_arguments              checks the arguments of a call by the function's schema
    make_call                  makes a call, by a `Surface`
    makers                     kind of node -> the factory of its function
    call_program               calls by the worker of this process: `SURFACE` uses it
    _rpc_async_torchscript     calls a compiled function by its full name, from Python
                               and from programs

Rules of arguments:
- a worker is a name or a `WorkerInfo`, never a number; a timeout is a float;
- if this worker has the function, the arguments are checked by its schema before
  anything is sent: missing, unknown and repeated arguments, and types; a number is
  converted to a wider type, and a missing argument is replaced by the caller's default;
- the arguments of an unknown function are sent unchanged, and the other worker checks
  them;
- only the name of a function is sent: the other worker looks it up, and reports if it
  lacks the function.

Rules of results:
- a result of another worker is checked against the type in the program: a future when
  it is waited for, a reference when its value is fetched;
- an exception of another worker is raised unchanged, with the frames of the program;
- an unchecked cast may be wrong: a method of a reference or a worker checks the class
  of the object first.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from everyorder.runtime.base.registry import RegistryHandle
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.rpc import RpcMisuse
from everyorder.runtime.futures import Future
from everyorder.runtime.rpc.agent import UNSET_RPC_TIMEOUT
from everyorder.runtime.rpc.api.profiling import (
    PROFILERS,
    call,
    call_and_wait,
    create,
    record_function,
)
from everyorder.runtime.rpc.api.remote_calls import (
    prepared,
    remote,
    rpc_async,
    rpc_sync,
)
from everyorder.runtime.rpc.api.rref import RRef, handle_of, reference_of
from everyorder.runtime.rpc.codec.callables import NamedFunction
from everyorder.runtime.rpc.protocol.identities import WorkerInfo
from everyorder.runtime.rpc.script.remote_nodes import (
    ASYNC,
    METHODS,
    REMOTE,
    SYNC,
    tests,
)
from everyorder.runtime.rpc.script.surface import UNSET, Surface
from everyorder.runtime.schema.binding import stored_default
from everyorder.runtime.schema.call_errors import shortened
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.types import AnyType, FutureType, RRefType, Type
from everyorder.runtime.schema.values import MISMATCH
from everyorder.runtime.script.emission import Manager, register_special_form
from everyorder.runtime.script.executor import (
    check_value,
    register_step,
    register_test,
    taker,
)
from everyorder.runtime.script.ir import Node
from everyorder.runtime.script.ir.program import SHARED_PROGRAM


def fit_arguments(
    schema: Schema, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the positional and the keyword arguments, converted, with defaults.

    Raises:
        RpcMisuse: the arguments do not match the schema.
    """

    def refuse(argument: str, fault: str) -> RpcMisuse:
        return RpcMisuse(
            code="UnfitArguments",
            function=name,
            argument=argument,
            fault=fault,
            schema=str(schema),
        )

    start = schema.kwarg_only_start
    if len(args) > start:
        takes = f"at most {start} argument(s) by place, and {len(args)} are given"
        raise refuse("", f"`{name}` takes {takes}")
    left = dict(kwargs)
    positional: list[Any] = []
    named: dict[str, Any] = {}
    for place, each in enumerate(schema.arguments):
        word = each.name
        if place < len(args):
            if word in left:
                fault = f"Argument '{word}' is given both by place and by name"
                raise refuse(word, fault)
            value = args[place]
        elif word in left:
            value = left.pop(word)
        elif each.has_default:
            value = stored_default(each)
        else:
            raise refuse(word, f"`{name}` is missing value for argument '{word}'")
        converted = taker(each.type)(value)
        if converted is MISMATCH:
            description = f"{describe_type(value)}: {shortened(value)}"
            raise refuse(
                word, f"Argument '{word}' takes {each.type}, and is {description}"
            )
        if place < start:
            positional.append(converted)
        else:
            named[word] = converted
    for word in left:
        raise refuse(word, f"Unknown keyword argument '{word}' of `{name}`")
    return tuple(positional), named


def make_call(
    surface: Surface,
    mode: str,
    name: str,
    schema: Schema | None,
    arguments: Sequence[Any],
    type_: str,
) -> Any:
    """Make a call: the worker, then args, kwargs and the timeout, as far as present.

    Raises:
        RpcMisuse: the worker or the timeout is invalid.
        RpcMisuse: the arguments do not match the schema.
        RpcError: the call cannot be made.
    """
    left_out: tuple[Any, ...] = ((), {}, UNSET)
    to, args, kwargs, timeout = (*arguments, *left_out[len(arguments) - 1 :])
    if not isinstance(to, str | WorkerInfo):
        raise RpcMisuse(
            call=f"rpc_{mode}" if mode != "remote" else mode,
            found=f"{describe_type(to)} as the worker",
            wanted="the name of a worker, or its WorkerInfo",
        )
    if schema is not None:
        args, kwargs = fit_arguments(schema, name.rpartition(".")[2], args, kwargs)
    return surface.call(mode, to, name, args, kwargs, timeout, type_)


Function = Callable[..., Any]
Maker = Callable[[Node], Function]

_MODES = {ASYNC: "async", SYNC: "sync", REMOTE: "remote"}


def install_profiler_scopes() -> Iterable[RegistryHandle]:
    """Let programs use scopes of the profiler; yield a handle for each part."""
    yield register_special_form(record_function, Manager(record_function))


def install(surface: Surface) -> Iterable[RegistryHandle]:
    """Register how nodes for remote calls run; yield their handles."""
    for kind, maker in makers(surface).items():
        yield register_step(kind, maker)
    for of, make in tests(surface).items():
        yield register_test(of, make)


def makers(surface: Surface) -> Mapping[str, Maker]:
    """Return the factory of the function of each kind of node."""

    def call(node: Node) -> Function:
        return _call(node, surface)

    return {
        **dict.fromkeys(_MODES, call),
        "prim::worker_info": _worker,
        **{
            f"prim::rref_{name}": _of_reference(name, surface.rref, gives is None)
            for name, gives in METHODS.items()
        },
    }


def _element(type_: Type) -> Type:
    if isinstance(type_, FutureType | RRefType):
        return type_.element
    return type_


def _call(node: Node, surface: Surface) -> Function:
    mode = _MODES[node.kind]
    declared = node.attributes.get("function")
    type_ = node.output.type
    of = _element(type_)
    # The result type of a function that is only known by name is unknown.
    text = "" if of is AnyType else str(of)

    def call(to: Any, name: str, *rest: Any) -> Any:
        function = declared
        if function is None:
            function = SHARED_PROGRAM.functions.get(name)
        schema = None if function is None else function.schema
        result = make_call(surface, mode, name, schema, (to, *rest), text)
        if mode != "sync":
            return result
        return check_value(result, of, f"`{name}` of another worker")

    return call


def _of_reference(name: str, kind: type, is_value: bool) -> Maker:
    """Return the factory for a method of a reference; it checks fetched values."""

    def maker(node: Node) -> Function:
        of, source_type = node.output.type, node.inputs[0].type

        def ask(rref: Any, *timeout: float) -> Any:
            # A cast may have declared another object as a reference.
            if not isinstance(rref, kind):
                check_value(rref, source_type, "A program")
            answer = getattr(rref, name)(*timeout)
            return check_value(answer, of, "A reference") if is_value else answer

        return ask

    return maker


def _worker(node: Node) -> Function:
    name, source_type = node.attributes["name"], node.inputs[0].type

    def ask(worker: Any) -> Any:
        if not isinstance(worker, WorkerInfo):
            check_value(worker, source_type, "A program")
        return getattr(worker, name)

    return ask


# By the worker of this process ------------------------------------------------------

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
    """Return the result of the function `name` on another worker, if `mode` is "sync".

    Return a future of the result if `mode` is "async", and a reference to it, whose
    value is of `type`, if `mode` is "remote".

    Raises:
        NotInitialized, RpcMisuse: the call cannot be made.
        Exception: only for "sync", as `rpc_sync`.
    """
    python = "remote" if mode == "remote" else f"rpc_{mode}"
    request = prepared(python, to, NamedFunction(name), args, kwargs, timeout, name)
    agent, node, asked, seconds = request
    profiled = bool(PROFILERS.get())
    if mode == "remote":
        if profiled:
            handle = create(agent, node, asked, seconds)
        else:
            handle = agent.remote(node, asked, timeout=seconds)
        return reference_of(agent, handle, type)
    if mode == "sync":
        if profiled:
            return call_and_wait(agent, node, asked, seconds)
        return agent.call_and_wait(node, asked, timeout=seconds)
    if profiled:
        return call(agent, node, asked, seconds, mode="async_jit")
    return agent.call(node, asked, timeout=seconds)


def _type_of(rref: Any) -> str:
    handle = handle_of(rref)
    return "" if handle is None else handle.fork.type


def _by_name(
    mode: str, to: To, name: str, args: Args, kwargs: Kwargs, timeout: float
) -> Any:
    function = SHARED_PROGRAM.functions.get(name)
    schema = None if function is None else function.schema
    arguments = (to, tuple(args or ()), dict(kwargs or {}), timeout)
    return make_call(SURFACE, mode, name, schema, arguments, "")


def _rpc_async_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Future[Any]:
    """Return a future of a compiled function's result on the worker `to`.

    The function is identified by its full name.

    Raises:
        RpcMisuse: the arguments do not match the function, if this worker has it.
        NotInitialized, RpcMisuse: the call cannot be made.
    """
    future: Future[Any] = _by_name("async", to, qualified_name, args, kwargs, timeout)
    return future


def _rpc_sync_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> Any:
    """Return the result of a compiled function on the worker `to`, by its full name.

    Raises:
        RpcMisuse, NotInitialized: as `_rpc_async_torchscript`.
        Exception: as `rpc_sync`.
    """
    return _by_name("sync", to, qualified_name, args, kwargs, timeout)


def _remote_torchscript(
    to: To,
    qualified_name: str,
    args: Args = None,
    kwargs: Kwargs = None,
    timeout: float = UNSET_RPC_TIMEOUT,
) -> RRef[Any]:
    """Return a reference to a compiled function's result on the worker `to`.

    Raises:
        RpcMisuse, NotInitialized: as `_rpc_async_torchscript`.
    """
    rref: RRef[Any] = _by_name("remote", to, qualified_name, args, kwargs, timeout)
    return rref


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
