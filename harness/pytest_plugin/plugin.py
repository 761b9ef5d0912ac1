"""The pytest plugin at work: scenarios as tests, and the fixture `explore`.

The hooks are in `standby.py`, which creates a `Plugin` when there is something to do.
Every process (the only one, or each worker of pytest-xdist) has a `ExploringProcess`
that explores, in children (`child.py`), compares, and appends to its own journal in the
folder of the run.  The process that started the run (the controller) names that folder,
reads all journals at the end and alone writes expect files (`session.py`), so `-n 8`
writes what `-n 0` writes, and a killed worker loses nothing that was finished.

Rules:
- every module-level `Scenario` whose name has no leading underscore is one item, named
  after its variable, and never one an order; a second variable for the same scenario is
  passed over.  Ids are ASCII and in the order of the file, so that every process
  collects the same;
- the first scenario of a test that uses the fixture is named after the test, the next
  ones get `-2`, `-3`, or a name of their own below the test's;
- a scenario that fails its exploration is not compared and never accepted;
- a test fails by `pytest.fail` without a traceback and without a context;
- what the functions of a scenario raise is shown from their first frame on, unless
  `--full-trace` asks for ours too;
- a scenario that skips itself skips its test; nothing is expected of it meanwhile;
- properties (for JUnit reports) are set before anything can fail;
- no project file is written or created by a run that accepts nothing.
"""

import os
import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, Protocol

import pytest

from everyorder.harness.base.errors import (
    DamagedExpectFile,
    ExplorationDied,
    HarnessError,
)
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, Progress
from everyorder.harness.expectations import (
    Comparison,
    Document,
    Journal,
    Store,
    compare,
    explain,
    render,
)
from everyorder.harness.exploration.collection import assigned_lines
from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.pytest_plugin.scenario_child import explore_in_child
from everyorder.harness.pytest_plugin.session import (
    ALL,
    Options,
    Summary,
    finish,
    source_and_name,
)
from everyorder.harness.report import notes_of
from everyorder.harness.report.outcome import Report
from everyorder.harness.report.text import (
    SENTENCES,
    assumptions,
    reasons,
    render_violation,
    silent_step_lines,
    vacuity_lines,
)
from everyorder.harness.scenario import Scenario, Step
from everyorder.harness.systems.outcomes import ScenarioSkipped

# The files of the harness begin with this.
OURS = f"{Path(__file__).parents[1]}{os.sep}"


# A result of which nothing is known but its verdict.
BLANK = {
    "kind": "result",
    "states": 0,
    "transitions": 0,
    "accepted": False,
    "silent": (),
    "proven": False,
    "notes": (),
    "document": None,
}


class ExploringProcess:
    """The explorations of one process: store, options and journal."""

    def __init__(self, root: Path, options: Options, journal: Journal) -> None:
        self.store = Store(root)
        self.options = options
        self.journal = journal

    def verify(
        self,
        scenario: Scenario,
        item: pytest.Item,
        *,
        strategy: str | None = None,
        budget: Budget | None = None,
        check: bool = True,
    ) -> Report:
        """Explore a scenario for a test; the test fails where it is not as it should.

        With `check=False` only the report is returned, whatever it says.
        """
        __tracebackhide__ = True
        failure = skipped = None
        try:
            report = self._explore(
                scenario, strategy or self.options.strategy, budget or self._budget()
            )
            item.user_properties += _properties(report)
            if check:
                own = strategy is not None and budget is not None
                effort = own or not self.options.is_custom
                failure = self._failure(report, item, effort=effort)
        except ExplorationDied as error:
            failure = self._death_text(error, item)
        except ScenarioSkipped as error:
            skipped = self._note_skip(error, scenario, item)
        except HarnessError as error:
            failure = f"{scenario.path}: {error}"
        except (Exception, SystemExit) as error:
            if not item.config.getoption("fulltrace"):
                _drop_our_frames(error)
            raise
        # Not in a handler: the error is no context of what is told.
        if skipped is not None:
            # Told as of the test: nobody looks for the reason in this file.
            raise pytest.skip.Exception(skipped, _use_item_location=True)
        if failure is not None:
            pytest.fail(failure, pytrace=False)
        return report

    def _explore(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        def explored(progress: Progress | None = None) -> Report:
            return explore(scenario, strategy, budget=budget, progress=progress)

        if not self.options.in_children:
            return explored()
        limits, root = self.options.limits, self.store.root
        return explore_in_child(scenario, explored, limits, root)

    def _death_text(self, error: ExplorationDied, item: pytest.Item) -> str:
        """The text of a test's failure whose child has died."""
        item.user_properties += [
            ("scenario", error.scenario),
            ("verdict", error.verdict),
            ("operation", error.operation),
        ]
        self._append(error.scenario, item, error.verdict)
        command = f"pytest {shlex.quote(item.nodeid)} --everyorder-in-process"
        return f"{error.scenario}: {error}\n    {command}"

    def _note_skip(
        self, error: ScenarioSkipped, scenario: Scenario, item: pytest.Item
    ) -> str:
        """The reason for skipping a test whose scenario skipped itself."""
        item.user_properties += [
            ("scenario", scenario.path),
            ("verdict", "skipped"),
            ("skipped", error.reason),
        ]
        self._append(scenario.path, item, "skipped")
        return error.reason

    def _failure(
        self, report: Report, item: pytest.Item, *, effort: bool
    ) -> str | None:
        """Why the test fails, if it does; what was had goes into the journal."""
        if not report.passed:
            self._record(report, item, report.verdict)
            return _violation_text(report, item)
        return self._compare(report, item, effort=effort)

    def _budget(self) -> Budget | None:
        seconds = self.options.budget
        return None if seconds is None else replace(DEFAULT_BUDGET, seconds=seconds)

    def _compare(
        self, report: Report, item: pytest.Item, *, effort: bool
    ) -> str | None:
        comparison = compare(self._expected(report.scenario), report, effort=effort)
        accepted = not comparison.passed and self.options.accepts(
            report.scenario, item.nodeid, only_new=comparison.only_new
        )
        self._record(report, item, comparison.verdict, comparison.found, accepted)
        if not comparison.passed and not accepted:
            return self._mismatch(comparison, item)
        return None

    def _expected(self, scenario: str) -> Document | None:
        try:
            return self.store.read(scenario)
        except DamagedExpectFile:
            if self.options.update == ALL:
                return None
            raise

    def _mismatch(self, comparison: Comparison, item: pytest.Item) -> str:
        name = self.store.name(comparison.found.scenario)
        return (
            f"{name}: {explain(comparison, '--everyorder-update')}\n"
            f"    pytest {shlex.quote(item.nodeid)} --everyorder-update"
        )

    def _record(
        self,
        report: Report,
        item: pytest.Item,
        verdict: str,
        document: Document | None = None,
        accepted: bool = False,
    ) -> None:
        notes = notes_of(report)
        self._append(
            report.scenario,
            item,
            verdict,
            states=len(report.exploration.states),
            transitions=report.exploration.executed.transitions,
            accepted=accepted,
            silent=silent_step_lines(report) if report.passed else [],
            proven=notes.proven,
            notes=notes.texts,
            document=render(document) if accepted and document else None,
        )

    def _append(
        self, scenario: str, item: pytest.Item, verdict: str, **known: object
    ) -> None:
        """Write down the result of a scenario."""
        own = {"scenario": scenario, "node": item.nodeid, "verdict": verdict}
        self.journal.append({**BLANK, **own, **known})


def _drop_our_frames(error: BaseException) -> None:
    """Leave the error the frames from the first on that is none of ours.

    A function without a frame (`observe=len`) leaves our last one, and a word on it.
    """
    frame = error.__traceback__
    assert frame is not None, "it was raised"
    while frame.tb_frame.f_code.co_filename.startswith(OURS):
        if frame.tb_next is None:
            error.add_note("raised by what is called here; --full-trace shows by whom")
            break
        frame = frame.tb_next
    error.__traceback__ = frame


def _properties(report: Report) -> list[tuple[str, object]]:
    """The properties of an exploration in JUnit reports."""
    found = report.exploration
    properties: list[tuple[str, object]] = [
        ("scenario", report.scenario),
        ("verdict", report.verdict),
        ("strategy", found.strategy),
        ("guarantee", found.guarantee),
        ("states", len(found.states)),
        ("transitions", found.executed.transitions),
    ]
    for name, texts in (
        ("assumes", assumptions(report)),
        ("open", report.bounds),
        ("skipped", found.skipped),
        ("vacuous", vacuity_lines(report)),
    ):
        properties += [(name, text) for text in texts]
    properties += [("replay id", report.replay_id(each)) for each in found.violations]
    return properties


def _violation_text(report: Report, item: pytest.Item) -> str:
    lines = [f"{report.scenario}: {SENTENCES[report.verdict]}"]
    lines += [
        render_violation(report, violation, found=isinstance(item, ScenarioItem))
        for violation in report.exploration.violations
    ]
    lines += reasons(report)
    lines.append(f"    pytest {shlex.quote(item.nodeid)}")
    return "\n".join(lines)


class ScenarioItem(pytest.Item):
    """One scenario; it passes if every order agrees, as its expect file says."""

    def __init__(
        self, *, scenario: Scenario, run: ExploringProcess, **given: Any
    ) -> None:
        super().__init__(**given)
        self.variable = self.originalname = given["name"]
        self.scenario = scenario
        self.run = run

    def runtest(self) -> None:
        """Explore and compare."""
        __tracebackhide__ = True
        self.run.verify(self.scenario, self)

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **given: Any
    ) -> Any:
        """The failure; of a traceback only the visible frames below this item."""
        if not self.config.getoption("fulltrace"):
            below = excinfo.traceback.cut(path=__file__).filter(excinfo)
            excinfo.traceback = below or excinfo.traceback
        return super().repr_failure(excinfo, *args, **given)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """The file and the line of the variable, counted from 0."""
        line = _lines(self.path).get(self.variable)
        return self.path, line and line - 1, self.name


def make_item(
    module: pytest.Module, name: str, scenario: Scenario, run: ExploringProcess
) -> ScenarioItem | None:
    """The item of this variable, or None where it is none."""
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


# A module has several items.
_lines = lru_cache(maxsize=8)(assigned_lines)


class Explore:
    """Explores scenarios for one test; the test fails where one does not hold."""

    def __init__(self, run: ExploringProcess, item: pytest.Item) -> None:
        self._run = run
        self._item = item
        self._calls = 0

    def __call__(
        self,
        *what: Scenario | Step,
        name: str | None = None,
        strategy: str | None = None,
        budget: Budget | None = None,
        check: bool = True,
        **given: Any,
    ) -> Report:
        """Explore one scenario, or the steps of one, and return the report.

        Args:
            what: a `Scenario`, or steps; then `given` is as for `Scenario`.
            name: its name below the test's, where a test explores several.
            strategy: as for `harness.explore`; the flag and the ini file if None.
            budget: likewise.
            check: whether the test fails if the scenario does not hold or is not as
                expected; if not, whoever called looks at the report.
            given: `uses`, `order_dependent` and so on.

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
            scenario = _scenario(what, given).named(base, source)
        except HarnessError as error:
            # Where in the harness that was seen says nothing to who called.
            raise error.with_traceback(None) from None
        return self._run.verify(
            scenario, self._item, strategy=strategy, budget=budget, check=check
        )


def _scenario(what: tuple[Any, ...], given: dict[str, Any]) -> Scenario:
    make: Callable[..., Scenario] = Scenario
    if len(what) == 1 and isinstance(what[0], Scenario) and not given:
        return what[0]
    return make(*what, **given)


class Notes(Protocol):
    """The notes on a run that `everyorder` takes before and beside the plugin."""

    input: dict[str, Any] | None
    passed: set[str]
    skipped: list[str]
    deselected: int

    @property
    def folder(self) -> Path:
        """The folder of the run."""
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
        """The journal of this process."""
        given = self._notes.input
        worker = "main" if given is None else str(given["workerid"])
        return Journal(self._notes.folder, worker)

    @cached_property
    def run(self) -> ExploringProcess:
        """The explorations of this process."""
        return ExploringProcess(self.config.rootpath, self.options, self.journal)

    def item(self, collector: Any, name: str, scenario: object) -> pytest.Item | None:
        """The item of a module's variable, if it is one."""
        assert isinstance(scenario, Scenario), "who calls has looked"
        if not isinstance(collector, pytest.Module):
            return None
        return make_item(collector, name, scenario, self.run)

    def collected(self, items: Sequence[pytest.Item]) -> None:
        """Note what this process may explore, and what it cannot know of."""
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
        """Nothing more is run here."""
        self.journal.close()

    def finish(self, session: pytest.Session, exitstatus: int) -> None:
        """Write what was accepted, and fail the run for what is stale."""
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
        """One line with the counts, what it cannot tell, and what stands beside."""
        summary = self.summary
        if summary is None or not (summary.scenarios or summary.failed):
            return
        for line in summary.details():
            terminalreporter.write_line(line, red=True)
        terminalreporter.write_line(summary.line())
        if summary.silent:
            terminalreporter.write_line(summary.silent_line())
        for line in summary.note_lines(self.config.get_terminal_writer().fullwidth):
            terminalreporter.write_line(line)
        if self.options.cannot_fork:
            terminalreporter.write_line(
                "explored in this process: this system cannot fork, so a step that "
                "ends its process ends the run"
            )
