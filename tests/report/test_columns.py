"""Columns of a terminal: wide and combining characters, wrapped and folded lines."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from everyorder.harness.base.columns import (
    columns,
    cut,
    fold_lines,
    padded,
    wrap_lines,
    wrap_words,
)

WIDE = "登録された順序"
TEXTS = st.text(alphabet=st.sampled_from("ab 登é́😀-"), max_size=120)


def test_wide_characters_take_two_columns_and_accents_none() -> None:
    assert [columns(each) for each in ("ab", WIDE, "e\u0301", "😀")] == [2, 14, 1, 2]
    assert [padded(each, 4) for each in ("ab", "登", "e\u0301")] == [
        "ab  ",
        "登  ",
        "e\u0301   ",
    ]


@given(TEXTS, st.integers(8, 40))
def test_lines_fit_unless_a_narrow_word_does_not(text: str, width: int) -> None:
    lines = wrap_words(text, width, "- ", "  ")
    assert "".join(lines).replace(" ", "").removeprefix("-") == text.replace(" ", "")
    for line in lines:
        word = line.removeprefix("- ").strip()
        assert cell_len(line) <= width or (
            " " not in word and cell_len(word) > width - 4
        )


@given(TEXTS, st.integers(8, 40))
def test_folded_lines_fit_and_lose_no_more_than_blanks(text: str, width: int) -> None:
    lines = fold_lines([f"x{text}"], width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == f"x{text}".replace(" ", "")


def test_a_line_is_folded_at_a_blank_if_one_is_near() -> None:
    assert fold_lines(["    -one two three"], 16) == ["    -one two", "      three"]
    assert fold_lines(["    " + "x" * 20], 16) == [
        "    " + "x" * 12,
        "      " + "x" * 8,
    ]
    assert fold_lines(["short", ""], 16) == ["short", ""]


@given(TEXTS, st.integers(8, 40))
def test_a_cut_text_fits(text: str, width: int) -> None:
    short = cut(text, width)
    assert cell_len(short) <= width
    assert short == text or short.endswith("...")


def test_a_name_is_not_broken_and_a_sentence_without_blanks_is() -> None:
    name = "registry." + "x" * 30
    assert wrap_words(f"see {name}", 20) == ["see", name]
    assert wrap_words(WIDE, 8) == ["登録され", "た順序"]
    assert wrap_words("e\u0301" * 4, 2) == ["e\u0301" * 4]


def test_lines_keep_their_margins() -> None:
    text = wrap_lines("one two three\n\n  four five six", 9, "E: ", "    ")
    assert text == "E: one\n    two\n    three\n\n  four\n    five\n    six"


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_a_blank_text_has_no_lines(text: str) -> None:
    assert wrap_words(text, 10, "- ") == []
