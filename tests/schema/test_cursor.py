"""Moving through tokens, and the errors that come of it."""

import pytest

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.cursor import Cursor


def test_the_end_is_never_passed() -> None:
    cursor = Cursor("a")
    assert cursor.last.text == "a"
    assert cursor.take().text == "a"
    assert [cursor.take().kind, cursor.take().kind] == ["end", "end"]
    assert cursor.following == "end"


def test_accept_reads_only_what_fits() -> None:
    cursor = Cursor("a (")
    assert not cursor.accept("(")
    assert cursor.following == "("
    assert cursor.accept("name")
    assert (cursor.kind, cursor.last.text) == ("(", "a")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x", "a name cannot stand here"),
        ("1", "a number cannot stand here"),
        ("'s'", "a quoted text cannot stand here"),
        ("if", "the keyword `if` cannot stand here"),
        ("->", "`->` cannot stand here"),
        ("", "the end of the text cannot stand here"),
    ],
)
def test_expect_says_what_stands_there_and_what_belongs(
    source: str, message: str
) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        Cursor(source).expect("(", "`(` and the arguments")
    assert caught.value.message == message
    assert caught.value.hint == "Here belongs `(` and the arguments."
    assert caught.value.span == (0, len(source))
