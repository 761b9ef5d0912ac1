"""What a registry may remember of its past, and what becomes of that: models.

A `CellModel` is a sound registry of names with one small memory, a number below
`Behaviour.size`.  The behaviour says how operations move the memory and what it shows;
the same machine can then be built in real code with the memory in any hiding place.
`tests.zoo.sources` writes the code, from the same parameters and from nothing else of
this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from tests.zoo.model import (
    DONE,
    NAMES,
    Model,
    Reply,
    State,
    error,
    listed,
    with_step,
    without_step,
)

Steps = tuple[int, ...]

# A change of the registry: a step and whether it was made (else undone).
Change = tuple[int, bool]

Shows = Literal["look", "uses", "both", "nowhere"]


class Behaviour:
    """A memory that never moves and never shows."""

    @property
    def size(self) -> int:
        """How many values the memory takes."""
        return 2

    def refuses(self, memory: int, active: Steps, step: int) -> tuple[bool, int]:
        """Whether a step cannot be made now, and the memory after the attempt."""
        return False, memory

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        """The memory after a change; `active` are the steps after it."""
        return memory

    def told(self, memory: int, active: Steps) -> str:
        """What the memory adds to an answer."""
        return ""

    def asked(self, memory: int, active: Steps) -> tuple[str, int] | None:
        """The answer of the first use and the memory after it; None: as all uses."""
        return None


@dataclass(frozen=True)
class Again(Behaviour):
    """Counts how often a step was made; shows from the `limit`-th time on.

    Sound if removing it `forgets` the count and the limit is two or more.
    """

    step: int
    limit: int
    forgets: bool = False

    @property
    def size(self) -> int:
        return self.limit + 1

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        step, made = change
        if step != self.step:
            return memory
        if made:
            return min(memory + 1, self.limit)
        return 0 if self.forgets else memory

    def told(self, memory: int, active: Steps) -> str:
        return "!" if memory == self.limit else ""


@dataclass(frozen=True)
class Pattern(Behaviour):
    """Follows a sequence of changes; at its end it sticks, or it does not.

    Shows at the end while the step `unless` is not active.
    """

    pattern: tuple[Change, ...]
    sticks: bool
    unless: int | None = None

    @property
    def size(self) -> int:
        return len(self.pattern) + 1

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        if memory == len(self.pattern) and self.sticks:
            return memory
        past = (*self.pattern[:memory], change)
        # The longest end of the past that the pattern begins with.
        return next(
            length
            for length in range(min(len(past), len(self.pattern)), -1, -1)
            if past[len(past) - length :] == self.pattern[:length]
        )

    def told(self, memory: int, active: Steps) -> str:
        return "!" if memory == len(self.pattern) and self.unless not in active else ""


@dataclass(frozen=True)
class Mirror(Behaviour):
    """Sound: the memory follows from the active steps alone, and is shown."""

    weights: Steps
    modulus: int

    @property
    def size(self) -> int:
        return self.modulus

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        return sum(self.weights[step] for step in active) % self.modulus

    def told(self, memory: int, active: Steps) -> str:
        return f"+{memory}"


@dataclass(frozen=True)
class Stale(Behaviour):
    """Remembers how many of some steps are active, until a change forgets it.

    Sound if every change of one of these steps is among those that forget.
    """

    among: Steps
    forget: frozenset[Change]

    @property
    def size(self) -> int:
        return len(self.among) + 2

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        return 0 if change in self.forget else memory

    def asked(self, memory: int, active: Steps) -> tuple[str, int]:
        if not memory:
            memory = 1 + sum(step in active for step in self.among)
        return str(memory - 1), memory


@dataclass(frozen=True)
class Wedge(Behaviour):
    """A step is refused beside another; the attempt leaves something behind.

    That refuses it from then on (`blocks`) or shows; sound if undoing the other
    `heals` it and it only blocks.
    """

    step: int
    beside: int
    blocks: bool
    heals: bool
    leaves: bool = True

    def refuses(self, memory: int, active: Steps, step: int) -> tuple[bool, int]:
        if step != self.step:
            return False, memory
        if self.beside in active:
            return True, 1 if self.leaves else memory
        return self.blocks and memory == 1, memory

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        return 0 if self.heals and change == (self.beside, False) else memory

    def told(self, memory: int, active: Steps) -> str:
        return "" if self.blocks or not memory else "!"


@dataclass(frozen=True)
class Partial(Behaviour):
    """Undoing a step beside another leaves something of it.

    Making it again (`mends`) takes that up.  Sound if what is left never shows.
    """

    step: int
    beside: int
    mends: bool
    shows: bool = True

    def moved(self, memory: int, active: Steps, change: Change) -> int:
        if change == (self.step, False) and self.beside in active:
            return 1
        return 0 if change == (self.step, True) and self.mends else memory

    def told(self, memory: int, active: Steps) -> str:
        shown = self.shows and memory and self.step not in active
        return "!" if shown else ""


class CellModel(Model):
    """A registry of names with a memory that moves as the behaviour says.

    Every use asks whether one of the `targets` is active; the first one is answered
    by the behaviour, where it answers.
    """

    def __init__(
        self,
        behaviour: Behaviour,
        steps: int,
        targets: Sequence[int],
        shows: Shows,
    ) -> None:
        super().__init__(steps, len(targets))
        self.behaviour = behaviour
        self.targets = tuple(targets)
        self.shows = shows

    def fresh(self) -> State:
        return ((), 0)

    def do(self, state: State, step: int) -> Reply:
        active, memory = state
        refused, memory = self.behaviour.refuses(memory, active, step)
        if refused:
            return Reply((active, memory), error("Refused", NAMES[step]))
        active = with_step(active, step)
        memory = self.behaviour.moved(memory, active, (step, True))
        return Reply((active, memory), DONE)

    def undo(self, state: State, step: int) -> Reply:
        active, memory = state
        active = without_step(active, step)
        memory = self.behaviour.moved(memory, active, (step, False))
        return Reply((active, memory), DONE)

    def use(self, state: State, use: int) -> Reply:
        active, memory = state
        answered = self.behaviour.asked(memory, active) if use == 0 else None
        if answered is not None:
            answer, memory = answered
            return Reply((active, memory), answer)
        answer = "on" if self.targets[use] in active else "off"
        return Reply(state, answer + self.told(state, "uses"))

    def look(self, state: State) -> Reply:
        return Reply(state, listed(state[0]) + self.told(state, "look"))

    def told(self, state: State, where: str) -> str:
        active, memory = state
        shown = self.shows in (where, "both")
        return self.behaviour.told(memory, active) if shown else ""
