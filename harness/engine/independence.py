"""Operations that share no place: the conditions of Bernstein, on recorded accesses.

A *place* is an entry of a dict or a set.  Two operations are independent if neither
writes a place that the other one accesses; then their order does not matter, and
neither shows the other's effects (Bernstein, "Analysis of programs for parallel
processing", 1966).  Operations that are not independent are joined, step by step, until
those of different parts are.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final, NamedTuple, Protocol, TypeAlias


class _Every:
    """The type of `EVERY`."""

    def __repr__(self) -> str:
        return "EVERY"


EVERY: Final = _Every()

Place: TypeAlias = tuple[str, Hashable]
"""The path of a container, and a key in it, or `EVERY` for all keys."""


class Accesses(NamedTuple):
    """The places that an operation accessed, and those among them that it wrote."""

    touched: frozenset[Place]
    written: frozenset[Place]


class Follower(Protocol):
    """Follows what the operations of a system read and write.

    `changed_outside` names something that changed outside of all places, or is "";
    `varying` are places with several values while the same steps were active.
    """

    changed_outside: str
    varying: set[Place]

    @property
    def executed(self) -> int:
        """Return a number for all instructions that operations executed so far."""
        ...

    @property
    def containers(self) -> tuple[str, ...]:
        """Return the paths of the containers that record their accesses."""
        ...

    def accesses(self) -> Mapping[int, Accesses]:
        """Return the accesses of each operation so far.

        Those of laws have the number after that of the look.
        """
        ...

    def release(self) -> None:
        """Give the registry its own containers back."""
        ...


def shared_places(one: Accesses, other: Accesses) -> frozenset[Place]:
    """Return the places that one of two operations writes and the other accesses.

    A container that one of them accesses as a whole is one place.
    """
    return frozenset(
        (*_shared(one.written, other.touched), *_shared(other.written, one.touched))
    )


def _shared(written: frozenset[Place], touched: frozenset[Place]) -> Iterable[Place]:
    yield from written & touched
    whole = {path for path, key in touched if key is EVERY}
    paths = {path for path, _ in touched}
    for path, key in written:
        if path in whole or (key is EVERY and path in paths):
            yield path, EVERY


class Join(NamedTuple):
    """Two operations that join groups, and the places that they share."""

    one: int
    other: int
    places: frozenset[Place]


def parts_of(
    operations: int,
    groups: Sequence[Sequence[int]],
    accesses: Mapping[int, Accesses],
) -> tuple[tuple[tuple[int, ...], ...], tuple[Join, ...]]:
    """Join the groups of operations that share places.

    Return the parts, each ascending, and why groups were joined.
    """
    part = list(range(operations))
    grouped = {operation for group in groups for operation in group}

    def join(one: int, other: int) -> None:
        first, second = sorted((part[one], part[other]))
        for each, number in enumerate(part):
            if number == second:
                part[each] = first

    for group in groups:
        for other in group[1:]:
            join(group[0], other)
    joins: list[Join] = []
    for one, other in combinations(sorted(accesses), 2):
        places = shared_places(accesses[one], accesses[other])
        if places and part[one] != part[other]:
            of_groups = {part[operation] for operation in grouped}
            if of_groups.issuperset((part[one], part[other])):
                joins.append(Join(one, other, places))
            join(one, other)
    members: dict[int, list[int]] = {}
    for operation, number in enumerate(part):
        members.setdefault(number, []).append(operation)
    return tuple(map(tuple, members.values())), tuple(joins)
