"""What operations do where no state shows it."""

import os
import subprocess
import sys
import time
import weakref
from functools import partial
from itertools import combinations
from types import ModuleType
from typing import Any

import pytest

from everyorder.harness.engine import explore
from everyorder.harness.engine.protocol import Caveat
from everyorder.harness.scenario import Scenario, step, use
from everyorder.harness.systems.audit import FIRST_LOOK
from everyorder.harness.systems.garbage import PERFORMANCES
from everyorder.harness.systems.registry import RegistrySystem


def started(do: Any, undo: Any = lambda _: None, **options: Any) -> RegistrySystem:
    made = Scenario(
        step("do", do, undo=undo),
        uses=[use("ask", options.pop("ask", str))],
        create=dict,
        observe=str,
        **options,
    )
    system = RegistrySystem(made)
    system.reset()
    return system


def looked(system: RegistrySystem) -> None:
    """Have the states looked at, with the step done."""
    handle = system.do(0)
    for _ in range(FIRST_LOOK):
        system.state((handle,))
    system.undo(0, handle)


def test_pure_operations_leave_nothing_open() -> None:
    system = started(lambda to: to.update(a=1), lambda to: to.clear())
    looked(system)
    system.use(0)
    assert system.caveats() == ()


def test_c_functions_that_hide_state_are_told() -> None:
    system = started(lambda to: to.update(a=time.time()), ask=lambda _: os.getpid())
    looked(system)
    system.use(0)
    (caveat,) = system.caveats()
    assert caveat == Caveat("assumed", "calls os.getpid, time.time")


def test_only_the_first_performances_are_listed() -> None:
    system = started(lambda to: None)
    for _ in range(4):
        system.use(0)
    looked(system)
    assert system.memory().performances == {
        ("use", 0, 0): PERFORMANCES,
        ("do", 0, 0): 1,
        ("undo", 0, 1): 1,
    }


def test_with_more_steps_active_they_are_listed_anew() -> None:
    system = started(lambda to: None)
    handle = system.do(0)
    for _ in range(4):
        system.use(0)
    system.undo(0, handle)
    system.use(0)
    performed = system.memory().performances
    assert performed["use", 0, 1] == PERFORMANCES
    assert performed["use", 0, 0] == 1


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """A module of another package."""
    module = ModuleType("far_tables")
    module.table = {}  # type: ignore[attr-defined]  # a module of its own
    monkeypatch.setitem(sys.modules, "far_tables", module)
    return module


def fill(_: object) -> None:
    sys.modules["far_tables"].table["a"] = 1


def empty(_: object) -> None:
    sys.modules["far_tables"].table.clear()


def outside(system: RegistrySystem) -> list[str]:
    looked(system)
    return [each.text for each in system.caveats() if each.kind == "outside"]


def test_what_changes_outside_is_told(tables: ModuleType) -> None:
    assert outside(started(fill, empty)) == [
        "far_tables.table changed outside of the followed state; name it in watch="
    ]


def test_what_is_watched_is_not_outside(tables: ModuleType) -> None:
    assert outside(started(fill, empty, watch=[tables])) == []


@pytest.mark.parametrize("path", ["far_tables.table", "far_*.table", "far_tables"])
def test_what_is_ignored_is_assumed_instead(tables: ModuleType, path: str) -> None:
    """A place that was ignored was reported as to be watched, too."""
    system = started(fill, empty, ignore=[path])
    assert outside(system) == []
    ignored = "far_tables.table" if path.endswith("table") else path
    assumed = [each.text for each in system.caveats() if each.kind == "assumed"]
    assert f"{ignored} is ignored" in assumed


@pytest.mark.parametrize(
    "path", ["far_tables.tab", "tables.table", "far_tables.table.a"]
)
def test_another_path_is_not_ignored(tables: ModuleType, path: str) -> None:
    assert len(outside(started(fill, empty, ignore=[path]))) == 1


def test_what_the_harness_imports_is_nobodys_operation() -> None:
    """`asyncio` comes with the first coroutine."""
    program = (
        "import sys\n"
        "from tests.scenario_api.test_audit import looked, started\n"
        "assert 'asyncio' not in sys.modules\n"
        "async def later(_): ...\n"
        "def main():\n"
        "    system = started(later)\n"
        "    looked(system)\n"
        "    assert 'asyncio' in sys.modules\n"
        "    print([each for each in system.caveats() if each.kind == 'outside'])\n"
        "    system.close()\n"
        "main()"
    )
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert (found.stdout, found.stderr) == ("[]\n", "")


class Watched:
    """A registry that knows by weak references whom it was given."""

    def __init__(self) -> None:
        self.seen = weakref.WeakSet[Any]()

    def add(self) -> Any:
        def undo() -> None:
            self.seen.discard(undo)

        self.seen.add(undo)
        return undo


def test_what_explores_leaves_no_garbage_of_its_own() -> None:
    """It took its own for the registry's, and looked through everything each time."""
    made = Scenario(step("add", Watched.add), create=Watched, observe=lambda to: "")
    system = RegistrySystem(made)
    found = explore(system, "graph")
    memory = system.memory()
    assert found.closure is not None
    assert memory.garbage_checks
    assert not memory.thorough
    # Nor is there any of the first exploration when the second one begins.
    again = explore(system, "graph")
    assert again.closure == found.closure
    assert not memory.thorough


class Ordered:
    """Names its latest step, and asks the clock in one order of four steps."""

    def __init__(self) -> None:
        self.names: dict[str, None] = {}

    def put(self, name: str) -> Any:
        self.names[name] = None
        return lambda: self.names.pop(name)

    def latest(self) -> str:
        text = "".join(self.names)
        # Not by its name, which is read from the code.
        clock = sys.modules["time"].time
        return str(clock() < 0) if text == "dbca" else text[-1:]


def test_where_the_order_of_a_dict_is_read_operations_are_audited_in_each_order() -> (
    None
):
    names = [step(name, partial(Ordered.put, name=name)) for name in "abcd"]
    scenario = Scenario(
        *names,
        uses=[use("latest", Ordered.latest)],
        create=Ordered,
        observe=Ordered.latest,
        ordered=[*combinations(names, 2)],
    )
    exploration = explore(RegistrySystem(scenario))
    assert Caveat("assumed", "calls time.time") in exploration.caveats


def test_at_each_state_the_first_performance_is_audited() -> None:
    def ask(to: dict[str, int]) -> None:
        to["asked"] = min(to.get("asked", 0) + 1, 5)
        if to["asked"] == 5:
            sys.modules["os"].getpid()  # not by its name, which is read from the code

    system = started(lambda to: None, ask=ask)
    for _ in range(5):
        system.state(())
        system.use(0)
    assert system.caveats() == (Caveat("assumed", "calls os.getpid"),)
    assert system.memory().performances["use", 0, 0] == 5
