"""Escapes are inverse, and what is written survives any editor."""

import pytest
from hypothesis import given

from harness.expectations.document import block, escape, unblock, unescape
from tests.expectations.samples import TEXTS


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("", r"\e"),
        ("plain: text = é 漢", "plain: text = é 漢"),
        ("a\\b", r"a\\b"),
        ("a\nb", r"a\nb"),
        ("tab\tinside", "tab\tinside"),
        ("tab at the end\t", r"tab at the end\x09"),
        ("two blanks  ", r"two blanks \x20"),
        ("\r\x00\x1b\x7f", r"\x0d\x00\x1b\x7f"),
        ("a\u2028b\u202e\ufeff", r"a\u2028b\u202e\ufeff"),
        ("a\u3000", r"a\u3000"),
        ("\ud800", r"\ud800"),
        (r"\e", r"\\e"),
    ],
)
def test_escape(text: str, written: str) -> None:
    assert escape(text) == written
    assert unescape(written) == text


def test_a_character_beyond_the_basic_plane_can_be_written_by_number() -> None:
    assert unescape(r"\U0001f600") == "\U0001f600"


@pytest.mark.parametrize("written", [r"a\q", r"\x4", r"\u12", "end\\", r"x\e"])
def test_an_unknown_escape_is_refused(written: str) -> None:
    with pytest.raises(ValueError, match="is no escape of an expect file"):
        unescape(written)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("\n", [r"\e"]),
        ("a\n", ["a"]),
        ("a\nb", ["a", "b\\"]),
        ("a\n\n", ["a", r"\e"]),
        ("a\\\n", ["a\\\\"]),
        ("a\n\\", ["a", "\\\\\\"]),
        ("\n\nx", [r"\e", r"\e", "x\\"]),
    ],
)
def test_block(text: str, lines: list[str]) -> None:
    assert block(text) == lines
    assert unblock(lines) == text


@given(TEXTS)
def test_no_text_is_lost(text: str) -> None:
    assert unescape(escape(text)) == text
    assert unblock(block(text + "\n")) == text + "\n"
    lines = block("x\n" + text)
    assert unblock(lines) == "x\n" + text
    for line in (*lines, escape(text)):
        assert line == line.rstrip() != ""
        assert line.splitlines() == [line]
        assert line.encode().decode() == line
