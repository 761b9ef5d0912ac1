"""The outcomes of one item: reports, refusals and the result of the test itself.

Pytest's result decides.  A test that passes although an exploration failed expected
that; one that is marked as an expected failure is reported as skipped; one that fails
without a failed exploration is reported with its own error.

Rules:
- a task has an outcome for each scenario that it explored with `check=True`;
- fixtures of a session, module or class are set up once, as far as the next item that
  this process gets shares them;
- every exception of a scenario becomes an `Unexplored` that names the last operation;
- in a child, Ctrl-C never arrives, so a KeyboardInterrupt is an exception of a step;
- handlers of pytest and recorded warnings would grow with each operation, in the place
  where the engine looks for changes: they are set aside during an exploration, and each
  warning is printed once.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from traceback import extract_tb

import pytest

from everyorder.harness.base.errors import HarnessError
from everyorder.harness.collection.tasks import ExploreOptions, Outcome, TaskResult
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, Progress
from everyorder.harness.engine import progress as pulse
from everyorder.harness.expectations import Store
from everyorder.harness.exploration.explore_scenario import explore, subject_of
from everyorder.harness.exploration.paths import path_of
from everyorder.harness.processes.watch import Subject
from everyorder.harness.pytest_plugin.session import Options
from everyorder.harness.pytest_plugin.verification import Verifier, place_of_item
from everyorder.harness.report.verdict import Report, Unexplored
from everyorder.harness.scenario import Scenario
from everyorder.harness.systems import repeated_warnings
from everyorder.harness.systems.outcomes import ScenarioSkipped

# Characters of a test's own error: an assertion may show whole tables.
MOST_REASON = 200


class Recorder(Verifier):
    """Explores scenarios of items in this process, and records the outcomes.

    `announce` is called with the subject before each exploration, `progress` with
    (done, planned).
    """

    announce: Callable[[Subject], None] = staticmethod(lambda subject: None)
    progress: Progress | None = None

    def __init__(
        self, root: Path, options: Options, effort: ExploreOptions, *, in_child: bool
    ) -> None:
        is_custom = options.is_custom or effort.is_custom
        options = replace(options, is_custom=is_custom)
        seconds = options.budget
        budget = None if seconds is None else Budget(DEFAULT_BUDGET.steps, seconds)
        chosen = effort.strategy if effort.strategy != "auto" else options.strategy
        super().__init__(root, options, chosen, effort.budget or budget)
        self._effort = effort
        self._store = Store(root)
        self._in_child = in_child
        self._outcomes: list[Outcome] = []
        # The outcomes that made their test fail, and the texts by which it failed.
        self._failing: set[int] = set()
        self._texts: set[str] = set()
        self._raised: set[int] = set()
        # A test's own errors.
        self._errors: list[Unexplored] = []
        self._has_failed = False
        self._expected_failure = ""
        self._partial: set[str] = set()

    def perform(
        self, item: pytest.Item, following: pytest.Item | None = None
    ) -> TaskResult:
        """Run an item with its fixtures, and return the outcomes.

        Fixtures that the `following` item shares stay set up.
        """
        self._outcomes, self._errors, self._failing = [], [], set()
        self._texts, self._raised, self._partial = set(), set(), set()
        self._expected_failure, self._has_failed = "", False
        # An item that was predicted, and is not performed, may share less.
        item.session._setupstate.teardown_exact(item)
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        partial = frozenset(self._partial)
        if self._has_failed:
            return TaskResult((*self._outcomes, *self._errors), True, partial)
        if self._expected_failure:
            reason = f"expected to fail: {self._expected_failure}".rstrip(": ")
            skipped = Unexplored(_path(item), item.nodeid, reason, "skipped")
            return TaskResult((skipped,))
        expected = (each for each in self._outcomes if id(each) not in self._failing)
        return TaskResult(tuple(expected), partial=partial)

    def note_result(
        self,
        item: pytest.Item,
        call: "pytest.CallInfo[None]",
        report: pytest.TestReport,
    ) -> None:
        """Record the result of one phase of an item."""
        error = None if call.excinfo is None else call.excinfo.value
        if hasattr(report, "wasxfail"):
            if report.skipped:
                self._expected_failure = report.wasxfail or "xfail"
        elif report.failed:
            if error is None and not self._effort.compares:
                return  # xfail(strict=True): what fails it may be the expect file
            self._has_failed = True
            is_own = id(error) in self._raised or (
                isinstance(error, pytest.fail.Exception) and str(error) in self._texts
            )
            if not is_own:
                self._errors.append(_error_of(item, error, report))
        elif report.skipped and not self._outcomes:
            reason = getattr(error, "msg", None) or str(error)
            where = item.nodeid.partition("::")[0]
            self._outcomes.append(Unexplored(_path(item), where, reason, "skipped"))

    def explored(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        """Explore the scenario in this process."""
        self.announce(subject_of(scenario, self.root))
        try:
            with quiet():
                return explore(
                    scenario, strategy, budget=budget, progress=self.progress
                )
        except HarnessError:
            raise
        except KeyboardInterrupt as error:
            if not self._in_child:
                raise
            self._note_raised(scenario, error)
        except BaseException as error:
            self._note_raised(scenario, error)
            raise
        self._texts.add("KeyboardInterrupt")
        pytest.fail("KeyboardInterrupt", pytrace=False)

    def failure(
        self, report: Report, item: pytest.Item, *, is_partial: bool
    ) -> str | None:
        """Record the report; return why the test fails, or None."""
        self._outcomes.append(report)
        if is_partial:
            self._partial.add(report.scenario)
        if report.passed and (
            not self._effort.compares or self._is_as_expected(report, is_partial)
        ):
            return None
        self._failing.add(id(report))
        text = f"{report.scenario}: {report.verdict}"
        self._texts.add(text)
        return text

    def _is_as_expected(self, report: Report, is_partial: bool) -> bool:
        if report.expect is False:
            return True
        try:
            return self._store.compare(report, partial=is_partial).passed
        except HarnessError:  # a damaged file; the command compares again, and says so
            return False

    def note_skip(
        self, error: ScenarioSkipped, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Record that a scenario skipped itself; return the reason."""
        self._outcomes.append(
            Unexplored(scenario.path, scenario.source, error.reason, "skipped")
        )
        return error.reason

    def refusal_text(
        self, error: HarnessError, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Record that a scenario cannot be explored; return the failure text."""
        where = place_of_item(item, scenario)
        self._note_failed(Unexplored(scenario.path, where, str(error)))
        text = super().refusal_text(error, scenario, item)
        self._texts.add(text)
        return text

    def _note_raised(self, scenario: Scenario, error: BaseException) -> None:
        """Record an exception that is not an outcome of a step.

        It names the last operation that had begun if the progress is recorded.
        """
        self._raised.add(id(error))
        beats, file = pulse.current(), self.root / scenario.source
        where = place_of(error, file, scenario.source)
        operation, history = "", tuple[str, ...]()
        if beats is not None:
            subject = subject_of(scenario, self.root)
            operation, history = subject.position(beats.trail())
        self._note_failed(
            Unexplored(
                scenario.path,
                where,
                sentence_of(error),
                operation=operation,
                history=history,
            )
        )

    def _note_failed(self, unexplored: Unexplored) -> None:
        self._outcomes.append(unexplored)
        self._failing.add(id(unexplored))


def _path(item: pytest.Item) -> str:
    scenario = getattr(item, "scenario", None)
    return scenario.path if isinstance(scenario, Scenario) else path_of(item.nodeid)


def _error_of(
    item: pytest.Item, error: BaseException | None, report: pytest.TestReport
) -> Unexplored:
    """Return the error of a phase of an item, without those of explorations.

    It is named by the node id, because scenarios have their own outcomes.
    """
    source = item.nodeid.partition("::")[0]
    if error is None:
        return Unexplored(item.nodeid, source, report.longreprtext)
    where = place_of(error, item.path, source)
    text = sentence_of(error)
    if len(text) > MOST_REASON:
        text = f"{text[:MOST_REASON]}..."
    if report.when != "call":
        text = f"{report.when} of the test: {text}"
    return Unexplored(item.nodeid, where, text)


def sentence_of(error: BaseException) -> str:
    """Return class and message of an exception; the message alone of our own errors."""
    if isinstance(error, pytest.fail.Exception | HarnessError):
        return str(error)
    text = error.msg if isinstance(error, SyntaxError) else str(error)
    return f"{type(error).__name__}: {text}".rstrip(": ")


def place_of(error: BaseException, file: Path, source: str) -> str:
    """Return FILE:LINE of the innermost frame in a file, or the file alone."""
    line = None
    if isinstance(error, SyntaxError) and error.filename == str(file):
        line = error.lineno
    for frame in extract_tb(error.__traceback__):
        if frame.filename == str(file):
            line = frame.lineno
    return source if line is None else f"{source}:{line}"


def line_of(item: pytest.Item) -> int | None:
    """Return the line of an item, counted from 1."""
    line = item.location[1]
    return None if line is None else line + 1


@contextmanager
def quiet() -> Iterator[None]:
    """Context: logs bypass pytest; warnings are those of a program without pytest."""
    root = logging.getLogger()
    handlers = root.handlers[:]
    root.handlers[:] = [
        each for each in handlers if type(each).__module__ != "_pytest.logging"
    ]
    try:
        with warnings.catch_warnings():
            if not sys.warnoptions:
                warnings.filters[:] = [  # type: ignore[index]  # it is a list
                    each for each in warnings.filters if each not in _OF_PYTEST
                ]
            repeated_warnings.print_here()
            yield
    finally:
        root.handlers[:] = handlers


# The filters that pytest adds to those of Python and of the ini file.
_OF_PYTEST = frozenset(
    ("always", None, category, None, 0)
    for category in (DeprecationWarning, PendingDeprecationWarning)
)
