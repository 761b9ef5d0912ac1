"""`everyorder imports` and `everyorder write`: commands for arbitrary modules.

`imports` shows the results of importing modules in every order, each in a fresh
process; `harness.tools.imports` plays and compares the orders. `write` prints or saves
a first scenario of a registry; `harness.tools.scaffold` finds it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import click
from rich.box import SIMPLE
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
from rich.table import Table
from rich.text import Text

from everyorder.harness.base.errors import FileError, FileExists
from everyorder.harness.cli.command import (
    FAILED,
    OK,
    Seconds,
    console,
    json_option,
    json_output,
    path_option,
)
from everyorder.harness.report.summary_table import duration
from everyorder.harness.report.text import plural
from everyorder.harness.tools.imports import (
    SECONDS,
    ImportReport,
    Isolation,
    SizeRow,
    of_imports,
    usual_isolation,
)
from everyorder.harness.tools.imports.import_orders import ProgressCallback
from everyorder.harness.tools.scaffold import SECONDS as OF_TRIALS
from everyorder.harness.tools.scaffold import scenario_text

# Verdicts as table cells, with the styles of `everyorder run`.
CELLS = {
    "crashed": ("CRASHED", "bold red"),
    "hung": ("HUNG", "bold red"),
    "order": ("ORDER", "bold red"),
    "flaky": ("FLAKY", "bold magenta"),
    "vacuous": ("VACUOUS", "yellow"),
    "holds": ("holds", "green"),
}

COLUMNS = ("imported", "sets", "orders", "of", "verdict")


@click.command(
    epilog="Exit codes: 0 no order makes a difference; 1 one does, or a process "
    "crashed or hung, or nothing could have differed; 2 bad arguments; 130 interrupted."
)
@click.argument("modules", nargs=-1, metavar="MODULE MODULE...")
@click.option(
    "--use",
    "uses",
    multiple=True,
    metavar="EXPR",
    help="An expression to evaluate after the imports; its value is compared. May be "
    "repeated.",
)
@click.option(
    "--watch",
    multiple=True,
    metavar="MODULE",
    help="Compare the globals of this module as well, although it is of the standard "
    "library. May be repeated.",
)
@path_option
@click.option(
    "--timeout",
    type=Seconds(min=0, min_open=True),
    default=SECONDS,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for each order; its process is killed after it.",
)
@click.option(
    "--order",
    "orders",
    multiple=True,
    metavar="A,B",
    help="In place of MODULEs: play and compare only the orders that are given so. "
    "May be repeated.",
)
@click.option(
    "--isolation",
    type=click.Choice(["fork", "spawn"]),
    default=usual_isolation(),
    show_default=True,
    help="How each order gets a fresh process: by a fork, or by a new interpreter.",
)
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    help="Processes to use at a time. Default: one for each core.",
)
@json_option
def imports(
    modules: tuple[str, ...],
    uses: tuple[str, ...],
    watch: tuple[str, ...],
    path: Path,
    timeout: float,
    orders: tuple[str, ...],
    isolation: Isolation,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Import modules in every order and compare the results.

    Each order is played in a process that has imported nothing else. Of up to five
    modules, every subset is imported in every order. Orders of the same modules have
    to agree on the errors that are raised, on the values of the uses, and on the
    globals of every imported package that is not of the standard library.

    \b
    Examples:
      everyorder imports shop.json shop.yaml --use "shop.formats()"
      everyorder imports json decimal xml.etree.ElementTree
      everyorder imports --order a,b --order b,a
    """
    chosen = [tuple(order.split(",")) for order in orders]
    if modules and chosen:
        raise click.UsageError("name MODULEs or --order, not both")
    question = of_imports(
        *(chosen[0] if chosen else modules),
        use=uses,
        watch=watch,
        path=path,
        timeout=timeout,
        isolation=isolation,
    )
    if chosen:
        question = question.only(chosen)
    with json_output(as_json) as emit:
        with _progress(to_stderr=as_json) as report_progress:
            report = question.explore(jobs=jobs, tell=report_progress)
        if as_json:
            emit({"verdict": report.verdict, **asdict(report)})
    if as_json:
        raise SystemExit(OK if report.passed else FAILED)
    screen = console()
    screen.print(table(report))
    click.echo("\n" + report.render(width=min(screen.width, 100)))
    click.echo("\n" + report.summary())
    raise SystemExit(OK if report.passed else FAILED)


def table(report: ImportReport) -> Table:
    """Return one row for each size of sets, and the totals."""
    size_table = Table(
        box=SIMPLE, padding=(0, 1, 0, 0), show_edge=False, pad_edge=False
    )
    size_table.show_footer = True
    totals = (
        "",
        f"{sum(row.sets for row in report.rows):,}",
        f"{sum(row.orders for row in report.rows):,}",
        f"{report.possible:,}",
        duration(report.seconds),
    )
    for name, total in zip(COLUMNS, totals, strict=True):
        number = name in ("sets", "orders", "of")
        size_table.add_column(name, total, justify="right" if number else "left")
    for row in report.rows:
        size_table.add_row(
            plural(row.size, "module"),
            f"{row.sets:,}",
            f"{row.orders:,}",
            f"{row.possible:,}",
            _verdict(row),
        )
    return size_table


def _verdict(row: SizeRow) -> Text:
    text, style = CELLS[row.verdict]
    if row.orders == row.sets and row.verdict == "holds":
        return Text("one order each")
    if row.refuted:
        text += f" {row.refuted:,} of {row.sets:,}"
    return Text(text, style)


@contextmanager
def _progress(*, to_stderr: bool) -> Iterator[ProgressCallback]:
    """Context: show a progress bar on a terminal."""
    screen = console(to_stderr=to_stderr)
    if not screen.is_terminal:
        yield lambda done, planned: None
        return
    columns = (TextColumn("orders"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=screen, transient=True) as bar:
        task = bar.add_task("orders", total=None)
        yield lambda done, planned: bar.update(task, completed=done, total=planned)


@click.command(epilog="Exit codes: 0 written; 2 it could not be; 130 interrupted.")
@click.argument("target", metavar="MODULE[:NAME]")
@click.option(
    "-o",
    "--output",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the scenario there. Default: print it.",
)
@click.option("--force", is_flag=True, help="Write over a file that exists.")
@path_option
@click.option(
    "--timeout",
    type=Seconds(min=0, min_open=True),
    default=OF_TRIALS,
    show_default=True,
    metavar="SECONDS",
    help="Time limit for all trials together.",
)
def write(
    target: str, output: Path | None, force: bool, path: Path, timeout: float
) -> None:
    """Write a first scenario of a registry.

    NAME is a class, a function that makes a registry, or an object; without it the
    module is the registry. Steps are made of the registry's functions whose names are
    pairs (add and remove, connect and disconnect, push and pop, ...) or say that they
    register, and uses of those whose names say that they look something up. Arguments
    are found by trial, on fresh registries in separate processes, in an empty
    folder; no other function is called. What could not be found out is marked TODO.

    \b
    Examples:
      everyorder write pluggy:PluginManager
      everyorder write shop.registry:Registry -o tests/scenarios/test_registry.py
      everyorder write codecs
    """
    if output is not None and output.exists() and not force:
        raise FileExists(source=str(output))
    text = scenario_text(target, path=path, seconds=timeout)
    if output is None:
        click.echo(text, nl=False)
        return
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            code="CannotWriteScenario", source=str(output), reason=reason
        ) from None
    click.echo(f"written: {output}\nexplore it: everyorder run {output}")
