"""The exploration of a scenario for a test: what pytest and the commands share.

A `Verifier` explores the scenario, and fails, skips or passes the test.  The plugin
(`plugin.py`) compares with expect files and writes a journal; a command
(`harness.collection`) records the outcomes.

Rules:
- a test fails by `pytest.fail` without a traceback and without a context;
- an exception of a scenario's function is shown from the first frame outside the
  harness on, unless `--full-trace` asks for all frames;
- a scenario that skips itself skips its test;
- properties (for JUnit reports) are set before anything can fail;
- parameters of `create` are fixtures of the test.
"""

import os
from abc import ABC, abstractmethod
from functools import partial
from linecache import getline
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.base.columns import WIDTH, cut, wrap_lines
from everyorder.harness.base.errors import HarnessError, NotAScenario
from everyorder.harness.engine import Budget
from everyorder.harness.pytest_plugin.session import Options
from everyorder.harness.report.raised import typo_lines, vacuity_lines
from everyorder.harness.report.text import assumptions
from everyorder.harness.report.verdict import Report, Unexplored
from everyorder.harness.scenario import Scenario
from everyorder.harness.scenario.normalisers import project_chain
from everyorder.harness.systems.outcomes import ScenarioSkipped

# A folder of installed packages, pytest among them.
_INSTALLED = f"{os.sep}site-packages{os.sep}"

# Prefix of the files of the harness.
OURS = f"{Path(__file__).parents[1]}{os.sep}"


class Verifier(ABC):
    """The explorations of one process; a subclass decides what becomes of the results.

    `strategy` and `budget` are those of scenarios that do not name their own.
    """

    def __init__(
        self, root: Path, options: Options, strategy: str, budget: Budget | None
    ) -> None:
        self.root = root
        self.options = options
        self.strategy = strategy
        self.budget = budget

    def verify(
        self,
        scenario: Scenario,
        item: pytest.Item,
        *,
        strategy: str | None = None,
        budget: Budget | None = None,
        check: bool = True,
    ) -> Report:
        """Explore a scenario for a test, and fail the test if it does not pass.

        With `check=False` the report is returned without any check.
        """
        __tracebackhide__ = True
        failure = skipped = None
        try:
            scenario = _with_fixtures(scenario, item).normalised_by(
                project_chain(item.config.getini("everyorder_normalisers"))
            )
            report = self.explored(
                scenario, strategy or self.strategy, budget or self.budget
            )
            item.user_properties += _properties(report)
            if check:
                own = strategy is not None and budget is not None
                is_partial = self.options.is_custom and not own
                failure = self.failure(report, item, is_partial=is_partial)
        except ScenarioSkipped as error:
            skipped = self.note_skip(error, scenario, item)
        except HarnessError as error:
            failure = self.refusal_text(error, scenario, item)
        except (Exception, SystemExit) as error:
            if not item.config.getoption("fulltrace"):
                _drop_our_frames(error)
            raise
        # Raise outside `except` so the error is not chained.
        if skipped is not None:
            # Report the location of the test instead of this file.
            raise pytest.skip.Exception(skipped, _use_item_location=True)
        if failure is not None:
            pytest.fail(failure, pytrace=False)
        return report

    @abstractmethod
    def explored(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        """Explore the scenario."""
        ...

    @abstractmethod
    def failure(
        self, report: Report, item: pytest.Item, *, is_partial: bool
    ) -> str | None:
        """Record the report; return why the test fails, or None."""
        ...

    @abstractmethod
    def note_skip(
        self, error: ScenarioSkipped, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Record that a scenario skipped itself; return the reason."""
        ...

    def refusal_text(
        self, error: HarnessError, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Return the failure text of a scenario that cannot be explored."""
        where = place_of_item(item, scenario)
        return Unexplored(scenario.path, where, str(error)).render()


def place_of_item(item: pytest.Item, scenario: Scenario) -> str:
    """Return FILE:LINE of the test, or of the variable, that a scenario belongs to."""
    line = item.location[1]
    return scenario.source if line is None else f"{scenario.source}:{line + 1}"


def short_failure(
    node: pytest.Item | pytest.Collector, excinfo: pytest.ExceptionInfo[BaseException]
) -> Any:
    """Return an error of the harness for pytest: the user's line, and the message.

    `--full-trace` and a style of tracebacks that was asked for show what pytest shows.
    """
    config = node.config
    if config.getoption("fulltrace") or config.getoption("tbstyle") != "auto":
        return node.repr_failure(excinfo)
    text = str(excinfo.value)
    files = [
        (file, entry.lineno + 1)
        for entry in excinfo.traceback
        if not (file := str(entry.path)).startswith(OURS) and _INSTALLED not in file
    ]
    root = f"{config.rootpath}{os.sep}"
    # Frames of pytest itself are outside.
    own = [each for each in files if each[0].startswith(root)]
    for file, line in (own or files)[-1:]:
        written = cut(getline(file, line).strip(), WIDTH - 4)
        text = wrap_lines(f"{file.removeprefix(root)}:{line}: {text}", indent="  ")
        text += f"\n    {written}" if written else ""
    failure = pytest.ExceptionInfo.from_exc_info(
        (pytest.fail.Exception, pytest.fail.Exception(text, pytrace=False), excinfo.tb)
    )
    return node.repr_failure(failure)


def _with_fixtures(scenario: Scenario, item: pytest.Item) -> Scenario:
    """Return the scenario with the values of the fixtures that `create` asks for.

    Raises:
        NotAScenario: there is no fixture of that name.
    """
    if not scenario.fixtures:
        return scenario
    assert scenario.create is not None, "it has parameters"
    request: Any = item._request  # type: ignore[attr-defined]  # as doctest's items
    try:
        values = {name: request.getfixturevalue(name) for name in scenario.fixtures}
    except pytest.FixtureLookupError as error:
        if error.argname not in scenario.fixtures:  # a fixture asks for it
            raise
        names = ", ".join(scenario.fixtures)
        raise NotAScenario(
            found=f"create({names}): there is no fixture {error.argname!r}",
            wanted="a function without parameters, or with fixtures of pytest",
        ) from None
    return scenario.created_by(partial(scenario.create, **values))


def _drop_our_frames(error: BaseException) -> None:
    """Remove the leading frames of the harness from the traceback of an error.

    If a function has no frame (`observe=len`), keep the last frame of the harness and
    add a note.
    """
    frame = error.__traceback__
    assert frame is not None, "it was raised"
    while frame.tb_frame.f_code.co_filename.startswith(OURS):
        if frame.tb_next is None:
            error.add_note(
                "raised by a function called here; --full-trace shows all frames"
            )
            break
        frame = frame.tb_next
    error.__traceback__ = frame


def _properties(report: Report) -> list[tuple[str, object]]:
    """Return the properties of an exploration for JUnit reports."""
    exploration = report.exploration
    properties: list[tuple[str, object]] = [
        ("scenario", report.scenario),
        ("verdict", report.verdict),
        ("strategy", exploration.strategy),
        ("guarantee", exploration.guarantee),
        ("states", len(exploration.states)),
        ("transitions", exploration.executed.transitions),
    ]
    for name, texts in (
        ("assumes", assumptions(report)),
        ("open", report.bounds),
        ("skipped", exploration.skipped),
        ("typo", typo_lines(report)),
        ("vacuous", vacuity_lines(report)),
    ):
        properties += [(name, text) for text in texts]
    properties += [
        ("replay id", report.replay_id(each)) for each in exploration.violations
    ]
    return properties
