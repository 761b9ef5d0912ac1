"""Compare the rows of `spec.toml` with the marks of the tests that prove them.

A mark is `@pytest.mark.spec(section, *rows)` at a test, at a program of `PROGRAMS` that
tests are parametrized with, or in the `pytestmark` of a file.  Marks are read from the
syntax trees: no test is imported, and tests that are skipped here count.
"""

import ast
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SPEC = tomllib.loads((ROOT / "tests/spec.toml").read_text(encoding="utf-8"))
LEFT_OUT: dict[str, str] = SPEC["left_out"]
BOUNDARIES: dict[str, list[str]] = SPEC["boundaries"]


class SpecRow(NamedTuple):
    section: str
    name: str

    def __str__(self) -> str:
        return f'spec("{self.section}", "{self.name}")'


class SpecMark(NamedTuple):
    place: str
    rows: list[SpecRow]
    fault: str = ""


def listed_rows() -> list[SpecRow]:
    """Return the rows that tests must prove, boundaries included."""
    rows = [
        SpecRow(f"{area} {section}", name)
        for area, sections in SPEC["rows"].items()
        for section, names in sections.items()
        for name in names
    ]
    stated = [words for sentences in BOUNDARIES.values() for words in sentences]
    return rows + [SpecRow("boundary", words) for words in stated]


def read_mark(call: ast.Call, place: str, test: str) -> SpecMark:
    """Read one mark at `test`, whose name is the row if the mark names none."""
    words = [
        argument.value
        for argument in call.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    ]
    if not words or len(words) < len(call.args) or call.keywords:
        return SpecMark(place, [], "a mark takes the section and rows as literals")
    section, *names = words
    return SpecMark(place, [SpecRow(section, name) for name in names or [test]])


def marks_in(file: str, text: str) -> Iterator[SpecMark]:
    """Yield the marks of a file, those that prove nothing with their fault."""
    tree = ast.parse(text)
    assigned = {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    programs = {
        node.id
        for node in ast.walk(assigned.get("PROGRAMS", ast.Tuple([])))
        if isinstance(node, ast.Name)
    }
    holders = [
        (node.name, decorator)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if node.name.startswith("test_") or node.name in programs
        for decorator in node.decorator_list
    ]
    if "pytestmark" in assigned:
        holders.append(("pytestmark", assigned["pytestmark"]))
    uses = {
        node: node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        if ast.unparse(node) == "pytest.mark.spec"
    }
    for test, holder in holders:
        for call in ast.walk(holder):
            if isinstance(call, ast.Call) and call.func in uses:
                line = uses.pop(call.func)
                yield read_mark(call, f"{file}:{line}", test)
    for line in uses.values():
        yield SpecMark(f"{file}:{line}", [], "the mark is not at a test")


def faults(rows: list[SpecRow], texts: Mapping[str, str]) -> list[str]:
    """Return what is wrong between the rows and the marks of files, by file."""
    marks = [mark for file in texts for mark in marks_in(file, texts[file])]
    wrong = [f"{mark.place}: {mark.fault}" for mark in marks if mark.fault]
    wrong += [f"listed twice: {row}" for row in {*rows} if rows.count(row) > 1]
    for place, named, _ in marks:
        wrong += [f"{place}: no such row: {row}" for row in named if row not in rows]
    proved = {row for mark in marks for row in mark.rows}
    return wrong + [f"no test proves {row}" for row in rows if row not in proved]


def test_every_row_has_a_test_and_every_mark_a_row() -> None:
    texts = {
        path.relative_to(ROOT).as_posix(): text
        for path in sorted((ROOT / "tests").rglob("*.py"))
        # Most files have no mark: they are not parsed.
        if "pytest.mark.spec" in (text := path.read_text(encoding="utf-8"))
        if path != Path(__file__)
    }
    found = faults(listed_rows(), texts)
    assert not found, "\n".join(found)


def test_what_is_left_out_has_a_reason_and_is_not_listed() -> None:
    listed = {f"{row.section} {row.name}" for row in listed_rows()}
    assert not listed & LEFT_OUT.keys()
    assert all(len(reason) > 20 for reason in LEFT_OUT.values())


def stating(words: str, texts: Mapping[str, str]) -> list[str]:
    """Return the files that state a boundary: modules in their docstrings."""
    found = []
    for file, text in texts.items():
        # The tree of a file is costly, and the words are rarely there.
        if words in " ".join(text.split()):
            python = file.endswith(".py")
            stated = ast.get_docstring(ast.parse(text)) or "" if python else text
            if words in " ".join(stated.split()):
                found.append(file)
    return found


def test_a_boundary_is_stated_in_one_file() -> None:
    paths = [ROOT / "ARCHITECTURE.md", *sorted((ROOT / "runtime").rglob("*.py"))]
    texts = {
        path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
        for path in paths
    }
    for file, sentences in BOUNDARIES.items():
        for words in sentences:
            assert stating(words, texts) == [file], words


def test_words_in_two_files_are_both_reported() -> None:
    texts = {"a.py": '"""It is\nso."""', "b.py": "x = 'It is so'", "c.md": "It is so"}
    assert stating("It is so", texts) == ["a.py", "c.md"]


ONE, TWO = SpecRow("area 1", "one"), SpecRow("area 1", "two")
WHOLE = '@pytest.mark.spec("area 1", "one", "two")\ndef test_it(): ...\n'

# text of a file, its fault
PLANTED = {
    "": f"no test proves {TWO}",
    '@pytest.mark.spec("area 1", "tow")\ndef test_t(): ...': "no such row: ",
    '@pytest.mark.spec("area 2", "two")\ndef test_t(): ...': "no such row: ",
    '@pytest.mark.spec("area 1")\ndef test_t(): ...': "no such row: ",
    '@pytest.mark.spec("area 1", "two")\ndef helper(): ...': "is not at a test",
    'more = pytest.mark.spec("area 1", "two")': "is not at a test",
    '@pytest.mark.spec("area 1", TWO)\ndef test_t(): ...': "as literals",
    "@pytest.mark.spec()\ndef test_t(): ...": "as literals",
}


@pytest.mark.parametrize("text", PLANTED)
def test_a_planted_fault_is_reported(text: str) -> None:
    marked = '@pytest.mark.spec("area 1", "one")\ndef test_it(): ...\n'
    found = faults([ONE, TWO], {"a.py": marked, "b.py": text})
    assert PLANTED[text] in found[0]
    assert found[1:] in ([], [f"no test proves {TWO}"])


@pytest.mark.parametrize(
    "text",
    [
        WHOLE,
        WHOLE.replace("def", "async def"),
        '@pytest.mark.spec("area 1", "one")\n' + WHOLE.replace('"one", ', ""),
        'pytestmark = pytest.mark.spec("area 1", "one", "two")',
        'pytestmark = [pytest.mark.slow, pytest.mark.spec("area 1", "one", "two")]',
        WHOLE.replace("test_it", "program") + "PROGRAMS: Programs = (program,)",
        WHOLE + '@pytest.mark.spec("area 1")\ndef two(): ...\nPROGRAMS = [two]',
    ],
)
def test_marks_of_every_form_are_read(text: str) -> None:
    assert faults([ONE, TWO], {"a.py": text}) == []


def test_a_row_that_is_listed_twice_is_reported() -> None:
    assert faults([ONE, TWO, ONE], {"a.py": WHOLE}) == [f"listed twice: {ONE}"]
