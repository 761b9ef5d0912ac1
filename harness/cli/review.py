"""`everyorder review`: accept what changed, by classes of equal differences.

True only here: decisions.  Differences are grouped over all scenarios, so that a
change that shows in a thousand states is one decision; each decision is taken by a
person, or by `--accept`.  A scenario that fails its exploration is never offered.

Rules:
- without a terminal nothing is asked: the commands that decide are printed instead;
- files are written once, at the end, in one go; quitting keeps what was accepted.
"""

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase

import click

from harness.cli.campaign import explore_entries, not_loaded
from harness.cli.change import Change, changes, documents
from harness.cli.exit_code import FAILED, OF_VERDICT, OK
from harness.cli.judgement import Judgement, judge
from harness.cli.options import (
    catalogue_of,
    console,
    effort_of,
    paths_argument,
    tell_skipped,
)
from harness.cli.stale import stale_files
from harness.expectations import Store, forbidden
from harness.report.text import plural

# A person does not read more of one difference before deciding.
MOST_LINES = 40

CHOICES = "a accept, s skip, A accept all that follow, q quit"


@click.command(
    epilog="Exit codes: 0 nothing is left to review; 1 something is; 2 bad arguments."
)
@paths_argument
@click.option(
    "--accept",
    multiple=True,
    metavar="all|new|SCENARIO",
    help="Accept without asking: all, what is only new, or a scenario (or pattern).",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.")
def review(paths: tuple[str, ...], accept: tuple[str, ...], jobs: int | None) -> None:
    """Accept what differs from the expect files.

    Equal differences are one decision, however many states and scenarios show them.
    A scenario that fails its exploration is never accepted.

    \b
    everyorder review                     ask for each class of differences
    everyorder review --accept new        accept what is only new
    everyorder review --accept SCENARIO   accept a scenario, or a pattern of them
    everyorder review --accept all        accept all, give up what is stale
    """
    error = forbidden()
    if error is not None:
        raise error
    effort = effort_of("auto", None, None)
    catalogue = catalogue_of(paths)
    tell_skipped(catalogue)
    outcomes = explore_entries(catalogue.entries, effort, jobs, console())
    store = Store(catalogue.root)
    found = [judge(each, store, effort=True) for each in outcomes]
    stale = stale_files(store, catalogue) if not paths else ()
    failing = [each for each in found if each.comparison is None]
    for each in failing:
        click.echo(f"not to be accepted: {each.scenario} fails; see everyorder run")
    for broken in not_loaded(catalogue):
        click.echo(f"not to be accepted: {broken.render()}")
    offered = changes(found, stale)
    if not offered:
        click.echo(f"nothing to review: {_as_expected(found)} as expected")
        raise SystemExit(FAILED if failing or catalogue.broken else OK)
    if accept:
        taken = [each for each in offered if _accepted(each, accept)]
    elif sys.stdin.isatty() and sys.stdout.isatty():
        taken = ask(offered)
    else:
        _tell_commands(offered)
        raise SystemExit(FAILED)
    written = store.apply(documents(taken)) if taken else ()
    for name in written:
        click.echo(f"written: {name}")
    left = len(offered) - len(taken)
    click.echo(
        f"{plural(len(taken), 'change')} accepted, {left} left; "
        f"{plural(len(written), 'file')} written"
    )
    raise SystemExit(FAILED if left or failing or catalogue.broken else OK)


def ask(offered: Sequence[Change]) -> list[Change]:
    """Let a person decide on each change; those that were accepted."""
    taken: list[Change] = []
    for number, change in enumerate(offered, 1):
        click.echo(f"\n[{number}/{len(offered)}] {change.headline()}")
        for line in change.lines[:MOST_LINES]:
            click.secho(f"    {line}", fg={"+": "green", "-": "red"}.get(line[:1]))
        if len(change.lines) > MOST_LINES:
            click.echo(f"    ... and {len(change.lines) - MOST_LINES} more lines")
        answer = click.prompt(
            f"  {CHOICES}",
            type=click.Choice(["a", "s", "A", "q"]),
            show_choices=False,
            prompt_suffix=": ",
        )
        if answer == "q":
            break
        if answer == "A":
            return [*taken, *offered[number - 1 :]]
        if answer == "a":
            taken.append(change)
    return taken


def _accepted(change: Change, accept: Sequence[str]) -> bool:
    for each in accept:
        if each == "all" or (each == "new" and change.only_new):
            return True
        if all(fnmatchcase(scenario, each) for scenario in change.scenarios):
            return True
    return False


def _as_expected(found: Sequence[Judgement]) -> str:
    return plural(sum(each.code == OF_VERDICT["holds"] for each in found), "scenario")


def _tell_commands(offered: Sequence[Change]) -> None:
    click.echo("not a terminal, so nothing is asked; these are to be decided on:")
    for change in offered:
        click.echo(f"  {change.headline()}")
    names = sorted({name for change in offered for name in change.scenarios})
    click.echo("accept them by one of")
    for name in ("all", *(["new"] if any(c.only_new for c in offered) else []), *names):
        click.echo(f"  everyorder review --accept {name}")
