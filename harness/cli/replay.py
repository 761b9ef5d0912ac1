"""`everyorder replay` and `everyorder show`: inspect a history or a state.

`replay` plays the same history twice: once with a look after every operation, to show
the changes, and once with a look at the end only, because looking may hide the fault.
The verdict is that of the second play. It is compared with the canonical histories of
the same steps, which are determined first, as in an exploration: the two sides are
those that an exploration shows.

`show` does steps in the order of its argument, on a fresh system, and compares nothing.

Both run the test of the scenario up to its exploration, so that its fixtures are set
up; of a test that explores several scenarios, the earlier ones are explored.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, TypeVar

import click
import pytest

from everyorder.harness.base.columns import WIDTH, wrap_words
from everyorder.harness.base.errors import CannotReplay, HarnessError, NotFound
from everyorder.harness.cli.command import (
    FAILED,
    OK,
    json_option,
    json_output,
    paths_argument,
)
from everyorder.harness.cli.run import effort_of
from everyorder.harness.cli.settings import default_paths
from everyorder.harness.collection.here import at_scenario
from everyorder.harness.collection.listing import items_of, listing_of
from everyorder.harness.collection.selection import nearest
from everyorder.harness.collection.session import CommandSession
from everyorder.harness.collection.tasks import ExploreOptions, Selection, Task
from everyorder.harness.engine import (
    Action,
    Budget,
    History,
    Kind,
    State,
    System,
    Violation,
    decode,
    explore,
    fits,
    ordering_of,
    scenario_tag,
    tag_of,
)
from everyorder.harness.engine import replay as play
from everyorder.harness.engine.oracle import Judge
from everyorder.harness.engine.protocol import operations_of
from everyorder.harness.engine.reference import canonical_histories
from everyorder.harness.engine.session import ExplorationSession, Meter
from everyorder.harness.exploration.confirmation import raised_errors
from everyorder.harness.exploration.explore_scenario import (
    MOST_VIOLATIONS,
    closing,
    empty_report,
    retry,
    system_of,
)
from everyorder.harness.exploration.paths import is_below
from everyorder.harness.pytest_plugin.plugin import ScenarioItem
from everyorder.harness.report import sections
from everyorder.harness.report.evidence import explanation
from everyorder.harness.report.failure import UNKNOWN_SIDES, headline
from everyorder.harness.report.observation import difference, readable_lines, whole_text
from everyorder.harness.report.raised import raised_lines
from everyorder.harness.report.text import plural
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.systems.outcomes import ScenarioSkipped
from everyorder.harness.systems.torch import TEXTS, TorchSystem, check_installed

if TYPE_CHECKING:
    from everyorder.harness.systems.dispatcher import DispatcherSystem

T = TypeVar("T")

# A step that fills a whole table has nothing new in its other hundred lines.
MOST_LINES = 24

# Canonical histories of a short history are determined at once, unless each operation
# is slow; without them, the plain order of the same steps is compared.
MOST_SECONDS = 20.0

# One kind of each family that a judge checks.
FAMILIES: tuple[Kind, ...] = ("law", "leak", "undo", "error", "order")


def _answer(texts: Report, question: Callable[[], T]) -> T:
    """Return the answer to a question about the system of a scenario.

    Raises:
        CannotReplay: the scenario skips itself.
        Exception: every exception of the question.
    """
    try:
        return retry(question)
    except ScenarioSkipped as error:
        reason = error.reason
    raise CannotReplay(code="SkipsItself", scenario=texts.scenario, reason=reason)


@click.command(
    epilog="Exit codes: 0 the history shows nothing wrong; 1 it does; 2 bad arguments."
)
@click.argument("replay_id", metavar="ID")
@paths_argument
@click.option(
    "--strategy",
    default="auto",
    show_default=True,
    help="For an id with a dot: its history is too long for an id, and is found by "
    "exploring again.",
)
@json_option
def replay(
    replay_id: str, paths: tuple[str, ...], strategy: str, as_json: bool
) -> None:
    """Play the history of a replay id, operation by operation.

    An id holds the history, and a digest of the scenario's steps and uses, by which the
    scenario is found; name PATHS where several scenarios have the same ones. Each
    operation is printed with the steps that are active after it and with what it
    changed. Then the history is played without looking in between, and compared with
    the shortest history to the same active steps.

    \b
    Examples:
      everyorder replay 145mx-2tf
      everyorder replay 145mx-2tf scenarios/test_composites/two_kernels
    """
    effort = effort_of(strategy, None, None)

    def play_on(texts: Report, make: Callable[[], System]) -> bool:
        # One system for all plays: torch's registry exists only once in a process.
        with closing(make()) as system:
            history = _answer(texts, lambda: _history(replay_id, texts, system, effort))
            before, watched = _answer(
                texts, lambda: _observed_play(texts, system, history)
            )
            played = list(_played(texts, history, before, watched))
            if not as_json:
                operations = plural(len(history), "operation")
                click.echo(f"{texts.scenario}: {operations} from a fresh system\n")
                for number, each in enumerate(played, 1):
                    click.echo("\n".join(each.lines(number)))
                click.echo()
            lines = _answer(texts, lambda: verdict(texts, system, history))
        if as_json:
            operations_data = [asdict(each) for each in played]
            data = {"scenario": texts.scenario, "operations": operations_data}
            emit({**data, "wrong": lines})
        else:
            click.echo("\n".join(lines or ["nothing is wrong with this history"]))
        return not lines

    with json_output(as_json) as emit:
        if scenario_tag(TEXTS.digest) == tag_of(replay_id):
            check_installed()
            is_fine = play_on(TEXTS, TorchSystem)
        else:
            is_fine = _at_scenario_of_id(replay_id, paths, play_on)
    raise SystemExit(OK if is_fine else FAILED)


def verdict(texts: Report, system: System, history: History) -> list[str]:
    """Return the faults of a history, as lines; empty without any."""
    system.reset()
    printed = system.settled and system.state(()) is not None
    ordering = ordering_of(system, order_dependent=texts.ordering.total)
    total = ordering.total
    played, again = (play(system, history, order_dependent=total) for _ in range(2))
    if played != again:
        return [
            "wrong: nondeterminism: the same history, played twice, gave two results"
        ]
    meter = Meter(Budget(seconds=MOST_SECONDS), None)
    session = ExplorationSession(
        system,
        operations_of(system),
        meter,
        ordering=ordering,
        stop_after=MOST_VIOLATIONS,
    )
    # The end of the history is compared with these states; the judge uses the same.
    states = {action.state for action in played.actions[-3:]}
    canonical = canonical_histories(session, states)
    judge = Judge(system, canonical, ordering=ordering, proving=printed)
    for kind in FAMILIES:
        judge.extend(len(history))
        fault = judge.inspect(history, played, kind)
        if fault is not None:
            violation = Violation(
                fault.kind,
                fault.state,
                fault.expected,
                fault.found,
                history,
                hidden=fault.hidden,
            )
            violation = replace(
                violation, raised=raised_errors(system, violation, played)
            )
            head = f"wrong, without observing in between: {headline(texts, violation)}"
            return [
                *wrap_words(head, WIDTH),
                *explanation(violation, sides=UNKNOWN_SIDES),
                *raised_lines(texts, violation),
            ]
    return []


def _at_scenario_of_id(
    replay_id: str,
    paths: tuple[str, ...],
    visit: Callable[[Report, Callable[[], System]], T],
) -> T:
    """Call `visit` with the texts of an id, and a function that creates its system.

    Raises:
        NotFound: no scenario, or more than one, belongs to the id.
    """
    tag = tag_of(replay_id)
    count = 0

    def belongs(scenario: Scenario) -> bool:
        return scenario_tag(scenario.digest) == tag

    def candidates(session: CommandSession) -> list[pytest.Item]:
        nonlocal count
        items = items_of(session)
        tasks = [task for task in listing_of(session).tasks if task.node in items]
        count = len(tasks)
        fitting = [
            task
            for task in tasks
            if isinstance(item := items[task.node], ScenarioItem)
            and belongs(item.scenario)
        ]
        if len(fitting) > 1:
            found = tuple(task.path for task in fitting)
            raise NotFound(code="SeveralScenarios", wanted=replay_id, found=found)
        tests = [task for task in tasks if task.is_test]
        return [items[task.node] for task in fitting or tests]

    def visited(scenario: Scenario) -> T:
        return visit(empty_report(scenario), partial(system_of, scenario))

    results = at_scenario(
        Selection(paths, default_paths()), candidates, belongs, visited
    )
    if results:
        return results[0]
    raise NotFound(
        code="NoHistory",
        wanted=replay_id,
        reason=(
            f"none of {plural(count, 'scenario')} belongs to it; was its "
            "scenario changed since, or is it in a file that is not among the PATHS?"
        ),
    )


def _history(
    replay_id: str, texts: Report, system: System, effort: ExploreOptions
) -> History:
    read = decode(replay_id, texts.operations)
    if read.history is not None:
        return read.history
    pinned = texts.ordering.total
    found = explore(system, effort.strategy, order_dependent=pinned)
    for violation in found.violations:
        history = violation.shown
        if fits(replay_id, texts.digest, texts.operations, history):
            return history
    raise NotFound(
        code="NoHistory",
        wanted=replay_id,
        reason=(
            "the id is too short for its history, and exploring by "
            f"{effort.strategy!r} did not find it again; name the --strategy that "
            "found it"
        ),
    )


def _observed_play(
    texts: Report, system: System, history: History
) -> tuple[tuple[Action, ...], tuple[Action, ...]]:
    """Return the actions of the empty history, and of this one with looks."""
    pinned = texts.ordering.total
    before = play(system, (), order_dependent=pinned).actions
    return before, play(system, history, order_dependent=pinned, watch=True).actions


@dataclass(frozen=True, slots=True)
class _PlayedOperation:
    """An operation of a history, and what it changed.

    `answer` is the text of a failing step or of a use; `changes` are lines by titles.
    """

    operation: str
    where: str
    fails: bool = False
    answer: str | None = None
    changes: Mapping[str, list[str]] = field(default_factory=dict)

    def lines(self, number: int) -> Iterator[str]:
        """Yield the operation as it is printed."""
        yield f"{number:>3}  {self.operation}"
        if self.answer is None:
            yield f"     at {self.where}"
        else:
            what = "fails" if self.fails else "answers"
            answer = readable_lines(self.answer.split("\n"))
            indented = "\n          ".join(answer)
            yield f"     at {self.where}; {what}: {indented}"
        for title, changed in self.changes.items():
            yield f"       {title or 'observed'}:"
            for line in readable_lines(changed, MOST_LINES):
                yield f"       {line}"


def _played(
    texts: Report,
    history: History,
    before: tuple[Action, ...],
    watched: tuple[Action, ...],
) -> Iterator[_PlayedOperation]:
    """Yield every operation, the state after it, and the observed changes."""
    observed = dict(sections(before[-1].value)) if before else {}
    active: set[int] = set()
    for number, operation in enumerate(history, 1):
        played = watched[2 * number - 2 : 2 * number - 1]
        look = watched[2 * number - 1 :]
        result = _PlayedOperation(texts.line(operation, operation in active), "")
        for action in played:
            active = set(action.state)
            result = replace(result, where=texts.state_name(action.state))
            if action.kind in ("failing", "use", "end"):
                answer = whole_text(action.value)
                fails = action.kind == "failing"
                result = replace(result, fails=fails, answer=answer)
        for action in look[:1]:
            now = dict(sections(action.value))
            titles = dict.fromkeys((*observed, *now))
            changes = {
                title: _changed_lines(observed.get(title, ""), now.get(title, ""))
                for title in titles
            }
            changes = {title: lines for title, lines in changes.items() if lines}
            result = replace(result, changes=changes)
            observed = now
        yield result


def _changed_lines(was: str, now: str) -> list[str]:
    if was == now:
        return []
    return [line for line in difference(was, now) if line[:1] in "+-"]


@click.command()
@click.argument("name", metavar="SCENARIO|OPERATOR")
@click.option(
    "--state",
    metavar="STEPS",
    help="Steps to do, by their numbers from 1, in this order, as in 3,1. Default: "
    "all.",
)
@click.option(
    "--table", is_flag=True, help="Print the dispatch table of each operator."
)
@click.option(
    "--trace",
    is_flag=True,
    help="Print which kernels a call runs, for each kind of tensor.",
)
@json_option
def show(name: str, state: str | None, table: bool, trace: bool, as_json: bool) -> None:
    """Print what is observed with some steps of a scenario active.

    SCENARIO is a scenario's path or a piece of it, or FILE::NAME; OPERATOR (with ::)
    is one of the default dispatcher.

    \b
    Examples:
      everyorder show two_kernels
      everyorder show two_kernels --state 3,1 --trace
      everyorder show tests/scenarios/test_composites.py::two_kernels --table
      everyorder show core::add
    """
    if "::" in name and not name.partition("::")[0].endswith(".py"):
        if state is not None or trace:
            raise click.UsageError("--state and --trace need a scenario")
        with json_output(as_json) as emit:
            texts = _operator_texts(name, table)
            if as_json:
                emit({"observed": dict(texts)})
        if not as_json:
            _print_texts(texts)
        return

    def show_state(scenario: Scenario) -> None:
        texts = empty_report(scenario)
        selected = _state(state, len(texts.steps))
        with closing(system_of(scenario)) as system:
            # Printed at the end: the question may have to be asked again.
            lines, handles = _answer(texts, lambda: _do_steps(texts, system, selected))
            if not as_json:
                click.echo(texts.scenario)
                for number, text in enumerate(texts.steps, 1):
                    click.echo(f"{number:>4}  {text}")
                click.echo("\n".join(("", *lines, "")))
            if table or trace:
                shown = _inside_texts(scenario, system, table=table, trace=trace)
            else:
                shown = list(sections(_answer(texts, system.observe)))
            if as_json:
                data = {"scenario": texts.scenario, "steps": list(texts.steps)}
                emit({**data, "done": lines, "observed": dict(shown)})
            else:
                _print_texts(shown)
            for step in reversed(list(handles)):
                handle = handles.pop(step)
                _answer(texts, partial(system.undo, step, handle))

    def chooses(scenario: Scenario) -> bool:
        # A test may explore several scenarios; its own path names the first one.
        return (
            not path_of_test
            or not is_below(name, path_of_test)
            or scenario.path == name
        )

    path_of_test = ""

    def candidates(session: CommandSession) -> list[pytest.Item]:
        nonlocal path_of_test
        task = _task(name, session)
        path_of_test = task.path if task.is_test and task.path != name else ""
        return [items_of(session)[task.node]]

    selection = Selection((name,), default_paths())
    with json_output(as_json) as emit:
        at_scenario(selection, candidates, chooses, show_state)


def _inside_texts(
    scenario: Scenario, system: System, *, table: bool, trace: bool
) -> list[tuple[str, str]]:
    """Return the tables and the traces, which only a dispatcher has."""
    from everyorder.harness.systems.dispatcher import DispatcherSystem

    if not isinstance(system, DispatcherSystem):
        option = "--table" if table else "--trace"
        raise CannotReplay(code="NotADispatcher", scenario=scenario.path, option=option)
    texts: list[tuple[str, str]] = []
    if table:
        texts += (
            (f"table of {operator}", system.dispatcher.dump_table(operator))
            for operator in scenario.operators
            if system.dispatcher.find_op(operator) is not None
        )
    if trace:
        texts += _traces(scenario, system)
    return texts


def _task(name: str, session: CommandSession) -> Task:
    """Return the one task of that name.

    Raises:
        NotFound: there is none, or more than one.
    """
    listing = listing_of(session)
    if not listing.tasks:
        reasons = [f"{each.where}: {each.reason}" for each in listing.broken]
        reasons += [f"{source}: {reason}" for source, reason in listing.skipped]
        raise NotFound(code="NotLoaded", wanted=name, reasons=tuple(reasons))
    if len(listing.tasks) > 1:
        raise NotFound(code="SeveralScenarios", wanted=name, found=listing.paths)
    return listing.tasks[0]


def _state(text: str | None, steps: int) -> State:
    if text is None:
        return tuple(range(steps))
    parts = [part.strip() for part in text.strip("{} ").split(",")]
    numbers = [part for part in parts if part]
    if any(not part.isascii() or not part.isdigit() for part in numbers):
        raise CannotReplay(code="BadState", text=text, steps=steps)
    state = tuple(int(part) - 1 for part in numbers)
    if len(set(state)) < len(state) or not all(0 <= step < steps for step in state):
        raise CannotReplay(code="BadState", text=text, steps=steps)
    return state


def _do_steps(
    texts: Report, system: System, state: State
) -> tuple[list[str], dict[int, object]]:
    """Do the steps; return a text for each, and the handles of those that succeeded."""
    handles: dict[int, object] = {}
    lines: list[str] = []
    system.reset()
    for step in state:
        lines.append(texts.line(step))
        try:
            handles[step] = system.do(step)
        except HarnessError:
            raise
        except Exception as error:
            lines += (
                f"    {title or 'fails'}: {text}"
                for title, text in sections(system.failure(error))
            )
            continue
        ended = sorted(system.relations.ends.get(step, frozenset()) & handles.keys())
        if ended:
            dropped = [handles.pop(each) for each in ended]
            system.release(dropped, len(handles))
            lines += (f"    ends {texts.steps[each]}" for each in ended)
    return lines, handles


def _print_texts(texts: Sequence[tuple[str, str]]) -> None:
    for title, text in texts:
        click.echo(f"-- {title or 'observed'}")
        click.echo(text if text.endswith("\n") else f"{text}\n", nl=False)
        click.echo()


def _traces(scenario: Scenario, system: "DispatcherSystem") -> list[tuple[str, str]]:
    """Return the answer of every probe's call, and its trace, indented by nesting."""
    from everyorder.harness.scenario import PROBES, call

    kinds = tuple(PROBES) if scenario.probes is None else scenario.probes
    dispatcher = system.dispatcher
    traces = []
    for operator in scenario.operators:
        for kind in kinds:
            with dispatcher.trace() as lines:
                result = call(operator, kind).perform(dispatcher)
            text = "".join(f"  {line}\n" for line in lines)
            traces.append((f"call {operator} with {kind}", f"{result}\n{text}"))
    return traces


def _operator_texts(name: str, table: bool) -> list[tuple[str, str]]:
    """Return the state of an operator of the default dispatcher."""
    from everyorder.runtime.dispatch import default_dispatcher

    if find_spec("everyorder.runtime.operators") is not None:
        from importlib import import_module

        import_module("everyorder.runtime.operators")
    dispatcher = default_dispatcher()
    if dispatcher.find_op(name) is None:
        near = nearest(name, dispatcher.op_names())
        raise NotFound(code="UnknownOperator", wanted=name, near=near)
    texts = [("state", dispatcher.dump_state(name))]
    if table:
        texts.append(("table", dispatcher.dump_table(name)))
    return texts
