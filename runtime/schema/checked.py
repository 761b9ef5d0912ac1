"""Checked functions: Python functions that refuse a call as operators do.

True only here: how a function that is written by hand says that a call does not fit.
Its parameters are its schema: what it does not know, has twice or lacks is refused by
the errors of `runtime.errors.call`, before anything of it has run.  What other
libraries call a parameter, `NAMES`, is taken for it.

How it works: Python itself binds the call.  Only if that fails is the call looked at: a
TypeError that was raised before the function began has no frame of it, and is told from
those of the function by that.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, TypeVar

from runtime.errors.base import nearest
from runtime.errors.call import CallError
from runtime.schema.excerpt import written_call

# Torch's and NumPy's words -> the schema's, the first that it has.
NAMES = {
    "input": ("self", "indices"),
    "axis": ("dim", "dims"),
    "axes": ("dims",),
    "keepdims": ("keepdim",),
    "ddof": ("correction",),
}

F = TypeVar("F", bound=Callable[..., Any])


def checked(function: F) -> F:
    """The function, which raises a `CallError` for a call that does not fit it."""

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
                refused = refusal(function, args, kwargs)
                if refused is not None:
                    raise refused from None
            raise

    return call  # type: ignore[return-value]  # of the parameters of `function`


def renamed(kwargs: Mapping[str, Any], known: Iterable[str]) -> dict[str, Any]:
    """Keyword arguments by the names that are known, where `NAMES` has one.

    Where both are written, both stay, for the call to be refused.
    """
    names, found = {*known}, {}
    for name, value in kwargs.items():
        others = () if name in names else NAMES.get(name, ())
        fit = (other for other in others if other in names and other not in kwargs)
        found[next(fit, name)] = value
    return found


def refusal(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> CallError | None:
    """What is wrong with a call of the function; None if it fits its parameters."""
    form = signature(function)
    name = function.__name__
    facts: dict[str, Any] = {
        "operator": name,
        "call": written_call(name, args, kwargs),
        "schema": f"{name}({', '.join(_shown(form))})",
    }
    positional = [each for each in form.parameters.values() if each.kind in _POSITIONAL]
    by_name = [each.name for each in form.parameters.values() if each.kind in _NAMED]
    kinds = {each.kind for each in form.parameters.values()}
    if len(args) > len(positional) and Parameter.VAR_POSITIONAL not in kinds:
        return CallError(
            code="TooManyArguments",
            **facts,
            maximum=len(positional),
            given=len(args),
            keyword_only=tuple(_of_kind(form, Parameter.KEYWORD_ONLY)),
        )
    filled = [each.name for each in positional[: len(args)]]
    for argument in kwargs:
        if argument not in by_name and Parameter.VAR_KEYWORD not in kinds:
            near = nearest(argument, by_name)
            return CallError(
                code="UnknownArgument", **facts, argument=argument, near=near
            )
        if argument in filled and argument in by_name:
            place = filled.index(argument)
            return CallError(
                code="DuplicateArgument", **facts, argument=argument, position=place
            )
    missing = tuple(
        each.name
        for each in form.parameters.values()
        if each.kind in (*_POSITIONAL, Parameter.KEYWORD_ONLY)
        and each.default is Parameter.empty
        and each.name not in filled
        and each.name not in kwargs
    )
    return (
        CallError(code="MissingArgument", **facts, missing=missing) if missing else None
    )


_POSITIONAL = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def _of_kind(form: Signature, kind: object) -> Iterable[str]:
    return [each.name for each in form.parameters.values() if each.kind is kind]


def _shown(form: Signature) -> list[str]:
    """The parameters as they are written, without annotations."""
    bare = [each.replace(annotation=Parameter.empty) for each in _parameters(form)]
    return str(Signature(bare))[1:-1].split(", ") if bare else []


def _parameters(form: Signature) -> Iterable[Parameter]:
    return form.parameters.values()
