import sys
from types import ModuleType

import pytest

from everyorder.harness.base.errors import BadStrategy
from everyorder.harness.cli.task import (
    ExploreOptions,
    Task,
    explore_entry,
    perform,
    size_of,
    task_of,
)
from everyorder.harness.engine import DEFAULT_BUDGET, Budget, progress
from everyorder.harness.exploration.catalogue import load
from everyorder.harness.report.verdict import Report, Unexplored
from everyorder.harness.scenario import Scenario
from tests.cli.conftest import Project
from tests.coded import code


def test_budgets() -> None:
    assert ExploreOptions().budget is None
    assert ExploreOptions(seconds=2.0).budget == Budget(DEFAULT_BUDGET.steps, 2.0)
    assert ExploreOptions("walk:1", seconds=2.0).budget == Budget(None, 2.0)
    assert ExploreOptions(steps=7).budget == Budget(7, None)
    assert not ExploreOptions().is_custom
    assert ExploreOptions("walk:1").is_custom
    assert ExploreOptions(seconds=1.0).is_custom


def test_sizes_are_known_up_front(project: Project) -> None:
    for entry in load().entries:
        effort = ExploreOptions("walk:2+histories:3")
        report = explore_entry(entry, effort)
        assert isinstance(report, Report)
        assert size_of(entry.scenario, effort) == report.exploration.planned
        assert size_of(entry.scenario, ExploreOptions()) > 0


@pytest.mark.usefixtures("last")
def test_the_size_of_a_dispatcher_scenario_is_that_of_its_proof() -> None:
    from everyorder.harness.scenario import define, impl

    scenario = Scenario(
        define("demo::foo(Tensor x) -> Tensor"), impl("demo::foo", len, "CPU")
    )
    assert size_of(scenario, ExploreOptions()) > size_of(
        scenario, ExploreOptions("graph")
    )
    with pytest.raises(BadStrategy, check=code("UnknownStrategy")):
        size_of(scenario, ExploreOptions("best"))


def test_a_task_is_performed_from_its_file(project: Project) -> None:
    [entry] = load(("sound",)).entries
    told: list[tuple[int, int]] = []
    report = perform(
        task_of(entry, ExploreOptions("walk:1")),
        ExploreOptions("walk:1"),
        lambda done, planned: told.append((done, planned)),
    )
    assert isinstance(report, Report)
    assert report.verdict == "holds"
    assert told[-1] == (36, 36)


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


@pytest.mark.parametrize("isolation", [None, "fork", "spawn"])
def test_what_pickles_by_name_finds_the_module_of_its_scenario(
    project: Project, isolation: str | None
) -> None:
    # In folders that are no packages, and that nobody has imported.
    project.write("checks/inner/test_pickles.py", PICKLES.format(repr(isolation)))
    [entry] = load(("checks/inner/test_pickles.py",)).entries
    report = explore_entry(entry, ExploreOptions())
    assert isinstance(report, Report)
    assert (report.verdict, report.exploration.violations) == ("proven", ())
    assert "checks.inner.test_pickles" not in sys.modules


def test_a_package_that_leaves_when_it_is_imported_is_an_empty_one(
    project: Project,
) -> None:
    project.write("leaving/__init__.py", "raise SystemExit(3)\n")
    project.write("leaving/test_pickles.py", PICKLES.format(None))
    [entry] = load(("leaving/test_pickles.py",)).entries
    report = explore_entry(entry, ExploreOptions())
    assert isinstance(report, Report)
    assert report.verdict == "proven"


def test_what_pickles_by_name_does_so_whoever_else_imported_its_module(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.scenarios("pickles", PICKLES.format(None))
    [entry] = load(("pickles",)).entries
    assert entry.module is not None
    name = entry.module.__name__
    another = ModuleType(name)
    monkeypatch.setitem(sys.modules, name, another)
    report = explore_entry(entry, ExploreOptions())
    assert isinstance(report, Report)
    assert report.verdict == "proven"
    assert sys.modules[name] is another


def test_what_the_engine_refuses_is_an_outcome(project: Project) -> None:
    project.scenarios(
        "lists",
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add\n"
        "lists = Scenario(add('a'), create=list, observe=list)\n",
    )
    [entry] = load(("lists",)).entries
    outcome = explore_entry(entry, ExploreOptions())
    assert isinstance(outcome, Unexplored)
    assert (outcome.where, outcome.verdict) == (
        "tests/scenarios/test_lists.py:3",
        "failed",
    )
    assert outcome.reason.startswith("a scenario cannot use list, returned by observe")


def test_what_a_scenario_raises_is_an_outcome(project: Project) -> None:
    project.scenarios(
        "raises",
        "from everyorder.harness.scenario import Scenario\n"
        "from tests.scenarios.test_sound import add, shown\n"
        "def leave():\n    raise SystemExit\n"
        "raises = Scenario(add('a'), create=leave, observe=shown)\n",
    )
    [entry] = load(("raises",)).entries
    assert explore_entry(entry, ExploreOptions()) == Unexplored(
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
    entries = {each.variable: each for each in load(("leaves",)).entries}
    cells = memoryview(bytearray(progress.BYTES)).cast("Q")
    with progress.watched(cells) as beats:
        beats.beat(1)
    with progress.watched(cells):
        told = explore_entry(entries[name], ExploreOptions("graph"))
    assert isinstance(told, Unexplored)
    assert (told.verdict, told.reason) == ("failed", "SystemExit: 3")
    assert told.operation == operation
    assert f"in or behind\n    {operation}" in told.render()
    assert told.history[:1] == (() if name == "makes" else ("create()",))


def test_a_file_that_changed_in_between(project: Project) -> None:
    path = project.scenarios("sound", "import nothing_like_this\n")
    task = Task("scenarios/test_sound/sound", path, project.root, 1)
    assert perform(task, ExploreOptions()) == Unexplored(
        "scenarios/test_sound/sound",
        "tests/scenarios/test_sound.py:1",
        "the second time it was loaded: ModuleNotFoundError: No module named "
        "'nothing_like_this'",
    )
    path.write_text("")
    assert perform(task, ExploreOptions()) == Unexplored(
        "scenarios/test_sound/sound",
        "test_sound.py",
        "the second time it was loaded: it no longer exists",
    )
