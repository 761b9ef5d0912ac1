"""The report of a run, as text.

Shown: what was tried and equal, each row with the number of its differences, what was
bounded or could not be tried, the operators that the runtime lacks, and whatever fails.
"""

from collections import Counter
from dataclasses import dataclass
from textwrap import wrap

from tests.torch.samples.deviations import Defect, Row, Verdict
from tests.torch.samples.running import OTHER_FORMS, SAMPLES, Tally

# Unlisted differences of one operator and kind that are shown; the rest is counted.
EACH = 4


@dataclass(frozen=True, slots=True)
class Run:
    """A run over all rows of torch's table."""

    rows: int
    shared: int
    lacking: tuple[str, ...]
    tally: Tally
    verdict: Verdict

    @property
    def failed(self) -> bool:
        return bool(self.verdict.unlisted or self.verdict.stale)


def text(run: Run) -> str:
    """The whole report; what fails comes last."""
    parts = (tried(run), listed(run.verdict), limits(run), failures(run.verdict))
    return "\n".join(line for part in parts for line in part)


def tried(run: Run) -> list[str]:
    tally = run.tally
    lines = [f"operators: {run.shared} of {run.rows} rows of torch's table"]
    lines += [
        f"{check}: {count} tried, {tally.equal[check]} equal"
        for check, count in tally.tried.items()
    ]
    return lines


def listed(verdict: Verdict) -> list[str]:
    lines = []
    for title, defects in (("deviations", False), ("defects", True)):
        rows = [row for row in verdict.counts if isinstance(row, Defect) == defects]
        total = sum(verdict.counts[row] for row in rows)
        lines.append(f"{title}: {total} differences in {len(rows)} rows")
        lines += [f"  {line}" for line in by_kind(verdict, rows)]
    return lines


def by_kind(verdict: Verdict, rows: list[Row]) -> list[str]:
    kinds = Counter[str]()
    for row in rows:
        kinds[row.kind] += verdict.counts[row]
    lines = []
    for kind, total in sorted(kinds.items()):
        lines.append(f"{kind}: {total}")
        for row in rows:
            if row.kind == kind:
                names = ", ".join(row.operators)
                words = f" ({row.words})" if row.words else ""
                lines.append(f"  {verdict.counts[row]} {names}{words}: {row.reason}")
    return lines


def limits(run: Run) -> list[str]:
    tally = run.tally
    lines = [
        f"bounded to {SAMPLES} samples of a dtype, {OTHER_FORMS} of other forms:"
        f" {len(tally.bounded)} rows"
    ]
    lines += [f"  {name}: {some} of {n}" for name, (some, n) in tally.bounded.items()]
    lines.append("not compared:")
    lines += [f"  {reason}: {count}" for reason, count in tally.skipped.items()]
    refused = [f"{name} {n}" for name, n in tally.complex_refused.items()]
    lines.append("no complex numbers, by samples:")
    lines += [f"  {line}" for line in wrap(", ".join(refused), 86)]
    lines.append(f"lacking: {len(run.lacking)}")
    lines += [f"  {line}" for line in wrap(", ".join(run.lacking), 86)]
    return lines


def failures(verdict: Verdict) -> list[str]:
    lines = []
    groups = Counter((each.operator, each.kind) for each in verdict.unlisted)
    for (operator, kind), count in groups.items():
        lines.append(f"unlisted: {operator}, {kind}: {count}")
        same = [
            each
            for each in verdict.unlisted
            if (each.operator, each.kind) == (operator, kind)
        ]
        for each in same[:EACH]:
            lines += [f"  {each.call}", f"    {each.words}"]
    for row, name in verdict.stale:
        lines.append(f"no longer occurs: {name}, {row.kind} ({row.words})")
    lines.append(
        f"failures: {len(verdict.unlisted)} unlisted differences,"
        f" {len(verdict.stale)} rows that no longer occur"
    )
    return lines
