"""One process of a pytest run: explores, compares, and writes down what it had.

True only here: what makes a test of a scenario pass.  The exploration must hold, and
must be as expected or be accepted by `--everyorder-update`.  What was had goes into the
journal at once; this process never writes an expect file.

Rules:
- a scenario that fails its exploration is not compared and never accepted;
- a test fails by `pytest.fail` without a traceback: the text is for the reader;
- properties (for JUnit reports) are set before anything can fail.
"""

import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from harness.engine import DEFAULT_BUDGET, Budget
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
from harness.plugin_options import ALL, Options
from harness.report.label import SENTENCES
from harness.report.text import render_violation
from harness.scenario import Scenario


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
        try:
            report = explore(
                scenario,
                strategy or self.options.strategy,
                budget=budget or self._budget(),
            )
            item.user_properties += _properties(report)
            if not check:
                return report
            if not report.passed:
                self._record(report, item, report.verdict)
                pytest.fail(_violated(report, item), pytrace=False)
            own = strategy is not None and budget is not None
            self._compare(report, item, effort=own or not self.options.by_hand)
        except HarnessError as error:
            pytest.fail(f"{scenario.path}: {error}", pytrace=False)
        return report

    def _budget(self) -> Budget | None:
        seconds = self.options.budget
        return None if seconds is None else replace(DEFAULT_BUDGET, seconds=seconds)

    def _compare(self, report: Report, item: pytest.Item, *, effort: bool) -> None:
        comparison = compare(self._expected(report.scenario), report, effort=effort)
        accepted = not comparison.passed and self.options.accepts(
            report.scenario, item.nodeid, only_new=comparison.only_new
        )
        self._record(report, item, comparison.verdict, comparison.found, accepted)
        if not comparison.passed and not accepted:
            pytest.fail(self._mismatch(comparison, item), pytrace=False)

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
        self.journal.append(
            {
                "kind": "result",
                "scenario": report.scenario,
                "node": item.nodeid,
                "verdict": verdict,
                "states": len(report.exploration.states),
                "edges": report.exploration.executed.edges,
                "accepted": accepted,
                "document": render(document) if accepted and document else None,
            }
        )


def _properties(report: Report) -> list[tuple[str, object]]:
    """What JUnit reports carry of an exploration."""
    found = report.exploration
    properties: list[tuple[str, object]] = [
        ("scenario", report.scenario),
        ("verdict", report.verdict),
        ("strategy", found.strategy),
        ("guarantee", found.guarantee),
        ("sets", len(found.states)),
        ("edges", found.executed.edges),
    ]
    properties += [("replay id", report.replay_id(each)) for each in found.violations]
    return properties


def _violated(report: Report, item: pytest.Item) -> str:
    lines = [f"{report.scenario}: {SENTENCES[report.verdict]}"]
    found = report.exploration
    lines += [render_violation(report, violation) for violation in found.violations]
    if report.verdict == "cut short":
        done, planned = found.executed.edges, found.planned
        lines.append(f"{done:,} of {planned:,} edges were executed ({found.strategy})")
        lines += found.skipped
    lines.append(f"    pytest {shlex.quote(item.nodeid)}")
    return "\n".join(lines)
