"""Binding: a written call to all arguments, and a kernel's result to the operator's.

The values that a call of a schema gives to its arguments, and the fault of a call that
does not fit; and the operator's result for a value that its kernel returned.

Rules of arguments:
- the result holds every argument: passed ones converted, others at their default;
- a default is stored converted if its type accepts it, else unchanged (the language
  accepts `int x=1.5`), and such a default may also be passed; list defaults are fresh;
- surplus positional values of a schema with `...` follow the last argument unchanged;
- names are checked before values (`call_errors.call_fault`), then types;
- `python_signature` shows parameters without annotations unless requested: an operator
  that is registered as a kernel counts as not annotated, whatever its schema is.

Rules of returns:
- None for an operator without returns, the value for one return, a tuple for several,
  which a kernel returns as any tuple or list of exactly that length;
- values are converted as arguments are, enum constants stay ints, None is an undefined
  tensor; no number is repeated into a sized list; a list that was written to is
      returned
  itself;
- a schema that returns `...` accepts any result.

How it works: `binder` turns a schema into one closure, once; frequent callers of an
operator store it.  A closure is a pure function of its schema.  It converts without
checking the call; if a value did not convert, the call is bound again step by step, to
find the fault.  If all positional arguments are tensors, it only reads their
`key_bits`. Nothing is cached by schema here: equal schemas may convert differently
(`ScalarType x` equals `int x`).
"""

from collections.abc import Callable, Mapping, Sequence
from keyword import iskeyword
from operator import call
from typing import TYPE_CHECKING, Any

from everyorder.runtime.errors.call import CallError, KernelError
from everyorder.runtime.schema.call_errors import (
    Parameters,
    call_fault,
    describe_value,
    shortened,
    written_call,
)
from everyorder.runtime.schema.signature import Argument, Signature, type_text
from everyorder.runtime.schema.types import ListType, TensorType
from everyorder.runtime.schema.values import (
    MISMATCH,
    Converter,
    converter,
    defined,
    in_place,
    present,
    presenter,
    same,
    tensor_or_number,
)

if TYPE_CHECKING:
    import inspect

# Types whose values may contain an undefined tensor.
_TENSORS = (TensorType, ListType(TensorType))

Binder = Callable[[tuple[Any, ...], Mapping[str, Any]], list[Any]]


def bind(
    schema: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Return every argument of the call in schema order, converted, with defaults.

    Raises `CallError`, a TypeError.
    """
    return binder(schema)(args, kwargs)


def stored_default(argument: Argument) -> object:
    """Return the default of `argument` as on the boxed stack; a list is a new one."""
    converted = converter(argument.type, argument.size)(argument.default)
    return argument.default if converted is MISMATCH else converted


def converters_of(
    schema: Signature,
    *,
    numbers: bool = False,
    defined_only: bool = False,
    integers_only: bool = False,
) -> tuple[Converter, ...]:
    """Return the conversion of each argument.

    `numbers`: a tensor may be passed as a number.  `defined_only`: None is rejected as
    a `Tensor`, and in a `Tensor[]`.  `integers_only`: only integers are integers.
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


def presenters_of(schema: Signature) -> tuple[Converter | None, ...]:
    """Return the conversion of each argument for kernels and handlers; None: unchanged.

    A list that is written to is the caller's object for them, too.
    """
    return tuple(
        [
            None if each.is_written_container else presenter(each.type)
            for each in schema.arguments
        ]
    )


def binder(
    schema: Signature, converters: tuple[Converter, ...] | None = None
) -> Binder:
    """Return the function that binds calls to `schema`; see `bind`.

    The converters default to `converters_of(schema)`.
    """
    arguments = schema.arguments
    positional = schema.kwarg_only_start
    converters = converters or converters_of(schema)
    indices = {argument.name: index for index, argument in enumerate(arguments)}
    names = [*indices]
    required = [each.name for each in arguments if not each.has_default]
    parameters = Parameters(names[:positional], names, required, schema.is_vararg)
    by_place = converters[:positional]
    # A required argument starts as a mismatch, and stays one if it is not passed.
    start = tuple(
        stored_default(each) if each.has_default else MISMATCH for each in arguments
    )
    tail = start[positional:]
    fresh = tuple(index for index, each in enumerate(start) if isinstance(each, list))

    def bind_values(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        count = len(args)
        if count > positional:
            if not schema.is_vararg:
                return _diagnosed(schema, parameters, converters, args, kwargs)
            bound = [*map(call, by_place, args), *tail, *args[positional:]]
            count = positional
        else:
            bound = [*map(call, by_place, args), *start[count:]]
        for name, value in kwargs.items():
            index = indices.get(name, -1)
            if index < count:
                return _diagnosed(schema, parameters, converters, args, kwargs)
            bound[index] = converters[index](value)
        for value in bound:
            if value is MISMATCH:
                return _diagnosed(schema, parameters, converters, args, kwargs)
        for index in fresh:
            if bound[index] is start[index]:
                bound[index] = bound[index].copy()
        return bound

    if (
        fresh
        or schema.is_vararg
        or MISMATCH in tail
        or any(a.type != TensorType for a in arguments[:positional])
    ):
        return bind_values

    def bind_tensors(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Any]:
        if kwargs or len(args) != positional:
            return bind_values(args, kwargs)
        try:
            for value in args:
                value.key_bits  # noqa: B018  # only tensors have it
        except AttributeError:
            return bind_values(args, kwargs)
        return [*args, *tail]

    return bind_tensors


def _diagnosed(
    schema: Signature,
    parameters: Parameters,
    converters: tuple[Converter, ...],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> list[Any]:
    """Bind a call step by step, and raise the error that describes its fault.

    A default that its type does not accept may be passed all the same, and so may the
    surplus values of a schema with `...`.
    """
    fault = call_fault(parameters, args, kwargs)
    if fault is not None:
        facts = _facts(schema, args, kwargs)
        raise CallError(code=fault.code, **facts, **fault.fields)
    positional = parameters.positional
    passed = {**dict(zip(positional, args, strict=False)), **kwargs}
    bound: list[Any] = []
    for index, argument in enumerate(schema.arguments):
        if argument.name not in passed:
            bound.append(stored_default(argument))
            continue
        value = passed[argument.name]
        converted = converters[index](value)
        if converted is MISMATCH:
            if not (argument.has_default and same(value, argument.default)):
                raise CallError(
                    code="WrongArgumentType",
                    **_facts(schema, args, kwargs),
                    argument=argument.name,
                    position=index,
                    expected=type_text(argument.type, None, argument.size),
                    found=describe_value(value),
                    value=shortened(value),
                )
            # A default that its type does not accept is stored unchanged.
            converted = value
        bound.append(converted)
    return [*bound, *args[len(positional) :]]


def _facts(
    schema: Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the fields of every call error."""
    operator = str(schema.name)
    call = written_call(operator, args, kwargs)
    return {"operator": operator, "call": call, "schema": str(schema)}


def python_signature(
    schemas: Sequence[Signature], *, annotated: bool = False
) -> "inspect.Signature":
    """Return the parameters of an operator's calls; arbitrary ones unless one schema.

    With `annotated` each has its type as a text, and so has the result.
    """
    from inspect import Parameter, Signature

    if len(schemas) != 1:
        anything = {"args": Parameter.VAR_POSITIONAL, "kwargs": Parameter.VAR_KEYWORD}
        return Signature([Parameter(name, kind) for name, kind in anything.items()])
    (schema,) = schemas
    parameters = []
    for argument in schema.arguments:
        default: Any = Parameter.empty
        if argument.has_default:
            default = present(argument.type, argument.default)
        named = argument.kwarg_only
        kind = Parameter.KEYWORD_ONLY if named else Parameter.POSITIONAL_OR_KEYWORD
        name = f"{argument.name}_" if iskeyword(argument.name) else argument.name
        type_ = str(argument.type) if annotated else Parameter.empty
        parameters.append(Parameter(name, kind, default=default, annotation=type_))
    if schema.is_vararg:
        rest = Parameter("args", Parameter.VAR_POSITIONAL)
        parameters.insert(schema.kwarg_only_start, rest)
    if not annotated:
        return Signature(parameters)
    result = ", ".join(str(each.type) for each in schema.returns)
    one = len(schema.returns) == 1
    return Signature(parameters, return_annotation=result if one else f"({result})")


Returner = Callable[[Any], Any]


def returner(schema: Signature) -> Returner:
    """Return the function that converts a kernel's result to the operator's.

    It raises `KernelError` for a sequence of the wrong length, and for a value that is
    not of its return's type.
    """
    if schema.is_varret:
        return lambda value: value
    turns = tuple(map(_turn, schema.returns))
    if not turns:
        return _returns_none(schema)
    if len(turns) == 1:
        return _returns_one(schema, turns[0])
    return _returns_several(schema, turns)


def _turn(result: Argument) -> Converter:
    turn = converter(result.type)
    return in_place(turn) if result.is_written_container else turn


def _returns_none(schema: Signature) -> Returner:
    def nothing(value: Any) -> None:
        if value is not None:
            raise _wrong(schema, "None", None, value)

    return nothing


def _returns_one(schema: Signature, turn: Converter) -> Returner:
    expected = _quoted(schema.returns[0])

    def one(value: Any) -> Any:
        converted = turn(value)
        if converted is MISMATCH:
            raise _wrong(schema, expected, None, value)
        return converted

    def tensor(value: Any) -> Any:
        try:
            value.key_bits  # noqa: B018  # only tensors have it
        except AttributeError:
            return one(value)
        return value

    return tensor if schema.returns[0].type == TensorType else one


def _returns_several(schema: Signature, turns: tuple[Converter, ...]) -> Returner:
    count = len(turns)

    def several(value: Any) -> tuple[Any, ...]:
        is_tensor = hasattr(value, "key_bits")
        if is_tensor or isinstance(value, str) or not isinstance(value, Sequence):
            raise _wrong(schema, f"a sequence of {count} values", None, value)
        if len(value) != count:
            raise KernelError(
                code="WrongReturnCount",
                operator=str(schema.name),
                expected=count,
                found=len(value),
                schema=str(schema),
            )
        converted = tuple(turn(each) for turn, each in zip(turns, value, strict=True))
        for index, each in enumerate(converted):
            if each is MISMATCH:
                expected = _quoted(schema.returns[index])
                raise _wrong(schema, expected, index, value[index])
        return converted

    return several


def _quoted(result: Argument) -> str:
    return f"`{type_text(result.type, None, result.size)}`"


def _wrong(
    schema: Signature, expected: str, position: int | None, value: object
) -> KernelError:
    return KernelError(
        code="WrongReturnType",
        operator=str(schema.name),
        position=position,
        expected=expected,
        found=describe_value(value),
        value=shortened(value),
        schema=str(schema),
    )
