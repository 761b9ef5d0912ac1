"""Expectations in the source: found by position, rewritten and nothing else touched."""

import ast
from pathlib import Path

import pytest
from hypothesis import given

from everyorder.harness.base.errors import DamagedExpectFile, FileError
from everyorder.harness.base.place import Place
from everyorder.harness.expectations import (
    Document,
    InlineEdit,
    Key,
    Store,
    inline_text,
)
from everyorder.harness.expectations.inline import expected_inline, rewritten
from tests.coded import code
from tests.expectations.samples import document, documents

SHORT = document(entries=((Key(()), (("state", "nothing"),)), (Key((0,)), ())))
TEXT = "== {} ==\nstate: nothing\n\n== {1} ==\n"


def place_in(source: str) -> Place:
    """Return the place of the only call of `Scenario` in a source."""
    [call] = [
        node
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "Scenario"
    ]
    return Place(
        "x.py", call.lineno, call.end_lineno, call.col_offset, call.end_col_offset
    )


def written(source: str, before: str = "", value: Document = SHORT) -> str:
    edit = InlineEdit("a/x", place_in(source), before, value)
    return rewritten("x.py", source.encode(), [edit]).decode()


def argument_of(source: str) -> str:
    namespace: dict[str, str] = {}
    exec(source, {"Scenario": lambda *_, expect: expect, "f": str}, namespace)
    return namespace["x"]


def test_the_text_has_the_sections_only() -> None:
    assert inline_text(SHORT) == TEXT
    indented = f"\n{TEXT}".replace("\n", "\n        ")
    for text in (TEXT, f"\n{TEXT}", indented):
        assert expected_inline(text, SHORT) == SHORT
    assert expected_inline(" \n ", SHORT) is None


@given(documents())
def test_every_document_is_read_back_from_the_source(value: Document) -> None:
    source = 'if 1:\n    x = Scenario(1, expect="")\n'
    text = argument_of(written(source, value=value))
    if value.entries:
        read = expected_inline(text, value)
        assert read == value


@pytest.mark.parametrize(
    ("source", "before", "result"),
    [
        (
            'x = Scenario(1, expect="")  # é\n',
            "",
            'x = Scenario(1, expect="""\n== {} ==\nstate: nothing\n\n== {1} ==\n""")'
            "  # é\n",
        ),
        (
            "é = 'ü'; x = Scenario('ä',\n    expect=r'''\n      old\n  ''', )\n",
            "\n      old\n  ",
            "é = 'ü'; x = Scenario('ä',\n    expect=r'''\n      == {} ==\n"
            "      state: nothing\n\n      == {1} ==\n  ''', )\n",
        ),
        (
            'if 1:\n\tx = Scenario(f("expect=1"), expect=("""\\\n\t\told\n\t\t"""))\n',
            "\t\told\n\t\t",
            'if 1:\n\tx = Scenario(f("expect=1"), expect=("""\\\n\t\t== {} ==\n'
            '\t\tstate: nothing\n\n\t\t== {1} ==\n\t\t"""))\n',
        ),
        (
            "x = Scenario(expect='a' \"b\")\n",
            "ab",
            "x = Scenario(expect='''\n== {} ==\nstate: nothing\n\n== {1} ==\n''')\n",
        ),
    ],
)
def test_indentation_quotes_and_everything_else_stay(
    source: str, before: str, result: str
) -> None:
    assert written(source, before) == result
    text = argument_of(result)
    assert expected_inline(text, SHORT) == SHORT
    assert written(result, text) == result


def test_line_ends_stay() -> None:
    source = 'y = 1\r\nx = Scenario(expect="""\r\n  a\r\n  """)\r\n'
    edit = InlineEdit("a/x", place_in(source), "\n  a\n  ", SHORT)
    data = rewritten("x.py", source.encode(), [edit])
    assert data.replace(b"\r\n", b"").count(b"\n") == 0
    assert b"  == {} ==\r\n  state: nothing\r\n\r\n" in data


def test_quotes_in_a_text_are_escaped() -> None:
    value = document(entries=((Key(()), (("a", 'x"""y"\\'),)),))
    for source in ('x = Scenario(expect="")\n', 'x = Scenario(expect=r"")\n'):
        text = argument_of(written(source, value=value))
        assert expected_inline(text, value) == value


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        ("y = ''\nx = Scenario(expect=y)\n", "line 2 has an expression, not a text"),
        ("x = Scenario(expect=f'')\n", "line 1 has an f-string, not a text literal"),
        ("x = Scenario(expect=b'')\n", "line 1 has an expression, not a text literal"),
        ("x = Scenario(expect='' + '')\n", "line 1 has an expression, not a text"),
        ("x = Scenario(**{'expect': ''})\n", "line 1 does not have one call with expe"),
        ("x = Scenario(expect='new')\n", "line 1 has been changed since it was loaded"),
    ],
)
def test_arguments_that_are_not_rewritten(source: str, reason: str) -> None:
    with pytest.raises(FileError, check=code("CannotRewriteArgument")) as caught:
        written(source)
    start = f"x.py: expect= of a/x cannot be rewritten: {reason}"
    assert str(caught.value).startswith(start)
    assert str(caught.value).endswith(
        '. Write expect="" in the call that makes the scenario, or omit expect= for an '
        "expect file."
    )


def test_a_file_that_has_changed_or_cannot_be_parsed() -> None:
    source = 'x = Scenario(expect="")\n'
    edit = InlineEdit("a/x", place_in(source), "", SHORT)
    with pytest.raises(FileError, match="line 1 does not have one call with expect="):
        rewritten("x.py", f"y = 1\n{source}".encode(), [edit])
    with pytest.raises(FileError, match="the file cannot be parsed"):
        rewritten("x.py", b"x = (", [edit])


def test_one_argument_of_two_scenarios() -> None:
    source = 'x = Scenario(expect="")\n'
    one = InlineEdit("a/x", place_in(source), "", SHORT)
    same = InlineEdit("a/y", place_in(source), "", SHORT)
    other = InlineEdit("a/z", place_in(source), "", document())
    assert rewritten("x.py", source.encode(), [one, same]) == written(source).encode()
    with pytest.raises(FileError, match="a/x has the same argument, and another text"):
        rewritten("x.py", source.encode(), [one, other])


def test_a_call_is_found_by_its_line_without_columns() -> None:
    source = 'y = f(1)\nx = Scenario(f(2), expect="")\n'
    edit = InlineEdit("a/x", Place("x.py", 2), "", SHORT)
    assert rewritten("x.py", source.encode(), [edit]) == written(source).encode()


def test_a_text_that_is_not_expectations() -> None:
    with pytest.raises(DamagedExpectFile) as caught:
        expected_inline("\n    == {} ==\n    state nothing\n", SHORT)
    assert str(caught.value).startswith(
        "the text of expect= in scenarios/test_demo/pair:3: expected 'title:' or"
    )


def test_a_store_writes_files_and_arguments_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CI", raising=False)
    file = tmp_path / "tests" / "x.py"
    file.parent.mkdir()
    source = 'x = Scenario(expect="")\n'
    file.write_text(source)
    at = place_in(source)
    place = Place(str(file), at.line, at.end_line, at.column, at.end_column)
    store = Store(tmp_path)
    touched = store.apply(
        {"a/b": document(scenario="a/b")}, [InlineEdit("a/x", place, "", SHORT)]
    )
    assert touched == ("expect/a/b.txt", "tests/x.py")
    assert file.read_text() == written(source)
    outside = Place(str(tmp_path.parent / "y.py"), 1)
    with pytest.raises(FileError, match=r"the file is outside of "):
        store.apply({}, [InlineEdit("a/x", outside, "", SHORT)])


@pytest.mark.parametrize(
    "data",
    [
        b'\xef\xbb\xbfx = Scenario(expect="")\n',
        b'# coding: latin-1\ny = "\xe9"; x = Scenario(expect="")\n',
    ],
)
def test_a_file_of_another_encoding_is_refused(data: bytes) -> None:
    """The columns of the parser were those of another text."""
    edit = InlineEdit("a/x", place_in('x = Scenario(expect="")\n'), "", SHORT)
    with pytest.raises(FileError) as caught:
        rewritten("x.py", data, [edit])
    assert caught.value.code == "CannotRewriteArgument"
