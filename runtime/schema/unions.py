"""Unions and optionals in their one normal form.

True only here: which members a union keeps, and in what order.

Rules:
- what may be None is an optional, outermost: no union has None for a member, nothing is
  optional twice, and None itself is not optional;
- unions inside of unions are flattened, and a member of which another is a supertype
  is dropped; int with float and complex is every number;
- a single member is that type itself;
- the order is fixed, so that equal unions are one object and print alike.
"""

from collections.abc import Iterable

from runtime.schema.subtype import is_subtype
from runtime.schema.types import (
    AnyEnumType,
    AnyType,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FutureType,
    GeneratorType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    QuantizerType,
    RRefType,
    StorageType,
    StreamType,
    StrType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)

# How the members of a union are ordered; source: the order of kinds upstream, which
# its printed unions follow.  What is missing here sorts behind, by its text.
_ORDER: tuple[type[Type] | Type, ...] = (
    AnyType,
    AnyEnumType,
    TensorType,
    StorageType,
    TupleType,
    ListType,
    DictType,
    NumberType,
    FloatType,
    ComplexType,
    FutureType,
    AwaitType,
    RRefType,
    IntType,
    StrType,
    GeneratorType,
    QuantizerType,
    BoolType,
    TypeVariable,
    DeviceType,
    StreamType,
    ClassType,
)
# Three members that together are every number.
_ALL_NUMBERS = {IntType, FloatType, ComplexType}


def optional(element: Type) -> Type:
    """`element?`, where None is not yet a value of `element`."""
    if isinstance(element, UnionType):
        element = union(element.members)
    if element is NoneType_ or isinstance(element, OptionalType):
        return element
    return OptionalType(element)


def union(members: Iterable[Type]) -> Type:
    """The type whose values are those of all `members`, at least one."""
    flat = set(_flattened(members))
    if flat >= _ALL_NUMBERS:
        flat.add(NumberType)
    values = sorted(flat - {NoneType_}, key=_rank)
    # Of two that are each other's subtypes the first stays.
    kept = [
        each
        for place, each in enumerate(values)
        if not any(
            is_subtype(each, other) and (index < place or not is_subtype(other, each))
            for index, other in enumerate(values)
            if index != place
        )
    ]
    if not kept:
        return NoneType_
    whole = kept[0] if len(kept) == 1 else UnionType(tuple(kept))
    return OptionalType(whole) if NoneType_ in flat else whole


def _flattened(members: Iterable[Type]) -> Iterable[Type]:
    for member in members:
        if isinstance(member, UnionType):
            yield from _flattened(member.members)
        elif isinstance(member, OptionalType):
            yield NoneType_
            yield from _flattened((member.element,))
        else:
            yield member


def _rank(member: Type) -> tuple[int, str, int]:
    """The place in the order; of one text, two classes stand in any fixed order."""
    for rank, kind in enumerate(_ORDER):
        if member is kind or member.__class__ is kind:
            return rank, str(member), id(member)
    return len(_ORDER), str(member), id(member)
