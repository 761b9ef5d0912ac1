"""The outcomes of one item: sizes, exceptions with their operations, lost files."""

import pytest

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.collection import here
from everyorder.harness.collection.recorder import Recorder
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Outcome,
    Selection,
    TaskResult,
    size_of,
)
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, progress
from everyorder.harness.pytest_plugin.session import Options
from everyorder.harness.report.verdict import Report, Unexplored
from everyorder.harness.scenario import Scenario
from tests.cli.conftest import Project, fresh_modules
from tests.coded import code


def outcome(
    project: Project, path: str, effort: ExploreOptions | None = None
) -> Outcome:
    """The outcome of the one scenario of a path, explored in this process."""
    effort = effort or ExploreOptions()
    selection = Selection((path,))
    found: list[Outcome] = []

    def over(index: int, result: TaskResult) -> bool:
        found.extend(result.outcomes)
        return True

    with fresh_modules(project.root):
        tasks = here.listing_here(selection, effort).tasks
        here.perform_here(
            tasks,
            selection,
            effort,
            begun=lambda index: None,
            advanced=lambda *counts: None,
            over=over,
        )
    [only] = found
    return only


def test_budgets() -> None:
    assert ExploreOptions().budget is None
    assert ExploreOptions(seconds=2.0).budget == Budget(DEFAULT_BUDGET.steps, 2.0)
    assert ExploreOptions("walk:1", seconds=2.0).budget == Budget(None, 2.0)
    assert ExploreOptions(steps=7).budget == Budget(7, None)
    assert not ExploreOptions(compares=True).is_custom
    assert ExploreOptions("walk:1").is_custom
    assert ExploreOptions(seconds=1.0).is_custom


def test_options_of_the_command_come_before_those_of_the_ini_file(
    project: Project,
) -> None:
    ini = Options(strategy="walk:1", budget=3.0)
    for effort, strategy, budget in (
        (ExploreOptions(), "walk:1", Budget(DEFAULT_BUDGET.steps, 3.0)),
        (ExploreOptions("graph"), "graph", Budget(DEFAULT_BUDGET.steps, 3.0)),
        (ExploreOptions(steps=7), "walk:1", Budget(7)),
    ):
        recorder = Recorder(project.root, ini, effort, in_child=False)
        assert (recorder.strategy, recorder.budget) == (strategy, budget)


def test_sizes_are_known_up_front(project: Project) -> None:
    effort = ExploreOptions("walk:2+histories:3")
    with fresh_modules(project.root):
        tasks = here.listing_here(Selection(), effort).tasks
    assert len(tasks) == 2
    for task in tasks:
        report = outcome(project, task.path, effort)
        assert isinstance(report, Report)
        assert task.planned == report.exploration.planned


@pytest.mark.usefixtures("last")
def test_the_size_of_a_dispatcher_scenario_is_that_of_its_proof() -> None:
    from everyorder.harness.scenario import define, impl

    scenario = Scenario(
        define("demo::foo(Tensor x) -> Tensor"), impl("demo::foo", len, "CPU")
    )
    assert size_of(scenario, "auto", None) > size_of(scenario, "graph", None)
    with pytest.raises(BadStrategy, check=code("UnknownStrategy")):
        size_of(scenario, "best", None)


PICKLES = """
import pickle
from everyorder.harness.scenario import Scenario, step
class Item: pass
def add(items):
    items.append(pickle.dumps(Item()))
    return items.pop
pickles = Scenario(
    step('add', add), create=list, observe=lambda items: str(len(items)), isolation={}
)
"""


@pytest.mark.parametrize("mode", ["importlib", "prepend", "append"])
@pytest.mark.parametrize("isolation", [None, "fork", "spawn"])
def test_what_pickles_by_name_finds_the_module_of_its_scenario(
    project: Project, isolation: str | None, mode: str
) -> None:
    project.write("pytest.ini", f"[pytest]\naddopts = --import-mode={mode}\n")
    # In folders that are no packages, and that nobody has imported.
    project.write("checks/inner/test_pickles.py", PICKLES.format(repr(isolation)))
    report = outcome(project, "checks/inner/test_pickles.py")
    assert isinstance(report, Report), report
    assert (report.verdict, report.exploration.violations) == ("proven", ())


def test_a_separate_interpreter_has_no_fixtures(project: Project) -> None:
    text = PICKLES.format("'spawn'").replace(
        "create=list", "create=lambda kind: kind()"
    )
    fixture = "import pytest\n@pytest.fixture\ndef kind(): return list\n"
    project.write("tests/test_pickles.py", fixture + text)
    refused = outcome(project, "tests/test_pickles.py")
    assert isinstance(refused, Unexplored)
    assert "isolation='spawn' with fixtures (kind)" in refused.reason


def test_what_the_engine_refuses_is_an_outcome(project: Project) -> None:
    project.scenarios(
        "lists",
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add\n"
        "lists = Scenario(add('a'), create=list, observe=list)\n",
    )
    refused = outcome(project, "lists")
    assert isinstance(refused, Unexplored)
    assert (refused.where, refused.verdict) == (
        "tests/scenarios/test_lists.py:3",
        "failed",
    )
    assert refused.reason.startswith("a scenario cannot use list, returned by observe")


def test_what_a_scenario_raises_is_an_outcome(project: Project) -> None:
    project.scenarios(
        "raises",
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add, shown\n"
        "def leave():\n    raise SystemExit\n"
        "raises = Scenario(add('a'), create=leave, observe=shown)\n",
    )
    assert outcome(project, "raises") == Unexplored(
        "scenarios/test_raises/raises", "tests/scenarios/test_raises.py:4", "SystemExit"
    )


LEAVES = """
from everyorder.harness.scenario import Scenario, step, use
from tests.scenarios.test_sound import add, shown


def leave(*_):
    raise SystemExit(3)


def add_b(registry):
    registry.append("b")
    return leave


ends = Scenario(step("add_b", add_b), create=list, observe=shown)
asks = Scenario(
    add("a"), uses=[use("ask(everything)", leave)], create=list, observe=shown
)
looks = Scenario(add("a"), create=list, observe=leave)
makes = Scenario(add("a"), create=leave, observe=shown)
"""


@pytest.mark.parametrize(
    ("name", "operation"),
    [
        ("ends", "step_1.close()"),
        ("asks", "ask(everything)"),
        ("looks", "observe()"),
        ("makes", "create()"),
    ],
)
def test_what_leaves_by_an_exception_names_its_operation(
    project: Project, name: str, operation: str
) -> None:
    project.scenarios("leaves", LEAVES)
    cells = memoryview(bytearray(progress.BYTES)).cast("Q")
    with progress.watched(cells):
        left = outcome(project, f"test_leaves/{name}", ExploreOptions("graph"))
    assert isinstance(left, Unexplored)
    assert (left.verdict, left.reason) == ("failed", "SystemExit: 3")
    assert left.operation == operation
    assert f"in or behind\n    {operation}" in left.render()
    assert left.history[:1] == (() if name == "makes" else ("create()",))


NOISY = """
import logging, os, sys, warnings
from everyorder.harness.scenario import Scenario, step


def add(registry):
    registry.append("a")
    logging.getLogger("noisy").warning("added")
    warnings.warn("added")
    print("added")
    return registry.pop


noisy = Scenario(step("add", add), create=list, observe=str)
"""


def test_logs_warnings_and_output_are_no_state(
    project: Project,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.scenarios("noisy", NOISY)
    # Those of the project's tests raise.
    monkeypatch.setattr("warnings.filters", [])
    report = outcome(project, "noisy")
    assert isinstance(report, Report)
    assert report.verdict == "proven"
    assert not [each for each in report.exploration.caveats if "handlers" in str(each)]
    assert capfd.readouterr().err.count("UserWarning: added") == 1
