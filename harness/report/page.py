"""All reports as one page that needs no network, and as JSON beside it.

True only here: the page as a whole.  It is one file: style and script stand in it, its
content policy forbids to load anything, and it stays below ten megabytes (`dumps.py`
says what is left out).  It depends on the reports only, not on time or place.
"""

import os
from collections.abc import Sequence
from html import escape
from pathlib import Path

from harness.outcome import Report
from harness.report.data import document
from harness.report.dumps import Allowance
from harness.report.label import short_guarantee
from harness.report.notes import texts
from harness.report.section import badge, search_attributes, section
from harness.report.style import CSS, SCRIPT
from harness.report.table import COMMON, duration
from harness.report.text import plural
from harness.report.unexplored import Unexplored

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"


def write(
    folder: Path, reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()
) -> Path:
    """Write `index.html` and `report.json` into the folder; return the page's path.

    Each file is replaced as a whole, and none before both are written.  What UTF-8
    cannot say (half of a surrogate pair) is written as its escape.  Raises OSError
    where the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    texts = {
        "report.json": document(reports, unexplored),
        "index.html": page(reports, unexplored),
    }
    pending = {name: folder / f"{name}.new" for name in texts}
    try:
        for name, text in texts.items():
            pending[name].write_text(text, "utf-8", "backslashreplace")
        for name, written in pending.items():
            os.replace(written, folder / name)
    finally:
        for written in pending.values():
            written.unlink(missing_ok=True)
    return folder / "index.html"


def page(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """The page as text."""
    allowance = Allowance()
    anchors = [f"s{number}" for number in range(1, len(reports) + 1)]
    sections = "".join(
        section(report, anchor, allowance)
        for report, anchor in zip(reports, anchors, strict=True)
    )
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        f"<title>everyorder: {plural(len(reports), 'scenario')}</title>"
        f"<style>{CSS}</style></head><body>"
        f"{_header(reports, unexplored)}<main>{_unexplored(unexplored)}"
        f"{_filter()}{_table(reports, anchors)}{_notes(reports)}"
        f"<h2>Scenarios</h2>{sections}</main>"
        f"<script>{SCRIPT}</script></body></html>\n"
    )


def _header(reports: Sequence[Report], unexplored: Sequence[Unexplored]) -> str:
    explorations = [report.exploration for report in reports]
    failed = sum(each.failed for each in unexplored)
    failed += sum(not report.passed for report in reports)
    number = len(reports) + len(unexplored)
    totals = (
        (number, "scenario" if number == 1 else "scenarios"),
        (failed, "failed"),
        (sum(report.verdict == "proven" for report in reports), "proven, any length"),
        (sum(len(each.states) for each in explorations), "states"),
        (
            sum(each.executed.transitions for each in explorations),
            "transitions executed",
        ),
    )
    items = "".join(
        f"<li><b>{count:,}</b><span>{name}</span></li>" for count, name in totals
    )
    return (
        "<header><h1>everyorder</h1><p>Does the order in which things are registered "
        "and removed make a difference? Each scenario below was executed step by step; "
        "its guarantee says for which orders the answer holds.</p>"
        f'<ul class="totals">{items}</ul></header>'
    )


def _unexplored(unexplored: Sequence[Unexplored]) -> str:
    if not unexplored:
        return ""
    parts = "".join(
        '<div class="violation"><p>'
        f'<span class="badge {"unexplored" if each.failed else "cut-short"}">'
        f"{each.sentence}</span> "
        f"{escape(each.scenario)}</p>"
        f'<pre tabindex="0">{escape(each.render())}</pre></div>'
        for each in unexplored
    )
    return f"<h2>Not explored</h2>{parts}"


def _filter() -> str:
    return (
        '<h2>Overview</h2><div class="filter" role="search" hidden>'
        '<input type="search" id="search" placeholder="name, verdict or strategy" '
        'aria-label="Filter scenarios">'
        '<label><input type="checkbox" id="failed"> failed only</label>'
        '<span class="soft" id="shown" role="status"></span></div>'
    )


def _table(reports: Sequence[Report], anchors: Sequence[str]) -> str:
    columns = (
        ("Scenario", ""),
        ("Verdict", ""),
        ("Steps", "number wide"),
        ("States", "number"),
        ("Transitions", "number wide"),
        ("Strategy", "wide"),
        ("Guarantee", "wide"),
        ("Time", "number wide"),
    )
    head = "".join(
        f'<th scope="col"{_class(kind)}>{name}</th>' for name, kind in columns
    )
    rows = []
    group = ""
    for report, anchor in zip(reports, anchors, strict=True):
        file, _, name = report.scenario.rpartition("/")
        if file != group:
            group = file
            text = escape(file.removeprefix(COMMON))
            rows.append(
                f'<tr class="group"><th scope="rowgroup" colspan="8">{text}</th></tr>'
            )
        found = report.exploration
        cells = (
            badge(report),
            str(len(report.steps)),
            f"{len(found.states):,}",
            f"{found.executed.transitions:,}",
            escape(found.strategy.replace("+", " + ")),
            escape(short_guarantee(report)),
            duration(found.seconds),
        )
        data = "".join(
            f"<td{_class(kind)}>{cell}</td>"
            for cell, (_, kind) in zip(cells, columns[1:], strict=True)
        )
        rows.append(
            f"<tr {search_attributes(report)}>"
            f'<th scope="row"><a href="#{anchor}">{escape(name)}</a></th>{data}</tr>'
        )
    return (
        '<div class="scroll"><table><thead><tr>'
        f"{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _notes(reports: Sequence[Report]) -> str:
    """What stands beside the verdicts of the table."""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts(reports))
    return f'<ul class="plain soft">{items}</ul>' if items else ""


def _class(kind: str) -> str:
    return f' class="{kind}"' if kind else ""
