"""Hidden state that only another history of steps leaves behind, not of uses."""

from collections.abc import Callable
from sqlite3 import connect
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step, steps, use
from everyorder.harness.report import render

_undone: list[str] = []


def _made() -> list[str]:
    _undone.clear()
    return []


def _add(names: list[str]) -> Callable[[], object]:
    names.append("a")

    def undo() -> None:
        names.remove("a")
        # No part of what the fingerprint tells.
        _undone.append("a")

    return undo


OBSERVED: dict[str, Any] = {
    "observe": lambda names: f"{len(names)} {bool(_undone)}",
}
USED: dict[str, Any] = {
    "observe": lambda names: f"{len(names)}",
    "uses": [use("any was undone", lambda _: bool(_undone))],
}


@pytest.mark.parametrize("asked", [OBSERVED, USED], ids=["observed", "used"])
def test_what_an_undo_leaves_outside_of_the_fingerprint(asked: dict[str, Any]) -> None:
    scenario = Scenario(
        step("add", _add), create=_made, fingerprint=lambda names: tuple(names), **asked
    )
    for stop in (1, 3):
        report = explore(scenario, "graph", stop_after=stop)
        assert report.verdict == "hidden"
        # It is none of order as well.
        assert {each.kind for each in report.exploration.violations} == {"hidden"}


class Database:
    """What it holds is seen by nobody: the order in which rows were added."""

    def __init__(self) -> None:
        self.held = connect(":memory:")
        self.held.execute("create table t(k text)")

    def add(self, name: str) -> Callable[[], object]:
        self.held.execute("insert into t values(?)", (name,))
        return lambda: self.held.execute("delete from t where k=?", (name,))

    def rows(self) -> list[str]:
        return [name for (name,) in self.held.execute("select k from t order by rowid")]


def test_of_hidden_state_the_short_histories_are_told_and_the_long_ones_counted() -> (
    None
):
    """A history of twenty-five operations stood beside one of three."""
    scenario = Scenario(
        *steps("add", "ab", Database.add),
        uses=[use("rows", Database.rows)],
        create=Database,
        reset=lambda registry: registry.held.close(),
    )
    report = explore(scenario, "graph", stop_after=3)
    (violation,) = report.exploration.violations
    assert (violation.kind, violation.shortest) == ("hidden", (1, 0, 2))
    assert violation.more >= 1
    assert "longer histories show it " in render(report)
