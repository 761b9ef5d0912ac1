"""Judgements: an exploration compared with its expect file, as an exit code and a text.

`gate` prints them, `review` offers what differs. A scenario that fails its exploration
is not compared, and neither is one that skips itself; one that was explored with
options of the user may reach fewer states, so its stale entries are not reported.

A command may collect a part of the project. So a file is stale only if its module was
collected and no scenario of it has the name, or if the module no longer exists.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote

from everyorder.harness.base.errors import BadScenario, DamagedExpectFile, FileError
from everyorder.harness.cli.command import (
    CHANGED,
    COMPARISON_CODES,
    FAILURE_CODES,
    NOT_LOADED,
    OK,
    STALE,
    VERDICT_CODES,
)
from everyorder.harness.collection.tasks import Listing, Outcome, TaskResult
from everyorder.harness.expectations import (
    Comparison,
    Document,
    Store,
    compare,
    explain,
)
from everyorder.harness.exploration.paths import file_of, is_below
from everyorder.harness.report import render
from everyorder.harness.report.text import plural
from everyorder.harness.report.verdict import Report, Unexplored


@dataclass(frozen=True, slots=True)
class Judgement:
    """One scenario's exit code, and the text that explains it ("" for OK).

    `damage` is the fault of the expect file itself; `comparison` then assumes a missing
    file, or is None if the file cannot be written. `skipped` is True for a scenario
    that skipped itself, and `text` is the reason.
    """

    scenario: str
    code: int
    text: str = ""
    comparison: Comparison | None = None
    damage: str = ""
    skipped: bool = False
    # The scenario has `expect=False`.
    uncompared: bool = False
    # FILE:LINE as far as known.
    where: str = ""

    @property
    def is_expected(self) -> bool:
        """Return True if it was explored, and all is as expected."""
        return self.code == OK and not self.skipped and not self.uncompared

    @property
    def is_failing(self) -> bool:
        """Return True if there is nothing that could be accepted."""
        return self.comparison is None and not self.skipped and not self.uncompared

    def skip_line(self) -> str:
        """Return the reason for skipping, after the scenario's name."""
        return f"skipped: {self.scenario}: {self.text}".rstrip(": ")


def judge(
    outcome: Outcome, store: Store, *, partial: bool = False, width: int = 80
) -> Judgement:
    """Compare one outcome with its expect file."""
    if isinstance(outcome, Unexplored):
        if not outcome.failed:
            return Judgement(outcome.scenario, OK, outcome.reason, skipped=True)
        code = FAILURE_CODES[outcome.verdict]
        text = outcome.render(width=width)
        return Judgement(outcome.scenario, code, text, where=outcome.where)
    if not outcome.passed:
        code = VERDICT_CODES[outcome.verdict]
        return Judgement(outcome.scenario, code, render(outcome, width=width))
    if outcome.expect is False:
        return Judgement(outcome.scenario, OK, uncompared=True)
    return _compare_with_file(outcome, store, partial=partial)


def judge_all(
    outcomes: Sequence[Outcome],
    results: Mapping[int, TaskResult],
    store: Store,
    *,
    width: int = 80,
) -> list[Judgement]:
    """Compare all outcomes of these results with their expect files."""
    partial_ones = {name for each in results.values() for name in each.partial}
    return [
        judge(each, store, partial=each.scenario in partial_ones, width=width)
        for each in outcomes
    ]


def _compare_with_file(
    report: Report | Document, store: Store, *, partial: bool
) -> Judgement:
    command = f"everyorder review --accept {quote(report.scenario)}"
    try:
        comparison = store.compare(report, partial=partial)
    except (BadScenario, FileError) as error:
        return Judgement(report.scenario, CHANGED, str(error), None, str(error))
    except DamagedExpectFile as error:
        old = error.code == "OldExpectFile"
        advice = "Write" if old else "Restore the file from version control, or write"
        advice += " what is observed now in its place:"
        text = f"{error.damage}. {advice}\n    {command}"
        against_nothing = compare(None, report, partial=partial)
        if isinstance(report, Report):
            inline = report.expect or None
            against_nothing = replace(
                against_nothing, place=report.place, inline=inline
            )
        return Judgement(report.scenario, CHANGED, text, against_nothing, error.damage)
    code = COMPARISON_CODES[comparison.verdict]
    if code == OK:
        return Judgement(report.scenario, OK, comparison=comparison)
    text = explain(comparison, store.title(comparison), command)
    return Judgement(report.scenario, code, text, comparison)


def judge_saved(store: Store) -> list[Judgement]:
    """Compare every saved file of observations with its expect file."""
    return [
        _compare_with_file(document, store, partial=False)
        for document in map(store.read_saved, store.saved())
    ]


def old_file_lines(store: Store, judgements: Sequence[Judgement]) -> list[str]:
    """Return lines on the expect files as a whole: what to do about them."""
    return [line for line in (old_line(judgements), store.interrupted()) if line]


def old_line(judgements: Sequence[Judgement]) -> str:
    """Return the line on expect files of an older format; "" if there are none."""
    compared = (each.comparison for each in judgements)
    count = sum(each is not None and each.is_old for each in compared)
    if not count:
        return ""
    has = "has" if count == 1 else "have"
    return (
        f"{plural(count, 'expect file')} {has} an older format, which is still read; "
        "everyorder review --accept all rewrites it"
    )


def broken_judgements(broken: Sequence[Unexplored]) -> list[Judgement]:
    """Return the judgements of modules that could not be loaded."""
    codes = {**FAILURE_CODES, "failed": NOT_LOADED}
    return [
        Judgement(each.scenario, codes[each.verdict], each.render(), where=each.where)
        for each in broken
    ]


def stale_files(
    store: Store, listing: Listing, results: Mapping[int, TaskResult] | None = None
) -> tuple[str, ...]:
    """Return the paths of expect files that no scenario uses, sorted.

    Only files of modules that were collected, or that no longer exist, can be stale. Of
    a test, a file is stale only if the test passed without it; one without the fixture
    may ask for it while it runs.
    """
    if listing.deselected:
        return ()
    results = results or {}
    outcomes = [each for result in results.values() for each in result.outcomes]
    reports = [each for each in outcomes if isinstance(each, Report)]
    # A scenario with `expect=` has no file; the outcome says so.
    fileless = {each.scenario for each in reports if each.expect is not None}
    scenarios = {task.path for task in listing.tasks if not task.is_test}
    used = scenarios.union(each.scenario for each in reports)
    spared = [*listing.others]
    for index, task in enumerate(listing.tasks):
        result = results.get(index)
        if task.is_test and (result is None or result.failed or _has_skipped(result)):
            spared.append(task.path)
    return tuple(
        name
        for name in store.stale(used - fileless)
        if name in fileless
        or not (
            any(is_below(name, base) for base in spared)
            or _is_unknown(name, listing.root, listing.loaded)
        )
    )


def _has_skipped(result: TaskResult) -> bool:
    return any(isinstance(each, Unexplored) for each in result.outcomes)


def _is_unknown(name: str, root: Path, loaded: Collection[str]) -> bool:
    """Return True if a module that was not collected may have the scenario."""
    file, _ = file_of(name, root)
    return file is not None and file.relative_to(root).as_posix() not in loaded


def stale_judgements(store: Store, names: Sequence[str]) -> list[Judgement]:
    """Return the judgements of expect files without a scenario."""
    return [
        Judgement(
            name,
            STALE,
            f"{store.name(name)} does not belong to any scenario; delete it:\n"
            f"    everyorder review --accept {quote(name)}",
        )
        for name in names
    ]
