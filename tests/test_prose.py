"""The prose of the product stays readable: budgets that only fall.

A budget is lowered when the figure falls: a figure far below its budget fails, too.
"""

import pytest

from tests.tools.prose import (
    added_lines,
    bindings_of,
    findings_in,
    measure,
    python_files,
    texts_of,
)

# Area -> findings per 1,000 words, percentage of bindings with a headless name.
BUDGETS = {
    "runtime": (1.8, 0.4),
    "harness": (1.5, 0.4),
    "invariants": (1.2, 0.9),
}
# A figure may be this far below its budget.
SLACK = 0.5


@pytest.mark.parametrize("area", BUDGETS)
def test_prose_stays_within_its_budget(area: str) -> None:
    counted = measure(python_files(area))
    rate, share = BUDGETS[area]
    assert rate - SLACK <= counted.rate <= rate, "write plainly, or lower the budget"
    assert share - SLACK <= counted.share <= share, "name the thing held"


def test_a_mannered_text_is_reported() -> None:
    source = '"""Whether nobody is told."""\nx = 1  # it has no name, of its own\n'
    rows = [
        (line, words)
        for docstring, line, text in texts_of(source)
        for words, _ in findings_in(text, docstring=docstring)
    ]
    assert rows == [
        (1, "is told"),
        (1, "nobody"),
        (1, "Whether"),
        (2, "has no name"),
        (2, "of its own"),
    ]


def test_plain_texts_pass() -> None:
    for text in ("Return True if there is no match.", "The parser returns a tree."):
        assert list(findings_in(text, docstring=True)) == []


def test_bindings_are_variables_and_parameters() -> None:
    source = "def f(found, *, kept=1):\n    made = found\n    return made\n"
    assert sorted(bindings_of(source)) == ["found", "kept", "made"]


def test_added_lines_have_their_numbers() -> None:
    diff = (
        "+++ b/a.py\n@@ -1,0 +7,2 @@\n+one\n+two\n-gone\n+++ b/b.py\n@@ -3 +3 @@\n+x\n"
    )
    assert list(added_lines(diff)) == [
        ("a.py", 7, "one"),
        ("a.py", 8, "two"),
        ("b.py", 3, "x"),
    ]
