"""`explore`: make a system of a scenario, explore it, and return a report.

A registry with a separate interpreter (`isolation="spawn"`) is served by
`serve_registry`, the main function of that process.  Its channel replaces standard
input and output: input is not read from then on, and output is written to standard
error.

Rules:
- objects in reference cycles are judged late; if an object proves to be alive only at
  the end, the scenario is explored a second time with frequent collections, which
  reveals the order that keeps it alive;
- if that does not find the order, the leak is reported without one;
- each violation is played again from its text before it is shown (`confirmation.py`);
- a scenario that skips itself, by any of its functions, has no report.
"""

import os
import signal
import sys
from collections.abc import Callable, Hashable, Iterator, MutableMapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar
from weakref import WeakKeyDictionary

from everyorder.harness.base.errors import ExplorationRestart, NotAScenario
from everyorder.harness.engine import (
    Budget,
    Exploration,
    Progress,
    System,
    Violation,
)
from everyorder.harness.engine import explore as explore_system
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.expectations.document import pairs_of
from everyorder.harness.exploration.confirmation import LEAK_WITHOUT_ORDER, confirmed
from everyorder.harness.processes.fork import CAN_FORK, end_with_parent
from everyorder.harness.processes.messages import PipeEnd
from everyorder.harness.processes.watch import Subject
from everyorder.harness.report.verdict import NO_EXPLORATION, Report
from everyorder.harness.scenario.mistakes import check_kind, checks_calls
from everyorder.harness.scenario.normalisers import normalised
from everyorder.harness.scenario.scenario import Scenario
from everyorder.harness.systems.isolation import (
    ForkedCopies,
    IsolatedSystem,
    serve_child,
)
from everyorder.harness.systems.origins import signature_of
from everyorder.harness.systems.outcomes import ScenarioSkipped, skip_reason
from everyorder.harness.systems.registry import RegistrySystem, functions_of

if TYPE_CHECKING:
    from everyorder.harness.systems.dispatcher import DispatcherSystem


T = TypeVar("T")

# Violations that are reported of one scenario: one fault often shows in several places,
# and a fix is checked against all of them.
MOST_VIOLATIONS = 3

# Collecting after every step is expensive, and most leaks show at once.
LEAK_SECONDS = 30.0


def subject_of(scenario: Scenario, root: Path) -> Subject:
    """Return the subject of a scenario, for a report on its crash."""
    steps = tuple(step.text for step in scenario.steps)
    uses = tuple(use.text for use in scenario.uses)
    return Subject(scenario.path, scenario.source, steps, uses, root)


def system_of(scenario: Scenario) -> System:
    """Return the scenario in the form that the engine explores.

    Raises:
        NotAScenario: its `create` asks for fixtures, which only pytest has.
    """
    if scenario.fixtures:
        names = ", ".join(scenario.fixtures)
        raise NotAScenario(
            found=f"create({names}), which asks for fixtures",
            wanted="a run by pytest or `everyorder run`, or a function without "
            "parameters",
        )
    if scenario.create is None:
        return dispatcher_of(scenario)
    if scenario.isolation is not None:
        return IsolatedSystem(scenario)
    return RegistrySystem(scenario, ForkedCopies(scenario) if CAN_FORK else None)


def dispatcher_of(scenario: Scenario) -> "DispatcherSystem":
    """Return the scenario on a dispatcher; only this needs the runtime."""
    from everyorder.harness.systems.dispatcher import DispatcherSystem

    return DispatcherSystem(scenario)


def empty_report(scenario: Scenario) -> Report:
    """Return the texts of a scenario and its operations: a report without results."""
    return Report(
        scenario=scenario.path,
        steps=tuple(step.text for step in scenario.steps),
        uses=tuple(use.text for use in scenario.uses),
        order_dependent=scenario.order_dependent,
        exploration=NO_EXPLORATION,
        digest=scenario.digest,
        pairs=tuple(sorted(scenario.relations.pairs)),
        again=scenario.relations.again,
        ends=scenario.relations.ends,
        expect=scenario.expect,
        place=scenario.place,
        normalisers=tuple(map(str, scenario.normalisers)),
    )


@contextmanager
def closing(system: System) -> Iterator[System]:
    """Close the system at the end of this context, if it can be closed."""
    try:
        yield system
    finally:
        close = getattr(system, "close", None)
        if close is not None:
            close()


def retry(question: Callable[[], T]) -> T:
    """Return the answer to a question about one system; repeat it after restarts.

    Raises:
        ScenarioSkipped: a function of its scenario skipped it.
    """
    while True:
        try:
            return question()
        except ExplorationRestart:
            # It ends: each package is new once, and so is garbage of older objects.
            continue
        except BaseException as error:
            reason = skip_reason(error)
            if reason is None:
                raise
        # Raise outside of `except`, so that the skip is not chained.
        raise ScenarioSkipped(reason=reason)


@checks_calls("explore(Scenario(...)), or in a test its fixture: def test_x(explore)")
def explore(
    scenario: Scenario,
    strategy: str = "auto",
    *,
    budget: Budget | None = None,
    progress: Progress | None = None,
    stop_after: int = MOST_VIOLATIONS,
) -> Report:
    """Explore a scenario and report the result.

    Args:
        scenario: the scenario to explore.
        strategy: `auto`, or strategies joined by `+`; see `harness.engine`.
        budget: the limits in steps and seconds.
        progress: called regularly with (done, planned).
        stop_after: the number of violations to find.

    Raises:
        NotAScenario: `scenario` is something else.
        HarnessError: the scenario cannot be explored (strategy, fingerprint).
        ScenarioSkipped: a step or another function of it skipped it.
    """
    check_kind("the scenario of explore()", scenario, Scenario, "Scenario(...)")
    dispatcher = dispatcher_of(scenario) if scenario.create is None else None
    system = system_of(scenario) if dispatcher is None else dispatcher
    pinned = scenario.order_dependent is not None

    def exploration_within(within: Budget | None, tell: Progress | None) -> Exploration:
        return retry(
            lambda: explore_system(
                system,
                strategy,
                order_dependent=pinned,
                budget=within,
                progress=tell,
                stop_after=stop_after,
            )
        )

    # A thread keeps its modes when its system is dropped.
    with closing(system):
        exploration = exploration_within(budget, progress)
        if dispatcher is not None and not exploration.violations:
            leaks = dispatcher.remaining_leaks()
            if leaks:
                dispatcher.collect_always()
                second = exploration_within(_short_budget(budget), None)
                exploration = (
                    second if second.violations else _with_leak(exploration, leaks)
                )
        report = replace(empty_report(scenario), exploration=exploration)
        report = retry(lambda: confirmed(report, system))
    exploration = report.exploration
    if scenario.create is not None and scenario.isolation is None:
        exploration = _with_leftover(scenario, exploration)
    if scenario.normalisers:
        exploration = _with_normalised_texts(scenario, exploration)
    return replace(report, exploration=exploration)


def _with_normalised_texts(scenario: Scenario, exploration: Exploration) -> Exploration:
    """Return the exploration with the texts that are compared with what is expected.

    Violations keep the texts that were observed.
    """

    def fit(observation: Hashable) -> Hashable:
        return tuple(
            (title, normalised(text, scenario.normalisers))
            for title, text in pairs_of(observation)
        )

    return replace(
        exploration,
        states={state: fit(each) for state, each in exploration.states.items()},
        failures={at: fit(each) for at, each in exploration.failures.items()},
        refusals={at: fit(each) for at, each in exploration.refusals.items()},
    )


# What registries left in this process, by the function that creates them: the scenario
# that showed it, and the violation.
_LEFTOVERS: MutableMapping[object, tuple[Hashable, Violation]] = WeakKeyDictionary()


def _identity(scenario: Scenario) -> Hashable:
    """Return what two scenarios that play the same functions have in common.

    Its texts, which the digest is of, may be those of other functions, too.
    """
    return scenario.digest, tuple(map(signature_of, functions_of(scenario)))


def _with_leftover(scenario: Scenario, exploration: Exploration) -> Exploration:
    """Return the exploration with what an earlier one of the process left behind.

    A registry whose first performances left something for ever looks right when it is
    explored again in this process.
    """
    create = scenario.create
    for violation in exploration.violations:
        if violation.kind == "not fresh":
            with suppress(TypeError):  # it has no weak reference, or no hash
                _LEFTOVERS[create] = _identity(scenario), violation
            return exploration
    try:
        shown_by, earlier = _LEFTOVERS.get(create, (None, None))
    except TypeError:
        return exploration
    if earlier is None or exploration.violations:
        return exploration
    if shown_by == _identity(scenario):
        return replace(exploration, violations=(earlier,), proven=False, vacuous=())
    path = next(iter(earlier.paths), "something")
    text = f"another scenario of this process left {path}; explore them one by one"
    caveats = (*exploration.caveats, Caveat("outside", text))
    return replace(exploration, caveats=caveats, proven=False)


def _short_budget(budget: Budget | None) -> Budget | None:
    """Return the budget of a second exploration: the same steps, in less time.

    The steps must be the same, because they decide the strategy.
    """
    if budget is None:
        return Budget(seconds=LEAK_SECONDS)
    return replace(budget, seconds=min(budget.seconds or LEAK_SECONDS, LEAK_SECONDS))


def _with_leak(exploration: Exploration, leaks: Sequence[Hashable]) -> Exploration:
    """Return the exploration with the leaks as a broken law."""
    violation = Violation("law", (), (), (*leaks, LEAK_WITHOUT_ORDER), ())
    return replace(exploration, violations=(violation,))


def serve_registry(
    files: Sequence[tuple[str, str]], digest: str, name: str, parent: int
) -> None:
    """Serve the scenario of that digest from one of the modules; never returns."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    end_with_parent(parent)
    channel = PipeEnd(os.dup(0), os.dup(1))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    scenario = _scenario_of(files, digest, name)
    names = " and ".join(file for file, _ in files)
    problem = f"isolation='spawn' for a scenario that {names} lacks"
    wanted = "a scenario that is a variable of its module, or 'fork'"
    if scenario is not None and not scenario.fixtures:
        serve_child(scenario, channel)
    elif scenario is not None:
        problem = f"isolation='spawn' with fixtures ({', '.join(scenario.fixtures)})"
        wanted = "isolation='fork'"
    with suppress(EOFError, OSError):
        channel.receive()
        channel.send(("error", NotAScenario(found=problem, wanted=wanted)))


def _scenario_of(
    files: Sequence[tuple[str, str]], digest: str, name: str
) -> Scenario | None:
    """Return the scenario; that of the name if several have the digest."""
    scenarios = [
        value.named(value.name or variable)
        for file, module in files
        for variable, value in vars(_import_file(file, module)).items()
        if issubclass(type(value), Scenario)
        and value.digest == digest
        and value.isolation == "spawn"
    ]
    scenarios.sort(key=lambda each: each.name != name)
    return scenarios[0] if scenarios else None


def _import_file(file: str, name: str) -> ModuleType:
    """Import a file under the name that its module has in the parent."""
    for package in (name[:end] for end, letter in enumerate(name) if letter == "."):
        try:
            import_module(package)
        except ImportError:
            # As in pytest: a folder that is not a package is an empty module.
            sys.modules[package] = ModuleType(package)
    spec = spec_from_file_location(name, file)
    assert spec is not None, "it is a Python file"
    assert spec.loader is not None, "it is a Python file"
    module = module_from_spec(spec)
    if name != "__main__":
        sys.modules[name] = module
    spec.loader.exec_module(module)
    return module
