"""When a child is overdue, and what is told of one that crashed or hung."""

import os
from array import array
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from everyorder.harness.engine.progress import CELLS, UNDO, ProgressWriter
from everyorder.harness.processes import watch
from everyorder.harness.processes.watch import (
    Limits,
    Subject,
    TimeWatch,
    crash_of,
    hang_of,
    import_death,
)
from everyorder.harness.report.verdict import Unexplored

HARNESS = Path(watch.__file__).parent


@dataclass
class Child:
    """As much of a child as is looked at."""

    text: str = ""
    cells: memoryview = field(
        default_factory=lambda: memoryview(array("Q", [0] * CELLS))
    )

    def stack(self, *, living: bool) -> str:
        return self.text


class Clock:
    """Stands still until somebody moves it."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(watch, "monotonic", made)
    return made


def looked(found: TimeWatch, clock: Clock, seconds: float, every: float = 0.5) -> Any:
    """What the watch says after so many seconds, looked at all the while."""
    for _ in range(round(seconds / every)):
        clock.now += every
        exceeded_limit = found.exceeded_limit()
        if exceeded_limit is not None:
            return exceeded_limit
    return None


def test_an_operation_that_takes_too_long(clock: Clock) -> None:
    child: Any = Child()
    writer = ProgressWriter(child.cells)
    found = TimeWatch(child, Limits(operation=10, scenario=1000))
    for operation in range(5):
        writer.beat(operation)
        assert looked(found, clock, 9) is None
    assert looked(found, clock, 2) == "operation"


def test_the_work_of_the_engine_is_no_operation(clock: Clock) -> None:
    child: Any = Child()
    writer = ProgressWriter(child.cells)
    found = TimeWatch(child, Limits(operation=10, scenario=100))
    assert looked(found, clock, 30) is None  # nothing has begun
    writer.beat(1)
    writer.rest()
    assert looked(found, clock, 30) is None
    writer.beat(1)
    assert looked(found, clock, 11) == "operation"


def test_a_scenario_that_takes_too_long(clock: Clock) -> None:
    child: Any = Child()
    writer = ProgressWriter(child.cells)
    found = TimeWatch(child, Limits(operation=10, scenario=30))
    for operation in range(5):
        writer.beat(operation)
        assert looked(found, clock, 6) is None
    writer.beat(9)
    assert looked(found, clock, 6) == "scenario"


def test_no_limit(clock: Clock) -> None:
    child: Any = Child()
    ProgressWriter(child.cells).beat(1)
    assert looked(TimeWatch(child, Limits(None, None)), clock, 10_000) is None


def test_time_that_nobody_looked_is_not_counted(clock: Clock) -> None:
    """The whole terminal was stopped, or the machine slept."""
    child: Any = Child()
    found = TimeWatch(child, Limits(operation=10, scenario=30))
    ProgressWriter(child.cells).beat(1)
    assert looked(found, clock, 1) is None
    clock.now += 3600
    assert found.exceeded_limit() is None
    assert looked(found, clock, 7) is None
    assert looked(found, clock, 3) == "operation"


SUBJECT = Subject(
    "scenarios/test_a/a",
    "tests/scenarios/test_a.py",
    ('add("a")', 'add("b")'),
    ("count()",),
    Path("/project"),
)

STACK = f"""\
Thread 0x00007f0000000001 (most recent call first):
  File "/usr/lib/python/threading.py", line 99 in wait

Current thread 0x00007f0000000002 (most recent call first):
  File "/usr/lib/python/time.py", line 1 in nap
  File "/project/tests/scenarios/test_a.py", line 12 in sleeps
  File "/project/src/registry.py", line 70 in <lambda>
  File "{HARNESS}/engine/player.py", line 200 in play
  File "{HARNESS}/processes/fork.py", line 400 in _run
"""

FRAMES = (
    'File "/usr/lib/python/time.py", line 1 in nap',
    'File "tests/scenarios/test_a.py", line 12 in sleeps',
    'File "src/registry.py", line 70 in <lambda>',
)


def test_what_is_told_of_a_crash() -> None:
    child: Any = Child()
    writer = ProgressWriter(child.cells)
    writer.reset()
    for operation in (0, 2, 3, UNDO, 4, 1):
        writer.beat(operation)
    assert crash_of(SUBJECT, child, "exit code 0") == Unexplored(
        "scenarios/test_a/a",
        "tests/scenarios/test_a.py",
        "the process that explored it ended (exit code 0)",
        "crashed",
        'step_2 = add("b")',
        (
            "create()",
            'step_1 = add("a")',
            "count()",
            "observe()",
            "step_1.close()",
            "gc.collect()",
        ),
    )


def test_what_is_told_of_a_hang() -> None:
    child: Any = Child(STACK)
    writer = ProgressWriter(child.cells)
    writer.reset()
    told = hang_of(SUBJECT, child, Limits(operation=2.5), "operation")
    assert told == Unexplored(
        "scenarios/test_a/a",
        "tests/scenarios/test_a.py:12",
        "an operation was not over after 2.5 s",
        "hung",
        "create()",
        (),
        FRAMES,
    )
    writer.beat(0)
    writer.rest()
    writer.progress(1_500, 20_000)
    told = hang_of(SUBJECT, child, Limits(scenario=60), "scenario")
    assert told.reason == (
        "it was not over after 60 s; 1,500 of 20,000 operations were played"
    )
    # The engine is at work: no operation is to blame.
    assert (told.operation, told.history) == ("", ("create()", 'step_1 = add("a")'))


def test_one_that_is_still_crashing_does_not_hang() -> None:
    child: Any = Child(f"Fatal Python error: Segmentation fault\n\n{STACK}")
    ProgressWriter(child.cells).beat(0)
    told = hang_of(SUBJECT, child, Limits(), "operation")
    assert (told.verdict, told.reason) == (
        "crashed",
        "the process that explored it ended (Segmentation fault)",
    )
    assert told.stack == FRAMES


def test_of_a_long_history_the_beginning_is_not_known() -> None:
    child: Any = Child()
    writer = ProgressWriter(child.cells)
    writer.reset()
    for _ in range(100):
        writer.beat(2)
    told = crash_of(SUBJECT, child, "exit code 0")
    assert told.history == ("...", *["count()"] * 63)
    assert told.render().splitlines() == [
        "tests/scenarios/test_a.py: the process that explored it ended (exit code 0)",
        "in",
        "    count()",
        "after",
        "    ... 52 before",
        *["    count()"] * 12,
    ]


def test_the_thread_of_the_scenario_is_told() -> None:
    """Whichever thread took the signal."""
    first, _, second = STACK.partition("Current thread")
    swapped = f"Thread{second}\n{first.replace('Thread', 'Current thread')}"
    for text in (STACK, swapped):
        child: Any = Child(text)
        assert crash_of(SUBJECT, child, "signal 11").stack == FRAMES


def test_a_stack_of_ours_alone_is_told() -> None:
    lines = [f'  File "{HARNESS}/engine/a.py", line {n} in f{n}' for n in range(9)]
    child: Any = Child("Current thread 0x1 (most recent call first):\n")
    child.text += "\n".join(lines)
    stack = crash_of(SUBJECT, child, "signal 11").stack
    assert [line.rpartition(" ")[2] for line in stack] == [f"f{n}" for n in range(6)]


def test_what_is_told_of_an_import() -> None:
    file = Path("/project/tests/scenarios/test_a.py")
    child: Any = Child(STACK)
    told = import_death(
        child, "tests/scenarios/test_a.py", file, Path("/project"), "late", "hung"
    )
    assert told == Unexplored(
        "scenarios/test_a.py",
        "tests/scenarios/test_a.py:12",
        "late",
        "hung",
        "import tests/scenarios/test_a.py",
        (),
        FRAMES,
    )
    assert os.sep == "/"
