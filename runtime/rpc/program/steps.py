"""Remote calls when a program runs: what is checked before them, and of their results.

    fitted    the arguments of a call, held against the schema of the function
    called    a call, made
    makers    kind of node -> its function

Rules of arguments:
- a worker is a name or a `WorkerInfo`, never a number; a timeout is a float;
- where the function is known here, its schema decides before anything is sent: what is
  missing, unknown, given twice or of another type; a number becomes a wider one, and
  what is left out is the default that the caller knows;
- where it is not, the arguments go as they are, and the other worker decides.

Rules of results:
- what comes back from another worker is held against the type that the program says: a
  future when it is waited for, a reference when it is asked for its value;
- a reference whose type is known is one of that type, and of those that it fits into;
  of one whose type nobody has told, or only knows where the value lies, the value is
  looked at when it comes; a module is of the interface that its reference was given;
- an exception from another worker is raised as it comes, with the frames of the program
  that asked;
- a cast may lie: what a program took for a reference, or a worker, is asked for its
  class before it is asked for anything else.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from runtime.errors.future import described
from runtime.errors.rpc import RpcMisuse
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.kinds import ASYNC, METHODS, REMOTE, SYNC, tests
from runtime.rpc.program.plug_in import UNSET, Surface
from runtime.schema.binding import stored_default
from runtime.schema.calls import shortened
from runtime.schema.schema import Schema
from runtime.schema.types import AnyType, FutureType, RRefType, Type
from runtime.schema.values import MISMATCH
from runtime.script.ir import Node
from runtime.script.program import SHARED_PROGRAM
from runtime.script.running import checked, register_step, register_test, taker


def fitted(
    schema: Schema, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, by place and by name, each of its type, defaults filled.

    Raises:
        RpcMisuse: they do not fit the schema.
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
        taken = taker(each.type)(value)
        if taken is MISMATCH:
            found = f"{described(value)}: {shortened(value)}"
            raise refuse(word, f"Argument '{word}' takes {each.type}, and is {found}")
        if place < start:
            positional.append(taken)
        else:
            named[word] = taken
    for word in left:
        raise refuse(word, f"Unknown keyword argument '{word}' of `{name}`")
    return tuple(positional), named


def called(
    surface: Surface,
    mode: str,
    name: str,
    schema: Schema | None,
    given: Sequence[Any],
    type_: str,
) -> Any:
    """A call: the worker, then arguments by place, by name, and the timeout, if any.

    Raises:
        RpcMisuse: the worker, or the timeout, is none.
        RpcMisuse: the arguments do not fit the schema.
        RpcError: the call cannot be made.
    """
    left_out: tuple[Any, ...] = ((), {}, UNSET)
    to, args, kwargs, timeout = (*given, *left_out[len(given) - 1 :])
    if not isinstance(to, str | WorkerInfo):
        raise RpcMisuse(
            code="RpcMisuse",
            call=f"rpc_{mode}" if mode != "remote" else mode,
            found=f"{described(to)} as the worker",
            wanted="the name of a worker, or its WorkerInfo",
        )
    if schema is not None:
        args, kwargs = fitted(schema, name.rpartition(".")[2], args, kwargs)
    return surface.call(mode, to, name, args, kwargs, timeout, type_)


Function = Callable[..., Any]
Maker = Callable[[Node], Function]

_MODES = {ASYNC: "async", SYNC: "sync", REMOTE: "remote"}


def installed(surface: Surface) -> Iterable[Callable[[], None]]:
    """Let nodes for remote calls do what they do; gives what takes that back."""
    for kind, maker in makers(surface).items():
        yield register_step(kind, maker)
    for of, make in tests(surface).items():
        yield register_test(of, make)


def makers(surface: Surface) -> Mapping[str, Maker]:
    """Kind -> what makes the function of a node."""

    def call(node: Node) -> Function:
        return _call(node, surface)

    return {
        **dict.fromkeys(_MODES, call),
        "prim::worker_info": _worker,
        **{
            f"prim::rref_{name}": (_value if gives is None else _asked)(
                name, surface.rref
            )
            for name, gives in METHODS.items()
        },
    }


def _element(given: Type) -> Type:
    if isinstance(given, FutureType | RRefType):
        return given.element
    return given


def _call(node: Node, surface: Surface) -> Function:
    mode = _MODES[node.kind]
    known = node.attributes.get("function")
    type_ = node.output.type
    of = _element(type_)
    # Of a function that is known by its name only, nothing is.
    text = "" if of is AnyType else str(of)

    def call(to: Any, name: str, *rest: Any) -> Any:
        function = known
        if function is None:
            function = SHARED_PROGRAM.functions.get(name)
        schema = None if function is None else function.schema
        made = called(surface, mode, name, schema, (to, *rest), text)
        if mode != "sync":
            return made
        return checked(made, of, f"`{name}` of another worker")

    return call


def _value(name: str, kind: type) -> Maker:
    """The value of a reference, which is of the type that the program says."""

    def maker(node: Node) -> Function:
        of, given = node.output.type, node.inputs[0].type

        def ask(rref: Any, *timeout: float) -> Any:
            # Its method is called, whatever a program took for a reference.
            if not isinstance(rref, kind):
                checked(rref, given, "A program")
            return checked(getattr(rref, name)(*timeout), of, "A reference")

        return ask

    return maker


def _asked(name: str, kind: type) -> Maker:
    def maker(node: Node) -> Function:
        given = node.inputs[0].type

        def ask(rref: Any) -> Any:
            if not isinstance(rref, kind):
                checked(rref, given, "A program")
            return getattr(rref, name)()

        return ask

    return maker


def _worker(node: Node) -> Function:
    name, given = node.attributes["name"], node.inputs[0].type

    def ask(worker: Any) -> Any:
        if not isinstance(worker, WorkerInfo):
            checked(worker, given, "A program")
        return getattr(worker, name)

    return ask
