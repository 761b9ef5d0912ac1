"""ARCHITECTURE.md is true: its map is complete, and imports only point upwards in it.

"Upwards" in the list means downwards in the house: a file imports only files that are
listed above it, so there is no circle.
"""

import ast
import re
from pathlib import Path

import pytest

from runtime.dispatch.deviations import DEVIATIONS
from tests.house import FILES, ROOT, circles, imports, naming

MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- `([\w/]+\.py)`: \S.*$", re.MULTILINE)
LISTED = ENTRY.findall(MAP)
# Past this, a file has more than one noun.
MOST_LINES = 600


def test_every_file_is_listed_once() -> None:
    assert sorted(LISTED) == FILES


@pytest.mark.parametrize("file", FILES)
def test_a_file_imports_only_files_listed_above_it(file: str) -> None:
    above = set(LISTED[: LISTED.index(file)])
    assert imports(file) <= above, sorted(imports(file) - above)


@pytest.mark.parametrize("file", FILES)
def test_areas_keep_apart(file: str) -> None:
    areas = {path.partition("/")[0] for path in imports(file)}
    if file.startswith("runtime/"):
        assert areas <= {"runtime"}
    elif file.startswith("invariants/"):
        assert areas <= {"runtime", "invariants"}
    elif file.startswith("harness/engine/"):
        assert areas <= {"harness"}


def test_futures_know_of_nothing_but_errors_and_locks() -> None:
    """0.13, 4.9: no messages, no sockets, no tensors."""
    allowed = ("runtime/errors/", "runtime/futures/", "runtime/locks.py")
    for file in FILES:
        if file.startswith("runtime/futures/"):
            assert all(path.startswith(allowed) for path in imports(file)), file


def test_the_second_table_shares_nothing_with_the_first() -> None:
    shared = imports("invariants/second_table.py") | imports(
        "invariants/second_model.py"
    )
    forbidden = ("aliases", "model", "keyset", "rules", "recipe", "masks", "local")
    for path in shared:
        if path.startswith("runtime/"):
            assert Path(path).stem not in forbidden, path


@pytest.mark.parametrize("file", FILES)
def test_a_file_is_one_noun(file: str) -> None:
    text = (ROOT / file).read_text(encoding="utf-8")
    assert len(text.splitlines()) <= MOST_LINES
    assert Path(file).stem not in ("utils", "helpers", "common", "misc")
    assert ast.get_docstring(ast.parse(text)), "a module says what is true only there"


def test_the_deviations_are_printed_whole() -> None:
    _, _, printed = MAP.partition("\n## Deviations\n")
    rows = [line.split(" | ")[0][2:] for line in printed.splitlines() if "|" in line]
    assert rows[2:] == [each.what.replace("|", "\\|") for each in DEVIATIONS]
    for each in DEVIATIONS:
        for text in (each.upstream, each.ours, each.why):
            assert text.replace("|", "\\|") in printed, each.what


# States, and what states are made of; nothing of these computes a table.
VALUES = {
    "runtime/dispatch/entry.py",
    "runtime/dispatch/kernel.py",
    "runtime/dispatch/reading.py",
    "runtime/dispatch/recipe.py",
    "runtime/dispatch/state.py",
    "runtime/dispatch/table.py",
    "runtime/dispatch/token.py",
    "runtime/keys/__init__.py",
    "runtime/schema/argument.py",
    "runtime/schema/names.py",
    "runtime/schema/schema.py",
    "runtime/schema/types.py",
}


def test_the_laws_see_values_only() -> None:
    seen = {
        path
        for file in FILES
        if file.startswith("invariants/")
        for path in imports(file)
        if path.startswith("runtime/")
    }
    assert seen <= VALUES, sorted(seen - VALUES)


def test_a_circle_is_found() -> None:
    graph = {
        "a": frozenset({"b"}),
        "b": frozenset({"c"}),
        "c": frozenset({"b", "d"}),
        "d": frozenset({"elsewhere"}),
    }
    assert circles(graph) == [["b", "c"]]
    assert circles({**graph, "c": frozenset({"d"})}) == []


def test_files_that_name_an_operator_are_found() -> None:
    files = naming("sigmoid")
    assert "runtime/errors/source.py" not in files
    assert any(each.startswith("runtime/operators/") for each in files)
