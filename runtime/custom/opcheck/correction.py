"""Corrections: the schema line that would be true of what a call was seen to do.

True only here: how letters are given.  An argument keeps the set that it has; one that
needs a set gets the first letter that the schema does not use.  What is not at fault
keeps its annotation.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import chain, count
from string import ascii_lowercase

from runtime.schema.alias import WILDCARD, AliasInfo
from runtime.schema.argument import Argument, placed_alias
from runtime.schema.schema import Schema


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


def may_share(one: Argument, other: Argument) -> bool:
    """Whether two annotated values may share memory after a call."""
    left, right = one.sets_after, other.sets_after
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
        own = sorted(argument.sets_after - {WILDCARD})
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
            names = tuple(sorted({*returns[number].sets_after, common}))
            returns[number] = _annotated(returns[number], names, False)
    for number in seen.alone:
        returns[number] = replace(returns[number], alias=None)
    _forget_unused(schema, arguments, returns)
    right = replace(schema, arguments=tuple(arguments), returns=tuple(returns))
    return "" if right == schema else str(right)


def _free_letters(schema: Schema) -> Iterator[str]:
    """Names of sets that the schema does not use, shortest first."""
    values = (*schema.arguments, *schema.returns)
    used = frozenset[str]().union(*(v.sets_before | v.sets_after for v in values))
    names = chain(ascii_lowercase, (f"a{number}" for number in count()))
    return (name for name in names if name not in used)


def _annotated(value: Argument, names: tuple[str, ...], write: bool) -> Argument:
    alias = placed_alias(value.type, AliasInfo(names, names, write))
    return replace(value, alias=alias)


def _forget_unused(
    schema: Schema, arguments: list[Argument], returns: list[Argument]
) -> None:
    """Take the sets that no result is in any more off arguments that only had them."""
    before = frozenset[str]().union(*(each.sets_after for each in schema.returns))
    lost = before.difference(*(each.sets_after for each in returns))
    for place, argument in enumerate(arguments):
        sets = argument.sets_after
        if sets and not argument.is_write and sets <= lost:
            arguments[place] = replace(argument, alias=None)
