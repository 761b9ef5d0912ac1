"""The outcome of exploring one scenario: what people and files are told.

True only here: how numbers become words.  The engine speaks of letters; a `Report`
knows the text of each and the verdict that follows from the violations.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.engine.protocol import State, Word
from harness.engine.replay_id import encode
from harness.engine.result import Exploration, Violation

Verdict: TypeAlias = Literal[
    "nondeterminism",
    "law",
    "order",
    "unpinned",
    "cut short",
    "pinned",
    "holds",
    "proven",
]

# Most severe first.  "order" covers every kind of dependence on history: a wedged
# step, an answer that a use or a look changes, an error that varies, a leak.
VERDICTS: tuple[Verdict, ...] = (
    "nondeterminism",
    "law",
    "order",
    "unpinned",
    "cut short",
    "pinned",
    "holds",
    "proven",
)


@dataclass(frozen=True, slots=True)
class Report:
    """One explored scenario."""

    scenario: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    order_dependent: str | None
    exploration: Exploration
    digest: str

    @property
    def verdict(self) -> Verdict:
        """The most severe thing that can be said."""
        kinds = {violation.kind for violation in self.exploration.violations}
        if "nondeterminism" in kinds:
            return "nondeterminism"
        if "law" in kinds:
            return "law"
        if kinds:
            return "unpinned" if kinds == {"unpinned"} else "order"
        if not self.exploration.complete:
            return "cut short"
        if self.order_dependent is not None:
            return "pinned"
        return "proven" if "graph" in self.exploration.strategy else "holds"

    @property
    def passed(self) -> bool:
        """Whether everything planned was explored and nothing was violated."""
        return self.verdict in ("pinned", "holds", "proven")

    def line(self, letter: int, active: bool = False) -> str:
        """One letter as a runnable line; `active` means that its step gets undone."""
        if letter < len(self.steps):
            number = letter + 1
            close = f"step_{number}.close()"
            return close if active else f"step_{number} = {self.steps[letter]}"
        letter -= len(self.steps)
        return self.uses[letter] if letter < len(self.uses) else "observe()"

    def lines(self, word: Word) -> tuple[str, ...]:
        """A word as runnable lines, one a letter; a step that fails is not undone."""
        active: State = ()
        shown = []
        for letter in word:
            shown.append(self.line(letter, letter in active))
            if letter in active:
                active = tuple(step for step in active if step != letter)
            elif letter < len(self.steps):
                order = active if self.order_dependent is not None else sorted(active)
                if (tuple(order), letter) not in self.exploration.failures:
                    active = (*active, letter)
        return tuple(shown)

    def state_name(self, state: State) -> str:
        """`{1 3}`, or `3 then 1` if order counts: the active steps, counted from 1."""
        if self.order_dependent is not None and len(state) > 1:
            return " then ".join(str(step + 1) for step in state)
        return "{" + " ".join(str(step + 1) for step in state) + "}"

    def replay_id(self, violation: Violation) -> str:
        """At most 24 characters from which `everyorder replay` plays the word."""
        word = violation.shortest or violation.word
        letters = len(self.steps) + len(self.uses) + 1
        return encode(self.digest, letters, word)

    def summary(self) -> str:
        """One line: name, verdict, how much was explored and how."""
        exploration = self.exploration
        return (
            f"{self.scenario}: {self.verdict} ({exploration.strategy}; "
            f"{len(exploration.states)} sets, {exploration.executed.edges:,} edges, "
            f"{exploration.seconds:.2f} s)"
        )
