"""`everyorder run` and `everyorder gate`: explore and report; compare and exit.

`run` shows a whole catalogue to a person: the table, the failures, the page; it does
not compare with expect files. `gate` compares, and has one exit code for all scenarios;
it writes no files, neither expect files nor compiled modules, so it runs on a read-only
tree. The same flags select how much both explore, and how (`explore_options`).

Reports and comparisons are imported after everything is explored: children are forked
before that, and scan all loaded modules.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import wraps
from pathlib import Path
from typing import TypeVar

import click

from everyorder.harness.base.errors import FileError
from everyorder.harness.cli.command import (
    FAILED,
    GATE,
    INTERRUPTED,
    OK,
    console,
    exit_code_table,
    paths_argument,
)
from everyorder.harness.cli.runner import Interrupted, Runner, load_scenarios
from everyorder.harness.cli.task import ExploreOptions, Listing, Outcome, Task
from everyorder.harness.engine import KNOWN_STRATEGIES, parse
from everyorder.harness.processes.watch import (
    OPERATION_SECONDS,
    SCENARIO_SECONDS,
    Limits,
)
from everyorder.harness.report.verdict import Report, Unexplored

F = TypeVar("F", bound=Callable[..., object])

_SECONDS = click.FloatRange(min=0)

# The flags for the amount and kind of exploration, in the order of help texts.
EXPLORE_FLAGS = (
    click.option(
        "--strategy",
        default="auto",
        show_default=True,
        help=f"How to explore: {', '.join(KNOWN_STRATEGIES)}, or several joined "
        "by '+'.",
    ),
    click.option(
        "--budget",
        type=click.FloatRange(min=0, min_open=True),
        metavar="SECONDS",
        help="Time to explore each scenario for; one that takes longer is cut short "
        "and reported as such.",
    ),
    click.option(
        "--steps",
        type=click.IntRange(min=1),
        metavar="N",
        help="Operations to play of each scenario at most; 'auto' chooses strategies "
        "that fit.",
    ),
    click.option(
        "--jobs",
        type=click.IntRange(min=1),
        help="Processes to use. Default: one for each core, or one if there is little "
        "to explore.",
    ),
    click.option(
        "--timeout",
        type=_SECONDS,
        default=SCENARIO_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Time limit for each scenario; one that exceeds it is killed and reported "
        "as hung. 0 for no limit.",
    ),
    click.option(
        "--operation-timeout",
        type=_SECONDS,
        default=OPERATION_SECONDS,
        show_default=True,
        metavar="SECONDS",
        help="Time limit for each operation (a step, its undo, a use, a look); 0 for "
        "no limit.",
    ),
    click.option(
        "--in-process",
        is_flag=True,
        help="Explore in this process, for a debugger: without time limits, and a "
        "step that ends the process ends the command.",
    ),
)


def explore_options(command: F) -> F:
    """Add the exploration flags to a command, which receives a `runner`."""

    @wraps(command)
    def with_runner(
        *,
        strategy: str,
        budget: float | None,
        steps: int | None,
        jobs: int | None,
        operation_timeout: float,
        timeout: float,
        in_process: bool,
        **others: object,
    ) -> object:
        runner = Runner(
            effort_of(strategy, budget, steps),
            jobs=jobs,
            limits=Limits(operation_timeout or None, timeout or None),
            in_process=in_process,
        )
        return command(runner=runner, **others)

    wrapped: F = with_runner  # type: ignore[assignment]  # its parameters are flags
    for option in reversed(EXPLORE_FLAGS):
        wrapped = option(wrapped)
    return wrapped


def verbose_option(command: F) -> F:
    """Add the flag for assumptions, strategies and counts."""
    return click.option(
        *("-v", "--verbose"),
        is_flag=True,
        help="Show assumptions, strategies and counts, too.",
    )(command)


def effort_of(strategy: str, budget: float | None, steps: int | None) -> ExploreOptions:
    """Return the options of these flags.

    Raises:
        BadStrategy: the strategy is unknown.
    """
    if strategy != "auto":
        parse(strategy)
    return ExploreOptions(strategy, steps, budget)


@click.command(
    epilog="Exit codes: 0 everything passed; 1 something did not; 2 bad arguments; "
    "130 interrupted."
)
@paths_argument
@explore_options
@verbose_option
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
    runner: Runner,
    paths: tuple[str, ...],
    verbose: bool,
    system: str,
    report: Path | None,
) -> None:
    """Explore scenarios and print what holds, for which orders.

    Scenarios are explored in child processes, so one that crashes or hangs does not
    stop the others. The table has a row for each, with its verdict; -v adds its steps
    (n), the states (by active steps) that were reached, the operations that were played
    (transitions), the strategy, and what that guarantees:

    \b
    proven   no history of any length makes a difference
    holds    no history within the guarantee makes a difference
    pinned   the order makes a difference, as the scenario says
    LAW      a law is broken
    ORDER    the order, or what was done before, makes a difference
    NO PIN   the scenario says that the order makes a difference: it does not
    FLAKY    the same history gave two results
    UNFRESH  create does not make a fresh system
    HIDDEN   the registry has state that cannot be seen
    TYPO     a typing error in the scenario makes an operation fail always
    VACUOUS  nothing in the scenario could have failed
    CUT      the budget was spent before everything was explored
    FAILED   the scenario could not be explored
    CRASHED  a step ended the process
    HUNG     an operation, or the scenario, was not over in time
    skipped  the scenario skips itself (pytest.skip); this is not a failure

    \b
    Examples:
      everyorder run
      everyorder run tests/scenarios/test_composites.py --strategy graph+walk:2
      everyorder run two_kernels --report build/report
      everyorder run --system torch
    """
    if report is not None:
        # Fail before the exploration, not after it.
        with _writing(report):
            report.mkdir(parents=True, exist_ok=True)
    with runner:
        if system == "torch":
            if paths:
                raise click.UsageError(
                    "--system torch explores a fixed scenario; omit PATHS"
                )
            listing = _of_torch()
        else:
            listing = load_scenarios(runner, paths)
        outcomes = _outcomes(runner, listing, verbose)
        raise SystemExit(_print_outcomes(outcomes, listing.broken, report, verbose))


def _outcomes(runner: Runner, listing: Listing, verbose: bool) -> Sequence[Outcome]:
    """Return the outcomes; print the finished ones if the user interrupts."""
    try:
        return runner.explore(listing.tasks, console())
    except Interrupted as stopped:
        from everyorder.harness.report.text import plural

        # A report of a part would look like a report of everything.
        if stopped.finished or listing.broken:
            _print_outcomes(stopped.finished, listing.broken, None, verbose)
        done = f"{len(stopped.finished)} of {plural(stopped.planned, 'scenario')}"
        click.echo(f"interrupted: {done} explored")
        raise SystemExit(INTERRUPTED) from None


def _of_torch() -> Listing:
    """Return the listing of the known fault of the real torch.

    Raises:
        NotInstalled: torch is not installed.
    """
    from everyorder.harness.systems.torch import TEXTS, check_installed

    check_installed()
    task = Task(TEXTS.scenario, None, Path.cwd(), 0, "", TEXTS.steps, TEXTS.uses)
    return Listing(Path.cwd(), (task,))


@contextmanager
def _writing(folder: Path) -> Iterator[None]:
    """Context: turn errors of the system while a report is written into `FileError`."""
    try:
        yield
    except OSError as error:
        reason = error.strerror or str(error)
        raise FileError(
            code="CannotWriteReport", source=str(folder), reason=reason
        ) from None


def _print_outcomes(
    outcomes: Sequence[Outcome],
    broken: tuple[Unexplored, ...],
    folder: Path | None,
    verbose: bool,
) -> int:
    from everyorder.harness.report import (
        note_lines,
        notes_of,
        overview,
        render,
        silent_steps,
        summary,
        verdict_line,
        write,
    )
    from everyorder.harness.report.text import wrap_words

    reports = [each for each in outcomes if isinstance(each, Report)]
    others = [each for each in outcomes if isinstance(each, Unexplored)] + [*broken]
    screen = console()
    width = screen.width
    failed = [each for each in reports if not each.passed]
    if len(outcomes) + len(broken) > 1 or verbose:
        screen.print(overview(reports, others, width=width, verbose=verbose))
        click.echo()
    elif reports and not failed:
        click.echo(verdict_line(reports[0], width=width))
    for each in failed:
        click.echo(render(each, width=width, verbose=verbose) + "\n")
    if silent := silent_steps(reports, width=width):
        click.echo("\n".join(silent) + "\n")
    for other in others:
        click.echo(f"{other.scenario}: {other.sentence}\n{other.render(width=width)}\n")
    for line in note_lines(map(notes_of, reports), width=width, verbose=verbose):
        click.echo(line)
    for line in wrap_words(summary(reports, others), width, indent="  "):
        click.echo(line)
    if folder is not None:
        with _writing(folder):
            click.echo(f"report: {write(folder, reports, others)}")
    wrong = failed or any(each.failed for each in others)
    return FAILED if wrong else OK


EPILOG = f"""\b
Exit codes; where several apply, the lowest one:
{exit_code_table()}
"""


@click.command(epilog=EPILOG)
@paths_argument
@explore_options
@verbose_option
def gate(runner: Runner, paths: tuple[str, ...], verbose: bool) -> None:
    """Explore scenarios and compare them with their expect files.

    For continuous integration: nothing is written, and the exit code says what is
    wrong. Without PATHS, expect files without a scenario are reported too.
    A scenario that skips itself (pytest.skip in a step or in create) is listed and
    counted, and does not change the exit code. With --strategy, --budget or --steps
    fewer states may be reached, so stale entries are not reported.
    """
    with runner:
        raise SystemExit(_gate(runner, paths, verbose))


def _gate(runner: Runner, paths: tuple[str, ...], verbose: bool) -> int:
    """Explore, compare and print; return the exit code."""
    listing = load_scenarios(runner, paths)
    screen = console()
    outcomes = runner.explore(listing.tasks, screen)
    from everyorder.harness.cli.judgement import (
        broken_judgements,
        judge,
        old_file_lines,
        stale_files,
        stale_judgements,
    )
    from everyorder.harness.expectations import Store
    from everyorder.harness.report import note_lines, notes_of, silent_steps
    from everyorder.harness.report.text import plural

    store = Store(listing.root)
    judgements = [
        judge(each, store, partial=runner.effort.is_custom, width=screen.width)
        for each in outcomes
    ]
    judgements += broken_judgements(listing.broken)
    if not paths:
        stale = stale_files(store, listing, outcomes)
        judgements += stale_judgements(store, stale)
    for each in sorted(judgements, key=lambda judgement: judgement.code):
        if each.code != OK:
            click.echo(f"[{each.code}] {GATE[each.code]}: {each.scenario}")
            click.echo(f"{each.text}\n")
    reports = [each for each in outcomes if isinstance(each, Report)]
    if silent := silent_steps(reports, width=screen.width):
        click.echo("\n".join(silent) + "\n")
    for line in note_lines(map(notes_of, reports), width=screen.width, verbose=verbose):
        click.echo(line)
    skipped = [each for each in judgements if each.skipped]
    for each in skipped:
        click.echo(each.skip_line())
    for line in old_file_lines(store, judgements):
        click.echo(line)
    counts = Counter(each.code for each in judgements)
    code = min((wrong for wrong in counts if wrong != OK), default=OK)
    expected = sum(each.is_expected for each in judgements)
    counts_text = f"{plural(len(outcomes), 'scenario')}, {expected} as expected"
    uncompared = sum(each.uncompared for each in judgements)
    if uncompared:
        counts_text += f", {uncompared} compared with nothing (expect=False)"
    if skipped:
        counts_text += f", {len(skipped)} skipped"
    click.echo(f"gate: {counts_text}; exit code {code}")
    for wrong, count in sorted(counts.items()):
        if wrong != OK:
            click.echo(f"  {wrong}  {GATE[wrong]}: {count}")
    return code
