"""`everyorder show`: what is observed with some steps of a scenario active.

True only here: a single state, looked at by hand.  The steps are done in the order in
which they are given, on a fresh system, and nothing is compared.
"""

from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click

from harness.catalogue import Entry, load, nearest
from harness.cli.errors import (
    BadState,
    NotADispatcher,
    NotLoaded,
    SeveralScenarios,
    UnknownOperator,
)
from harness.cli.subject import Subject, subject_of
from harness.engine import State, System
from harness.errors import HarnessError
from harness.report import sections
from harness.scenario.scenario import Scenario

if TYPE_CHECKING:
    from harness.systems.dispatcher import DispatcherSystem


@click.command()
@click.argument("name", metavar="SCENARIO|OPERATOR")
@click.option(
    "--state",
    metavar="STEPS",
    help="Numbers from 1, in the order to do them in, as in 3,1. Default: all.",
)
@click.option("--table", is_flag=True, help="The whole live table of each operator.")
@click.option("--trace", is_flag=True, help="Which kernels each probe's call runs.")
def show(name: str, state: str | None, table: bool, trace: bool) -> None:
    """Print what is observed with some steps of a scenario active.

    SCENARIO is a scenario's path or a piece of it, or FILE::NAME; OPERATOR (with ::)
    is one of the default dispatcher.

    \b
    everyorder show two_kernels
    everyorder show two_kernels --state 3,1 --trace
    everyorder show tests/scenarios/test_composites.py::two_kernels --table
    everyorder show core::add
    """
    if "::" in name and not name.partition("::")[0].endswith(".py"):
        if state is not None or trace:
            raise click.UsageError("--state and --trace need a scenario")
        _show_operator(name, table)
        return
    entry = _entry(name)
    subject = subject_of(entry.scenario)
    wanted = _state(state, len(subject.texts.steps))
    with subject.opened() as system:
        # Told when it is over: it may have to begin again.
        lines, held = subject.asked(lambda: _play(subject, system, wanted))
        click.echo(subject.texts.scenario)
        for number, text in enumerate(subject.texts.steps, 1):
            click.echo(f"{number:>4}  {text}")
        click.echo("\n".join(("", *lines, "")))
        if table or trace:
            _show_inside(entry.scenario, system, table=table, trace=trace)
        else:
            _tell(sections(subject.asked(system.observe)))
        for step in reversed(list(held)):
            handle = held.pop(step)
            subject.asked(partial(system.undo, step, handle))


def _show_inside(
    scenario: Scenario, system: System, *, table: bool, trace: bool
) -> None:
    """Print what only a dispatcher has."""
    from harness.systems.dispatcher import DispatcherSystem

    if not isinstance(system, DispatcherSystem):
        option = "--table" if table else "--trace"
        raise NotADispatcher(scenario=scenario.path, option=option)
    if table:
        _tell(
            (f"table of {operator}", system.dispatcher.dump_table(operator))
            for operator in scenario.operators
            if system.dispatcher.find_op(operator) is not None
        )
    if trace:
        _tell(_traces(scenario, system))


def _entry(name: str) -> Entry:
    catalogue = load((name,))
    found = catalogue.entries
    if not found:
        reasons = [f"{each.where}: {each.reason}" for each in catalogue.broken]
        reasons += [f"{each.source}: {each.reason}" for each in catalogue.skipped]
        raise NotLoaded(wanted=name, reasons=tuple(reasons))
    if len(found) > 1:
        paths = tuple(entry.scenario.path for entry in found)
        raise SeveralScenarios(wanted=name, found=paths)
    return found[0]


def _state(text: str | None, steps: int) -> State:
    if text is None:
        return tuple(range(steps))
    parts = [part.strip() for part in text.strip("{} ").split(",")]
    numbers = [part for part in parts if part]
    if any(not part.isascii() or not part.isdigit() for part in numbers):
        raise BadState(text=text, steps=steps)
    state = tuple(int(part) - 1 for part in numbers)
    if len(set(state)) < len(state) or not all(0 <= step < steps for step in state):
        raise BadState(text=text, steps=steps)
    return state


def _play(
    subject: Subject, system: System, state: State
) -> tuple[list[str], dict[int, object]]:
    """Do the steps; a text for each, and the handles of those that succeeded."""
    held: dict[int, object] = {}
    lines: list[str] = []
    system.reset()
    for step in state:
        lines.append(subject.texts.line(step))
        try:
            held[step] = system.do(step)
        except HarnessError:
            raise
        except Exception as error:
            lines += (
                f"    {title or 'fails'}: {text}"
                for title, text in sections(system.failure(error))
            )
    return lines, held


def _tell(texts: Any) -> None:
    for title, text in texts:
        click.echo(f"-- {title or 'observed'}")
        click.echo(text if text.endswith("\n") else f"{text}\n", nl=False)
        click.echo()


def _traces(scenario: Scenario, system: "DispatcherSystem") -> list[tuple[str, str]]:
    """Every probe's call: its answer, then its trace, indented by nesting."""
    from harness.scenario import PROBES, call

    kinds = tuple(PROBES) if scenario.probes is None else scenario.probes
    dispatcher = system.dispatcher
    found = []
    for operator in scenario.operators:
        for kind in kinds:
            with dispatcher.trace() as lines:
                result = call(operator, kind).perform(dispatcher)
            text = "".join(f"  {line}\n" for line in lines)
            found.append((f"call {operator} with {kind}", f"{result}\n{text}"))
    return found


def _show_operator(name: str, table: bool) -> None:
    from runtime.dispatch import default_dispatcher

    if find_spec("runtime.operators") is not None:
        from importlib import import_module

        import_module("runtime.operators")
    dispatcher = default_dispatcher()
    if dispatcher.find_op(name) is None:
        raise UnknownOperator(name=name, near=nearest(name, dispatcher.op_names()))
    texts = [("state", dispatcher.dump_state(name))]
    if table:
        texts.append(("table", dispatcher.dump_table(name)))
    _tell(texts)
