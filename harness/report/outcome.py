"""The outcome of one scenario: a report, or the reason why there is none.

The engine speaks of operations; a `Report` knows the text of each and the verdict that
follows from the violations.

Of a scenario, or a whole module, that was not explored there is an `Unexplored`: why,
as one text, which stands in tables and pages beside the reports, so that a broken
scenario is never mistaken for a missing one.  Where the process that explored died or
stood still, the operation and the stack are told.  What skipped itself is no failure,
and is told all the same.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, get_args

from everyorder.harness.engine.protocol import (
    EVERY_ORDER,
    History,
    Ordering,
    State,
    encode,
    state_of,
)
from everyorder.harness.engine.result import Counts, Exploration, Violation

Verdict: TypeAlias = Literal[
    "not fresh",
    "nondeterminism",
    "law",
    "hidden",
    "order",
    "unpinned",
    "cut short",
    "vacuous",
    "pinned",
    "holds",
    "proven",
]

# Most severe first.  "order" covers every kind of dependence on history: a wedged
# step, an answer that a use or a look changes, an error that varies, a leak.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# Kinds of violations that are verdicts of their own; all others are "order".
_OWN: tuple[Verdict, ...] = ("not fresh", "nondeterminism", "law", "hidden")


# What is known before anything was explored.
NO_EXPLORATION = Exploration(
    strategy="",
    guarantee="",
    assumptions=(),
    skipped=(),
    states={},
    failures={},
    executed=Counts(),
    planned=0,
    violations=(),
    complete=False,
    seconds=0.0,
)


def operation_line(
    steps: Sequence[str], uses: Sequence[str], operation: int, *, undo: bool
) -> str:
    """One operation as a runnable line, by the texts of the steps and of the uses."""
    if operation < len(steps):
        name = f"step_{operation + 1}"
        return f"{name}.close()" if undo else f"{name} = {steps[operation]}"
    operation -= len(steps)
    if operation < len(uses):
        return uses[operation]
    return "observe()" if operation == len(uses) else "gc.collect()"


@dataclass(frozen=True, slots=True)
class Report:
    """One explored scenario."""

    scenario: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    order_dependent: str | None
    exploration: Exploration
    digest: str
    # Pairs of steps whose order may show.
    pairs: tuple[tuple[int, int], ...] = ()
    # Steps that are done again while they are active.
    again: frozenset[int] = frozenset()

    @property
    def verdict(self) -> Verdict:
        """The most severe thing that can be said."""
        found = self.exploration
        kinds = {violation.kind for violation in found.violations}
        if len(kinds) > 1:
            # What was refuted the same way each time is no matter of chance.
            kinds.discard("nondeterminism")
        for own in _OWN:
            if own in kinds:
                return own
        if kinds:
            return "unpinned" if kinds == {"unpinned"} else "order"
        if not found.complete:
            return "cut short"
        if found.vacuous:
            return "vacuous"
        if self.order_dependent is not None:
            return "pinned"
        return "proven" if found.proven else "holds"

    @property
    def assumes(self) -> tuple[str, ...]:
        """The assumptions of a proof besides those of every proof.

        Empty where nothing was proven.
        """
        found = self.exploration
        if not found.proven:
            return ()
        closure = found.closure
        unread = () if closure is None else closure.unread
        texts = [f"the order of {path} is never read" for path in unread]
        texts += [each.text for each in found.caveats if each.kind == "assumed"]
        return tuple(texts)

    @property
    def bounds(self) -> tuple[str, ...]:
        """The caveats between the explored states and a proof."""
        return tuple(
            each.text for each in self.exploration.caveats if each.kind != "assumed"
        )

    @property
    def ordering(self) -> Ordering:
        """Which orders may show."""
        if self.order_dependent is not None:
            return EVERY_ORDER
        return Ordering(frozenset(self.pairs))

    @property
    def pinned(self) -> str | None:
        """Which orders are meant to show, as the scenario says it; None for none."""
        if self.order_dependent is not None or not self.pairs:
            return self.order_dependent
        named = (f"{self.steps[one]} and {self.steps[two]}" for one, two in self.pairs)
        return f"the order of {', of '.join(named)}"

    @property
    def passed(self) -> bool:
        """Whether everything planned was explored and nothing was violated."""
        return self.verdict in ("pinned", "holds", "proven")

    def line(self, operation: int, active: bool = False) -> str:
        """One operation as a runnable line; of an active step its undo, if any."""
        undo = active and operation not in self.again
        return operation_line(self.steps, self.uses, operation, undo=undo)

    def lines(self, history: History) -> tuple[str, ...]:
        """A history as runnable lines; a step that fails is not undone."""
        ordering = self.ordering
        found = self.exploration
        key = ordering.root
        shown = []
        for operation in history:
            active = state_of(key)
            shown.append(self.line(operation, operation in active))
            if operation >= len(self.steps):
                continue
            if operation in active and operation in self.again:
                continue
            refused = found.refusals if operation in active else found.failures
            if (active, operation) not in refused:
                key = ordering.toggled(key, operation)
        return tuple(shown)

    def state_name(self, state: State) -> str:
        """`{1 3}`, or `3 then 1` if order counts: the active steps, counted from 1."""
        if self.ordering.counts and len(state) > 1:
            return " then ".join(str(step + 1) for step in state)
        return "{" + " ".join(str(step + 1) for step in state) + "}"

    def replay_id(self, violation: Violation) -> str:
        """At most 24 characters from which `everyorder replay` plays the history."""
        return self.history_id(violation.shortest or violation.history)

    def history_id(self, history: History) -> str:
        """The replay id of any history."""
        return encode(self.digest, self.operations, history)

    @property
    def operations(self) -> int:
        """The number of operations: steps, uses, the look, and collecting garbage."""
        return len(self.steps) + len(self.uses) + 2

    def summary(self) -> str:
        """One line: name, verdict, how much was explored and how."""
        exploration = self.exploration
        return (
            f"{self.scenario}: {self.verdict} ({exploration.strategy}; "
            f"{len(exploration.states)} states, "
            f"{exploration.executed.transitions:,} transitions, "
            f"{exploration.seconds:.2f} s)"
        )


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
        """Place and reason, then the operation, those before it, and the stack."""
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
        """The same as JSON data."""
        return {
            "scenario": self.scenario,
            "verdict": self.verdict,
            "where": self.where,
            "reason": self.reason,
            "operation": self.operation,
            "history": list(self.history),
            "stack": list(self.stack),
        }


def failure_counts(unexplored: Iterable[Unexplored]) -> list[str]:
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
