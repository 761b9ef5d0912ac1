"""`everyorder run` and `everyorder gate`: explore and report; compare and exit.

`run` shows a whole catalogue to a person: the table, the failures, the page; it does
not compare with expect files. `gate` compares, and has one exit code for all scenarios;
it writes no files, neither expect files nor compiled modules, so it runs on a read-only
tree. The same flags select how much both explore, and how (`explore_options`).

Reports and comparisons are imported after everything is explored: children are forked
before that, and scan all loaded modules.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from everyorder.harness.cli.command import (
    FAILED,
    GATE,
    INTERRUPTED,
    OK,
    Seconds,
    console,
    exit_code_table,
    json_option,
    json_output,
    paths_argument,
    writing_report,
)
from everyorder.harness.cli.runner import (
    Interrupted,
    Runner,
    load_scenarios,
    outcomes_of,
)
from everyorder.harness.cli.settings import default_paths
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Listing,
    Outcome,
    Task,
    TaskResult,
)
from everyorder.harness.engine import KNOWN_STRATEGIES, parse
from everyorder.harness.processes.watch import (
    OPERATION_SECONDS,
    SCENARIO_SECONDS,
    Subject,
)
from everyorder.harness.report.verdict import Report, Unexplored

if TYPE_CHECKING:
    from everyorder.harness.cli.judgement import Judgement

F = TypeVar("F", bound=Callable[..., object])

_SECONDS = Seconds(min=0)

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
        type=Seconds(min=0, min_open=True),
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
        show_default=f"that of the ini file, else {SCENARIO_SECONDS:g}",
        metavar="SECONDS",
        help="Time limit for each scenario; one that exceeds it is killed and reported "
        "as hung. 0 for no limit.",
    ),
    click.option(
        "--operation-timeout",
        type=_SECONDS,
        show_default=f"that of the ini file, else {OPERATION_SECONDS:g}",
        metavar="SECONDS",
        help="Time limit for each operation (a step, its undo, a use, a look); 0 for "
        "no limit.",
    ),
    click.option(
        "--fail-fast/--keep-going",
        default=False,
        show_default=True,
        help="End at the first scenario or test that fails, or explore all.",
    ),
    click.option(
        "--in-process",
        is_flag=True,
        help="Explore in this process, for a debugger: without time limits, and a "
        "step that ends the process ends the command.",
    ),
)


def explore_options(*, compares: bool = False) -> Callable[[F], F]:
    """Add the exploration flags to a command, which receives a `runner`.

    With `compares`, a difference from the expect files fails a test.
    """
    return partial(_with_runner, compares=compares)


def _with_runner(command: F, *, compares: bool) -> F:
    @wraps(command)
    def with_runner(
        *,
        strategy: str,
        budget: float | None,
        steps: int | None,
        jobs: int | None,
        operation_timeout: float | None,
        timeout: float | None,
        fail_fast: bool,
        in_process: bool,
        **others: object,
    ) -> object:
        effort = effort_of(strategy, budget, steps)
        runner = Runner(
            replace(effort, compares=compares),
            jobs=jobs,
            operation=operation_timeout,
            scenario=timeout,
            in_process=in_process,
            default=default_paths(),
            fail_fast=fail_fast,
        )
        return command(runner=runner, **others)

    wrapped: F = with_runner  # type: ignore[assignment]  # its parameters are flags
    for option in reversed(EXPLORE_FLAGS):
        wrapped = option(wrapped)
    return wrapped


def report_option(command: F) -> F:
    """Add the option for the folder of a page."""
    return click.option(
        "--report",
        type=click.Path(file_okay=False, path_type=Path),
        metavar="DIR",
        help="Write index.html (one offline page) and report.json there.",
    )(command)


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
@explore_options()
@verbose_option
@click.option(
    "--system",
    type=click.Choice(["dispatcher", "torch"]),
    default="dispatcher",
    show_default=True,
    help="'torch' explores a known fault of the real torch's dispatcher.",
)
@report_option
@json_option
def run(
    runner: Runner,
    paths: tuple[str, ...],
    verbose: bool,
    system: str,
    report: Path | None,
    as_json: bool,
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
    _prepare(report)
    with json_output(as_json) as emit, runner:
        if system == "torch":
            if paths:
                raise click.UsageError(
                    "--system torch explores a fixed scenario; omit PATHS"
                )
            listing = _of_torch()
        else:
            listing = load_scenarios(runner, paths, silent=as_json)
        results, interruption = _explore_all(runner, listing, as_json=as_json)
        outcomes = outcomes_of(listing.tasks, results)
        # A report of a part would look like a report of everything.
        folder = None if interruption else report
        reports = [each for each in outcomes if isinstance(each, Report)]
        others = [each for each in outcomes if isinstance(each, Unexplored)]
        others += listing.broken
        if as_json:
            from everyorder.harness.report import document_data, write

            if folder is not None:
                with writing_report(folder):
                    write(folder, reports, others)
            emit(document_data(reports, others))
        elif not interruption or reports or others:
            _print_outcomes(reports, others, folder, verbose)
        if interruption:
            click.echo(interruption)
            raise SystemExit(INTERRUPTED)
    is_fine = all(each.passed for each in reports)
    is_fine = is_fine and not any(each.failed for each in others)
    raise SystemExit(OK if is_fine else FAILED)


def _prepare(folder: Path | None) -> None:
    """Create the folder of a report: fail before the exploration, not after it."""
    if folder is not None:
        with writing_report(folder):
            folder.mkdir(parents=True, exist_ok=True)


def _explore_all(
    runner: Runner, listing: Listing, *, as_json: bool
) -> tuple[Mapping[int, TaskResult], str]:
    """Return the results so far, and a line if the user interrupted the exploration."""
    try:
        results = runner.explore(listing.tasks, console(to_stderr=as_json))
    except Interrupted as stopped:
        from everyorder.harness.report.text import plural

        done = f"{len(stopped.finished)} of {plural(stopped.planned, 'scenario')}"
        return stopped.finished, f"interrupted: {done} explored"
    _print_left(len(listing.tasks) - len(results), as_json=as_json)
    return results, ""


def _print_left(count: int, *, as_json: bool) -> None:
    """Print how many scenarios were left out after the first failure."""
    if count:
        from everyorder.harness.report.text import plural

        text = f"--fail-fast left {plural(count, 'scenario')} unexplored"
        click.echo(text, err=as_json)


def _of_torch() -> Listing:
    """Return the listing of the known fault of the real torch.

    Raises:
        NotInstalled: torch is not installed.
    """
    from everyorder.harness.systems.torch import TEXTS, check_installed

    check_installed()
    root = Path.cwd()
    subject = Subject(TEXTS.scenario, "", TEXTS.steps, TEXTS.uses, root)
    task = Task(TEXTS.scenario, "", None, 0, subject)
    return Listing(root, tasks=(task,))


def _print_outcomes(
    reports: Sequence[Report],
    others: Sequence[Unexplored],
    folder: Path | None,
    verbose: bool,
) -> None:
    from everyorder.harness.base.columns import wrap_words
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

    screen = console()
    width = screen.width
    failed = [each for each in reports if not each.passed]
    if len(reports) + len(others) > 1 or verbose:
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
        with writing_report(folder):
            click.echo(f"report: {write(folder, reports, others)}")


EPILOG = f"""\b
Exit codes; where several apply, the lowest one:
{exit_code_table()}
"""


@click.command(epilog=EPILOG)
@paths_argument
@explore_options(compares=True)
@verbose_option
@report_option
@click.option(
    "--junit",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a JUnit report there.",
)
@json_option
def gate(
    runner: Runner,
    paths: tuple[str, ...],
    verbose: bool,
    report: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """Explore scenarios and compare them with their expect files.

    For continuous integration: no expect file is written, and the exit code tells the
    kind of failure. In GitHub Actions each failure is an annotation of its line.
    Without PATHS, expect files without a scenario are reported too.
    A scenario that skips itself (pytest.skip in a step or in create) is listed and
    counted, and does not change the exit code. With --strategy, --budget or --steps
    fewer states may be reached, so stale entries are not reported.
    """
    _prepare(report)
    if junit is not None:
        from everyorder.harness.cli.machine_output import prepare_junit

        prepare_junit(junit)
    with json_output(as_json) as emit, runner:
        listing = load_scenarios(runner, paths, silent=as_json)
        results, interruption = _explore_all(runner, listing, as_json=as_json)
        are_all = not interruption and not paths
        judgements = _judgements(listing, results, are_all=are_all)
        code = min((each.code for each in judgements if each.code != OK), default=OK)
        outcomes = outcomes_of(listing.tasks, results)
        if as_json:
            from everyorder.harness.cli.machine_output import judgement_data

            data = [judgement_data(each) for each in judgements]
            emit({"exit_code": code, "meaning": GATE[code], "scenarios": data})
        elif not interruption or judgements:
            _print_judgements(listing, outcomes, judgements, code, verbose=verbose)
        if interruption:
            click.echo(interruption)
            raise SystemExit(INTERRUPTED)
        _write_files(report, junit, listing, outcomes, judgements)
    raise SystemExit(code)


def _judgements(
    listing: Listing, results: Mapping[int, TaskResult], *, are_all: bool
) -> "list[Judgement]":
    """Compare the outcomes; with `are_all`, report files without a scenario."""
    from everyorder.harness.cli.judgement import (
        broken_judgements,
        judge_all,
        stale_files,
        stale_judgements,
    )
    from everyorder.harness.expectations import Store

    store, width = Store(listing.root), console().width
    outcomes = outcomes_of(listing.tasks, results)
    judgements = judge_all(outcomes, results, store, width=width)
    judgements += broken_judgements(listing.broken)
    if are_all and len(results) == len(listing.tasks):
        judgements += stale_judgements(store, stale_files(store, listing, results))
    return judgements


def _write_files(
    folder: Path | None,
    junit: Path | None,
    listing: Listing,
    outcomes: Sequence[Outcome],
    judgements: "Sequence[Judgement]",
) -> None:
    """Write the page and the JUnit report, and print annotations."""
    from everyorder.harness.cli import machine_output

    if folder is not None:
        from everyorder.harness.report import write

        reports = [each for each in outcomes if isinstance(each, Report)]
        others = [each for each in outcomes if isinstance(each, Unexplored)]
        with writing_report(folder):
            write(folder, reports, [*others, *listing.broken])
    if junit is not None:
        machine_output.write_junit(junit, judgements)
    if machine_output.wants_annotations():
        for line in machine_output.annotation_lines(
            judgements, listing.tasks, listing.root
        ):
            click.echo(line, err=True)


def _print_judgements(
    listing: Listing,
    outcomes: Sequence[Outcome],
    judgements: "Sequence[Judgement]",
    code: int,
    *,
    verbose: bool,
) -> None:
    from everyorder.harness.cli.judgement import old_file_lines
    from everyorder.harness.expectations import Store
    from everyorder.harness.report import note_lines, notes_of, silent_steps
    from everyorder.harness.report.text import plural

    width = console().width
    for each in sorted(judgements, key=lambda judgement: judgement.code):
        if each.code != OK:
            click.echo(f"[{each.code}] {GATE[each.code]}: {each.scenario}")
            click.echo(f"{each.text}\n")
    reports = [each for each in outcomes if isinstance(each, Report)]
    if silent := silent_steps(reports, width=width):
        click.echo("\n".join(silent) + "\n")
    for line in note_lines(map(notes_of, reports), width=width, verbose=verbose):
        click.echo(line)
    skipped = [each for each in judgements if each.skipped]
    for each in skipped:
        click.echo(each.skip_line())
    for line in old_file_lines(Store(listing.root), judgements):
        click.echo(line)
    counts = Counter(each.code for each in judgements)
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
