"""Corrections: the schema line that would be true of what a call was seen to do.

True only here: how letters are given.  An argument keeps the set that it has; one that
needs a set gets the first letter that the schema does not use.  What is not at fault
keeps its annotation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count
from string import ascii_lowercase

from runtime.schema.alias import FRESH, WILDCARD, AliasInfo
from runtime.schema.argument import Argument
from runtime.schema.schema import Schema
from runtime.schema.types import ListType, OptionalType, Type

Sets = frozenset[str]


@dataclass(slots=True)
class Seen:
    """What a call did: who was written to, and who shares memory with whom.

    `shares` maps results at fault to the arguments that they share memory with,
    `pairs` are results that share memory, `alone` results that share with nobody.
    """

    written: set[int] = field(default_factory=set)
    shares: dict[int, set[int]] = field(default_factory=dict)
    pairs: set[tuple[int, int]] = field(default_factory=set)
    alone: set[int] = field(default_factory=set)


def sets_of(value: Argument) -> Sets:
    """The sets that an argument or a result is in after the call, elements too."""
    return frozenset() if value.alias is None else _after(value.alias)


def _after(alias: AliasInfo) -> Sets:
    inner = frozenset[str]().union(*map(_after, alias.contained))
    return inner | {name for name in alias.after if name != FRESH}


def may_share(one: Argument, other: Argument) -> bool:
    """Whether two annotated values may share memory after a call."""
    left, right = sets_of(one), sets_of(other)
    return bool(left & right) or WILDCARD in left or WILDCARD in right


def corrected(schema: Schema, seen: Seen) -> str:
    """The line of `schema` with the annotations that fit what was seen.

    Empty where it is the same line: nothing that was seen can be declared.
    """
    wanted = seen.written.union(*seen.shares.values())
    free = _free_letters(schema)
    arguments = [*schema.arguments]
    letters: dict[int, str] = {}
    for place in sorted(wanted):
        if place >= len(arguments):
            continue  # the surplus of a schema with `...` has no annotation
        argument = arguments[place]
        own = sorted(sets_of(argument) - {WILDCARD})
        letters[place] = own[0] if own else next(free)
        write = argument.is_write or place in seen.written
        arguments[place] = _annotated(argument, (letters[place],), write)
    returns = [*schema.returns]
    for number, places in seen.shares.items():
        names = tuple(sorted({letters[p] for p in places if p in letters}))
        write = any(arguments[p].is_write for p in places if p in letters)
        if names:
            returns[number] = _annotated(returns[number], names, write)
    for one, other in sorted(seen.pairs):
        common = next(free)
        for number in {one, other}:
            names = tuple(sorted({*sets_of(returns[number]), common}))
            returns[number] = _annotated(returns[number], names, False)
    for number in seen.alone:
        returns[number] = replace(returns[number], alias=None)
    _forget_unused(schema, arguments, returns)
    right = replace(schema, arguments=tuple(arguments), returns=tuple(returns))
    return "" if right == schema else str(right)


def _free_letters(schema: Schema) -> Iterator[str]:
    """Names of sets that the schema does not use, shortest first."""
    values = (*schema.arguments, *schema.returns)
    used = frozenset[str]().union(*(_named(each.alias) for each in values))
    names = chain(ascii_lowercase, (f"a{number}" for number in count()))
    return (name for name in names if name not in used)


def _named(alias: AliasInfo | None) -> Sets:
    if alias is None:
        return frozenset()
    return frozenset(alias.before + alias.after).union(*map(_named, alias.contained))


def _annotated(value: Argument, names: tuple[str, ...], write: bool) -> Argument:
    return replace(value, alias=_alias(value.type, AliasInfo(names, names, write)))


def _alias(type: Type, alias: AliasInfo) -> AliasInfo:  # noqa: A002  # the field's own word
    """The annotation where the type carries it: of a list, at its elements."""
    if isinstance(type, OptionalType):
        return _alias(type.element, alias)
    if isinstance(type, ListType):
        return AliasInfo((), (), alias.is_write, (_alias(type.element, alias),))
    return alias


def _forget_unused(
    schema: Schema, arguments: list[Argument], returns: list[Argument]
) -> None:
    """Take the sets that no result is in any more off arguments that only had them."""
    before = frozenset[str]().union(*map(sets_of, schema.returns))
    lost = before.difference(*map(sets_of, returns))
    for place, argument in enumerate(arguments):
        sets = sets_of(argument)
        if sets and not argument.is_write and sets <= lost:
            arguments[place] = replace(argument, alias=None)
