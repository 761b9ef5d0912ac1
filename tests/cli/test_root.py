"""The root and the folders of imports are those that pytest itself has."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from harness.catalogue import import_folders, root_of, root_of_all

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
