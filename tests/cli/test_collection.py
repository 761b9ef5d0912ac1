"""What a command collects is what pytest collects: files, conftest, names, marks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everyorder.harness.base.errors import CannotCollect, NotFound
from everyorder.harness.collection.selection import nearest
from everyorder.harness.collection.tasks import Listing
from everyorder.harness.report.verdict import Unexplored
from tests import collecting
from tests.cli.conftest import Project, fresh_modules
from tests.coded import code

TABLE = "[tool.pytest.ini_options]\n"


def listing(*paths: str) -> Listing:
    """The listing of these paths; modules that it imports are forgotten."""
    with fresh_modules(Path.cwd()):
        return collecting.listing(*paths)


def names(*paths: str) -> list[str]:
    """The names of the scenarios of these paths."""
    return [path.rpartition("/")[2] for path in listing(*paths).paths]


@pytest.mark.parametrize(
    ("files", "start"),
    [
        ({"pyproject.toml": "", "in/pytest.ini": "[pytest]\n"}, "."),
        ({"pyproject.toml": TABLE, "in/pyproject.toml": "[tool]\n"}, "in"),
        ({"in/setup.cfg": "[tool:pytest]\n"}, "in/tests"),
        ({"in/setup.py": ""}, "."),
        ({"in/pytest.toml": ""}, "in"),
        ({}, "in"),
        ({}, "."),
    ],
)
def test_the_root_is_that_of_pytest(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    files: dict[str, str],
    start: str,
) -> None:
    test = tmp_path / "in" / "tests" / "test_a.py"
    test.parent.mkdir(parents=True)
    test.write_text("def test():\n    pass\n")
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    folder = tmp_path / start
    result = subprocess.run(
        [sys.executable, "-m", "pytest", os.path.relpath(test, folder), "--co"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
    (line,) = (each for each in result.stdout.splitlines() if "rootdir: " in each)
    monkeypatch.chdir(folder)
    root = listing(os.path.relpath(test, folder)).root
    assert line.removeprefix("rootdir: ") == str(root)


EMPTY = "from everyorder.harness.scenario import Scenario, step\n"


def made(name: str, text: str = "a") -> str:
    return f"{name} = Scenario(step('{text}', list.copy), create=list, observe=repr)\n"


def test_everything_that_pytest_collects(project: Project) -> None:
    project.scenarios("again", EMPTY + made("zulu") + made("alpha") + made("_hidden"))
    project.write("tests/test_other.py", EMPTY + made("other"))
    project.write("test_outside_testpaths.py", EMPTY + made("outside"))
    found = listing()
    assert found.paths == (
        "scenarios/test_again/zulu",
        "scenarios/test_again/alpha",
        "scenarios/test_sound/sound",
        "scenarios/test_sound/newest",
        "test_other/other",
    )
    assert found.root == project.root
    assert (found.broken, found.skipped) == ((), ())
    assert found.tasks[0].subject.source == "tests/scenarios/test_again.py"
    assert found.tasks[0].node == "tests/scenarios/test_again.py::zulu"


TESTS = (
    EMPTY
    + """
import pytest


@pytest.fixture
def both(explore):
    return explore


@pytest.mark.parametrize("name", ["x/y", "b"])
def test_one(explore, name): ...


class TestAll:
    def test_two(self, both): ...


def test_plain(): ...
"""
)


def test_tests_that_explore_are_tasks(project: Project) -> None:
    project.write("tests/test_it.py", TESTS)
    found = listing("tests/test_it.py")
    assert found.paths == (
        "test_it/test_one[x%2Fy]",
        "test_it/test_one[b]",
        "test_it/TestAll/test_two",
    )
    assert all(task.is_test for task in found.tasks)


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/test_it.py::test_one", ["test_one[x%2Fy]", "test_one[b]"]),
        ("tests/test_it.py::test_one[b]", ["test_one[b]"]),
        ("tests/test_it.py::TestAll", ["test_two"]),
        ("test_it/test_one[b]", ["test_one[b]"]),
        ("test_it/TestAll/test_two-2", ["test_two"]),
        ("test_it/TestAll/test_two/named", ["test_two"]),
        ("test_two", ["test_two"]),
    ],
)
def test_selection_of_tests(project: Project, path: str, expected: list[str]) -> None:
    project.write("tests/test_it.py", TESTS)
    assert names(path) == expected


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests", ["sound", "newest", "other"]),
        ("tests/test_other.py", ["other"]),
        ("tests/scenarios/test_sound.py::sound", ["sound"]),
        ("scenarios/test_sound/sound", ["sound"]),
        ("sound", ["sound"]),
        ("test_sound", ["sound", "newest"]),
        ("newe", ["newest"]),
    ],
)
def test_selection(project: Project, path: str, expected: list[str]) -> None:
    project.write("tests/test_other.py", EMPTY + made("other"))
    assert names(path) == expected


def test_from_a_folder_below_the_root(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project.root / "tests" / "scenarios")
    assert names() == ["sound", "newest"]
    assert names("test_sound.py::newest") == ["newest"]
    assert names("scenarios/test_sound/newest") == ["newest"]


def test_several_paths_name_each_scenario_once(project: Project) -> None:
    found = listing("newest", "tests/scenarios", "sound")
    assert found.paths == ("scenarios/test_sound/newest", "scenarios/test_sound/sound")
    assert found.broken == ()


def test_given_names_and_second_variables(project: Project) -> None:
    text = EMPTY + made("a").replace("create", "name='given', create") + "b = a\n"
    project.scenarios("named", text)
    assert listing("test_named").paths == ("scenarios/test_named/given",)


@pytest.mark.parametrize(
    "paths",
    [
        ("tests/scenarios/test_twins.py",),
        ("tests/scenarios/test_twins.py", "tests/scenarios/test_twins.py"),
        ("tests/scenarios/test_twins.py::same",),
        ("scenarios/test_twins/same",),
        ("same",),
        (),
    ],
)
def test_two_scenarios_of_one_name(project: Project, paths: tuple[str, ...]) -> None:
    one = made("one").replace("create", "name='same', create")
    two = "two: Scenario = " + one.partition(" = ")[2].replace("=list", "=dict")
    project.scenarios("twins", EMPTY + one + "\n\n" + two)
    found = listing(*paths)
    assert "scenarios/test_twins/same" in found.paths
    assert found.broken == (
        Unexplored(
            "scenarios/test_twins/same",
            "tests/scenarios/test_twins.py:5",
            "two is called scenarios/test_twins/same like one (tests/scenarios/"
            "test_twins.py:2), so only that one is explored; give one of them another "
            "name",
        ),
    )


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("\nx = 1 +\n", 2, "SyntaxError: invalid syntax"),
        ("import none_such\n", 1, "ModuleNotFoundError: No module named 'none_such'"),
        ("\n\nraise ValueError\n", 3, "ValueError"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        (EMPTY + "Scenario(1)\n", 2, "a scenario cannot use 1 among the steps; exp"),
    ],
)
def test_broken_modules_are_reported_with_their_line(
    project: Project, text: str, line: int, reason: str
) -> None:
    project.scenarios("broken", text)
    found = listing()
    assert len(found.tasks) == 2
    [broken] = found.broken
    assert broken.where == f"tests/scenarios/test_broken.py:{line}"
    assert broken.reason.startswith(reason)
    assert found.loaded == {"tests/scenarios/test_sound.py"}
    assert listing("tests/scenarios/test_broken.py::what").broken == (broken,)


def test_a_broken_conftest(project: Project) -> None:
    project.write("tests/deep/conftest.py", "\n1 / 0\n")
    project.write("tests/deep/test_far.py", EMPTY + made("far"))
    found = listing()
    assert found.paths == ("scenarios/test_sound/sound", "scenarios/test_sound/newest")
    [broken] = found.broken
    assert "ZeroDivisionError" in broken.reason
    project.write("conftest.py", "import nothing_like_this\n")
    with pytest.raises(CannotCollect, match="nothing_like_this"):
        listing()


def test_options_that_pytest_refuses(project: Project) -> None:
    project.write("pytest.ini", "[pytest]\naddopts = --no-such-option\n")
    with pytest.raises(CannotCollect, match="--no-such-option"):
        listing()


def test_warnings_that_are_errors(project: Project) -> None:
    """Pytest warns that it cannot rewrite modules that the command has imported."""
    project.write("pytest.ini", "[pytest]\npythonpath = .\nfilterwarnings = error\n")
    child = subprocess.run(
        [sys.executable, "-m", "everyorder", "list", "tests"],
        cwd=project.root, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert child.stdout.endswith("\n2 scenarios\n")


def test_a_plugin_that_raises_while_it_is_configured(project: Project) -> None:
    project.write("conftest.py", "def pytest_configure(config):\n    1 / 0\n")
    with pytest.raises(CannotCollect, match="ZeroDivisionError"):
        listing()
    result = project.run("list")
    assert result.exit_code == 2
    assert "pytest cannot collect the scenarios" in result.output


def test_a_wrong_name_beside_a_broken_module(project: Project) -> None:
    project.scenarios("broken", "x = 1 +\n")
    found = listing("newst", "sound")
    assert found.paths == ("scenarios/test_sound/sound",)
    module, wrong = found.broken
    assert module.where == "tests/scenarios/test_broken.py:1"
    assert wrong == Unexplored(
        "newst",
        "",
        "there is no Python file, folder or scenario 'newst'; did you mean "
        "scenarios/test_sound/newest?; tests/scenarios/test_broken.py:1 could not be "
        "searched",
    )


def test_interrupts_are_not_caught(project: Project) -> None:
    project.scenarios("stops", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        listing()


def test_modules_that_skip_themselves(project: Project) -> None:
    text = "import pytest\npytest.skip('not here', allow_module_level=True)\n"
    project.scenarios("skips", text)
    assert listing().skipped == (("tests/scenarios/test_skips.py", "not here"),)


def test_collecting_writes_nothing(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = sorted(project.root.rglob("*"))
    listing()
    assert sorted(project.root.rglob("*")) == before
    assert sys.dont_write_bytecode is False


def test_what_is_not_there(project: Project) -> None:
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as caught:
        listing("test_sound/newst")
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'test_sound/newst'; did you mean "
        "scenarios/test_sound/newest?"
    )
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as caught:
        listing("quite another thing")
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'quite another thing'; "
        "scenarios looked at: 2; `everyorder list` shows them."
    )
    for path in ("none.py", "tests/none.py::name"):
        with pytest.raises(NotFound, check=code("NoSuchPath")):
            listing(path)


def test_without_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(NotFound, check=code("NoSuchPath")) as caught:
        listing("name")
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'name'; without a path, "
        "everything that pytest collects is searched."
    )
    (tmp_path / "test_mine.py").write_text(EMPTY + made("mine"))
    for paths in ((), ("mine",), ("test_mine/mine",), (".",)):
        assert listing(*paths).paths == ("test_mine/mine",)


def test_a_whole_path_is_collected_outside_testpaths(project: Project) -> None:
    project.write("test_top.py", EMPTY + made("top"))
    assert listing("test_top/top").paths == ("test_top/top",)


def test_marks_and_options_deselect(project: Project) -> None:
    text = EMPTY + "import pytest\n" + made("chosen") + made("left")
    project.write("tests/test_marked.py", text)
    project.write("pytest.ini", "[pytest]\npythonpath = .\naddopts = -k chosen\n")
    found = listing("tests")
    assert (found.paths, found.deselected) == (("test_marked/chosen",), 3)


def test_nearest_searches_paths_and_names() -> None:
    paths = ("scenarios/test_a/two_kernels", "scenarios/test_b/fallbacks")
    assert nearest("two_kernel", paths) == (paths[0],)
    assert nearest("scenarios/test_b/fallback", paths)[0] == paths[1]
    assert nearest("qqq", paths) == ()
