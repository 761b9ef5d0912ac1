"""How types are ordered: subtypes, unions, least common types, and patterns of types.

When a value of one type may stand where another is asked for (`is_subtype`); the one
normal form of what may be of several types (`optional`, `union`); what a value may be
that comes from several places (`unify`); and which types the variables of a schema
stand for (`match`, `substitute`).  All that follows asks `is_subtype`.

Rules of `is_subtype`, which compares both sides as they look on the boxed stack, so
`SymInt` and `int` are one:
- lists and dictionaries can be written to, so they are equal or unrelated; tuples,
  futures, awaits and references follow their elements;
- a tuple with names is a tuple, and one of another name is unrelated;
- classes, modules and enums are what they are declared to be; an interface is whatever
  has its methods;
- it is a partial order, but for pairs that say the same in two ways and are each
  other's subtypes: codes and `int`, `Any?` and `Any`, and interfaces of the same
  methods.

Rules of `optional` and `union`:
- what may be None is an optional, outermost: no union has None for a member, nothing is
  optional twice, and None itself is not optional;
- unions inside of unions are flattened, and a member of which another is a supertype
  is dropped; int with float and complex is every number; a single member is that type
  itself;
- the order is fixed, so that equal unions are one object and print alike.

Rules of `unify`:
- if one of the types is a supertype of all, it is that one;
- None and a type give its optional; tuples of one length, futures, awaits and
  references go by their elements; names of tuples that differ are lost;
- nothing else has a common type: an `int` and a `str` are no union, and no `Any`,
  unless somebody says so;
- the order in which the types are given does not matter.  The answer is the least
  common supertype among the types that name no union.

Rules of `match`:
- a variable stands for the least common type of all that it is matched with;
- None matches any optional, also of a variable that it says nothing about;
- a match is a promise: what is substituted is a supertype of what was given.
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
# What follows its elements.
_COVARIANT = (TupleType, FutureType, AwaitType, RRefType)


class _Assumptions:
    """What one question has come to: which types fit which interfaces.

    A pair is taken for granted while it is looked at, since an interface may speak of
    itself.  If it does not fit, neither may what relied on it; that is looked at again,
    but a pair that does not fit never will: it did not even with more taken for
    granted.
    """

    __slots__ = ("fits", "misfits")

    def __init__(self) -> None:
        self.fits: dict[tuple[Type, Type], None] = {}
        self.misfits: set[tuple[Type, Type]] = set()


@dataclass(frozen=True, slots=True)
class Misfit:
    """Why something does not have a method of an interface."""

    method: str
    fault: str

    def __str__(self) -> str:
        return f"its method `{self.method}` {self.fault}"


def is_subtype(left: Type, right: Type) -> bool:
    """Whether every value of `left` is a value of `right`."""
    return _is_subtype(fake(left), fake(right), _Assumptions())


def misfit(declared: Declaration, interface: Declaration) -> Misfit | None:
    """Why objects of the one declaration do not fit the other, or None if they do."""
    return _misfit(declared, interface, _Assumptions())


def _is_subtype(left: Type, right: Type, assumed: _Assumptions) -> bool:
    if left is right or right is AnyType:
        return True
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
    for name, wanted in interface.methods.items():
        method = declared.methods.get(name)
        fault = "is missing" if method is None else _fault(method, wanted, assumed)
        if fault is not None:
            return Misfit(name, fault)
    return None


def _fault(method: Signature, wanted: Signature, assumed: _Assumptions) -> str | None:
    """Why a call that fits `wanted` may not fit `method`; the objects do not count."""
    own, asked = method.arguments[1:], wanted.arguments[1:]
    for one, other in zip(own, asked, strict=False):
        fault = _argument_fault(one, other, assumed)
        if fault is not None:
            return fault
    if len(own) < len(asked):
        return f"has no argument `{asked[len(own)].name}`"
    for more in own[len(asked) :]:
        if not more.has_default:
            return f"also needs the argument `{more.name}`"
    if len(method.returns) != len(wanted.returns):
        return f"returns {len(method.returns)} values, not {len(wanted.returns)}"
    for one, other in zip(method.returns, wanted.returns, strict=True):
        if not _is_subtype(one.fake_type, other.fake_type, assumed):
            return f"returns {one.type}, not {other.type}"
    return None


def _argument_fault(
    own: Argument, asked: Argument, assumed: _Assumptions
) -> str | None:
    if own.name != asked.name:
        return f"has the argument `{own.name}` in place of `{asked.name}`"
    if own.kwarg_only and not asked.kwarg_only:
        return f"takes `{own.name}` by keyword only"
    if asked.has_default and not own.has_default:
        return f"has no default for `{own.name}`"
    if not _is_subtype(asked.fake_type, own.fake_type, assumed):
        return f"takes {own.type} for `{own.name}`, not {asked.type}"
    return None


# The place of a kind of member in a union; source: the order of kinds upstream, which
# its printed unions follow.  What is missing here sorts behind, by its text.
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
    """`element?`, where None is not yet a value of `element`."""
    if isinstance(element, UnionType):
        element = union(element.members)
    if element is NoneType_ or isinstance(element, OptionalType):
        return element
    return OptionalType(element)


def union(members: Iterable[Type]) -> Type:
    """The type whose values are those of all `members`, at least one."""
    flat = set(_flatten(members))
    if flat >= _NUMBERS:
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


def _flatten(members: Iterable[Type]) -> Iterator[Type]:
    for member in members:
        if isinstance(member, OptionalType):
            yield NoneType_
        if isinstance(member, OptionalType | UnionType):
            yield from _flatten(member.parts)
        else:
            yield member


def _rank(member: Type) -> tuple[int, str, int]:
    """The place in the order; of one text, two classes stand in any fixed order."""
    rank = _RANK.get(member, _RANK.get(member.__class__, len(_RANK)))
    return rank, str(member), id(member)


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two types that do not go together, and why, as half a sentence.

    `index` is the place of the second one, or of its formal type, in what was given.
    """

    left: Type
    right: Type
    reason: str
    index: int

    def __str__(self) -> str:
        return self.reason


def unify(*types: Type) -> Type | Mismatch:
    """The least type of which all `types`, at least one, are subtypes."""
    common = _unify(types)
    return _first_mismatch(types) if common is None else common


def _unify(types: Iterable[Type]) -> Type | None:
    distinct = tuple(dict.fromkeys(types))
    # What is less than another one says nothing: a union may be less than a tuple.
    highest = tuple(each for each in distinct if _is_highest(each, distinct))
    if all(is_subtype(each, highest[0]) for each in distinct):
        return _canonical(highest)
    values = tuple(dict.fromkeys(map(unwrap_optional, highest)))
    some = tuple(each for each in values if each is not NoneType_)
    if some != highest:
        common = _unify(some)
        return None if common is None else optional(common)
    first = some[0]
    if not isinstance(first, _COVARIANT):
        return None
    if len({(each.__class__, len(each.parts)) for each in some}) > 1:
        return None
    columns = zip(*(each.parts for each in some), strict=True)
    parts = [common for common in map(_unify, columns) if common is not None]
    if len(parts) < len(first.parts):
        return None
    names = {_name(each) for each in some if isinstance(each, TupleType)}
    if len(names) > 1:
        return TupleType(tuple(parts))
    return first.with_parts(tuple(parts))


def _is_highest(one: Type, types: Iterable[Type]) -> bool:
    """Whether no other type is a strict supertype."""
    return all(is_subtype(each, one) or not is_subtype(one, each) for each in types)


def _canonical(equal: Sequence[Type]) -> Type:
    """One of the types that say the same, whichever order they come in."""
    fakes = {fake(each) for each in equal}
    if len(equal) > 1 and len(fakes) == 1:
        return fakes.pop()
    return min(equal, key=lambda each: (str(each), id(each)))


def _first_mismatch(types: Sequence[Type]) -> Mismatch:
    """The first of the types that has nothing in common with one before it.

    What is a subtype of another one is not to blame.
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
# The types that each variable has met, in their order.
_Bound = dict[str, tuple[Type, ...]]


def match(
    formals: Sequence[Type], actuals: Sequence[Type]
) -> Mapping[str, Type] | Mismatch:
    """What the variables in `formals` stand for if `actuals` are given, one each."""
    bound: _Bound = {}
    places: dict[str, list[int]] = {}
    for index, (formal, actual) in enumerate(zip(formals, actuals, strict=True)):
        reason = _match(formal, actual, bound)
        if reason is not None:
            return Mismatch(formal, actual, reason, index)
        for name, types in bound.items():
            known = places.setdefault(name, [])
            known += [index] * (len(types) - len(known))
    solved: dict[str, Type] = {}
    for name, types in bound.items():
        one = unify(*types)
        if isinstance(one, Mismatch):
            index = places[name][one.index]
            reason = f"{name} is {one.left} already and would be {one.right}"
            reason = f"{reason}; {one.reason}"
            return Mismatch(formals[index], actuals[index], reason, index)
        solved[name] = one
    # A list is matched with what it holds, which others may have widened.
    for index, (formal, actual) in enumerate(zip(formals, actuals, strict=True)):
        whole = substitute(formal, solved)
        if not is_subtype(actual, whole):
            return Mismatch(formal, actual, f"{actual} is no {whole}", index)
    return solved


def _match(formal: Type, actual: Type, bound: _Bound) -> str | None:
    """Why the two do not match, or None; what the variables meet is noted."""
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
    """Members without variables come first: what they take binds nothing."""
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
            return f"{each} is no member of {formal}"
    return None


def _is_solvable(bound: _Bound) -> bool:
    """Whether each variable has met types that have something in common."""
    return not any(isinstance(unify(*each), Mismatch) for each in bound.values())


def substitute(type: Type, bound: Mapping[str, Type]) -> Type:  # noqa: A002  # the field's own word
    """The type with its variables replaced; one that stands for nothing stays."""
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
    """The names of the variables in a type."""
    if isinstance(type, TypeVariable):
        return frozenset({type.name})
    parts = type.parts
    return _NONE.union(*map(variables, parts)) if parts else _NONE
