"""Words, numbers, strings and signs."""

import pytest

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.tokenizer import KEYWORDS, Token, tokenize


def _pieces(source: str) -> list[tuple[str, str]]:
    return [(token.kind, token.text) for token in tokenize(source)]


def test_kinds_and_spans() -> None:
    assert tokenize("f::g x->1.") == [
        Token("name", "f", 0, 1),
        Token("::", "::", 1, 3),
        Token("name", "g", 3, 4),
        Token("name", "x", 5, 6),
        Token("->", "->", 6, 8),
        Token("number", "1.", 8, 10),
        Token("end", "", 10, 10),
    ]


@pytest.mark.parametrize(
    "text", ["0", "007", "1.", ".5", "1.5e-3", "1E+5", "2j", "1.5e3j", "9" * 5000]
)
def test_numbers(text: str) -> None:
    assert _pieces(text) == [("number", text), ("end", "")]


@pytest.mark.parametrize(
    "text", ['"a"', "'a'", '"a\\"b"', "''", '"""a\n"b"""', "'''a\\''''", '"a\\\nb"']
)
def test_strings(text: str) -> None:
    assert _pieces(text) == [("string", text), ("end", "")]


@pytest.mark.parametrize("text", ["%0", "%x.1", "%self.l.0.weight", "%_a9"])
def test_values_of_graphs(text: str) -> None:
    assert _pieces(text) == [("value", text), ("end", "")]
    assert _pieces(f"({text}, {text}.)")[1::2] == [
        ("value", text),
        ("value", text),
        (")", ")"),
    ]


def test_signs_stand_for_themselves() -> None:
    signs = "( ) [ ] , : . = ? ! | * - + -> :: ..."
    found = [kind for kind, _ in _pieces(signs)]
    assert " ".join(found) == f"{signs} end"


def test_keywords_are_their_own_kind_but_only_whole() -> None:
    assert _pieces("None Nones")[:2] == [("None", "None"), ("name", "Nones")]
    assert {"from", "lambda", "self"} & KEYWORDS == set()


def test_line_breaks_count_only_outside_brackets_and_not_at_the_begin() -> None:
    assert [kind for kind, _ in _pieces("\n\nf(\n)\n")] == [
        "name",
        "(",
        ")",
        "newline",
        "end",
    ]


def test_comments_vanish() -> None:
    assert _pieces("f # (\n") == [("name", "f"), ("newline", "\n"), ("end", "")]


@pytest.mark.parametrize(
    ("source", "message", "span"),
    [
        ("x=0x10", "this is no number", (2, 6)),
        ("1_000", "this is no number", (0, 5)),
        ("1.5f", "this is no number", (0, 4)),
        ("1.2.3", "this is no number", (0, 5)),
        ("'abc) -> ()", "this quoted text has no end", (0, 11)),
        ('"a\nb"', "this quoted text has no end", (0, 2)),
        ("f() -> ();", "this character means nothing here", (9, 10)),
        ("ä", "this character means nothing here", (0, 1)),
        ("x %", "this character means nothing here", (2, 3)),
        ("%.1", "this character means nothing here", (0, 1)),
        ("\\", "this character means nothing here", (0, 1)),
    ],
)
def test_faults(source: str, message: str, span: tuple[int, int]) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        tokenize(source)
    assert (caught.value.message, caught.value.span) == (message, span)


def test_a_long_run_of_digits_that_is_no_number_is_refused_at_once() -> None:
    # Time squared would be minutes.
    with pytest.raises(SchemaSyntaxError) as caught:
        tokenize(f"f(int x={'1' * 100_000}x)")
    assert caught.value.span == (8, 100_009)
