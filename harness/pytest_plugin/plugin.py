"""The working part of the pytest plugin: scenarios as tests, and `explore`.

The hooks are in `hooks.py`, which creates a `Plugin` when there is something to do.
Every process (the only one, or each worker of pytest-xdist) has an `ExploringProcess`
that explores in children (`scenario_child.py`), compares, and appends to its own
journal in the folder of the run. The process that started the run (the controller)
names that folder, reads all journals at the end and is the only one that writes expect
files (`session.py`), so `-n 8` writes the same files as `-n 0`, and finished results of
a killed worker are not lost.

Rules:
- every module-level `Scenario` whose name has no leading underscore is one item, named
  after its variable (never one item for each order); a second variable for the same
  scenario is skipped. Ids are ASCII and in the order of the file, so that every process
  collects the same ids;
- the first scenario of a test that uses the fixture is named after the test, the next
  ones have the suffix `-2`, `-3`, or an explicit name below the test's;
- a scenario that fails its exploration is not compared and never accepted;
- the expect file of a scenario that skips itself is not checked;
- a run that accepts nothing does not write or create any project file.
"""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import pytest
from _pytest.fixtures import TopRequest

from everyorder.harness.base.errors import (
    DamagedExpectFile,
    ExplorationDied,
    HarnessError,
)
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, Progress
from everyorder.harness.expectations import (
    Comparison,
    Journal,
    Store,
    compare,
    edit_of,
    explain,
    render,
)
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.exploration.paths import source_and_name
from everyorder.harness.exploration.uncollected import assigned_lines
from everyorder.harness.pytest_plugin.scenario_child import explore_in_child
from everyorder.harness.pytest_plugin.session import (
    ALL,
    Options,
    Summary,
    finish,
)
from everyorder.harness.pytest_plugin.verification import Verifier
from everyorder.harness.report import notes_of
from everyorder.harness.report import render as render_report
from everyorder.harness.report.text import silent_step_lines
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import Scenario, Step
from everyorder.harness.systems.outcomes import ScenarioSkipped

# A result without data except its verdict.
BLANK = {
    "kind": "result",
    "states": 0,
    "transitions": 0,
    "accepted": False,
    "old": False,
    "silent": (),
    "proven": False,
    "notes": (),
    "document": None,
    # True if the scenario has `expect=` instead of an expect file.
    "fileless": False,
    # The place and the old text of the argument that has the expectations.
    "inline": None,
}


class ExploringProcess(Verifier):
    """The explorations of one process of pytest: store, options and journal."""

    def __init__(self, root: Path, options: Options, journal: Journal) -> None:
        seconds = options.budget
        budget = None if seconds is None else replace(DEFAULT_BUDGET, seconds=seconds)
        super().__init__(root, options, options.strategy, budget)
        self.store = Store(root)
        self.journal = journal

    def explored(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        """Explore the scenario, in a child unless the options say otherwise."""

        def explored(progress: Progress | None = None) -> Report:
            return explore(scenario, strategy, budget=budget, progress=progress)

        if not self.options.in_children:
            return explored()
        limits, root = self.options.limits, self.store.root
        return explore_in_child(scenario, explored, limits, root)

    def refusal_text(
        self, error: HarnessError, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Return the failure text; record it if the child has died."""
        if not isinstance(error, ExplorationDied):
            return super().refusal_text(error, scenario, item)
        item.user_properties += [
            ("scenario", error.scenario),
            ("verdict", error.verdict),
            ("operation", error.operation),
        ]
        self._append(error.scenario, item, error.verdict)
        command = f"pytest {shlex.quote(item.nodeid)} --everyorder-in-process"
        return f"{error.scenario}: {error}\n    {command}"

    def note_skip(
        self, error: ScenarioSkipped, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Record that a scenario skipped itself; return the reason."""
        item.user_properties += [
            ("scenario", scenario.path),
            ("verdict", "skipped"),
            ("skipped", error.reason),
        ]
        self._append(scenario.path, item, "skipped")
        return error.reason

    def failure(
        self, report: Report, item: pytest.Item, *, is_partial: bool
    ) -> str | None:
        """Return why the test fails, or None; append the result to the journal."""
        if not report.passed:
            self._record(report, item, None, report.verdict)
            return _violation_text(report, item)
        return self._compare(report, item, partial=is_partial)

    def _compare(
        self, report: Report, item: pytest.Item, *, partial: bool
    ) -> str | None:
        if report.expect is False:
            self._record(report, item, None, "not compared")
            return None
        comparison = self._comparison(report, partial=partial)
        differs = not comparison.passed or comparison.is_old
        accepted = differs and self.options.accepts(
            report.scenario, item.nodeid, only_new=comparison.only_new
        )
        if accepted and (edit := edit_of(comparison, comparison.found)):
            # Refused here, the test fails; later, nothing at all could be written.
            self.store.check_rewritable(edit)
        self._record(report, item, comparison, comparison.verdict, accepted)
        if not comparison.passed and not accepted:
            return self._mismatch(comparison, item)
        return None

    def _comparison(self, report: Report, *, partial: bool) -> Comparison:
        try:
            return self.store.compare(report, partial=partial)
        except DamagedExpectFile:
            if self.options.update != ALL:
                raise
            against_nothing = compare(None, report, partial=partial)
            inline = report.expect or None
            return replace(against_nothing, place=report.place, inline=inline)

    def _mismatch(self, comparison: Comparison, item: pytest.Item) -> str:
        command = f"pytest {shlex.quote(item.nodeid)} --everyorder-update"
        return explain(comparison, self.store.title(comparison), command)

    def _record(
        self,
        report: Report,
        item: pytest.Item,
        comparison: Comparison | None,
        verdict: str,
        accepted: bool = False,
    ) -> None:
        notes = notes_of(report)
        document = comparison.found if comparison and accepted else None
        self._append(
            report.scenario,
            item,
            verdict,
            fileless=report.expect is not None,
            old=comparison is not None and comparison.is_old and not accepted,
            states=len(report.exploration.states),
            transitions=report.exploration.executed.transitions,
            accepted=accepted,
            silent=silent_step_lines(report) if report.passed else [],
            proven=notes.proven,
            notes=notes.texts,
            document=render(document) if document else None,
            inline=_inline(comparison) if comparison else None,
        )

    def _append(
        self, scenario: str, item: pytest.Item, verdict: str, **values: object
    ) -> None:
        """Append the result of a scenario to the journal."""
        own = {"scenario": scenario, "node": item.nodeid, "verdict": verdict}
        self.journal.append({**BLANK, **own, **values})


def _inline(comparison: Comparison) -> dict[str, object] | None:
    """Return the argument that has the expectations, as JSON values."""
    if comparison.place is None:
        return None
    return {"place": asdict(comparison.place), "before": comparison.inline}


def _violation_text(report: Report, item: pytest.Item) -> str:
    text = render_report(report, verbose=item.config.getoption("verbose") > 0)
    return f"{text}\n    pytest {shlex.quote(item.nodeid)}"


class ScenarioItem(pytest.Item):
    """One scenario; it passes if every order agrees, as its expect file says.

    Fixtures are set up as for pytest's own items that are not functions (`doctest`).
    """

    def __init__(self, *, scenario: Scenario, run: Verifier, **arguments: Any) -> None:
        super().__init__(**arguments)
        self.variable = self.originalname = arguments["name"]
        self.scenario = scenario
        self.run = run
        self.obj = None
        manager = self.session._fixturemanager
        self._fixtureinfo = manager.getfixtureinfo(node=self, func=None, cls=None)
        self.fixturenames = self._fixtureinfo.names_closure
        self.funcargs: dict[str, object] = {}
        self._request = TopRequest(self, _ispytest=True)  # type: ignore[arg-type]  # for functions only, by its annotation

    def setup(self) -> None:
        """Set up fixtures that are used by all tests or by a mark of the module."""
        self._request._fillfixtures()

    def runtest(self) -> None:
        """Explore and compare."""
        __tracebackhide__ = True
        self.run.verify(self.scenario, self)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **options: Any
    ) -> Any:
        """Return the failure with the visible frames below this item."""
        if not self.config.getoption("fulltrace"):
            below = excinfo.traceback.cut(path=__file__).filter(excinfo)
            excinfo.traceback = below or excinfo.traceback
        return super().repr_failure(excinfo, *args, **options)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return the file, the line of the variable, counted from 0, and the name."""
        line = _lines(self.path).get(self.variable)
        return self.path, line and line - 1, self.name


def make_item(
    module: pytest.Module, name: str, scenario: Scenario, run: Verifier
) -> ScenarioItem | None:
    """Return the item of this variable, or None if another one has the scenario."""
    first = next(
        variable
        for variable, value in vars(module.obj).items()
        if value is scenario and (variable == name or not variable.startswith("_"))
    )
    if name.startswith("_") or name != first:
        return None
    node = name.encode("ascii", "backslashreplace").decode()
    source = module.nodeid.partition("::")[0]
    item = ScenarioItem.from_parent(
        module,
        name=node,
        scenario=scenario.named(scenario.name or name, source),
        run=run,
    )
    assert isinstance(item, ScenarioItem), "from_parent makes what it is called on"
    return item


# A module has several items, which share the reading of its source.
_lines = lru_cache(maxsize=8)(assigned_lines)


class Explore:
    """Explores scenarios for one test; the test fails if one does not pass."""

    def __init__(self, run: Verifier, item: pytest.Item) -> None:
        self._run = run
        self._item = item
        self._calls = 0

    def __repr__(self) -> str:
        return "<the fixture explore>"

    def __call__(
        self,
        *what: Scenario | Step,
        name: str | None = None,
        strategy: str | None = None,
        budget: Budget | None = None,
        check: bool = True,
        **options: Any,
    ) -> Report:
        """Explore one scenario, or the steps of one, and return the report.

        Args:
            what: a `Scenario`, or steps; then `options` is as for `Scenario`.
            name: its name below the test's, if a test explores several scenarios.
            strategy: as for `everyorder.explore`; None for the flag or the ini file.
            budget: as for `everyorder.explore`; None for the flag or the ini file.
            check: True if the test fails when the scenario does not hold or is not as
                expected; if False, the caller checks the report.
            options: `uses`, `order_dependent` and so on.

        Raises:
            NotAScenario: `what` is neither a scenario nor steps.
            pytest.fail.Exception: it does not hold, or is not as expected.
            pytest.skip.Exception: one of its functions skips it.
        """
        __tracebackhide__ = True
        self._calls += 1
        source, base = source_and_name(self._item.nodeid)
        if name is not None:
            base = f"{base}/{name}"
        elif self._calls > 1:
            base = f"{base}-{self._calls}"
        try:
            scenario = _scenario(what, options).named(base, source)
        except HarnessError as error:
            # The frames of the harness do not help the caller.
            raise error.with_traceback(None) from None
        return self._run.verify(
            scenario, self._item, strategy=strategy, budget=budget, check=check
        )


def _scenario(what: tuple[Any, ...], options: dict[str, Any]) -> Scenario:
    make: Callable[..., Scenario] = Scenario
    if len(what) == 1 and isinstance(what[0], Scenario) and not options:
        return what[0]
    return make(*what, **options)


class Notes(Protocol):
    """The notes on a run that `_Standby` takes before and during the plugin's work."""

    input: dict[str, Any] | None
    verifier: Verifier | None
    passed: set[str]
    skipped: list[str]
    deselected: int

    @property
    def folder(self) -> Path:
        """Return the folder of the run."""
        ...


class Plugin:
    """The plugin in one process."""

    def __init__(self, config: pytest.Config, options: Options, notes: Notes) -> None:
        self.config = config
        self.options = options
        self.summary: Summary | None = None
        self._notes = notes
        self._has_run = False

    @cached_property
    def journal(self) -> Journal:
        """Return the journal of this process."""
        worker_input = self._notes.input
        worker = "main" if worker_input is None else str(worker_input["workerid"])
        return Journal(self._notes.folder, worker)

    @cached_property
    def run(self) -> Verifier:
        """Return the explorations of this process."""
        if self._notes.verifier is not None:
            return self._notes.verifier
        return ExploringProcess(self.config.rootpath, self.options, self.journal)

    def item(self, collector: Any, name: str, scenario: object) -> pytest.Item | None:
        """Return the item of a module's variable, or None."""
        assert isinstance(scenario, Scenario), "the caller has checked"
        if not isinstance(collector, pytest.Module):
            return None
        return make_item(collector, name, scenario, self.run)

    def collected(self, items: Sequence[pytest.Item]) -> None:
        """Record the scenarios that this process may explore, and skipped modules."""
        explorers, scenarios = [], []
        for item in items:
            scenario = getattr(item, "scenario", None)
            if isinstance(scenario, Scenario):
                scenarios.append(scenario.path)
            elif "explore" in getattr(item, "fixturenames", ()):
                explorers.append(item.nodeid)
        for node in self._notes.skipped:
            self.journal.append({"kind": "skipped", "node": node})
        self.journal.append(
            {
                "kind": "collected",
                "scenarios": scenarios,
                "explorers": explorers,
                "deselected": self._notes.deselected,
            }
        )

    def close(self) -> None:
        """Close the journal: this process runs no further tests."""
        self.journal.close()

    def finish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write the accepted documents, and fail the run if files are stale."""
        self.summary = finish(
            self.config,
            self.options,
            self._notes.folder,
            self._notes.passed,
            int(exitstatus),
        )
        if self.summary.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def print_summary(self, terminalreporter: Any) -> None:
        """Print the problems, one line with the counts, and the notes."""
        summary = self.summary
        if summary is None or not (summary.scenarios or summary.failed):
            return
        for line in summary.details():
            terminalreporter.write_line(line, red=True)
        terminalreporter.write_line(summary.line())
        if summary.old:
            terminalreporter.write_line(summary.old_line())
        if summary.silent:
            terminalreporter.write_line(summary.silent_line())
        width = self.config.get_terminal_writer().fullwidth
        verbose = self.config.getoption("verbose") > 0
        for line in summary.note_lines(width, verbose=verbose):
            terminalreporter.write_line(line)
        if self.options.cannot_fork:
            terminalreporter.write_line(
                "explored in this process: this system cannot fork, so a step that "
                "ends its process ends the run"
            )
