"""Binding: from a call as written to every argument in schema order.

True only here: which call fits a schema, and what is wrong with one that does not.

Rules:
- the result always holds every argument: given ones converted, others at their default;
- a default is held converted where its type takes it, else as it stands (the language
  accepts `int x=1.5`), and such a default may also be given; list defaults come fresh;
- surplus positional values of a schema with `...` go behind the last argument as given;
- names are checked before values: too many, unknown, twice, missing, then types.

How it works: `binder` turns a schema into one closure, once; whoever calls an operator
often keeps it.  A closure is a pure function of its schema.  It converts and hopes; if
anything is left unconverted, the call is looked at again step by step.  Where all
positional arguments are tensors, it only touches their `key_bits`.  Nothing is cached
by schema here: equal schemas may convert differently (`ScalarType x` equals `int x`).
"""

from collections.abc import Callable, Iterable, Mapping
from operator import call
from typing import TYPE_CHECKING, Any

from runtime.errors.base import nearest
from runtime.errors.call import CallError
from runtime.schema.argument import Argument, type_text
from runtime.schema.excerpt import described, shortened, written_call
from runtime.schema.numbers import MISMATCH
from runtime.schema.types import ListType, TensorType
from runtime.schema.values import (
    Converter,
    converter,
    defined,
    in_place,
    presenter,
    same,
    tensor_or_number,
)

if TYPE_CHECKING:
    from runtime.schema.schema import Schema

# What may hold an undefined tensor without saying so.
_TENSORS = (TensorType, ListType(TensorType))

Binder = Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]]


def bind(
    schema: "Schema", args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Every argument of the call in schema order, converted, defaults filled in.

    Raises `CallError`, a TypeError.
    """
    return binder(schema)(args, kwargs)


def stored_default(argument: Argument) -> object:
    """The default of `argument` as it lies on the stack; a list is a new one."""
    converted = converter(argument.type, argument.size)(argument.default)
    return argument.default if converted is MISMATCH else converted


def converters_of(
    schema: "Schema",
    *,
    numbers: bool = False,
    defined_only: bool = False,
    integers_only: bool = False,
) -> tuple[Converter, ...]:
    """The conversion of each argument.

    `numbers`: a tensor may be given as a number.  `defined_only`: None is no `Tensor`,
    and no element of a `Tensor[]`.  `integers_only`: a bool is no integer.
    """
    turns = []
    for each in schema.arguments:
        turn = converter(each.type, each.size, integers_only)
        if numbers and each.type == TensorType:
            turn = tensor_or_number
        if defined_only and each.type in _TENSORS and not each.has_default:
            turn = defined(turn)
        if each.is_written_container:
            turn = in_place(turn)
        turns.append(turn)
    return tuple(turns)


def presenters_of(schema: "Schema") -> tuple[Converter | None, ...]:
    """How kernels and handlers see each argument; None: as it lies on the stack.

    A list that is written to is the caller's own for them, too.
    """
    return tuple(
        [
            None if each.is_written_container else presenter(each.type)
            for each in schema.arguments
        ]
    )


def binder(schema: "Schema", converters: tuple[Converter, ...] | None = None) -> Binder:
    """The function that binds calls to `schema`; see `bind`.

    The converters are those of `converters_of`, by the schema alone if none are given.
    """
    arguments = schema.arguments
    positional = schema.kwarg_only_start
    converters = converters or converters_of(schema)
    indices = {argument.name: index for index, argument in enumerate(arguments)}
    # A required argument starts as a mismatch, and stays one if it is not given.
    start = tuple(
        stored_default(each) if each.has_default else MISMATCH for each in arguments
    )
    fresh = tuple(index for index, each in enumerate(start) if isinstance(each, list))

    def bind_values(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        given = len(args)
        if given > positional:
            return _diagnosed(schema, converters, args, kwargs)
        bound: list[Any] = [*map(call, converters, args), *start[given:]]
        for name, value in kwargs.items():
            index = indices.get(name, -1)
            if index < given:
                return _diagnosed(schema, converters, args, kwargs)
            bound[index] = converters[index](value)
        for value in bound:
            if value is MISMATCH:
                return _diagnosed(schema, converters, args, kwargs)
        for index in fresh:
            if bound[index] is start[index]:
                bound[index] = bound[index].copy()
        return bound

    tail = start[positional:]
    if (
        fresh
        or MISMATCH in tail
        or any(a.type != TensorType for a in arguments[:positional])
    ):
        return bind_values

    def bind_tensors(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        if kwargs or len(args) != positional:
            return bind_values(args, kwargs)
        try:
            for value in args:
                value.key_bits  # noqa: B018  # asked for, not used: is it a tensor?
        except AttributeError:
            return bind_values(args, kwargs)
        return [*args, *tail]

    return bind_tensors


def _diagnosed(
    schema: "Schema",
    converters: tuple[Converter, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> list[Any]:
    """Bind a call step by step, to raise the error that says what is wrong with it.

    Two kinds of call are right all the same: surplus values of a schema with `...`, and
    a value that is the default although its type does not take it.
    """
    positional = schema.kwarg_only_start
    if len(args) > positional and not schema.is_vararg:
        raise CallError(
            code="TooManyArguments",
            **_call(schema, args, kwargs),
            maximum=positional,
            given=len(args),
            keyword_only=tuple(a.name for a in schema.arguments[positional:]),
        )
    given = _by_index(schema, args, kwargs)
    missing = tuple(
        argument.name
        for index, argument in enumerate(schema.arguments)
        if index not in given and not argument.has_default
    )
    if missing:
        raise CallError(
            code="MissingArgument", **_call(schema, args, kwargs), missing=missing
        )
    bound: list[Any] = []
    for index, argument in enumerate(schema.arguments):
        if index not in given:
            bound.append(stored_default(argument))
            continue
        value = _value(argument, converters[index], given[index])
        if value is MISMATCH:
            raise CallError(
                code="WrongArgumentType",
                **_call(schema, args, kwargs),
                argument=argument.name,
                position=index,
                expected=type_text(argument.type, None, argument.size),
                found=described(given[index]),
                value=shortened(given[index]),
            )
        bound.append(value)
    return [*bound, *args[positional:]]


def _by_index(
    schema: "Schema", args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[int, Any]:
    """The given values by argument index, names resolved."""
    given = dict(enumerate(args[: schema.kwarg_only_start]))
    indices = {argument.name: i for i, argument in enumerate(schema.arguments)}
    for name, value in kwargs.items():
        if name not in indices:
            raise CallError(
                code="UnknownArgument",
                **_call(schema, args, kwargs),
                argument=name,
                near=nearest(name, list(indices)),
            )
        index = indices[name]
        if index in given:
            raise CallError(
                code="DuplicateArgument",
                **_call(schema, args, kwargs),
                argument=name,
                position=index,
            )
        given[index] = value
    return given


def _value(argument: Argument, turn: Converter, value: object) -> object:
    """The value converted; a default that its type does not take is taken as it is."""
    converted = turn(value)
    default = argument.has_default and same(value, argument.default)
    return value if converted is MISMATCH and default else converted


def _call(
    schema: "Schema", args: Iterable[object], kwargs: Mapping[str, object]
) -> dict[str, Any]:
    operator = str(schema.name)
    text = written_call(operator, args, kwargs)
    return {"operator": operator, "call": text, "schema": str(schema)}
