"""One process of a pytest run: explores, compares, and writes down what it had.

True only here: what makes a test of a scenario pass.  The exploration must hold, and
must be as expected or be accepted by `--everyorder-update`.  It happens in a child, so
that a step can end that only.  What was had goes into the journal at once; this process
never writes an expect file.

Rules:
- a scenario that fails its exploration is not compared and never accepted;
- a test fails by `pytest.fail` without a traceback: the text is for the reader, and
  nothing is told of what was being handled;
- what the functions of a scenario raise is shown from their first frame on, unless
  `--full-trace` asks for ours too;
- a scenario that skips itself skips its test; nothing is expected of it meanwhile;
- properties (for JUnit reports) are set before anything can fail.
"""

import os
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engine import DEFAULT_BUDGET, Budget, Progress
from harness.errors import HarnessError
from harness.expectations import (
    Comparison,
    DamagedExpectFile,
    Document,
    Journal,
    Store,
    compare,
    explain,
    render,
)
from harness.exploring import explore
from harness.outcome import Report
from harness.plugin_child import Died, explore_apart
from harness.plugin_options import ALL, Options
from harness.report import noted
from harness.report.text import (
    SENTENCES,
    assumptions,
    never_done,
    reasons,
    render_violation,
    vacuous,
)
from harness.scenario import Scenario
from harness.systems.outcomes import ScenarioSkipped

# The files of the harness begin with this.
OURS = f"{Path(__file__).parent}{os.sep}"


class Run:
    """What the tests of one process share."""

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
            report = self._explored(
                scenario, strategy or self.options.strategy, budget or self._budget()
            )
            item.user_properties += _properties(report)
            if check:
                own = strategy is not None and budget is not None
                effort = own or not self.options.by_hand
                failure = self._judged(report, item, effort=effort)
        except Died as error:
            failure = self._died(error, item)
        except ScenarioSkipped as error:
            skipped = self._skipped(error, scenario, item)
        except HarnessError as error:
            failure = f"{scenario.path}: {error}"
        except (Exception, SystemExit) as error:
            if not item.config.getoption("fulltrace"):
                _shorten(error)
            raise
        # Not in a handler: the error is no context of what is told.
        if skipped is not None:
            # Told as of the test: nobody looks for the reason in this file.
            raise pytest.skip.Exception(skipped, _use_item_location=True)
        if failure is not None:
            pytest.fail(failure, pytrace=False)
        return report

    def _explored(
        self, scenario: Scenario, strategy: str, budget: Budget | None
    ) -> Report:
        def explored(progress: Progress | None = None) -> Report:
            return explore(scenario, strategy, budget=budget, progress=progress)

        if not self.options.apart:
            return explored()
        limits, root = self.options.limits, self.store.root
        return explore_apart(scenario, explored, limits, root)

    def _died(self, error: Died, item: pytest.Item) -> str:
        """Why the test fails of which the child has died."""
        told = error.told
        item.user_properties += [
            ("scenario", told.scenario),
            ("verdict", told.verdict),
            ("operation", told.operation),
        ]
        self._append(told.scenario, item, told.verdict)
        command = f"pytest {shlex.quote(item.nodeid)} --everyorder-in-process"
        return f"{told.scenario}: {error}\n    {command}"

    def _skipped(
        self, error: ScenarioSkipped, scenario: Scenario, item: pytest.Item
    ) -> str:
        """Why the test is skipped of which a function has skipped the scenario."""
        item.user_properties += [
            ("scenario", scenario.path),
            ("verdict", "skipped"),
            ("skipped", error.reason),
        ]
        self._append(scenario.path, item, "skipped")
        return error.reason

    def _judged(self, report: Report, item: pytest.Item, *, effort: bool) -> str | None:
        """Why the test fails, if it does; what was had goes into the journal."""
        if not report.passed:
            self._record(report, item, report.verdict)
            return _violated(report, item)
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
        notes = noted(report)
        self._append(
            report.scenario,
            item,
            verdict,
            states=len(report.exploration.states),
            transitions=report.exploration.executed.transitions,
            accepted=accepted,
            silent=never_done(report) if report.passed else [],
            proven=notes.proven,
            notes=notes.texts,
            document=render(document) if accepted and document else None,
        )

    def _append(
        self,
        scenario: str,
        item: pytest.Item,
        verdict: str,
        *,
        states: int = 0,
        transitions: int = 0,
        accepted: bool = False,
        silent: Sequence[str] = (),
        proven: bool = False,
        notes: Sequence[Sequence[str]] = (),
        document: str | None = None,
    ) -> None:
        """Write down the result of a scenario."""
        self.journal.append(
            {
                "kind": "result",
                "scenario": scenario,
                "node": item.nodeid,
                "verdict": verdict,
                "states": states,
                "transitions": transitions,
                "accepted": accepted,
                "silent": silent,
                "proven": proven,
                "notes": notes,
                "document": document,
            }
        )


def _shorten(error: BaseException) -> None:
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
    """What JUnit reports carry of an exploration."""
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
        ("vacuous", vacuous(report)),
    ):
        properties += [(name, text) for text in texts]
    properties += [("replay id", report.replay_id(each)) for each in found.violations]
    return properties


def _violated(report: Report, item: pytest.Item) -> str:
    lines = [f"{report.scenario}: {SENTENCES[report.verdict]}"]
    found = report.exploration
    lines += [render_violation(report, violation) for violation in found.violations]
    lines += reasons(report)
    lines.append(f"    pytest {shlex.quote(item.nodeid)}")
    return "\n".join(lines)
