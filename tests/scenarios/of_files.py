"""Scenarios of the files of this folder, without a session of pytest."""

from collections.abc import Iterable
from importlib import import_module
from pathlib import Path

from everyorder.harness import Scenario

ROOT = Path(__file__).resolve().parents[2]
HERE = Path(__file__).resolve().parent


def scenarios_of(files: Iterable[Path]) -> dict[str, Scenario]:
    """The scenarios in public variables of these files, by their paths."""
    found: dict[str, Scenario] = {}
    for file in files:
        source = file.relative_to(ROOT).as_posix()
        module = import_module(source.removesuffix(".py").replace("/", "."))
        for name, value in vars(module).items():
            if isinstance(value, Scenario) and not name.startswith("_"):
                scenario = value.named(value.name or name, source)
                found[scenario.path] = scenario
    return found


def catalogue() -> dict[str, Scenario]:
    """All scenarios of this folder."""
    return scenarios_of(sorted(HERE.glob("test_*.py")))
