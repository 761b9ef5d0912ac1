"""The module `everyorder`: its names, the command, and a project that hides ours."""

import os
import subprocess
import sys
from importlib.metadata import version
from operator import attrgetter
from pathlib import Path

import pytest

import everyorder
from everyorder import harness
from everyorder.harness.cli import command as exits
from tests.pytest_plugin.project import PAIR, ROOT, Project

PASSES = "def test_plain():\n    pass\n"

NOTHING = "nothing"
OWN = '"""A package of the project."""\n\nvalue = 42\n'

# A project's own tests of its own package.
USES_OWN = """
def test_own():
    import harness, invariants, runtime
    from harness.deep import deep

    assert (harness.value, invariants.value, runtime.value, deep) == (42, 42, 42, 43)
"""


def run_python(
    *arguments: str, cwd: Path, **given: str
) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), **given}
    return subprocess.run(
        [sys.executable, *arguments],
        cwd=cwd,
        env=environment,
        text=True,
        capture_output=True,
        timeout=300,
        check=False,
    )


def test_its_names_are_those_of_the_harness() -> None:
    packages = ("harness", "invariants", "runtime")
    assert ALL_OF(everyorder) == sorted([*ALL_OF(harness), *packages, "__version__"])
    for name in ALL_OF(harness):
        assert getattr(everyorder, name) is getattr(harness, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        getattr(everyorder, NOTHING)


# Stubs do not show it.
ALL_OF = attrgetter("__all__")

# Names of the dispatcher's steps and uses, and two packages.
NAMES = """PROBES ProbeMode ProbeSubclass call context custom define fallback handler
impl in_main install_fallbacks invariants library listen look_up mode register_autograd
register_fake register_kernel reserve rule runtime together"""
UNLISTED = NAMES.split()

SCAN = """
import everyorder, sys
for _ in range(3):
    for module in list(sys.modules.values()):
        if module.__name__.startswith("everyorder"):
            for name in dir(module):
                getattr(module, name, None)
print(*sorted({*everyorder.__all__} - {*dir(everyorder)}))
print(*(name for name in sys.modules if name.startswith("everyorder.runtime")))
"""


def test_a_scan_of_all_modules_does_not_import_the_runtime(tmp_path: Path) -> None:
    unlisted, runtime, *_ = run_python("-c", SCAN, cwd=tmp_path).stdout.split("\n")
    assert runtime == ""
    assert unlisted.split() == UNLISTED


@pytest.mark.slow
@pytest.mark.parametrize("name", [n for n in UNLISTED if n != "invariants"])
def test_names_that_are_not_listed_import_the_runtime(
    tmp_path: Path, name: str
) -> None:
    program = f"import sys, everyorder; everyorder.{name}; print(*sys.modules)"
    assert (
        "everyorder.runtime" in run_python("-c", program, cwd=tmp_path).stdout.split()
    )


def test_all_names_are_listed_with_the_runtime(tmp_path: Path) -> None:
    program = (
        "import everyorder.runtime, everyorder.invariants; print(*dir(everyorder))"
    )
    assert run_python("-c", program, cwd=tmp_path).stdout.split() == ALL_OF(everyorder)


def test_its_version() -> None:
    assert everyorder.__version__ == version("everyorder")


def test_import_everyorder_loads_neither_the_runtime_nor_the_engine(
    tmp_path: Path,
) -> None:
    program = (
        "import sys, everyorder\n"
        "ours = {name for name in sys.modules if name.startswith('everyorder')}\n"
        "print(sorted(ours), 'click' in sys.modules, 'pytest' in sys.modules)"
    )
    assert run_python("-c", program, cwd=tmp_path).stdout == (
        "['everyorder'] False False\n"
    )


def test_the_command_by_its_module(tmp_path: Path) -> None:
    result = run_python("-m", "everyorder", "--version", cwd=tmp_path)
    assert result.stdout == f"everyorder {version('everyorder')}\n"
    (tmp_path / "tests").mkdir()
    result = run_python("-m", "everyorder", "run", cwd=tmp_path)
    assert result.returncode == exits.REFUSED
    assert result.stderr.startswith("Error: there are no scenarios in ")


@pytest.fixture
def namesake(project: Project) -> Project:
    """A project whose own packages have the names of the parts of `everyorder`."""
    for name in ("harness", "invariants", "runtime"):
        project.write(f"{name}/__init__.py", OWN)
        project.write(f"{name}/deep.py", "deep = 43\n")
    project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    project.write("tests/test_own.py", USES_OWN)
    project.module("test_a.py", PAIR)
    return project


@pytest.mark.parametrize("workers", [(), ("-p", "xdist", "-n2")])
def test_a_project_with_packages_of_the_same_names(
    namesake: Project, workers: tuple[str, ...]
) -> None:
    given = ("-p", "everyorder", "-p", "no:cacheprovider", *workers)
    update = "--everyorder-update"
    result = run_python("-m", "pytest", *given, update, cwd=namesake.path)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    lines = result.stdout.splitlines()
    assert " 2 passed" in lines[-1]
    assert any(line.startswith("everyorder: 1 scenario, 4 states, ") for line in lines)


def test_the_command_in_a_project_with_packages_of_the_same_names(
    namesake: Project,
) -> None:
    result = run_python("-m", "everyorder", "run", cwd=namesake.path)
    assert (result.returncode, result.stderr) == (0, ""), result.stdout
    assert "proven" in result.stdout


def test_the_text_files_of_somebody_else_are_not_stale(project: Project) -> None:
    project.write("expect/notes.txt", "these are ours\n")
    project.write("tests/test_a.py", PASSES)
    result = project.run()
    assert result.ret == 0
    assert "everyorder: " not in result.stdout.str()
    assert "stale: " not in result.stdout.str()
