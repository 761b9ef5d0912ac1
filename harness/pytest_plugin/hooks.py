"""Hooks and fixture of the pytest plugin, which cost nothing until they are needed.

`_Standby` records the facts that the plugin needs later (skipped modules, passed tests)
until a test module holds a `Scenario`, a test requests the fixture `explore`, or the
project has expect files; then it creates `Plugin` and forwards every hook to it.

Rules:
- the rest of the harness is not imported before one of these happens.
"""

import sys
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from everyorder.harness.pytest_plugin.plugin import Explore, Plugin
    from everyorder.harness.pytest_plugin.verification import Verifier


def pytest_addoption(parser: "pytest.Parser") -> None:
    """Declare the flags and their ini twins."""
    group = parser.getgroup("everyorder", "everyorder: scenarios in every order")
    group.addoption(
        "--everyorder-update",
        nargs="?",
        const="all",
        metavar="all|new|SCENARIO",
        help="Write what is observed to the expect files: 'all' (also without a value; "
        "deletes stale entries and files, too), 'new' (adds only), or one scenario by "
        "its path, a pattern of paths, or its test's id. Write the value with '='.",
    )
    parser.addini(
        "everyorder_update", "none, new or all; see the flag.", default="none"
    )
    strategy = "How to explore: 'auto', or strategies joined by '+' (graph+walk:2)."
    group.addoption("--everyorder-strategy", metavar="STRATEGY", help=strategy)
    parser.addini("everyorder_strategy", strategy, default="auto")
    budget = "Seconds to explore each scenario for; then it is cut short, and fails."
    group.addoption(
        "--everyorder-budget", type=_seconds, metavar="SECONDS", help=budget
    )
    parser.addini("everyorder_budget", budget, default="")
    operation = "Time limit in seconds for each operation of a scenario; 0 for none."
    group.addoption(
        "--everyorder-operation-timeout", type=_limit, metavar="SECONDS", help=operation
    )
    parser.addini("everyorder_operation_timeout", operation, default="")
    whole = "Time limit in seconds for each scenario; 0 for none."
    group.addoption("--everyorder-timeout", type=_limit, metavar="SECONDS", help=whole)
    parser.addini("everyorder_timeout", whole, default="")
    chain = "The project's normalisers of observed texts: package.module:function ..."
    parser.addini("everyorder_normalisers", chain, type="args", default=[])
    here = "Explore in this process, not in children; implied by --pdb and --trace."
    group.addoption("--everyorder-in-process", action="store_true", help=here)
    parser.addini("everyorder_in_process", here, type="bool", default=False)


def pytest_configure(config: "pytest.Config") -> None:
    """Register the standby plugin and its fixtures."""
    standby = _Standby(config)
    # Register the fixtures first: creating them marks the hooks.
    config.pluginmanager.register(_fixtures(standby), "everyorder-fixtures")
    config.pluginmanager.register(standby, "everyorder-run")


def _seconds(text: str) -> float:
    seconds = _number(text)
    if not seconds > 0:  # NaN is neither
        raise _refusal(f"{text!r} is not a number above 0")
    return seconds


def _limit(text: str) -> float:
    seconds = _number(text)
    if not seconds >= 0:
        raise _refusal(f"{text!r} is not a number of seconds")
    return seconds


def _number(text: str) -> float:
    """Return the number, or NaN if the text is not a number."""
    try:
        return float(text)
    except ValueError:
        return float("nan")


def _refusal(text: str) -> Exception:
    from argparse import ArgumentTypeError

    return ArgumentTypeError(text)


# The key under which the controller sends the folder of the run to a worker.
_FOLDER = "everyorder_folder"

# The key under which a worker sends the scenarios that it has not collected.
_UNCOLLECTED = "everyorder_uncollected"

# Settings that are checked before the collection, because a user may have set them.
_SETTINGS = ("update", "strategy", "budget", "operation_timeout", "timeout")

# The beginning of the first line of an expect file.
_EXPECTED = b"everyorder expect file"


class _Standby:
    """The plugin in one process, before it has anything to do and after."""

    def __init__(self, config: "pytest.Config") -> None:
        self.config = config
        self.input: dict[str, Any] | None = getattr(config, "workerinput", None)
        # Of a command, which explores in the place of the plugin, and prints itself.
        self.verifier: Verifier | None = None
        self.passed: set[str] = set()
        self.skipped: list[str] = []
        self.deselected = 0
        self._folder: str | None = None
        self._plugin: Plugin | None = None
        # Lines about scenarios that are not collected, and the modules that were
        # searched.
        self._uncollected: list[str] = []
        self._modules: set[str] = set()
        if self._is_set():
            from everyorder.harness.pytest_plugin.session import options_of

            options_of(config)

    @property
    def folder(self) -> "Path":
        """Return the folder of the run; the controller creates it on first access."""
        from pathlib import Path

        if self._folder is None:
            if self.input is not None:
                self._folder = str(self.input[_FOLDER])
            else:
                import tempfile

                self._folder = tempfile.mkdtemp(prefix="everyorder-")
        return Path(self._folder)

    @property
    def plugin(self) -> "Plugin":
        """Return the plugin itself, created on first use."""
        if self._plugin is None:
            from everyorder.harness.pytest_plugin.plugin import Plugin
            from everyorder.harness.pytest_plugin.session import options_of

            self._plugin = Plugin(self.config, options_of(self.config), self)
        return self._plugin

    def _is_set(self) -> bool:
        """Return True if a flag or the ini file has a setting."""
        option, ini = self.config.getoption, self.config.getini
        unset = ("", "none", "auto")
        return any(
            option(f"everyorder_{name}") is not None
            or ini(f"everyorder_{name}") not in unset
            for name in _SETTINGS
        )

    def _has_expectations(self) -> bool:
        """Return True if the project has an expect file, so that one may be stale."""
        files = (self.config.rootpath / "expect").rglob("*.txt")
        return any(map(_is_expect_file, files))

    def pytest_ignore_collect(self, collection_path: "Path") -> bool | None:
        """Leave out expect files, which pytest takes for doctests by their names."""
        if collection_path.suffix == ".txt" and _is_expect_file(collection_path):
            return True
        return None

    def pytest_configure_node(self, node: Any) -> None:
        """Send the folder of the run to a worker of pytest-xdist."""
        node.workerinput[_FOLDER] = str(self.folder)

    def pytest_make_collect_report(
        self, collector: "pytest.Collector"
    ) -> "Generator[None, pytest.CollectReport, pytest.CollectReport]":
        """Show a mistake in a scenario by the line of the module, and not by ours."""
        report = yield
        call = getattr(report, "call", None)
        _shorten(collector, None if call is None else call.excinfo, report)
        return report

    def pytest_runtest_makereport(
        self, item: "pytest.Item", call: "pytest.CallInfo[None]"
    ) -> "Generator[None, pytest.TestReport, pytest.TestReport]":
        """Show a mistake in a scenario by the line of the test, and not by ours."""
        report = yield
        _shorten(item, call.excinfo, report)
        return report

    def pytest_pycollect_makeitem(
        self, collector: Any, name: str, obj: object
    ) -> "pytest.Item | None":
        """Turn module-level scenarios into items."""
        scenarios: Any = sys.modules.get("everyorder.harness.scenario")
        if scenarios is None:
            return None
        if collector.nodeid not in self._modules:
            self._modules.add(collector.nodeid)
            self._note_uncollected(collector)
        # The type, not the value: `__class__` may run code of the module.
        if not issubclass(type(obj), scenarios.Scenario):
            return None
        return self.plugin.item(collector, name, obj)

    def _note_uncollected(self, collector: Any) -> None:
        """Record the scenarios of a module that are not in its public variables."""
        import pytest

        if isinstance(collector, pytest.Module):
            from everyorder.harness.exploration.uncollected import (
                uncollected_scenarios,
            )

            source = collector.nodeid.partition("::")[0]
            uncollected = uncollected_scenarios(collector.obj, collector.path, source)
            if uncollected is not None:
                self._uncollected.append(uncollected.render("everyorder: "))

    def pytest_testnodedown(self, node: Any) -> None:
        """Collect the notes that a worker of pytest-xdist made while it collected."""
        output = getattr(node, "workeroutput", None) or {}
        self._uncollected += output.get(_UNCOLLECTED, ())

    def pytest_deselected(self, items: "Sequence[pytest.Item]") -> None:
        """Count the deselected items."""
        self.deselected += len(items)

    def pytest_collectreport(self, report: "pytest.CollectReport") -> None:
        """Record modules that were skipped or broken: their scenarios are unknown."""
        if not report.passed:
            self.skipped.append(report.nodeid)

    def pytest_collection_finish(self, session: "pytest.Session") -> None:
        """Start the plugin if there is something to do."""
        if self.verifier is not None:
            return
        asking = any("explore" in _fixtures_of(item) for item in session.items)
        if self._plugin is None and not asking and not self._has_expectations():
            return
        self.plugin.collected(session.items)

    def pytest_runtest_logreport(self, report: "pytest.TestReport") -> None:
        """Record the tests that pass, in every process."""
        if report.when == "call" and report.passed:
            self.passed.add(report.nodeid)

    def pytest_sessionfinish(self, session: "pytest.Session", exitstatus: int) -> None:
        """In the controller: write accepted expect files, and fail for stale ones."""
        if self.verifier is not None:
            return
        if self._plugin is not None:
            self._plugin.close()
        if self.input is not None:
            self.config.workeroutput[_UNCOLLECTED] = self._uncollected  # type: ignore[attr-defined]  # pytest-xdist's
        if self.input is not None or self._folder is None:
            return
        if any(self.folder.iterdir()):
            self.plugin.finish(session, exitstatus)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print the plugin's summary."""
        if self.verifier is not None:
            return
        if self._plugin is not None:
            self._plugin.print_summary(terminalreporter)
        # Every worker has recorded all of them.
        for line in dict.fromkeys(self._uncollected):
            terminalreporter.write_line(line)

    def pytest_unconfigure(self) -> None:
        """Remove the folder of the run."""
        if self.input is None and self._folder is not None:
            import shutil

            shutil.rmtree(self._folder, ignore_errors=True)


def _shorten(
    node: "pytest.Item | pytest.Collector",
    excinfo: "pytest.ExceptionInfo[BaseException] | None",
    report: "pytest.TestReport | pytest.CollectReport",
) -> None:
    """Replace the traceback of an error of the harness in a report by one line."""
    errors: Any = sys.modules.get("everyorder.harness.base.errors")
    if errors is None or excinfo is None or not report.failed:
        return
    if isinstance(excinfo.value, errors.HarnessError):
        from everyorder.harness.pytest_plugin.verification import short_failure

        report.longrepr = short_failure(node, excinfo)
    return


def _is_expect_file(file: "Path") -> bool:
    try:
        with file.open("rb") as opened:
            return opened.read(len(_EXPECTED)) == _EXPECTED
    except OSError:
        return False


def _fixtures_of(item: "pytest.Item") -> Sequence[str]:
    names: Sequence[str] = getattr(item, "fixturenames", ())
    return names


def _fixtures(standby: _Standby) -> object:
    """Return the plugin's fixtures, and mark its hooks, which needs pytest."""
    import pytest

    pytest.hookimpl(optionalhook=True)(_Standby.pytest_configure_node)
    pytest.hookimpl(optionalhook=True)(_Standby.pytest_testnodedown)
    pytest.hookimpl(wrapper=True)(_Standby.pytest_make_collect_report)
    pytest.hookimpl(wrapper=True)(_Standby.pytest_runtest_makereport)
    pytest.hookimpl(tryfirst=True)(_Standby.pytest_pycollect_makeitem)
    pytest.hookimpl(trylast=True)(_Standby.pytest_sessionfinish)

    class Fixtures:
        @pytest.fixture
        def explore(self, request: pytest.FixtureRequest) -> "Explore":
            """Explore steps in every order: `explore(define(...), impl(...), uses=[])`.

            Fails the test if an order makes a difference, or if the observations differ
            from the test's expect file. Returns the report.
            """
            from everyorder.harness.pytest_plugin.plugin import Explore

            return Explore(standby.plugin.run, request.node)

    return Fixtures()
