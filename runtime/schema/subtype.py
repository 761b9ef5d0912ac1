"""When a value of one type may stand where another type is asked for.

True only here: the order between types.  Both sides are compared as they look on the
boxed stack, so `SymInt` and `int` are one.
"""

from runtime.schema.types import (
    AnyClassType,
    AnyType,
    AwaitType,
    ClassType,
    ComplexType,
    FloatType,
    FutureType,
    IntType,
    NoneType_,
    NumberType,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    UnionType,
    fake,
)

_NUMBERS = frozenset({IntType, FloatType, ComplexType})


def is_subtype(left: Type, right: Type) -> bool:
    """Whether every value of `left` is a value of `right`.

    Lists and dictionaries can be written to, so they are equal or unrelated; tuples,
    futures and references follow their elements.
    """
    return _is_subtype(fake(left), fake(right))


def _is_subtype(left: Type, right: Type) -> bool:
    if left is right or right is AnyType:
        return True
    if isinstance(left, UnionType):
        return all(_is_subtype(member, right) for member in left.members)
    if isinstance(left, OptionalType):
        return _is_subtype(NoneType_, right) and _is_subtype(left.element, right)
    if isinstance(right, UnionType):
        return any(_is_subtype(left, member) for member in right.members)
    if isinstance(right, OptionalType):
        return left is NoneType_ or _is_subtype(left, right.element)
    if right is NumberType:
        return left in _NUMBERS
    if right is AnyClassType:
        return isinstance(left, ClassType)
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        return len(left.elements) == len(right.elements) and all(
            map(_is_subtype, left.elements, right.elements)
        )
    for wrapper in (FutureType, AwaitType, RRefType):
        if isinstance(left, wrapper) and isinstance(right, wrapper):
            return _is_subtype(left.element, right.element)
    return False
