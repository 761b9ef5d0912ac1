"""References: values that stay on their worker, while other workers refer to them.

`RRef` is the reference that programs use.  The owner has the value, and its references
return it; a reference of any other worker, a user, fetches a copy.  The session keeps
the lists of owners and users.

    RRef(value)          an owner's reference, to a value of this worker
    remote(to, f, ...)   a user's reference, to the result of `f` on another worker
    received in a call   an owner's or a user's, depending on the place of the value

Rules:
- the owner keeps a value as long as a reference exists; dropping a reference notifies
  the owner from wherever the garbage collector runs, and does not lock;
- the owner's reference returns the value itself, a user's a copy for each `to_here`;
- a reference whose value was never created, or whose owner is lost, is dead, and its
  operations report that;
- it is sent inside of remote calls only: it cannot be copied or pickled otherwise;
- owners count references and do not detect cycles: a value that holds a reference to
  itself, directly or through another value, stays until that reference is dropped, or
  the worker shuts down.
"""

from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Any, Generic, NoReturn, Self, TypeVar, overload
from weakref import finalize

from everyorder.runtime.base.locks import load
from everyorder.runtime.errors.future import FutureTimeout
from everyorder.runtime.errors.rpc import RpcMisuse, RpcTimeout
from everyorder.runtime.futures import Future
from everyorder.runtime.futures.completion import Unmovable
from everyorder.runtime.rpc.agent import (
    REFERENCE_CLASS,
    Agent,
    CallRequest,
    ReferenceClass,
    ReferenceHandle,
    current_agent,
    timeout_seconds,
)
from everyorder.runtime.rpc.agent.options import UNSET_RPC_TIMEOUT
from everyorder.runtime.rpc.api.profiling import (
    PROFILERS,
    call,
    create,
    record_function,
    to_here_key,
)
from everyorder.runtime.rpc.codec import pack_error, unpack_error
from everyorder.runtime.rpc.codec.named_functions import async_execution, is_async
from everyorder.runtime.rpc.protocol.identities import OBJECT, WorkerInfo

T = TypeVar("T")

# Classes whose type is known without inference.
_PLAIN = {bool: "bool", int: "int", float: "float", str: "str", type(None): "NoneType"}


class RRef(Unmovable, Generic[T]):
    """A reference to a value of type T on some worker.

    `RRef(value)` makes this worker the owner.  A value that holds a reference to itself
    is kept until it drops that, or the worker shuts down: owners count references, and
    a garbage collector does not see other workers.  `type_hint` is the interface by
    which scripts see a compiled module; other values must not have a hint.

    Raises:
        NotInitialized: this thread has no worker.
        RpcMisuse: a hint is missing, or does not match.
    """

    __slots__ = ("__weakref__", "_agent", "_handle", "_python_type")

    _agent: Agent
    _handle: ReferenceHandle
    _python_type: "type[T] | None"

    def __init__(self, value: T, type_hint: type | None = None) -> None:
        agent = current_agent("RRef")
        future: Future[T] = Future()
        future.set_result(value)
        self._begin(agent, agent.own(future, type_of(value, type_hint)))

    def _begin(self, agent: Agent, handle: ReferenceHandle) -> None:
        self._agent = agent
        self._handle = handle
        self._python_type = None
        finalize(self, handle.drop).atexit = False

    # Owner and state ---------------------------------------------------------------

    def is_owner(self) -> bool:
        """Return True if the value is on this worker."""
        return self._handle.is_owner

    def owner(self) -> WorkerInfo:
        """Return the worker that has the value."""
        return self._handle.owner.info

    def owner_name(self) -> str:
        """Return the name of the worker that has the value."""
        return self._handle.owner.name

    def confirmed_by_owner(self) -> bool:
        """Return True if the owner has confirmed this reference."""
        return self._handle.is_owner or self._handle.confirmed

    # The value ----------------------------------------------------------------------

    def to_here(self, timeout: float = UNSET_RPC_TIMEOUT) -> T:
        """Return the value itself on its owner, a current copy on any other worker.

        Raises:
            RpcTimeout: the value did not arrive in time.
            ReferenceDead: the value was never created, or its owner is out of reach.
            Exception: the exception of the function that should have created the value.
        """
        handle = self._handle
        agent, seconds = self._agent, _seconds(self, timeout, "to_here")
        if handle.is_owner:
            return _value_here(self, "to_here", seconds)  # type: ignore[no-any-return]  # the type of the stored value
        if PROFILERS.get():
            key = to_here_key(agent.name, self.owner_name())
            with record_function(key) as scope:
                fetched = agent.fetch(handle, timeout=seconds)
                return scope.ends_with(fetched).wait()  # type: ignore[no-any-return]  # as above
        return agent.fetch_and_wait(handle, timeout=seconds)  # type: ignore[no-any-return]  # as above

    def local_value(self) -> T:
        """Return the value itself, on its owner.

        Raises:
            RpcMisuse: the value is on another worker.
            Exception: the exception of the function that should have created the value.
        """
        if not self._handle.is_owner:
            raise RpcMisuse(
                code="NotTheOwner",
                call="local_value",
                reference=repr(self),
                worker=self._agent.name,
                owner=self.owner_name(),
            )
        return _value_here(self, "local_value", None)  # type: ignore[no-any-return]  # the type of the stored value

    def _get_future(self) -> Future[None]:
        """Return a future that completes when the owner has answered the creation."""
        return self._handle.created

    # Calls on the value ---------------------------------------------------------------

    def rpc_sync(self, timeout: float = UNSET_RPC_TIMEOUT) -> "Proxy[Any]":
        """Return the value's methods, called on the owner, which return results."""
        return Proxy(self, _sync, timeout)

    def rpc_async(self, timeout: float = UNSET_RPC_TIMEOUT) -> "Proxy[Future[Any]]":
        """Return the value's methods, called on the owner, which return futures."""
        return Proxy(self, _async, timeout)

    def remote(self, timeout: float = UNSET_RPC_TIMEOUT) -> "Proxy[RRef[Any]]":
        """Return the value's methods, called on the owner, which return references."""
        return Proxy(self, _remote, timeout)

    @overload
    def _get_type(self, timeout: float = ...) -> "type[T]": ...

    @overload
    def _get_type(self, timeout: float = ..., *, blocking: bool) -> Any: ...

    @overload
    def _get_type(self, timeout: float, blocking: bool) -> Any: ...

    def _get_type(
        self, timeout: float = UNSET_RPC_TIMEOUT, blocking: bool = True
    ) -> Any:
        """Return the class of the value; a future unless `blocking`.

        The owner is asked once; later calls use the stored class.

        Raises:
            RpcTimeout, ReferenceDead, Exception: as `to_here`.
        """
        if self._python_type is not None:
            kind: Future[Any] = Future()
            kind.set_result(self._python_type)
        else:
            kind = _ask_owner(self, _about_value(self, _type_here), timeout)
            kind.add_done_callback(self._remember_type)
        return kind.wait() if blocking else kind

    def _remember_type(self, future: Future[Any]) -> None:
        if future.error() is None:
            self._python_type = future.value()

    def backward(
        self, dist_autograd_ctx_id: int = -1, retain_graph: bool = False
    ) -> None:
        """Compute gradients of the value, a tensor of one element, on its owner.

        The gradients are accumulated in the tensors that the value was computed from on
        that worker.

        Raises:
            RpcMisuse: distributed autograd contexts are not supported.
            AutogradError: the value has no gradient.
        """
        if dist_autograd_ctx_id != -1:
            raise RpcMisuse(
                call="RRef.backward",
                found=f"the context {dist_autograd_ctx_id} of distributed autograd",
                wanted="no context: gradients stay on the owner",
            )
        if self._handle.is_owner:
            _backward_here(self, retain_graph)
        else:
            request = _about_value(self, _backward_here, retain_graph)
            _ask_owner(self, request, UNSET_RPC_TIMEOUT).wait()

    # Refused operations -------------------------------------------------------------

    def __refusal__(self, operation: str) -> RpcMisuse:
        return RpcMisuse(code="ReferenceNotSent", asked=operation)

    def _serialize(self) -> NoReturn:
        """Refuse: references are encoded inside of remote calls only.

        Raises:
            ReferenceDead: the reference is dead.
            RpcMisuse: in every other case.
        """
        self._handle.check("_serialize")
        raise self.__refusal__("serialized")

    @staticmethod
    def _deserialize(data: Any) -> NoReturn:
        """Refuse: references are decoded inside of remote calls only.

        Raises:
            RpcMisuse: always.
        """
        raise RpcMisuse(code="ReferenceNotSent", asked="deserialized")

    def __repr__(self) -> str:
        fork = self._handle.fork
        if self._handle.is_owner:
            return f"OwnerRRef({fork.rref})"
        return f"UserRRef(RRefId = {fork.rref}, ForkId = {fork.fork})"


def _seconds(rref: RRef[Any], timeout: float, call: str) -> float | None:
    return timeout_seconds(timeout, rref._agent.rpc_timeout, call)


def reference_of(agent: Agent, handle: ReferenceHandle, of: str = "") -> RRef[Any]:
    """Return the reference of a handle; its value is of type `of`, if known."""
    if of:
        handle.fork = handle.fork._replace(type=of)
    rref: RRef[Any] = object.__new__(RRef)
    rref._begin(agent, handle)
    return rref


def handle_of(value: Any) -> ReferenceHandle | None:
    """Return the handle of a reference, None for any other object."""
    return value._handle if isinstance(value, RRef) else None


REFERENCE_CLASS.set(ReferenceClass(RRef, reference_of, handle_of))


def _value_here(rref: RRef[Any], call: str, seconds: float | None) -> Any:
    """Return the value of an owner's reference, as soon as it is complete.

    An error of its creation is raised as a new exception: the traceback of the stored
    one would keep frames alive, and with them references to the value itself.

    Raises:
        RpcTimeout: the value is not complete in time.
        ReferenceDead: the reference is dead.
        RemoteError: the exception of the function; also an instance of its class.
    """
    handle = rref._handle
    handle.check(call)
    value = handle.value
    assert value is not None, "callers check for the owner"
    if not value.done():
        try:
            value.then(_nothing).wait(seconds)
        except FutureTimeout:
            assert seconds is not None, "without a timeout the wait has no end"
            raise RpcTimeout(
                call=call, worker=handle.owner.name, milliseconds=round(seconds * 1000)
            ) from None
    error = value.error()
    if error is not None:
        raise unpack_error(pack_error(error, rref._agent.info).payload)
    return value.value()


def _nothing(future: object) -> None:
    """Do nothing; a callback whose future can be waited for."""


# Types ------------------------------------------------------------------------------


def type_of(value: Any, hint: type | None = None) -> str:
    """Return the type of a value in programs; `OBJECT` if it has no script type.

    Raises:
        RpcMisuse: a hint is missing, or does not match.
    """
    plain = _PLAIN.get(type(value))
    if plain is not None and hint is None:
        return plain
    program: Any = load("everyorder.runtime.script.ir.program")
    inferred = program.inferred_type(value)
    compiled = _is_compiled_module(value)
    if compiled and hint is None:
        raise RpcMisuse(
            call="RRef",
            found="a compiled module without a type_hint",
            wanted="a compiled module, and the interface by which scripts see it",
        )
    if not compiled and hint is not None:
        raise RpcMisuse(
            call="RRef",
            found="a type_hint",
            wanted="a hint where the value is a compiled module, and nowhere else",
        )
    if hint is not None:
        return _hinted(inferred, hint)
    return OBJECT if isinstance(inferred, program.NotInferred) else str(inferred)


def _is_compiled_module(value: Any) -> bool:
    modules: Any = load("everyorder.runtime.script.modules")
    return isinstance(value, modules.ScriptModule)


def _hinted(inferred: Any, hint: type) -> str:
    program: Any = load("everyorder.runtime.script.ir.program")
    fits: Any = load("everyorder.runtime.schema.subtyping").is_subtype
    interface = None
    if program.is_interface(hint):
        load("everyorder.runtime.jit").script(hint)
        interface = program.SHARED_PROGRAM.classes.known(hint)
    if interface is None or not fits(inferred, interface):
        raise RpcMisuse(
            call="RRef",
            found=f"the type_hint `{hint.__name__}`",
            wanted=f"an interface that `{inferred}` has",
        )
    return str(interface)


# Proxies ------------------------------------------------------------------------------

R = TypeVar("R")
# The function of a proxy: reference, method, arguments, timeout.
Invoke = Callable[[RRef[Any], str, tuple[Any, ...], dict[str, Any], float], R]


class Proxy(Unmovable, Generic[R]):
    """Methods of a referenced value; `proxy.method(...)` calls one on its owner.

    The name is checked against the class of the value, which is fetched first.
    """

    __slots__ = ("_call", "_rref", "_timeout")

    def __init__(self, rref: RRef[Any], call: Invoke[R], timeout: float) -> None:
        self._rref = rref
        self._call = call
        self._timeout = timeout

    def __getattr__(self, name: str) -> Callable[..., R]:
        """Return a callable for the method of that name of the value's class."""
        return partial(self._invoke, name)

    def _invoke(self, name: str, /, *args: Any, **kwargs: Any) -> R:
        return self._call(self._rref, name, args, kwargs, self._timeout)

    def __refusal__(self, operation: str) -> RpcMisuse:
        return self._rref.__refusal__(operation)

    def __copy__(self) -> Self:
        return self


def _check_method(kind: type, name: str) -> None:
    """Check that a class has a method.

    Raises:
        RpcMisuse: the class has no method of that name.
    """
    # The methods of a compiled module are not in its class.
    modules: Any = load("everyorder.runtime.script.modules")
    if not hasattr(kind, name) and not issubclass(kind, modules.ScriptModule):
        raise RpcMisuse(code="NoSuchMethod", kind=kind.__name__, attribute=name)


def _sync(
    rref: RRef[Any], name: str, args: tuple[Any, ...], kwargs: Any, timeout: float
) -> Any:
    request = _invocation(rref, rref._get_type(timeout), name, args, kwargs)
    return _ask_owner(rref, request, timeout, "sync").wait()


def _async(
    rref: RRef[Any], name: str, args: tuple[Any, ...], kwargs: Any, timeout: float
) -> Future[Any]:
    kind: Future[Any] = rref._get_type(timeout, False)
    result: Future[Any] = Future()

    def invoke(future: Future[Any]) -> None:
        try:
            request = _invocation(rref, future.value(), name, args, kwargs)
            answer = _ask_owner(rref, request, timeout, "async")
            answer._forward_to(result)
        except Exception as error:
            result.set_error_if_needed(error)

    if PROFILERS.get():
        # The profilers of this thread measure the call, even if another thread makes
        # it.
        context = copy_context()
        kind.add_done_callback(lambda future: context.run(invoke, future))
    else:
        kind.add_done_callback(invoke)
    return result


def _remote(
    rref: RRef[Any], name: str, args: tuple[Any, ...], kwargs: Any, timeout: float
) -> RRef[Any]:
    request = _invocation(rref, rref._get_type(timeout), name, args, kwargs)
    agent, seconds = rref._agent, _seconds(rref, timeout, "remote")
    owner = rref._handle.owner
    if PROFILERS.get():
        handle = create(agent, owner, request, seconds)
    else:
        handle = agent.remote(owner, request, timeout=seconds)
    return reference_of(agent, handle)


def _invocation(
    rref: RRef[Any], kind: type, name: str, args: tuple[Any, ...], kwargs: Any
) -> CallRequest:
    """Return the request for a method call on a value of class `kind`.

    Raises:
        RpcMisuse: the class has no such method.
    """
    _check_method(kind, name)
    arguments = (rref, name, args, kwargs)
    return CallRequest(_invoke_here, arguments, {}, f"{kind.__qualname__}.{name}")


def _about_value(rref: RRef[Any], func: Callable[..., Any], *args: Any) -> CallRequest:
    """Return the request for a function of this module on a value's owner."""
    return CallRequest(func, (rref, *args), {}, func.__name__)


def _ask_owner(
    rref: RRef[Any], request: CallRequest, timeout: float, mode: str = ""
) -> Future[Any]:
    """Return a future of the owner's answer; profiled if `mode` is not ""."""
    rref._handle.check(request.name)
    seconds = _seconds(rref, timeout, request.name)
    agent, owner = rref._agent, rref._handle.owner
    if mode and PROFILERS.get():
        return call(agent, owner, request, seconds, mode=mode)
    return agent.call(owner, request, timeout=seconds)


# Functions that run on the owner.  They do not block a thread for an incomplete value.


def _with_value(rref: RRef[Any], act: Callable[[Any], Any]) -> Future[Any]:
    """Return a future of `act(value)`, which is called when the value is complete."""
    result: Future[Any] = Future()

    def now(future: Future[Any]) -> None:
        failed = future.error()
        if failed is not None:
            # Not raised: the traceback would keep frames alive.
            result.set_error_if_needed(failed)
            return
        try:
            outcome = act(future.value())
        except Exception as error:
            result.set_error_if_needed(error)
            return
        if isinstance(outcome, Future):
            outcome._forward_to(result)
        else:
            result.set_result(outcome)

    value = rref._handle.value
    assert value is not None, "the request is sent to the owner"
    value.add_done_callback(now)
    return result


@async_execution
def _type_here(rref: RRef[Any]) -> Future[type]:
    return _with_value(rref, type)


@async_execution
def _invoke_here(
    rref: RRef[Any], name: str, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Future[Any]:
    def act(value: Any) -> Any:
        method = getattr(value, name)
        outcome = method(*args, **kwargs)
        if is_async(method):
            return outcome
        if isinstance(outcome, Future):
            # A future cannot be sent: only marked functions may return one.
            outcome.__reduce_ex__(5)
        return outcome

    return _with_value(rref, act)


def _backward_here(rref: RRef[Any], retain_graph: bool) -> None:
    value: Any = rref.local_value()
    value.backward(retain_graph=retain_graph)
