"""The outcome of exploring one scenario: what people and files are told.

True only here: how numbers become words.  The engine speaks of operations; a `Report`
knows the text of each and the verdict that follows from the violations.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from harness.engine.protocol import (
    EVERY_ORDER,
    History,
    Ordering,
    State,
    encode,
    state_of,
)
from harness.engine.result import Exploration, Violation

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
        """What a proof takes for granted beside what every proof does.

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
        """What stands between the states that were seen and a proof."""
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
        if operation < len(self.steps):
            number = operation + 1
            if active and operation not in self.again:
                return f"step_{number}.close()"
            return f"step_{number} = {self.steps[operation]}"
        operation -= len(self.steps)
        if operation < len(self.uses):
            return self.uses[operation]
        return "observe()" if operation == len(self.uses) else "gc.collect()"

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
        """The same for any history."""
        operations = len(self.steps) + len(self.uses) + 2
        return encode(self.digest, operations, history)

    def summary(self) -> str:
        """One line: name, verdict, how much was explored and how."""
        exploration = self.exploration
        return (
            f"{self.scenario}: {self.verdict} ({exploration.strategy}; "
            f"{len(exploration.states)} states, "
            f"{exploration.executed.transitions:,} transitions, "
            f"{exploration.seconds:.2f} s)"
        )
