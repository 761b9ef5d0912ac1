"""Hidden state that only another history of steps leaves behind, not of uses."""

from collections.abc import Callable
from typing import Any

import pytest

from harness import Scenario, explore, step, use

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
