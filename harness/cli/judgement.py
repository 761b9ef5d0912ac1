"""Outcomes held against expect files: what `gate` reports and `review` offers.

True only here: the exit code of each scenario.  A scenario that fails its exploration
is not compared, nor is one that skips itself; one that was explored by hand-chosen
means is compared without the size of the exploration.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.cli.exit_code import (
    CHANGED,
    NOT_LOADED,
    OF_COMPARISON,
    OF_FAILURE,
    OF_VERDICT,
    OK,
    STALE,
)
from harness.cli.task import Outcome
from harness.expectations import (
    CannotReadExpectFile,
    Comparison,
    DamagedExpectFile,
    Store,
    compare,
    explain,
)
from harness.outcome import Report
from harness.report import Unexplored, render


@dataclass(frozen=True, slots=True)
class Judgement:
    """One scenario's exit code, and the text that explains it ("" for OK).

    `damage` says what is wrong with the expect file itself; `comparison` is then with
    no file at all, or None where not even its place can be written to.  `skipped` says
    that there is nothing to judge, and `text` why.
    """

    scenario: str
    code: int
    text: str = ""
    comparison: Comparison | None = None
    damage: str = ""
    skipped: bool = False

    @property
    def expected(self) -> bool:
        """Whether it was explored, and all is as expected."""
        return self.code == OK and not self.skipped

    def told_skipped(self) -> str:
        """The reason, after its name."""
        return f"skipped: {self.scenario}: {self.text}".rstrip(": ")


def judge(
    outcome: Outcome, store: Store, *, effort: bool, width: int = 80
) -> Judgement:
    """Hold one outcome against its expect file."""
    if isinstance(outcome, Unexplored):
        if not outcome.failed:
            return Judgement(outcome.scenario, OK, outcome.reason, skipped=True)
        code = OF_FAILURE[outcome.verdict]
        return Judgement(outcome.scenario, code, outcome.render())
    if not outcome.passed:
        code = OF_VERDICT[outcome.verdict]
        return Judgement(outcome.scenario, code, render(outcome, width=width))
    return _compared(outcome, store, effort=effort)


def not_loaded(broken: Sequence[Unexplored]) -> list[Judgement]:
    """The judgements of modules that could not be loaded."""
    codes = {**OF_FAILURE, "failed": NOT_LOADED}
    return [
        Judgement(each.scenario, codes[each.verdict], each.render()) for each in broken
    ]


def gone(store: Store, names: Sequence[str]) -> list[Judgement]:
    """The judgements of expect files without a scenario."""
    return [
        Judgement(
            name,
            STALE,
            f"{store.name(name)} belongs to no scenario; give it up: "
            f"everyorder review --accept {name}",
        )
        for name in names
    ]


def _compared(report: Report, store: Store, *, effort: bool) -> Judgement:
    command = f"everyorder review --accept {report.scenario}"
    try:
        expected = store.read(report.scenario)
    except CannotReadExpectFile as error:
        return Judgement(report.scenario, CHANGED, str(error), None, str(error))
    except DamagedExpectFile as error:
        text = (
            f"{error.damage}. Restore the file from version control, or write what is "
            f"observed now in its place: {command}"
        )
        found = compare(None, report, effort=effort)
        return Judgement(report.scenario, CHANGED, text, found, error.damage)
    comparison = compare(expected, report, effort=effort)
    code = OF_COMPARISON[comparison.verdict]
    if code == OK:
        return Judgement(report.scenario, OK, comparison=comparison)
    text = f"{store.name(report.scenario)}: {explain(comparison, command)}"
    return Judgement(report.scenario, code, text, comparison)
