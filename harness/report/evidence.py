"""The evidence of a violation: both values, where states differ, how to replay it.

Everything here is a list of lines.  The text of a failure, its page and a replay choose
from them; the sentences for people are in `failure.py`.

Rules:
- runnable lines and diffs are never wrapped;
- with `whole`, which is for programs, no text is cut.
"""

from collections.abc import Callable, Hashable, Sequence
from itertools import takewhile
from shlex import quote
from typing import TypeAlias

from everyorder.harness.engine.result import Violation
from everyorder.harness.report.observation import (
    Divergence,
    divergence,
    law_text,
    readable_lines,
    whole_text,
)
from everyorder.harness.report.text import plural
from everyorder.harness.report.verdict import Report
from everyorder.harness.state import ValueSnapshot

# Selects the lines to show: all, or as many and as much as can be read.
Selection: TypeAlias = Callable[[Sequence[str]], list[str]]


def recurrence_lines(violation: Violation) -> list[str]:
    """Return a line with the number of longer histories of the same fault."""
    if not violation.more:
        return []
    return [f"longer histories show it {plural(violation.more, 'time')} more"]


def other_history_lines(report: Report, violation: Violation) -> list[str]:
    """Return the second history of hidden state, and the point where the two part."""
    other = violation.other
    if other is None:
        return []
    history = violation.shown
    pairs = zip(history, other, strict=False)
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], pairs)))
    first = "first operation" if same == 1 else f"first {same:,} operations"
    where = f"after their {first}" if same else "at once"
    if not other:
        return ["expected, from an equal state, before any operation"]
    return [
        f"expected, from an equal state, after {plural(len(other), 'operation')}:",
        *(f"    {line}" for line in report.other_lines(violation)),
        f"the two histories part {where}",
    ]


def replay_commands(report: Report, violation: Violation) -> list[str]:
    """Return the exact commands; the path distinguishes scenarios of the same steps."""
    histories = [violation.shown]
    if violation.other is not None:
        histories.append(violation.other)
    return [
        f"everyorder replay {report.history_id(history)} {quote(report.scenario)}"
        for history in histories
    ]


def explanation(
    violation: Violation,
    *,
    whole: bool = False,
    sides: tuple[str, str] = ("expected", "found"),
) -> list[str]:
    """Return the expected and the found value of a violation, according to its kind.

    `whole` is for programs: long texts are not cut.  `sides` names the two values.
    """
    lines = _value_lines(violation, list if whole else readable_lines, sides)
    if violation.kind not in ("law", "leak", "unpinned"):
        lines += path_lines(violation, sides)
    # Two states without visible parts have no difference to print.
    return lines or ["the difference is not visible from outside"]


def _value_lines(
    violation: Violation, select: Selection, sides: tuple[str, str]
) -> list[str]:
    if violation.kind == "law":
        return _laws(violation.found, select)
    if violation.kind == "leak":
        return [f"still alive after its step ended: {violation.found}"]
    if violation.kind == "undo":
        return ["the undo raised:", *_indented(law_text(violation.found), select)]
    if violation.kind == "error" and violation.expected is None:
        details = _indented(law_text(violation.found), select)
        return ["succeeded elsewhere, here:", *details]
    if violation.kind == "error" and violation.found is None:
        details = _indented(law_text(violation.expected), select)
        return ["succeeds here, elsewhere:", *details]
    if violation.kind == "unpinned":
        details = _indented(whole_text(violation.found), select)
        return ["all orders show:", *details]
    lines: list[str] = []
    if (violation.expected, violation.found) != (None, None):
        difference = divergence(violation.expected, violation.found)
        if difference is None:
            cut = _is_cut(violation.expected) or _is_cut(violation.found)
            rest = ", as far as they are" if cut else ""
            lines.append(f"both values are printed alike{rest}")
        else:
            lines += diff_lines(difference, select, sides, hidden=violation.hidden)
    if violation.frequency is not None:
        rare, times = violation.frequency
        lines.append(f"found in {rare} of {times} replays of this history")
    return lines


def _is_cut(value: object) -> bool:
    """Return True if an answer, or a part of an observation, was cut."""
    if isinstance(value, tuple):
        return any(map(_is_cut, value))
    return isinstance(value, ValueSnapshot) and value.cut


def path_lines(violation: Violation, sides: tuple[str, str]) -> list[str]:
    """Return the paths at which states differ before the operation that shows it."""
    if violation.kind == "not fresh":
        head = "differs from the first fresh system (first / now):"
        advice = [
            "create all of it in create=, undo it in reset= (empty caches there), or",
            'explore with isolation="fork"; ignore= varying values, such as ids of',
            "processes and seeds of random numbers, which differ in each child",
        ]
        listed = _indented("\n".join(violation.paths)) if violation.paths else []
        lines = [head, *listed] if listed else []
        return lines + _cache_advice(violation.paths) + advice
    if not violation.paths:
        return []
    if violation.kind == "nondeterminism":
        return [
            "differs between two plays of it (one / the other):",
            *_indented("\n".join(violation.paths)),
            "ignore= it if it may differ: a time, a random number",
        ]
    return [
        f"variables that differ ({' / '.join(sides)}):",
        *_indented("\n".join(violation.paths)),
    ]


def _cache_advice(paths: Sequence[str]) -> list[str]:
    """Return the advice for the paths that belong to a `functools.lru_cache`."""
    sizes = (path.partition(": ")[0] for path in paths)
    end = ".currsize"
    names = [name.removesuffix(end) for name in sizes if name.endswith(end)]
    return [
        line
        for name in names
        for line in (
            f"{name} is a functools.lru_cache; to empty it:",
            f"    reset=lambda registry: {name}.cache_clear()",
        )
    ]


def diff_lines(
    difference: Divergence,
    select: Selection,
    sides: tuple[str, str],
    *,
    hidden: bool = False,
) -> list[str]:
    """Return the first difference as the lines of a diff, reduced by `select`."""
    title = " of the fingerprints" if hidden else ""
    title += f" in {difference.title!r}" if difference.title else ""
    return [f"difference{title} (- {sides[0]}, + {sides[1]}):"] + [
        f"    {line}" for line in select(difference.lines)
    ]


def extent(violation: Violation, length: int) -> str:
    """Return the length of the shown order; says so if no shorter one exists."""
    operations = plural(length, "operation")
    if not length:
        return "before any operation"
    if violation.shortest is None:
        return f"after {operations}"
    if violation.proven_shortest:
        return f"after {operations}; no shorter history of these shows it"
    return f"after {operations}"


def _laws(violation: Hashable, select: Selection) -> list[str]:
    broken: Sequence[Hashable] = (
        violation if isinstance(violation, tuple) else (violation,)
    )
    lines: list[str] = []
    for law in broken:
        lines += _indented(law_text(law), select)
    return [f"{plural(len(broken), 'broken law')}:", *lines]


def _indented(text: str, select: Selection = list) -> list[str]:
    return [f"    {line}" for line in select(text.splitlines())]
