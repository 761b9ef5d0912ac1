"""Every row of what futures and awaits have to do has a test, which names it."""

from pathlib import Path

import pytest

from tests.docstrings import docstrings
from tests.futures.rows import ROWS

HERE = Path(__file__).parent
# How many rows each section of the specification has.
COUNTS = {
    "0": 7,
    "1.1": 8,
    "1.2": 9,
    "1.3": 6,
    "1.4": 9,
    "1.8": 3,
    "2.1": 4,
    "2.2": 20,
    "2.3": 1,
    "2.4": 22,
    "10": 7,
    "11.1": 3,
    "13": 2,
    "P1": 1,
}

rows = [
    pytest.param(section, row, id=f"{section} {row[0]}")
    for section, found in ROWS.items()
    for row in found
]


def docstring(test: str) -> str:
    """The docstring of a test; KeyError if there is none of that name."""
    module, _, name = test.partition("::")
    return docstrings(HERE / f"{module}.py")[name]


@pytest.mark.parametrize(("section", "row"), rows)
def test_a_row_has_tests_that_name_it(section: str, row: tuple[str, ...]) -> None:
    name, *tests = row
    assert tests, "neither a test nor a reason"
    if "::" not in tests[0]:
        [reason] = tests
        assert len(reason) > 10
        return
    # Of some sections each row has a number of its own.
    cited = name.partition(" ")[0] if section in ("0", "10") else section
    for test in tests:
        head, _, _ = docstring(test).partition(":")
        assert cited in head.split(", "), test


def test_the_list_is_whole() -> None:
    assert {section: len(found) for section, found in ROWS.items()} == COUNTS
    for section, found in ROWS.items():
        names = [name for name, *_ in found]
        assert len(names) == len({*names}), section


def test_a_test_that_does_not_exist_is_found() -> None:
    with pytest.raises(KeyError):
        docstring("test_future::none")
    with pytest.raises(FileNotFoundError):
        docstring("test_none::none")
