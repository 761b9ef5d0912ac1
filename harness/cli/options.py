"""Options and the console that several commands share.

True only here: how the flags of different commands are called, so that they are called
alike; and what "nothing to explore" means.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import click
from rich.console import Console

from harness.catalogue import Catalogue, default_folder, load
from harness.cli.errors import NoScenarios
from harness.cli.task import Effort
from harness.engine import KNOWN_STRATEGIES, parse

F = TypeVar("F", bound=Callable[..., object])

# Logs have no width of their own; 80 columns is what they are read in.
LOG_WIDTH = 80

paths_argument = click.argument("paths", nargs=-1, metavar="[PATHS]...")


def effort_options(command: F) -> F:
    """`--strategy`, `--budget`, `--steps`, `--jobs`."""
    for option in (
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


def effort_of(strategy: str, budget: float | None, steps: int | None) -> Effort:
    """The effort that the options ask for.  Raises `UnknownStrategy`."""
    if strategy != "auto":
        parse(strategy)
    return Effort(strategy, steps, budget)


def console() -> Console:
    """The console that tables are printed to; 80 columns where it is no terminal."""
    plain = Console(highlight=False, markup=False, emoji=False)
    if not plain.is_terminal:
        plain.width = LOG_WIDTH
    return plain


def catalogue_of(paths: Sequence[str]) -> Catalogue:
    """Load what the paths name.  Raises `NothingThere` and `NoScenarios`."""
    catalogue = load(paths)
    if not catalogue.entries and not catalogue.broken:
        folder = default_folder(catalogue.root).relative_to(catalogue.root)
        where = ", ".join(paths) or folder.as_posix()
        reasons = [f"{each.source} ({each.reason})" for each in catalogue.skipped]
        if reasons:
            where += f"; skipped: {', '.join(reasons)}"
        raise NoScenarios(where=where)
    return catalogue


def tell_skipped(catalogue: Catalogue) -> None:
    """One line for every module that skipped itself."""
    for skipped in catalogue.skipped:
        click.echo(f"skipped: {skipped.source}: {skipped.reason}")
