"""What an exploration keeps when it begins anew, and what it compares."""

import os
import uuid
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

import pytest

from everyorder.harness import Report, Scenario, explore, steps, use
from everyorder.harness.engine import explorer
from everyorder.harness.engine.protocol import operations_of, ordering_of
from everyorder.harness.engine.session import Budget, ExplorationSession, Meter
from everyorder.harness.engine.warm_up import compare_attempts
from everyorder.harness.systems.state_reader import StateReader
from tests.engine.toys import Toy
from tests.forking import needs_fork


class Registry:
    """Changes a table of its class once these plugins are active."""

    rare: ClassVar[list[str]] = []
    table: ClassVar[list[dict[str, int]]] = [{"most": 0}]

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.items[name] = name
        if [*self.items] == self.rare:
            self.table[0]["most"] = 1
        return lambda: self.items.pop(name)


def explored(kind: type[Registry], uses: Sequence[object] = ()) -> Report:
    return explore(
        Scenario(
            *steps("add", "abc", kind.add),
            uses=[use("count", lambda registry: len(registry.items))],
            create=kind,
            reset=lambda registry: registry.table[0].update(most=0),
            observe=lambda registry: " ".join(sorted(registry.items)),
        )
    )


@pytest.fixture
def attempts(monkeypatch: pytest.MonkeyPatch) -> list[ExplorationSession]:
    """The sessions of the attempts of later explorations."""
    sessions: list[ExplorationSession] = []
    attempt = explorer._attempt

    def noted(session: ExplorationSession, *rest: object) -> object:
        sessions.append(session)
        return attempt(session, *rest)  # type: ignore[arg-type]  # passed on

    monkeypatch.setattr(explorer, "_attempt", noted)
    return sessions


@pytest.mark.parametrize("rare", [[], ["c", "a"]])
def test_one_warm_up_is_enough_if_only_parts_of_the_state_changed(
    rare: list[str],
    attempts: list[ExplorationSession],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An exploration of SQLAlchemy took three times as long as its last attempt."""
    warm_ups: list[bool] = []
    rehearse = StateReader.rehearse

    def counted(reader: StateReader, *, begins: bool) -> tuple[str, ...]:
        warm_ups.append(begins)
        return rehearse(reader, begins=begins)

    monkeypatch.setattr(StateReader, "rehearse", counted)

    class Own(Registry):
        table: ClassVar[list[dict[str, int]]] = [{"most": 0}]

    Own.rare = rare
    report = explored(Own)
    assert report.exploration.proven
    assert (len(attempts) > 1) == bool(rare)
    assert warm_ups.count(True) == 1
    assert all(session.warm for session in attempts)


def session_of(system: Toy) -> ExplorationSession:
    operations = operations_of(system)
    return ExplorationSession(
        system,
        operations,
        Meter(Budget(), None),
        ordering=ordering_of(system, order_dependent=False),
        stop_after=1,
    )


@pytest.mark.parametrize("failed_first", [True, False])
def test_a_step_that_failed_in_one_attempt_only_is_not_fresh(
    failed_first: bool,
) -> None:
    """A success that became a failure was compared with nothing."""
    system = Toy(2)
    first, second = session_of(system), session_of(system)
    second.earlier = (first.record,)
    failing, passing = (first, second) if failed_first else (second, first)
    failing.record.failures[0, 1] = ("ValueError", "full")
    passing.record.passed[0] = 0b10
    compare_attempts(second)
    (finding,) = second.findings
    assert (finding.kind, finding.key) == ("not fresh", 0)
    assert finding.paths


def test_attempts_that_agree_have_no_finding() -> None:
    first, second = session_of(Toy(2)), session_of(Toy(2))
    second.earlier = (first.record,)
    for each in (first, second):
        each.record.passed[0] = 0b11
        each.record.failures[1, 1] = ("ValueError", "full")
    second.record.passed[2] = 0b01
    compare_attempts(second)
    assert second.findings == []


@needs_fork
def test_a_result_that_a_file_decides_is_not_fresh_and_says_so(tmp_path: Path) -> None:
    """It was "not fresh", with an empty list of differences."""
    mark = tmp_path / "mark"

    class Numbered(Registry):
        def __init__(self) -> None:
            super().__init__()
            self.number = uuid.uuid4()

    def ask(registry: Numbered) -> str:
        if os.path.exists(mark):  # one call of C
            return "later"
        mark.touch()
        return "first"

    report = explore(
        Scenario(
            *steps("add", "ab", Numbered.add),
            uses=[use("ask", ask)],
            create=Numbered,
            observe=lambda registry: " ".join(sorted(registry.items)),
        )
    )
    assert report.verdict == "not fresh"
    assert all(each.paths for each in report.exploration.violations)


class Link:
    """Refers to itself, so that only a collection frees it."""

    def __init__(self) -> None:
        self.link = self


@pytest.mark.slow
def test_older_garbage_is_found_by_the_warm_up(
    attempts: list[ExplorationSession],
) -> None:
    """An AdminSite of Django was explored twice."""

    class Own(Registry):
        table: ClassVar[list[dict[str, int]]] = [{"most": 0}]
        links: ClassVar[list[Link]] = [Link()]
        alive: ClassVar[weakref.WeakSet[Link]] = weakref.WeakSet(links)

        def add(self, name: str) -> Callable[[], object]:
            self.links.clear()
            return super().add(name)

    report = explored(Own)
    assert report.verdict in ("holds", "proven")
    assert len(attempts) == 1
