"""Whether an argument and a result may be, or may hold, the same memory.

True only here: the reading of two annotated values side by side, and what the values
of a type share and hold.

Rules:
- values can be one only when their types have a shared type in common, and are one
  only when their sets after the call meet;
- a set that annotates the elements of a list is of the list, too: `Tensor(a) x` may be
  an element of `Tensor(a)[]` (ours; upstream says so of wildcards only);
- tuples, futures, awaits and references have no memory of their own: they share what
  their elements share;
- an object holds what its attributes hold;
- a type about which nothing is known shares or holds anything: a variable, a list of
  one, `Any`, an interface, a class whose declaration is not sealed or that has none;
  a function is no memory, but may hold anything.
"""

from collections.abc import Iterable

from runtime.schema.alias import WILDCARD
from runtime.schema.argument import Argument
from runtime.schema.declaration import InterfaceType, ModuleType, ScriptClassType
from runtime.schema.types import (
    NAMED_BASES,
    PROGRAM_BASES,
    AnyClassType,
    AnyType,
    AwaitType,
    CapsuleType,
    ClassType,
    DictType,
    FunctionType,
    FutureType,
    GeneratorType,
    ListType,
    OptionalType,
    PyObjectType,
    RRefType,
    StorageType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)
from runtime.schema.unify import variables

_ANYTHING = frozenset({AnyType})
_NOTHING: frozenset[Type] = frozenset()
# What may hold anything: an object of which more is known is asked first.
_UNKNOWN = (TypeVariable, ClassType, ScriptClassType, ModuleType, InterfaceType)
# The words whose values can be shared, and as what; a storage is memory of tensors.
_SHARED: dict[Type, frozenset[Type]] = {
    **dict.fromkeys((*NAMED_BASES.values(), *PROGRAM_BASES.values()), _NOTHING),
    TensorType: frozenset({TensorType}),
    StorageType: frozenset({StorageType, TensorType}),
    GeneratorType: frozenset({GeneratorType}),
    CapsuleType: _ANYTHING,
    PyObjectType: _ANYTHING,
    AnyType: _ANYTHING,
    AnyClassType: _ANYTHING,
}


def may_alias(argument: Argument, result: Argument) -> bool:
    """Whether the two may be the same memory after the call."""
    if argument.alias is None or result.alias is None:
        return False
    if not _meet(_shared(argument.fake_type), _shared(result.fake_type)):
        return False
    return bool(set(argument.alias.after) & set(result.alias.after))


def may_contain_alias(argument: Argument, result: Argument) -> bool:
    """Whether one may be, or hold as an element, memory of the other."""
    if may_alias(argument, result):
        return True
    left, right = _shared(argument.fake_type), _shared(result.fake_type)
    left_inner = _contained(argument.fake_type)
    right_inner = _contained(result.fake_type)
    if (argument.sets_after & result.sets_after) - {WILDCARD}:
        # One set, of the values themselves or of their elements.
        return _meet(left | left_inner, right | right_inner)
    if argument.alias and argument.alias.is_wildcard_after and _meet(left, right_inner):
        return True
    if result.alias and result.alias.is_wildcard_after and _meet(right, left_inner):
        return True
    return _meet(left_inner, right_inner)


def _meet(left: frozenset[Type], right: frozenset[Type]) -> bool:
    """Whether a value can be shared under a type of both."""
    if AnyType in left or AnyType in right:
        return bool(left and right)
    return not left.isdisjoint(right)


def _shared(type: Type) -> frozenset[Type]:  # noqa: A002  # the field's own word
    """The types under which a value of `type` can be shared; empty for plain values."""
    known = _SHARED.get(type)
    if known is not None:
        return known
    if isinstance(type, ListType | DictType) and variables(type):
        # Of whatever the variables stand for.
        return _ANYTHING
    if isinstance(type, ListType | DictType | ClassType | ScriptClassType | ModuleType):
        return frozenset({type})
    if isinstance(type, TypeVariable | InterfaceType):
        return _ANYTHING
    return _all_shared(_parts(type))


def _all_shared(types: Iterable[Type]) -> frozenset[Type]:
    return _NOTHING.union(*map(_shared, types))


def _contained(type: Type) -> frozenset[Type]:  # noqa: A002  # the field's own word
    """The types under which what a value of `type` holds, at any depth, is shared."""
    found: set[Type] = set()
    seen: set[Type] = set()
    todo = [type]
    while todo:
        outer = todo.pop()
        if outer in seen:
            continue
        seen.add(outer)
        elements = _elements(outer)
        found |= _all_shared(elements)
        todo += elements
        if isinstance(outer, OptionalType | UnionType):
            todo += _parts(outer)
    return frozenset(found)


def _elements(type: Type) -> tuple[Type, ...]:  # noqa: A002  # the field's own word
    """The types of what a value of `type` holds itself."""
    if isinstance(type, ListType):
        return (type.element,)
    if isinstance(type, DictType):
        return (type.key, type.value)
    if isinstance(type, ScriptClassType | ModuleType) and type.declaration.is_sealed:
        return tuple(type.declaration.attributes.values())
    if isinstance(type, _UNKNOWN) or _SHARED.get(type) is _ANYTHING:
        return (AnyType,)
    if type is FunctionType:
        return (AnyType,)
    return () if isinstance(type, OptionalType | UnionType) else _parts(type)


def _parts(type: Type) -> tuple[Type, ...]:  # noqa: A002  # the field's own word
    """The types that a value of `type` is, or that it consists of."""
    if isinstance(type, OptionalType | FutureType | AwaitType | RRefType):
        return (type.element,)
    if isinstance(type, UnionType):
        return type.members
    return type.elements if isinstance(type, TupleType) else ()
