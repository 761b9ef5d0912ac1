"""The steps of a fused kernel: which operators fuse, and the formula of each."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple

from everyorder.runtime.errors.base import EveryorderError
from everyorder.runtime.kernels.cpu.pointwise import Applied, applied, limit
from everyorder.runtime.kernels.math.scalars import GELU, LIGHT, bounded, scaled, select
from everyorder.runtime.operators import binary, pointwise, unary
from everyorder.runtime.operators.declare.allocate_outputs import made_dtype
from everyorder.runtime.operators.declare.plan import (
    COMPLEXES,
    CallPlan,
    number_for,
)
from everyorder.runtime.operators.declare.structured import Structured
from everyorder.runtime.schema.types import TensorType
from everyorder.runtime.script.ir import Node, Value, row_of
from everyorder.runtime.script.passes import TensorMeta
from everyorder.runtime.tensors.construction import host_tensor, wrap_number
from everyorder.runtime.tensors.dtype_info import compute_dtype
from everyorder.runtime.tensors.tensor import Tensor

NUMBERS = (bool, int, float)


class RuntimeNumber(NamedTuple):
    """A number that is known when the group runs; only its type is fixed."""

    type: type[bool | int | float]


class Element(NamedTuple):
    """A number as an operand: its value, or the `Value` of it, and its dtype."""

    value: Any
    dtype: str


class FusedStep(NamedTuple):
    """One operator: a function of elements, its operands, and its result.

    Operands are values, each cast to the dtype in `compute`, or numbers. Without a
    function the result is the operand.
    """

    function: Callable[..., Any] | None
    operands: tuple[Value | Element, ...]
    compute: tuple[str, ...]
    facts: TensorMeta
    grain: int


@cache
def operators() -> Mapping[str, Structured]:
    """Return the operators that can be fused, by the kind of their nodes."""
    families = (*unary.OPERATORS, *binary.OPERATORS, *pointwise.OPERATORS)
    return {
        f"core::{each.name}": each
        for each in families
        if isinstance(each, Structured) and each.functional
    }


def step_of(node: Node, facts: Mapping[Value, Any]) -> FusedStep | None:
    """Return the step of the operator of a node, or None if it cannot be fused.

    `facts` has `TensorMeta` for tensors, and `RuntimeNumber` or a constant for other
    values.
    """
    operator, row = operators().get(node.kind), row_of(node.kind)
    if operator is None or row is None or row.schema is None:
        return None
    operands: list[Any] = []
    source: dict[int, Value] = {}
    for value, argument in zip(node.inputs, row.schema.arguments, strict=True):
        if value not in facts:
            return None
        fact = facts[value]
        if isinstance(fact, TensorMeta):
            # The compiler does not support arithmetic on these dtypes.
            if fact.dtype in COMPLEXES or compute_dtype(fact.dtype) is not fact.dtype:
                return None
            operand: Any = host_tensor(None, fact.shape, fact.dtype)
        elif isinstance(fact, RuntimeNumber):
            if argument.type is not TensorType:
                return None
            operand = wrap_number(fact.type(1))
        elif argument.type is TensorType and isinstance(fact, NUMBERS):
            operand = wrap_number(fact)
        elif argument.type is TensorType:
            return None
        else:
            operand = fact
        source[id(operand)] = value
        operands.append(operand)
    try:
        plan = operator.plan(*operands)
    except EveryorderError:
        # The operator raises the same when it runs.
        return None
    return _of_plan(operator, plan, source, facts)


def _of_plan(
    operator: Structured,
    plan: CallPlan,
    source: Mapping[int, Value],
    facts: Mapping[Value, Any],
) -> FusedStep | None:
    ((shape, dtype),) = plan.outputs  # type: ignore[misc]  # they have one result
    name = plan.kernel or operator.own
    if not isinstance(name, str) or made_dtype(dtype, plan.compute) is not dtype:
        return None
    compute = plan.compute or next(
        each.dtype for each in plan.arguments if isinstance(each, Tensor)
    )
    # The kernel receives the dtypes that it computes in.
    operands: list[Any] = []
    for at, each in enumerate(plan.arguments):
        is_cast = plan.cast is None or at in plan.cast
        if isinstance(each, Tensor) and each.number is None:
            operands.append(source[id(each)])
        elif isinstance(each, Tensor):
            value = source[id(each)]
            fact: Any = facts[value]
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
    match = find(name, compute.name, operands)
    if match is None:
        return None
    what, elements, read = match
    if what.result != dtype.name:
        return None
    return FusedStep(
        what.function, elements, read, TensorMeta(dtype, shape), what.grain
    )


_Found = tuple[Applied, tuple[Any, ...], tuple[str, ...]] | None


def _plain(name: str, dtype: str, operands: list[Any]) -> _Found:
    if not all(isinstance(each, Value | Element) for each in operands):
        return None
    match = applied(name, dtype)
    return None if match is None else (match, tuple(operands), (dtype,) * len(operands))


def _scaled(name: str, dtype: str, operands: list[Any]) -> _Found:
    *pair, factor = operands
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
    match = Applied(scaled, dtype, plain.grain)
    return match, (*pair, Element(alpha, dtype)), (dtype,) * 3


# Exponents that use another kernel.
_POWERS = {2: "square", 0.5: "sqrt", 1: "copy", -1: "reciprocal", -0.5: "rsqrt"}


def _power(name: str, dtype: str, operands: list[Any]) -> _Found:
    base, exponent = operands
    is_float = dtype.startswith("float")
    if not (isinstance(exponent, Element) and isinstance(base, Value) and is_float):
        return None
    number = exponent.value
    if isinstance(number, Value) or number not in _POWERS:
        return None
    return _plain(_POWERS[number], dtype, [base])


def _where(name: str, dtype: str, operands: list[Any]) -> _Found:
    fits = all(isinstance(each, Value | Element) for each in operands)
    if not fits or applied("copy", dtype) is None:
        return None
    match = Applied(select, dtype, LIGHT)
    return match, tuple(operands), ("bool", dtype, dtype)


def _clamp(name: str, dtype: str, operands: list[Any]) -> _Found:
    x, *bounds = operands
    ends = []
    for side, bound in zip((-1, 1), bounds, strict=True):
        if isinstance(bound, Value):
            return None
        number = None if bound is None else bound.value
        if number != number:
            return None
        # Clamping to a limit of another dtype is idempotent after conversion.
        ends.append(Element(limit(dtype, number, side).item(), dtype))
    if applied("copy", dtype) is None:
        return None
    return Applied(bounded, dtype, LIGHT), (x, *ends), (dtype,) * 3


def _gelu(name: str, dtype: str, operands: list[Any]) -> _Found:
    x, approximate = operands
    return _plain(GELU[approximate], dtype, [x])


_SPECIAL: dict[str, Callable[..., _Found]] = {
    "add": _scaled,
    "sub": _scaled,
    "pow": _power,
    "where": _where,
    "clamp": _clamp,
    "gelu": _gelu,
}
