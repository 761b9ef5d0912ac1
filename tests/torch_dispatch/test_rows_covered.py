"""Every row of what dispatch to Python has to do has a test, which names it."""

from pathlib import Path

import pytest

from tests.docstrings import docstrings
from tests.torch_dispatch.rows import ROWS
from tests.torch_dispatch.test_rows_programs import PROGRAMS

TESTS = Path(__file__).parents[1]
# How many rows each section of the specification has.
COUNTS = {
    "0.2": 13,
    "3.13": 4,
    "5.7": 4,
    "7.1": 4,
    "7.2": 4,
    "7.3": 7,
    "7.4": 7,
    "7.5": 2,
    "7.6": 7,
    "7.7": 3,
    "7.8": 2,
    "7.9": 3,
    "7.10": 3,
    "7.11": 5,
    "7.12": 3,
    "9.2": 18,
    "8.4": 72,
}
# Who plays a row of 0.2 or of another area cites the section that says more.
CITED_ELSEWHERE = ("0.2", "3.13", "7.9", "7.10")

# Rows of upstream's that one docstring names together, by what it calls them.
SHORT = {
    f"test_{name}_slow_path": f"{name}"
    for name in ("is_contiguous", "strides", "sizes", "dim", "device", "layout")
}
SHORT["test_deepcopy_wrapper_subclass"] = "deepcopy"
SHORT["test_deepcopy_wrapper_subclass_with_clone_returning_different_type"] = "deepcopy"

rows = [
    pytest.param(section, row, id=f"{section} {row[0]}")
    for section, found in ROWS.items()
    for row in found
]


def docstring(test: str) -> str:
    """The docstring of a test or a program; KeyError if there is none of that name."""
    module, _, name = test.partition("::")
    if module == "programs":
        found = {each.__name__: each.__doc__ for each in PROGRAMS}[name] or ""
        return " ".join(found.split())
    module = module if "/" in module else f"python_dispatch/{module}"
    return docstrings(TESTS / f"{module}.py")[name]


@pytest.mark.parametrize(("section", "row"), rows)
def test_a_row_has_tests_that_name_it(section: str, row: tuple[str, ...]) -> None:
    name, *tests = row
    assert tests, "neither a test nor a reason"
    if "::" not in tests[0]:
        [reason] = tests
        assert len(reason) > 10
        return
    texts = [docstring(test) for test in tests]
    elsewhere = all("/" in test for test in tests)
    if elsewhere or section in CITED_ELSEWHERE:
        return
    if section == "8.4":
        wanted = SHORT.get(name, name.rpartition("test_")[2])
        assert any("8.4" in text and wanted in text for text in texts)
    else:
        assert any(section in text for text in texts)


def test_the_list_is_whole() -> None:
    assert {section: len(found) for section, found in ROWS.items()} == COUNTS
    for section, found in ROWS.items():
        names = [name for name, *_ in found]
        assert len(names) == len({*names}), section


def test_a_test_that_does_not_exist_is_found() -> None:
    for missing in ("programs::none", "test_modes::none", "schema/test_defaults::none"):
        with pytest.raises(KeyError):
            docstring(missing)
    with pytest.raises(FileNotFoundError):
        docstring("test_none::none")
