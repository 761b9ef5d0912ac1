"""The module `everyorder`: its names, the command, and a project that hides ours."""

import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import everyorder
import harness
from harness.cli import command as exits
from tests.plugin.project import PAIR, ROOT, Project

PASSES = "def test_plain():\n    pass\n"

OWN = '"""A package of the project."""\n\nvalue = 42\n'

# A project's own tests of its own package.
USES_OWN = """
def test_own():
    import harness
    from harness.deep import deep

    assert (harness.value, deep) == (42, 43)
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
    assert sorted(everyorder.__all__) == sorted([*harness.__all__, "__version__"])
    for name in harness.__all__:
        assert getattr(everyorder, name) is getattr(harness, name)
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = everyorder.nothing


def test_its_version() -> None:
    assert everyorder.__version__ == version("everyorder")


def test_nothing_of_ours_is_imported_with_it(tmp_path: Path) -> None:
    program = (
        "import sys, everyorder\n"
        "everyorder.__version__, everyorder.hidden()\n"
        "ours = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(ours & {'harness', 'invariants', 'runtime', 'pytest', 'click'}))"
    )
    assert run_python("-c", program, cwd=tmp_path).stdout == "[]\n"


@pytest.mark.parametrize("module", ["everyorder", "harness"])
def test_the_command_by_its_module(tmp_path: Path, module: str) -> None:
    result = run_python("-m", module, "--version", cwd=tmp_path)
    assert result.stdout == f"everyorder {version('everyorder')}\n"
    (tmp_path / "tests").mkdir()
    result = run_python("-m", module, "run", cwd=tmp_path)
    assert result.returncode == exits.REFUSED
    assert result.stderr.startswith("Error: there are no scenarios in tests.")


class TestHidden:
    """A project with packages that are called like ours, at its root."""

    @pytest.fixture(params=["harness", "runtime", "harness runtime"])
    def hiding(self, project: Project, request: pytest.FixtureRequest) -> Project:
        names = str(request.param).split()
        for name in names:
            project.write(f"{name}/__init__.py", OWN)
            project.write(f"{name}/deep.py", "deep = 43\n")
        project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
        (project.path / "toy.py").unlink()
        project.write("tests/test_a.py", PASSES)
        if "harness" in names:
            project.write("tests/test_own.py", USES_OWN)
        self.first = project.path / names[0]
        self.tests = 1 + ("harness" in names)
        return project

    def ran(self, hiding: Project, *arguments: str) -> list[str]:
        """The lines of `python -m pytest`, all tests of which passed."""
        given = ("-p", "everyorder", "-p", "no:cacheprovider", *arguments)
        result = run_python("-m", "pytest", *given, cwd=hiding.path)
        assert result.returncode == 0, result.stdout + result.stderr
        assert result.stderr == ""
        lines = result.stdout.splitlines()
        assert lines[-1].startswith(f"{self.tests} passed") or (
            f" {self.tests} passed" in lines[-1]
        )
        return lines

    def off(self) -> str:
        name = self.first.name
        return (
            f"everyorder: {self.first} hides its own package {name}; its plugin is off"
        )

    def test_the_plugin_steps_aside_with_one_line(self, hiding: Project) -> None:
        lines = self.ran(hiding)
        assert [line for line in lines if "everyorder: " in line] == [self.off()]

    def test_its_flags_are_accepted(self, hiding: Project) -> None:
        flags = ("--everyorder-budget=3", "--everyorder-update")
        lines = self.ran(hiding, *flags)
        assert self.off() in lines

    def test_workers_step_aside_too(self, hiding: Project) -> None:
        lines = self.ran(hiding, "-p", "xdist", "-n2")
        assert [line for line in lines if "everyorder: " in line] == [self.off()]

    def test_without_the_plugin_no_line(self, hiding: Project) -> None:
        result = run_python("-m", "pytest", "-p", "no:everyorder", cwd=hiding.path)
        assert result.returncode == 0
        assert "everyorder: " not in result.stdout

    def test_a_scenario_says_why_it_cannot_be_made(self, hiding: Project) -> None:
        hiding.write("tests/test_ours.py", "from everyorder import Scenario\n")
        given = ("-p", "everyorder", "-p", "no:cacheprovider")
        result = run_python("-m", "pytest", *given, cwd=hiding.path)
        assert result.returncode == pytest.ExitCode.INTERRUPTED
        assert (
            "ImportError: cannot import 'Scenario' from everyorder: "
            f"{self.first} hides its own package {self.first.name}"
        ) in result.stdout

    def test_the_fixture_says_why_there_is_none(self, hiding: Project) -> None:
        hiding.write("tests/test_ours.py", "def test_it(explore):\n    pass\n")
        given = ("-p", "everyorder", "-p", "no:cacheprovider")
        result = run_python("-m", "pytest", *given, cwd=hiding.path)
        assert result.returncode == pytest.ExitCode.TESTS_FAILED
        hides = f"everyorder: {self.first} hides its own package {self.first.name}"
        assert hides in result.stdout.splitlines()

    def test_the_command_has_one_error(self, hiding: Project) -> None:
        for arguments in (
            ("-m", "everyorder"),
            ("-c", "import everyorder as e; e.main()"),
        ):
            result = run_python(*arguments, "run", cwd=hiding.path)
            assert result.returncode == exits.REFUSED
            assert (result.stdout, result.stderr) == (
                "",
                f"everyorder: error: {self.first} hides its own package "
                f"{self.first.name}\n",
            )


def test_a_package_that_is_met_only_later(project: Project) -> None:
    """Of the folder of the tests, which pytest puts on the path as it goes."""
    project.write("pytest.ini", "[pytest]\nfilterwarnings = error\n")
    project.write("tests/harness/__init__.py", OWN)
    project.write("tests/harness/deep.py", "deep = 43\n")
    project.write("tests/test_own.py", USES_OWN)
    for workers in ((), ("-n1",)):
        result = project.run(*workers, apart=True)
        assert result.ret == 0
        result.assert_outcomes(passed=1)
        assert "everyorder: " not in result.stdout.str()


def test_a_file_hides_too(project: Project) -> None:
    project.write("runtime.py", OWN)
    project.write("tests/test_a.py", PASSES)
    result = run_python(
        "-m", "pytest", "-p", "everyorder", "-c", "/dev/null", cwd=project.path
    )
    assert result.returncode == 0
    hider = project.path / "runtime.py"
    assert (
        f"everyorder: {hider} hides its own package runtime; its plugin is off"
    ) in result.stdout.splitlines()


def test_a_folder_that_is_no_package_hides_nothing(project: Project) -> None:
    project.write("runtime/notes.txt", "")
    project.write("harness/notes.txt", "")
    project.module("test_a.py", PAIR)
    given = ("-p", "everyorder", "-p", "no:cacheprovider", "--everyorder-update")
    result = run_python("-m", "pytest", *given, cwd=project.path)
    assert result.returncode == 0
    assert "everyorder: 1 scenario, 4 states, " in result.stdout


def test_a_missing_package_is_told(tmp_path: Path) -> None:
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "everyorder.py").write_text((ROOT / "everyorder.py").read_text())
    program = (
        "import sys; sys.path[:] = [p for p in sys.path if 'everyorder' not in p]\n"
        f"sys.path.insert(0, {str(alone)!r})\n"
        f"sys.path.remove({str(ROOT)!r}) if {str(ROOT)!r} in sys.path else None\n"
        "import everyorder; everyorder.main()"
    )
    result = run_python("-S", "-c", program, cwd=tmp_path, PYTHONPATH="")
    assert result.returncode == exits.REFUSED
    assert result.stderr == (
        f"everyorder: error: its package harness is missing from {alone}\n"
    )


def test_the_text_files_of_somebody_else_are_not_stale(project: Project) -> None:
    project.write("expect/notes.txt", "these are ours\n")
    project.write("tests/test_a.py", PASSES)
    result = project.run()
    assert result.ret == 0
    assert "everyorder: " not in result.stdout.str()
    assert "stale: " not in result.stdout.str()
