"""The pytest plugin at work: scenarios as tests, and the fixture `explore`.

True only here: the policy, each piece over one of the `plugin_*` modules.  The hooks
themselves are in `everyorder`, which makes a `Plugin` when there is something to do.

How it works: every process (the only one, or each worker of pytest-xdist) has a `Run`
that explores, compares and appends to its own journal in the folder of the run.  The
process that started the run (the controller) names that folder, reads all journals at
the end and alone writes expect files, so `-n 8` writes what `-n 0` writes, and a killed
worker loses nothing that was finished.

Rule: no project file is written or created by a run that accepts nothing.
"""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import pytest

from harness.expectations.store import Journal
from harness.plugin_item import make_item
from harness.plugin_options import Options
from harness.plugin_run import Run
from harness.plugin_session import Summary, finish
from harness.scenario import Scenario


class Notes(Protocol):
    """What was noted of the run while there was no plugin, and goes on to be."""

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
        """What this process had."""
        given = self._notes.input
        worker = "main" if given is None else str(given["workerid"])
        return Journal(self._notes.folder, worker)

    @cached_property
    def run(self) -> Run:
        """What the tests of this process share."""
        return Run(self.config.rootpath, self.options, self.journal)

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

    def tell(self, terminalreporter: Any) -> None:
        """One line with the counts, what it cannot tell, and what stands beside."""
        summary = self.summary
        if summary is None or not (summary.scenarios or summary.failed):
            return
        for line in summary.details():
            terminalreporter.write_line(line, red=True)
        terminalreporter.write_line(summary.line())
        if summary.silent:
            terminalreporter.write_line(summary.unseen())
        for line in summary.told(self.config.get_terminal_writer().fullwidth):
            terminalreporter.write_line(line)
        if self.options.cannot_fork:
            terminalreporter.write_line(
                "explored in this process: this system cannot fork, so a step that "
                "ends its process ends the run"
            )
