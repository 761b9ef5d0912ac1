"""Calls of programs: functions by their names, on other workers.

True only here: what a call of a program is before it is one of the agent's, and which
arguments are refused at the caller.

    fitted    the arguments of a call, held against the schema of the function
    called    a call, made

Rules:
- a worker is a name or a `WorkerInfo`, never a number; a timeout is a float;
- where the function is known here, its schema decides before anything is sent: what is
  missing, unknown, given twice or of another type; a number becomes a wider one, and
  what is left out is the default that the caller knows;
- where it is not, the arguments go as they are, and the other worker decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from runtime.errors.future import described
from runtime.errors.rpc import RpcMisuse, UnfitArguments
from runtime.rpc.identities import WorkerInfo
from runtime.rpc.program.surface import UNSET, Surface
from runtime.schema.binding import stored_default
from runtime.schema.excerpt import shortened
from runtime.schema.numbers import MISMATCH
from runtime.schema.schema import Schema
from runtime.script.running import taker


def fitted(
    schema: Schema, name: str, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call, by place and by name, each of its type, defaults filled.

    Raises:
        UnfitArguments: they do not fit the schema.
    """

    def refuse(argument: str, fault: str) -> UnfitArguments:
        return UnfitArguments(
            function=name, argument=argument, fault=fault, schema=str(schema)
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
        UnfitArguments: the arguments do not fit the schema.
        RpcError: the call cannot be made.
    """
    left_out: tuple[Any, ...] = ((), {}, UNSET)
    to, args, kwargs, timeout = (*given, *left_out[len(given) - 1 :])
    if not isinstance(to, str | WorkerInfo):
        raise RpcMisuse(
            call=f"rpc_{mode}" if mode != "remote" else mode,
            found=f"{described(to)} as the worker",
            wanted="the name of a worker, or its WorkerInfo",
        )
    if schema is not None:
        args, kwargs = fitted(schema, name.rpartition(".")[2], args, kwargs)
    return surface.call(mode, to, name, args, kwargs, timeout, type_)
