"""`everyorder gate`: explore, compare with the expect files, exit by what is wrong.

True only here: one exit code for a whole catalogue.  It writes nothing at all, neither
expect files nor compiled modules, so it runs on a read-only tree.
"""

from collections import Counter

import click

from harness.cli import campaign
from harness.cli.campaign import explore_entries
from harness.cli.exit_code import GATE, OK, table
from harness.cli.judgement import gone, judge, not_loaded
from harness.cli.options import (
    catalogue_of,
    console,
    effort_of,
    effort_options,
    paths_argument,
    tell_skipped,
)
from harness.cli.stale import stale_files
from harness.expectations import Store
from harness.outcome import Report
from harness.report import silent_steps
from harness.report.text import plural

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
) -> None:
    """Explore scenarios and compare them with their expect files.

    For continuous integration: nothing is written, and the exit code says what is
    wrong. Expect files without a scenario are looked for when no PATHS are given.
    With --strategy, --budget or --steps, how much was explored is not compared.
    """
    effort = effort_of(strategy, budget, steps)
    catalogue = catalogue_of(paths)
    tell_skipped(catalogue)
    screen = console()
    outcomes = explore_entries(catalogue.entries, effort, jobs, screen)
    store = Store(catalogue.root)
    found = [
        judge(each, store, effort=not effort.by_hand, width=screen.width)
        for each in outcomes
    ]
    found += not_loaded(campaign.not_loaded(catalogue))
    if not paths:
        found += gone(store, stale_files(store, catalogue))
    for each in sorted(found, key=lambda judgement: judgement.code):
        if each.code != OK:
            click.echo(f"[{each.code}] {GATE[each.code]}: {each.scenario}")
            click.echo(f"{each.text}\n")
    reports = (each for each in outcomes if isinstance(each, Report))
    if silent := silent_steps(reports, width=screen.width):
        click.echo("\n".join(silent) + "\n")
    counts = Counter(each.code for each in found)
    code = min((wrong for wrong in counts if wrong != OK), default=OK)
    scenarios = plural(len(outcomes), "scenario")
    click.echo(f"gate: {scenarios}, {counts[OK]} as expected; exit code {code}")
    for wrong, count in sorted(counts.items()):
        if wrong != OK:
            click.echo(f"  {wrong}  {GATE[wrong]}: {count}")
    raise SystemExit(code)
