"""Golden texts: files read back exactly, and failures name the case and its place."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tools.golden import Case, Golden, document, parse, read

TESTS = Path(__file__).parents[1]
# Files that can be read in a review.
MOST_LINES = 1000

SWAP = "[case swap]\nf(a, b)\n[out]\nb, a\n"
SUM = "[case sum]\nf(a, b)\n\n[out]\n\na + b\n\n"


def texts() -> st.SearchStrategy[str]:
    """Complete lines, many of which look like headers, escapes or separators."""
    tricky = st.sampled_from(
        ["", "\\", "\\\\", "[out]", "\\[out]", "[case a]", "[case ]", "[case a", "é"]
    )
    lines = st.lists(tricky | st.text(), max_size=4)
    return lines.map(lambda parts: "".join(f"{part}\n" for part in parts))


NAMES = st.text(min_size=1).filter(str.isprintable)
CASES = st.dictionaries(NAMES, st.tuples(texts(), st.none() | texts()), max_size=3)


@given(CASES)
def test_files_read_back_exactly(cases: dict[str, tuple[str, str | None]]) -> None:
    text = document(Case(name, *parts) for name, parts in cases.items())
    parsed = parse(text.encode().decode(), Path("a.test"))
    assert {case.name: (case.input, case.output) for case in parsed} == cases
    assert len(parsed) == len(cases)
    assert document(parsed) == text


def test_a_file_is_readable() -> None:
    cases = [Case("a[0]", "x\n", "y\n\n"), Case("b", "[out]\n\\\n"), Case("c", "", "")]
    assert document(cases) == (
        "[case a[0]]\nx\n[out]\ny\n\n\n[case b]\n\\[out]\n\\\\\\\n\n[case c]\n[out]\n"
    )
    assert document([Case("d", "a\0b\r\n")]) == "[case d]\n\\a\\x00b\\r\n"


def test_a_case_has_the_line_of_its_output() -> None:
    parsed = parse(f"{SWAP}\n{SUM}\n[case new]\n", Path("a.test"))
    assert [case.place for case in parsed] == ["a.test:3", "a.test:9", "a.test:14"]
    assert [case.output for case in parsed] == ["b, a\n", "\na + b\n\n", None]


@pytest.mark.parametrize(
    "case",
    [Case("a", "x"), Case("a", "", "x"), Case("", "x\n"), Case("a\nb", "x\n")],
    ids=["input", "output", "no name", "long name"],
)
def test_what_cannot_be_written_is_refused(case: Case) -> None:
    with pytest.raises(ValueError, match=r"^invalid "):
        document([case])


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("x\n", 1, "invalid golden text 'x'"),
        (f"\n{SWAP}", 1, "invalid golden text ''"),
        (f"{SWAP}{SUM}", 4, "invalid golden text 'b, a': expected ''"),
        (SWAP.removesuffix("\n"), 4, "invalid golden text 'b, a': expected ''"),
        (f"{SWAP}\\d\\x41\n", 5, "invalid golden text '\\\\d\\\\x41': expected "),
        (f"{SWAP}\\\\x4\n", 5, "invalid golden text "),
        (f"{SWAP}\\é\n", 5, "invalid golden text "),
        (f"{SWAP}a\rb\n", 5, "invalid golden text 'a\\rb': expected '\\\\a\\\\rb'"),
        (f"[out]\n{SWAP}", 1, "`[out]` does not follow an input"),
        (f"{SWAP}[out]\n", 5, "`[out]` does not follow an input"),
    ],
)
@pytest.mark.filterwarnings("ignore:invalid escape sequence")
def test_another_spelling_is_refused(text: str, line: int, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(f"a.test:{line}: {message}")):
        parse(text, Path("a.test"))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two files."""
    (tmp_path / "a.test").write_bytes(SWAP.encode())
    (tmp_path / "b.test").write_bytes(SUM.encode())
    (tmp_path / "notes.txt").write_text("no cases")
    return tmp_path


def test_the_same_output_passes(folder: Path) -> None:
    golden = Golden(folder, "tests.demo")
    assert list(golden.cases) == ["swap", "sum"]
    golden.check("swap", "b, a\n")
    golden.check("sum", "\na + b\n\n")


def test_another_output_is_reported_with_its_place(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = Golden(folder, "tests.demo")
    monkeypatch.chdir(folder)
    with pytest.raises(AssertionError) as caught:
        golden.check("sum", "\na - b\n\n")
    assert str(caught.value).split("\n") == [
        "b.test:4: case `sum` has another output:",
        *("--- expected", "+++ actual", "@@ -1,4 +1,4 @@"),
        *(" ", "-a + b", "+a - b", " ", " "),
        "If the change is right, accept it: run `python -m tests.demo --write`",
    ]


@pytest.mark.parametrize("output", ["b, a", "b, a\n\n", "b, a\r\n", "", "\nb, a\n"])
def test_line_breaks_are_compared(folder: Path, output: str) -> None:
    with pytest.raises(AssertionError, match="another output:\n--- expected"):
        Golden(folder, "tests.demo").check("swap", output)


def test_what_is_missing_is_reported_with_the_command(folder: Path) -> None:
    (folder / "b.test").write_text("[case sum]\na + b\n")
    golden = Golden(folder, "tests.demo")
    with pytest.raises(AssertionError) as caught:
        golden.check("sum", "")
    place = folder / "b.test:1"
    assert str(caught.value) == (
        f"{place}: case `sum` has no `[out]`: run `python -m tests.demo --write`"
    )
    with pytest.raises(AssertionError) as caught:
        golden.check("product", "")
    assert str(caught.value) == (
        f"no case `product` in {folder}: run `python -m tests.demo --write`"
    )


def test_a_name_is_used_once(folder: Path) -> None:
    (folder / "c.test").write_bytes(f"{SUM}\n{SWAP}".encode())
    with pytest.raises(ValueError, match="duplicate case `sum`") as caught:
        Golden(folder, "tests.demo")
    assert str(caught.value) == (
        f"{folder / 'c.test:4'}: duplicate case `sum`: rename or delete it; "
        f"the first one is at {folder / 'b.test:4'}"
    )
    (folder / "b.test").write_bytes(f"{SWAP}\n{SWAP}".encode())
    with pytest.raises(ValueError, match="duplicate case `swap`"):
        Golden(folder / "b.test", "tests.demo")


def test_stale_missing_and_changed_cases_are_reported(folder: Path) -> None:
    golden = Golden(folder, "tests.demo")
    golden.check_inputs({"sum": "f(a, b)\n\n", "swap": "f(a, b)\n"})
    with pytest.raises(AssertionError) as caught:
        golden.check_inputs({"sum": "f(a, b)\n", "product": "a * b\n"})
    assert str(caught.value) == (
        f"no case `product` in {folder}\n"
        f"{folder / 'a.test:3'}: no test uses case `swap`\n"
        f"{folder / 'b.test:4'}: case `sum` has another input\n"
        "Run `python -m tests.demo --write`"
    )


def test_outputs_are_written_into_the_files(folder: Path) -> None:
    (folder / "b.test").write_bytes(f"{SUM}\n[case new]\nx\n".encode())
    golden = Golden(folder, "tests.demo")
    golden.write(lambda case: None if case.name == "swap" else case.input.upper())
    assert (folder / "a.test").read_bytes() == b"[case swap]\nf(a, b)\n"
    assert (folder / "b.test").read_bytes() == (
        b"[case sum]\nf(a, b)\n\n[out]\nF(A, B)\n\n\n[case new]\nx\n[out]\nX\n"
    )


def test_inputs_are_written_into_a_file(tmp_path: Path) -> None:
    file = tmp_path / "new.test"
    for inputs in ({"b": "x\n", "c": "\n"}, {"a": "y\n", "b": "z\n"}):
        Golden(file, "tests.demo").write(lambda case: case.input.upper(), inputs)
        Golden(file, "tests.demo").check_inputs(inputs)
        assert [(case.name, case.output) for case in read(file)] == [
            (name, text.upper()) for name, text in inputs.items()
        ]


@pytest.mark.parametrize("file", sorted(TESTS.rglob("*.test")), ids=lambda f: f.name)
def test_the_files_can_be_reviewed(file: Path) -> None:
    text = file.read_bytes().decode()
    assert document(read(file)) == text
    assert text.count("\n") <= MOST_LINES
