import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from everyorder.harness.cli import command as exits
from everyorder.harness.cli import main
from tests.processes.last import last as last
from tests.processes.last import (
    pytest_collection_modifyitems as pytest_collection_modifyitems,
)

if TYPE_CHECKING:
    # Whatever a test module uses is looked at beside each scenario: not without need.
    from click.testing import Result
    from rich.console import Console

# A registry that is a list, and scenarios with a fault of each kind.
SOUND = """
from everyorder.harness.scenario import Scenario, step, use


def add(name):
    def do(registry):
        registry.append(name)
        return lambda: registry.remove(name)

    return step(f'add("{name}")', do)


def shown(registry):
    return "".join(f"{name}\\n" for name in sorted(registry))


def count(registry):
    return f"{len(registry)} names"


sound = Scenario(
    add("a"),
    add("b"),
    uses=[use("count()", count)],
    create=list,
    observe=shown,
    fingerprint=lambda registry: tuple(sorted(registry)),
)
newest = Scenario(
    add("a"),
    add("b"),
    create=list,
    observe=lambda registry: "".join(f"{name}\\n" for name in registry),
    order_dependent="the newest stands last",
)
"""

FAULTY = """
from time import perf_counter_ns

from tests.scenarios.test_sound import Scenario, add, shown, step


def refuse(registry):
    raise ValueError("this name is taken")


order = Scenario(
    add("a"),
    add("b"),
    create=list,
    observe=lambda registry: "".join(f"{name}\\n" for name in registry),
)
law = Scenario(
    add("a"),
    add("b"),
    create=list,
    observe=shown,
    check=lambda registry: ["at most one name"] if len(registry) > 1 else [],
)
random = Scenario(
    add("a"),
    create=list,
    observe=lambda registry: f"{perf_counter_ns()}\\n",
)
crash = Scenario(add("a"), create=lambda: 1 / 0, observe=shown)
failing = Scenario(
    add("a"),
    step('add("A")', refuse, raises=ValueError),
    create=list,
    observe=shown,
)
"""


# Scenarios import each other by their places below the root.
PYPROJECT = """
[project]
name = 'demo'

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib"]
pythonpath = ["."]
testpaths = ["tests"]
"""


class Project:
    """A project in a temporary folder, and the command run in it."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.write("pyproject.toml", PYPROJECT)

    def write(self, name: str, text: str) -> Path:
        path = self.root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def scenarios(self, name: str, text: str) -> Path:
        return self.write(f"tests/scenarios/test_{name}.py", text)

    def run(self, *arguments: str) -> "Result":
        from click.testing import CliRunner

        with fresh_modules(self.root):
            return CliRunner().invoke(main, list(arguments), prog_name="everyorder")

    def text(self, *arguments: str) -> str:
        """What the command prints, without blanks at the ends of lines."""
        return plain(self.run(*arguments))


@contextmanager
def fresh_modules(root: Path) -> Iterator[None]:
    """Context: modules below this folder that are imported here are forgotten."""
    before = list(sys.path)
    try:
        yield
    finally:
        sys.path[:] = before
        for name, module in list(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if file is not None and Path(file).is_relative_to(root):
                del sys.modules[name]


def plain(result: "Result") -> str:
    """What was printed, without blanks at the ends of lines."""
    return "".join(f"{line.rstrip()}\n" for line in result.output.splitlines())


def unwrapped(result: "Result") -> str:
    """What was printed, as one line."""
    return " ".join(result.output.split())


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with sound scenarios and with faulty ones; clocks stand still."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delenv("CI", raising=False)
    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr("everyorder.harness.engine.session.monotonic", lambda: 0.0)
    made = Project(tmp_path)
    made.scenarios("sound", SOUND)
    with fresh_modules(tmp_path):
        yield made


@pytest.fixture(scope="session")
def _accepted() -> dict[str, str]:
    """The expect files of the sound scenarios, once they were accepted."""
    return {}


@pytest.fixture
def accepted(project: Project, _accepted: dict[str, str]) -> Project:
    """The same as `project`, in which what it shows is expected."""
    if not _accepted:
        assert project.run("review", "--accept", "all").exit_code == exits.OK
        for path in sorted((project.root / "expect").rglob("*.txt")):
            name = path.relative_to(project.root).as_posix()
            _accepted[name] = path.read_text()
    for name, text in _accepted.items():
        project.write(name, text)
    return project


@pytest.fixture
def faulty(project: Project) -> Project:
    """The same, with faulty scenarios beside the sound ones."""
    project.scenarios("faulty", FAULTY)
    return project


@pytest.fixture
def terminal() -> "type[Console]":
    """What the command line prints on."""
    from rich.console import Console

    return Console
