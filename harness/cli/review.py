"""`everyorder review`: compare explorations with expect files, and accept changes.

`judge` compares one scenario with its expect file, for `gate` as well: each judgement
has an exit code, and the text that explains it. A scenario that fails its exploration
is not compared and never offered for review, and neither is one that skips itself; one
that was explored with options of the user may reach fewer states, so its stale entries
are not reported.

A *change* is one decision of `review`: entries with equal verdicts and diffs, from all
scenarios, so that a change that shows in a thousand states is decided once, by a person
or by `--accept`. If a scenario has no expect file, or its old numbers now mean other
steps, only the whole can be accepted; new scenarios together are one change, as are
expect files without a scenario. A damaged expect file is a separate change, and never
new: accepting it discards its old content.

The catalogue does not contain scenarios that a test function explores, or those of
modules elsewhere. So a file is stale only if its module no longer exists, or does not
define the name; if the module was not loaded, a variable counts, because it may be a
scenario.

Rules:
- a value of `--accept` that does not match anything is refused before the exploration;
- if several scenarios share a change, it is accepted for those that are named;
- without a terminal the command asks nothing and prints the commands that decide;
- files are written once, at the end, together; quitting keeps the accepted changes.
"""

import ast
import sys
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

import click

from everyorder.harness.base.errors import DamagedExpectFile, FileError, NotFound
from everyorder.harness.cli.command import (
    CHANGED,
    COMPARISON_CODES,
    FAILED,
    FAILURE_CODES,
    NOT_LOADED,
    OK,
    STALE,
    VERDICT_CODES,
    console,
    paths_argument,
)
from everyorder.harness.cli.runner import Runner, load_scenarios
from everyorder.harness.cli.task import ExploreOptions, Listing, Outcome
from everyorder.harness.expectations import (
    FORMAT,
    Comparison,
    Document,
    Key,
    Store,
    accept,
    classes,
    compare,
    explain,
    forbidden,
)
from everyorder.harness.expectations.compare import header_diffs
from everyorder.harness.exploration.catalogue import file_of, nearest
from everyorder.harness.exploration.uncollected import statements_of
from everyorder.harness.report import render
from everyorder.harness.report.observation import readable_lines
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

    @property
    def is_expected(self) -> bool:
        """Return True if it was explored, and all is as expected."""
        return self.code == OK and not self.skipped

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
        return Judgement(outcome.scenario, code, outcome.render())
    if not outcome.passed:
        code = VERDICT_CODES[outcome.verdict]
        return Judgement(outcome.scenario, code, render(outcome, width=width))
    return _compare_with_file(outcome, store, partial=partial)


def _compare_with_file(report: Report, store: Store, *, partial: bool) -> Judgement:
    command = f"everyorder review --accept {report.scenario}"
    try:
        expected = store.read(report.scenario)
    except FileError as error:
        return Judgement(report.scenario, CHANGED, str(error), None, str(error))
    except DamagedExpectFile as error:
        old = error.code == "OldExpectFile"
        advice = "Write" if old else "Restore the file from version control, or write"
        text = f"{error.damage}. {advice} what is observed now in its place: {command}"
        against_nothing = compare(None, report, partial=partial)
        return Judgement(report.scenario, CHANGED, text, against_nothing, error.damage)
    comparison = compare(expected, report, partial=partial)
    code = COMPARISON_CODES[comparison.verdict]
    if code == OK:
        return Judgement(report.scenario, OK, comparison=comparison)
    text = f"{store.name(report.scenario)}: {explain(comparison, command)}"
    return Judgement(report.scenario, code, text, comparison)


def note_lines(store: Store, judgements: Sequence[Judgement]) -> list[str]:
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
        Judgement(each.scenario, codes[each.verdict], each.render()) for each in broken
    ]


def stale_files(store: Store, listing: Listing) -> tuple[str, ...]:
    """Return the paths of expect files without a scenario, sorted."""
    return tuple(
        name
        for name in store.stale(listing.paths)
        if not _may_exist(name, listing.root, listing.unknown, listing.loaded)
    )


def _may_exist(
    name: str, root: Path, unknown: Collection[str], loaded: Collection[str]
) -> bool:
    file, rest = file_of(name, root)
    if file is None:
        return False
    source = file.relative_to(root).as_posix()
    if source in unknown or not rest:
        return True
    return _defines(file, rest[0], variables=source not in loaded)


def _defines(file: Path, name: str, *, variables: bool) -> bool:
    """Return True if a file has a function or class of that name without parameters.

    With `variables`, an assigned name counts, too.
    """
    plain = name.partition("[")[0]
    body = statements_of(file)
    if body is None:
        return True
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    names = {each.name for each in body if isinstance(each, kinds)}
    if variables:
        assigning = (ast.Assign, ast.AnnAssign)
        assigned = (each for each in body if isinstance(each, assigning))
        nodes = (node for each in assigned for node in ast.walk(each))
        stored = (node for node in nodes if isinstance(node, ast.Name))
        names |= {node.id for node in stored if isinstance(node.ctx, ast.Store)}
    return any(plain == each or plain.startswith(f"{each}-") for each in names)


def stale_judgements(store: Store, names: Sequence[str]) -> list[Judgement]:
    """Return the judgements of expect files without a scenario."""
    return [
        Judgement(
            name,
            STALE,
            f"{store.name(name)} does not belong to any scenario; delete it: "
            f"everyorder review --accept {name}",
        )
        for name in names
    ]


_SAME = "everything else as expected"

# Number of names in a headline; more would push the rest off the line.
NAMED = 3


@dataclass(frozen=True, slots=True)
class ChangedScenario:
    """The part of one scenario in a change: some keys, or None for all of it."""

    scenario: str
    comparison: Comparison | None
    keys: tuple[Key, ...] | None


@dataclass(frozen=True, slots=True)
class ReviewChange:
    """One decision; `lines` is the difference that all its entries share."""

    verdict: str
    parts: tuple[ChangedScenario, ...]
    lines: tuple[str, ...]
    only_new: bool

    @property
    def scenarios(self) -> tuple[str, ...]:
        """Return the scenarios of the change."""
        return tuple(part.scenario for part in self.parts)

    def restricted_to(self, scenarios: Collection[str]) -> "ReviewChange":
        """Return the part of the change that belongs to these scenarios."""
        parts = tuple(part for part in self.parts if part.scenario in scenarios)
        return replace(self, parts=parts)

    def headline(self) -> str:
        """Return the change in one line."""
        first = list(self.scenarios[:NAMED])
        rest = len(self.scenarios) - NAMED
        names = ", ".join(first) + (f" and {rest} more" if rest > 0 else "")
        entries = sum(len(part.keys or ()) for part in self.parts)
        if not entries:
            return f"{self.verdict}: {names}"
        count = "1 entry" if entries == 1 else f"{entries} entries"
        return f"{self.verdict}: {count} of {names}"


def changes(
    judgements: Sequence[Judgement], stale: Sequence[str]
) -> list[ReviewChange]:
    """Return every necessary decision, equal differences merged."""
    new: list[ChangedScenario] = []
    single: list[ReviewChange] = []
    groups: dict[tuple[str, tuple[str, ...]], list[ChangedScenario]] = {}
    # Files of an older format whose entries differ are rewritten with these.
    for each in judgements:
        comparison = each.comparison
        if comparison is None or (comparison.passed and not comparison.is_old):
            continue
        part = ChangedScenario(each.scenario, comparison, None)
        if each.damage:
            single.append(ReviewChange("damaged file", (part,), (each.damage,), False))
        elif comparison.expected is None:
            new.append(part)
        elif comparison.passed:
            old = f"format {comparison.expected.format}"
            rewriting = ChangedScenario(each.scenario, comparison, ())
            lines: tuple[str, ...] = (f"-{old}", f"+format {FORMAT}")
            groups.setdefault((f"older format, {_SAME}", lines), []).append(rewriting)
        elif not comparison.divisible:
            lines = _header_lines(comparison)
            single.append(ReviewChange("another scenario", (part,), lines, False))
        elif comparison.fields and not classes(comparison):
            header = ChangedScenario(each.scenario, comparison, ())
            lines = _header_lines(comparison)
            groups.setdefault(("changed header", lines), []).append(header)
        else:
            for group in classes(comparison):
                part = ChangedScenario(each.scenario, comparison, group.keys)
                groups.setdefault((group.verdict, group.lines), []).append(part)
    decisions = [
        ReviewChange(
            verdict, tuple(parts), lines, all(_only_new(part) for part in parts)
        )
        for (verdict, lines), parts in groups.items()
    ]
    if new:
        count = plural(len(new), "scenario")
        decisions.insert(0, ReviewChange(f"new, {count}", tuple(new), (), True))
    if stale:
        obsolete = tuple(ChangedScenario(name, None, None) for name in stale)
        decisions.append(ReviewChange("stale, no scenario", obsolete, (), False))
    return single + decisions


def documents(accepted: Sequence[ReviewChange]) -> Mapping[str, Document | None]:
    """Return the documents to write for accepted changes; None for a file to delete."""
    parts: dict[str, list[ChangedScenario]] = {}
    for change in accepted:
        for part in change.parts:
            parts.setdefault(part.scenario, []).append(part)
    return {scenario: _document(each) for scenario, each in parts.items()}


def _document(parts: Sequence[ChangedScenario]) -> Document | None:
    comparison = parts[0].comparison
    if comparison is None:
        return None
    keys: set[Key] = set()
    for part in parts:
        if part.keys is None:
            return accept(comparison)
        keys.update(part.keys)
    return accept(comparison, frozenset(keys))


def _only_new(part: ChangedScenario) -> bool:
    comparison = part.comparison
    return comparison is not None and comparison.only_new


def _header_lines(comparison: Comparison) -> tuple[str, ...]:
    return tuple(
        line
        for name, lines in header_diffs(comparison)
        for line in (f"{name}:", *lines)
    )


# Limit on the printed lines of a difference: a decision needs no more.
MOST_LINES = 40

# Values of `--accept` that are not scenarios.
WORDS = ("all", "new")

CHOICES = "a accept, s skip, A accept all that follow, q quit"


@click.command(
    epilog="Exit codes: 0 nothing is left to review; 1 something is; 2 bad arguments."
)
@paths_argument
@click.option(
    "--accept",
    multiple=True,
    metavar="all|new|SCENARIO",
    help="Accept without asking: everything, what no expect file has yet, or one "
    "scenario by its path or name (or several by a pattern of paths).",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.")
def review(paths: tuple[str, ...], accept: tuple[str, ...], jobs: int | None) -> None:
    """Accept what differs from the expect files.

    A difference that several states or scenarios show alike is offered once, for all
    of them. Of a scenario that fails its exploration nothing is accepted.

    \b
    Examples:
      everyorder review                     ask about each difference
      everyorder review --accept new        accept what no expect file has yet
      everyorder review --accept SCENARIO   accept one, or a pattern of paths
      everyorder review --accept all        accept all, and delete what is stale
    """
    error = forbidden()
    if error is not None:
        raise error
    with Runner(ExploreOptions(), jobs=jobs) as runner:
        listing = load_scenarios(runner, paths)
        store = Store(listing.root)
        stale = stale_files(store, listing) if not paths else ()
        if not listing.broken:
            # A scenario of a module that does not load may have the name.
            _check_names(accept, (*listing.paths, *stale))
        outcomes = runner.explore(listing.tasks, console())
    judgements = [judge(each, store) for each in outcomes]
    failing = [
        each for each in judgements if each.comparison is None and not each.skipped
    ]
    for each in failing:
        why = each.damage or f"{each.scenario} fails; see everyorder run"
        click.echo(f"not to be accepted: {why}")
    for broken in listing.broken:
        click.echo(f"not to be accepted: {broken.render()}")
    for each in judgements:
        if each.skipped:
            click.echo(each.skip_line())
    if interrupted := store.interrupted():
        click.echo(interrupted)
    offered = changes(judgements, stale)
    if not offered:
        click.echo(f"nothing to review: {_as_expected(judgements)} as expected")
        raise SystemExit(FAILED if failing or listing.broken else OK)
    if accept:
        parts = [_accepted_part(each, accept) for each in offered]
        accepted = [each for each in parts if each.parts]
    elif sys.stdin.isatty() and sys.stdout.isatty():
        accepted = decide(offered)
    else:
        _print_commands(offered)
        raise SystemExit(FAILED)
    to_do = documents(accepted)
    deleting = {store.name(name) for name, text in to_do.items() if text is None}
    touched = store.apply(to_do) if to_do else ()
    for name in touched:
        click.echo(f"{'deleted' if name in deleting else 'written'}: {name}")
    deleted = len(deleting.intersection(touched))
    left = sum(each not in accepted for each in offered)
    counts = f"{plural(len(touched) - deleted, 'file')} written"
    if deleted:
        counts += f", {deleted} deleted"
    click.echo(f"{plural(len(accepted), 'change')} accepted, {left} left; {counts}")
    raise SystemExit(FAILED if left or failing or listing.broken else OK)


def decide(offered: Sequence[ReviewChange]) -> list[ReviewChange]:
    """Ask the user about each change; return the accepted ones."""
    accepted: list[ReviewChange] = []
    for number, change in enumerate(offered, 1):
        click.echo(f"\n[{number}/{len(offered)}] {change.headline()}")
        for line in readable_lines(change.lines, MOST_LINES):
            click.secho(f"    {line}", fg={"+": "green", "-": "red"}.get(line[:1]))
        answer = click.prompt(
            f"  {CHOICES}",
            type=click.Choice(["a", "s", "A", "q"]),
            show_choices=False,
            prompt_suffix=": ",
        )
        if answer == "q":
            break
        if answer == "A":
            return [*accepted, *offered[number - 1 :]]
        if answer == "a":
            accepted.append(change)
    return accepted


def _accepted_part(change: ReviewChange, accept: Sequence[str]) -> ReviewChange:
    """Return the part of a change that these values of `--accept` select."""
    if "all" in accept or ("new" in accept and change.only_new):
        return change
    return change.restricted_to(
        {name for name in change.scenarios if any(_fits(name, a) for a in accept)}
    )


def _fits(scenario: str, pattern: str) -> bool:
    """Return True if a path is this one, ends in this name, or matches the pattern."""
    if scenario == pattern or scenario.endswith(f"/{pattern}"):
        return True
    return fnmatchcase(scenario, pattern)


def _check_names(accept: Sequence[str], names: Sequence[str]) -> None:
    """Raise `NotFound` for names to accept that do not exist."""
    for each in accept:
        if each in WORDS or any(_fits(scenario, each) for scenario in names):
            continue
        near = nearest(each, WORDS) + nearest(each, names)
        raise NotFound(code="NothingToAccept", wanted=each, near=near)


def _as_expected(judgements: Sequence[Judgement]) -> str:
    return plural(sum(each.is_expected for each in judgements), "scenario")


def _print_commands(offered: Sequence[ReviewChange]) -> None:
    click.echo("not a terminal, so nothing is asked; these are to be decided on:")
    for change in offered:
        click.echo(f"  {change.headline()}")
    names = sorted({name for change in offered for name in change.scenarios})
    click.echo("accept them by one of")
    for name in ("all", *(["new"] if any(c.only_new for c in offered) else []), *names):
        click.echo(f"  everyorder review --accept {name}")
