"""Registries as pure machines: what each registry of the zoo does, as mathematics.

A model has `steps` steps that are made and undone and `uses` uses.  A state is a value
(a tuple) whose first item is the active steps, ascending; whatever an undo handle
holds is part of it.  Every operation is a function from a state to a `Reply`: the
state after it, and what the caller sees of it.

Rules:
- a state is complete: two equal states have equal futures;
- a step whose answer is `DONE` was made (or undone); any other answer is an error, and
  the step stays as it was;
- nothing here knows the real registries of the zoo, nor the harness.
"""

from collections.abc import Hashable
from typing import Any, NamedTuple, TypeAlias

State: TypeAlias = tuple[Any, ...]
Answer: TypeAlias = Hashable

DONE: Answer = "done"

# Steps are named by letters in answers and in code.
NAMES = "abcdefgh"


class Reply(NamedTuple):
    """The state after an operation, and what it answered."""

    state: State
    answer: Answer


def error(kind: str, text: str) -> Answer:
    """What a caller sees of an exception: its class and its text."""
    return ("error", kind, text)


class Model:
    """A registry of `steps` steps and `uses` uses that never refuses anything."""

    # Whether collecting garbage can change the state.
    collects = False

    def __init__(self, steps: int, uses: int) -> None:
        self.steps = steps
        self.uses = uses

    def fresh(self) -> State:
        """The state of a fresh registry."""
        raise NotImplementedError

    def do(self, state: State, step: int) -> Reply:
        """Make a step that is not active."""
        raise NotImplementedError

    def undo(self, state: State, step: int) -> Reply:
        """Undo an active step with the handle that this state holds."""
        raise NotImplementedError

    def use(self, state: State, use: int) -> Reply:
        """Perform a use."""
        raise NotImplementedError

    def look(self, state: State) -> Reply:
        """Observe."""
        raise NotImplementedError

    def collect(self, state: State) -> State:
        """Collect garbage."""
        return state


def with_step(active: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The active steps with one more, ascending."""
    return tuple(sorted((*active, step)))


def without_step(active: tuple[int, ...], step: int) -> tuple[int, ...]:
    """The active steps with one less."""
    return tuple(each for each in active if each != step)


def listed(steps: tuple[int, ...]) -> str:
    """The names of steps as an observation shows them: `[a, c]`."""
    return "[" + ", ".join(NAMES[step] for step in steps) + "]"
