"""Callables: how a request names the function to call, and how a worker finds it.

A callable is identified to the other worker in one of these ways:

    an operator             by name and schema, which must be the same there
    a compiled function     by its full name: `__torch__.package.name`
    a registered function   by the name that it was registered under
    any other               by pickle: also by name, if it belongs to a module

Rules:
- these are tried in this order, but registered functions first;
- the arguments of operators and of compiled functions are checked at the caller, before
  anything is sent;
- a call by name uses the restricted codec if it can encode the arguments; otherwise
  pickle, unless `registered_only`;
- a worker with `registered_only` decodes only calls of registered functions.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, NamedTuple

from everyorder.runtime.base.locks import load
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle, OperatorPacket, provide
from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.call import CallError, NoMatchingOverload, OperatorGone
from everyorder.runtime.errors.future import describe_type
from everyorder.runtime.errors.rpc import RpcMisuse, Undecodable, UnknownCallable
from everyorder.runtime.rpc.codec import pickling, restricted
from everyorder.runtime.rpc.codec.compiled import (
    binder_of,
    import_module_of,
    is_compiled,
    script_function,
)
from everyorder.runtime.rpc.codec.named_functions import MARK, REGISTRY, Registered
from everyorder.runtime.rpc.codec.payload import NO_REFERENCES, Packed, ReferenceCodec
from everyorder.runtime.rpc.protocol.events import Payload
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.schema.types import FutureType, TupleType, fake

OPERATOR: Final = "operator"
SCRIPT: Final = "function"
REGISTERED: Final = "registered function"
PYTHON: Final = "Python function"

# Names of the parts of a call in errors.
_PARTS = ("function", "args", "kwargs")
# The module that lists the functions of `runtime`, and the one that makes them.
_LISTING = "everyorder.runtime.operators.bindings.functions"
_CALLING = "everyorder.runtime.operators.bindings.python_bindings"

Args = tuple[Any, ...]
Kwargs = Mapping[str, Any]


class Invocation(NamedTuple):
    """A call of `function`, of a `kind`, which the other worker finds by `name`.

    `schema` is that of an operator, "" for other kinds.
    """

    kind: str
    name: str
    function: Any
    args: Args
    kwargs: Kwargs
    schema: str = ""

    def run(self) -> Any:
        """Return the result of the function; its exceptions propagate."""
        return self.function(*self.args, **self.kwargs)


@dataclass(frozen=True, slots=True)
class NamedFunction:
    """A compiled function by its full name, which is looked up when it is called."""

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the result of the function.

        Raises:
            UnknownCallable: this worker does not have the function.
        """
        return script_function(self.name)(*args, **kwargs)


def call_of(
    function: Any, args: Sequence[Any] | None = None, kwargs: Kwargs | None = None
) -> Invocation:
    """Return the call of a function, resolved to its kind and name.

    Raises:
        RpcMisuse: the function is not callable, or the arguments are not containers of
            arguments.
        CallError, NoMatchingOverload: the arguments do not match the operator, or the
            compiled function.
    """
    positional, keywords = _checked(function, args, kwargs)
    if isinstance(function, NamedFunction):
        # Only the name is known on this worker, so the arguments cannot be checked.
        return Invocation(SCRIPT, function.name, function, positional, keywords)
    if isinstance(function, Registered):
        return Invocation(
            REGISTERED, function.name, function.function, positional, keywords
        )
    name = REGISTRY.name_of(function)
    if name is not None:
        return Invocation(REGISTERED, name, function, positional, keywords)
    if isinstance(function, OperatorHandle):
        function.bind(positional, keywords)
        return _operator(function, positional, keywords)
    if isinstance(function, OperatorPacket):
        return _operator(
            _overload(function, positional, keywords), positional, keywords
        )
    if is_compiled(function):
        binder_of(function)(positional, keywords)
        return Invocation(
            SCRIPT, function.qualified_name, function, positional, keywords
        )
    public = _public(function)
    if public is not None:
        return _rephrased(public, positional, keywords)
    return Invocation(PYTHON, _name(function), function, positional, keywords)


_PICKLED = "A call of another function, by a proxy, or with values of other classes,"
# Internal functions that references call on their owner.
_FOR_REFERENCES = {
    "_type_here": "The type of a value on another worker, which proxies ask for,",
    "_invoke_here": "A method of a value on another worker, by a proxy,",
    "_backward_here": "`backward` of a value on another worker",
}


def _name(function: Any) -> str:
    name = getattr(function, "__qualname__", None)
    return name if isinstance(name, str) else type(function).__qualname__


def _description(function: Any) -> str:
    """Return the name of a function as users know it, for messages."""
    name = _name(function)
    if getattr(function, "__module__", "") == "everyorder.runtime.rpc.api.rref":
        return _FOR_REFERENCES.get(name, f"`{name}`")
    return f"`{name}`"


def _checked(function: Any, args: Any, kwargs: Any) -> tuple[Args, Kwargs]:
    if not callable(function):
        raise RpcMisuse(
            call="rpc",
            found=describe_type(function),
            wanted="a function should be callable",
        )
    # As upstream: any false value means no arguments.
    if args and not isinstance(args, tuple | list):
        raise _not_arguments("args", args, "a tuple or a list of arguments")
    if not kwargs:
        return tuple(args or ()), {}
    if not isinstance(kwargs, Mapping):
        raise _not_arguments("kwargs", kwargs, "a dictionary of arguments by name")
    for key in kwargs:
        if not isinstance(key, str):
            expected = "names as keys: keywords must be strings"
            raise _not_arguments("kwargs", key, expected)
    return tuple(args or ()), dict(kwargs)


def _not_arguments(name: str, value: Any, expected: str) -> RpcMisuse:
    return RpcMisuse(
        call="rpc", found=f"`{name}` with {describe_type(value)}", wanted=expected
    )


def _operator(handle: OperatorHandle, args: Args, kwargs: Kwargs) -> Invocation:
    text = _schema_text(handle)
    return Invocation(OPERATOR, str(handle.name), handle, args, kwargs, text)


def _overload(packet: OperatorPacket, args: Args, kwargs: Kwargs) -> OperatorHandle:
    """Return the first overload that matches the arguments.

    Raises:
        CallError: the only overload does not match.
        NoMatchingOverload: none of several overloads matches.
        OperatorGone: there is no overload.
    """
    errors: list[tuple[str, CallError]] = []
    for name in packet.overloads():
        handle: OperatorHandle = getattr(packet, name)
        try:
            handle.bind(args, kwargs)
        except CallError as error:
            errors.append((str(handle.name), error))
        else:
            return handle
    if len(errors) == 1:
        raise errors[0][1]
    if not errors:
        missing: OperatorHandle = packet.default
        return missing
    texts = tuple((name, str(error)) for name, error in errors)
    raise NoMatchingOverload(operator=str(packet).replace(".", "::", 1), attempts=texts)


def _public(function: Any) -> str | None:
    """Return the operator of a function of `runtime`; None for any other function."""
    if getattr(function, "__module__", None) != _LISTING:
        return None
    name = getattr(function, "__name__", "")
    loaded = _operators()
    if name in loaded.names and loaded.function(name) is function:
        return str(name)
    return None


class _Operators(NamedTuple):
    """Functions of the built-in operators, loaded on first use."""

    names: tuple[str, ...]
    function: Callable[[str], Any]
    handle_of: Callable[[str], OperatorHandle]
    find_handle: Callable[[str], OperatorHandle | None]
    normalize_torch_call: Callable[..., Any]


@cache
def _operators() -> _Operators:
    functions = load(_LISTING)
    handles = load("everyorder.runtime.operators.declare.handles")
    calling = load(_CALLING)
    return _Operators(
        functions.OPERATORS,
        calling.function,
        handles.handle_of,
        handles.find_handle,
        calling.normalize_torch_call,
    )


class _OperatorBinding:
    """Callable in place of an operator: binds the arguments, and returns the call."""

    def __init__(self, handle: OperatorHandle) -> None:
        self.handle = handle
        self.schema: Schema = handle.schema

    def __call__(self, *args: Any, **kwargs: Any) -> Invocation:
        self.handle.bind(args, kwargs)
        return _operator(self.handle, args, kwargs)


def _rephrased(name: str, args: Args, kwargs: Kwargs) -> Invocation:
    """Return the call of a function of `runtime`; arguments may be torch-style."""
    core = _operators()
    writes = kwargs.get("out") is not None
    binding = _OperatorBinding(core.handle_of(f"{name}_out" if writes else name))
    keywords = {**kwargs}
    if "out" in keywords and not writes and core.find_handle(f"{name}_out") is not None:
        del keywords["out"]
    try:
        return binding(*args, **keywords)
    except CallError as error:
        if keywords.get("inplace"):
            # The callee would write its copy of the tensor, and leave the local one
            # unchanged.
            raise
        rephrased: Invocation = core.normalize_torch_call(
            binding, args, keywords, error
        )
        return rephrased


def result_type(function: Any) -> str:
    """Return the type of a function's result in the schema language; "" if unknown.

    For a function marked by `async_execution`, return the type of the future's value.
    """
    later = getattr(function, MARK, None)
    schema = _schema(function if later is None else later)
    if schema is None:
        return ""
    types = tuple([fake(each.type) for each in schema.returns])
    whole = types[0] if len(types) == 1 else TupleType(types)
    if later is None:
        return str(whole)
    return str(whole.element) if isinstance(whole, FutureType) else ""


def _schema(function: Any) -> Schema | None:
    if isinstance(function, OperatorHandle):
        return function.schema
    if isinstance(function, OperatorPacket):
        return None
    if is_compiled(function):
        own: Schema = function.schema
        return own
    public = _public(function)
    if public is None:
        return None
    return _operators().handle_of(public).schema


# Encoding and decoding of calls.


def pack_call(
    call: Invocation,
    references: ReferenceCodec = NO_REFERENCES,
    *,
    registered_only: bool = False,
) -> Packed:
    """Encode a call as a payload.

    Raises:
        UnknownCallable: `registered_only`, and the function is not registered.
        Unsendable: a part cannot be sent; the error names it.
        RpcError: a reference cannot be sent.
    """
    if call.kind == PYTHON:
        if registered_only:
            raise UnknownCallable(
                code="OnlyRegistered", found=_description(call.function)
            )
        parts = call.function, call.args, call.kwargs
        return pickling.pack(parts, references, _PARTS)
    value = (call.kind, call.name, call.schema), call.args, call.kwargs
    if registered_only:
        if call.kind != REGISTERED:
            raise UnknownCallable(
                code="OnlyRegistered", found=f"The {call.kind} `{call.name}`"
            )
        return restricted.pack(value, references, _PARTS)
    packed = restricted.try_pack(value, references)
    return pickling.pack(value, references, _PARTS) if packed is None else packed


def unpack_call(
    payload: Payload,
    references: ReferenceCodec = NO_REFERENCES,
    carries: Sequence[Any] = (),
    *,
    registered_only: bool = False,
) -> Invocation:
    """Decode the call of a payload, and look up its function on this worker.

    Raises:
        UnknownCallable: `registered_only`, and the function is not registered.
        UnknownCallable, OperatorGone: this worker lacks the function, or has another
            one of that name.
        Undecodable, RpcError: the payload cannot be read; see `pickling.unpack`.
    """
    value = pickling.unpack(
        payload, references, carries, trusted=not registered_only, refused=_PICKLED
    )
    if not isinstance(value, tuple) or len(value) != len(_PARTS):
        raise _no_call()
    function, args, kwargs = value
    if not isinstance(args, tuple) or not isinstance(kwargs, dict):
        raise _no_call()
    if not isinstance(function, tuple):
        if registered_only:
            raise UnknownCallable(code="OnlyRegistered", found=_description(function))
        return Invocation(PYTHON, _name(function), function, args, kwargs)
    if len(function) != 3 or not all(type(each) is str for each in function):
        raise _no_call()
    kind, name, schema = function
    if registered_only and kind != REGISTERED:
        raise UnknownCallable(code="OnlyRegistered", found=f"The {kind} `{name}`")
    if kind == REGISTERED and not registered_only and not REGISTRY.has(name):
        # The default name begins with the module, which may register the function on
        # import.
        import_module_of(name)
    finder = _FINDERS.get(kind)
    if finder is None or not all(type(key) is str for key in kwargs):
        raise _no_call()
    return Invocation(kind, name, finder(name, schema), args, kwargs, schema)


def _no_call() -> Undecodable:
    return Undecodable(found="A call", reason="it is not a function and its arguments")


def _find_operator(name: str, schema: str) -> OperatorHandle:
    base, _, overload = name.partition(".")
    operator = OperatorName(base, overload)
    dispatcher = default_dispatcher()
    if not _is_defined(dispatcher, operator):
        provide(operator)
    if not _is_defined(dispatcher, operator):
        namespace = operator.namespace or ""
        entries = dispatcher.state.namespaces.get(namespace, {}).values()
        names = sorted({str(each.name) for each in entries if each.definitions})
        raise UnknownCallable(kind=OPERATOR, name=name, near=nearest(name, names))
    handle = OperatorHandle(dispatcher, operator)
    here = _schema_text(handle)
    if here != schema:
        raise OperatorGone(
            code="OperatorChanged", operator=name, known=schema, found=here
        )
    return handle


def _is_defined(dispatcher: Dispatcher, name: OperatorName) -> bool:
    """Return True if an operator is defined; kernels alone do not define it."""
    entry = dispatcher.state.entry(name)
    return entry is not None and bool(entry.definitions)


def _schema_text(handle: OperatorHandle) -> str:
    memo = handle.reading.memo
    text: str | None = memo.get("text")
    if text is None:
        text = memo["text"] = str(handle.schema)
    return text


_FINDERS: dict[str, Callable[[str, str], Any]] = {
    OPERATOR: _find_operator,
    SCRIPT: lambda name, _: script_function(name),
    REGISTERED: lambda name, _: REGISTRY.find(name),
}


def pack_result(
    value: Any,
    references: ReferenceCodec = NO_REFERENCES,
    *,
    registered_only: bool = False,
) -> Packed:
    """Encode the result of a call as a payload; `unpack` reads it.

    Raises:
        Unsendable: a part cannot be sent; the error names it.
        RpcError: a reference cannot be sent.
    """
    if registered_only:
        return restricted.pack(value, references, "result")
    return pickling.pack(value, references, "result")
