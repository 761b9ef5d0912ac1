"""Texts of calls and values for errors, and the check of names and counts.

Descriptions of values and calls in errors (`describe_value`, `shortened`,
`written_call`); the one rule of names and counts of a call (`call_fault`), for schemas
and for Python functions; and handwritten functions that reject a call as operators do
(`checked`).

Rules:
- the texts are short, on one line, and the same in every process: nothing depends on
  identity or memory;
- names are checked in this order: too many, unknown, twice, missing;
- the parameters of a checked function are its schema: unknown, repeated or missing
  arguments are rejected before any line of it has run.  Names of parameters in other
  libraries, `NAMES`, are accepted.

How it works: Python itself binds the call of a checked function.  Only if that fails is
the call examined: a TypeError that was raised before the function began has no frame of
it, which distinguishes it from those of the function.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, NamedTuple, TypeVar

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.call import CallError

# Characters of a value: most of a line if alone, less inside of a written call.
VALUE_WIDTH, ARGUMENT_WIDTH = 60, 24

# Torch's and NumPy's words -> the schema's, the first that it has.
NAMES = {
    "input": ("self", "indices"),
    "axis": ("dim", "dims"),
    "axes": ("dims",),
    "keepdims": ("keepdim",),
    "ddof": ("correction",),
}

F = TypeVar("F", bound=Callable[..., Any])


def describe_value(value: object) -> str:
    """Return the kind of a value: `None`, `a str`, `a list of int and str`."""
    if value is None:
        return "None"
    name = type(value).__name__
    if isinstance(value, list | tuple) and value:
        kinds = dict.fromkeys(type(element).__name__ for element in value)
        name = f"{name} of {' and '.join(kinds)}"
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def shortened(value: object, width: int = VALUE_WIDTH) -> str:
    """Return the repr of a value on one line, at most `width` characters long."""
    try:
        text = " ".join(repr(value).split())
    except Exception as error:  # an error about a value must not fail on its repr
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"
    text = re.sub(r" at 0x[0-9a-fA-F]+", "", text)
    return text if len(text) <= width else f"{text[: width - 3]}..."


def written_call(
    operator: str, args: Iterable[object], kwargs: Mapping[str, object]
) -> str:
    """Return a call as a reader would write it; a tensor is named by its class only."""
    parts = [_argument(value) for value in args]
    parts += [f"{name}={_argument(value)}" for name, value in kwargs.items()]
    return f"{operator}({', '.join(parts)})"


def _argument(value: object) -> str:
    if hasattr(value, "key_bits"):
        return f"<{type(value).__name__}>"
    if isinstance(value, list) and any(hasattr(each, "key_bits") for each in value):
        return f"[{', '.join(map(_argument, value))}]"
    return shortened(value, ARGUMENT_WIDTH)


class Parameters(NamedTuple):
    """The names of parameters, as far as they decide which calls fit.

    `positional` can be passed by place, `named` by name, and `required` have no
    default; `takes_more` accepts further values without a name, and `takes_any` any
    name.
    """

    positional: list[str]
    named: list[str]
    required: list[str]
    takes_more: bool = False
    takes_any: bool = False


class CallFault(NamedTuple):
    """The code of a `CallError`, and its fields that describe the fault."""

    code: str
    fields: Mapping[str, Any]


def call_fault(
    parameters: Parameters, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> CallFault | None:
    """Return the fault in the count and names of a call, or None if they fit."""
    positional, named, required, takes_more, takes_any = parameters
    if len(args) > len(positional) and not takes_more:
        fields = {
            "maximum": len(positional),
            "given": len(args),
            "keyword_only": tuple(name for name in named if name not in positional),
        }
        return CallFault("TooManyArguments", fields)
    filled = positional[: len(args)]
    for name in kwargs:
        if name not in named and not takes_any:
            near = nearest(name, named)
            return CallFault("UnknownArgument", {"argument": name, "near": near})
        if name in filled and name in named:
            place = filled.index(name)
            fields = {"argument": name, "position": place}
            return CallFault("DuplicateArgument", fields)
    passed = {*filled, *kwargs}
    missing = tuple(name for name in required if name not in passed)
    return CallFault("MissingArgument", {"missing": missing}) if missing else None


def checked(function: F) -> F:
    """Return `function`, which raises `CallError` for a call that does not fit."""

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except TypeError as error:
            trace = error.__traceback__
            # Raised in this frame: the function did not begin.
            if trace is None or trace.tb_next is None:
                named = renamed(kwargs, signature(function).parameters)
                if named != kwargs:
                    return call(*args, **named)
                fault = call_fault(_parameters(function), args, kwargs)
                if fault is not None:
                    facts = _facts(function, args, kwargs)
                    raise CallError(code=fault.code, **facts, **fault.fields) from None
            raise

    return call  # type: ignore[return-value]  # of the parameters of `function`


def renamed(kwargs: Mapping[str, Any], parameters: Iterable[str]) -> dict[str, Any]:
    """Rename keyword arguments to names of parameters, where `NAMES` has one.

    If a call has both names, both stay, and the call is rejected later.
    """
    names, named = {*parameters}, {}
    for name, value in kwargs.items():
        others = () if name in names else NAMES.get(name, ())
        fit = (other for other in others if other in names and other not in kwargs)
        named[next(fit, name)] = value
    return named


def _parameters(function: Callable[..., Any]) -> Parameters:
    every = signature(function).parameters.values()
    single = [each for each in every if each.kind not in (_MORE, _ANY)]
    return Parameters(
        [each.name for each in single if each.kind is not Parameter.KEYWORD_ONLY],
        [each.name for each in single if each.kind is not Parameter.POSITIONAL_ONLY],
        [each.name for each in single if each.default is Parameter.empty],
        any(each.kind is _MORE for each in every),
        any(each.kind is _ANY for each in every),
    )


def _facts(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of every call error; the schema is the written parameters."""
    name, every = function.__name__, signature(function).parameters.values()
    bare = Signature([each.replace(annotation=Parameter.empty) for each in every])
    call = written_call(name, args, kwargs)
    return {"operator": name, "call": call, "schema": f"{name}{bare}"}


_MORE, _ANY = Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD
