"""An expect file as a value: what was explored, and what is expected at each key.

True only here: what of a report is expected.  The header says what the numbers mean
(steps, uses, a pinned fact) and how much was explored (a size that must not shrink
unnoticed); the entries hold every state and every failing step.

Rules:
- entries are in the order of their keys, each key once;
- above `MOST_IN_FULL` states only the corners (nothing, single steps, pairs, all) are
  kept in full, the others as digests;
- nothing here depends on time, place or the number of processes.

When you add a field to the header, add it to `render`, `parse` and `compare`.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

from harness.expectations.body import Body, digest_of, pairs_of
from harness.expectations.key import Key
from harness.outcome import Report

# Eight steps; their 256 states of some ten lines each are still read by a person.
MOST_IN_FULL = 256

Entry: TypeAlias = tuple[Key, Body]


@dataclass(frozen=True, slots=True)
class Document:
    """What is expected of one scenario; `transitions` is what its strategy executes."""

    scenario: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    pinned: str | None
    strategy: str
    guarantee: tuple[str, ...]
    transitions: int
    entries: tuple[Entry, ...]

    @property
    def ordered(self) -> bool:
        """Whether states are told apart by the order of activation."""
        return self.pinned is not None

    @property
    def states(self) -> int:
        """How many states there are."""
        return sum(key.fails is None for key, _ in self.entries)

    @property
    def failing(self) -> int:
        """How many transitions fail."""
        return len(self.entries) - self.states

    @property
    def size(self) -> str:
        """What was explored, as one line."""
        return (
            f"{_count(self.states, 'state')}, "
            f"{_count(self.transitions, 'transition')}, "
            f"{_count(self.failing, 'failing transition')}"
        )

    def header(self) -> dict[str, tuple[str, ...]]:
        """The header, field by field, as texts."""
        return {
            "scenario": (self.scenario,),
            "steps": self.steps,
            "uses": self.uses,
            "pinned": () if self.pinned is None else (self.pinned,),
            "strategy": (self.strategy,),
            "guarantee": self.guarantee,
            "explored": (self.size,),
        }


def document_of(report: Report) -> Document:
    """What a report makes one expect from now on."""
    found = report.exploration
    full = len(found.states) <= MOST_IN_FULL
    entries = [
        (key, body if full or key.is_corner(len(report.steps)) else digest_of(body))
        for key, body in _bodies(report)
    ]
    return Document(
        scenario=report.scenario,
        steps=report.steps,
        uses=report.uses,
        pinned=report.pinned,
        strategy=found.strategy,
        guarantee=tuple(filter(None, found.guarantee.split("; "))),
        transitions=found.executed.transitions,
        entries=tuple(sorted(entries, key=lambda entry: entry[0].rank)),
    )


def _bodies(report: Report) -> Iterator[Entry]:
    for state, observation in report.exploration.states.items():
        yield Key(state), pairs_of(observation)
    found = report.exploration
    # A step fails where it is not active; where it is, its undo was refused.
    for refused in (found.failures, found.refusals):
        for (state, step), failure in refused.items():
            yield Key(state, step), pairs_of(failure)


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
