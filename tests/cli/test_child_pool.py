"""Children that load and explore: each task ends once, whatever its child does."""

import os
import signal
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from everyorder.harness.base.errors import NotFound, ProcessError
from everyorder.harness.cli import runner as crews
from everyorder.harness.cli.display import Advanced, FinishedTask, Started
from everyorder.harness.cli.runner import ChildPool
from everyorder.harness.collection import serving
from everyorder.harness.collection.here import listing_here
from everyorder.harness.collection.tasks import (
    ExploreOptions,
    Listing,
    Outcome,
    Selection,
    Task,
    TaskResult,
)
from everyorder.harness.processes.fork import CAN_FORK
from everyorder.harness.processes.watch import Subject
from everyorder.harness.report.verdict import Report, Unexplored
from tests.cli.conftest import Project, fresh_modules
from tests.coded import code
from tests.report.samples import PROVEN

pytestmark = pytest.mark.skipif(not CAN_FORK, reason="this system cannot fork")

EFFORT = ExploreOptions("walk:1")

ENDS = """
import os, signal, sys, time
from everyorder.harness.scenario import Scenario, step


def add(name, deed=None):
    def do(registry):
        registry.append(name)
        if deed is not None and len(registry) > 1:
            deed()
        return lambda: registry.remove(name)

    return step(f"add({name!r})", do)


def sleep():
    time.sleep(1000)


def scenario(deed):
    return Scenario(
        add("a"), add("b", deed), create=list, observe=lambda r: str(sorted(r))
    )


quits = scenario(lambda: os._exit(0))
killed = scenario(lambda: os.kill(os.getpid(), signal.SIGKILL))
crashes = scenario(lambda: os.kill(os.getpid(), signal.SIGSEGV))
hangs = scenario(sleep)
leaves = scenario(lambda: sys.exit(3))
stops = scenario(lambda: signal.raise_signal(signal.SIGINT))
fine = scenario(lambda: None)
"""


@pytest.fixture
def pool(project: Project) -> Iterator[ChildPool]:
    with ChildPool(EFFORT, operation=1.0) as made:
        yield made


def outcomes(pool: ChildPool, listing: Listing, jobs: int = 1) -> dict[str, Outcome]:
    """The outcome of each task by its name."""
    found: dict[int, Outcome] = {}
    started = []
    for event in pool.explore(listing.tasks, jobs):
        if isinstance(event, Started):
            started.append(event.index)
        elif isinstance(event, FinishedTask):
            assert event.index in started
            assert event.index not in found
            [found[event.index]] = event.result.outcomes
    assert started == list(range(len(listing.tasks)))
    names = [task.path.rpartition("/")[2] for task in listing.tasks]
    return {names[index]: outcome for index, outcome in found.items()}


def test_a_listing_is_that_of_this_process(project: Project, pool: ChildPool) -> None:
    project.scenarios("broken", "def half(:\n")
    project.scenarios("skips", "import pytest\npytest.skip('no', allow_module_level=1)")
    listing = pool.load(Selection())
    with fresh_modules(project.root):
        assert listing == listing_here(Selection(), EFFORT)
    sound = listing.tasks[0]
    source = "tests/scenarios/test_sound.py"
    steps, uses = ('add("a")', 'add("b")'), ("count()",)
    path = "scenarios/test_sound/sound"
    assert sound == Task(
        path,
        f"{source}::sound",
        project.root / source,
        36,
        Subject(path, source, steps, uses, project.root),
        line=21,
    )
    assert listing.broken == (
        Unexplored(
            "scenarios/test_broken.py",
            "tests/scenarios/test_broken.py:1",
            "SyntaxError: invalid syntax",
        ),
    )
    assert listing.skipped == (("tests/scenarios/test_skips.py", "no"),)
    assert listing.loaded == {"tests/scenarios/test_sound.py"}


def test_what_is_not_there(project: Project, pool: ChildPool) -> None:
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as found:
        pool.load(Selection(("sond",)))
    assert found.value.near == ("scenarios/test_sound/sound",)


@pytest.mark.parametrize("jobs", [1, 2])
def test_each_death_is_a_verdict_and_the_others_go_on(
    project: Project, pool: ChildPool, jobs: int
) -> None:
    project.scenarios("ends", ENDS)
    listing = pool.load(Selection(("test_ends",)))
    found = outcomes(pool, listing, jobs)
    source = "tests/scenarios/test_ends.py"
    for name, how in (
        ("quits", "exit code 0"),
        ("killed", f"signal 9, {signal.strsignal(9)}"),
        ("crashes", f"signal 11, {signal.strsignal(11)}"),
    ):
        told = found[name]
        assert isinstance(told, Unexplored)
        assert (told.scenario, told.verdict) == (
            f"scenarios/test_ends/{name}",
            "crashed",
        )
        assert told.reason == f"the process that explored it ended ({how})"
        assert told.operation == "step_2 = add('b')"
        assert told.history[0] == "create()"
        assert "step_1 = add('a')" in told.history
        crash = told
    assert crash.where == f"{source}:28"
    assert crash.stack == (
        f'File "{source}", line 28 in <lambda>',
        f'File "{source}", line 10 in do',
    )
    told = found["hangs"]
    assert isinstance(told, Unexplored)
    assert (told.verdict, told.where) == ("hung", f"{source}:17")
    assert told.reason == "an operation was not over after 1 s"
    assert told.operation == "step_2 = add('b')"
    assert told.stack == (
        f'File "{source}", line 17 in sleep',
        f'File "{source}", line 10 in do',
    )
    for name, reason in (("leaves", "SystemExit: 3"), ("stops", "KeyboardInterrupt")):
        told = found[name]
        assert isinstance(told, Unexplored)
        assert (told.verdict, told.reason) == ("failed", reason)
        assert told.operation == "step_2 = add('b')"
        assert (told.history[0], told.history[-2]) == ("create()", "step_1 = add('a')")
    assert isinstance(found["fine"], Report)
    assert found["fine"].passed


def test_a_scenario_that_goes_on_and_on(project: Project) -> None:
    project.scenarios(
        "slow",
        ENDS.replace("time.sleep(1000)", "time.sleep(0.3)"),
    )
    with ChildPool(ExploreOptions("walk:2"), operation=10, scenario=1.0) as pool:
        listing = pool.load(Selection(("test_slow/hangs",)))
        told = outcomes(pool, listing)["hangs"]
    assert isinstance(told, Unexplored)
    assert told.verdict == "hung"
    assert told.reason.startswith("it was not over after 1 s")


@pytest.mark.parametrize(
    ("text", "verdict", "reason"),
    [
        (
            "import os\nos._exit(0)\n",
            "crashed",
            "the process that imported it ended (exit code 0)",
        ),
        ("import time\ntime.sleep(99)\n", "hung", "not over after 0.6 s"),
        ("raise KeyboardInterrupt\n", "failed", "KeyboardInterrupt"),
    ],
)
def test_a_module_that_ends_the_process_while_it_is_imported(
    project: Project,
    pool: ChildPool,
    monkeypatch: pytest.MonkeyPatch,
    text: str,
    verdict: str,
    reason: str,
) -> None:
    monkeypatch.setattr(crews, "IMPORT_SECONDS", 0.6)
    project.scenarios("aaa", text)
    project.scenarios("zzz", text)
    listing = pool.load(Selection())
    assert [task.path for task in listing.tasks] == [
        "scenarios/test_sound/sound",
        "scenarios/test_sound/newest",
    ]
    assert [each.scenario for each in listing.broken] == [
        "scenarios/test_aaa.py",
        "scenarios/test_zzz.py",
    ]
    first = listing.broken[0]
    assert (first.verdict, first.reason) == (verdict, reason)
    if verdict == "hung":
        assert first.where == "tests/scenarios/test_aaa.py:2"
    alone = replace(listing, tasks=listing.tasks[:1])
    assert isinstance(outcomes(pool, alone)["sound"], Report)


def test_a_file_that_ends_the_process_is_left_out_though_it_is_named(
    project: Project, pool: ChildPool
) -> None:
    """The pool started children for ever."""
    project.scenarios("dies", "import os\nos._exit(3)\n")
    listing = pool.load(Selection(("tests/scenarios/test_dies.py",)))
    [broken] = listing.broken
    assert (broken.verdict, listing.tasks) == ("crashed", ())
    assert broken.operation == "import tests/scenarios/test_dies.py"


def test_a_conftest_that_ends_the_process(project: Project, pool: ChildPool) -> None:
    project.write("tests/deep/conftest.py", "import os\nos._exit(3)\n")
    project.write("tests/deep/test_far.py", "")
    listing = pool.load(Selection())
    [broken] = listing.broken
    assert (broken.verdict, len(listing.tasks)) == ("crashed", 2)
    assert broken.operation == "import tests/deep/conftest.py"


def test_interrupted_children_tear_their_fixtures_down(
    project: Project, tmp_path: Path
) -> None:
    project.write("tests/test_slow.py", SLOW.replace("FOLDER", repr(str(tmp_path))))
    with ChildPool(EFFORT) as pool:
        listing = pool.load(Selection(("tests/test_slow.py",)))
        for _ in pool.explore(listing.tasks, 1):
            while not (tmp_path / "up").exists():
                pass
            break
    assert (tmp_path / "down").exists()


SLOW = """
import pathlib, time
import pytest
from everyorder.harness.scenario import step


@pytest.fixture
def server():
    pathlib.Path(FOLDER, "up").touch()
    yield
    pathlib.Path(FOLDER, "down").touch()


def test_slow(explore, server):
    time.sleep(60)
"""


def test_a_child_that_ends_before_any_import(
    project: Project, pool: ChildPool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(crews, "serve", lambda parent, effort: os._exit(3))
    with pytest.raises(ProcessError, check=code("CannotLoad")) as found:
        pool.load(Selection())
    assert found.value.reason == "exit code 3"


def test_a_child_that_dies_between_two_tasks(project: Project, pool: ChildPool) -> None:
    listing = pool.load(Selection())
    (child,) = pool._idle
    os.kill(child.pid, signal.SIGKILL)
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    assert all(isinstance(each, Report) for each in outcomes(pool, listing).values())


def test_a_report_that_cannot_be_sent() -> None:
    class Refusing:
        cells = memoryview(b"")

        def __init__(self) -> None:
            self.sent: list[object] = []

        def send(self, message: object) -> None:
            assert isinstance(message, TaskResult)
            if not all(isinstance(each, Unexplored) for each in message.outcomes):
                raise TypeError("no pickle takes it")
            self.sent.append(message)

        def receive(self) -> object:
            raise EOFError

    parent = Refusing()
    serving._send(parent, TaskResult((PROVEN,)))
    reason = (
        "its report cannot cross to another process: TypeError('no pickle takes it')"
    )
    told = Unexplored(PROVEN.scenario, "", reason)
    assert parent.sent == [TaskResult((told,), failed=True)]


def test_a_file_that_changed_in_between(project: Project, pool: ChildPool) -> None:
    listing = pool.load(Selection(("test_sound/sound",)))
    pool._idle.pop().kill()
    path = project.scenarios("sound", "import nothing_like_this\n")
    assert outcomes(pool, listing)["sound"] == Unexplored(
        "scenarios/test_sound/sound",
        "tests/scenarios/test_sound.py:1",
        "the second time it was collected: ModuleNotFoundError: No module named "
        "'nothing_like_this'",
    )
    pool._idle.pop().kill()
    path.write_text("")
    assert outcomes(pool, listing)["sound"] == Unexplored(
        "scenarios/test_sound/sound",
        "tests/scenarios/test_sound.py",
        "the second time it was collected: it no longer exists",
    )


TESTS = """
import os, sys, time
import pytest
from everyorder.harness.scenario import Scenario, step


@pytest.fixture(scope="session")
def opened():
    yield []


def add(registry):
    registry.append("a")
    return registry.pop


def test_fine(explore, opened):
    opened.append(1)
    explore(step("add", add), create=list, observe=str)


def test_dies(explore):
    explore(step("add", add), create=list, observe=str)
    os._exit(3)


def test_dies_inside(explore):
    explore(step("add", lambda r: os._exit(3)), create=list, observe=str)


def test_leaves(explore, opened):
    pytest.exit("enough")


def test_after(explore, opened):
    assert opened == []
    explore(step("add", add), create=list, observe=str)
"""


def test_tests_that_end_their_process_or_session(
    project: Project, pool: ChildPool
) -> None:
    project.write("tests/test_tests.py", TESTS)
    found = outcomes(pool, pool.load(Selection(("tests/test_tests.py",))))
    assert isinstance(found["test_fine"], Report)
    dies, inside = found["test_dies"], found["test_dies_inside"]
    assert isinstance(dies, Unexplored)
    assert dies.verdict == "crashed"
    assert isinstance(inside, Unexplored)
    assert (inside.verdict, inside.operation) == ("crashed", "step_1 = add")
    leaves = found["test_leaves"]
    assert isinstance(leaves, Unexplored)
    assert leaves.reason == "Exit: enough"
    assert isinstance(found["test_after"], Report)


def test_progress_is_told(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.scenarios("slow", ENDS.replace("time.sleep(1000)", "time.sleep(0.01)"))
    with ChildPool(ExploreOptions("walk:6")) as pool:
        listing = pool.load(Selection(("test_slow/hangs",)))
        told = [
            (event.done, event.planned)
            for event in pool.explore(listing.tasks, 1)
            if isinstance(event, Advanced)
        ]
    assert told
    assert told == sorted(told)
    assert all(done <= planned for done, planned in told)


def test_no_child_is_left(project: Project) -> None:
    project.scenarios("ends", ENDS)
    with ChildPool(EFFORT) as pool:
        listing = pool.load(Selection(("test_ends/hangs", "test_ends/fine")))
        events = pool.explore(listing.tasks, 2)
        assert next(events) == Started(0)
        assert next(events) == Started(1)
        pids = [child.pid for child in (*pool._busy, *pool._idle)]
        assert len(pids) == 2
    for pid in pids:
        assert not Path(f"/proc/{pid}").exists()


@pytest.mark.slow
def test_where_nothing_can_be_forked(project: Project) -> None:
    with ChildPool(EFFORT, fork=False) as pool:
        found = outcomes(pool, pool.load(Selection()), 2)
    assert [type(each) for each in found.values()] == [Report, Report]
