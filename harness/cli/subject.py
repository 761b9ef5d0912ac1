"""What is explored, with its texts: a scenario, or the real torch.

True only here: what commands that play histories need of either.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

from harness.cli.exits import SkipsItself
from harness.engine import Counts, Exploration, System
from harness.exploring import asked, system_of
from harness.outcome import Report
from harness.scenario import Scenario
from harness.systems.outcomes import ScenarioSkipped

T = TypeVar("T")

# What is known before anything was explored.
NOTHING = Exploration(
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


@dataclass(frozen=True, slots=True)
class Subject:
    """`texts` has the texts of operations and states; `system` makes a fresh system."""

    texts: Report
    system: Callable[[], System]

    @contextmanager
    def opened(self) -> Iterator[System]:
        """A system that leaves nothing behind, where it can be closed."""
        system = self.system()
        try:
            yield system
        finally:
            close = getattr(system, "close", None)
            if close is not None:
                close()

    def asked(self, question: Callable[[], T]) -> T:
        """The answer to a question about its system.

        Raises `SkipsItself`, and whatever the question does.
        """
        try:
            return asked(question)
        except ScenarioSkipped as error:
            reason = error.reason
        raise SkipsItself(scenario=self.texts.scenario, reason=reason)

    @property
    def operations(self) -> int:
        """Steps, uses, the look, and collecting garbage."""
        return len(self.texts.steps) + len(self.texts.uses) + 2

    @property
    def ordered(self) -> bool:
        """Whether states are told apart by order of activation."""
        return self.texts.order_dependent is not None


def subject_of(scenario: Scenario) -> Subject:
    """The subject of a scenario."""
    texts = Report(
        scenario=scenario.path,
        steps=tuple(step.text for step in scenario.steps),
        uses=tuple(use.text for use in scenario.uses),
        order_dependent=scenario.order_dependent,
        exploration=NOTHING,
        digest=scenario.digest,
        pairs=tuple(sorted(scenario.relations.pairs)),
        again=scenario.relations.again,
    )
    return Subject(texts, lambda: system_of(scenario))
