"""What was found about the orders of some imports, as data and as text.

True only here: the words.  A refutation shows two orders as lines that can be run, all
that differs between them, and the command that plays just these two.
"""

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from textwrap import wrap
from typing import Literal, TypeAlias

from harness.imports.processes import Order
from harness.imports.seen import Difference
from harness.report.text import WIDTH, plural

Verdict: TypeAlias = Literal["crashed", "hung", "order", "flaky", "vacuous", "holds"]

# Most severe first.
VERDICTS: tuple[Verdict, ...] = (
    "crashed",
    "hung",
    "order",
    "flaky",
    "vacuous",
    "holds",
)

SENTENCES: dict[Verdict, str] = {
    "crashed": "a process ended while it imported",
    "hung": "an import did not come to an end",
    "order": "what these imports leave behind depends on their order",
    "flaky": "the same order, played again, gave another result",
    "vacuous": "nothing could have differed",
    "holds": "holds: the orders that were played make no difference",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong: with one order, or between two orders of one set."""

    verdict: Verdict
    orders: tuple[Order, ...]
    claim: str
    differences: tuple[Difference, ...] = ()
    printed: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """The sets of one size: how many, their orders, how many sets are refuted."""

    size: int
    sets: int
    orders: int
    possible: int
    refuted: int
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ImportReport:
    """The outcome; `options` are those of the command that asks the same.

    `possible` counts the orders of all subsets, whether they were played or not.
    """

    modules: Order
    uses: tuple[str, ...]
    options: tuple[str, ...]
    possible: int
    rows: tuple[Row, ...]
    findings: tuple[Finding, ...]
    notes: tuple[tuple[str, str], ...]
    seconds: float

    @property
    def verdict(self) -> Verdict:
        """The most severe of the findings."""
        found = {finding.verdict for finding in self.findings}
        return next((each for each in VERDICTS if each in found), "holds")

    @property
    def passed(self) -> bool:
        """Whether no order made a difference and something could have."""
        return self.verdict == "holds"

    def render(self, *, width: int = WIDTH) -> str:
        """All but the table, without a newline at its end."""
        title = f"{', '.join(self.modules)}: {SENTENCES[self.verdict]}"
        lines = wrap(title, width, break_on_hyphens=False)
        for finding in self.findings:
            lines += ("", *_found(finding, self, width))
        lines.append("")
        for name, text in self.notes:
            head = f"  {name:<10}"
            lines += wrap(
                text,
                width,
                initial_indent=head,
                subsequent_indent=" " * len(head),
                break_long_words=False,
                break_on_hyphens=False,
            )
        return "\n".join(lines)

    def summary(self) -> str:
        """One line with the counts."""
        played = sum(row.orders for row in self.rows)
        sets = sum(row.sets for row in self.rows)
        refuted = sum(row.refuted for row in self.rows)
        count = f"{played:,} of {plural(self.possible, 'order')}"
        said = f"{refuted:,} refuted" if refuted else self.verdict
        modules = plural(len(self.modules), "module")
        return f"{plural(sets, 'set')} of {modules}, {count}: {said}"

    def command(self, orders: Sequence[Order]) -> str:
        """The command that plays just these orders."""
        words = ["everyorder", "imports"]
        for order in orders:
            words += ("--order", ",".join(order))
        return shlex.join((*words, *self.options))


def _found(finding: Finding, report: ImportReport, width: int) -> Iterator[str]:
    yield from wrap(finding.claim, width, break_on_hyphens=False)
    for index, order in enumerate(finding.orders):
        if index:
            yield "and in this order:"
        yield from (f"    import {module}" for module in order)
    if finding.differences:
        yield "differences (- the first order, + the second):"
        for each in finding.differences:
            yield f"    {each.title}"
            yield from (f"    -{line}" for line in each.was.splitlines() or [""])
            yield from (f"    +{line}" for line in each.now.splitlines() or [""])
    if finding.printed:
        yield "it printed:"
        yield from (f"    {line}" for line in finding.printed.splitlines())
    if finding.orders:
        yield "again:"
        yield f"    {report.command(finding.orders)}"
