"""ARCHITECTURE.md is true: imports point one way through its table of layers.

A file belongs to the row that names it most exactly: a folder with all below it, or the
file itself.  It imports files of its own row and of rows above, and there is no circle.
"""

import ast
import re
from pathlib import Path

import pytest

from tests.house import (
    BY_STRING,
    FILES,
    ROOT,
    SHARED,
    circles,
    crossing,
    folder_graph,
    foreign_changes,
    import_graph,
    imports,
    naming,
    string_imports,
    tree_of,
)
from tests.tools.deviations import PRINTED, printed

TEXT = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
_, _, BELOW = TEXT.partition("\n## Layers\n")
ROWS = [
    re.findall(r"`([^`]+)`", line.split(" | ")[0])
    for line in BELOW.partition("\n## ")[0].splitlines()
    if line.startswith("| `")
]
ROW_OF = {pattern: row for row, patterns in enumerate(ROWS) for pattern in patterns}
# Past this, a file has a second chapter.
MOST_LINES = 600
MOST_BYTES = 15_000


def layer_of(file: str) -> int:
    """The row that names a file most exactly."""
    naming = [
        pattern
        for pattern in ROW_OF
        if pattern == file or (pattern.endswith("/") and file.startswith(pattern))
    ]
    return ROW_OF[max(naming, key=len)]


def test_the_document_is_short() -> None:
    assert len(TEXT.encode()) <= MOST_BYTES


def test_every_row_names_files_that_are_there() -> None:
    assert sum(map(len, ROWS)) == len(ROW_OF)
    for pattern in ROW_OF:
        assert any(file.startswith(pattern) for file in FILES), pattern
    assert {layer_of(file) for file in FILES} == set(range(len(ROWS)))


@pytest.mark.spec("script 0.14", "one direction")
@pytest.mark.spec("boundary", "**Imports point one way**")
def test_a_file_imports_its_own_layer_and_those_above_it() -> None:
    layers = {file: layer_of(file) for file in FILES}
    lower = [
        f"{file} imports {path}"
        for file in FILES
        for path in imports(file)
        if layers[path] > layers[file]
    ]
    assert not lower


def test_there_is_no_circle() -> None:
    """Of files or folders, imports by string and for type checkers included."""
    for typed in (False, True):
        assert circles(import_graph(typed=typed)) == []
        assert circles(folder_graph(typed=typed)) == []


def test_every_import_by_string_is_listed_with_its_reason() -> None:
    assert {file for file in FILES if string_imports(file)} == {*BY_STRING}


def test_an_import_by_string_is_counted() -> None:
    assert "runtime/kernels/cuda/__init__.py" in imports("runtime/cuda.py")
    assert "runtime/kernels/cuda/__init__.py" not in imports(
        "runtime/cuda.py", strings=False
    )
    assert "harness/scenario/uses.py" in imports("harness/__init__.py")


def test_an_import_of_a_module_of_the_package_itself_is_counted() -> None:
    assert "everyorder/coded_error.py" in imports("runtime/errors/base.py")
    assert "everyorder/coded_error.py" in imports("harness/base/errors.py")
    modules = (ROOT / "everyorder").glob("[!_]*.py")
    assert {path.relative_to(ROOT).as_posix() for path in modules} == {*SHARED}


def test_no_file_changes_a_variable_of_another_module() -> None:
    """What others add to is a `Registry` or a `Hook`: it has handles, and no order."""
    assert {
        file: foreign_changes(file) for file in FILES if foreign_changes(file)
    } == {}


def test_a_change_of_another_modules_variable_is_found(tmp_path: Path) -> None:
    changing = tmp_path / "changing.py"
    changing.write_text(
        """from everyorder.runtime import errors
from everyorder.runtime.tensors.storage import HOST as ROWS
from everyorder.runtime.tensors import storage as memories
OWN = []
OWN.append(1)
ROWS.append(1)
ROWS[1] = 2
ROWS |= {}
del ROWS[1]
memories.MEMORIES.update(a=1)
errors._load = OWN
""",
        encoding="utf-8",
    )
    assert {*foreign_changes(str(changing))} == {
        *("6: ROWS", "7: ROWS", "8: ROWS", "9: ROWS"),
        *("10: memories.MEMORIES", "11: errors._load"),
    }


# What files that begin so may import.
AREAS = {
    "everyorder/": {"everyorder"},
    "runtime/": {"everyorder", "runtime"},
    "invariants/": {"runtime", "invariants"},
    "harness/engine/": {"everyorder", "harness"},
}


@pytest.mark.parametrize("area", AREAS)
def test_areas_keep_apart(area: str) -> None:
    files = [file for file in FILES if file.startswith(area)]
    assert files
    for file in files:
        assert {path.partition("/")[0] for path in imports(file)} <= AREAS[area], file


@pytest.mark.spec("script 0.14", "one direction")
def test_futures_know_of_nothing_but_errors_and_locks() -> None:
    """0.13, 4.9: no messages, no sockets, no tensors."""
    allowed = (
        *("runtime/errors/", "runtime/futures/"),
        *("runtime/base/locks.py", "runtime/base/exceptions.py"),
    )
    for file in FILES:
        if file.startswith("runtime/futures/"):
            assert all(path.startswith(allowed) for path in imports(file)), file


def test_the_second_table_shares_nothing_with_the_first() -> None:
    shared = imports("invariants/second_table.py")
    forbidden = ("dispatch_key", "model", "keyset", "dispatch_table", "local")
    for path in shared:
        if path.startswith("runtime/"):
            assert Path(path).stem not in forbidden, path


def test_a_file_is_a_chapter() -> None:
    for file in FILES:
        text = (ROOT / file).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= MOST_LINES, file
        assert Path(file).stem not in ("utils", "helpers", "common", "misc"), file
        assert ast.get_docstring(tree_of(file)), f"{file} says what it is for"


def test_the_deviations_are_printed_whole() -> None:
    """`python -m tests.tools.deviations` writes them."""
    assert PRINTED.read_text(encoding="utf-8") == printed()


# States, and what states are made of; nothing of these computes a table.
VALUES = {
    "runtime/dispatch/kernel.py",
    "runtime/dispatch/state.py",
    "runtime/dispatch/dispatch_table.py",
    "runtime/dispatch/registration_record.py",
    "runtime/keys/__init__.py",
    "runtime/schema/schema.py",
    "runtime/schema/signature.py",
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


def test_a_crossing_counts_files_below_the_links_of_the_package() -> None:
    from everyorder.runtime import Dispatcher

    crossed = crossing(Dispatcher)
    assert "runtime/dispatch/dispatcher.py" in crossed.files
    assert crossed.calls >= len(crossed.files)
