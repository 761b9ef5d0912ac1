import os
import signal

import pytest

from harness.catalogue import load
from harness.cli import worker
from harness.cli.task import Effort, Outcome, Task, task_of
from harness.cli.worker import Finished, Started, explore_all, serve
from harness.outcome import Report
from harness.report import Unexplored
from tests.cli.conftest import Project

DIES = """
import os, signal
from harness.scenario import Scenario, step


def end(registry):
    os.kill(os.getpid(), signal.SIGKILL)


dies = Scenario(step("a", list.append), create=list, observe=end)
"""


def tasks(*paths: str) -> list[Task]:
    return [task_of(entry, Effort()) for entry in load(paths).entries]


def test_each_task_ends_once_whatever_its_worker_does(project: Project) -> None:
    project.scenarios("dies", DIES)
    given = tasks()
    assert [task.path.rpartition("/")[2] for task in given] == [
        "dies",
        "sound",
        "newest",
    ]
    events = list(explore_all(given, Effort(), 1))
    assert [event.index for event in events if isinstance(event, Started)] == [0, 1, 2]
    ended: dict[int, Outcome] = {}
    for event in events:
        if isinstance(event, Finished):
            assert event.index not in ended
            ended[event.index] = event.outcome
    assert ended[0] == Unexplored(
        "scenarios/test_dies/dies",
        "",
        f"the process that explored it ended (signal 9, {signal.strsignal(9)})",
    )
    assert [type(ended[1]), type(ended[2])] == [Report, Report]


def test_workers_end_with_the_one_who_started_them(project: Project) -> None:
    events = explore_all(tasks("sound", "newest"), Effort(), 2)
    assert next(events) == Started(0)
    assert next(events) == Started(1)
    events.close()
    from multiprocessing import active_children

    assert active_children() == []


class Pipe:
    """The worker's end of a pipe, without a process."""

    def __init__(self, *given: Task) -> None:
        self.given = list(given)
        self.sent: list[object] = []

    def recv(self) -> Task:
        if not self.given:
            raise EOFError
        return self.given.pop(0)

    def send(self, message: object) -> None:
        self.sent.append(message)


def test_a_worker_serves_until_its_pipe_ends(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker, "TELL_EVERY", 0.0)
    handler = signal.getsignal(signal.SIGINT)
    pipe = Pipe(*tasks("sound"))
    try:
        serve(pipe, Effort("walk:1"))  # type: ignore[arg-type]  # as far as it is used
    finally:
        signal.signal(signal.SIGINT, handler)
    *told, report = pipe.sent
    assert told[-1] == (36, 36)
    assert isinstance(report, Report)


def test_an_interrupt_reaches_no_worker(project: Project) -> None:
    events = explore_all(tasks("sound"), Effort(), 1)
    assert next(events) == Started(0)
    from multiprocessing import active_children

    # As a terminal does, which interrupts every process of the group.
    for child in active_children():
        assert child.pid is not None
        os.kill(child.pid, signal.SIGINT)
    *_, last = events
    assert isinstance(last, Finished)
    assert isinstance(last.outcome, Report)
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())
