"""The operations of a system, and how the active steps are named.

True only here: arithmetic on operations and keys, nothing is executed.  A *key* is how
the engine names the active steps: a bitmask, or, where order counts, a tuple.  What
is observed must be a function of the key.  `State` (always a tuple) is the public form;
`state_of` turns one into the other.

Which orders count is an `Ordering`: none, all, or those of some pairs.  For pairs, the
key is the least arrangement in which each of them stands in its own order, so that two
histories have one key exactly if no pair tells them apart.

How operations are numbered is told in `protocol.py`.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from harness.engine.protocol import History, Relations, State, System
from harness.errors import TooLarge, UnknownOperation

Key: TypeAlias = int | State
"""A bitmask of active steps, or the active steps as far as their order counts."""

# A trace stores one operation a byte, and the last two numbers must fit in too.
MOST_OPERATIONS = 255


@dataclass(frozen=True, slots=True)
class Operations:
    """`steps` toggles, then `uses` uses, then the look, then collecting garbage."""

    steps: int
    uses: int
    relations: Relations = field(default_factory=Relations)

    @property
    def actions(self) -> int:
        """How many operations belong to the scenario: toggles and uses."""
        return self.steps + self.uses

    @property
    def look(self) -> int:
        """The operation that observes."""
        return self.steps + self.uses

    @property
    def collect(self) -> int:
        """The operation that collects garbage."""
        return self.steps + self.uses + 1

    @property
    def reversible(self) -> bool:
        """Whether every step can be undone."""
        return not self.relations.lasting

    def straight(self, active: Iterable[int]) -> History:
        """A history after which these steps are active, in that order where it can be.

        What a step comes after is done before it, and undone at the end if it is none
        of them.
        """
        wanted = tuple(active)
        done: dict[int, None] = {}
        begun: set[int] = set()

        def add(step: int) -> None:
            if step in begun:
                return
            begun.add(step)
            for relation in (self.relations.requires, self.relations.after):
                for needed in sorted(relation.get(step, ())):
                    add(needed)
            done[step] = None

        for step in wanted:
            add(step)
        beside = (step for step in reversed(done) if step not in wanted)
        return (*done, *beside)

    def check(self, history: History) -> None:
        """Raise `UnknownOperation` when the history has one from elsewhere."""
        for operation in history:
            if not 0 <= operation <= self.collect:
                raise UnknownOperation(
                    history=history, operation=operation, operations=self.collect + 1
                )


@dataclass(frozen=True, slots=True)
class Ordering:
    """Which orders of activation may show: of these pairs, or of all (None)."""

    pairs: frozenset[tuple[int, int]] | None = frozenset()

    @property
    def counts(self) -> bool:
        """Whether any order may show; keys are tuples then."""
        return self.pairs is None or bool(self.pairs)

    @property
    def total(self) -> bool:
        """Whether every order may show."""
        return self.pairs is None

    @property
    def root(self) -> Key:
        """The key of nothing active."""
        return () if self.counts else 0

    def key(self, active: Iterable[int]) -> Key:
        """The key of steps that became active in this order."""
        if not self.counts:
            mask = 0
            for step in active:
                mask |= 1 << step
            return mask
        if self.pairs is None:
            return tuple(active)
        return _least(tuple(active), self.pairs)

    def toggled(self, key: Key, step: int) -> Key:
        """The key after the step was toggled with success."""
        if not isinstance(key, tuple):
            return key ^ (1 << step)
        if step in key:
            return self.key(other for other in key if other != step)
        return self.key((*key, step))


UNORDERED = Ordering()
EVERY_ORDER = Ordering(None)


def operations_of(system: System) -> Operations:
    """The system's operations; raises `TooLarge` above 255 of them."""
    operations = Operations(system.steps, system.uses, system.relations)
    if operations.collect >= MOST_OPERATIONS:
        raise TooLarge(
            what="the number of operations (steps, uses, the look, collecting garbage)",
            size=operations.collect + 1,
            limit=MOST_OPERATIONS,
        )
    return operations


def ordering_of(system: System, *, order_dependent: bool) -> Ordering:
    """Which orders may show: all if the scenario says so, else those of its pairs."""
    return EVERY_ORDER if order_dependent else Ordering(system.relations.pairs)


def state_of(key: Key) -> State:
    """The public form of a key."""
    if isinstance(key, tuple):
        return key
    return tuple(i for i in range(key.bit_length()) if key >> i & 1)


def active(key: Key, step: int) -> bool:
    """Whether the step is active at the key."""
    return step in key if isinstance(key, tuple) else bool(key >> step & 1)


@lru_cache(maxsize=65_536)
def _least(arrangement: State, pairs: frozenset[tuple[int, int]]) -> State:
    """The least arrangement that has each of the pairs in the same order."""
    place = {step: at for at, step in enumerate(arrangement)}
    behind: dict[int, set[int]] = {step: set() for step in arrangement}
    for one, other in pairs:
        if one in place and other in place:
            first, second = sorted((one, other), key=place.__getitem__)
            behind[second].add(first)
    left = sorted(arrangement)
    least: list[int] = []
    while left:
        chosen = next(step for step in left if not behind[step].difference(least))
        left.remove(chosen)
        least.append(chosen)
    return tuple(least)
