"""ARCHITECTURE.md is true: its map is complete, and imports only point upwards in it.

"Upwards" in the list means downwards in the house: a file imports only files that are
listed above it, so there is no circle.
"""

import ast
import re
from pathlib import Path

import pytest

from runtime.dispatch.deviations import DEVIATIONS

ROOT = Path(__file__).parent.parent
AREAS = ("runtime", "invariants", "harness")
MAP = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
ENTRY = re.compile(r"^- `([\w/]+\.py)`: \S.*$", re.MULTILINE)
LISTED = ENTRY.findall(MAP)
FILES = sorted(
    str(path.relative_to(ROOT).as_posix())
    for area in AREAS
    for path in (ROOT / area).rglob("*.py")
)
# Past this, a file has more than one noun.
MOST_LINES = 600


def type_only(tree: ast.Module) -> set[ast.AST]:
    """The nodes that only a type checker sees."""
    return {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }


def as_file(module: str) -> str | None:
    """The file of a module of ours, None for anybody else's."""
    if module.partition(".")[0] not in AREAS:
        return None
    path = module.replace(".", "/")
    if (ROOT / f"{path}.py").exists():
        return f"{path}.py"
    package = f"{path}/__init__.py"
    return package if (ROOT / package).exists() else None


def imports(file: str) -> set[str]:
    """The files of ours that a file imports, at its top or inside a function."""
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    skipped = type_only(tree)
    found = set()
    for node in ast.walk(tree):
        if node in skipped:
            continue
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            submodules = [f"{node.module}.{alias.name}" for alias in node.names]
            deeper = [name for name in submodules if as_file(name)]
            names = deeper if len(deeper) == len(submodules) else [node.module, *deeper]
        else:
            continue
        found |= {path for path in map(as_file, names) if path is not None}
    return found - {file}


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
