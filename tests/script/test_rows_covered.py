"""Every row of what scripts have to do has tests, and those exist."""

import ast
from functools import cache
from pathlib import Path

import pytest

from tests.docstrings import docstrings
from tests.futures.rows import ROWS as FUTURES
from tests.script.rows import MISSING, ROWS, STATED

TESTS = Path(__file__).parents[1]
# How many rows each section has here.
COUNTS = {
    "0": 17,
    "1.9": 17,
    "6.1": 3,
    "6.2": 8,
    "6.3": 5,
    "6.4": 4,
    "6.5": 5,
    "6.6": 3,
    "6.7": 9,
    "6.8": 4,
    "6.9": 6,
    "6.10": 3,
}

rows = [
    pytest.param(row, id=f"{section} {row[0]}")
    for section, found in ROWS.items()
    for row in found
    if f"{section} {row[0]}" not in MISSING
]


def exists(test: str) -> bool:
    """Whether there is a test of this name, in the file that it names."""
    module, _, name = test.partition("::")
    path = TESTS / f"{module}.py"
    return path.exists() and name in docstrings(path)


@pytest.mark.parametrize("row", rows)
def test_a_row_has_tests(row: tuple[str, ...]) -> None:
    _, *tests = row
    assert tests
    assert [test for test in tests if not exists(test)] == []


def test_the_list_is_whole() -> None:
    assert {section: len(found) for section, found in ROWS.items()} == COUNTS
    # Of futures: the 22 rows of upstream's tests, each with a test there.
    assert len(FUTURES["2.4"]) == 22
    assert all(exists(f"futures/{test}") for _, *of in FUTURES["2.4"] for test in of)
    seeds = {row[0].partition(" ")[0] for row in ROWS["0"]}
    assert seeds == {f"0.{n}" for n in (2, 4, 7, *range(14, 25))}
    assert [row[0].partition(" ")[0] for row in ROWS["1.9"]] == [
        str(n) for n in range(1, 18)
    ]


@cache
def stated() -> dict[str, str]:
    """What the modules of the runtime and the map say of themselves, on one line."""
    found = {"ARCHITECTURE.md": (TESTS.parent / "ARCHITECTURE.md").read_text("utf-8")}
    for path in sorted((TESTS.parent / "runtime").rglob("*.py")):
        words = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
        found[path.relative_to(TESTS.parent).as_posix()] = " ".join(words.split())
    return found


@pytest.mark.parametrize(("file", "words", "test"), STATED)
def test_a_boundary_is_stated_once_and_has_a_test(
    file: str, words: str, test: str
) -> None:
    assert [name for name, text in stated().items() if words in text] == [file]
    assert exists(test)


def test_what_is_missing_is_exactly_what_has_no_test() -> None:
    bare = [
        f"{section} {row[0]}"
        for section, found in ROWS.items()
        for row in found
        if len(row) == 1
    ]
    assert bare == [*MISSING]
    assert all(len(reason) > 20 for reason in MISSING.values())


def test_a_test_that_does_not_exist_is_found() -> None:
    assert exists("script/test_rows_covered::test_the_list_is_whole")
    assert not exists("script/test_rows_covered::test_none")
    assert not exists("script/test_none::test_none")
