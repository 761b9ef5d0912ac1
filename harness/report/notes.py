"""What stands beside verdicts: assumptions, bounds, and what was skipped.

True only here: equal texts are told once, with the scenarios they are of.  What every
proof assumes is told once for all of them.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap

from harness.outcome import Report

# Scenarios named beside a text; of more only the number is told.
NAMED = 3

# What every proof is about, and assumes; told wherever the word "proven" stands.
LEGEND = (
    "proven: for histories of any length, in one thread and one process, if nothing "
    "tells equal states apart (ids, addresses, orders of sets, clocks)"
)


def notes(reports: Sequence[Report]) -> tuple[tuple[str, str], ...]:
    """(what kind of note, text with the scenarios' names), equal texts together."""
    found: dict[tuple[str, str], list[str]] = {}
    for report in reports:
        if not report.passed:
            continue
        name = report.scenario.rpartition("/")[2]
        for kind, texts in (
            ("assumes", report.assumes),
            ("open", report.bounds),
            ("skipped", report.exploration.skipped),
        ):
            for text in texts:
                found.setdefault((kind, text), []).append(name)
    return tuple(
        (kind, f"{text} ({_names(names)})") for (kind, text), names in found.items()
    )


def texts(reports: Iterable[Report]) -> list[str]:
    """The notes, one text each, the legend first where something is proven."""
    every = list(reports)
    proven = any(report.exploration.proven and report.passed for report in every)
    return [LEGEND] * proven + [
        f"{'* ' if kind == 'assumes' else ''}{kind}: {text}"
        for kind, text in notes(every)
    ]


def told(reports: Iterable[Report], *, width: int = 80) -> list[str]:
    """The notes as wrapped lines."""
    return [
        line
        for text in texts(reports)
        for line in wrap(
            text,
            width,
            subsequent_indent="  ",
            break_long_words=False,
            break_on_hyphens=False,
        )
    ]


def _names(names: list[str]) -> str:
    if len(names) > NAMED:
        return f"{len(names)} scenarios"
    return ", ".join(names)
