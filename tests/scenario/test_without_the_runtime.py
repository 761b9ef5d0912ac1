"""Whoever asks about a registry of their own loads nothing of the runtime."""

import subprocess
import sys

PROGRAM = """
import sys
import harness.cli.run, harness.cli.run, harness.plugin
from harness import Scenario, explore, step, use

names = set()
scenario = Scenario(
    step("add a", lambda held: (held.add("a"), lambda: held.remove("a"))[1]),
    step("add b", lambda held: (held.add("b"), lambda: held.remove("b"))[1]),
    uses=[use("has a", lambda held: "a" in held)],
    create=set,
    observe=lambda held: " ".join(sorted(held)),
)
print(explore(scenario).verdict)
print(sorted({each.partition(".")[0] for each in sys.modules} & {"runtime", "numpy"}))
"""


def test_a_registry_is_explored_without_the_runtime() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert ran.stdout.splitlines() == ["proven", "[]"]


def test_what_speaks_of_the_dispatcher_is_there_when_it_is_asked_for() -> None:
    import harness.scenario

    for name in harness.scenario.__all__:
        assert getattr(harness.scenario, name) is not None
    assert dir(harness.scenario) == sorted(harness.scenario.__all__)
