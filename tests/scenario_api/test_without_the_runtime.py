"""Whoever asks about a registry of their own loads nothing of the runtime."""

import subprocess
import sys

import everyorder.harness.scenario

PROGRAM = """
import sys
import everyorder.harness.cli.run, everyorder.harness.pytest_plugin.plugin
from everyorder.harness import Scenario, explore, step, use

names = set()
scenario = Scenario(
    step("add a", lambda held: (held.add("a"), lambda: held.remove("a"))[1]),
    step("add b", lambda held: (held.add("b"), lambda: held.remove("b"))[1]),
    uses=[use("has a", lambda held: "a" in held)],
    create=set,
    observe=lambda held: " ".join(sorted(held)),
)
print(explore(scenario).verdict)
print(sorted({*sys.modules} & {"everyorder.runtime", "numpy"}))
"""


def test_a_registry_is_explored_without_the_runtime() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["proven", "[]"]


def test_what_speaks_of_the_dispatcher_is_there_when_it_is_asked_for() -> None:

    for name in everyorder.harness.scenario.__all__:
        assert getattr(everyorder.harness.scenario, name) is not None
    assert dir(everyorder.harness.scenario) == sorted(
        everyorder.harness.scenario.__all__
    )
