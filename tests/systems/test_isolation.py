"""Registries whose every fresh system has a process of its own."""

import decimal
import gc
import mimetypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.base.errors import NotAScenario, ProcessError
from everyorder.harness.exploration.explore_scenario import (
    explore,
    system_of,
)
from everyorder.harness.scenario import Scenario, Step, step, steps, use
from everyorder.harness.state import canonical
from everyorder.harness.systems.isolation import IsolatedSystem
from everyorder.harness.systems.outcomes import ScenarioSkipped
from tests.coded import code
from tests.forking import needs_fork
from tests.processes.samples import without_descriptors
from tests.systems.isolated import FORKED as _FORKED
from tests.systems.isolated import SCENARIO as _SCENARIO
from tests.systems.isolated import TABLE, add, shown

pytestmark = needs_fork

A, B, LEAVE, CRASH, HANG, SKIP, EXIT, REFUSE, LEAK, NOTHING = range(10)
NONE: tuple[object, ...] = (None,) * 10
ENDINGS = (".one", ".two")


_strangers: set[int] = set()


def active(**handles: object) -> tuple[object, ...]:
    return tuple(handles.get(name) for name in ("a", "b", *"cdefghij"))


@pytest.fixture(autouse=True)
def strangers() -> Iterator[None]:
    """Other tests leave a process, too: multiprocessing's tracker of resources."""
    _strangers.update(children())
    yield
    _strangers.clear()


@pytest.fixture(params=["fork", "spawn"])
def system(request: pytest.FixtureRequest) -> Iterator[IsolatedSystem]:
    made = IsolatedSystem({"fork": _FORKED, "spawn": _SCENARIO}[request.param])
    made.reset()
    yield made
    made.close()
    assert children() == []


@pytest.fixture
def forked() -> Iterator[IsolatedSystem]:
    made = IsolatedSystem(_FORKED)
    made.reset()
    yield made
    made.close()


def children(of: int | None = None) -> list[int]:
    """The processes that a process has started and not waited for."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            pid = int(entry.name)
            if int(fields[1]) == (of or os.getpid()) and pid not in _strangers:
                found.append(pid)
    return found


def alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def until(done: Any, seconds: float = 10) -> bool:
    end = time.monotonic() + seconds
    while not done():
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


def test_it_is_the_system_of_its_scenario() -> None:
    made = system_of(_FORKED)
    assert isinstance(made, IsolatedSystem)
    assert (made.steps, made.uses, made.settled) == (10, 3, False)
    assert made.relations == _FORKED.relations


def test_operations_and_values_cross(system: IsolatedSystem) -> None:
    assert system.observe() == (("state", ""),)
    handle = system.do(A)
    assert system.observe() == (("state", "a: 0"),)
    assert system.use(0) == "a"
    assert system.use(1) == canonical({"a": 0})
    assert system.use(2) == (("error", "Failed"), ("text", "no"))
    system.undo(A, handle)
    assert system.use(0) == (
        ("error", "ValueError"),
        ("text", "min() arg is an empty sequence"),
    )
    # Of all that nothing is here.
    assert not TABLE


def test_errors_of_steps_cross(system: IsolatedSystem) -> None:
    handle = system.do(A)
    with pytest.raises(Exception, match="a") as caught:
        system.do(A)
    assert system.failure(caught.value) == (("error", "LookupError"), ("text", "a"))
    other = system.do(B)
    assert system.laws() == ("too many",)
    system.undo(B, other)
    assert system.laws() == ()
    assert handle is not None


def test_an_undo_that_refuses_keeps_its_handle(forked: IsolatedSystem) -> None:
    handle = forked.do(REFUSE)
    for _ in range(2):
        with pytest.raises(Exception, match="in use") as caught:
            forked.undo(REFUSE, handle)
        assert forked.failure(caught.value) == (
            ("error", "PermissionError"),
            ("text", "in use"),
        )


def test_every_reset_is_a_fresh_process(system: IsolatedSystem) -> None:
    fresh = system.state(NONE)
    system.do(A)
    system.do(B)
    system.reset()
    assert system.observe() == (("state", ""),)
    assert system.state(NONE) == fresh


def test_states_and_paths(forked: IsolatedSystem) -> None:
    fresh, before = forked.state(NONE), forked.portrait(NONE)
    handle = forked.do(B)
    assert forked.state(active(b=handle)) != fresh
    paths = forked.paths(before, forked.portrait(active(b=handle)))
    assert paths[0].startswith("undo of add('b'): <absent> / <function add")
    assert any(path.endswith("TABLE['b']: <absent> / 0") for path in paths)


def test_a_handle_that_is_kept_alive_keeps_its_token(forked: IsolatedSystem) -> None:
    """The engine finds it by weak reference, and tells the name of its type."""
    leaking, sound = forked.do(LEAK), forked.do(A)
    assert type(leaking).__qualname__ == "Gone"
    forked.undo(LEAK, leaking)
    forked.undo(A, sound)
    assert sys.getrefcount(leaking) == sys.getrefcount(sound) + 1


@pytest.mark.parametrize(
    ("number", "exit_code", "name", "text"),
    [
        (LEAVE, 3, "", "the process ended with exit code 3 during leave"),
        (CRASH, None, "SIGSEGV", "the process ended by SIGSEGV during crash"),
        (EXIT, 7, "", "the process ended with exit code 7 during system_exit"),
    ],
)
def test_a_child_that_dies(
    system: IsolatedSystem, number: int, exit_code: int | None, name: str, text: str
) -> None:
    with pytest.raises(ProcessError, check=code("ChildDied")) as caught:
        system.do(number)
    assert (caught.value.exit_code, caught.value.signal) == (exit_code, name)
    assert str(caught.value) == text
    system.reset()
    assert system.observe() == (("state", ""),)


def test_a_child_that_hangs_can_be_killed(system: IsolatedSystem) -> None:
    killer = threading.Timer(0.2, system.kill)
    killer.start()
    with pytest.raises(
        ProcessError, check=code("ChildDied"), match="ended by SIGKILL during hang"
    ):
        system.do(HANG)
    killer.join()
    system.kill()
    system.reset()
    assert system.observe() == (("state", ""),)


def test_a_zygote_that_dies(forked: IsolatedSystem) -> None:
    (zygote,) = children()
    os.kill(zygote, signal.SIGKILL)
    pid = forked._pid
    assert until(lambda: not alive(pid))
    with pytest.raises(
        ProcessError, check=code("ChildDied"), match="ended by SIGKILL during observe"
    ):
        forked.observe()
    with pytest.raises(
        ProcessError, check=code("ChildDied"), match="ended by SIGKILL during reset"
    ):
        forked.reset()
    forked.reset()
    assert forked.observe() == (("state", ""),)


@pytest.mark.parametrize("is_started", [True, False])
@pytest.mark.parametrize("scenario", [_FORKED, _SCENARIO], ids=["fork", "spawn"])
def test_a_process_without_descriptors_says_what_to_do(
    scenario: Scenario, is_started: bool
) -> None:
    """With the source of children, or when this source is to be started."""
    system = IsolatedSystem(scenario)
    if is_started:
        system.reset()
        system._end_child()  # it would free the descriptor that is needed
    refused = pytest.raises(ProcessError, check=code("CannotStart"))
    with without_descriptors(), refused as caught:
        system.reset()
    assert str(caught.value) == (
        "the process of a fresh registry could not start: Too many open files; explore "
        "fewer scenarios at once (--jobs), or raise the limit with `ulimit -n`"
    )
    system.reset()
    assert system.observe() == (("state", ""),)
    system.close()
    assert children() == []


def test_skip_and_mistakes_cross(forked: IsolatedSystem) -> None:
    with pytest.raises(ScenarioSkipped, match="no database"):
        forked.do(SKIP)
    with pytest.raises(NotAScenario, match="None, returned by 'nothing'"):
        forked.do(NOTHING)
    assert forked.observe() == (("state", ""),)


def test_a_create_that_fails() -> None:
    made = Scenario(
        step("a", lambda _: print, undo=None),
        create=lambda: TABLE["nothing"],
        observe=str,
        isolation="fork",
    )
    system = IsolatedSystem(made)
    with pytest.raises(ProcessError, check=code("ChildFailed")) as caught:
        system.reset()
    assert (caught.value.error, caught.value.text) == ("KeyError", "'nothing'")
    told = str(caught.value)
    assert told.startswith("reset failed: KeyError: 'nothing'\nTraceback")
    assert "test_isolation.py" in told
    system.close()


def test_caveats_outlive_their_processes() -> None:
    made = Scenario(
        step("a", lambda _: os.getpid(), undo=None),
        uses=[use("now", lambda _: time.time() and None)],
        create=object,
        observe=shown,
        isolation="fork",
    )
    system = IsolatedSystem(made)
    system.reset()
    system.do(0)
    system.reset()
    system.use(0)
    system.reset()
    told = "; ".join(each.text for each in system.caveats())
    assert "os.getpid" in told
    assert "time.time" in told
    system.close()


def test_what_changes_outside_of_the_state_is_told() -> None:
    """Only some children look: those of `CHECKING_CHILDREN`, the second among them."""

    def fill(_: object) -> None:
        vars(decimal)["everyorder_was_here"] = [1]

    made = Scenario(
        step("fill", fill, undo=None), create=object, observe=str, isolation="fork"
    )
    system = IsolatedSystem(made)
    for _ in range(2):
        system.reset()
        system.do(0)
    system.reset()
    outside = [each.text for each in system.caveats() if each.kind == "outside"]
    assert [text.partition(" ")[0] for text in outside] == [
        "decimal.everyorder_was_here"
    ]
    system.close()


def test_a_scenario_that_cannot_be_loaded_again() -> None:
    made = Scenario(
        *steps("add", "xy", add), create=object, observe=shown, isolation="spawn"
    )
    system = IsolatedSystem(made)
    with pytest.raises(NotAScenario) as caught:
        system.reset()
    assert "isolation='spawn' for a scenario that" in str(caught.value)
    assert "expected a scenario that is a variable of its module" in str(caught.value)
    system.close()
    builtin: Any = len
    made = Scenario(
        step("a", builtin, undo=None),
        create=dict,
        observe=builtin,
        isolation="spawn",
    )
    with pytest.raises(NotAScenario, match="functions that no file has"):
        IsolatedSystem(made).reset()


def test_what_a_child_prints_is_printed_once(capfd: pytest.CaptureFixture[str]) -> None:
    def shout(_: object) -> None:
        print("done in a child")

    sys.stdout.write("before\n")
    made = Scenario(
        step("shout", shout, undo=None), create=object, observe=shown, isolation="fork"
    )
    system = IsolatedSystem(made)
    system.reset()
    system.do(0)
    system.close()
    assert capfd.readouterr().out == "before\ndone in a child\n"


def test_closing_leaves_no_process(forked: IsolatedSystem) -> None:
    pid = forked._pid
    (zygote,) = children()
    assert alive(pid)
    forked.close()
    assert children() == []
    assert until(lambda: not alive(pid) and not alive(zygote))
    forked.close()
    forked.reset()
    assert forked.observe() == (("state", ""),)


def test_a_system_that_is_dropped_leaves_no_process() -> None:
    system = IsolatedSystem(_FORKED)
    system.reset()
    assert children()
    del system
    gc.collect()
    assert children() == []


PROGRAM = """
import time
from everyorder.harness.systems.isolation import IsolatedSystem
from tests.systems.isolated import {name}
system = IsolatedSystem({name})
system.reset()
print(system._pid, flush=True)
{then}
"""


@pytest.mark.parametrize("name", ["FORKED", "SCENARIO"])
@pytest.mark.parametrize("then", ["system.do(4)", "time.sleep(60)"])
def test_a_parent_that_is_killed_takes_all_with_it(name: str, then: str) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(name=name, then=then)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert parent.stdout is not None
    pids = [int(parent.stdout.readline()), *children(parent.pid)]
    time.sleep(0.2)
    assert all(map(alive, pids))
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert until(lambda: not any(map(alive, pids)))


def test_a_table_of_the_library_is_not_fresh_unless_it_is_isolated() -> None:
    """Nobody follows it, and every step takes its own back: the same gave two."""

    def known(kind: str) -> Step:
        def do(_: object) -> Any:
            mimetypes.types_map[f".{kind}"] = kind
            return lambda: mimetypes.types_map.pop(f".{kind}")

        return step(f"add({kind})", do)

    def made(isolation: Any) -> Scenario:
        return Scenario(
            *(known("one"), known("two")),
            create=object,
            observe=lambda _: " ".join(mimetypes.types_map.get(k, "") for k in ENDINGS),
            isolation=isolation,
        )

    mimetypes.init()
    report = explore(made(None), "walk:1")
    assert report.verdict == "not fresh"
    (violation,) = report.exploration.violations
    assert violation.paths == (
        "mimetypes.types_map: changed outside of the followed state; name it in watch=",
    )
    for kind in ENDINGS:
        mimetypes.types_map.pop(kind, None)
    assert explore(made("fork"), "walk:1").verdict == "holds"


def test_state_of_the_whole_process_is_explored() -> None:
    """Without a process of its own, no registry is fresh after the first."""

    def made(isolation: Any) -> Scenario:
        return Scenario(
            *steps("add", "ab", add),
            uses=[use("place", lambda _: TABLE.get("b"))],
            create=object,
            observe=lambda _: str(sorted(TABLE)),
            isolation=isolation,
        )

    report = explore(made("fork"), "walk:1")
    assert report.verdict == "order"
    assert children() == []
    TABLE.clear()
    assert explore(made(None), "walk:1").verdict == "not fresh"
    TABLE.clear()
