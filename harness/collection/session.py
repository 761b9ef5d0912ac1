"""A session of pytest inside of a command: pytest collects, the command decides.

`CommandSession.run` calls `pytest.main` with itself as a plugin, whose
`pytest_runtestloop` calls a function of the command in the place of the loop over all
tests.  So root, ini file, conftest files, markers, fixtures, import modes and plugins
are those of pytest with the same files.

Rules:
- what plugins print until pytest is configured is dropped, and reporters write to a
  buffer; the output of modules and tests is not captured;
- pytest-xdist and pytest-cov, which users switch on by `addopts`, are off;
- no file is written: no compiled module, no cache;
- if pytest refuses to start or to collect, its own words are the error;
- a module that leaves its import by SystemExit is broken, and in a child also one that
  raises KeyboardInterrupt;
- an exception of the command's function passes through pytest unchanged.

Hooks are those of https://docs.pytest.org/en/stable/reference/reference.html.
"""

import os
import sys
from collections.abc import Callable, Generator, Mapping
from contextlib import redirect_stderr, redirect_stdout
from importlib.util import find_spec
from io import StringIO
from pathlib import Path
from typing import Any, TextIO

import pytest

from everyorder.harness import pytest_plugin
from everyorder.harness.base.errors import CannotCollect
from everyorder.harness.collection.recorder import Recorder, place_of, sentence_of
from everyorder.harness.collection.selection import queries_of
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Importing,
    Selection,
)
from everyorder.harness.exploration.paths import file_of
from everyorder.harness.processes.child import trace_crashes
from everyorder.harness.pytest_plugin.plugin import ScenarioItem
from everyorder.harness.pytest_plugin.session import options_of
from everyorder.harness.report.verdict import Unexplored

# Options of pytest, pytest-xdist and the report of pytest for JUnit, by destinations.
_OFF: Mapping[str, object] = {
    "maxfail": 0,
    "xmlpath": None,
    "log_file": os.devnull,
    "basetemp": None,
    "numprocesses": 0,
    "dist": "no",
    "tx": [],
}

_REWRITTEN = "Module already imported so cannot be rewritten"


class CommandSession:
    """The plugin of one session.

    `broken` and `skipped` are modules by their sources; `modules` are the others.
    """

    session: pytest.Session
    recorder: Recorder
    _streams: tuple[TextIO, TextIO]

    def __init__(
        self,
        selection: Selection,
        effort: ExploreOptions,
        announce: Callable[[Importing], None] | None = None,
        *,
        make: type[Recorder] = Recorder,
        only_root: bool = False,
    ) -> None:
        self.selection = selection
        self.queries = queries_of(selection.paths)
        self.modules: list[pytest.Module] = []
        self.broken: dict[str, Unexplored] = {}
        self.skipped: dict[str, str] = {}
        self.deselected = 0
        self._effort = effort
        self._make = make
        self._only_root = only_root
        # Only a child announces; there Ctrl-C never arrives.
        self._announce = announce
        self._body: Callable[[], None] = lambda: None
        self._has_begun = False
        self._error: BaseException | None = None
        self._refusal = ""
        self._printed = StringIO()

    @property
    def root(self) -> Path:
        """Return pytest's root."""
        return self.session.config.rootpath

    def run(self, body: Callable[[], None]) -> None:
        """Run the session, and call `body` once everything is collected.

        Raises:
            CannotCollect: pytest refuses to start, or to collect.
            BaseException: every exception of `body`.
        """
        self._body = body
        self._streams = sys.stdout, sys.stderr
        writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
        try:
            with redirect_stdout(StringIO()), redirect_stderr(self._printed):
                code = int(pytest.main(self._arguments(), plugins=[self]))
        except Exception as error:  # of pytest, or of a plugin that it configures
            if self._has_begun:
                raise
            code, self._refusal = 3, sentence_of(error)
        finally:
            sys.dont_write_bytecode = writes
        if self._error is not None:
            raise self._error
        if not self._has_begun:
            text = self._refusal or self._printed.getvalue().strip()
            reason = text.removeprefix("ERROR: ") or f"exit code {code}"
            raise CannotCollect(reason=reason)

    def _arguments(self) -> list[str]:
        places = (each.place for each in self.queries)
        arguments = [str(place) for place in places if place is not None]
        if not self.queries:
            arguments += self.selection.default
        # The commands have imported modules whose assertions pytest would rewrite.
        arguments += [
            "-s",
            "-W",
            f"ignore:{_REWRITTEN}:pytest.PytestAssertRewriteWarning",
        ]
        # An option of a plugin that is not loaded is refused.
        by_itself = "PYTEST_DISABLE_PLUGIN_AUTOLOAD" not in os.environ
        if by_itself and find_spec("pytest_cov") is not None:
            arguments.append("--no-cov")
        return arguments

    @pytest.hookimpl(tryfirst=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config) -> None:
        """Load the plugin of the harness where it is not installed."""
        plugins = early_config.pluginmanager
        if pytest_plugin not in plugins.get_plugins():
            plugins.register(pytest_plugin, pytest_plugin.__name__)

    @pytest.hookimpl(tryfirst=True)
    def pytest_cmdline_main(self, config: pytest.Config) -> None:
        """Switch off what ends a session early, writes files, or starts processes.

        Children at once would empty each other's `--basetemp`.
        """
        for name, value in _OFF.items():
            if hasattr(config.option, name):
                setattr(config.option, name, value)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Choose what is collected, and who explores."""
        config = session.config
        if self._announce is not None:
            # The parent asks for stacks and has time limits; and the plugin would wait
            # for ever for a thread of a parent that has it, too.
            config.pluginmanager.unregister(name="faulthandler")
            trace_crashes()
        sys.stdout, sys.stderr = self._streams
        sys.stderr.write(self._printed.getvalue())
        self._printed = StringIO()
        self.session = session
        if (cache := getattr(config, "cache", None)) is not None:
            cache.set = lambda key, value: None
        config.args = self._to_collect(config)
        self.recorder = self._make(
            config.rootpath,
            options_of(config),
            self._effort,
            in_child=self._announce is not None,
        )
        standby: Any = config.pluginmanager.get_plugin("everyorder-run")
        standby.verifier = self.recorder

    def _to_collect(self, config: pytest.Config) -> list[str]:
        """Return pytest's arguments: the files and folders of all queries."""
        if self.selection.file is not None:
            return [str(self.selection.file)]
        arguments: list[str] = [] if self.queries else config.args
        for query in self.queries:
            file = query.place or file_of(query.name, config.rootpath, least=1)[0]
            if file is not None:
                arguments.append(str(file))
            else:
                arguments += self._default(config)
        # Of files that are named pytest does not ask whether it ignores them.
        dead = self.selection.deaths
        return [each for each in dict.fromkeys(arguments) if each not in dead]

    def _default(self, config: pytest.Config) -> list[str]:
        """Return what is collected for a part of a scenario's path."""
        root = config.rootpath
        if self.selection.default:
            return list(self.selection.default)
        patterns = config.getini("testpaths")
        folders = [path for each in patterns for path in sorted(root.glob(each))]
        return list(map(str, folders or [root]))

    @pytest.hookimpl(wrapper=True)
    def pytest_collection(self) -> Generator[None, Any, Any]:
        """Remember why pytest refuses to collect."""
        try:
            return (yield)
        except pytest.UsageError as error:
            self._refusal = "\n".join(map(str, error.args))
            sys.stderr = StringIO()  # pytest prints the same
            raise

    def pytest_internalerror(self, excrepr: object) -> None:
        """Remember an error of pytest or of a plugin."""
        self._refusal = str(excrepr)

    def pytest_keyboard_interrupt(
        self, excinfo: "pytest.ExceptionInfo[BaseException]"
    ) -> None:
        """Remember Ctrl-C, and `pytest.exit`."""
        if isinstance(excinfo.value, KeyboardInterrupt):
            self._error = excinfo.value
        self._refusal = str(excinfo.value)

    def pytest_ignore_collect(self, collection_path: Path) -> bool | None:
        """Leave out modules and folders whose import ended a child."""
        names = (str(collection_path), str(collection_path / "conftest.py"))
        is_dead = any(name in self.selection.deaths for name in names)
        return True if self._only_root or is_dead else None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_make_collect_report(
        self, collector: pytest.Collector
    ) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
        """Announce imports, and record modules by their results."""
        is_module = isinstance(collector, pytest.Module)
        file = collector.path if is_module else collector.path / "conftest.py"
        source = collector.nodeid
        if self._announce is not None and (is_module or file.is_file()):
            place = source if is_module else f"{source}/{file.name}"
            self._announce(Importing(place, file, self.root))
        leaving = (SystemExit, KeyboardInterrupt) if self._announce else (SystemExit,)
        try:
            report = yield
        except leaving as error:
            self.broken[source] = broken_module(source, collector.path, error)
            return pytest.CollectReport(source, "failed", None, [])
        finally:
            if self._announce is not None:
                self._announce(Importing("", file, self.root))
        # A module of doctests is a module of pytest, too.
        if not isinstance(collector, pytest.Module) or (
            type(collector).__module__ == "_pytest.doctest"
        ):
            return report
        if report.passed:
            self.modules.append(collector)
        elif report.skipped:
            reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
            self.skipped[source] = str(reason).removeprefix("Skipped: ")
        return report

    def pytest_exception_interact(
        self,
        node: pytest.Item | pytest.Collector,
        call: "pytest.CallInfo[Any]",
    ) -> None:
        """Record a module or folder that cannot be collected."""
        if isinstance(node, pytest.Collector) and call.excinfo is not None:
            error = call.excinfo.value
            if isinstance(error, pytest.Collector.CollectError):
                error = error.__cause__ or error
            source = node.nodeid or "."
            self.broken[source] = broken_module(source, node.path, error)

    def pytest_deselected(self, items: "list[pytest.Item]") -> None:
        """Count the items that explore and that pytest's options deselect."""
        self.deselected += sum(map(is_exploring, items))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: "pytest.CallInfo[None]"
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Record the result of each phase of an item."""
        report = yield
        self.recorder.note_result(item, call, report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self) -> bool:
        """Call the command's function in the place of the loop over all tests."""
        self._has_begun = True
        try:
            self._body()
        except BaseException as error:  # raised again by `run`
            self._error = error
        return True


def is_exploring(item: pytest.Item) -> bool:
    """Return True for a scenario, and for a test with the fixture `explore`."""
    if isinstance(item, ScenarioItem) or "explore" in getattr(item, "fixturenames", ()):
        return True
    # request.getfixturevalue("explore")
    code = getattr(getattr(item, "function", None), "__code__", None)
    return code is not None and "explore" in code.co_consts


def broken_module(source: str, file: Path, error: BaseException) -> Unexplored:
    """Return the report on a module that cannot be imported, with its line."""
    where, reason = place_of(error, file, source), sentence_of(error)
    return Unexplored(source.removeprefix("tests/"), where, reason)
