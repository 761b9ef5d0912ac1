"""Words, numbers, strings and signs; moving through them; what errors come of it."""

import pytest

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.schema.tokenizer import KEYWORDS, Cursor, Token, tokenize


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
        ("x=0x10", "invalid number", (2, 6)),
        ("1_000", "invalid number", (0, 5)),
        ("1.5f", "invalid number", (0, 4)),
        ("1.2.3", "invalid number", (0, 5)),
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
        ("x", "unexpected name"),
        ("1", "unexpected number"),
        ("'s'", "unexpected quoted text"),
        ("if", "unexpected keyword `if`"),
        ("->", "unexpected `->`"),
        ("", "unexpected end of the text"),
    ],
)
def test_expect_says_what_stands_there_and_what_belongs(
    source: str, message: str
) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        Cursor(source).expect("(", "`(` and the arguments")
    assert caught.value.message == message
    assert caught.value.hint == "Expected `(` and the arguments."
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
        ("prim", "end of the text", "`::` and the name in the namespace", (4, 4)),
        ("prim:x", "`:`", "`::` and the name in the namespace", (4, 5)),
        ("%x", "value of a graph", "the kind of the node", (0, 2)),
        ("a::1", "number", "the name in the namespace", (3, 4)),
    ],
)
def test_a_symbol_has_a_namespace(
    source: str, message: str, hint: str, span: tuple[int, int]
) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        Cursor(source).symbol("the kind of the node")
    assert caught.value.message == f"unexpected {message}"
    assert (caught.value.hint, caught.value.span) == (f"Expected {hint}.", span)


def test_a_keyword_is_a_word_where_only_a_word_can_stand() -> None:
    assert Cursor("aten::is").symbol("a kind") == "aten::is"
    assert Cursor("None").word("a part of the path") == "None"


def test_a_line_ends_where_nothing_is_left() -> None:
    cursor = Cursor("a b")
    cursor.take()
    with pytest.raises(SchemaSyntaxError) as caught:
        cursor.end_line()
    assert caught.value.hint == "Expected nothing more in this line."
