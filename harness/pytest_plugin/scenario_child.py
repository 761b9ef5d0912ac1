"""One scenario of a test, explored in a forked child of the pytest process.

Nobody is to notice the fork, so what comes back is the report, or what the scenario
raised; what it printed (`harness.processes.child`); warnings and log records, which
pytest collects in the process of the test; and the names of our own modules that were
imported meanwhile, so that the next child finds them imported.  A step that ends the
process fails this test, and no other.

An exception crosses as data (`ErrorRecord`). Its class, arguments and attributes cross
as far as they can be pickled; of its traceback every frame crosses as file, function
and line, with its variables as texts. What is made of that on the other side can be
caught by its class, and every printer of tracebacks (the interpreter's, pytest's) shows
it as it would have shown the original. A frame cannot be made by hand, so a function of
the same file, name and line is compiled that only raises, and its frame is taken; the
method is that of `tblib` (https://github.com/ionelmc/python-tblib).

Rules:
- a class that the other side cannot import is replaced by one of the same name, derived
  from the first base that it can import;
- causes and contexts cross, too, and members of groups; a ring of them is cut.
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
from everyorder.harness.processes.child import ChildProcess, Parent, start, wait
from everyorder.harness.processes.watch import (
    POLL_SECONDS,
    Limits,
    Subject,
    TimeWatch,
    subject_of,
)
from everyorder.harness.report.outcome import Report
from everyorder.harness.scenario import Scenario

# Longer texts are cut by whoever prints them.
MOST_TEXT = 2_000

# A frame of a test that has more is not read.
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
    """An exception; `pickled` is its class and state, or "" where it has a stand-in."""

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
    """The exception as data that can be pickled."""
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
    """Bytes that rebuild such an exception; empty where nothing does."""
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
            made = _unpickled(pickled)
            if type(made) is type(error) and str(made) == str(error):
                return pickled
    return b""


def _unpickled(pickled: bytes) -> BaseException:
    recipe = pickle.loads(pickled)  # noqa: S301  # from our own child
    if isinstance(recipe, BaseException):
        return recipe
    (module, name), arguments, state = recipe
    kind: Any = attrgetter(name)(import_module(module))
    made: BaseException = kind.__new__(kind, *arguments)
    made.args = arguments
    vars(made).update(state)
    return made


def _import_name(kind: type) -> tuple[str, str]:
    """Module and name of a class; pytest's outcomes say that theirs is `builtins`.

    Raises LookupError where it is not found there.
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
    """Whether it is an exception that pickle finds by its name."""
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
            _variable_texts(frame, names, wanted=True),
            _variable_texts(frame, names, wanted=False),
        )
        traceback = traceback.tb_next


def _position(code: CodeType, traceback: TracebackType) -> tuple[int, int, int, int]:
    """First line, last line, first column, last column of what was being done."""
    line = traceback.tb_lineno
    positions = islice(code.co_positions(), traceback.tb_lasti // 2, None)
    _, last, start, end = next(positions, (None, None, None, None))
    if last is None or start is None or end is None or last < line:
        return line, line, 0, 0
    return line, last, start, end


def _variable_texts(
    frame: FrameType, names: tuple[str, ...], *, wanted: bool
) -> dict[str, str]:
    """The variables of these names, or all others, as texts."""
    if frame.f_code.co_name == "<module>" and not wanted:
        return {}
    found = {
        name: value
        for name, value in frame.f_locals.items()
        if (name in names) is wanted and name.isidentifier() and not iskeyword(name)
    }
    return {
        name: _text_of(value, repr)
        for name, value in islice(found.items(), MOST_VARIABLES)
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
    """The exception as it was there, as far as it can be had here."""
    error = _error_of(carried)
    vars(error).pop("__notes__", None)  # pickle may have brought them
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
    made: BaseException = kind.__new__(kind)
    return made


def _frame(place: FrameRecord) -> tuple[FrameType, int]:
    """A frame at that place, and how far it has come."""
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
    made = namespace.pop("function")
    made.__code__ = made.__code__.replace(co_name=place.name, co_qualname=place.name)
    try:
        made(**_remote_values(place.arguments))
    except _FrameProbe as stopped:
        reached = stopped.__traceback__
    # The first frame is this one.
    inside = reached and reached.tb_next
    assert inside is not None, "the function only raises"
    return inside.tb_frame, inside.tb_lasti


class _FrameProbe(Exception):
    """Raised to have a frame."""


def _remote_values(texts: Mapping[str, str]) -> dict[str, _RemoteValue]:
    return {name: _RemoteValue(text) for name, text in texts.items()}


# Different warnings, and records of a log, that one exploration may give; one that logs
# at every step would give millions.
MOST_WARNINGS = 1_000
MOST_RECORDS = 10_000

Explore = Callable[[Progress | None], Report]
"""Explores, and tells how far it is."""


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
    """The report of `explore`, which is called in a child.

    Raises whatever it raises, and `ExplorationDied`.
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
    """Wait for it, and pass on what is logged meanwhile.  Raises `ExplorationDied`."""
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
    """Show what was shown there: whether it is to be was decided there."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        for each in noted:
            warnings.warn_explicit(each.message, each.category, each.file, each.line)


def _log(fields: dict[str, Any]) -> None:
    """Hand a record of the child's loggers to the root's handlers, which are here."""
    record = logging.makeLogRecord(fields)
    for handler in logging.getLogger().handlers:
        if record.levelno >= handler.level:
            handler.handle(record)


def _explore(parent: Parent, explore: Explore) -> None:
    """The child's main function."""
    known = set(sys.modules)
    outcome: Report | ErrorRecord
    with _recorded_warnings() as noted, progress.watched(parent.cells) as beats:
        _forward_logs(parent)
        try:
            outcome = explore(beats.progress)
        except BaseException as error:
            # Of any kind: it is raised again where the test is.
            outcome = record_error(error)
        beats.rest()
    # What is imported of ours says nothing to anybody else.
    modules = tuple(
        name
        for name in sys.modules
        if name.partition(".")[0] == "everyorder" and name not in known
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


def _picklable_warnings(noted: Iterable[_Warning]) -> tuple[_Warning, ...]:
    """The warnings, as plain ones where their own class or arguments cannot cross."""
    import pickle

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
    """Let the parent have what the root's handlers would have had."""
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
