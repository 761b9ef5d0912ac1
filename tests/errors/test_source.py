"""Excerpts of sources: file, line, column, two lines around, and an aligned marker."""

import ast
import pickle
from unicodedata import category, east_asian_width

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.errors.source import Source, printable, underline

PROGRAM = """\
def f(x, y):
    a = x + y
    b = g(a,
          key=y)  # and so on

    return b
"""
SOURCE = Source(PROGRAM, "a/program.py", 11)


def _node(source: Source, name: str) -> ast.AST:
    """The first node of the source that is written so."""
    tree = ast.parse(source.text)
    ast.increment_lineno(tree, source.line - 1)
    for node in ast.walk(tree):
        if isinstance(node, ast.expr | ast.stmt):
            start, end = source.span(node)
            if source.text[start:end] == name:
                return node
    raise AssertionError(f"{name} is not there")


def _excerpt(source: Source, name: str) -> str:
    return source.excerpt(source.span(_node(source, name)))  # type: ignore[arg-type]  # with a place


@pytest.mark.spec("script 6.9", "excerpts")
def test_two_lines_are_shown_before_and_behind() -> None:
    assert (
        _excerpt(SOURCE, "y)  # and so on"[:1])
        == """\
  a/program.py:12:13
def f(x, y):
    a = x + y
            ~ <--- HERE
    b = g(a,
          key=y)  # and so on"""
    )


@pytest.mark.spec("script 6.9", "excerpts")
def test_every_line_of_the_span_is_marked() -> None:
    assert (
        _excerpt(SOURCE, "g(a,\n          key=y)")
        == """\
  a/program.py:13:9
def f(x, y):
    a = x + y
    b = g(a,
        ~~~~
          key=y)  # and so on
          ~~~~~~ <--- HERE

    return b"""
    )


def test_blank_lines_in_the_span_are_not_marked() -> None:
    start = PROGRAM.index("key")
    assert (
        SOURCE.excerpt((start, len(PROGRAM) - 1))
        == """\
  a/program.py:14:11
    a = x + y
    b = g(a,
          key=y)  # and so on
          ~~~~~~~~~~~~~~~~~~~

    return b
    ~~~~~~~~ <--- HERE
"""
    )


@pytest.mark.parametrize(
    ("text", "span", "excerpt"),
    [
        ("x", (0, 1), "  <text>:1:1\nx\n~ <--- HERE"),
        ("", (0, 0), "  <text>:1:1\n\n~ <--- HERE"),
        ("f(", (2, 2), "  <text>:1:3\nf(\n  ~ <--- HERE"),
        ("f(\n", (2, 3), "  <text>:1:3\nf(\n  ~ <--- HERE\n"),
        ("a\n\n  \nb", (2, 4), "  <text>:2:1\na\n\n~ <--- HERE\n  \nb"),
        ("\tx\ty = 1", (1, 4), "  <text>:1:2\n\tx\ty = 1\n\t~\t~ <--- HERE"),
        ("é = y", (4, 5), "  <text>:1:5\né = y\n    ~ <--- HERE"),
        ("世 = '界' + y", (4, 7), "  <text>:1:5\n世 = '界' + y\n     ~~~~ <--- HERE"),
        ("e\u0301 = y", (5, 6), "  <text>:1:6\ne\u0301 = y\n    ~ <--- HERE"),
        ("a\u202eb\x1b[c", (5, 6), "  <text>:1:6\na b [c\n     ~ <--- HERE"),
    ],
)
def test_drawings(text: str, span: tuple[int, int], excerpt: str) -> None:
    assert Source(text).excerpt(span) == excerpt


def test_columns_of_python_are_bytes_and_ours_are_characters() -> None:
    source = Source("é = 'ä世' + ünï(x)\n", "b.py")
    node = _node(source, "ünï(x)")
    assert isinstance(node, ast.Call)
    assert node.col_offset == 15
    assert source.place(source.span(node)[0]) == (1, 12)
    assert _excerpt(source, "x") == (
        "  b.py:1:16\né = 'ä世' + ünï(x)\n                ~ <--- HERE\n"
    )


def test_a_node_that_says_it_is_elsewhere_is_moved_to_the_text() -> None:
    node = ast.Name("x", lineno=99, col_offset=99, end_lineno=1, end_col_offset=2)
    span = SOURCE.span(node)
    assert span == (len(PROGRAM), len(PROGRAM))
    assert SOURCE.excerpt(span).endswith("    return b\n\n~ <--- HERE")
    node = ast.Name("x", lineno=12, col_offset=4)
    node.end_lineno = node.end_col_offset = None
    assert SOURCE.span(node) == (17, 17)


def test_a_source_is_a_value() -> None:
    assert Source("a") == Source("a") != Source("a", line=2)
    assert SOURCE.place(0) == (11, 1)
    copy = pickle.loads(pickle.dumps(SOURCE))
    assert (copy, copy.excerpt((0, 3))) == (SOURCE, SOURCE.excerpt((0, 3)))


NAMES = st.text("xyzéß世界가", min_size=1, max_size=4).filter(str.isidentifier)
LEAF = st.one_of(NAMES, st.text("aé世\u0301", max_size=3).map(repr))
EXPRESSIONS = st.recursive(
    LEAF,
    lambda inner: st.one_of(
        st.builds("({} + {})".format, inner, inner),
        st.builds("{}({},\t{})".format, NAMES, inner, inner),
        st.builds("[{}, {}]".format, inner, inner),
    ),
    max_leaves=6,
)


def _width(text: str) -> int:
    """Columns by the definition, and tabs to the next eighth."""
    column = 0
    for each in text:
        if each == "\t":
            column += 8 - column % 8
        elif category(each) != "Mn":
            column += 2 if east_asian_width(each) in "WF" else 1
    return column


@given(EXPRESSIONS, st.integers(0, 4), st.integers(0, 4))
def test_the_marker_is_exactly_under_the_node(
    text: str, above: int, below: int
) -> None:
    lines = [*("before" for _ in range(above)), text, *("after" for _ in range(below))]
    source = Source("\n".join(lines), "p.py")
    for node in ast.walk(ast.parse(source.text)):
        if not isinstance(node, ast.expr) or node.lineno != above + 1:
            continue
        start, end = source.span(node)
        at = sum(map(len, lines[:above])) + above
        segment = ast.get_source_segment(source.text, node)
        assert source.text[start:end] == segment is not None
        drawn = source.excerpt((start, end)).split("\n")
        shown = min(above, 2)
        assert drawn[0] == f"  p.py:{above + 1}:{start - at + 1}"
        assert drawn[1 : shown + 2] == [*["before"] * shown, text]
        marker, here = drawn[shown + 2].split(" <--- ")
        assert here == "HERE"
        assert drawn[shown + 3 :] == ["after"] * min(below, 2)
        assert _width(marker) == _width(text[: end - at])
        assert _width(marker[: marker.index("~")]) == _width(text[: start - at])


def test_parts_are_drawn_alone() -> None:
    assert printable("a\x00\tb\u2028") == "a \tb "
    assert underline("a世b", 1, 2) == " ~~"
    assert underline("a世b", 1, 1) == " "
    assert underline("a世b", 2, 2, 1) == "   ~"


def test_offsets_are_what_places_say() -> None:
    source = Source("one\n\ntwo é\n", "f.py", 5)
    for offset in range(len(source.text)):
        assert source.offset(*source.place(offset)) == offset
    # Past the ends of lines and of the text, the nearest character.
    far = ((1, 1), (5, 0), (5, 99), (6, 4), (7, 99), (99, 1))
    assert [source.offset(*place) for place in far] == [0, 0, 3, 4, 10, 11]
