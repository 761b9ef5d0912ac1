"""`everyorder review`: compare explorations with expect files, and accept changes.

Every decision is offered with its content (`changes`). At a terminal it is a question;
elsewhere, and in scripts, the same text is printed with the option that answers it.

Rules:
- a value of `--accept` that does not match anything is refused before the exploration,
  the id of a change, which is known only then, after it;
- if several scenarios share a change, it is accepted for those that are named;
- files are written once, at the end, together; quitting keeps the accepted changes;
- `--save` writes observations next to the expect files, with another suffix and another
  first line, so that neither is taken for the other; `--saved` decides about them later
  without exploring again. Accepting a scenario deletes its saved observations.
"""

import re
import sys
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, TypeAlias

import click

from everyorder.harness.base.errors import NotFound
from everyorder.harness.cli.changes import (
    ReviewChange,
    changes,
    documents,
    inline_edits,
)
from everyorder.harness.cli.command import (
    FAILED,
    OK,
    console,
    json_option,
    json_output,
    paths_argument,
)
from everyorder.harness.cli.judgement import (
    Judgement,
    judge_all,
    judge_saved,
    stale_files,
)
from everyorder.harness.cli.runner import Runner, load_scenarios, outcomes_of
from everyorder.harness.cli.settings import default_paths
from everyorder.harness.collection.selection import nearest
from everyorder.harness.collection.tasks import ExploreOptions
from everyorder.harness.expectations import Store, forbidden, with_sharing
from everyorder.harness.report.text import plural
from everyorder.harness.report.verdict import Unexplored

# Values of `--accept` that are not scenarios.
WORDS = ("all", "new")

# The id of a change.
_ID = re.compile("[0-9a-f]{8}")

CHOICES = "a accept, s skip, v view all of it, A accept all that follow, q quit"


@click.command(
    epilog="Exit codes: 0 nothing is left to review; 1 something is; 2 bad arguments; "
    "130 interrupted."
)
@paths_argument
@click.option(
    "--accept",
    multiple=True,
    metavar="all|new|ID|SCENARIO",
    help="Accept without asking: everything, what no expect file has yet, the change "
    "with this id, or one scenario by its path or name (or several by a pattern of "
    "paths).",
)
@click.option(
    "--full", is_flag=True, help="Print every change in full, not only examples."
)
@click.option(
    "--save",
    is_flag=True,
    help="Accept nothing; write what differs to files with the suffix .new next to the "
    "expect files, for `review --saved`.",
)
@click.option(
    "--saved",
    is_flag=True,
    help="Explore nothing; review what `review --save` wrote.",
)
@click.option("--jobs", type=click.IntRange(min=1), help="Processes to use.")
@json_option
def review(
    paths: tuple[str, ...],
    accept: tuple[str, ...],
    full: bool,
    save: bool,
    saved: bool,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Accept what differs from the expect files.

    Entries that differ alike are offered once, for all states and scenarios: equal
    texts, or changes that make the same replacements. New files are shown with their
    content. Of a scenario that fails its exploration nothing is accepted.

    Without a terminal nothing is asked: each change is printed with its id and the
    option that accepts it, and the exit code is 1.

    \b
    Examples:
      everyorder review                     ask about each change
      everyorder review --accept new        accept what no expect file has yet
      everyorder review --accept ID         accept the change that was printed so
      everyorder review --accept SCENARIO   accept one, or a pattern of paths
      everyorder review --accept all        accept all, and delete what is stale
      everyorder review --save              write what differs; decide later by
      everyorder review --saved             this, without exploring again
    """
    if saved and (save or paths):
        raise click.UsageError("--saved reviews all saved files; omit --save and PATHS")
    if save and accept:
        raise click.UsageError("--save accepts nothing; omit --accept")
    error = forbidden()
    if error is not None:
        raise error
    with json_output(as_json) as emit:
        subject = _saved(accept) if saved else _explored(paths, accept, jobs, as_json)
        store, judgements, broken, stale = subject
        obstacles = _obstacles(judgements, broken)
        if not as_json:
            _print_obstacles(obstacles, judgements, store)
        offered = changes(judgements, stale)
        saved_names = (
            _save(
                store, judgements, everything=not paths and not broken, silent=as_json
            )
            if save
            else []
        )
        if accept:
            _check_ids(accept, offered, (*store.scenarios(), *_names(offered)))
            parts = [_accepted_part(each, accept) for each in offered]
            accepted = [each for each in parts if each.parts]
        elif as_json or not offered:
            accepted = []
        elif sys.stdin.isatty() and sys.stdout.isatty() and not save:
            accepted = decide(offered, full=full)
        else:
            _print_questions(offered, full=full, saved=save or saved)
            raise SystemExit(FAILED)
        left = sum(each not in accepted for each in offered)
        touched = _write(store, accepted, judgements) if accepted else {}
        if as_json:
            emit(
                {
                    "accepted": [_change_data(each) for each in accepted],
                    "left": [_change_data(e) for e in offered if e not in accepted],
                    "not_to_be_accepted": obstacles,
                    "files": {**dict.fromkeys(saved_names, "saved"), **touched},
                }
            )
        elif not offered:
            click.echo(f"nothing to review: {_as_expected(judgements)} as expected")
        else:
            _print_written(touched, len(accepted), left)
        raise SystemExit(FAILED if left or obstacles else OK)


_Subject: TypeAlias = tuple[
    Store, list[Judgement], tuple[Unexplored, ...], tuple[str, ...]
]


def _saved(accept: Sequence[str]) -> _Subject:
    """Return the store and the judgements of saved observations."""
    from everyorder.harness.collection.here import root_here

    store = Store(root_here())
    judgements = judge_saved(store)
    _check_names(accept, store.saved())
    return store, judgements, (), ()


def _explored(
    paths: tuple[str, ...], accept: Sequence[str], jobs: int | None, as_json: bool
) -> _Subject:
    """Explore; return the store, judgements, broken modules and stale files."""
    with Runner(ExploreOptions(), jobs=jobs, default=default_paths()) as runner:
        listing = load_scenarios(runner, paths, silent=as_json)
        store = Store(listing.root)
        stale = stale_files(store, listing) if not paths else ()
        has_tests = any(task.is_test for task in listing.tasks)
        if not listing.broken and not has_tests:
            # A module that does not load, or a test, may have the name.
            _check_names(accept, (*listing.paths, *stale))
        results = runner.explore(listing.tasks, console(to_stderr=as_json))
    outcomes = outcomes_of(listing.tasks, results)
    if not paths:
        stale = stale_files(store, listing, results)
    if not listing.broken and has_tests:
        names = [each.scenario for each in outcomes]
        _check_names(accept, (*names, *listing.paths, *stale))
    judgements = judge_all(outcomes, results, store)
    return store, judgements, listing.broken, stale


def _change_data(change: ReviewChange) -> dict[str, Any]:
    """Return a change as JSON data."""
    return {
        "id": change.id,
        "verdict": change.verdict,
        "headline": change.headline(),
        "scenarios": list(change.scenarios),
        "only_new": change.only_new,
        "lines": list(change.text_lines(whole=True)),
    }


def _obstacles(
    judgements: Sequence[Judgement], broken: Sequence[Unexplored]
) -> list[str]:
    """Return why scenarios and modules cannot be accepted."""
    reasons = [
        each.damage or f"{each.scenario} fails; see everyorder run"
        for each in judgements
        if each.is_failing
    ]
    return reasons + [each.render() for each in broken]


def _print_obstacles(
    obstacles: Sequence[str], judgements: Sequence[Judgement], store: Store
) -> None:
    """Print what cannot be accepted, and the last accept if it was interrupted."""
    for each in obstacles:
        click.echo(f"not to be accepted: {each}")
    for judgement in judgements:
        if judgement.skipped:
            click.echo(judgement.skip_line())
    if interrupted := store.interrupted():
        click.echo(interrupted)


def _save(
    store: Store, judgements: Sequence[Judgement], *, everything: bool, silent: bool
) -> list[str]:
    """Write what differs, and delete what was saved of scenarios that do not.

    Return the names of the written files.
    """
    found = [each.comparison for each in judgements if each.comparison is not None]
    inline = [each.found.scenario for each in found if each.place is not None]
    pending = {
        each.found.scenario: None if each.passed else each.found
        for each in found
        if each.place is None
    }
    if inline and not silent:
        text = "accepted by `everyorder review`, not saved, because of expect="
        click.echo(f"{text}: {', '.join(inline)}")
    # A run of some of the scenarios does not decide about the others.
    gone = set(store.saved()).difference(pending) if everything else ()
    names = []
    for name in store.save({**dict.fromkeys(gone), **pending}):
        is_there = (store.root / name).exists()
        names += [name] if is_there else []
        if not silent:
            click.echo(f"{'saved' if is_there else 'deleted'}: {name}")
    return names


def _write(
    store: Store, accepted: Sequence[ReviewChange], judgements: Sequence[Judgement]
) -> dict[str, str]:
    """Write the accepted changes; return "written" or "deleted" by file."""
    to_do = documents(accepted)
    deleting = {store.name(name) for name, text in to_do.items() if text is None}
    found = [each.comparison for each in judgements if each.comparison is not None]
    places = {
        each.found.scenario: each.place for each in found if each.place is not None
    }
    inline = with_sharing(inline_edits(accepted), places)
    touched = store.apply(to_do, inline) if to_do or inline else ()
    return {name: "deleted" if name in deleting else "written" for name in touched}


def _print_written(touched: Mapping[str, str], accepted: int, left: int) -> None:
    """Print what was done."""
    for name, what in touched.items():
        click.echo(f"{what}: {name}")
    deleted = sum(what == "deleted" for what in touched.values())
    counts = f"{plural(len(touched) - deleted, 'file')} written"
    if deleted:
        counts += f", {deleted} deleted"
    click.echo(f"{plural(accepted, 'change')} accepted, {left} left; {counts}")


def decide(
    offered: Sequence[ReviewChange], *, full: bool = False
) -> list[ReviewChange]:
    """Ask the user about each change; return the accepted ones."""
    accepted: list[ReviewChange] = []
    for number, change in enumerate(offered, 1):
        _print_change(change, f"{number}/{len(offered)}", full=full)
        answer = "v"
        while answer == "v":
            answer = click.prompt(
                f"  {CHOICES}",
                type=click.Choice(["a", "s", "v", "A", "q"]),
                show_choices=False,
                prompt_suffix=": ",
            )
            if answer == "v":
                _print_lines(change, full=True)
        if answer == "q":
            break
        if answer == "A":
            return [*accepted, *offered[number - 1 :]]
        if answer == "a":
            accepted.append(change)
    return accepted


def _print_change(change: ReviewChange, number: str, *, full: bool) -> None:
    click.echo(f"\n[{number}] {change.headline()}")
    _print_lines(change, full=full)


def _print_lines(change: ReviewChange, *, full: bool) -> None:
    for line in change.text_lines(whole=full):
        click.secho(f"    {line}", fg={"+": "green", "-": "red"}.get(line[:1]))


def _print_questions(
    offered: Sequence[ReviewChange], *, full: bool, saved: bool
) -> None:
    """Print every change as it would be asked about, and the options that answer."""
    command = f"everyorder review{' --saved' if saved else ''} --accept"
    count = plural(len(offered), "change")
    reason = "" if saved else "not a terminal, so nothing is asked; "
    click.echo(f"{reason}{count} to decide on:")
    for number, change in enumerate(offered, 1):
        _print_change(change, f"{number}/{len(offered)}", full=full)
        click.echo(f"  {command} {change.id}")
    click.echo("\nanswer by one of these, or several --accept:")
    answers = [("all", "every change"), ("ID", "the change with this id, as above")]
    if any(change.only_new for change in offered):
        answers.insert(1, ("new", "what no expect file has yet"))
    answers.append(("SCENARIO", "what belongs to a path or pattern"))
    for answer, meaning in answers:
        click.echo(f"  {command} {answer:<9} {meaning}")


def _names(offered: Sequence[ReviewChange]) -> tuple[str, ...]:
    return tuple(name for change in offered for name in change.scenarios)


def _accepted_part(change: ReviewChange, accept: Sequence[str]) -> ReviewChange:
    """Return the part of a change that these values of `--accept` select."""
    if "all" in accept or ("new" in accept and change.only_new):
        return change
    if change.id in accept:
        return change
    return change.restricted_to(
        {name for name in change.scenarios if any(_fits(name, a) for a in accept)}
    )


def _fits(scenario: str, pattern: str) -> bool:
    """Return True if a path is this one, ends in this name, or matches the pattern."""
    if scenario == pattern or scenario.endswith(f"/{pattern}"):
        return True
    return fnmatchcase(scenario, pattern)


def _check_names(accept: Sequence[str], names: Sequence[str]) -> None:
    """Raise `NotFound` for names to accept that do not exist; ids are checked later."""
    for each in accept:
        if each in WORDS or _ID.fullmatch(each):
            continue
        if not any(_fits(scenario, each) for scenario in names):
            near = nearest(each, WORDS) + nearest(each, names)
            raise NotFound(code="NothingToAccept", wanted=each, near=near)


def _check_ids(
    accept: Sequence[str], offered: Sequence[ReviewChange], names: Sequence[str]
) -> None:
    """Raise `NotFound` for ids of changes that do not exist."""
    ids = {change.id for change in offered}
    for each in accept:
        is_lost = _ID.fullmatch(each) and each not in ids
        if is_lost and not any(_fits(scenario, each) for scenario in names):
            raise NotFound(code="NoSuchChange", wanted=each)


def _as_expected(judgements: Sequence[Judgement]) -> str:
    return plural(sum(each.is_expected for each in judgements), "scenario")
