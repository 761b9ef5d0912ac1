"""The order of types: subtypes, unions, least common types, and patterns of types.

When a value of one type is accepted for another (`is_subtype`); the one normal form of
a value of several possible types (`optional`, `union`); the common type of values from
several places (`unify`); and which types replace the variables of a schema (`match`,
`substitute`).  All of these are based on `is_subtype`.

Rules of `is_subtype`, which compares both sides as on the boxed stack, so `SymInt` and
`int` are one:
- lists and dictionaries can be written to, so they are equal or unrelated; tuples,
  futures, awaits and references follow their elements;
- a tuple with names is a tuple, and one of another name is unrelated;
- classes, modules and enums are identified by their declarations; an interface accepts
  every object with its methods;
- it is a partial order, except for pairs of two equivalent types that are each other's
  subtypes: enum constants and `int`, `Any?` and `Any`, and interfaces of the same
  methods.

Rules of `optional` and `union`:
- a value that may be None is an optional, outermost: a union never has None as a
  member, an optional is never nested, and None itself is not optional;
- unions inside of unions are flattened, and a member with a supertype among the others
  is dropped; int with float and complex is every number; a single member is that type
  itself;
- the order is fixed, so that equal unions are one object and print alike.

Rules of `unify`:
- if one of the types is a supertype of all, it is that one;
- None and a type give its optional; tuples of one length, futures, awaits and
  references are unified by their elements; names of tuples that differ are lost;
- other types have no common type: an `int` and a `str` do not become a union or `Any`
  without an annotation;
- the order in which the types are passed does not matter.  The answer is the least
  common supertype among the types without unions.

Rules of `match`:
- a variable denotes the least common type of all types that it is matched with;
- None matches any optional, also of a variable, which it does not bind;
- the result is sound: the substituted formal type is a supertype of the actual one.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from everyorder.runtime.schema.declared import (
    Declaration,
    EnumType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.signature import Argument, Signature
from everyorder.runtime.schema.types import (
    AnyClassType,
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
    fake,
    unwrap_optional,
)

# Three types that together are every number.
_NUMBERS = frozenset({IntType, FloatType, ComplexType})
_OBJECTS = (ClassType, ScriptClassType, ModuleType, InterfaceType)
# Types that are subtypes if their elements are.
_COVARIANT = (TupleType, FutureType, AwaitType, RRefType)


class _Assumptions:
    """Intermediate results of one query: which types fit which interfaces.

    A pair is assumed to fit while it is checked, since an interface may refer to
    itself. If it does not fit, the pairs that relied on it may not either and are
    checked again, but a pair that does not fit is final: it did not fit even under more
    assumptions.
    """

    __slots__ = ("fits", "misfits")

    def __init__(self) -> None:
        self.fits: dict[tuple[Type, Type], None] = {}
        self.misfits: set[tuple[Type, Type]] = set()


@dataclass(frozen=True, slots=True)
class Misfit:
    """The reason why a type lacks a method of an interface."""

    method: str
    fault: str

    def __str__(self) -> str:
        return f"its method `{self.method}` {self.fault}"


def is_subtype(left: Type, right: Type) -> bool:
    """Return True if every value of `left` is a value of `right`."""
    return _is_subtype(fake(left), fake(right), _Assumptions())


def misfit(declared: Declaration, interface: Declaration) -> Misfit | None:
    """Return why objects of one declaration do not fit the other, or None."""
    return _misfit(declared, interface, _Assumptions())


def _is_subtype(left: Type, right: Type, assumed: _Assumptions) -> bool:
    if left is right or right is AnyType:
        return True
    # The left side is split first: `int | str` is a subtype of `str | int`, but not of
    # any one member of it.
    if isinstance(left, UnionType):
        return all(_is_subtype(fake(each), right, assumed) for each in left.members)
    if isinstance(left, OptionalType):
        return _is_subtype(NoneType_, right, assumed) and _is_subtype(
            left.element, right, assumed
        )
    if isinstance(right, UnionType):
        return any(_is_subtype(left, fake(each), assumed) for each in right.members)
    if isinstance(right, OptionalType):
        return left is NoneType_ or _is_subtype(left, right.element, assumed)
    if right is NumberType:
        return left in _NUMBERS
    if right is AnyClassType:
        return isinstance(left, _OBJECTS)
    if right is AnyEnumType:
        return isinstance(left, EnumType)
    if isinstance(right, InterfaceType):
        return _fits(left, right, assumed)
    if left.__class__ is not right.__class__ or not isinstance(left, _COVARIANT):
        return False
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        if len(left.elements) != len(right.elements):
            return False
        # A named tuple is a subtype of the plain one, and of no other named one.
        if right.qualname and _name(left) != _name(right):
            return False
    return all(
        _is_subtype(one, other, assumed)
        for one, other in zip(left.parts, right.parts, strict=True)
    )


def _fits(left: Type, right: InterfaceType, assumed: _Assumptions) -> bool:
    pair = left, right
    if not isinstance(left, ScriptClassType | ModuleType | InterfaceType):
        return False
    if pair in assumed.fits or pair in assumed.misfits:
        return pair in assumed.fits
    before = len(assumed.fits)
    assumed.fits[pair] = None
    if _misfit(left.declaration, right.declaration, assumed) is None:
        return True
    while len(assumed.fits) > before:
        assumed.fits.popitem()
    assumed.misfits.add(pair)
    return False


def _name(named: TupleType) -> tuple[Any, ...]:
    return named.names, named.qualname


def _misfit(
    declared: Declaration, interface: Declaration, assumed: _Assumptions
) -> Misfit | None:
    for name, required in interface.methods.items():
        method = declared.methods.get(name)
        fault = "is missing" if method is None else _fault(method, required, assumed)
        if fault is not None:
            return Misfit(name, fault)
    return None


def _fault(method: Signature, required: Signature, assumed: _Assumptions) -> str | None:
    """Return why a call that fits `required` may not fit `method`, or None.

    The first arguments, the objects themselves, are not compared.
    """
    own, parameters = method.arguments[1:], required.arguments[1:]
    for one, other in zip(own, parameters, strict=False):
        fault = _argument_fault(one, other, assumed)
        if fault is not None:
            return fault
    if len(own) < len(parameters):
        return f"has no argument `{parameters[len(own)].name}`"
    for more in own[len(parameters) :]:
        if not more.has_default:
            return f"also needs the argument `{more.name}`"
    if len(method.returns) != len(required.returns):
        return f"returns {len(method.returns)} values, not {len(required.returns)}"
    for one, other in zip(method.returns, required.returns, strict=True):
        if not _is_subtype(one.fake_type, other.fake_type, assumed):
            return f"returns {one.type}, not {other.type}"
    return None


def _argument_fault(
    own: Argument, required: Argument, assumed: _Assumptions
) -> str | None:
    if own.name != required.name:
        return f"has the argument `{own.name}` in place of `{required.name}`"
    if own.kwarg_only and not required.kwarg_only:
        return f"takes `{own.name}` by keyword only"
    if required.has_default and not own.has_default:
        return f"has no default for `{own.name}`"
    if not _is_subtype(required.fake_type, own.fake_type, assumed):
        return f"takes {own.type} for `{own.name}`, not {required.type}"
    return None


# The place of a kind of member in a union; source: the order of kinds upstream, which
# its printed unions follow.  Kinds that are missing here sort last, by their text.
_RANK: dict[Any, int] = {
    kind: rank
    for rank, kind in enumerate(
        (
            *(AnyType, AnyEnumType, TensorType, StorageType, TupleType, ListType),
            *(DictType, NumberType, FloatType, ComplexType, FutureType, AwaitType),
            *(RRefType, IntType, StrType, GeneratorType, QuantizerType, BoolType),
            *(TypeVariable, DeviceType, StreamType, ClassType),
        )
    )
}


def optional(element: Type) -> Type:
    """Return `element?`, unless None already is a value of `element`."""
    if isinstance(element, UnionType):
        element = union(element.members)
    if element is NoneType_ or isinstance(element, OptionalType):
        return element
    return OptionalType(element)


def union(members: Iterable[Type]) -> Type:
    """Return the type whose values are those of all `members`, at least one."""
    flat = set(_flatten(members))
    if flat >= _NUMBERS:
        flat.add(NumberType)
    values = sorted(flat - {NoneType_}, key=_rank)
    # Of two equivalent types the first stays.
    maximal = [
        each
        for place, each in enumerate(values)
        if not any(
            is_subtype(each, other) and (index < place or not is_subtype(other, each))
            for index, other in enumerate(values)
            if index != place
        )
    ]
    if not maximal:
        return NoneType_
    whole = maximal[0] if len(maximal) == 1 else UnionType(tuple(maximal))
    return OptionalType(whole) if NoneType_ in flat else whole


def _flatten(members: Iterable[Type]) -> Iterator[Type]:
    for member in members:
        if isinstance(member, OptionalType):
            yield NoneType_
        if isinstance(member, OptionalType | UnionType):
            yield from _flatten(member.parts)
        else:
            yield member


def _rank(member: Type) -> tuple[int, str, int]:
    """Return the place in the order; two classes with one text are in a fixed order."""
    rank = _RANK.get(member, _RANK.get(member.__class__, len(_RANK)))
    return rank, str(member), id(member)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two types without a common type, and the reason, as half a sentence.

    `index` is the place of the second one, or of its formal type, among the arguments.
    """

    left: Type
    right: Type
    reason: str
    index: int

    def __str__(self) -> str:
        return self.reason


def unify(*types: Type) -> Type | Mismatch:
    """Return the least type of which all `types`, at least one, are subtypes."""
    common = _unify(types)
    return _first_mismatch(types) if common is None else common


def _unify(types: Iterable[Type]) -> Type | None:
    distinct = tuple(dict.fromkeys(types))
    # Subtypes of other ones do not matter: a union may be less than a tuple.
    highest = tuple(each for each in distinct if _is_highest(each, distinct))
    if all(is_subtype(each, highest[0]) for each in distinct):
        return _canonical(highest)
    values = tuple(dict.fromkeys(map(unwrap_optional, highest)))
    without_none = tuple(each for each in values if each is not NoneType_)
    if without_none != highest:
        common = _unify(without_none)
        return None if common is None else optional(common)
    first = without_none[0]
    if not isinstance(first, _COVARIANT):
        return None
    if len({(each.__class__, len(each.parts)) for each in without_none}) > 1:
        return None
    columns = zip(*(each.parts for each in without_none), strict=True)
    parts = [common for common in map(_unify, columns) if common is not None]
    if len(parts) < len(first.parts):
        return None
    names = {_name(each) for each in without_none if isinstance(each, TupleType)}
    if len(names) > 1:
        return TupleType(tuple(parts))
    return first.with_parts(tuple(parts))


def _is_highest(one: Type, types: Iterable[Type]) -> bool:
    """Return True if no other type is a strict supertype."""
    return all(is_subtype(each, one) or not is_subtype(one, each) for each in types)


def _canonical(equal: Sequence[Type]) -> Type:
    """Return one of several equivalent types, independent of their order."""
    fakes = {fake(each) for each in equal}
    if len(equal) > 1 and len(fakes) == 1:
        return fakes.pop()
    return min(equal, key=lambda each: (str(each), id(each)))


def _first_mismatch(types: Sequence[Type]) -> Mismatch:
    """Return the first of the types without a common type with one before it.

    A subtype of another one is never reported.
    """
    highest = [
        (index, one) for index, one in enumerate(types) if _is_highest(one, types)
    ]
    for place, (index, right) in enumerate(highest):
        for _, left in highest[:place]:
            if _unify((left, right)) is None:
                reason = f"{left} and {right} have no common type"
                why = _why(unwrap_optional(left), unwrap_optional(right))
                return Mismatch(left, right, f"{reason}: {why}", index)
    raise AssertionError("types of which each two have a common type have one")


def _why(left: Type, right: Type) -> str:
    if isinstance(left, ListType) and isinstance(right, ListType):
        return "a list can be written to, so its elements are of one type"
    if isinstance(left, DictType) and isinstance(right, DictType):
        return "a dictionary can be written to, so what it holds is of one type"
    if isinstance(left, TupleType) and isinstance(right, TupleType):
        count, other = len(left.elements), len(right.elements)
        if count != other:
            return f"the one has {count} elements, the other {other}"
        for place, pair in enumerate(zip(left.elements, right.elements, strict=True)):
            if _unify(pair) is None:
                return f"so have their elements {place}, {pair[0]} and {pair[1]}"
    return f"a value of both would be a {union((left, right))}, which is not inferred"


_NONE: frozenset[str] = frozenset()
# Variable -> the types that it was matched with, in their order.
_Bound = dict[str, tuple[Type, ...]]


def match(
    formals: Sequence[Type], actuals: Sequence[Type]
) -> Mapping[str, Type] | Mismatch:
    """Return the types of the variables in `formals` for `actuals`, one each."""
    bound: _Bound = {}
    places: dict[str, list[int]] = {}
    for index, (formal, actual) in enumerate(zip(formals, actuals, strict=True)):
        reason = _match(formal, actual, bound)
        if reason is not None:
            return Mismatch(formal, actual, reason, index)
        for name, types in bound.items():
            indices = places.setdefault(name, [])
            indices += [index] * (len(types) - len(indices))
    solved: dict[str, Type] = {}
    for name, types in bound.items():
        one = unify(*types)
        if isinstance(one, Mismatch):
            index = places[name][one.index]
            reason = f"{name} is {one.left} already and would be {one.right}"
            reason = f"{reason}; {one.reason}"
            return Mismatch(formals[index], actuals[index], reason, index)
        solved[name] = one
    # A list fixes its element type, which later arguments may have widened.
    for index, (formal, actual) in enumerate(zip(formals, actuals, strict=True)):
        whole = substitute(formal, solved)
        if not is_subtype(actual, whole):
            return Mismatch(formal, actual, f"{actual} is no {whole}", index)
    return solved


def _match(formal: Type, actual: Type, bound: _Bound) -> str | None:
    """Return why the two do not match, or None; add matched types to `bound`."""
    if isinstance(formal, TypeVariable):
        bound[formal.name] = (*bound.get(formal.name, ()), actual)
        return None
    if not variables(formal):
        return None if is_subtype(actual, formal) else f"{actual} is no {formal}"
    if isinstance(formal, OptionalType):
        if actual is NoneType_:
            return None
        return _match(formal.element, unwrap_optional(actual), bound)
    if isinstance(formal, UnionType):
        return _match_union(formal, actual, bound)
    if formal.__class__ is not actual.__class__:
        return f"{actual} is no {formal}"
    if len(formal.parts) != len(actual.parts):
        return f"{actual} is no {formal}: the lengths differ"
    for one, other in zip(formal.parts, actual.parts, strict=True):
        reason = _match(one, other, bound)
        if reason is not None:
            return reason
    return None


def _match_union(formal: UnionType, actual: Type, bound: _Bound) -> str | None:
    """Match a union: members without variables first, as they bind nothing."""
    open_members = [each for each in formal.members if variables(each)]
    closed = [each for each in formal.members if not variables(each)]
    members = actual.members if isinstance(actual, UnionType) else (actual,)
    for each in members:
        if any(is_subtype(each, member) for member in closed):
            continue
        for member in open_members:
            attempt = dict(bound)
            if _match(member, each, attempt) is None and _is_solvable(attempt):
                bound.update(attempt)
                break
        else:
            return f"{each} is not a member of {formal}"
    return None


def _is_solvable(bound: _Bound) -> bool:
    """Return True if the types of each variable have a common type."""
    return not any(isinstance(unify(*each), Mismatch) for each in bound.values())


def substitute(type: Type, bound: Mapping[str, Type]) -> Type:  # noqa: A002  # the field's own word
    """Return the type with its variables replaced; an unbound variable stays."""
    if isinstance(type, TypeVariable):
        return bound.get(type.name, type)
    parts = tuple(substitute(each, bound) for each in type.parts)
    if parts == type.parts:
        return type
    if isinstance(type, OptionalType):
        return optional(*parts)
    if isinstance(type, UnionType):
        return union(parts)
    return type.with_parts(parts)


def variables(type: Type) -> frozenset[str]:  # noqa: A002  # the field's own word
    """Return the names of the variables in a type."""
    if isinstance(type, TypeVariable):
        return frozenset({type.name})
    parts = type.parts
    return _NONE.union(*map(variables, parts)) if parts else _NONE
