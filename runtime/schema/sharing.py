"""Whether an argument and a result may be, or may hold, the same memory.

True only here: the reading of two annotated values side by side.  The algorithm is
that of the alias analysis over function schemas: values can share only when their
types have an aliasing type in common; they share when their sets after the call meet.
"""

from runtime.schema.argument import Argument
from runtime.schema.types import (
    AnyType,
    BaseType,
    ClassType,
    DictType,
    FutureType,
    ListType,
    OptionalType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)

# Types without parameters whose values have an identity that can be shared.
_SHARED_BASES: frozenset[BaseType] = frozenset({TensorType, AnyType})


def may_alias(argument: Argument, result: Argument) -> bool:
    """Whether the two may be the same memory after the call."""
    if argument.alias is None or result.alias is None:
        return False
    if not _aliasing(argument.fake_type) & _aliasing(result.fake_type):
        return False
    return bool(set(argument.alias.after) & set(result.alias.after))


def may_contain_alias(argument: Argument, result: Argument) -> bool:
    """Whether one may be, or hold as an element, memory of the other."""
    if may_alias(argument, result):
        return True
    left, right = _aliasing(argument.fake_type), _aliasing(result.fake_type)
    left_inner, right_inner = _contained(left), _contained(right)
    if argument.alias and argument.alias.is_wildcard_after and left & right_inner:
        return True
    if result.alias and result.alias.is_wildcard_after and right & left_inner:
        return True
    return bool(left_inner & right_inner)


def _aliasing(type: Type) -> frozenset[Type]:  # noqa: A002  # the field's own word
    """The types under which a value of `type` can be shared; empty for plain values."""
    if type in _SHARED_BASES or isinstance(type, ListType | DictType | ClassType):
        return frozenset({type})
    if isinstance(type, OptionalType):
        return _aliasing(type.element)
    if isinstance(type, UnionType):
        return frozenset().union(*map(_aliasing, type.members))
    if isinstance(type, FutureType):
        return frozenset(map(FutureType, _aliasing(type.element)))
    if isinstance(type, TupleType):
        parts = [frozenset[Type]().union(_aliasing(e)) for e in type.elements]
        shared = tuple(e for e, part in zip(type.elements, parts, strict=True) if part)
        return frozenset({TupleType(shared)}) if shared else frozenset()
    return frozenset()


def _contained(types: frozenset[Type]) -> frozenset[Type]:
    """The aliasing types of what values of `types` hold, at any depth."""
    found: frozenset[Type] = frozenset()
    for outer in types:
        inner = frozenset[Type]().union(*map(_aliasing, _elements(outer)))
        found |= inner | _contained(inner)
    return found


def _elements(type: Type) -> tuple[Type, ...]:  # noqa: A002  # the field's own word
    if isinstance(type, ListType | FutureType):
        return (type.element,)
    if isinstance(type, DictType):
        return (type.key, type.value)
    if isinstance(type, TupleType):
        return type.elements
    return ()
