"""Sessions in this process: for a debugger, and for commands that play one history.

Each function runs one session of pytest.  A step that ends the process ends the
command, and Ctrl-C passes through.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import pytest

from everyorder.harness.collection.listing import items_of, listing_of
from everyorder.harness.collection.recorder import Recorder, quiet
from everyorder.harness.collection.serving import (
    following_items,
    lost,
    result_of_torch,
)
from everyorder.harness.collection.session import CommandSession
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Listing,
    Selection,
    Task,
    TaskResult,
)
from everyorder.harness.engine import Budget
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import Scenario

T = TypeVar("T")


def listing_here(selection: Selection, effort: ExploreOptions) -> Listing:
    """Return the listing of a selection.

    Raises:
        NotFound: a path does not name anything.
        BadStrategy: the strategy is unknown.
        CannotCollect: pytest refuses to collect.
    """
    session = CommandSession(selection, effort)
    listings: list[Listing] = []
    session.run(lambda: listings.append(listing_of(session)))
    return listings[0]


def perform_here(
    tasks: Sequence[Task],
    selection: Selection,
    effort: ExploreOptions,
    *,
    begun: Callable[[int], object],
    advanced: Callable[[int, int, int], object],
    over: Callable[[int, TaskResult], bool],
) -> None:
    """Perform tasks in their order; report each by its index.

    `advanced` is called with (index, done, planned); `over` returns True to go on.
    """
    if all(task.file is None for task in tasks):
        for index, _ in enumerate(tasks):
            begun(index)
            over(index, result_of_torch(effort))
        return
    session = CommandSession(selection, effort)

    def perform() -> None:
        items = items_of(session)
        following = following_items(items)
        for index, task in enumerate(tasks):
            begun(index)

            def progress(done: int, planned: int, index: int = index) -> None:
                advanced(index, done, planned)

            session.recorder.progress = progress
            if task.node in items:
                item, after = items[task.node], following[task.node]
                result = session.recorder.perform(item, after)
            else:
                result = lost(task, "it no longer exists")
            if not over(index, result):
                return

    session.run(perform)


def root_here() -> Path:
    """Return the root that pytest has in the current folder.

    Raises:
        CannotCollect: pytest refuses to start.
    """
    session = CommandSession(Selection(), ExploreOptions(), only_root=True)
    session.run(lambda: None)
    return session.root


class _Visitor(Recorder):
    """Calls a function with one scenario, in the place of its exploration."""

    chooses: Callable[[Scenario], bool]
    visit: Callable[[Scenario], None]
    has_visited = False
    error: BaseException | None = None

    def explored(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        """Visit the chosen scenario, and end its test; explore others."""
        if self.has_visited or not self.chooses(scenario):
            return super().explored(scenario, strategy, budget)
        self.has_visited = True
        try:
            with quiet():
                self.visit(scenario)
        except BaseException as error:  # raised again outside of the test
            self.error = error
        raise pytest.skip.Exception("visited")


def at_scenario(
    selection: Selection,
    candidates: Callable[[CommandSession], Sequence[pytest.Item]],
    chooses: Callable[[Scenario], bool],
    visit: Callable[[Scenario], T],
) -> list[T]:
    """Return what `visit` returns for the first chosen scenario of the candidates.

    The scenario's test is run up to its exploration, so its fixtures are set up.  Empty
    if no candidate explores a chosen scenario.

    Raises:
        BaseException: every exception of the functions.
    """
    results: list[T] = []
    session = CommandSession(selection, ExploreOptions(), make=_Visitor)

    def search() -> None:
        visitor: Any = session.recorder
        visitor.chooses = chooses
        visitor.visit = lambda scenario: results.append(visit(scenario))
        for item in candidates(session):
            visitor.perform(item)
            if visitor.error is not None:
                raise visitor.error
            if visitor.has_visited:
                return

    session.run(search)
    return results
