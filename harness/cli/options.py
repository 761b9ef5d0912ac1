"""Options and the console that several commands share.

True only here: how the flags of different commands are called, so that they are called
alike; and what "nothing to explore" means.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeVar

import click

from harness.cli.campaign import Campaign
from harness.cli.exits import NoScenarios
from harness.cli.task import Effort, Listing
from harness.engine import KNOWN_STRATEGIES, parse
from harness.watch import OPERATION_SECONDS, SCENARIO_SECONDS, Limits

if TYPE_CHECKING:
    from rich.console import Console

F = TypeVar("F", bound=Callable[..., object])

# Logs have no width of their own; 80 columns is what they are read in.
LOG_WIDTH = 80

paths_argument = click.argument("paths", nargs=-1, metavar="[PATHS]...")


def effort_options(command: F) -> F:
    """`--strategy`, `--budget`, `--steps`, `--jobs`, and those of `child_options`."""
    for option in (
        child_options,
        click.option(
            "--jobs",
            type=click.IntRange(min=1),
            help="Processes to use. Default: one for each core, where it pays.",
        ),
        click.option(
            "--steps",
            type=click.IntRange(min=1),
            metavar="N",
            help="Steps that one scenario may take; 'auto' chooses by it.",
        ),
        click.option(
            "--budget",
            type=click.FloatRange(min=0, min_open=True),
            metavar="SECONDS",
            help="Time that one scenario may take; it is cut short after.",
        ),
        click.option(
            "--strategy",
            default="auto",
            show_default=True,
            help=f"How to explore: {', '.join(KNOWN_STRATEGIES)}; join by '+'.",
        ),
    ):
        command = option(command)
    return command


def child_options(command: F) -> F:
    """`--operation-timeout`, `--timeout`, `--in-process`."""
    for option in (
        click.option(
            "--in-process",
            is_flag=True,
            help="Explore in this process, for a debugger: without time limits, and a "
            "step that ends the process ends the command.",
        ),
        click.option(
            "--timeout",
            type=click.FloatRange(min=0),
            default=SCENARIO_SECONDS,
            show_default=True,
            metavar="SECONDS",
            help="Time after which a scenario is stopped and called hung; 0 for none.",
        ),
        click.option(
            "--operation-timeout",
            type=click.FloatRange(min=0),
            default=OPERATION_SECONDS,
            show_default=True,
            metavar="SECONDS",
            help="The same for a single operation (a step, its undo, a use, a look).",
        ),
    ):
        command = option(command)
    return command


def limits_of(operation_timeout: float, timeout: float) -> Limits:
    """The limits that the options ask for."""
    return Limits(operation_timeout or None, timeout or None)


def effort_of(strategy: str, budget: float | None, steps: int | None) -> Effort:
    """The effort that the options ask for.  Raises `UnknownStrategy`."""
    if strategy != "auto":
        parse(strategy)
    return Effort(strategy, steps, budget)


def console() -> "Console":
    """The console that tables are printed to; 80 columns where it is no terminal."""
    from rich.console import Console

    plain = Console(highlight=False, markup=False, emoji=False)
    if not plain.is_terminal:
        plain.width = LOG_WIDTH
    return plain


def listing_of(campaign: Campaign, paths: Sequence[str]) -> Listing:
    """Load what the paths name; tell what skipped itself or is not collected.

    Raises `NothingThere` and `NoScenarios`.
    """
    listing = campaign.load(paths)
    for some in listing.uncollected:
        click.echo(some.render())
    if not listing.tasks and not listing.broken:
        where = ", ".join(paths)
        if not where:
            from harness.catalogue import default_folder

            folder = default_folder(listing.root).relative_to(listing.root)
            where = folder.as_posix()
        reasons = [f"{source} ({reason})" for source, reason in listing.skipped]
        if reasons:
            where += f"; skipped: {', '.join(reasons)}"
        raise NoScenarios(where=where)
    for source, reason in listing.skipped:
        click.echo(f"skipped: {source}: {reason}")
    return listing
