"""Behaviours drawn from a seed: faulty ones and sound ones, as the oracle says.

What is drawn is drawn again until the oracle agrees with what was wished for, so a
wish for a fault is never answered by a pattern that cannot occur.
"""

from collections.abc import Callable
from random import Random
from typing import Literal, TypeAlias

from tests.zoo.behaviours import (
    Again,
    Behaviour,
    CellModel,
    Change,
    Mirror,
    Partial,
    Pattern,
    Shows,
    Stale,
    Wedge,
)
from tests.zoo.model import State
from tests.zoo.oracle import truth

Sort: TypeAlias = Literal["order", "again", "sticky", "stale", "wedge", "partial"]
SORTS: tuple[Sort, ...] = ("order", "again", "sticky", "stale", "wedge", "partial")

# More than were ever needed; the bound only ends what would never end.
DRAWS = 500


class VolatileModel(CellModel):
    """A `CellModel` whose memory is garbage: collecting puts it back to 0."""

    collects = True

    def collect(self, state: State) -> State:
        return (state[0], 0)


def draw_model(
    random: Random,
    sort: Sort | None,
    *,
    faulty: bool,
    capacity: int = 6,
    volatile: bool = False,
    depth: int | None = None,
) -> CellModel:
    """A model whose memory has at most `capacity` values; of any sort if None.

    `depth` is the number of changes in a pattern, 1 to 4, or what decides how often a
    step is made; drawn, too, if None.
    """
    for _ in range(DRAWS):
        chosen: Sort = random.choice(SORTS) if sort is None else sort
        steps = random.choice((2, 3, 3, 4))
        targets = [random.randrange(steps) for _ in range(random.randrange(3))]
        if chosen == "stale" and not targets:
            targets = [0]
        shows = random.choice(_shows(targets, chosen))
        deep = random.randrange(1, 5) if depth is None else depth
        behaviour = _FAULTY[chosen](random, steps, deep)
        if not faulty:
            behaviour, shows = _sound(random, chosen, steps, behaviour, shows)
        if behaviour.size > capacity:
            continue
        made = (VolatileModel if volatile else CellModel)(
            behaviour, steps, targets, shows
        )
        if truth(made).verdict == ("faulty" if faulty else "correct"):
            return made
    raise AssertionError("a pattern of every sort fits into two values")


def _shows(targets: list[int], sort: Sort) -> tuple[Shows, ...]:
    """Where a memory can show: in uses only if one has an answer of its own."""
    askers = len(targets) - (sort == "stale")
    return ("look", "look", "uses", "both") if askers > 0 else ("look",)


def _sound(
    random: Random, sort: Sort, steps: int, faulty: Behaviour, shows: Shows
) -> tuple[Behaviour, Shows]:
    """A sound one like this: mended, or a memory that shows nothing of the past."""
    if random.random() < 1 / 3:
        return faulty, "nowhere"
    if sort == "again" and random.random() < 1 / 2:
        return Again(random.randrange(steps), random.randrange(2, 5), True), shows
    if sort == "stale":
        return _stale(random, steps, lost=0), shows
    if sort == "wedge":
        step, beside = random.sample(range(steps), 2)
        return Wedge(step, beside, blocks=True, heals=True), shows
    weights = tuple(random.randrange(1, 6) for _ in range(steps))
    return Mirror(weights, random.randrange(2, 7)), shows


def _walk(random: Random, steps: int, length: int) -> tuple[Change, ...]:
    """Changes that can follow each other, from some active steps."""
    active = {step for step in range(steps) if random.random() < 1 / 4}
    changes = []
    for _ in range(length):
        step = random.randrange(steps)
        changes.append((step, step not in active))
        active ^= {step}
    return tuple(changes)


def _order(random: Random, steps: int, depth: int) -> Behaviour:
    return Pattern(_walk(random, steps, depth), sticks=False)


def _sticky(random: Random, steps: int, depth: int) -> Behaviour:
    unless = random.choice((None, random.randrange(steps)))
    return Pattern(_walk(random, steps, depth), True, unless)


def _again(random: Random, steps: int, depth: int) -> Behaviour:
    return Again(random.randrange(steps), 2 + depth % 3)


def _forgetful(random: Random, steps: int, depth: int) -> Behaviour:
    return _stale(random, steps)


def _stale(random: Random, steps: int, lost: int | None = None) -> Behaviour:
    """A cache; `lost` changes of those that should forget do not."""
    among = tuple(sorted(random.sample(range(steps), random.randrange(1, steps + 1))))
    needed = [(step, made) for step in among for made in (True, False)]
    lost = random.randrange(1, len(needed) + 1) if lost is None else lost
    forget = set(random.sample(needed, len(needed) - lost))
    others = [(step, True) for step in range(steps) if step not in among]
    forget.update(change for change in others if random.random() < 1 / 2)
    return Stale(among, frozenset(forget))


def _wedge(random: Random, steps: int, depth: int) -> Behaviour:
    step, beside = random.sample(range(steps), 2)
    blocks = random.random() < 1 / 2
    heals = not blocks and random.random() < 1 / 2
    return Wedge(step, beside, blocks, heals)


def _partial(random: Random, steps: int, depth: int) -> Behaviour:
    step, beside = random.sample(range(steps), 2)
    return Partial(step, beside, mends=random.random() < 1 / 2)


_FAULTY: dict[Sort, Callable[[Random, int, int], Behaviour]] = {
    "order": _order,
    "again": _again,
    "sticky": _sticky,
    "stale": _forgetful,
    "wedge": _wedge,
    "partial": _partial,
}
