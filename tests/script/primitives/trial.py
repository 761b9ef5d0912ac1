"""Trials: a primitive and Python itself on the same sample, each on fresh objects."""

import cmath
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everyorder import runtime
from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.errors.tensor import ArithmeticRefused, WrongOption
from everyorder.runtime.schema.enums import DType, Layout
from everyorder.runtime.schema.subtyping import Mismatch, match
from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    StrType,
    TensorType,
    Type,
)
from everyorder.runtime.schema.values import INT_END, INT_FIRST
from everyorder.runtime.script.primitives import PrimitiveRow, primitive_table, widened
from tests.coded import coded, kind_of

ResultOfOtherType = coded(RunningError, "ResultOfOtherType")

TENSORS = {f"T{n}": runtime.tensor([1.0] * (1 + n // 2)) for n in range(4)}
TENSORS["META"] = runtime.empty(1, device="meta")
NAMES: dict[str, Any] = {
    "LEAST": INT_FIRST,
    "MOST": INT_END - 1,
    "device": runtime.device,
    "inf": math.inf,
    "nan": math.nan,
    "tensor": runtime.tensor,
    **TENSORS,
    **{name: DType.named(name) for name in DType.NAMES},
}
VIEWS: tuple[type[Any], ...] = (type({}.keys()), type({}.values()), type({}.items()))


@dataclass(frozen=True)
class Outcome:
    """What came of a call: a value in canonical form, or the class of an exception."""

    value: Any = None
    error: type[BaseException] | None = None


def sample_arguments(sample: str) -> tuple[list[Any], dict[str, Any]]:
    """The arguments that a sample writes, new ones each time."""
    written = f"catch({sample})"
    args, kwargs = eval(written, {**NAMES, "catch": lambda *a, **k: (a, k)})
    return list(args), kwargs


def canonical(value: Any) -> Any:
    """A value as something that is equal exactly when values and types are."""
    if isinstance(value, DType | Layout):
        value = value.code
    if isinstance(value, VIEWS):
        value = list(value)
    if hasattr(value, "key_bits"):
        known = [name for name, each in TENSORS.items() if each is value]
        if known:
            return ("tensor", known)
        return ("tensor", str(value.dtype), repr(value.tolist()), value.requires_grad)
    if isinstance(value, list | tuple):
        return (type(value), [canonical(each) for each in value])
    if isinstance(value, dict):
        return (dict, [(canonical(k), canonical(v)) for k, v in value.items()])
    if isinstance(value, float | complex):
        return (type(value), repr(value))
    return (type(value), value)


def in_order(
    row: PrimitiveRow, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> list[Any]:
    """Every argument of the schema by position, defaults filled in."""
    formals = row.schema.arguments
    rest = [kwargs.get(each.name, each.default) for each in formals[len(args) :]]
    return [*args, *rest]


def outcome(run: Callable[[], Any]) -> Outcome:
    try:
        return Outcome(canonical(run()))
    except Exception as error:
        return Outcome(error=kind_of(error))


def ours(row: PrimitiveRow, sample: str) -> tuple[Outcome, Any]:
    """What the primitive does, and its arguments afterwards."""
    bound = in_order(row, *sample_arguments(sample))
    given = len(sample_arguments(sample)[0])
    came = outcome(lambda: row.function(*bound))
    return came, canonical(bound[:given])


def python(row: PrimitiveRow, sample: str) -> tuple[Outcome, Any]:
    """What Python does, and its arguments afterwards."""
    args, kwargs = sample_arguments(sample)
    places = {f"a{n}": value for n, value in enumerate(args)}
    keywords = {name: name for name in kwargs}
    space = {**places, **kwargs, "math": math, "cmath": cmath, "tensor": runtime.tensor}
    space |= {"device": runtime.device, "ops": runtime.ops}
    space["as_tensor"] = runtime.as_tensor
    space["is_grad_enabled"] = runtime.is_grad_enabled
    space |= {"grad": runtime.autograd.grad, "backward": runtime.autograd.backward}
    text = row.way.expression(list(places), keywords)

    def run() -> Any:
        try:
            code = compile(text, "<sample>", "eval")
        except SyntaxError:  # a statement
            exec(text, space)
            return space["a0"] if row.schema.returns else None
        return eval(code, space)

    try:
        result = run()
    except Exception as error:
        return Outcome(error=kind_of(error)), canonical([*places.values()])
    return declared(row, result), canonical([*places.values()])


_NUMBERS: dict[Type, type] = {IntType: int, FloatType: float}


def declared(row: PrimitiveRow, result: Any) -> Outcome:
    """What the primitive owes where Python has this result."""
    values = result if len(row.schema.returns) > 1 else (result,)
    for formal, value in zip(row.schema.returns, values, strict=False):
        kind = _NUMBERS.get(formal.type)
        if isinstance(formal.type, ListType) and isinstance(value, tuple):
            return Outcome(canonical(list(value)))
        if kind is int and type(value) is float:
            return Outcome(error=coded(WrongOption, "NegativeExponent"))
        if kind is float and type(value) is complex:
            return Outcome(error=ResultOfOtherType)
        if kind is float and type(value) is int:
            if float(value) != value:
                return Outcome(error=ResultOfOtherType)
            return Outcome(canonical(float(value)))
        if type(value) is int and not INT_FIRST <= value < INT_END:
            return Outcome(error=coded(ArithmeticRefused, "IntegerOverflow"))
    return Outcome(canonical(result))


_KINDS: dict[type, Type] = {
    bool: BoolType,
    complex: ComplexType,
    float: FloatType,
    int: IntType,
    str: StrType,
    type(None): NoneType_,
}


def type_of(value: Any) -> Type:
    """The type of a value of which the first element tells that of all."""
    if isinstance(value, list):
        return ListType(type_of(value[0]) if value else IntType)
    if isinstance(value, dict):
        key, each = next(iter(value.items()))
        return DictType(type_of(key), type_of(each))
    if hasattr(value, "key_bits"):
        return TensorType
    return _KINDS[type(value)]


def perform(rows: Sequence[PrimitiveRow], *values: Any) -> Any:
    """Choose by the types of the values, convert, and run."""
    choice = choose(rows, [type_of(value) for value in values])
    assert choice is not None, "no row takes these"
    converted = []
    for value, name in zip(values, choice.conversions, strict=True):
        row = None if name is None else primitive_table.by_name(name)
        converted.append(value if row is None else row.function(value))
    return choice.row.function(*in_order(choice.row, converted, {}))


@dataclass(frozen=True, slots=True)
class Choice:
    """A row, what its variables stand for, and how each operand is converted first.

    A conversion is the name of a primitive of one operand, or None.
    """

    row: PrimitiveRow
    bound: Mapping[str, Type]
    conversions: tuple[str | None, ...]


def choose(rows: Iterable[PrimitiveRow], actuals: Sequence[Type]) -> Choice | None:
    """The row that positional operands of these types mean, or None.

    Raises nothing; which rows there were is known to whoever asked.
    """
    fitting = [row for row in rows if _takes(row, len(actuals))]
    for row in fitting:
        bound = None if _loses_kind(row, actuals) else _match(row, actuals)
        if bound is not None:
            return Choice(row, bound, (None,) * len(actuals))
    for row in fitting:
        formals = [argument.type for argument in row.schema.arguments]
        pairs = list(zip(actuals, formals, strict=False))
        conversions = [widened(actual, formal) for actual, formal in pairs]
        converted = [
            formal if conversion else actual
            for (actual, formal), conversion in zip(pairs, conversions, strict=True)
        ]
        converted += actuals[len(pairs) :]
        bound = _match(row, converted)
        if bound is not None:
            rest = (None,) * (len(actuals) - len(pairs))
            return Choice(row, bound, (*conversions, *rest))
    return None


def _loses_kind(row: PrimitiveRow, actuals: Sequence[Type]) -> bool:
    """Whether a number of a known kind would become a `Scalar`."""
    pairs = zip(row.schema.arguments, actuals, strict=False)
    return any(
        formal.type is NumberType and actual is not NumberType
        for formal, actual in pairs
    )


def _takes(row: PrimitiveRow, count: int) -> bool:
    """Whether the row can be called with so many positional operands."""
    schema = row.schema
    places = [a for a in schema.arguments if not a.kwarg_only]
    required = sum(not a.has_default for a in schema.arguments)
    return required <= count and (schema.is_vararg or count <= len(places))


def _match(row: PrimitiveRow, actuals: Sequence[Type]) -> Mapping[str, Type] | None:
    formals = [argument.type for argument in row.schema.arguments][: len(actuals)]
    found = match(formals, actuals[: len(formals)])
    return None if isinstance(found, Mismatch) else found
