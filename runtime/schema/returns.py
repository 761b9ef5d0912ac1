"""Returns: from what a Python kernel returned to what its operator returns.

True only here: the form of a result.  None for an operator without returns, the value
for one return, a tuple for several.

Rules: values convert as arguments do, codes stay ints, None is an undefined tensor;
several returns come as any tuple or list of exactly that length; no number is repeated
into a sized list; a list that was written to is returned itself.  A schema that returns
`...` takes whatever comes.
"""

from collections.abc import Callable, Sequence
from typing import Any

from runtime.errors.call import KernelError
from runtime.schema.argument import Argument, type_text
from runtime.schema.excerpt import described, shortened
from runtime.schema.numbers import MISMATCH
from runtime.schema.schema import Schema
from runtime.schema.types import TensorType
from runtime.schema.values import Converter, converter, in_place

Returner = Callable[[Any], Any]


def convert_returns(schema: Schema, value: Any) -> Any:
    """What the operator returns when its kernel returned `value`.

    Raises `KernelError` for a sequence of the wrong length, and
    `KernelError` for a value that is not of its return's type.
    """
    return returner(schema)(value)


def returner(schema: Schema) -> Returner:
    """The function that converts the returns of `schema`; see `convert_returns`."""
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


def _returns_none(schema: Schema) -> Returner:
    def nothing(value: Any) -> None:
        if value is not None:
            raise _wrong(schema, "None", None, value)

    return nothing


def _returns_one(schema: Schema, turn: Converter) -> Returner:
    expected = _quoted(schema.returns[0])

    def one(value: Any) -> Any:
        converted = turn(value)
        if converted is MISMATCH:
            raise _wrong(schema, expected, None, value)
        return converted

    def tensor(value: Any) -> Any:
        try:
            value.key_bits  # noqa: B018  # asked for, not used: is it a tensor?
        except AttributeError:
            return one(value)
        return value

    return tensor if schema.returns[0].type == TensorType else one


def _returns_several(schema: Schema, turns: tuple[Converter, ...]) -> Returner:
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
    schema: Schema, expected: str, position: int | None, value: object
) -> KernelError:
    return KernelError(
        code="WrongReturnType",
        operator=str(schema.name),
        position=position,
        expected=expected,
        found=described(value),
        value=shortened(value),
        schema=str(schema),
    )
