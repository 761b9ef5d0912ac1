"""Time limits of children, and the reports on those that crashed or hang.

A child is polled every `POLL_SECONDS` for its progress, which shows the current
operation.  An operation or a scenario that takes longer than its limit hangs; the
report has the operation, the history before it, and the stack.

Rules:
- time in which the watcher itself did not run (Ctrl-Z, a sleeping laptop, a machine
  without a free core) does not count against the child: between two polls at most
  `MOST_BETWEEN_POLLS` seconds are counted;
- the engine's own work between operations is not an operation; only the limit of the
  whole scenario applies to it;
- of a stack only the frames below the harness are shown: those of the scenario.
"""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Literal

from everyorder.harness.engine import progress
from everyorder.harness.engine.progress import RESET, OperationMark, ProgressTrail
from everyorder.harness.processes.child import ChildProcess
from everyorder.harness.report.verdict import Unexplored, operation_line

# Registering, looking up and removing take milliseconds; ten seconds allow for a first
# import or compilation on a loaded machine.
OPERATION_SECONDS = 10.0

# The limit of an operation detects hangs, so this one is for endless scenarios: the
# 250,000 operations of "auto" take 42 minutes at ten milliseconds each.
SCENARIO_SECONDS = 3600.0

# Time between two polls: a twentieth of a second appears instantaneous to a person.
POLL_SECONDS = 0.05

# The part of the time between two polls that counts.
MOST_BETWEEN_POLLS = 1.0

# The path prefix of the files of the harness.
_OWN_FOLDER = f"{Path(__file__).parents[1]}{os.sep}"

# Frames that are shown of a stack with frames of the harness only: the harness hangs.
_MOST_OWN_FRAMES = 6

_FATAL = re.compile("Fatal Python error: (.*)")
_THREAD = re.compile(r"^(?:Current thread|Thread) 0x")
_FRAME = re.compile(r'^  File "(.*)", line (\d+) in (.*)$')
_MAIN = re.compile(r'^  File ".*fork\.py", line \d+ in _run$')


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits in seconds; None means no limit."""

    operation: float | None = OPERATION_SECONDS
    scenario: float | None = SCENARIO_SECONDS


@dataclass(frozen=True, slots=True)
class Subject:
    """The scenario in a child, as far as a report on its crash needs it."""

    scenario: str
    source: str
    steps: tuple[str, ...]
    uses: tuple[str, ...]
    root: Path

    def line(self, beat: OperationMark) -> str:
        """Return an operation as a runnable line."""
        operation, undo = beat
        if operation == RESET:
            return "create()"
        return operation_line(self.steps, self.uses, operation, undo=undo)

    def position(self, trail: ProgressTrail) -> tuple[str, tuple[str, ...]]:
        """Return the running operation, "" between two of them, and all before it."""
        lines = [self.line(beat) for beat in trail.beats]
        if lines and trail.beats[0].operation != RESET:
            lines.insert(0, "...")
        operation = lines.pop() if lines and not trail.resting else ""
        return operation, tuple(lines)


class TimeWatch:
    """The clock of one scenario in one child."""

    def __init__(self, child: ChildProcess, limits: Limits) -> None:
        self._child = child
        self._limits = limits
        self._looked = monotonic()
        self._beats = self._first = progress.count(child.cells)
        self._still = 0.0
        self._whole = 0.0

    def failure(self, subject: Subject, how: str | None) -> Unexplored | None:
        """Return the report on the child, if it has ended (`how`) or hangs, else None.

        It must be called at every poll, after reading the child's messages.
        """
        if how is not None:
            return crash_of(subject, self._child, how)
        exceeded_limit = self.exceeded_limit()
        if exceeded_limit is None:
            return None
        return hang_of(subject, self._child, self._limits, exceeded_limit)

    def exceeded_limit(self) -> Literal["operation", "scenario"] | None:
        """Return the limit that is exceeded, or None; must be called at every poll."""
        now = monotonic()
        passed = min(now - self._looked, MOST_BETWEEN_POLLS)
        self._looked = now
        self._whole += passed
        beats = progress.count(self._child.cells)
        idle = beats == self._first or progress.read(self._child.cells).resting
        if beats != self._beats or idle:
            self._beats = beats
            self._still = 0.0
        else:
            self._still += passed
        limits = self._limits
        if limits.operation is not None and self._still > limits.operation:
            return "operation"
        if limits.scenario is not None and self._whole > limits.scenario:
            return "scenario"
        return None


def crash_of(subject: Subject, child: ChildProcess, how: str) -> Unexplored:
    """Return the report on a child that has ended while it explored."""
    reason = f"the process that explored it ended ({how})"
    return _unexplored(subject, child, "crashed", reason, living=False)


def hang_of(
    subject: Subject,
    child: ChildProcess,
    limits: Limits,
    exceeded_limit: Literal["operation", "scenario"],
) -> Unexplored:
    """Return the report on a child that hangs; it lives, and the caller kills it.

    If the child proves to be crashing (the system may be writing its memory to a file),
    it is reported as crashed.
    """
    fatal = _FATAL.match(child.stack(living=True))
    if fatal is not None:
        return crash_of(subject, child, fatal[1])
    if exceeded_limit == "operation":
        reason = f"an operation was not over after {limits.operation:g} s"
    else:
        trail = progress.read(child.cells)
        reason = f"it was not over after {limits.scenario:g} s"
        if trail.planned:
            reason += f"; {trail.done:,} of {trail.planned:,} operations were played"
    return _unexplored(subject, child, "hung", reason, living=True)


def import_death(
    child: ChildProcess,
    source: str,
    file: Path,
    root: Path,
    reason: str,
    verdict: Literal["crashed", "hung"],
) -> Unexplored:
    """Return the report on a child that ended, or hangs, while it imported a file."""
    frames = _frames(child.stack(living=verdict == "hung"))
    where = _location(frames, source, file)
    name = source.removeprefix("tests/")
    stack = _stack_lines(frames, root)
    return Unexplored(name, where, reason, verdict, f"import {source}", (), stack)


def _unexplored(
    subject: Subject,
    child: ChildProcess,
    verdict: Literal["crashed", "hung"],
    reason: str,
    *,
    living: bool,
) -> Unexplored:
    frames = _frames(child.stack(living=living))
    operation, history = subject.position(progress.read(child.cells))
    where = _location(frames, subject.source, subject.root / subject.source)
    stack = _stack_lines(frames, subject.root)
    return Unexplored(
        subject.scenario, where, reason, verdict, operation, history, stack
    )


def _location(frames: Sequence[tuple[str, str, str]], source: str, file: Path) -> str:
    """Return FILE:LINE of the innermost frame in that file, or the file alone."""
    for name, line, _ in frames:
        if name == str(file):
            return f"{source}:{line}"
    return source


def _stack_lines(frames: Sequence[tuple[str, str, str]], root: Path) -> tuple[str, ...]:
    return tuple(
        f'File "{_relative(file, root)}", line {line} in {name}'
        for file, line, name in frames
    )


def _frames(text: str) -> list[tuple[str, str, str]]:
    """Return (file, line, function) of calls, innermost first, without the harness."""
    chosen: Sequence[str] = ()
    threads = _threads(text)
    for lines in threads:
        if any(_MAIN.match(line) for line in lines):
            chosen = lines
            break
    else:
        # The stack is too deep for its beginning: the thread that took the signal is
        # first.
        chosen = threads[0] if threads else ()
    frames = [
        (match[1], match[2], match[3])
        for match in (_FRAME.match(line) for line in chosen)
        if match is not None
    ]
    below = []
    for frame in frames:
        if frame[0].startswith(_OWN_FOLDER):
            break
        below.append(frame)
    return below or frames[:_MOST_OWN_FRAMES]


def _threads(text: str) -> list[list[str]]:
    """Return the lines of each thread, the one that took the signal first."""
    threads: list[list[str]] = []
    lines: list[str] = []
    for line in text.splitlines():
        if _THREAD.match(line):
            lines = []
            threads.insert(0 if line.startswith("Current") else len(threads), lines)
        lines.append(line)
    return threads


def _relative(file: str, root: Path) -> str:
    path = Path(file)
    return path.relative_to(root).as_posix() if path.is_relative_to(root) else file
