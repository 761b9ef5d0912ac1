"""One scenario of a test, explored in a forked child of the pytest process.

True only here: what has to come back so that nobody notices the fork.  The report, or
what the scenario raised; what it printed (`harness.child`); warnings and log records,
which pytest collects in the process of the test; and the names of our own modules that
were imported meanwhile, so that the next child finds them imported.

A step that ends the process fails this test, and no other.
"""

import logging
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from harness.carried import Carried, arrived, carry
from harness.child import Child, Parent, start, wait
from harness.engine import Progress, pulse
from harness.errors import HarnessError
from harness.outcome import Report
from harness.report.unexplored import Unexplored
from harness.scenario import Scenario
from harness.watch import TICK, Limits, Subject, Watch, crashed, hung

# Packages of ours: what is imported of them says nothing to anybody else.
_OURS = ("harness", "invariants", "runtime")

# Different warnings, and records of a log, that one exploration may give; one that logs
# at every step would give millions.
MOST_WARNINGS = 1_000
MOST_RECORDS = 10_000

Explore = Callable[[Progress | None], Report]
"""Explores, and tells how far it is."""


@dataclass(eq=False, kw_only=True)
class Died(HarnessError):
    """The child that explored has crashed, or was killed because it hung."""

    told: Unexplored

    def render(self) -> str:
        """What is told of it."""
        return f"{self.told.sentence}\n{self.told.render()}"


@dataclass(frozen=True, slots=True)
class _Warning:
    message: Warning
    category: type[Warning]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class _Result:
    """What a child ends with."""

    outcome: Report | Carried
    warnings: tuple[_Warning, ...]
    modules: tuple[str, ...]


def explore_apart(
    scenario: Scenario, explore: Explore, limits: Limits, root: Path
) -> Report:
    """The report of `explore`, which is called in a child.

    Raises whatever it raises, and `Died`.
    """
    subject = Subject(
        scenario.path,
        scenario.source,
        tuple(step.text for step in scenario.steps),
        tuple(use.text for use in scenario.uses),
        root,
    )
    child = start(_explore, explore)
    try:
        result = _result(child, subject, limits)
        child.finish()
    finally:
        child.kill()
    _warn(result.warnings)
    for name in result.modules:
        with suppress(ImportError):
            import_module(name)
    if isinstance(result.outcome, Carried):
        raise arrived(result.outcome)
    return result.outcome


def _result(child: Child, subject: Subject, limits: Limits) -> _Result:
    """Wait for it, and pass on what is logged meanwhile.  Raises `Died`."""
    watch = Watch(child, limits)
    while True:
        wait((child,), TICK)
        how = child.ended()
        for message in child.read():
            if isinstance(message, _Result):
                return message
            _log(message)
        if how is not None:
            raise Died(told=crashed(subject, child, how))
        overdue = watch.overdue()
        if overdue is not None:
            raise Died(told=hung(subject, child, limits, overdue))


def _warn(noted: Iterable[_Warning]) -> None:
    """Show what was shown there: whether it is to be was decided there."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for each in noted:
            warnings.warn_explicit(each.message, each.category, each.file, each.line)


def _log(fields: dict[str, Any]) -> None:
    """What the loggers of the child had for the root's handlers, which are here."""
    record = logging.makeLogRecord(fields)
    for handler in logging.getLogger().handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


def _explore(parent: Parent, explore: Explore) -> None:
    """The child's main function."""
    known = set(sys.modules)
    outcome: Report | Carried
    with _noting() as noted, pulse.watched(parent.cells) as beats:
        _pass_on_logs(parent)
        try:
            outcome = explore(beats.progress)
        except BaseException as error:
            # Of any kind: it is raised again where the test is.
            outcome = carry(error)
        beats.rest()
    modules = tuple(
        name
        for name in sys.modules
        if name.partition(".")[0] in _OURS and name not in known
    )
    try:
        parent.send(_Result(outcome, _picklable(noted.values()), modules))
    except OSError:
        raise
    except Exception as error:
        error.add_note("its report cannot cross to another process")
        parent.send(_Result(carry(error), (), modules))


@contextmanager
def _noting() -> Iterator[dict[tuple[str, str, int], _Warning]]:
    """The warnings that are shown meanwhile, each once."""
    noted: dict[tuple[str, str, int], _Warning] = {}

    def note(
        message: Warning | str,
        category: type[Warning],
        filename: str,
        lineno: int,
        *_: object,
        **__: object,
    ) -> None:
        if isinstance(message, str):
            message = category(message)
        if len(noted) < MOST_WARNINGS:
            key = (str(message), filename, lineno)
            noted.setdefault(key, _Warning(message, category, filename, lineno))

    with warnings.catch_warnings():
        warnings.showwarning = note
        yield noted


def _picklable(noted: Iterable[_Warning]) -> tuple[_Warning, ...]:
    """The warnings, as plain ones where their own class or arguments cannot cross."""
    import pickle

    told = []
    for each in noted:
        try:
            pickle.dumps(each)
        except Exception:
            text = f"{each.category.__name__}: {each.message}"
            base = next(kind for kind in each.category.__mro__ if _is_builtin(kind))
            assert issubclass(base, Warning), "every warning is one"
            told.append(_Warning(base(text), base, each.file, each.line))
        else:
            told.append(each)
    return tuple(told)


def _is_builtin(kind: type) -> bool:
    return kind.__module__ == "builtins"


def _pass_on_logs(parent: Parent) -> None:
    """Let the parent have what the root's handlers would have had."""
    root = logging.getLogger()
    if not root.handlers:
        return
    passing = _Passing(parent)
    passing.setLevel(min(handler.level for handler in root.handlers))
    root.handlers[:] = [passing]


class _Passing(logging.Handler):
    """Sends records to the parent, with texts in place of their arguments."""

    def __init__(self, parent: Parent) -> None:
        super().__init__()
        self._parent = parent
        self._left = MOST_RECORDS

    def emit(self, record: logging.LogRecord) -> None:
        """Send one."""
        if not self._left:
            return
        self._left -= 1
        fields = {**vars(record), "msg": record.getMessage(), "args": None}
        if record.exc_info:
            fields["exc_text"] = logging.Formatter().formatException(record.exc_info)
            fields["exc_info"] = None
        plain = (str, int, float, type(None))
        self._parent.send(
            {name: value for name, value in fields.items() if isinstance(value, plain)}
        )
