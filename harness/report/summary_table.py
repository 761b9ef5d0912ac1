"""All reports at once: a table, a line of counts, and notes on the verdicts.

The table has one row for each scenario below the name of its file. The notes are
guarantees, assumptions, bounds and skipped parts: a report becomes `ScenarioNotes`,
plain data that fits into a journal; any number of these become texts, and texts become
lines.

Rules:
- rows keep the order of the reports; colour is a style of rich, so that a console
  without colours prints the same words;
- equal texts are printed once, with the names of their scenarios; the assumptions of
  every proof are printed once for all of them.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple, TypeAlias

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from everyorder.harness.base.columns import WIDTH, columns, wrap_words
from everyorder.harness.report.text import (
    COUNTED,
    VERDICTS,
    guarantees,
    plural,
    sentence,
    short_guarantee,
)
from everyorder.harness.report.verdict import Report, Unexplored, failure_counts

# Green for a pass, red for a broken claim, yellow for an unknown result.
STYLES = {
    "proven": "bold green",
    "holds": "green",
    "pinned": "cyan",
    "law": "bold red",
    "order": "bold red",
    "unpinned": "bold red",
    "hidden": "bold red",
    "not fresh": "bold magenta",
    "nondeterminism": "bold magenta",
    "typo": "bold yellow",
    "vacuous": "bold yellow",
    "cut short": "yellow",
}

Row: TypeAlias = tuple[Text | str, ...]

COLUMNS = (
    "scenario",
    "n",
    "states",
    "transitions",
    "strategy",
    "guarantee",
    "verdict",
    "time",
)
# Those that need no explanation.
BRIEF_COLUMNS = frozenset({"scenario", "verdict", "time"})
NUMBERS = frozenset({"n", "states", "transitions", "time"})

FOLDED = COLUMNS.index("strategy")

# Room for "graph +walk:2", so that the usual strategy takes two lines.
STRATEGY = 13

# A shorter part of a name is useless.
NAME = 16

# The common prefix of most paths; the table omits it.
COMMON = "scenarios/"


def overview(
    reports: Sequence[Report],
    unexplored: Sequence[Unexplored] = (),
    *,
    width: int = WIDTH,
    verbose: bool = True,
) -> Table:
    """Return the table with its totals line, at most `width` wide for usual sizes.

    Without `verbose` it omits counts, strategies and guarantees.
    """
    usual = _usual(reports) if verbose else None
    rows = [_row(report, usual) for report in reports]
    rows += [_unexplored_row(other) for other in unexplored]
    table = Table(box=SIMPLE, padding=(0, 0, 0, 0), show_edge=False)
    table.show_footer = True
    table.pad_edge = False
    table.caption_justify = "left"
    table.caption = None if usual is None else f"usual strategy: {usual}"
    totals = _totals(reports, unexplored)
    cells = (COLUMNS, totals, *rows)
    widths = [max(columns(str(row[i])) for row in cells) for i in range(len(COLUMNS))]
    widths[FOLDED] = min(widths[FOLDED], STRATEGY)
    # One blank separates columns; the name uses the rest of the width.
    widths[0] = max(width - sum(widths[1:]) - (len(COLUMNS) - 1), NAME)
    used = [at for at, name in enumerate(COLUMNS) if verbose or name in BRIEF_COLUMNS]
    if not verbose:
        widths[0] = max(width - sum(widths[at] + 1 for at in used[1:]), NAME)
    for index in used:
        name = COLUMNS[index]
        table.add_column(
            name,
            totals[index],
            justify="right" if name in NUMBERS else "left",
            overflow="fold" if index == FOLDED else "ellipsis",
            no_wrap=index != FOLDED,
            max_width=widths[index],
        )
    paths = [r.scenario for r in reports] + [u.scenario for u in unexplored]
    files: dict[str, list[Row]] = {}
    for path, row in zip(paths, rows, strict=True):
        files.setdefault(path.rpartition("/")[0].removeprefix(COMMON), []).append(row)
    for file, its_rows in files.items():
        if file:
            table.add_row(Text(file, "bold"))
        for row in its_rows:
            table.add_row(*(row[at] for at in used))
    return table


def summary(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """Return one line with the counts of everything."""
    counts = {
        verdict: sum(report.verdict == verdict for report in reports)
        for verdict in VERDICTS
    }
    parts = [f"{count} {COUNTED[v]}" for v, count in counts.items() if count]
    parts += failure_counts(unexplored)
    transitions = sum(report.exploration.executed.transitions for report in reports)
    states = sum(len(report.exploration.states) for report in reports)
    count = plural(len(reports) + len(unexplored), "scenario")
    verdicts = ", ".join(parts) or "nothing to explore"
    sizes = f"{plural(states, 'state')}, {plural(transitions, 'transition')}"
    return f"{count}: {verdicts}; {sizes}"


def verdict_line(report: Report, *, width: int = WIDTH) -> str:
    """Return the verdict of one scenario as a wrapped sentence, with its time."""
    text = f"{report.scenario}: {sentence(report)}"
    return "\n".join(
        wrap_words(f"{text} ({duration(report.exploration.seconds)})", width)
    )


def duration(seconds: float) -> str:
    """Return `12 ms`, `3.4 s` or `2:05`, at most six letters below ten hours."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _usual(reports: Sequence[Report]) -> str | None:
    """Return the most frequent strategy if it is shared and long, else None."""
    counts = Counter(report.exploration.strategy for report in reports)
    for strategy, count in counts.most_common(1):
        if count > 1 and len(strategy) >= STRATEGY:
            return strategy
    return None


def _row(report: Report, usual: str | None) -> Row:
    exploration = report.exploration
    return (
        f"  {report.scenario.rpartition('/')[2]}",
        str(len(report.steps)),
        f"{len(exploration.states):,}",
        f"{exploration.executed.transitions:,}",
        "usual"
        if exploration.strategy == usual
        else exploration.strategy.replace("+", " +"),
        short_guarantee(report),
        Text(
            VERDICTS[report.verdict] + ("*" if report.assumes else ""),
            STYLES[report.verdict],
        ),
        duration(exploration.seconds),
    )


def _unexplored_row(other: Unexplored) -> Row:
    name = other.scenario.rpartition("/")[2]
    style = "bold red" if other.failed else "yellow"
    return (f"  {name}", "", "", "", "", "", Text(other.label, style), "")


def _totals(
    reports: Sequence[Report], unexplored: Sequence[Unexplored]
) -> tuple[str, ...]:
    explorations = [report.exploration for report in reports]
    return (
        plural(len(reports) + len(unexplored), "scenario"),
        "",
        f"{sum(len(each.states) for each in explorations):,}",
        f"{sum(each.executed.transitions for each in explorations):,}",
        "",
        "",
        f"{sum(report.passed for report in reports)} ok",
        duration(sum(each.seconds for each in explorations)),
    )


# Number of scenarios that a note names; for more, it gives only their number.
NAMED = 3

# Scope and assumptions of every proof; printed wherever the word "proven" occurs.
LEGEND = (
    "proven: for histories of any length, in one thread and one process, if nothing "
    "tells equal states apart (ids, `is` between equal values, orders of sets, "
    "hashes that changed, clocks, caches of the standard library)"
)


BRIEF_LEGEND = (
    "proven: for histories of any length, in one thread and one process; -v shows "
    "what that assumes"
)

# The notes that are counted, and their nouns.
COUNTED_NOTES = {
    "assumes": "further assumption",
    "open": "open question",
    "skipped": "omitted part",
}


class ScenarioNotes(NamedTuple):
    """The notes on one scenario: (kind of note, text); empty if it failed."""

    scenario: str
    proven: bool
    texts: Sequence[Sequence[str]]


def notes_of(report: Report) -> ScenarioNotes:
    """Return the notes of one report."""
    if not report.passed:
        return ScenarioNotes(report.scenario, False, ())
    exploration = report.exploration
    # A proof covers the claims of all strategies.
    claims = () if exploration.proven else guarantees(report)
    kinds = (
        ("guarantee", claims),
        ("assumes", report.assumes),
        ("open", report.bounds),
        ("skipped", exploration.skipped),
    )
    return ScenarioNotes(
        report.scenario,
        exploration.proven,
        tuple((kind, text) for kind, texts in kinds for text in texts),
    )


def notes_by_text(every: Iterable[ScenarioNotes]) -> list[tuple[str, str]]:
    """Return (kind of note, text with the scenarios' names), equal texts merged."""
    names_by_note: dict[tuple[str, str], list[str]] = {}
    for each in every:
        for kind, text in each.texts:
            name = each.scenario.rpartition("/")[2]
            names_by_note.setdefault((kind, text), []).append(name)
    return [
        (kind, f"{text} ({_names(names)})")
        for (kind, text), names in names_by_note.items()
    ]


def note_texts(reports: Iterable[Report]) -> list[str]:
    """Return the notes of a table as texts, the legend first if it is needed."""
    return _texts(map(notes_of, reports), guaranteed=False)


def note_lines(
    every: Iterable[ScenarioNotes],
    *,
    width: int = WIDTH,
    verbose: bool = False,
) -> list[str]:
    """Return the notes as wrapped lines; without `verbose`, they are only counted."""
    notes = list(every)
    if verbose:
        return _wrapped(_texts(notes, guaranteed=True), width)
    texts = [BRIEF_LEGEND] * any(each.proven for each in notes)
    counts = Counter(kind for kind, _ in notes_by_text(notes))
    if any(counts[kind] for kind in COUNTED_NOTES):
        parts = [
            plural(counts[kind], noun)
            for kind, noun in COUNTED_NOTES.items()
            if counts[kind]
        ]
        noted = [{kind for kind, _ in each.texts} & {*COUNTED_NOTES} for each in notes]
        many = sum(map(bool, noted))
        where = f" of {plural(many, 'scenario')}" if len(notes) > 1 else ""
        verb = "shows it" if len(parts) == 1 and parts[0][:2] == "1 " else "shows them"
        texts.append(f"{', '.join(parts)}{where}; -v {verb}")
    return _wrapped(texts, width)


def _texts(every: Iterable[ScenarioNotes], *, guaranteed: bool) -> list[str]:
    notes = list(every)
    return [LEGEND] * any(each.proven for each in notes) + [
        f"{'* ' if kind == 'assumes' else ''}{kind}: {text}"
        for kind, text in notes_by_text(notes)
        if guaranteed or kind != "guarantee"
    ]


def _wrapped(texts: Iterable[str], width: int) -> list[str]:
    return [line for text in texts for line in wrap_words(text, width, indent="  ")]


def _names(names: list[str]) -> str:
    if len(names) > NAMED:
        return f"{len(names)} scenarios"
    return ", ".join(names)
