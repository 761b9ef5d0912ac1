"""The outcome of one scenario: a report, or the reason why there is none.

The engine uses numbers of operations; a `Report` adds the text of each and the verdict
that follows from the violations.

A scenario or module that was not explored has an `Unexplored` with the reason as one
text, which tables and pages show together with the reports, so that a broken scenario
is never mistaken for a missing one. If the exploring process died or hung, it also has
the operation and the stack. A scenario that skipped itself is not a failure, and is
also listed.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias, get_args

from everyorder.harness.base.columns import WIDTH, wrap_lines
from everyorder.harness.base.place import Place
from everyorder.harness.engine.protocol import (
    EVERY_ORDER,
    History,
    Key,
    Operations,
    Ordering,
    Relations,
    State,
    state_of,
)
from everyorder.harness.engine.replay_id import encode
from everyorder.harness.engine.result import Counts, Exploration, Violation
from everyorder.harness.report.observation import visible

Verdict: TypeAlias = Literal[
    "not fresh",
    "nondeterminism",
    "law",
    "hidden",
    "order",
    "unpinned",
    "cut short",
    "typo",
    "vacuous",
    "pinned",
    "holds",
    "proven",
]

# Most severe first. "order" covers every kind of dependence on history: a wedged step,
# a use or a look that changes an answer, an error that varies, a leak.
VERDICTS: tuple[Verdict, ...] = get_args(Verdict)

# Kinds of violations that are also verdicts; all others are "order".
_OWN: tuple[Verdict, ...] = ("not fresh", "nondeterminism", "law", "hidden")


# The exploration of a scenario before anything was explored.
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
    """Return one operation as a runnable line, from the texts of the steps and uses."""
    if operation < len(steps):
        name = f"step_{operation + 1}"
        return f"{name}.close()" if undo else f"{name} = {steps[operation]}"
    operation -= len(steps)
    if operation < len(uses):
        return uses[operation]
    return "observe()" if operation == len(uses) else "gc.collect()"


# The functions that render a report, by `register_renderer`.
_RENDERERS: dict[str, Callable[..., str]] = {}


def register_renderer(
    form: Literal["text", "html"], render: Callable[..., str]
) -> None:
    """Set the function that renders a report in a form.

    The files with the words need the verdict, so they are above this one; they call
    this when their package is imported, as it is before any of its files.
    """
    _RENDERERS[form] = render


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """The result of one explored scenario.

    It prints as one line; `render()` returns the whole text, and notebooks show it.
    """

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
    # The steps that an operation ends.
    ends: Mapping[int, frozenset[int]] = field(default_factory=dict)
    # What the scenario expects: None for its expect file, a text, or False for nothing.
    expect: str | Literal[False] | None = None
    # The call that has this text.
    place: Place | None = None
    # The normalisers of the observed texts, with their versions.
    normalisers: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<Report of {self.scenario}: {self.verdict}>"

    def render(self, *, width: int = WIDTH, verbose: bool = False) -> str:
        """Return the outcome as `everyorder run` prints it: first one sentence.

        Args:
            width: the number of columns for sentences and evidence.
            verbose: True for the steps, strategies, guarantees and counts, too.
        """
        return _RENDERERS["text"](self, width=width, verbose=verbose)

    def _repr_html_(self) -> str:
        """Return the outcome for a notebook."""
        return _RENDERERS["html"](self)

    @property
    def verdict(self) -> Verdict:
        """Return the most severe verdict that the exploration supports."""
        exploration = self.exploration
        kinds = {violation.kind for violation in exploration.violations}
        if len(kinds) > 1:
            # A violation that was confirmed in the same way each time is not due to
            # chance.
            kinds.discard("nondeterminism")
        for own in _OWN:
            if own in kinds:
                return own
        if kinds:
            return "unpinned" if kinds == {"unpinned"} else "order"
        if not exploration.complete:
            return "cut short"
        if exploration.vacuous:
            slip = any(each.is_slip for each in exploration.vacuous)
            return "typo" if slip else "vacuous"
        if self.order_dependent is not None:
            return "pinned"
        return "proven" if exploration.proven else "holds"

    @property
    def assumes(self) -> tuple[str, ...]:
        """Return the assumptions of a proof in addition to those of every proof.

        Empty if nothing was proven.
        """
        exploration = self.exploration
        if not exploration.proven:
            return ()
        closure = exploration.closure
        unread = () if closure is None else closure.unread
        texts = [f"the order of {path} is never read" for path in unread]
        texts += [each.text for each in exploration.caveats if each.kind == "assumed"]
        return tuple(texts)

    @property
    def bounds(self) -> tuple[str, ...]:
        """Return the caveats between the explored states and a proof."""
        return tuple(
            each.text for each in self.exploration.caveats if each.kind != "assumed"
        )

    @property
    def ordering(self) -> Ordering:
        """Return the orders that may show."""
        if self.order_dependent is not None:
            return EVERY_ORDER
        return Ordering(frozenset(self.pairs))

    @property
    def pinned(self) -> str | None:
        """Return the declaration of the orders that may show, or None."""
        if self.order_dependent is not None or not self.pairs:
            return self.order_dependent
        named = (f"{self.steps[one]} and {self.steps[two]}" for one, two in self.pairs)
        return f"the order of {', of '.join(named)}"

    @property
    def passed(self) -> bool:
        """Return True if everything planned was explored and nothing was violated."""
        return self.verdict in ("pinned", "holds", "proven")

    def line(self, operation: int, active: bool = False) -> str:
        """Return one operation as a runnable line; for an active step, its undo."""
        undo = active and operation not in self.again
        return operation_line(self.steps, self.uses, operation, undo=undo)

    def violation_lines(self, violation: Violation) -> tuple[str, ...]:
        """Return the shown history of a violation as it was replayed."""
        return self._played_lines(violation.shown, violation.undos)

    def other_lines(self, violation: Violation) -> tuple[str, ...]:
        """Return the second history of hidden state as it was replayed."""
        return self._played_lines(violation.other or (), violation.other_undos)

    def reference_lines(self, violation: Violation) -> tuple[str, ...]:
        """Return the history that a violation is compared with, as it was replayed."""
        return self._played_lines(violation.reference or (), violation.reference_undos)

    def _played_lines(
        self, history: History, undos: frozenset[int] | None
    ) -> tuple[str, ...]:
        if undos is None:
            return self.lines(history)
        return tuple(
            operation_line(self.steps, self.uses, operation, undo=at in undos)
            for at, operation in enumerate(history)
        )

    def lines(self, history: History) -> tuple[str, ...]:
        """Return a history as runnable lines; a step that always fails is not undone.

        If a step fails only sometimes, the history decides: see `violation_lines`.
        """
        exploration = self.exploration
        key = self.ordering.root
        lines = []
        for operation in history:
            active = state_of(key)
            lines.append(self.line(operation, operation in active))
            undo = operation in active and operation not in self.again
            refused = exploration.refusals if undo else exploration.failures
            if (active, operation) not in refused:
                key = self.after(key, operation)
        return tuple(lines)

    def after(self, key: Key, operation: int) -> Key:
        """Return the key after an operation that succeeded at a key."""
        relations = Relations(again=self.again, ends=self.ends)
        operations = Operations(len(self.steps), len(self.uses), relations)
        return operations.after(key, operation, self.ordering)

    def read_lines(self, lines: Sequence[str]) -> tuple[tuple[int, bool], ...]:
        """Read runnable lines: the operation of each, and True if it undoes a step.

        Raises:
            KeyError: a line is not an operation of the scenario.
        """
        moves: dict[str, tuple[int, bool]] = {}
        for operation in range(self.operations):
            for undo in (False, True) if operation < len(self.steps) else (False,):
                text = operation_line(self.steps, self.uses, operation, undo=undo)
                moves.setdefault(text, (operation, undo))
        return tuple(moves[line] for line in lines)

    def state_name(self, state: State) -> str:
        """Return the active steps, from 1: `{1 3}`, or `3 then 1` if order counts."""
        if self.ordering.counts and len(state) > 1:
            return " then ".join(str(step + 1) for step in state)
        return "{" + " ".join(str(step + 1) for step in state) + "}"

    def replay_id(self, violation: Violation) -> str:
        """Return the replay id, at most 24 characters, for `everyorder replay`."""
        return self.history_id(violation.shown)

    def history_id(self, history: History) -> str:
        """Return the replay id of a history."""
        return encode(self.digest, self.operations, history)

    @property
    def operations(self) -> int:
        """Return the number of operations: steps, uses, look, garbage collection."""
        return len(self.steps) + len(self.uses) + 2

    def summary(self) -> str:
        """Return one line: name, verdict, how much was explored and how."""
        exploration = self.exploration
        return (
            f"{self.scenario}: {self.verdict} ({exploration.strategy}; "
            f"{len(exploration.states)} states, "
            f"{exploration.executed.transitions:,} transitions, "
            f"{exploration.seconds:.2f} s)"
        )


Failure: TypeAlias = Literal["crashed", "hung", "failed", "skipped"]

# Verdicts as table cells, and as words after the name of a scenario or a number.
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

# Limit on the printed lines of a history or a stack; JSON has all of them.
MOST_LINES = 12


@dataclass(frozen=True, slots=True)
class Unexplored:
    """A scenario or module that was not explored, and the reason.

    `scenario` is its path, or the file's; `where` is FILE:LINE as far as known.
    `operation` is the operation in progress as a runnable line, "" between two
    operations; if something was raised, it is the last operation that had begun.
    `history` has the operations before that, from a fresh system as far as they are
    known. `stack` has the frames of a process that died or hung, innermost first.
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
        """Return False only if the scenario skipped itself."""
        return self.verdict != "skipped"

    @property
    def label(self) -> str:
        """Return the verdict as a table cell."""
        return LABELS[self.verdict]

    @property
    def sentence(self) -> str:
        """Return the verdict as it follows the scenario's name."""
        return SENTENCES[self.verdict]

    def render(self, *, width: int = 80) -> str:
        """Return place and reason, the operation, its predecessors, and the stack."""
        head = f"{self.where or self.scenario}: {self.reason}"
        lines = [wrap_lines(head, width, indent="  ")]
        if self.operation:
            words = "in or behind" if self.verdict == "failed" else "in"
            lines += [words, f"    {self.operation}"]
        if self.history:
            lines += ["after", *_last(self.history)]
        if self.stack:
            lines += ["stack, innermost call first:", *_first(self.stack)]
        return visible("\n".join(lines))

    def data(self) -> dict[str, Any]:
        """Return the fields as JSON data."""
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
    """Return the count of each verdict that occurs: `1 crashed`, `2 not explored`."""
    counts = Counter(each.verdict for each in unexplored)
    return [f"{counts[v]} {SENTENCES[v]}" for v in SENTENCES if counts[v]]


def _first(lines: tuple[str, ...]) -> list[str]:
    excerpt = [f"    {line}" for line in lines[:MOST_LINES]]
    rest = len(lines) - MOST_LINES
    return [*excerpt, f"    ... and {rest} more"] if rest > 0 else excerpt


def _last(lines: tuple[str, ...]) -> list[str]:
    excerpt = [f"    {line}" for line in lines[-MOST_LINES:]]
    rest = len(lines) - MOST_LINES
    return [f"    ... {rest} before", *excerpt] if rest > 0 else excerpt
