"""The least common type of types, and types that fit a pattern.

True only here: what a value may be that comes from several places (`unify`), and which
types the variables of a schema stand for (`match`, `substitute`).  Both answer by the
order of `is_subtype`, and say why where there is no answer.

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

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from runtime.schema.subtype import is_subtype
from runtime.schema.types import (
    AwaitType,
    DictType,
    FutureType,
    ListType,
    NoneType_,
    OptionalType,
    RRefType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
    fake,
)
from runtime.schema.unions import optional, union

_COVARIANT = (FutureType, AwaitType, RRefType)
_WRAPPERS = (ListType, *_COVARIANT)
# The types that each variable has met, in their order.
_Bound = dict[str, tuple[Type, ...]]


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
    found = _unify(types)
    return _first_mismatch(types) if found is None else found


def _unify(types: Iterable[Type]) -> Type | None:
    distinct = tuple(dict.fromkeys(types))
    # What is less than another one says nothing: a union may be less than a tuple.
    highest = tuple(each for each in distinct if _is_highest(each, distinct))
    if all(is_subtype(each, highest[0]) for each in distinct):
        return _canonical(highest)
    values = tuple(dict.fromkeys(map(_value, highest)))
    some = tuple(each for each in values if each is not NoneType_)
    if some != highest:
        found = _unify(some)
        return None if found is None else optional(found)
    for wrapper in _COVARIANT:
        elements = [each.element for each in some if isinstance(each, wrapper)]
        if len(elements) == len(some):
            found = _unify(elements)
            return None if found is None else wrapper(found)
    tuples = [each for each in some if isinstance(each, TupleType)]
    if len(tuples) < len(some) or len({len(each.elements) for each in tuples}) > 1:
        return None
    columns = zip(*(each.elements for each in tuples), strict=True)
    unified = [found for found in map(_unify, columns) if found is not None]
    if len(unified) < len(tuples[0].elements):
        return None
    names = {(each.names, each.qualname) for each in tuples}
    return TupleType(tuple(unified), *(names.pop() if len(names) == 1 else ()))


def _is_highest(one: Type, types: Iterable[Type]) -> bool:
    """Whether no other type is a strict supertype."""
    return all(is_subtype(each, one) or not is_subtype(one, each) for each in types)


def _value(type: Type) -> Type:  # noqa: A002  # the field's own word
    return type.element if isinstance(type, OptionalType) else type


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
                why = _why(_value(left), _value(right))
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
        for place in range(count):
            pair = left.elements[place], right.elements[place]
            if _unify(pair) is None:
                return f"so have their elements {place}, {pair[0]} and {pair[1]}"
    return f"a value of both would be a {union((left, right))}, which is not inferred"


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
    common = {name: unify(*types) for name, types in bound.items()}
    solved: dict[str, Type] = {}
    for name, one in common.items():
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
        return _match(formal.element, _value(actual), bound)
    if isinstance(formal, UnionType):
        return _match_union(formal, actual, bound)
    for wrapper in _WRAPPERS:
        if isinstance(formal, wrapper):
            if not isinstance(actual, wrapper):
                return f"{actual} is no {formal}"
            return _match(formal.element, actual.element, bound)
    parts: tuple[tuple[Type, ...], tuple[Type, ...]]
    if isinstance(formal, DictType) and isinstance(actual, DictType):
        parts = (formal.key, formal.value), (actual.key, actual.value)
    elif isinstance(formal, TupleType) and isinstance(actual, TupleType):
        if len(formal.elements) != len(actual.elements):
            return f"{actual} is no {formal}: the lengths differ"
        parts = formal.elements, actual.elements
    else:
        return f"{actual} is no {formal}"
    for one, other in zip(*parts, strict=True):
        reason = _match(one, other, bound)
        if reason is not None:
            return reason
    return None


def _match_union(formal: UnionType, actual: Type, bound: _Bound) -> str | None:
    """Members without variables come first: what they take binds nothing."""
    open_members = [each for each in formal.members if variables(each)]
    closed = [each for each in formal.members if not variables(each)]
    given = actual.members if isinstance(actual, UnionType) else (actual,)
    for each in given:
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
    if isinstance(type, OptionalType):
        return optional(substitute(type.element, bound))
    if isinstance(type, _WRAPPERS):
        return type.__class__(substitute(type.element, bound))
    if isinstance(type, DictType):
        return DictType(substitute(type.key, bound), substitute(type.value, bound))
    if isinstance(type, TupleType):
        elements = tuple(substitute(each, bound) for each in type.elements)
        return TupleType(elements, type.names, type.qualname)
    if isinstance(type, UnionType):
        return union(substitute(each, bound) for each in type.members)
    return type


def variables(type: Type) -> frozenset[str]:  # noqa: A002  # the field's own word
    """The names of the variables in a type."""
    if isinstance(type, TypeVariable):
        return frozenset({type.name})
    if isinstance(type, OptionalType | ListType | FutureType | AwaitType | RRefType):
        return variables(type.element)
    if isinstance(type, DictType):
        return variables(type.key) | variables(type.value)
    if isinstance(type, TupleType):
        return frozenset[str]().union(*map(variables, type.elements))
    if isinstance(type, UnionType):
        return frozenset[str]().union(*map(variables, type.members))
    return frozenset()
