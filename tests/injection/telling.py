"""What was interrupted, how often, by which seed, and what was wrong after it.

True only here: how a test says so, and how the leg says it at its end, whichever
processes the tests ran in.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# The name of the property of a test.
NAME = "interrupted"
Record = Callable[[str, object], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An operation that was interrupted.

    Attributes:
        operation: its name, and the way it was interrupted.
        points: at how many points it was, each once; `of` so many there are.
        rounds: of a real timer.
        came: how many of the rounds were interrupted.
        seed: by which points, or times, were chosen.
        failures: what was wrong after it.
    """

    operation: str
    points: int = 0
    of: int = 0
    rounds: int = 0
    came: int = 0
    seed: int | None = None
    failures: int = 0

    def __str__(self) -> str:
        parts = []
        if self.points:
            parts.append(f"{self.points} of {self.of} points")
        if self.rounds:
            parts.append(f"{self.rounds} rounds, {self.came} interrupted")
        if self.seed is not None:
            parts.append(f"seed {self.seed}")
        return f"{self.operation}: {', '.join(parts)}: {self.failures} failures"


def nobody(name: str, value: object) -> None:
    """Keeps nothing."""


def tell(record: Record, told: Told) -> None:
    """Say it, and keep it for the end of the leg."""
    print(told)
    record(NAME, asdict(told))


def kept(properties: Sequence[tuple[str, Any]]) -> list[Told]:
    """What a test has kept."""
    return [Told(**value) for name, value in properties if name == NAME]


def total(all_told: Sequence[Told]) -> str:
    """All of it in one line."""
    return (
        f"interrupted: {len(all_told)} operations,"
        f" {sum(each.points for each in all_told)} points,"
        f" {sum(each.rounds for each in all_told)} rounds,"
        f" {sum(each.seed is not None for each in all_told)} seeds,"
        f" {sum(each.failures for each in all_told)} failures"
    )
