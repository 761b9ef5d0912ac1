"""Every row of what programs have to do with remote calls has tests, which exist."""

from pathlib import Path

import pytest

from tests.docstrings import docstrings
from tests.rpc.script.rows import LEFT_OUT, ROWS

HERE = Path(__file__).parent
TESTS = HERE.parents[1]
# How many rows each section has here; of upstream's tests all 54 and 6.
COUNTS = {
    "0": 7,
    "3": 19,
    "3.10 RRefAPITest": 6,
    "3.10 RRefTypingTest": 3,
    "3.10 LocalRRefTest": 4,
    "3.10 JitRpcOpTest": 12,
    "3.10 FutureTypingTest": 2,
    "3.10 JitRpcTest": 27,
    "3.11": 6,
    "10": 4,
}

rows = [
    pytest.param(row, id=f"{section} {row[0]}")
    for section, found in ROWS.items()
    for row in found
    if row[0] not in LEFT_OUT
]


def exists(test: str) -> bool:
    """Whether there is a test of this name, in the file that it names."""
    module, _, name = test.partition("::")
    paths = [folder / f"{module}.py" for folder in (HERE, TESTS)]
    return any(path.exists() and name in docstrings(path) for path in paths)


@pytest.mark.parametrize("row", rows)
def test_a_row_has_tests(row: tuple[str, ...]) -> None:
    _, *tests = row
    assert tests
    assert [test for test in tests if not exists(test)] == []


def test_the_list_is_whole() -> None:
    assert {section: len(found) for section, found in ROWS.items()} == COUNTS
    of_upstream = [n for section, n in COUNTS.items() if section.startswith("3.10")]
    assert sum(of_upstream) == 54


def test_what_is_left_out_is_exactly_what_has_no_test() -> None:
    bare = [row[0] for found in ROWS.values() for row in found if len(row) == 1]
    assert bare == [*LEFT_OUT]
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())


def test_a_test_that_does_not_exist_is_found() -> None:
    assert exists("test_rows_covered::test_the_list_is_whole")
    assert not exists("test_rows_covered::test_none")
