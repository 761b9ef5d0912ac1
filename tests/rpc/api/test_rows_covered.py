"""Every row of what remote calls have to do has tests, and those exist."""

from pathlib import Path

import pytest

from tests.docstrings import docstrings
from tests.rpc.rows import LEFT_OUT, ROWS

RPC = Path(__file__).parents[1]
# How many rows each section has here.
COUNTS = {
    "0": 6,
    "3.8": 5,
    "4.5": 10,
    "4.6": 5,
    "4.7": 16,
    "4.8": 8,
    "4.11": 5,
    "4.12": 6,
    "8 identity": 7,
    "8 calls": 13,
    "8 errors": 8,
    "8 futures": 7,
    "8 references": 15,
    "8 proxies": 5,
    "8 asynchronous execution": 7,
    "8 ends and timeouts": 10,
    "8 groups": 1,
    "8 dead peers": 1,
    "8 picklers": 2,
    "10": 9,
    "11": 5,
}

rows = [
    pytest.param(row, id=f"{section} {row[0]}")
    for section, found in ROWS.items()
    for row in found
]


def exists(test: str) -> bool:
    """Whether there is a test of this name, in the file that it names."""
    module, _, name = test.partition("::")
    paths = [folder / f"{module}.py" for folder in (RPC, RPC.parent)]
    return any(path.exists() and name in docstrings(path) for path in paths)


@pytest.mark.parametrize("row", rows)
def test_a_row_has_tests(row: tuple[str, ...]) -> None:
    _, *tests = row
    assert tests
    assert [test for test in tests if not exists(test)] == []


def test_the_list_is_whole() -> None:
    assert {section: len(found) for section, found in ROWS.items()} == COUNTS
    seeds = [row[0].partition(" ")[0] for row in ROWS["0"]]
    assert seeds == [f"0.{number}" for number in range(8, 14)]
    lines = [row[0].partition(" ")[0] for row in ROWS["11"]]
    assert lines == [f"11.{number}" for number in range(2, 7)]


def test_what_is_left_out_has_a_reason() -> None:
    assert {"process groups", "distributed autograd"} <= set(LEFT_OUT)
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())


def test_a_test_that_does_not_exist_is_found() -> None:
    assert exists("surface/test_rows_covered::test_the_list_is_whole")
    assert not exists("surface/test_rows_covered::test_none")
    assert not exists("surface/test_none::test_none")
