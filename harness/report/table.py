"""All scenarios as one table of 80 columns, with totals, and as one line.

True only here: the columns.  Scenarios stand under the file they are from; only the
name is shortened where room lacks, and a strategy is folded at its '+' signs.  The long
strategy that most scenarios share is told once, below the table.

Rules: the order of the rows is the order given; colour is a style of rich, so that a
console without colours prints the same words.
"""

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from rich.box import SIMPLE
from rich.table import Table
from rich.text import Text

from harness.outcome import Report
from harness.report.label import COUNTED, VERDICTS, short_guarantee
from harness.report.text import WIDTH, plural
from harness.report.unexplored import Unexplored, counted

# Green where it passed, red for a broken claim, yellow where nothing is known.
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
NUMBERS = frozenset({"n", "states", "transitions", "time"})

FOLDED = COLUMNS.index("strategy")

# Room for "graph +walk:2", so that what is usual takes two lines.
STRATEGY = 13

# Less of a name than this says nothing any more.
NAME = 16

# What most paths begin with; it is left out of the table.
COMMON = "scenarios/"


def overview(
    reports: Sequence[Report],
    unexplored: Sequence[Unexplored] = (),
    *,
    width: int = WIDTH,
) -> Table:
    """The table with its totals line, at most `width` wide for usual sizes."""
    usual = _usual(reports)
    rows = [_row(report, usual) for report in reports]
    rows += [_unexplored_row(other) for other in unexplored]
    table = Table(box=SIMPLE, padding=(0, 0, 0, 0), show_edge=False)
    table.show_footer = True
    table.pad_edge = False
    table.caption_justify = "left"
    table.caption = None if usual is None else f"usual strategy: {usual}"
    totals = _totals(reports, unexplored)
    cells = (COLUMNS, totals, *rows)
    widths = [max(len(str(row[i])) for row in cells) for i in range(len(COLUMNS))]
    widths[FOLDED] = min(widths[FOLDED], STRATEGY)
    # One blank stands between columns; the name gets what the others leave.
    widths[0] = max(width - sum(widths[1:]) - (len(COLUMNS) - 1), NAME)
    for index, name in enumerate(COLUMNS):
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
            table.add_row(*row)
    return table


def summary(reports: Sequence[Report], unexplored: Sequence[Unexplored] = ()) -> str:
    """One line with the counts of everything."""
    counts = {
        verdict: sum(report.verdict == verdict for report in reports)
        for verdict in VERDICTS
    }
    parts = [f"{count} {COUNTED[v]}" for v, count in counts.items() if count]
    parts += counted(unexplored)
    transitions = sum(report.exploration.executed.transitions for report in reports)
    states = sum(len(report.exploration.states) for report in reports)
    count = plural(len(reports) + len(unexplored), "scenario")
    verdicts = ", ".join(parts) or "nothing to explore"
    sizes = f"{plural(states, 'state')}, {plural(transitions, 'transition')}"
    return f"{count}: {verdicts}; {sizes}"


def duration(seconds: float) -> str:
    """`12 ms`, `3.4 s` or `2:05`, at most six letters below ten hours."""
    if seconds < 0.9995:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 99.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _usual(reports: Sequence[Report]) -> str | None:
    """The most frequent strategy, if it is shared and too long for its column."""
    counts = Counter(report.exploration.strategy for report in reports)
    for strategy, count in counts.most_common(1):
        if count > 1 and len(strategy) >= STRATEGY:
            return strategy
    return None


def _row(report: Report, usual: str | None) -> Row:
    found = report.exploration
    return (
        f"  {report.scenario.rpartition('/')[2]}",
        str(len(report.steps)),
        f"{len(found.states):,}",
        f"{found.executed.transitions:,}",
        "usual" if found.strategy == usual else found.strategy.replace("+", " +"),
        short_guarantee(report),
        Text(
            VERDICTS[report.verdict] + ("*" if report.assumes else ""),
            STYLES[report.verdict],
        ),
        duration(found.seconds),
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
