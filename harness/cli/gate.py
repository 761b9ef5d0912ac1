"""`everyorder gate`: explore, compare with the expect files, exit by what is wrong.

True only here: one exit code for a whole catalogue.  It writes nothing at all, neither
expect files nor compiled modules, so it runs on a read-only tree.
"""

from collections import Counter

import click

from harness.cli.campaign import Campaign
from harness.cli.exit_code import GATE, OK, table
from harness.cli.options import (
    console,
    effort_of,
    effort_options,
    limits_of,
    listing_of,
    paths_argument,
)
from harness.cli.task import Effort
from harness.outcome import Report

EPILOG = f"""\b
Exit codes; where several apply, the lowest one:
{table()}
"""


@click.command(epilog=EPILOG)
@paths_argument
@effort_options
def gate(
    paths: tuple[str, ...],
    strategy: str,
    budget: float | None,
    steps: int | None,
    jobs: int | None,
    operation_timeout: float,
    timeout: float,
    in_process: bool,
) -> None:
    """Explore scenarios and compare them with their expect files.

    For continuous integration: nothing is written, and the exit code says what is
    wrong. Expect files without a scenario are looked for when no PATHS are given.
    A scenario that skips itself (pytest.skip in a step or in create) is told and
    counted; as in pytest, nothing is wrong with it.
    With --strategy, --budget or --steps, how much was explored is not compared.
    """
    effort = effort_of(strategy, budget, steps)
    limits = limits_of(operation_timeout, timeout)
    campaign = Campaign(effort, jobs=jobs, limits=limits, in_process=in_process)
    with campaign:
        raise SystemExit(_gate(campaign, paths, effort))


def _gate(campaign: Campaign, paths: tuple[str, ...], effort: Effort) -> int:
    """Explore, compare and tell; the exit code."""
    listing = listing_of(campaign, paths)
    screen = console()
    outcomes = campaign.explore(listing.tasks, screen)
    from harness.cli.judgement import gone, judge, not_loaded
    from harness.cli.stale import stale_files
    from harness.expectations import Store
    from harness.report import noted, silent_steps, told_briefly
    from harness.report.text import plural

    store = Store(listing.root)
    found = [
        judge(each, store, effort=not effort.by_hand, width=screen.width)
        for each in outcomes
    ]
    found += not_loaded(listing.broken)
    if not paths:
        found += gone(store, stale_files(store, listing))
    for each in sorted(found, key=lambda judgement: judgement.code):
        if each.code != OK:
            click.echo(f"[{each.code}] {GATE[each.code]}: {each.scenario}")
            click.echo(f"{each.text}\n")
    reports = [each for each in outcomes if isinstance(each, Report)]
    if silent := silent_steps(reports, width=screen.width):
        click.echo("\n".join(silent) + "\n")
    if notes := told_briefly(map(noted, reports), width=screen.width):
        click.echo("\n".join(notes) + "\n")
    skipped = [each for each in found if each.skipped]
    for each in skipped:
        click.echo(each.told_skipped())
    counts = Counter(each.code for each in found)
    code = min((wrong for wrong in counts if wrong != OK), default=OK)
    told = (
        f"{plural(len(outcomes), 'scenario')}, {counts[OK] - len(skipped)} as expected"
    )
    if skipped:
        told += f", {len(skipped)} skipped"
    click.echo(f"gate: {told}; exit code {code}")
    for wrong, count in sorted(counts.items()):
        if wrong != OK:
            click.echo(f"  {wrong}  {GATE[wrong]}: {count}")
    return code
