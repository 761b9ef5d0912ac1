"""Pointwise operators: what one of them computes of each element, as a loop may ask.

A `Step` says of a node that it can be part of a fused kernel, and as what.

Rules:
- operators of the families `unary`, `binary`, `pointwise` that make a new tensor; what
  they compute, in which dtype, and which kernel runs, is decided by their own plans on
  tensors without elements, and never a second time here;
- the functions of elements are those of the eager kernels
  (`runtime.kernels.math.scalars`), so that the bits are the same;
- 16-bit floats are computed in 32 bits and rounded after each operator: not here; nor
  complex numbers, nor what looks at all elements first (integers that divide), nor what
  NumPy computes;
- a number that is known only when the group runs is converted then; it may be an
  operand of arithmetic and comparisons, whose plans ask for its type alone.
"""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from runtime.errors.base import EveryorderError
from runtime.kernels.cpu.pointwise import Applied, applied, limit
from runtime.kernels.math.scalars import GELU, LIGHT, bounded, scaled, select
from runtime.operators import binary, pointwise, unary
from runtime.operators.plan import COMPLEXES, Plan, number_for
from runtime.operators.produce import made_dtype
from runtime.operators.structured import Structured
from runtime.schema.types import TensorType
from runtime.script.ir import Node, Value, row_of
from runtime.script.passes import Facts
from runtime.tensors.elements import compute_dtype
from runtime.tensors.making import host_tensor, wrap_number
from runtime.tensors.tensor import Tensor

Number = bool | int | float
NUMBERS = (bool, int, float)


class Later(NamedTuple):
    """A number that is known when the group runs; now its type."""

    type: type[bool | int | float]


class Element(NamedTuple):
    """A number as an operand: of what, and in which dtype; `value` may be a `Value`."""

    value: Any
    dtype: str


class Step(NamedTuple):
    """One operator: a function of elements, its operands, and what it gives.

    Operands are values, each cast to `compute`, or numbers.  No function: the operand.
    """

    function: Callable[..., Any] | None
    operands: tuple[Value | Element, ...]
    compute: tuple[str, ...]
    facts: Facts
    grain: int


@cache
def operators() -> Mapping[str, Structured]:
    """The operators that can be fused, by the kind of their nodes."""
    families = (*unary.OPERATORS, *binary.OPERATORS, *pointwise.OPERATORS)
    return {
        f"core::{each.name}": each
        for each in families
        if isinstance(each, Structured) and each.functional
    }


def step_of(node: Node, known: Mapping[Value, Any]) -> Step | None:
    """What the operator of a node computes, or None if it cannot be fused.

    `known` has `Facts` of tensors, `Later` or a constant of anything else.
    """
    operator, row = operators().get(node.kind), row_of(node.kind)
    if operator is None or row is None or row.schema is None:
        return None
    given: list[Any] = []
    source: dict[int, Value] = {}
    for value, argument in zip(node.inputs, row.schema.arguments, strict=True):
        if value not in known:
            return None
        fact = known[value]
        if isinstance(fact, Facts):
            # The loop would read what the compiler has no arithmetic for.
            if fact.dtype in COMPLEXES or compute_dtype(fact.dtype) is not fact.dtype:
                return None
            made: Any = host_tensor(None, fact.shape, fact.dtype)
        elif isinstance(fact, Later):
            if argument.type is not TensorType:
                return None
            one: Any = fact.type(1)
            made = wrap_number(one)
        elif argument.type is TensorType and isinstance(fact, NUMBERS):
            made = wrap_number(fact)
        elif argument.type is TensorType:
            return None
        else:
            made = fact
        source[id(made)] = value
        given.append(made)
    try:
        plan = operator.plan(*given)
    except EveryorderError:
        # Whoever runs it raises the same.
        return None
    return _of_plan(operator, plan, source, known)


def _of_plan(
    operator: Structured,
    plan: Plan,
    source: Mapping[int, Value],
    known: Mapping[Value, Any],
) -> Step | None:
    ((shape, dtype),) = plan.outputs  # type: ignore[misc]  # they have one result
    name = plan.kernel or operator.own
    if not isinstance(name, str) or made_dtype(dtype, plan.compute) is not dtype:
        return None
    compute = plan.compute or next(
        each.dtype for each in plan.arguments if isinstance(each, Tensor)
    )
    # The kernel sees dtypes that it computes in.
    operands: list[Any] = []
    for at, each in enumerate(plan.arguments):
        is_cast = plan.cast is None or at in plan.cast
        if isinstance(each, Tensor) and each.number is None:
            operands.append(source[id(each)])
        elif isinstance(each, Tensor):
            value = source[id(each)]
            fact: Any = known[value]
            number: Any = value
            if isinstance(fact, NUMBERS):
                number = number_for(fact, compute)
            operands.append(Element(number, compute.name))
        elif each.__class__ in NUMBERS and is_cast and plan.compute is not None:
            operands.append(Element(number_for(each, compute), compute.name))
        elif each.__class__ in NUMBERS:
            operands.append(Element(each, compute.name))
        else:
            operands.append(each)
    if not any(isinstance(each, Value) for each in operands):
        return None
    find: Callable[..., _Found] = _SPECIAL.get(name, _plain)
    found = find(name, compute.name, operands)
    if found is None:
        return None
    what, taken, read = found
    if what.result != dtype.name:
        return None
    return Step(what.function, taken, read, Facts(dtype, shape), what.grain)


# What kernels are more than a function of their operands.

_Found = tuple[Applied, tuple[Any, ...], tuple[str, ...]] | None


def _plain(name: str, dtype: str, given: list[Any]) -> _Found:
    if not all(isinstance(each, Value | Element) for each in given):
        return None
    found = applied(name, dtype)
    return None if found is None else (found, tuple(given), (dtype,) * len(given))


def _scaled(name: str, dtype: str, given: list[Any]) -> _Found:
    *pair, factor = given
    alpha = factor.value
    plain = applied(name, dtype)
    if plain is None:
        return None
    if alpha == 1:
        return plain, tuple(pair), (dtype, dtype)
    alpha = -alpha if name == "sub" else alpha
    if isinstance(pair[1], Element):
        if isinstance(pair[1].value, Value):
            return None
        product = Element(pair[1].value * alpha, dtype)
        return _plain("add", dtype, [pair[0], product])
    found = Applied(scaled, dtype, plain.grain)
    return found, (*pair, Element(alpha, dtype)), (dtype,) * 3


# Exponents that are another kernel.
_POWERS = {2: "square", 0.5: "sqrt", 1: "copy", -1: "reciprocal", -0.5: "rsqrt"}


def _power(name: str, dtype: str, given: list[Any]) -> _Found:
    base, exponent = given
    is_float = dtype.startswith("float")
    if not (isinstance(exponent, Element) and isinstance(base, Value) and is_float):
        return None
    number = exponent.value
    if isinstance(number, Value) or number not in _POWERS:
        return None
    return _plain(_POWERS[number], dtype, [base])


def _where(name: str, dtype: str, given: list[Any]) -> _Found:
    fits = all(isinstance(each, Value | Element) for each in given)
    if not fits or applied("copy", dtype) is None:
        return None
    found = Applied(select, dtype, LIGHT)
    return found, tuple(given), ("bool", dtype, dtype)


def _clamp(name: str, dtype: str, given: list[Any]) -> _Found:
    x, *bounds = given
    ends = []
    for side, bound in zip((-1, 1), bounds, strict=True):
        if isinstance(bound, Value):
            return None
        number = None if bound is None else bound.value
        if number != number:
            return None
        # Of another number than it was, once more, it is the same.
        ends.append(Element(limit(dtype, number, side).item(), dtype))
    if applied("copy", dtype) is None:
        return None
    return Applied(bounded, dtype, LIGHT), (x, *ends), (dtype,) * 3


def _gelu(name: str, dtype: str, given: list[Any]) -> _Found:
    x, approximate = given
    return _plain(GELU[approximate], dtype, [x])


_SPECIAL: dict[str, Callable[..., _Found]] = {
    "add": _scaled,
    "sub": _scaled,
    "pow": _power,
    "where": _where,
    "clamp": _clamp,
    "gelu": _gelu,
}
