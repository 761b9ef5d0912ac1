"""A scenario, or a whole module, of which there is no report.

True only here: why nothing was explored, as one text; it stands in tables and pages
beside the reports, so that a broken scenario is never mistaken for a missing one.
Where the process that explored died or stood still, the operation and the stack are
told.  What skipped itself is no failure, and is told all the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

Failure: TypeAlias = Literal["crashed", "hung", "failed", "skipped"]

# Table cells, and the same after the name of a scenario or after a number.
LABELS: Mapping[Failure, str] = {
    "crashed": "CRASHED",
    "hung": "HUNG",
    "failed": "FAILED",
    "skipped": "skipped",
}
SENTENCES: Mapping[Failure, str] = {
    "crashed": "crashed",
    "hung": "hung",
    "failed": "not explored",
    "skipped": "skipped",
}

# More of a history or a stack explains no more; JSON has all of it.
MOST_LINES = 12


@dataclass(frozen=True, slots=True)
class Unexplored:
    """`scenario` is its path, or the file's; `where` is FILE:LINE as far as known.

    `operation` is what was being done, as a runnable line, "" between two operations;
    where something was raised it is the last one that had begun.  `history` has the
    operations before that, from a fresh system as far as they are known.  `stack` has
    the frames of a process that died or hung, innermost first.
    """

    scenario: str
    where: str
    reason: str
    verdict: Failure = "failed"
    operation: str = ""
    history: tuple[str, ...] = ()
    stack: tuple[str, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether something is wrong with it; it may have skipped itself."""
        return self.verdict != "skipped"

    @property
    def label(self) -> str:
        """The verdict as a table cell."""
        return LABELS[self.verdict]

    @property
    def sentence(self) -> str:
        """The verdict after the scenario's name."""
        return SENTENCES[self.verdict]

    def render(self) -> str:
        """Where and why, then the operation, those before it, and the stack."""
        lines = [f"{self.where or self.scenario}: {self.reason}"]
        if self.operation:
            words = "in or behind" if self.verdict == "failed" else "in"
            lines += [words, f"    {self.operation}"]
        if self.history:
            lines += ["after", *_last(self.history)]
        if self.stack:
            lines += ["stack, innermost call first:", *_first(self.stack)]
        return "\n".join(lines)

    def data(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "scenario": self.scenario,
            "verdict": self.verdict,
            "where": self.where,
            "reason": self.reason,
            "operation": self.operation,
            "history": list(self.history),
            "stack": list(self.stack),
        }


def counted(unexplored: Iterable[Unexplored]) -> list[str]:
    """`1 crashed`, `2 not explored`: one for each verdict that occurs."""
    counts = Counter(each.verdict for each in unexplored)
    return [f"{counts[v]} {SENTENCES[v]}" for v in SENTENCES if counts[v]]


def _first(lines: tuple[str, ...]) -> list[str]:
    shown = [f"    {line}" for line in lines[:MOST_LINES]]
    rest = len(lines) - MOST_LINES
    return [*shown, f"    ... and {rest} more"] if rest > 0 else shown


def _last(lines: tuple[str, ...]) -> list[str]:
    shown = [f"    {line}" for line in lines[-MOST_LINES:]]
    rest = len(lines) - MOST_LINES
    return [f"    ... {rest} before", *shown] if rest > 0 else shown
