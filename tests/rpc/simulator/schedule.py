"""Schedules: what is done to a world, drawn from a seed, cut down, and named.

True only here: which actions there are and how likely.  An action holds numbers that
are made sense of when it is its turn ("the third of what is held, if anything is"), so
any part of a schedule is a schedule.

A schedule is named by a short text, from which it is made again: the version of the
drawing, the seed, and, where some actions are left out, those that are kept.
"""

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

# To be changed with anything that changes what a seed means.
VERSION = 2
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"

# Actions and their weights; each schedule takes some of them only, with weights of its
# own (swarm testing): what is always mixed is never alone.
WEIGHTS = {
    "call": 10,
    "remote": 10,
    "fetch": 5,
    "drop": 9,
    "own": 3,
    "disown": 3,
    "cancel": 2,
    "weather": 6,
    "calm": 1,
    "cut": 2,
    "heal": 2,
    "kill": 1,
    "restart": 2,
    "freeze": 1,
    "thaw": 2,
    "leave": 1,
    "intrude": 1,
    "finish": 1,
}
ALWAYS = frozenset({"call", "remote", "drop"})
# In how many schedules those are that leave others little to do.
RARE = {"finish": 0.15, "leave": 0.3, "intrude": 0.3}


# The weights of scenes; where channels come and go, most is rare.
SCENES = (1, 3, 1, 1, 2, 3, 2, 2, 3, 1)
# Scenes that need four workers.
CROWDED = {1, 2}
# In so many schedules scenes follow one another, and everybody is there for them.
STAGED = 0.3


class Action(NamedTuple):
    """What is done, so long after the action before, with some numbers."""

    after: float
    kind: str
    a: int
    b: int
    c: int
    d: int

    def __repr__(self) -> str:
        numbers = f"{self.a}, {self.b}, {self.c}, {self.d}"
        return f"+{self.after:g}s {self.kind}({numbers})"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Actions on so many workers; `kept` are those of the seed's that are left."""

    seed: int
    workers: int
    actions: tuple[Action, ...]
    kept: tuple[int, ...]

    @property
    def name(self) -> str:
        """The short text that it is made of again."""
        text = f"{VERSION}-{_based(self.seed)}"
        everything = _drawn(self.seed)[1]
        if len(self.kept) == len(everything):
            return text
        return f"{text}-{_based(sum(1 << place for place in self.kept))}"

    def only(self, kept: tuple[int, ...]) -> "Schedule":
        """A part of it; what is left keeps its time."""
        workers, everything = _drawn(self.seed)
        return Schedule(self.seed, workers, _part(everything, kept), kept)


def drawn(seed: int) -> Schedule:
    """The schedule of a seed."""
    workers, actions = _drawn(seed)
    return Schedule(seed, workers, actions, tuple(range(len(actions))))


def named(name: str) -> Schedule:
    """The schedule of a name.

    Raises:
        ValueError: it is none, or one of another version.
    """
    version, seed, *kept = name.split("-")
    if version != str(VERSION) or len(kept) > 1:
        raise ValueError(f"{name} is no schedule of version {VERSION}")
    schedule = drawn(int(seed, 36))
    if not kept:
        return schedule
    mask = int(kept[0], 36)
    places = tuple(place for place in schedule.kept if mask >> place & 1)
    return schedule.only(places)


def shrunk(schedule: Schedule, fails: Callable[[Schedule], bool]) -> Schedule:
    """The smallest part of a schedule that is found to fail as well.

    Delta debugging: parts are left out, ever smaller ones, until no single action can
    be left out any more.
    """
    kept, size = schedule.kept, max(1, len(schedule.kept) // 2)
    while True:
        start, less = 0, False
        while start < len(kept):
            part = schedule.only(kept[:start] + kept[start + size :])
            if fails(part):
                kept, less = part.kept, True
            else:
                start += size
        if size == 1 and not less:
            return schedule.only(kept)
        size = max(1, size // 2)


def _part(actions: tuple[Action, ...], kept: tuple[int, ...]) -> tuple[Action, ...]:
    """Some of the actions, each at its time."""
    part, after = [], 0.0
    places = frozenset(kept)
    for place, action in enumerate(actions):
        after += action.after
        if place in places:
            part.append(action._replace(after=after))
            after = 0.0
    return tuple(part)


def _drawn(seed: int) -> tuple[int, tuple[Action, ...]]:
    random = Random(seed)
    if random.random() < STAGED:
        return 4, _staged(random)
    # Two of the others in three have scenes, in the middle of everything else.
    scenes = random.choices(range(len(SCENES)), SCENES, k=random.choice((0, 1, 2)))
    workers = 4 if CROWDED & {*scenes} else random.choice((2, 3, 3, 3, 4))
    kinds = [
        kind
        for kind in WEIGHTS
        if kind in ALWAYS or random.random() < RARE.get(kind, 0.65)
    ]
    weights = [WEIGHTS[kind] * random.choice((0.3, 1, 1, 3)) for kind in kinds]
    # Some schedules are one burst, others have time to lose each other.
    pace = random.choice((0.004, 0.01, 0.1, 0.3))
    slow = random.choice((0.02, 0.1, 0.2))
    actions = []
    for _ in range(random.choice((12, 24, 36, 48, 60))):
        after = random.expovariate(1 / pace)
        if random.random() < slow:
            after += random.choice((0.2, 1.0, 2.2, 6.0))
        (kind,) = random.choices(kinds, weights)
        a, b, c, d = (random.randrange(1 << 16) for _ in range(4))
        actions.append(Action(round(after, 4), kind, a, b, c, d))
    for scene in scenes:
        place = random.randrange(len(actions))
        actions.insert(
            place, Action(0.01, "scene", scene, 0, 0, random.randrange(1 << 16))
        )
    return workers, tuple(actions)


def _staged(random: Random) -> tuple[Action, ...]:
    """Scenes, one after the other, and little else."""
    actions = []
    for scene in random.choices(range(len(SCENES)), SCENES, k=random.choice((2, 3, 4))):
        after = random.choice((0.1, 5.0, 6.0, 7.0))
        actions.append(Action(after, "scene", scene, 1, 0, random.randrange(1 << 16)))
        for _ in range(random.choice((0, 0, 2, 6))):
            kind = random.choice(("call", "remote", "fetch", "drop"))
            a, b, c, d = (random.randrange(1 << 16) for _ in range(4))
            actions.append(Action(0.1, kind, a, b, c, d))
    return (*actions, Action(7.0, "calm", 0, 0, 0, 0))


def _based(number: int) -> str:
    digits = ""
    while True:
        number, digit = divmod(number, 36)
        digits = _DIGITS[digit] + digits
        if not number:
            return digits
