"""Aliasing: what a handler returned shares what the operator's schema says it shares.

True only here: `return_and_correct_aliasing`, the last line of a wrapper's handler.

    out = wrap(func(*unwrap(args), **unwrap(kwargs)))
    return return_and_correct_aliasing(func, args, kwargs, out)

A wrapper that a handler makes is a tensor of its own, also where the operator returns a
view of its argument, or the argument itself.  In three steps (the same as upstream's):

1. a result that shows an argument that is not written to gets its storage; shape and
   strides stay those of the result;
2. an operator with the tag `inplace_view` changed the shape of what is wrapped; it is
   run once more on the wrapper itself, which has no elements that could change twice;
3. results that *are* arguments that were written to become these very objects.

Rules: arguments are found by the live schema of the operator, however they were passed;
what its results share is worked out once, and kept with the reading of its definition.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from runtime.dispatch.handle import OperatorHandle
from runtime.errors.subclass import (
    UnsupportedAliases,
    WrapperOfAnotherClass,
    WrongResultCount,
)
from runtime.python_dispatch.modes import no_dispatch
from runtime.python_dispatch.wrapper_protocol import is_traceable_wrapper_subclass
from runtime.schema.schema import Schema
from runtime.tensors.arrays import claimed
from runtime.tensors.tensor import Tensor


class Aliases(NamedTuple):
    """What the results of a schema share, by places.

    `shown`: pairs of an argument that is not written to and a result that shows it.
    `written`: for each result the argument that it is; None if no result is one.
    `names`: of the arguments.
    """

    shown: tuple[tuple[int, int], ...]
    written: tuple[int, ...] | None
    names: tuple[str, ...]


def return_and_correct_aliasing(
    func: OperatorHandle,
    args: Sequence[Any],
    kwargs: Mapping[str, Any] | None,
    out: Any,
) -> Any:
    """What a handler is to return for `func(*args, **kwargs)`, made of `out`.

    Raises:
        WrapperOfAnotherClass: a wrapper's view is of another class than the wrapper.
        WrongResultCount: `out` is not what the operator returns.
        UnsupportedAliases: some results are written arguments and others are not, or an
            operator that changes the shape of its arguments changes several.
        CallError: the arguments do not fit the schema.
    """
    reading = func.reading
    schema = reading.schema
    aliases: Aliases | None = reading.memo.get("aliases")
    if aliases is None:
        aliases = reading.memo["aliases"] = aliases_of(schema)
    if not aliases.shown and aliases.written is None:
        return out
    values = func.bind(tuple(args), kwargs or {})
    for place, number in aliases.shown:
        result = _results(func, schema, out)[number]
        for each in result if isinstance(result, (list, tuple)) else (result,):
            _share(func, aliases.names[place], values[place], each)
    if "inplace_view" in func.tags:
        _reshape(func, schema, values, args, kwargs or {})
    if aliases.written is None:
        return out
    if len(schema.returns) == 1:
        return values[aliases.written[0]]
    kind = list if isinstance(out, list) else tuple
    return kind(values[place] for place in aliases.written)


def aliases_of(schema: Schema) -> Aliases:
    """What the results of a schema share.  Raises `UnsupportedAliases`."""
    names = tuple(argument.name for argument in schema.arguments)
    shown, written = [], []
    for number, result in enumerate(schema.returns):
        for place, argument in enumerate(schema.arguments):
            if argument.sets_before.isdisjoint(result.sets_before):
                continue
            if not argument.is_write:
                shown.append((place, number))
            elif result.is_write:
                written.append(place)
                break
    if not written:
        return Aliases(tuple(shown), None, names)
    if len(written) != len(schema.returns):
        raise UnsupportedAliases(
            operator=str(schema.name),
            reason="some results are arguments that were written to, and some are not",
            schema=str(schema),
        )
    return Aliases(tuple(shown), tuple(written), names)


def _results(func: OperatorHandle, schema: Schema, out: Any) -> Sequence[Any]:
    count = len(schema.returns)
    if count == 1:
        return (out,)
    if not isinstance(out, (list, tuple)) or len(out) != count:
        several = isinstance(out, (list, tuple))
        found = f"{len(out)} of them" if several else f"a {type(out).__name__}"
        raise WrongResultCount(operator=str(func), expected=count, found=found)
    return out


def _share(func: OperatorHandle, name: str, argument: Any, result: Any) -> None:
    """Put `result` on the storage of `argument`, its shape and strides as they are."""
    if not isinstance(argument, Tensor) or not isinstance(result, Tensor):
        return
    wrappers = map(is_traceable_wrapper_subclass, (argument, result))
    if any(wrappers) and type(argument) is not type(result):
        raise WrapperOfAnotherClass(
            operator=str(func),
            argument=name,
            expected=type(argument).__name__,
            found=type(result).__name__,
        )
    _, offset, strides = claimed(result)
    result._place = claimed(argument)[0], offset, strides
    result._flat = None


def _reshape(
    func: Callable[..., Any],
    schema: Schema,
    values: Sequence[Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> None:
    """Have an operator that changes the shape of its argument change the wrapper's."""
    changed = [
        value
        for argument, value in zip(schema.arguments, values, strict=False)
        if argument.is_write and value is not None
    ]
    if len(changed) != 1:
        raise UnsupportedAliases(
            operator=str(schema.name),
            reason=f"it changes the shape of {len(changed)} arguments; one can be "
            "followed",
            schema=str(schema),
        )
    with no_dispatch():
        func(*args, **kwargs)
