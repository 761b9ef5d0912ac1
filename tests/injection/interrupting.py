"""Exceptions that come at any line, at any place where signals are seen, at any depth.

True only here: how an exception is put into code that does not expect it.

- `at_lines`: before any line, the strictest: also between lines where no signal comes,
  but not at the end of a `with` block, which nothing can guard and no signal hits;
- `at_places`: where CPython looks for signals: after a call, at the first instruction
  of a function, at a jump backwards;
- `at_depths`: the end of recursion, so many calls below;
- `interrupted`: a real signal, by a real interval timer.

One place is left out: before the first instruction of an `__exit__` that is a function
of Python.  CPython handles signals there, and no code in Python can guard it; that of
modes and guards is a generator instead (`runtime.base.exits`).

Rules:
- one exception a round: what handles it is not interrupted again;
- a round is over when the program is; `None` says that nothing came any more.
"""

import dis
import signal
import sys
from collections import deque
from collections.abc import Callable
from functools import cache
from inspect import CO_GENERATOR
from types import CodeType, FrameType
from typing import Any

import pytest

# How many signals by a timer: always, in the long legs, and where there is time.
ROUNDS = (
    500,
    pytest.param(8_000, marks=pytest.mark.slow),
    pytest.param(20_000, marks=pytest.mark.nightly),
)

# What looks for signals, in CPython 3.11 and later.
_LOOKING = {"RESUME", "JUMP_BACKWARD", "CALL", "CALL_FUNCTION_EX", "CALL_KW"}


class Interrupt(BaseException):
    """What a signal raises."""


class _Tracer:
    """Raises `Interrupt` at the n-th point of the files."""

    def __init__(self, folders: tuple[str, ...], at: int) -> None:
        self._folders = folders
        self._left = at
        self.where: str | None = None

    def __call__(self, frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.startswith(self._folders):
            return None
        self._begin(frame)
        if self._is_point(frame, event):
            self._left -= 1
            if self._left == 0:
                code = frame.f_code
                self.where = f"{code.co_qualname}:{frame.f_lineno}"
                raise Interrupt
        return self

    def _begin(self, frame: FrameType) -> None:
        """Say which events of a frame are wanted."""

    def _is_point(self, frame: FrameType, event: str) -> bool:
        code = frame.f_code
        if code not in _ENDS:
            _ENDS[code] = _ends_of_blocks(code)
        return event == "line" and frame.f_lasti not in _ENDS[code]


# Of each code, where no signal can come and nothing can be guarded.
_ENDS: dict[CodeType, frozenset[int]] = {}


def _ends_of_blocks(code: CodeType) -> frozenset[int]:
    """The offsets of what does nothing, such as `try:`, and where blocks are left.

    A `with` block is left by `__exit__(None, None, None)`, below what it returns.
    """
    found = list(dis.get_instructions(code))
    nothing = [each.opname == "LOAD_CONST" and each.argval is None for each in found]
    ends = {each.offset for each in found if each.opname == "NOP"}
    for at, follows in enumerate(found[3:]):
        if all(nothing[at : at + 3]) and follows.opname in ("PRECALL", "CALL"):
            ends.add(found[at].offset)
            if at and found[at - 1].opname == "SWAP":
                ends.add(found[at - 1].offset)
    return frozenset(ends)


class _AtPlaces(_Tracer):
    _known: dict[CodeType, frozenset[int]] = {}  # noqa: RUF012  # of all rounds

    def _begin(self, frame: FrameType) -> None:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False

    def _is_point(self, frame: FrameType, event: str) -> bool:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = places(code)
        return event == "opcode" and frame.f_lasti in self._known[code]


def places(code: CodeType) -> frozenset[int]:
    """The offsets before which a signal may be handled.

    It belongs to the instruction before.  Where a call ends what a `try` guards, what
    comes after it is guarded by somebody else, and would be told of another place.
    """
    found, last = set(), None
    guards = dis._parse_exception_table(code)  # type: ignore[attr-defined]  # as `dis.dis` does

    def guard(offset: int) -> int | None:
        inside = [g.target for g in guards if g.start <= offset < g.end]
        return inside[0] if inside else None

    for each in dis.get_instructions(code):
        if (
            last is not None
            and last.opname in _LOOKING
            and not (last.opname == "RESUME" and _is_exit(code))
            and guard(last.offset) == guard(each.offset)
        ):
            found.add(each.offset)
        last = each
    return frozenset(found)


def _is_exit(code: CodeType) -> bool:
    return code.co_name == "__exit__" and not code.co_flags & CO_GENERATOR


# Runs a program with an exception at the n-th point of files in some folders, and tells
# the function and the line where it came.
Round = Callable[[Callable[[], object], tuple[str, ...], int], str | None]


# Takes anything, from C.
_ignored: Callable[[object], None] = deque[object](maxlen=0).append


def _traced(tracer: _Tracer, program: Callable[[], object]) -> str | None:
    before, reported = sys.gettrace(), sys.unraisablehook
    # A finalizer cannot raise what comes in it.
    sys.unraisablehook = _ignored
    sys.settrace(tracer)
    try:
        program()
    except Interrupt:
        pass
    finally:
        sys.settrace(before)
        sys.unraisablehook = reported
    return tracer.where


def at_lines(
    program: Callable[[], object], folders: tuple[str, ...], at: int
) -> str | None:
    """An exception before the n-th line."""
    return _traced(_Tracer(folders, at), program)


def at_places(
    program: Callable[[], object], folders: tuple[str, ...], at: int
) -> str | None:
    """An exception at the n-th place where a signal would be seen."""
    return _traced(_AtPlaces(folders, at), program)


# So deep runs a program that is to have little room: deeper than what runs the tests.
_DEPTH = 150


def _below(calls: int, program: Callable[[], object]) -> None:
    if calls > 0:
        _below(calls - 1, program)
    else:
        program()


def at_depths(
    program: Callable[[], object], folders: tuple[str, ...], at: int
) -> str | None:
    """The end of recursion, `at` calls below the program."""
    frame: FrameType | None = sys._getframe()
    above = 0
    while frame is not None:
        frame, above = frame.f_back, above + 1
    limit, reported = sys.getrecursionlimit(), sys.unraisablehook
    unraisable: deque[object] = deque(maxlen=1)
    sys.unraisablehook = unraisable.append
    sys.setrecursionlimit(_DEPTH + at)
    try:
        _below(_DEPTH - above, program)
        if unraisable:
            return f"at depth {at}, of a listener"
    except RecursionError:
        return f"at depth {at}"
    except ExceptionGroup as group:
        # Listeners had no room.
        if not group.subgroup(RecursionError):
            raise
        return f"at depth {at}, of a listener"
    finally:
        sys.setrecursionlimit(limit)
        sys.unraisablehook = reported
    return None


def _begins_exit(frame: FrameType) -> bool:
    """Whether nothing of an `__exit__` has run."""
    code = frame.f_code
    if not _is_exit(code):
        return False
    return frame.f_lasti <= _begin(code)


@cache
def _begin(code: CodeType) -> int:
    """The offset of the first instruction that looks for signals."""
    found = (i.offset for i in dis.get_instructions(code) if i.opname == "RESUME")
    return next(found)


def interrupted(
    program: Callable[[], object], after: float, spared: frozenset[CodeType]
) -> bool:
    """Run a program; whether it was done when a signal came, after so many seconds.

    What runs in code that is spared, or below it, is let go on for a moment.  Nobody
    traces the program: whoever does, such as coverage, holds locks of his own.
    """
    done = False

    def handle(number: int, frame: FrameType | None) -> None:
        first = frame
        while frame is not None:
            code = frame.f_code
            begins = frame is first and _begins_exit(frame)
            # What comes while another signal is looked at comes where that one came: if
            # it came at once, and the machine is slow, each would come within the last.
            if begins or code in spared or code is handling:
                signal.setitimer(signal.ITIMER_REAL, 1e-3 if code is handling else 1e-5)
                return
            frame = frame.f_back
        if not done:
            raise Interrupt

    handling = handle.__code__
    tracer, reported = sys.gettrace(), sys.unraisablehook
    sys.settrace(None)
    sys.unraisablehook = _ignored
    handler = signal.signal(signal.SIGALRM, handle)
    try:
        signal.setitimer(signal.ITIMER_REAL, max(after, 1e-6))
        program()
        done = True
    except Interrupt:
        pass
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        sys.unraisablehook = reported
        sys.settrace(tracer)
    return done


def counted(program: Callable[[], object], folders: tuple[str, ...]) -> int:
    """How many places a program has where a signal would be seen."""
    tracer = _AtPlaces(folders, _ENDLESS)
    assert _traced(tracer, program) is None, "no program has so many places"
    return _ENDLESS - tracer._left


_ENDLESS = 10**9
