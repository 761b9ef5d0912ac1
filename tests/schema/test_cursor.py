"""Moving through tokens, and the errors that come of it."""

import pytest

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.tokenizer import Cursor


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


GRAPH = """\
graph(%x.1 : Tensor,
      %y : int[]):  # a.py:1:0
  %2 : int = prim::Constant[value=3]()  # a.py:2:4
  %fut.1 : Future(Tensor) = prim::fork_0(%x.1, %2)

   = prim::Print(%2)
  return (%2)
"""


def test_the_lines_of_a_graph_can_be_read() -> None:
    cursor = Cursor(GRAPH)
    assert cursor.expect("name", "a graph").text == "graph"
    cursor.expect("(", "values")
    value = cursor.expect("value", "a value")
    assert value == ("value", "%x.1", 6, 10)
    while not cursor.accept(")"):
        cursor.take()
    cursor.expect(":", "the nodes")
    assert cursor.remark == "a.py:1:0"
    cursor.end_line()
    outputs, kinds, remarks = [], [], []
    while cursor.kind != "return":
        outputs.append(cursor.token.text if cursor.kind == "value" else "")
        while not cursor.accept("="):
            cursor.take()
        kinds.append(cursor.symbol("the kind of the node"))
        while cursor.kind != "newline":
            cursor.take()
        remarks.append(cursor.remark)
        cursor.end_line()
    assert outputs == ["%2", "%fut.1", ""]
    assert kinds == ["prim::Constant", "prim::fork_0", "prim::Print"]
    assert remarks == ["a.py:2:4", "", ""]
    assert [cursor.take().text for _ in range(4)] == ["return", "(", "%2", ")"]
    cursor.end_line()
    cursor.end_line()
    assert cursor.kind == "end"


@pytest.mark.parametrize(
    ("source", "message", "hint", "span"),
    [
        ("prim", "the end of the text", "`::` and the name in the namespace", (4, 4)),
        ("prim:x", "`:`", "`::` and the name in the namespace", (4, 5)),
        ("%x", "a value of a graph", "the kind of the node", (0, 2)),
        ("a::1", "a number", "the name in the namespace", (3, 4)),
    ],
)
def test_a_symbol_has_a_namespace(
    source: str, message: str, hint: str, span: tuple[int, int]
) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        Cursor(source).symbol("the kind of the node")
    assert caught.value.message == f"{message} cannot stand here"
    assert (caught.value.hint, caught.value.span) == (f"Here belongs {hint}.", span)


def test_a_keyword_is_a_word_where_only_a_word_can_stand() -> None:
    assert Cursor("aten::is").symbol("a kind") == "aten::is"
    assert Cursor("None").word("a part of the path") == "None"


def test_a_line_ends_where_nothing_is_left() -> None:
    cursor = Cursor("a b")
    cursor.take()
    with pytest.raises(SchemaSyntaxError) as caught:
        cursor.end_line()
    assert caught.value.hint == "Here belongs nothing more in this line."
