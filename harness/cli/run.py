"""`everyorder run`: explore, print the table, explain what failed, write the page.

True only here: what a person sees of a whole catalogue.  It compares nothing with
expect files; that is `gate`.
"""

from collections.abc import Sequence
from pathlib import Path

import click

from harness.cli import exit_code
from harness.cli.campaign import Interrupted, explore_entries, not_loaded
from harness.cli.errors import CannotWrite
from harness.cli.options import (
    catalogue_of,
    console,
    effort_of,
    effort_options,
    paths_argument,
    tell_skipped,
)
from harness.cli.task import Outcome
from harness.cli.torch_subject import explore_torch
from harness.outcome import Report
from harness.report import (
    Unexplored,
    overview,
    render,
    silent_steps,
    summary,
    write,
)
from harness.report.text import plural


@click.command(
    epilog="Exit codes: 0 everything passed; 1 something did not; 2 bad arguments; "
    "130 interrupted."
)
@paths_argument
@effort_options
@click.option(
    "--system",
    type=click.Choice(["dispatcher", "torch"]),
    default="dispatcher",
    show_default=True,
    help="'torch' explores a known fault of the real torch's dispatcher.",
)
@click.option(
    "--report",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Write index.html (one offline page) and report.json there.",
)
def run(
    paths: tuple[str, ...],
    strategy: str,
    budget: float | None,
    steps: int | None,
    jobs: int | None,
    system: str,
    report: Path | None,
) -> None:
    """Explore scenarios and print what holds, for which orders.

    The table has one row for each scenario: its steps (n), the sets of active steps
    that were reached, the steps executed (edges), the strategy, what it guarantees,
    and the verdict: proven (any length), holds (as far as guaranteed), pinned
    (depends on order as its scenario says), LAW, ORDER, NO PIN (the order does not
    matter although the scenario says so), RANDOM (not deterministic), CUT (budget
    spent), FAILED (could not be explored).

    \b
    everyorder run
    everyorder run tests/scenarios/test_composites.py --strategy graph+walk:2
    everyorder run two_kernels --report build/report
    everyorder run --system torch
    """
    effort = effort_of(strategy, budget, steps)
    if report is not None:
        _prepare(report)
    if system == "torch":
        if paths:
            raise click.UsageError("--system torch has a scenario of its own; no PATHS")
        outcomes: Sequence[Outcome] = (explore_torch(effort),)
        broken: tuple[Unexplored, ...] = ()
    else:
        catalogue = catalogue_of(paths)
        tell_skipped(catalogue)
        broken = not_loaded(catalogue)
        try:
            outcomes = explore_entries(catalogue.entries, effort, jobs, console())
        except Interrupted as stopped:
            # A report of a part would look like one of everything.
            if stopped.finished or broken:
                _conclude(stopped.finished, broken, None)
            done = f"{len(stopped.finished)} of {plural(stopped.planned, 'scenario')}"
            click.echo(f"interrupted: {done} explored")
            raise SystemExit(exit_code.INTERRUPTED) from None
    raise SystemExit(_conclude(outcomes, broken, report))


def _prepare(folder: Path) -> None:
    """Make the report's folder before anything is explored for it."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotWrite(folder=str(folder), reason=reason) from None


def _conclude(
    outcomes: Sequence[Outcome], broken: tuple[Unexplored, ...], folder: Path | None
) -> int:
    reports = [each for each in outcomes if isinstance(each, Report)]
    others = [each for each in outcomes if isinstance(each, Unexplored)] + [*broken]
    screen = console()
    screen.print(overview(reports, others, width=screen.width))
    failed = [each for each in reports if not each.passed]
    for each in failed:
        click.echo("\n" + render(each, width=screen.width))
    if silent := silent_steps(reports, width=screen.width):
        click.echo("\n" + "\n".join(silent))
    for other in others:
        click.echo(f"\n{other.scenario}: not explored\n{other.render()}")
    click.echo("\n" + summary(reports, others))
    if folder is not None:
        try:
            click.echo(f"report: {write(folder, reports, others)}")
        except OSError as error:
            reason = error.strerror or str(error)
            raise CannotWrite(folder=str(folder), reason=reason) from None
    return exit_code.FAILED if failed or others else exit_code.OK
