"""Values that are new each time: set aside by their kind, and named.

What is of no such kind, or is no value at all, is a difference like any other.
"""

import datetime
import itertools
import os
import tempfile
import threading
import time
import uuid
from collections.abc import Callable
from typing import Any

import pytest

from everyorder.harness import Scenario, explore
from everyorder.harness.report import render
from tests.forking import needs_fork
from tests.systems.lazy_registries import Base, scenario
from tests.systems.test_lazy_state import remarks


def made_with(value: Callable[[], Any], **others: Any) -> Scenario:
    """Return the scenario of a registry whose `create` stores a new value."""

    class Registry(Base):
        def __init__(self) -> None:
            super().__init__()
            self.created = value()

    return scenario(Registry, **others)


def said(paths: str) -> str:
    return f"assumed: differs in every fresh system: {paths}, which no answer reads"


# One of each kind; `make test-whole` explores the others.
SHORT = ("text of a datetime", "time", "monotonic", "uuid", "name of a thread")
VALUES: dict[str, tuple[Callable[[], Any], str]] = {
    "datetime": (datetime.datetime.now, "datetime"),
    "datetime of a zone": (lambda: datetime.datetime.now(datetime.UTC), "datetime"),
    "text of a datetime": (lambda: datetime.datetime.now().isoformat(), "datetime"),
    "time": (time.time, "timestamp"),
    "time in nanoseconds": (time.time_ns, "timestamp"),
    "monotonic": (time.monotonic, "clock reading"),
    "counter in nanoseconds": (time.perf_counter_ns, "clock reading"),
    "uuid": (uuid.uuid4, "uuid"),
    "uuid of a clock": (uuid.uuid1, "uuid"),
    "text of a uuid": (lambda: f"registry-{uuid.uuid4()}", "uuid"),
    "digits of a uuid": (lambda: uuid.uuid4().hex, "uuid"),
    "name of a thread": (lambda: threading.Thread(target=len).name, "thread"),
}


@needs_fork
@pytest.mark.parametrize(
    ("value", "kind"),
    [
        pytest.param(*row, id=name, marks=() if name in SHORT else pytest.mark.nightly)
        for name, row in VALUES.items()
    ],
)
def test_a_value_that_is_new_each_time_is_set_aside(
    value: Callable[[], Any], kind: str
) -> None:
    """Each of these was UNFRESH, with "earlier state is still there"."""
    report = explore(made_with(value))
    assert report.verdict == "proven"
    assert remarks(report) == [said(f"registry.created ({kind})")]


@needs_fork
def test_a_temporary_folder_is_set_aside() -> None:
    report = explore(
        made_with(tempfile.mkdtemp, reset=lambda registry: os.rmdir(registry.created))
    )
    assert report.exploration.violations == ()
    assert said("registry.created (temporary name)") in remarks(report)


@needs_fork
def test_a_thread_and_an_open_file_are_set_aside() -> None:
    class Registry(Base):
        def __init__(self) -> None:
            super().__init__()
            self.ends = threading.Event()
            self.worker = threading.Thread(target=self.ends.wait)
            self.worker.start()
            self.log = tempfile.NamedTemporaryFile()  # noqa: SIM115  # closed below

        def close(self) -> None:
            self.ends.set()
            self.worker.join()
            self.log.close()

    report = explore(scenario(Registry, reset=Registry.close))
    assert report.exploration.violations == ()
    (text,) = (each for each in remarks(report) if "differs in every" in each)
    assert "registry.worker._native_id (thread)" in text
    assert "registry.log.name (temporary name)" in text


class Working(Base):
    """Holds the id of its thread, as a number like any other."""

    def __init__(self) -> None:
        super().__init__()
        self.ends = threading.Event()
        self.worker = threading.Thread(target=self.ends.wait, daemon=True)
        self.worker.start()
        self.served_by = self.worker.native_id

    def close(self) -> None:
        self.ends.set()
        self.worker.join()


@needs_fork
def test_the_id_of_a_running_thread_is_set_aside() -> None:
    report = explore(scenario(Working, reset=Working.close))
    assert report.exploration.violations == ()
    (text,) = (each for each in remarks(report) if "differs in every" in each)
    assert "registry.served_by (id of a thread or process)" in text


class Renumbered(Working):
    """Counts below the name of the id, and never back."""

    def add(self, name: str) -> Callable[[], object]:
        self.served_by = 0 if self.served_by > 9 else self.served_by + 1  # type: ignore[operator]  # the thread runs
        return super().add(name)

    def get(self, name: str) -> Any:
        return min(self.served_by, 9)  # type: ignore[type-var]  # the thread runs


@needs_fork
def test_a_number_below_the_name_of_an_id_is_state() -> None:
    report = explore(scenario(Renumbered, reset=Renumbered.close))
    assert report.verdict in ("order", "hidden", "undo")


@needs_fork
def test_the_id_of_a_process_is_set_aside() -> None:
    report = explore(made_with(os.getpid, isolation="fork"))
    assert report.verdict == "proven"
    assert said("registry.created (id of a thread or process)") in remarks(report)


class Ticketed(Base):
    """Names what is added by a UUID."""

    ticket: Callable[[], Any] = staticmethod(uuid.uuid4)

    def __init__(self) -> None:
        super().__init__()
        self.tickets: dict[Any, str] = {}

    def add(self, name: str) -> Callable[[], object]:
        ticket = type(self).ticket()
        self.tickets[ticket] = name
        self.items[name] = 1

        def undo() -> None:
            del self.items[self.tickets.pop(ticket)]

        return undo


class TicketedByText(Ticketed):
    """Does the same, by a text."""

    ticket = staticmethod(lambda: uuid.uuid4().hex)


@needs_fork
@pytest.mark.parametrize("kind", [Ticketed, TicketedByText])
def test_values_that_a_step_makes_are_set_aside(kind: type[Ticketed]) -> None:
    """These were FLAKY; a ticket is a key of a dict, and in the undo."""
    report = explore(scenario(kind, names="abc"))
    assert report.exploration.violations == ()
    assert report.exploration.closure is not None
    assert report.exploration.closure.closed
    paths = "registry.tickets[...] (uuid), undo of add('a').<ticket> (uuid)"
    assert said(paths) in remarks(report)


class Swapped(Ticketed):
    """Gives up the first ticket, whichever is undone."""

    def add(self, name: str) -> Callable[[], object]:
        super().add(name)
        return lambda: self.items.pop(self.tickets.pop(next(iter(self.tickets))))


@needs_fork
def test_which_places_share_a_value_is_state() -> None:
    report = explore(scenario(Swapped, names="abc"))
    assert report.verdict in ("order", "wedged", "undo")


@needs_fork
def test_a_value_that_an_answer_shows_is_not_set_aside() -> None:
    report = explore(made_with(time.time, observe=lambda r: repr(r.created)))
    assert report.verdict == "nondeterminism"
    assert "replays" not in render(report)


COUNT = itertools.count()
OTHERS: dict[str, Callable[[], Any]] = {
    "no id of a thread": lambda: os.getpid() + next(COUNT),
    "a number of the process": lambda: next(COUNT),
    "a name with such a number": lambda: f"registry-{next(COUNT)}",
    "random bytes": lambda: os.urandom(8),
    "a moment that is long ago": lambda: 1.5e9 + next(COUNT),
    "a datetime that is long ago": lambda: datetime.datetime(
        2001, 1, 1, microsecond=next(COUNT)
    ),
}


@needs_fork
@pytest.mark.parametrize("value", OTHERS.values(), ids=[*OTHERS])
def test_what_is_of_no_such_kind_is_a_difference(value: Callable[[], Any]) -> None:
    global COUNT
    COUNT = itertools.count()
    report = explore(made_with(value))
    assert report.verdict == "not fresh"
    (violation,) = report.exploration.violations
    assert violation.paths
    assert "a later one differs from the first" in violation.claim


@needs_fork
def test_in_processes_of_their_own_too() -> None:
    """`isolation` alone does not make a UUID the same again."""
    report = explore(made_with(uuid.uuid4, isolation="fork"))
    assert report.exploration.violations == ()
    assert said("registry.created (uuid)") in remarks(report)


@needs_fork
def test_a_lazy_memo_beside_a_new_value() -> None:
    class Registry(Base):
        settings: dict[str, int] | None = None

        def __init__(self) -> None:
            super().__init__()
            self.created = datetime.datetime.now()

        def get(self, name: str) -> Any:
            if Registry.settings is None:
                Registry.settings = {"depth": 1}
            return super().get(name)

    report = explore(scenario(Registry))
    assert report.verdict == "proven"
    assert remarks(report) == [said("registry.created (datetime)")]
