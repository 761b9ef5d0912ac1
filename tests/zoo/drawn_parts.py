"""Registries of groups of names that are independent, or share a place.

In the other classes of the zoo each operation asks for all names, so that all steps are
one part.  Here each group has a memo of its own in a dict.  Whether a step forgets the
memo, and whether it accesses a place of another group, is drawn from a seed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Literal

from everyorder.harness import Scenario, step, use

Access = Literal["", "forgets", "refuses", "remembers"]

GROUPS = 2


@dataclass(frozen=True, slots=True)
class DrawnStep:
    """A step: its group, what it forgets, and how it accesses the name `other`."""

    name: str
    group: int
    forgets_on_add: bool
    forgets_on_remove: bool
    access: Access
    other: "DrawnStep | None"


class Refused(Exception):
    """The other name is there."""


class GroupedNames:
    """Names, and the number of names of each group that was asked for."""

    def __init__(self) -> None:
        self.names: dict[str, int] = {}
        self.memo: dict[int, int] = {}

    def add(self, drawn: DrawnStep) -> Callable[[], None]:
        """Add the name of a step, and return a function that removes it."""
        other = drawn.other
        if other is not None and drawn.access == "refuses" and other.name in self.names:
            raise Refused(other.name)
        self.names[drawn.name] = drawn.group
        if drawn.forgets_on_add:
            self.memo.pop(drawn.group, None)
        if other is not None and drawn.access == "forgets":
            self.memo.pop(other.group, None)
        if other is not None and drawn.access == "remembers":
            self.memo[drawn.group] = 7 if other.name in self.names else 8
        return partial(self.remove, drawn)

    def remove(self, drawn: DrawnStep) -> None:
        """Remove the name of a step."""
        del self.names[drawn.name]
        if drawn.forgets_on_remove:
            self.memo.pop(drawn.group, None)

    def count(self, group: int, members: tuple[str, ...]) -> int:
        """Return the number of names of a group, from the memo if it is there."""
        if group not in self.memo:
            self.memo[group] = sum(name in self.names for name in members)
        return self.memo[group]


def drawn_steps(seed: int) -> list[DrawnStep]:
    """Draw three to five steps in two groups."""
    random = Random(f"parts/{seed}")
    steps: list[DrawnStep] = []
    # One registry in three is right within its groups, and one in two between them.
    careful, apart = seed % 3 == 0, seed % 2 == 0
    for number in range(random.randint(3, 5)):
        others = [each for each in steps if each.group != number % GROUPS]
        access: Access = ""
        if others and not apart and random.random() < 1 / 2:
            access = random.choice(("forgets", "refuses", "remembers"))
        steps.append(
            DrawnStep(
                "abcde"[number],
                number % GROUPS,
                careful or random.random() < 5 / 6,
                careful or random.random() < 5 / 6,
                access,
                random.choice(others) if access else None,
            )
        )
    return steps


def drawn_scenario(seed: int) -> Scenario:
    """Return the scenario of a seed: a step for each name, a use for each group.

    No observation reads all names, which would make all steps one part.  In one of
    three the first group counts a name of the other one, too.
    """
    drawn = drawn_steps(seed)
    members = [
        tuple(each.name for each in drawn if each.group == group)
        for group in range(GROUPS)
    ]
    if seed % 3 == 1:
        members[0] += members[1][:1]
    return Scenario(
        *(step(f"add({each.name!r})", partial(_add, each)) for each in drawn),
        uses=[
            use(f"count({group})", partial(_count, group, members[group]))
            for group in range(GROUPS)
        ],
        create=GroupedNames,
        name=f"parts/{seed}",
    )


def _add(drawn: DrawnStep, registry: GroupedNames) -> Callable[[], None]:
    return registry.add(drawn)


def _count(group: int, members: tuple[str, ...], registry: GroupedNames) -> int:
    return registry.count(group, members)
