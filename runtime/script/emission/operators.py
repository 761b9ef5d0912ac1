"""Operators: `+`, `<`, `-x`, `in`.

A Python operator is compiled to an operator of the runtime, or to a primitive, by the
types of its operands.

Rules:
- an operand that implements the operator (`Sugared.binary`) is tried first, the left
  one before the right one, as in Python;
- if one of two operands is a tensor the operator of the runtime is used, else a
  primitive.
"""

from collections.abc import Callable, Sequence
from typing import Any

from everyorder.runtime.schema.subtyping import is_subtype
from everyorder.runtime.schema.types import (
    BoolType,
    ComplexType,
    DictType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    TensorType,
    TupleType,
)
from everyorder.runtime.script.emission.call_matching import (
    call_forms,
    call_rows,
    forms_of_operator,
)
from everyorder.runtime.script.emission.emitter import (
    Arguments,
    Emitter,
    Sugared,
)
from everyorder.runtime.script.emission.sugar import (
    SimpleValue,
    SugaredTuple,
    constant_of,
    type_of,
)
from everyorder.runtime.script.ir import Value
from everyorder.runtime.script.primitives import by_operator

# Python operator -> operator of namespace `core` for tensors.
TENSOR_OPERATORS = {
    "+": "add",
    "-": "sub",
    "*": "mul",
    "/": "div",
    "//": "floor_divide",
    "%": "remainder",
    "**": "pow",
    "@": "matmul",
    "&": "bitwise_and",
    "|": "bitwise_or",
    "^": "bitwise_xor",
    "<<": "bitwise_left_shift",
    ">>": "bitwise_right_shift",
    "==": "eq",
    "!=": "ne",
    "<": "lt",
    "<=": "le",
    ">": "gt",
    ">=": "ge",
    "-x": "neg",
    "~x": "bitwise_not",
}
# Operators with exchangeable operands; a number is moved to the right.
COMMUTATIVE = frozenset({"+", "*", "&", "|", "^", "==", "!="})
_MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_NUMBERS = (BoolType, IntType, FloatType, ComplexType, NumberType)


def binary(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit `left symbol right`."""
    result = left.binary(e, symbol, right, False)
    if result is None:
        result = right.binary(e, symbol, left, True)
    if result is not None:
        return result
    kinds = type_of(left), type_of(right)
    if TensorType in kinds and symbol in TENSOR_OPERATORS:
        return _tensors(e, symbol, left, right)
    special = _TUPLES.get(symbol)
    if special is not None:
        combined = special(e, symbol, left, right)
        if combined is not None:
            return combined
    if symbol == "**" and kinds == (IntType, IntType):
        is_known, exponent = constant_of(right)
        if is_known and exponent < 0:
            # A negative exponent results in a fraction; other powers of ints are ints.
            left = SimpleValue(e.operator("script::float.int", left.value(e)))
    rows = [each for each in by_operator(symbol) if len(each.schema.arguments) == 2]
    return call_rows(e, f"`{symbol}`", rows, left, right)


def _tensors(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    if type_of(left) is not TensorType and symbol in COMMUTATIVE:
        left, right = right, left
    elif type_of(left) is not TensorType and symbol in _MIRRORED:
        left, right, symbol = right, left, _MIRRORED[symbol]
    forms = [
        each
        for each in forms_of_operator(f"core::{TENSOR_OPERATORS[symbol]}")
        if each.schema.overload != "out"
    ]
    return call_forms(e, f"`{symbol}`", forms, Arguments((left, right)))


def in_place(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit `left symbol= right`; the caller assigns the result."""
    result = left.binary(e, f"{symbol}=", right, False)
    if result is not None:
        return result
    if type_of(left) is TensorType and symbol in TENSOR_OPERATORS:
        forms = forms_of_operator(f"core::{TENSOR_OPERATORS[symbol]}_")
        if forms:
            return call_forms(e, f"`{symbol}=`", forms, Arguments((left, right)))
    kind = type_of(left)
    if isinstance(kind, ListType | DictType):
        rows = by_operator(f"{symbol}=")
        if rows:
            return call_rows(e, f"`{symbol}=`", rows, left, right)
    return binary(e, symbol, left, right)


def unary(e: Emitter, symbol: str, operand: Sugared) -> Sugared:
    """Emit `symbol operand`; `-` and `~` of a bool are those of an int."""
    result = operand.binary(e, f"{symbol}x", operand, False)
    if result is not None:
        return result
    callee = f"`{symbol}` of one"
    if type_of(operand) is not TensorType:
        return call_rows(e, callee, by_operator(f"{symbol}x"), operand)
    forms = forms_of_operator(f"core::{TENSOR_OPERATORS[f'{symbol}x']}")
    return call_forms(e, callee, forms, Arguments((operand,)))


def _concatenated(
    e: Emitter, symbol: str, left: Sugared, right: Sugared
) -> Sugared | None:
    """Emit `+` of two tuples."""
    if not (_is_tuple(left) and _is_tuple(right)):
        return None
    return SugaredTuple([*_elements(e, left), *_elements(e, right)])


def _compared(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared | None:
    """Emit `==` and `!=` of two tuples, element by element; of None, by its type."""
    kinds = type_of(left), type_of(right)
    if _is_tuple(left) and _is_tuple(right):
        first, second = _elements(e, left), _elements(e, right)
        if len(first) != len(second):
            return SimpleValue(e.constant(symbol == "!="))
        return SimpleValue(_all_equal(e, symbol, list(zip(first, second, strict=True))))
    plain = (IntType, FloatType, BoolType, ComplexType, StrType)
    for one, other in (kinds, kinds[::-1]):
        element = other.element if isinstance(other, OptionalType) else None
        of_python = element in plain or isinstance(element, ListType | DictType)
        if one is NoneType_ and of_python:
            return _identical(e, "is" if symbol == "==" else "is not", left, right)
    if NoneType_ in kinds and not any(isinstance(k, OptionalType) for k in kinds):
        if TensorType in kinds or None in kinds:
            return None
        same = kinds[0] is kinds[1]
        return SimpleValue(e.constant(same is (symbol == "==")))
    return None


def _all_equal(e: Emitter, symbol: str, pairs: list[tuple[Sugared, Sugared]]) -> Value:
    """Return the conjunction of pairwise equality, or its negation."""
    equal = symbol == "=="
    if not pairs:
        return e.constant(equal)
    first = e.boolean(binary(e, symbol, *pairs[0]).truth(e))
    if len(pairs) == 1:
        return first

    def rest() -> Value:
        return _all_equal(e, symbol, pairs[1:])

    if equal:
        return e.if_else(first, rest, lambda: False)
    return e.if_else(first, lambda: True, rest)


def _is_tuple(sugared: Sugared) -> bool:
    return isinstance(sugared, SugaredTuple) or isinstance(type_of(sugared), TupleType)


def _elements(e: Emitter, whole: Sugared) -> Sequence[Sugared]:
    elements = whole.elements(e)
    assert elements is not None, "tuples have elements"
    return elements


_TUPLES: dict[str, Callable[[Emitter, str, Sugared, Sugared], Sugared | None]] = {
    "+": _concatenated,
    "==": _compared,
    "!=": _compared,
}


def compare(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    """Emit a comparison, `in` or `is`."""
    if symbol in ("in", "not in"):
        return _contains(e, symbol, left, right)
    if symbol in ("is", "is not"):
        return _identical(e, symbol, left, right)
    return binary(e, symbol, left, right)


def _identical(e: Emitter, symbol: str, left: Sugared, right: Sugared) -> Sugared:
    if not (isinstance(left, SimpleValue) or isinstance(right, SimpleValue)):
        same = left is right or getattr(left, "python", left) is getattr(
            right, "python", right
        )
        return SimpleValue(e.constant(same is (symbol == "is")))
    for one, other in ((left, right), (right, left)):
        if type_of(one) is NoneType_:
            kind = type_of(other)
            if kind is NoneType_ or kind is None or not _may_be_none(kind):
                is_none = kind is NoneType_
                return SimpleValue(e.constant(is_none is (symbol == "is")))
    return call_rows(e, f"`{symbol}`", by_operator(symbol), left, right)


def _may_be_none(kind: Any) -> bool:
    return is_subtype(NoneType_, kind)


def _contains(e: Emitter, symbol: str, item: Sugared, within: Sugared) -> Sugared:
    contained = within.binary(e, "in", item, True)
    if contained is None:
        if _is_tuple(within):
            contained = _in_tuple(e, item, within)
        else:
            contained = call_rows(e, "`in`", by_operator("in"), within, item)
    return unary(e, "not ", contained) if symbol == "not in" else contained


def _in_tuple(e: Emitter, item: Sugared, within: Sugared) -> Sugared:
    """Return True in the graph if an element is the item, or equal to it."""
    elements = _elements(e, within)
    value = SimpleValue(item.value(e))

    def test(place: int) -> Value:
        if place == len(elements):
            return e.constant(False)
        first = e.boolean(binary(e, "==", elements[place], value).truth(e))
        if place == len(elements) - 1:
            return first
        return e.if_else(first, lambda: True, lambda: test(place + 1))

    return SimpleValue(test(0))
