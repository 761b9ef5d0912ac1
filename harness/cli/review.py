"""`everyorder review`: accept what changed, by classes of equal differences.

True only here: decisions.  Differences are grouped over all scenarios, so that a
change that shows in a thousand states is one decision; each decision is taken by a
person, or by `--accept`.  A scenario that fails its exploration is never offered.

Rules:
- a value of `--accept` that names nothing is refused before anything is explored;
- of a change that several scenarios share, those that are named are accepted;
- without a terminal nothing is asked: the commands that decide are printed instead;
- files are written once, at the end, in one go; quitting keeps what was accepted.
"""

import sys
from collections.abc import Sequence
from fnmatch import fnmatchcase

import click

from harness.catalogue import nearest
from harness.cli.campaign import Campaign
from harness.cli.command import FAILED, OK
from harness.cli.judgement import (
    Change,
    Judgement,
    changes,
    documents,
    judge,
    stale_files,
)
from harness.cli.run import console, load_or_exit, paths_argument
from harness.cli.task import Effort
from harness.errors import NotFound
from harness.expectations import Store, forbidden
from harness.report.observation import readable
from harness.report.text import plural

# A person does not read more of one difference before deciding.
MOST_LINES = 40

# Values of `--accept` that are no scenarios.
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
    with Campaign(Effort(), jobs=jobs) as campaign:
        listing = load_or_exit(campaign, paths)
        store = Store(listing.root)
        stale = stale_files(store, listing) if not paths else ()
        if not listing.broken:
            # What does not load may hold the name.
            _check_names(accept, (*listing.paths, *stale))
        outcomes = campaign.explore(listing.tasks, console())
    found = [judge(each, store, effort=True) for each in outcomes]
    failing = [each for each in found if each.comparison is None and not each.skipped]
    for each in failing:
        why = each.damage or f"{each.scenario} fails; see everyorder run"
        click.echo(f"not to be accepted: {why}")
    for broken in listing.broken:
        click.echo(f"not to be accepted: {broken.render()}")
    for each in found:
        if each.skipped:
            click.echo(each.skip_line())
    offered = changes(found, stale)
    if not offered:
        click.echo(f"nothing to review: {_as_expected(found)} as expected")
        raise SystemExit(FAILED if failing or listing.broken else OK)
    if accept:
        some = [_accepted(each, accept) for each in offered]
        taken = [each for each in some if each.parts]
    elif sys.stdin.isatty() and sys.stdout.isatty():
        taken = ask(offered)
    else:
        _print_commands(offered)
        raise SystemExit(FAILED)
    to_do = documents(taken)
    deleting = {store.name(name) for name, text in to_do.items() if text is None}
    touched = store.apply(to_do) if to_do else ()
    for name in touched:
        click.echo(f"{'deleted' if name in deleting else 'written'}: {name}")
    deleted = len(deleting.intersection(touched))
    left = sum(each not in taken for each in offered)
    counts = f"{plural(len(touched) - deleted, 'file')} written"
    if deleted:
        counts += f", {deleted} deleted"
    click.echo(f"{plural(len(taken), 'change')} accepted, {left} left; {counts}")
    raise SystemExit(FAILED if left or failing or listing.broken else OK)


def ask(offered: Sequence[Change]) -> list[Change]:
    """Let a person decide on each change; those that were accepted."""
    taken: list[Change] = []
    for number, change in enumerate(offered, 1):
        click.echo(f"\n[{number}/{len(offered)}] {change.headline()}")
        for line in readable(change.lines, MOST_LINES):
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
            return [*taken, *offered[number - 1 :]]
        if answer == "a":
            taken.append(change)
    return taken


def _accepted(change: Change, accept: Sequence[str]) -> Change:
    """The part of a change that these values of `--accept` accept; maybe empty."""
    if "all" in accept or ("new" in accept and change.only_new):
        return change
    return change.only(
        {name for name in change.scenarios if any(_fits(name, a) for a in accept)}
    )


def _fits(scenario: str, wanted: str) -> bool:
    """Whether a path is the one asked for, ends in that name, or fits the pattern."""
    if scenario == wanted or scenario.endswith(f"/{wanted}"):
        return True
    return fnmatchcase(scenario, wanted)


def _check_names(accept: Sequence[str], known: Sequence[str]) -> None:
    """Raise `NotFound` for what is to be accepted and does not exist."""
    for each in accept:
        if each in WORDS or any(_fits(scenario, each) for scenario in known):
            continue
        near = nearest(each, WORDS) + nearest(each, known)
        raise NotFound(code="NothingToAccept", wanted=each, near=near)


def _as_expected(found: Sequence[Judgement]) -> str:
    return plural(sum(each.expected for each in found), "scenario")


def _print_commands(offered: Sequence[Change]) -> None:
    click.echo("not a terminal, so nothing is asked; these are to be decided on:")
    for change in offered:
        click.echo(f"  {change.headline()}")
    names = sorted({name for change in offered for name in change.scenarios})
    click.echo("accept them by one of")
    for name in ("all", *(["new"] if any(c.only_new for c in offered) else []), *names):
        click.echo(f"  everyorder review --accept {name}")
