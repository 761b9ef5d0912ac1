"""Scenarios as they are found, below the root and by the folders that pytest has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from everyorder.harness.base.errors import NotFound
from everyorder.harness.exploration.catalogue import (
    LoadFailure,
    SkippedModule,
    find,
    import_folders,
    load,
    load_file,
    nearest,
    root_of,
    root_of_all,
)
from tests.cli.conftest import Project
from tests.coded import code

TABLE = "[tool.pytest.ini_options]\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "in" / "tests").mkdir(parents=True)
    (tmp_path / "in" / "tests" / "test_a.py").write_text("def test():\n    pass\n")
    return tmp_path


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"in/pyproject.toml": ""}, "in"),
        ({"pyproject.toml": TABLE, "in/pyproject.toml": ""}, "."),
        ({"pyproject.toml": "", "in/pytest.ini": ""}, "in"),
        ({"pyproject.toml": "", "in/pytest.toml": ""}, "in"),
        ({"pyproject.toml": "", "in/tests/.pytest.ini": "[pytest]\n"}, "in/tests"),
        ({"pyproject.toml": "", "in/tests/.pytest.toml": ""}, "in/tests"),
        ({"pytest.ini": "", "in/pyproject.toml": "[project]\n"}, "."),
        ({"in/setup.cfg": "[tool:pytest]\n"}, "in"),
        ({"setup.py": "", "in/setup.cfg": "[metadata]\nname = a\n"}, "."),
        ({"pyproject.toml": "", "in/tox.ini": "[pytest]\n"}, "in"),
        ({"pyproject.toml": "", "in/tox.ini": "[tox]\n"}, "."),
        ({"pyproject.toml": "", "in/setup.py": ""}, "."),
        ({"in/pyproject.toml": "[tool.pytest]\nminversion = '8'\n"}, "in"),
        ({"pyproject.toml": TABLE, "in/pyproject.toml": "[tool]\n"}, "."),
    ],
)
def test_the_root_is_that_of_pytest(
    tree: Path, files: dict[str, str], root: str
) -> None:
    for name, text in files.items():
        (tree / name).write_text(text)
    assert root_of(tree / "in" / "tests") == tree / root
    assert root_of(tree / "in" / "tests" / "test_a.py") == tree / root


@pytest.mark.parametrize(
    ("files", "start"),
    [
        ({"pyproject.toml": "", "in/pytest.ini": "[pytest]\n"}, "."),
        ({"in/setup.cfg": "[tool:pytest]\n"}, "in/tests"),
        ({"in/setup.py": ""}, "."),
        ({}, "in"),
        ({}, "."),
    ],
)
def test_pytest_says_the_same(tree: Path, files: dict[str, str], start: str) -> None:
    for name, text in files.items():
        (tree / name).write_text(text)
    test = tree / "in" / "tests" / "test_a.py"
    folder = tree / start
    result = subprocess.run(
        [sys.executable, "-m", "pytest", os.path.relpath(test, folder), "--co"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
    (line,) = (each for each in result.stdout.splitlines() if "rootdir: " in each)
    assert line.removeprefix("rootdir: ") == str(root_of_all([test], folder))


def test_nothing_is_named(tree: Path) -> None:
    assert root_of_all([], tree / "in") == tree / "in"
    (tree / "pytest.ini").touch()
    assert root_of_all([], tree / "in") == tree


@pytest.mark.parametrize(
    ("file", "text", "before", "after"),
    [
        ("pytest.ini", "", ["in/tests", "."], []),
        ("pytest.ini", "[pytest]\npythonpath = src lib\n",
            ["in/tests", "src", "lib", "."], []),
        ("pytest.ini", "[pytest]\naddopts = -q --import-mode=append\n",
            ["."], ["in/tests"]),
        ("setup.cfg", "[tool:pytest]\naddopts = --import-mode importlib\n", ["."], []),
        ("pyproject.toml", TABLE + "addopts = ['--import-mode=importlib']\n"
            "pythonpath = ['src']\n", ["src", "."], []),
        ("pytest.toml", "[pytest]\npythonpath = ['src']\n",
            ["in/tests", "src", "."], []),
        ("pytest.ini", "[pytest]\naddopts = -k '\n", ["in/tests", "."], []),
        ("pytest.ini", "nonsense", ["in/tests", "."], []),
        ("pyproject.toml", "[tool]\npytest = 3\n", ["in/tests", "."], []),
    ],
)  # fmt: skip
def test_import_folders(
    tree: Path, file: str, text: str, before: list[str], after: list[str]
) -> None:
    (tree / file).write_text(text)
    found = import_folders(tree / "in" / "tests" / "test_a.py", tree)
    assert found == (
        tuple(tree / each for each in before),
        tuple(tree / each for each in after),
    )


def test_a_package_is_imported_from_above_it(tree: Path) -> None:
    (tree / "in" / "tests" / "__init__.py").touch()
    before, _ = import_folders(tree / "in" / "tests" / "test_a.py", tree)
    assert before == (tree / "in", tree)


EMPTY = "from everyorder.harness.scenario import Scenario, step\n"


def made(name: str, text: str = "a") -> str:
    return f"{name} = Scenario(step('{text}', list.copy), create=list, observe=repr)\n"


def test_everything_below_the_default_folder(project: Project) -> None:
    project.scenarios("again", EMPTY + made("zulu") + made("alpha") + made("_hidden"))
    project.write("tests/test_other.py", EMPTY + made("other"))
    found = load()
    assert found.paths == (
        "scenarios/test_again/zulu",
        "scenarios/test_again/alpha",
        "scenarios/test_sound/sound",
        "scenarios/test_sound/newest",
    )
    assert found.root == project.root
    assert (found.broken, found.skipped) == ((), ())
    assert found.entries[0].scenario.source == "tests/scenarios/test_again.py"


def test_from_a_folder_below_the_root(project: Project) -> None:
    start = project.root / "tests" / "scenarios"
    assert len(load(start=start).entries) == 2
    assert load(("test_sound.py::newest",), start=start).paths == (
        "scenarios/test_sound/newest",
    )


@pytest.mark.parametrize(
    ("path", "names"),
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
def test_selection(project: Project, path: str, names: list[str]) -> None:
    project.write("tests/test_other.py", EMPTY + made("other"))
    found = [entry.scenario.name for entry in load((path,)).entries]
    assert found == names


def test_several_paths_name_each_scenario_once(project: Project) -> None:
    found = load(("newest", "tests/scenarios", "sound"))
    assert [entry.scenario.name for entry in found.entries] == ["newest", "sound"]
    assert found.broken == ()


def test_given_names_and_second_variables(project: Project) -> None:
    text = EMPTY + made("a").replace("create", "name='given', create") + "b = a\n"
    project.scenarios("named", text)
    assert load(("test_named",)).paths == ("scenarios/test_named/given",)


def test_two_scenarios_of_one_name(project: Project) -> None:
    text = EMPTY + made("a") + made("b", "b").replace("create", "name='a', create")
    project.scenarios("twice", text)
    found = load(("tests/scenarios/test_twice.py",))
    assert found.paths == ("scenarios/test_twice/a",)
    reason = (
        "b is called scenarios/test_twice/a like a (tests/scenarios/test_twice.py:2), "
        "so only that one is explored; give one of them another name"
    )
    twin = LoadFailure(
        "tests/scenarios/test_twice.py", 3, reason, "scenarios/test_twice/a"
    )
    assert found.broken == (twin,)


@pytest.mark.parametrize(
    "paths",
    [
        ("tests/scenarios/test_twins.py",),
        ("tests/scenarios/test_twins.py", "tests/scenarios/test_twins.py"),
        ("tests/scenarios/test_twins.py::same",),
        ("scenarios/test_twins/same",),
        ("same",),
    ],
)
def test_two_scenarios_of_one_name_and_equal_texts(
    project: Project, paths: tuple[str, ...]
) -> None:
    one = made("one").replace("create", "name='same', create")
    two = "two: Scenario = " + one.partition(" = ")[2].replace("=list", "=dict")
    project.scenarios("twins", EMPTY + one + "\n\n" + two)
    found = load(paths)
    assert found.paths == ("scenarios/test_twins/same",)
    [twin] = found.broken
    assert twin.scenario == "scenarios/test_twins/same"
    assert twin.where == "tests/scenarios/test_twins.py:5"
    assert "two is called" in twin.reason
    assert "like one (tests/scenarios/test_twins.py:2), so only" in twin.reason


def test_two_files_of_one_path(project: Project) -> None:
    project.write("test_x.py", EMPTY + "for a in [0]:\n    " + made("a"))
    project.write("tests/test_x.py", EMPTY + made("a"))
    found = load(("tests/test_x.py", "test_x.py"))
    assert found.paths == ("test_x/a",)
    [twin] = found.broken
    assert (twin.where, twin.scenario) == ("test_x.py", "test_x/a")
    assert "like a (tests/test_x.py:2)" in twin.reason


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("\nx = 1 +\n", 2, "SyntaxError: invalid syntax"),
        ("import none_such\n", 1, "ModuleNotFoundError: No module named 'none_such'"),
        ("\n\nraise ValueError\n", 3, "ValueError"),
        ("import sys\nsys.exit(3)\n", 2, "SystemExit: 3"),
        (EMPTY + "Scenario(1)\n", 2, "NotAScenario: a scenario cannot use int amon"),
    ],
)
def test_broken_modules_are_kept_with_their_line(
    project: Project, text: str, line: int, reason: str
) -> None:
    project.scenarios("broken", text)
    found = load()
    assert len(found.entries) == 2
    [broken] = found.broken
    assert broken.where == f"tests/scenarios/test_broken.py:{line}"
    assert broken.reason.startswith(reason)
    for own in ("scenarios/test_broken/what", "tests/scenarios/test_broken.py::what"):
        assert load((own,)).broken == (broken,)
    assert LoadFailure("a.py", None, "").where == "a.py"


def test_a_wrong_name_is_told_beside_a_broken_module(project: Project) -> None:
    project.scenarios("broken", "x = 1 +\n")
    found = load(("newst", "sound"))
    assert found.paths == ("scenarios/test_sound/sound",)
    module, wrong = found.broken
    assert module.source == "tests/scenarios/test_broken.py"
    assert wrong == LoadFailure(
        "",
        None,
        "there is no Python file, folder or scenario 'newst'; did you mean "
        "scenarios/test_sound/newest?; tests/scenarios/test_broken.py could not be "
        "searched",
        "newst",
    )


def test_a_wrong_name_beside_twins(project: Project) -> None:
    text = EMPTY + made("a") + made("b").replace("create", "name='a', create")
    project.scenarios("twice", text)
    with pytest.raises(NotFound, check=code("NoSuchScenario")):
        load(("quite another thing",))


def test_interrupts_are_not_caught(project: Project) -> None:
    project.scenarios("stops", "raise KeyboardInterrupt\n")
    with pytest.raises(KeyboardInterrupt):
        load()


def test_modules_that_skip_themselves(project: Project) -> None:
    text = "import pytest\npytest.skip('not here', allow_module_level=True)\n"
    project.scenarios("skips", text)
    assert load().skipped == (
        SkippedModule("tests/scenarios/test_skips.py", "not here"),
    )


def test_loading_leaves_no_trace(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    before = dict(sys.modules)
    load()
    load()
    assert {name for name in sys.modules if name not in before} == set()
    assert not list(project.root.rglob("__pycache__"))
    assert sys.dont_write_bytecode is False


def test_a_module_of_that_name_that_was_loaded_before_stays(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "tests.scenarios.test_sound"
    monkeypatch.setitem(sys.modules, name, sys)
    assert len(load().entries) == 2
    assert sys.modules[name] is sys


def test_a_file_is_read_anew(project: Project) -> None:
    load()
    project.scenarios("sound", EMPTY + made("other"))
    assert load().paths == ("scenarios/test_sound/other",)


def test_what_is_not_there(project: Project) -> None:
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as caught:
        load(("test_sound/newst",))
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'test_sound/newst'; did you mean "
        "scenarios/test_sound/newest?"
    )
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as caught:
        find(load(), "quite another thing")
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'quite another thing'; "
        "scenarios looked at: 2; `everyorder run` lists them."
    )


def test_without_a_project(tmp_path: Path) -> None:
    assert root_of(tmp_path) == tmp_path
    with pytest.raises(NotFound, check=code("NoSuchPath")) as caught:
        load(("name",), start=tmp_path)
    assert str(caught.value) == (
        "there is no Python file, folder or scenario 'name'; without a path, "
        "scenarios are looked for in tests/scenarios, or else tests."
    )


def test_a_project_without_a_folder_for_scenarios(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").touch()
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_mine.py").write_text(EMPTY + made("mine"))
    for paths in ((), ("mine",), ("test_mine/mine",), ("tests",)):
        assert load(paths, start=tmp_path).paths == ("test_mine/mine",)


def test_a_whole_path_is_found_outside_the_default_folder(project: Project) -> None:
    project.write("tests/other/test_far.py", EMPTY + made("far") + made("near"))
    project.write("test_top.py", EMPTY + made("top"))
    for path in ("other/test_far/far", "test_top/top"):
        assert load((path,)).paths == (path,)
    with pytest.raises(NotFound, check=code("NoSuchScenario")) as caught:
        load(("other/test_far/fur",))
    assert caught.value.near[0] == "other/test_far/far"


def test_a_file_of_another_project(project: Project, tmp_path: Path) -> None:
    other = tmp_path / "other"
    project.write("other/pyproject.toml", "")
    project.write("other/tests/test_far.py", EMPTY + made("far"))
    project.write("elsewhere/pyproject.toml", "")
    found = load(("../other/tests/test_far.py",), start=tmp_path / "elsewhere")
    [entry] = found.entries
    assert (entry.root, entry.scenario.path) == (other, "test_far/far")
    lone = load_file(other / "tests" / "test_far.py", tmp_path / "elsewhere")
    assert lone.paths == ("test_far/far",)


def test_files_of_two_projects_have_the_root_of_both(project: Project) -> None:
    for name in ("one", "two"):
        project.write(f"{name}/pytest.ini", "")
        project.write(f"{name}/tests/test_far.py", EMPTY + made("far"))
    root = project.root
    assert load(("one/tests",)).root == root / "one"
    assert load(("tests/test_far.py",), start=root / "two").root == root / "two"
    found = load(("one/tests", "two"))
    assert found.root == root
    assert found.paths == ("one/tests/test_far/far", "two/tests/test_far/far")


def test_modules_beside_the_file_are_imported(project: Project) -> None:
    text = "from helpers_of_mine import HISTORY\n" + EMPTY + made("far")
    project.write("tests/deep/test_far.py", text)
    project.write("tests/deep/helpers_of_mine.py", "HISTORY = 'a'\n")
    assert load(("tests/deep/test_far.py",)).paths == ("deep/test_far/far",)
    sys.modules.pop("helpers_of_mine")


def test_modules_are_looked_for_at_the_end_in_the_mode_append(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("pytest.ini", "[pytest]\naddopts = --import-mode=append\n")
    load()
    assert sys.path[0] == str(project.root)
    assert sys.path[-1] == str(project.root / "tests" / "scenarios")


def test_a_file_that_is_no_module(project: Project) -> None:
    project.write("notes.txt", "text")
    [broken] = load(("notes.txt",)).broken
    assert broken.reason == "ImportError: notes.txt is not a Python file"


def test_nearest_knows_paths_and_names() -> None:
    paths = ("scenarios/test_a/two_kernels", "scenarios/test_b/fallbacks")
    assert nearest("two_kernel", paths) == (paths[0],)
    assert nearest("scenarios/test_b/fallback", paths)[0] == paths[1]
    assert nearest("qqq", paths) == ()
