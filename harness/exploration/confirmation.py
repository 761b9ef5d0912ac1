"""Confirmation: each violation is played again from its printed lines.

A printed history must replay to the printed violation.  What this play raises is shown
with the user's line.  Source lines are read after the exploration, without `linecache`,
which is state of the process.
"""

import tokenize
from collections.abc import Hashable
from contextlib import suppress
from dataclasses import replace
from itertools import islice
from typing import Final

from everyorder.harness.engine import Kind, System, Violation
from everyorder.harness.engine import replay as play
from everyorder.harness.engine.oracle import Replay
from everyorder.harness.engine.protocol import ErrorOrigin
from everyorder.harness.engine.result import RaisedError
from everyorder.harness.report.observation import error_fields
from everyorder.harness.report.verdict import Report

# Reported with a leak whose order is unknown.
LEAK_WITHOUT_ORDER = "seen at the end, when all was undone; by which order is not known"

# Faults of a history that need not show when it is played once more.
_UNCERTAIN: Final = frozenset[Kind]({"not fresh", "nondeterminism", "unpinned"})


def confirmed(report: Report, system: System) -> Report:
    """Return the report; each violation was played again from its printed lines.

    If that does not show it, it says so.  The lines of errors are those of this play.
    """
    exploration = report.exploration
    violations = []
    for each in exploration.violations:
        played = _played_by_text(report, system, each)
        violations.append(
            replace(
                each,
                confirmed=played is None or _shows(each, played),
                raised=raised_errors(system, each, played),
            )
        )
    vacuous = tuple(
        replace(each, origin=with_source(each.origin)) for each in exploration.vacuous
    )
    exploration = replace(exploration, violations=tuple(violations), vacuous=vacuous)
    return replace(report, exploration=exploration)


def is_shown_by_text(report: Report, system: System, violation: Violation) -> bool:
    """Return True if the printed lines, played on a fresh system, show the fault."""
    played = _played_by_text(report, system, violation)
    return played is not None and _shows(violation, played)


def _played_by_text(
    report: Report, system: System, violation: Violation
) -> Replay | None:
    """Play the printed lines of a violation as a person reads them.

    An assignment does a step, and `close()` undoes it.  None if the fault need not show
    again; a replay without results if it does another thing than a line says.
    """
    if violation.kind in _UNCERTAIN or LEAK_WITHOUT_ORDER in _parts(violation.found):
        return None
    moves = report.read_lines(report.violation_lines(violation))
    history = tuple(operation for operation, _ in moves)
    played = play(system, history, order_dependent=report.ordering.total)
    for at, (_, undo) in enumerate(moves):
        # The operation without an action is an undo that raised.
        kind = played.actions[at].kind if at < len(played.actions) else "remove"
        if undo != (kind in ("remove", "refused")):
            return replace(played, actions=(), faults=(), fresh=None)
    return played


def _shows(violation: Violation, played: Replay) -> bool:
    """Return True if the replay has the found value of a violation."""
    if not played.actions and not played.faults:
        return False
    if violation.hidden:
        values = {action.fingerprint for action in played.actions} | {played.fresh}
    else:
        values = {action.value for action in played.actions} | {None}
    values |= {fault.found for fault in played.faults}
    return violation.found in values


def raised_errors(
    system: System, violation: Violation, played: Replay | None
) -> tuple[RaisedError, ...]:
    """Return the errors that have a part in a violation, with the lines to look at.

    Those of steps and undos always have; that of a use or a look has only if it is the
    found value.
    """
    errors: list[tuple[int | None, Hashable]] = []
    for at, action in enumerate(() if played is None else played.actions):
        raised = action.kind in ("failing", "refused")
        if raised or (action.value is not None and action.value == violation.found):
            errors.append((at, action.value))
    if violation.kind in ("undo", "law"):
        found = violation.found
        texts = _parts(found) if violation.kind == "law" else (found,)
        errors += [(len(violation.shown) - 1, each) for each in texts]
    elif violation.expected is not None and violation.expected != violation.found:
        errors.append((None, violation.expected))
    return tuple(
        RaisedError(at, fields, with_source(origin))
        for at, value in dict.fromkeys(errors)
        for fields in (error_fields(value),)
        if (origin := system.origin(fields)) is not None
    )


def with_source(origin: ErrorOrigin | None) -> ErrorOrigin | None:
    """Return the origin with its source line; unchanged if that cannot be read."""
    if origin is None:
        return None
    with suppress(OSError, SyntaxError, UnicodeDecodeError):
        with tokenize.open(origin.file) as file:
            line = next(islice(file, origin.line - 1, None), "")
        return origin._replace(text=line.strip())
    return origin


def _parts(value: Hashable) -> tuple[Hashable, ...]:
    return value if isinstance(value, tuple) else ()
