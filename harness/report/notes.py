"""What stands beside verdicts: guarantees, assumptions, bounds, what was skipped.

True only here: equal texts are told once, with the scenarios they are of.  What every
proof assumes is told once for all of them.

How it works: a report becomes a `Noted`, plain data that fits into a journal; any
number of these become texts, and texts become lines.
"""

from collections.abc import Iterable, Sequence
from textwrap import wrap
from typing import NamedTuple

from harness.outcome import Report
from harness.report.text import guarantees

# Scenarios named beside a text; of more only the number is told.
NAMED = 3

# Texts that stand below a line of counts; whoever wants all of them asks for a table.
BRIEF = 12

# What every proof is about, and assumes; told wherever the word "proven" stands.
LEGEND = (
    "proven: for histories of any length, in one thread and one process, if nothing "
    "tells equal states apart (ids, addresses, orders of sets, clocks, caches of the "
    "standard library)"
)


class Noted(NamedTuple):
    """What is noted of one scenario: (kind of note, text), none where it failed."""

    scenario: str
    proven: bool
    texts: Sequence[Sequence[str]]


def noted(report: Report) -> Noted:
    """The notes of one report."""
    if not report.passed:
        return Noted(report.scenario, False, ())
    found = report.exploration
    # What is proven holds for all that any strategy claims.
    claims = () if found.proven else guarantees(report)
    kinds = (
        ("guarantee", claims),
        ("assumes", report.assumes),
        ("open", report.bounds),
        ("skipped", found.skipped),
    )
    return Noted(
        report.scenario,
        found.proven,
        tuple((kind, text) for kind, texts in kinds for text in texts),
    )


def gathered(every: Iterable[Noted]) -> list[tuple[str, str]]:
    """(kind of note, text with the scenarios' names), equal texts together."""
    found: dict[tuple[str, str], list[str]] = {}
    for each in every:
        for kind, text in each.texts:
            name = each.scenario.rpartition("/")[2]
            found.setdefault((kind, text), []).append(name)
    return [
        (kind, f"{text} ({_names(names)})") for (kind, text), names in found.items()
    ]


def texts(reports: Iterable[Report]) -> list[str]:
    """What a table does not show, one text each, the legend first where it is due."""
    return _texts(map(noted, reports), guaranteed=False)


def told(reports: Iterable[Report], *, width: int = 80) -> list[str]:
    """The same as wrapped lines."""
    return _wrapped(texts(reports), width)


def told_briefly(every: Iterable[Noted], *, width: int = 80) -> list[str]:
    """What stands below a line of counts, guarantees included, as wrapped lines.

    Of more than `BRIEF` texts the last ones are counted.
    """
    found = _texts(every, guaranteed=True)
    rest = len(found) - BRIEF
    if rest > 1:
        found[BRIEF:] = [f"... and {rest} notes more; `everyorder run` tells them"]
    return _wrapped(found, width)


def _texts(every: Iterable[Noted], *, guaranteed: bool) -> list[str]:
    some = list(every)
    return [LEGEND] * any(each.proven for each in some) + [
        f"{'* ' if kind == 'assumes' else ''}{kind}: {text}"
        for kind, text in gathered(some)
        if guaranteed or kind != "guarantee"
    ]


def _wrapped(some: Iterable[str], width: int) -> list[str]:
    return [
        line
        for text in some
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
