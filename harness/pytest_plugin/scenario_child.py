"""One scenario of a test, explored in a forked child of the pytest process.

The fork must be invisible to the test. The child therefore sends back the report or the
exception of the scenario; its output (`harness.processes.child`); warnings and log
records, which pytest collects in the process of the test; and the names of the modules
of `everyorder` that it imported, so that the next child has them imported already. A
step that ends the process fails this test only.

An exception is transferred as data (`ErrorRecord`). Its class, arguments and attributes
are transferred as far as they can be pickled; every frame of its traceback is
transferred as file, function and line, with its variables as texts. The rebuilt
exception can be caught by its class, and every printer of tracebacks (the
interpreter's, pytest's) shows the same text as for the original. Python code cannot
construct a frame, so a function of the same file, name and line is compiled that only
raises, and its frame is used. `tblib` does so, too, but its frames have neither
columns nor arguments (`docs/libraries.md` has the comparison).

Rules:
- a class that the parent cannot import is replaced by one of the same name, derived
  from the first base that it can import;
- causes, contexts and members of groups are transferred, too; a cycle of them is cut.
"""

import ast
import logging
import pickle
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from keyword import iskeyword
from operator import attrgetter
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any

from everyorder.harness.base.errors import ExplorationDied
from everyorder.harness.engine import Progress, progress
from everyorder.harness.exploration.explore_scenario import subject_of
from everyorder.harness.processes.child import ChildProcess, Parent, start, wait
from everyorder.harness.processes.watch import (
    POLL_SECONDS,
    Limits,
    Subject,
    TimeWatch,
)
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import Scenario

# Printers of tracebacks cut longer texts.
MOST_TEXT = 2_000

# Limit on the variables of one frame; the others are not transferred.
MOST_VARIABLES = 50


@dataclass(frozen=True, slots=True)
class FrameRecord:
    """One frame of a traceback; `arguments` and `variables` are texts by name."""

    file: str
    name: str
    module: str
    first: int
    position: tuple[int, int, int, int]
    arguments: dict[str, str]
    variables: dict[str, str]


@dataclass(frozen=True, slots=True)
class ErrorRecord:
    """An exception; `pickled` is its class and state, or empty if it has a stand-in."""

    name: str
    module: str
    text: str
    base: type[BaseException]
    pickled: bytes
    notes: tuple[str, ...]
    frames: tuple[FrameRecord, ...]
    cause: "ErrorRecord | None" = None
    context: "ErrorRecord | None" = None
    suppressed: bool = False
    members: "tuple[ErrorRecord, ...]" = field(default=())


def record_error(error: BaseException) -> ErrorRecord:
    """Return the exception as data that can be pickled."""
    return _record(error, frozenset())


def _record(error: BaseException, above: frozenset[int]) -> ErrorRecord:
    above |= {id(error)}

    def linked(other: BaseException | None) -> ErrorRecord | None:
        return None if other is None or id(other) in above else _record(other, above)

    kind = type(error)
    members: tuple[ErrorRecord, ...] = ()
    if isinstance(error, BaseExceptionGroup):
        members = tuple(_record(each, above) for each in error.exceptions)
    return ErrorRecord(
        kind.__qualname__,
        kind.__module__,
        error.message
        if isinstance(error, BaseExceptionGroup)
        else _text_of(error, str),
        next(filter(_is_importable, kind.__mro__)),
        b"" if members else _pickled(error),
        tuple(map(str, getattr(error, "__notes__", ()))),
        tuple(_frame_records(error.__traceback__)),
        linked(error.__cause__),
        linked(error.__context__),
        error.__suppress_context__,
        members,
    )


def _pickled(error: BaseException) -> bytes:
    """Return bytes that rebuild an equal exception, or empty bytes."""
    state = {
        name: value
        for name, value in vars(error).items()
        if name != "__notes__" and _is_picklable(value)
    }
    recipes: tuple[Callable[[], Any], ...] = (
        lambda: error,
        lambda: (_import_name(type(error)), error.args, state),
    )
    for recipe in recipes:
        with suppress(Exception):
            pickled = pickle.dumps(recipe())
            rebuilt = _unpickled(pickled)
            if type(rebuilt) is type(error) and str(rebuilt) == str(error):
                return pickled
    return b""


def _unpickled(pickled: bytes) -> BaseException:
    recipe = pickle.loads(pickled)  # noqa: S301  # from our own child
    if isinstance(recipe, BaseException):
        return recipe
    (module, name), arguments, state = recipe
    kind: Any = attrgetter(name)(import_module(module))
    error: BaseException = kind.__new__(kind, *arguments)
    error.args = arguments
    vars(error).update(state)
    return error


def _import_name(kind: type) -> tuple[str, str]:
    """Return module and name of a class.

    The classes of pytest's outcomes have `builtins` as their module, but are elsewhere.

    Raises:
        LookupError: the class is not an attribute of the module.
    """
    for module in (kind.__module__, "_pytest.outcomes"):
        with suppress(AttributeError):
            if attrgetter(kind.__qualname__)(sys.modules.get(module)) is kind:
                return module, kind.__qualname__
    raise LookupError(kind)


def _is_picklable(value: object) -> bool:
    try:
        pickle.dumps(value)
    except Exception:
        return False
    return True


def _is_importable(kind: type) -> bool:
    """Return True for an exception class that pickle finds by its name."""
    return issubclass(kind, BaseException) and _is_picklable(kind)


def _frame_records(traceback: TracebackType | None) -> Iterator[FrameRecord]:
    while traceback is not None:
        frame = traceback.tb_frame
        code = frame.f_code
        count = code.co_argcount + code.co_kwonlyargcount
        count += bool(code.co_flags & 0x04) + bool(code.co_flags & 0x08)  # *, **
        names = code.co_varnames[:count]
        yield FrameRecord(
            code.co_filename,
            code.co_name,
            str(frame.f_globals.get("__name__", "")),
            code.co_firstlineno,
            _position(code, traceback),
            _variable_texts(frame, names, selected=True),
            _variable_texts(frame, names, selected=False),
        )
        traceback = traceback.tb_next


def _position(code: CodeType, traceback: TracebackType) -> tuple[int, int, int, int]:
    """Return first and last line, first and last column of the current instruction."""
    line = traceback.tb_lineno
    positions = islice(code.co_positions(), traceback.tb_lasti // 2, None)
    _, last, start, end = next(positions, (None, None, None, None))
    if last is None or start is None or end is None or last < line:
        return line, line, 0, 0
    return line, last, start, end


def _variable_texts(
    frame: FrameType, names: tuple[str, ...], *, selected: bool
) -> dict[str, str]:
    """Return the variables with these names, or all others, as texts."""
    if frame.f_code.co_name == "<module>" and not selected:
        return {}
    variables = {
        name: value
        for name, value in frame.f_locals.items()
        if (name in names) is selected and name.isidentifier() and not iskeyword(name)
    }
    return {
        name: _text_of(value, repr)
        for name, value in islice(variables.items(), MOST_VARIABLES)
    }


def _text_of(value: object, show: type[str] | Any) -> str:
    try:
        text: str = show(value)
    except Exception as error:
        return f"<{type(value).__name__} that cannot be shown: {type(error).__name__}>"
    return text if len(text) <= MOST_TEXT else f"{text[:MOST_TEXT]}..."


class _RemoteValue:
    """A variable of another process."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def rebuild_error(carried: ErrorRecord) -> BaseException:
    """Return the original exception, as far as it can be rebuilt in this process."""
    error = _error_of(carried)
    vars(error).pop("__notes__", None)  # Pickle may have restored the notes.
    for note in carried.notes:
        error.add_note(note)
    if carried.cause is not None:
        error.__cause__ = rebuild_error(carried.cause)
    if carried.context is not None:
        error.__context__ = rebuild_error(carried.context)
    error.__suppress_context__ = carried.suppressed
    traceback = None
    for place in reversed(carried.frames):
        frame, lasti = _frame(place)
        traceback = TracebackType(traceback, frame, lasti, place.position[0])
    return error.with_traceback(traceback)


def _error_of(carried: ErrorRecord) -> BaseException:
    if carried.pickled:
        with suppress(Exception):
            return _unpickled(carried.pickled)
    members = [rebuild_error(each) for each in carried.members]
    if members:
        with suppress(Exception):
            return carried.base(carried.text, members)
    kind: Any = type(
        carried.name.rpartition(".")[2],
        (carried.base,),
        {
            "__module__": carried.module,
            "__qualname__": carried.name,
            "__str__": lambda self: carried.text,
        },
    )
    error: BaseException = kind.__new__(kind)
    return error


def _frame(place: FrameRecord) -> tuple[FrameType, int]:
    """Return a frame at that place, and its instruction offset."""
    lines = [f"def function({', '.join(place.arguments)}):"]
    lines += [f" {name} = __variables__[{name!r}]" for name in place.variables]
    tree = ast.parse("\n".join([*lines, " raise __raised__"]))
    line, last, start, end = place.position
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt | ast.expr | ast.arg):
            node.lineno, node.end_lineno = max(line, 1), max(last, 1)
            node.col_offset, node.end_col_offset = start, end
    (function,) = tree.body
    function.lineno = max(place.first, 1)
    namespace: dict[str, Any] = {
        "__name__": place.module,
        "__file__": place.file,
        "__raised__": _FrameProbe,
        "__variables__": _remote_values(place.variables),
    }
    exec(compile(tree, place.file, "exec"), namespace)  # noqa: S102  # one `def`
    function_object = namespace.pop("function")
    function_object.__code__ = function_object.__code__.replace(
        co_name=place.name, co_qualname=place.name
    )
    try:
        function_object(**_remote_values(place.arguments))
    except _FrameProbe as stopped:
        reached = stopped.__traceback__
    # The first frame is that of `_frame`.
    inside = reached and reached.tb_next
    assert inside is not None, "the function only raises"
    return inside.tb_frame, inside.tb_lasti


class _FrameProbe(Exception):
    """Raised to create a frame."""


def _remote_values(texts: Mapping[str, str]) -> dict[str, _RemoteValue]:
    return {name: _RemoteValue(text) for name, text in texts.items()}


# Limits on the warnings and log records of one exploration: one that logs at every step
# would send millions.
MOST_WARNINGS = 1_000
MOST_RECORDS = 10_000

Explore = Callable[[Progress | None], Report]
"""Explores, and reports its progress."""


@dataclass(frozen=True, slots=True)
class _Warning:
    message: Warning
    category: type[Warning]
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class _Result:
    """The result of a child."""

    outcome: Report | ErrorRecord
    warnings: tuple[_Warning, ...]
    modules: tuple[str, ...]


def explore_in_child(
    scenario: Scenario, explore: Explore, limits: Limits, root: Path
) -> Report:
    """Call `explore` in a child and return its report.

    Raises:
        ExplorationDied: the child died or hung.
        BaseException: every exception of `explore`.
    """
    subject = subject_of(scenario, root)
    child = start(_explore, explore)
    try:
        result = _result(child, subject, limits)
        child.finish()
    finally:
        child.kill()
    _reissue(result.warnings)
    for name in result.modules:
        with suppress(ImportError):
            import_module(name)
    if isinstance(result.outcome, ErrorRecord):
        raise rebuild_error(result.outcome)
    return result.outcome


def _result(child: ChildProcess, subject: Subject, limits: Limits) -> _Result:
    """Wait for the result, and pass on log records in the meantime.

    Raises:
        ExplorationDied: the child died or hung.
    """
    watch = TimeWatch(child, limits)
    while True:
        wait((child,), POLL_SECONDS)
        how = child.termination()
        for message in child.read():
            if isinstance(message, _Result):
                return message
            _log(message)
        unexplored = watch.failure(subject, how)
        if unexplored is not None:
            raise ExplorationDied(
                scenario=unexplored.scenario,
                verdict=unexplored.verdict,
                sentence=unexplored.sentence,
                operation=unexplored.operation,
                report=unexplored.render(),
            )


def _reissue(noted: Iterable[_Warning]) -> None:
    """Issue the warnings of the child; its filters have already been applied."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for each in noted:
            warnings.warn_explicit(each.message, each.category, each.file, each.line)


def _log(fields: dict[str, Any]) -> None:
    """Pass a record of the child's loggers to the root's handlers in this process."""
    record = logging.makeLogRecord(fields)
    for handler in logging.getLogger().handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


def _explore(parent: Parent, explore: Explore) -> None:
    """Run the exploration; the child's main function."""
    already_imported = set(sys.modules)
    outcome: Report | ErrorRecord
    with _recorded_warnings() as noted, progress.watched(parent.cells) as beats:
        _forward_logs(parent)
        try:
            outcome = explore(beats.progress)
        except BaseException as error:
            # Every exception is raised again in the process of the test.
            outcome = record_error(error)
        beats.rest()
    # Only modules of `everyorder` are useful to the next child.
    modules = tuple(
        name
        for name in sys.modules
        if name.partition(".")[0] == "everyorder" and name not in already_imported
    )
    try:
        parent.send(_Result(outcome, _picklable_warnings(noted.values()), modules))
    except OSError:
        raise
    except Exception as error:
        error.add_note("its report cannot cross to another process")
        parent.send(_Result(record_error(error), (), modules))


@contextmanager
def _recorded_warnings() -> Iterator[dict[tuple[str, str, int], _Warning]]:
    """Context: collect the warnings that are issued inside, each once."""
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


def _picklable_warnings(
    noted: Iterable[_Warning],
) -> tuple[_Warning, ...]:
    """Return the warnings; those that cannot be pickled become plain ones."""
    picklable = []
    for each in noted:
        try:
            pickle.dumps(each)
        except Exception:
            text = f"{each.category.__name__}: {each.message}"
            base = next(kind for kind in each.category.__mro__ if _is_builtin(kind))
            assert issubclass(base, Warning), "every warning is one"
            picklable.append(_Warning(base(text), base, each.file, each.line))
        else:
            picklable.append(each)
    return tuple(picklable)


def _is_builtin(kind: type) -> bool:
    return kind.__module__ == "builtins"


def _forward_logs(parent: Parent) -> None:
    """Send the parent the records that the root's handlers would receive."""
    root = logging.getLogger()
    if not root.handlers:
        return
    passing = _ForwardingHandler(parent)
    passing.setLevel(min(handler.level for handler in root.handlers))
    root.handlers[:] = [passing]


class _ForwardingHandler(logging.Handler):
    """Sends records to the parent, with texts in place of their arguments."""

    def __init__(self, parent: Parent) -> None:
        super().__init__()
        self._parent = parent
        self._left = MOST_RECORDS

    def emit(self, record: logging.LogRecord) -> None:
        """Send one record, unless the limit is reached."""
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
