"""The pytest plugin: scenarios as tests, and the fixture `explore`.

True only here: the hooks, each one line of policy over the `plugin_*` modules.

How it works: every process (the only one, or each worker of pytest-xdist) has a `Run`
that explores, compares and appends to its own journal in the folder of the run.  The
process that started the run (the controller) names that folder, reads all journals at
the end and alone writes expect files, so `-n 8` writes what `-n 0` writes, and a killed
worker loses nothing that was finished.

Rules:
- nothing heavy is imported before a scenario or the fixture is met;
- no project file is written or created by a run that accepts nothing.
"""

import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from harness.plugin_options import Options, add_options, options_of

if TYPE_CHECKING:
    from harness.expectations.journal import Journal
    from harness.plugin_fixture import Explore
    from harness.plugin_run import Run
    from harness.plugin_session import Summary

# The key under which the controller tells a worker the folder of the run.
_FOLDER = "everyorder_folder"


class Plugin:
    """The state of the plugin in one process."""

    def __init__(self, config: pytest.Config, options: Options) -> None:
        self.config = config
        self.options = options
        self.input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self.deselected = 0
        self.summary: Summary | None = None
        self.passed: set[str] = set()
        self._folder: Path | None = None
        self._journal: Journal | None = None
        self._run: Run | None = None

    @property
    def folder(self) -> Path:
        """The folder of the run; the controller makes it when it is first asked for."""
        if self._folder is None:
            if self.input is not None:
                self._folder = Path(self.input[_FOLDER])
            else:
                self._folder = Path(tempfile.mkdtemp(prefix="everyorder-"))
        return self._folder

    @property
    def run(self) -> "Run":
        """What the tests of this process share."""
        if self._run is None:
            from harness.plugin_run import Run

            self._run = Run(self.config.rootpath, self.options, self.journal)
        return self._run

    @property
    def journal(self) -> "Journal":
        """What this process had."""
        if self._journal is None:
            from harness.expectations.journal import Journal

            worker = "main" if self.input is None else str(self.input["workerid"])
            self._journal = Journal(self.folder, worker)
        return self._journal

    def is_used(self) -> bool:
        """Whether this process met a scenario, or a project that has expect files."""
        return self._run is not None or (self.config.rootpath / "expect").is_dir()

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell a worker of pytest-xdist the folder of the run."""
        node.workerinput[_FOLDER] = str(self.folder)

    @pytest.hookimpl(tryfirst=True)
    def pytest_pycollect_makeitem(
        self, collector: Any, name: str, obj: object
    ) -> pytest.Item | None:
        """Make module-level scenarios items."""
        scenarios = sys.modules.get("harness.scenario")
        if scenarios is None or not isinstance(collector, pytest.Module):
            return None
        if not isinstance(obj, scenarios.Scenario):
            return None
        from harness.plugin_item import make_item

        return make_item(collector, name, obj, self.run)

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        """Count what was deselected, by whomever."""
        self.deselected += len(items)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note modules that were skipped or broken: their scenarios are not known."""
        if not report.passed and self.is_used():
            record = {"kind": "skipped", "node": report.nodeid}
            self.journal.append(record)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Note what this process may explore."""
        explorers, scenarios = [], []
        for item in session.items:
            scenario = getattr(item, "scenario", None)
            if scenario is not None and hasattr(scenario, "path"):
                scenarios.append(scenario.path)
            elif "explore" in getattr(item, "fixturenames", ()):
                explorers.append(item.nodeid)
        if explorers or scenarios or self.is_used():
            self.journal.append(
                {
                    "kind": "collected",
                    "scenarios": scenarios,
                    "explorers": explorers,
                    "deselected": self.deselected,
                }
            )

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Watch which tests pass, wherever they run."""
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """In the controller: write what was accepted, and fail for what is stale."""
        if self._journal is not None:
            self._journal.close()
        if self.input is not None or self._folder is None:
            return
        from harness.plugin_session import finish

        self.summary = finish(
            self.config, self.options, self._folder, self.passed, int(exitstatus)
        )
        if self.summary.failed and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """One line with the counts, and what it cannot tell."""
        summary = self.summary
        if summary is None or not (summary.scenarios or summary.failed):
            return
        for line in summary.details():
            terminalreporter.write_line(line, red=True)
        terminalreporter.write_line(summary.line())
        if summary.silent:
            terminalreporter.write_line(summary.unseen())

    def pytest_unconfigure(self) -> None:
        """Remove the folder of the run."""
        if self.input is None and self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


_KEY = pytest.StashKey[Plugin]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options."""
    add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    """Check the options and take up work."""
    plugin = Plugin(config, options_of(config))
    config.stash[_KEY] = plugin
    config.pluginmanager.register(plugin, "everyorder-run")


@pytest.fixture
def explore(request: pytest.FixtureRequest) -> "Explore":
    """Explore steps in every order: `explore(define(...), impl(...), uses=[...])`.

    Fails the test if an order makes a difference, or if what is observed is not what
    the test's expect file says.  Returns the report.
    """
    from harness.plugin_fixture import Explore

    return Explore(request.config.stash[_KEY].run, request.node)
