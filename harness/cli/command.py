"""Shared parts of the commands: exit codes, errors, signals and arguments.

The exit code of `run` says whether everything passed, that of `gate` what failed: the
lowest one if several apply. A scenario that skips itself is listed and counted, and has
no code. An error of the harness is one message without a traceback, and exit code 2.
Any other exception is a defect of this package and is not caught; a scenario that fails
is a result.

While a command runs, Ctrl-C and SIGTERM both raise KeyboardInterrupt, as Python does
for Ctrl-C, which ends it with exit code 130. While children explore, the exception
could occur between the start of a child and its registration, in a callback that may
not raise, or while a file is half written; so it is deferred there, and raised when the
code checks for it.

Rules:
- a second signal is not deferred: its sender does not want to wait;
- ignored signals stay ignored (a shell ignores Ctrl-C for programs in the background),
  and nothing is changed outside of the main thread, where Python does not run handlers;
- every handler is restored.

When you add a code, add its sentence to `GATE`: help texts and messages print it.
"""

import json
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from types import FrameType
from typing import IO, TYPE_CHECKING, Any, TypeAlias

import click

from everyorder.harness.base.columns import wrap_lines
from everyorder.harness.base.errors import FileError
from everyorder.harness.report.verdict import Failure, Verdict

if TYPE_CHECKING:
    from rich.console import Console

OK = 0
FAILED = 1  # `run` and `replay`: something is wrong
REFUSED = 2  # the command could not be carried out as typed
# By Ctrl-C or SIGTERM; shells use 128 plus the number of the signal for Ctrl-C.
INTERRUPTED = 130

LAW = 10
ORDER = 11
CHANGED = 12
MISSING = 13
STALE = 14
RANDOM = 15
CUT_SHORT = 16
NOT_LOADED = 17
NOT_EXPLORED = 18
VACUOUS = 19
HIDDEN = 20
NOT_FRESH = 21
CRASHED = 22
HUNG = 23

GATE: Mapping[int, str] = {
    OK: "everything is as expected",
    LAW: "a law is broken",
    ORDER: "something depends on order or history, or a pin pins nothing",
    CHANGED: "an expectation differs, or its file is damaged",
    MISSING: "an expectation is missing",
    STALE: "an expectation is stale",
    RANDOM: "a scenario is not deterministic",
    CUT_SHORT: "an exploration was cut short by its budget",
    NOT_LOADED: "a scenario could not be loaded",
    NOT_EXPLORED: "a scenario could not be explored",
    VACUOUS: "nothing in a scenario could have failed",
    HIDDEN: "a registry has state that cannot be seen",
    NOT_FRESH: "a scenario's `create` does not make a fresh system",
    CRASHED: "a process died of a scenario",
    HUNG: "an operation or a scenario was not over in time",
}

VERDICT_CODES: Mapping[Verdict, int] = {
    "nondeterminism": RANDOM,
    "law": LAW,
    "order": ORDER,
    "unpinned": ORDER,
    "not fresh": NOT_FRESH,
    "hidden": HIDDEN,
    "typo": VACUOUS,
    "vacuous": VACUOUS,
    "cut short": CUT_SHORT,
    "pinned": OK,
    "holds": OK,
    "proven": OK,
}

FAILURE_CODES: Mapping[Failure, int] = {
    "failed": NOT_EXPLORED,
    "crashed": CRASHED,
    "hung": HUNG,
    "skipped": OK,
}

COMPARISON_CODES: Mapping[str, int] = {
    "unchanged": OK,
    "changed": CHANGED,
    "missing": MISSING,
    "stale": STALE,
}


def exit_code_table() -> str:
    """Return the codes of `gate` for its help, one a line."""
    return "\n".join(f"  {code:>2}  {sentence}" for code, sentence in GATE.items())


Handler: TypeAlias = Callable[[int, FrameType | None], Any]

_SIGNALS: tuple[int, ...] = (signal.SIGINT, signal.SIGTERM)


@contextmanager
def raise_interrupts() -> Iterator[None]:
    """Context: both signals raise KeyboardInterrupt."""
    with _signal_handler(signal.default_int_handler):
        yield


@contextmanager
def defer_interrupts() -> Iterator[Callable[[], None]]:
    """Context: the first signal waits until the yielded function raises for it.

    The function raises KeyboardInterrupt.

    The end of the context raises it as well.
    """
    waiting = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal waiting
        if waiting:
            signal.default_int_handler(number, frame)
        waiting = True

    def check() -> None:
        nonlocal waiting
        if waiting:
            waiting = False
            raise KeyboardInterrupt

    with _signal_handler(note):
        yield check
        check()


@contextmanager
def _signal_handler(handler: Handler) -> Iterator[None]:
    before: dict[int, Any] = {}
    try:
        for number in _SIGNALS:
            previous = signal.getsignal(number)
            # None is a handler that Python did not install: it must not be replaced.
            if previous not in (signal.SIG_IGN, None):
                before[number] = signal.signal(number, handler)
    except ValueError:  # not in the main thread
        pass
    try:
        yield
    finally:
        for number, previous in before.items():
            signal.signal(number, previous)


class Seconds(click.FloatRange):
    """A number of seconds on the command line, or in the settings."""

    name = "number of seconds"


# For commands that load scenarios.
paths_argument = click.argument("paths", nargs=-1, metavar="[PATHS]...")

# For commands that import modules of users.
path_option = click.option(
    "--path",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The folder to import from first. Default: the current one.",
)


# For commands whose results other programs read.
json_option = click.option(
    "--json", "as_json", is_flag=True, help="Print JSON, and nothing else."
)


Emit: TypeAlias = Callable[[object], None]


@contextmanager
def json_output(as_json: bool) -> Iterator[Emit]:
    """Context: with `as_json`, standard output has only what the function prints.

    Modules, fixtures and steps print to standard error.
    """
    stdout = sys.stdout

    def emit(value: object) -> None:
        text = json.dumps(value, indent=2, ensure_ascii=False)
        click.echo(text, file=stdout)

    if not as_json:
        yield emit
        return
    with redirect_stdout(sys.stderr):
        yield emit


@contextmanager
def writing_report(place: Path) -> Iterator[None]:
    """Context: turn errors of the system while a report is written into `FileError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            code="CannotWriteReport", source=str(place), reason=reason
        ) from None


def console(*, to_stderr: bool = False) -> "Console":
    """Return the console for tables; 80 columns if it is not a terminal."""
    from rich.console import Console

    plain = Console(highlight=False, markup=False, emoji=False, stderr=to_stderr)
    if not plain.is_terminal:
        plain.width = 80  # logs have no width, and are read at this one
    return plain


class CommandError(click.ClickException):
    """A command that cannot be carried out as typed."""

    exit_code = REFUSED

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the message, wrapped."""
        text = wrap_lines(self.format_message(), head="Error: ", indent="  ")
        click.echo(text, file=file or sys.stderr)
