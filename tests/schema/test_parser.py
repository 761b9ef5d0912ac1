"""Whole schemas from text: accepted, refused, defaults, and the laws of the parser."""

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.parser import (
    parse_name,
    parse_schema,
    parse_schema_or_name,
)
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.strategies import schema_texts
from tests.counting import calls_of

# How many examples of a law `make test` looks at, and `make test-long`.
FEW, MANY = 80, 600


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        (" f () -> ()", "f() -> ()"),
        ("a :: f . b() -> ()", "a::f.b() -> ()"),
        ("\n\n  f() -> ()\n\n", "f() -> ()"),
        ("f(int x,\n int y) -> ()\n", "f(int x, int y) -> ()"),
        ("f(\n) -> (\nint\n)", "f() -> int"),
        ("f() -> () # c", "f() -> ()"),
        ("f(*) -> ()", "f() -> ()"),
        ("f(*, ...) -> ...", "f(...) -> ..."),
        ("f(int int, int Tensor) -> ()", "f(int int, int Tensor) -> ()"),
        (
            "f(int from, int lambda, int self) -> ()",
            "f(int from, int lambda, int self) -> ()",
        ),
        ("f(*, int x=1, int y) -> ()", "f(*, int x=1, int y) -> ()"),
        ("f(int x) -> int[2] y", "f(int x) -> int[2] y"),
    ],
)
def test_accepted(text: str, printed: str) -> None:
    assert str(parse_schema(text)) == printed


@pytest.mark.parametrize(
    ("text", "message", "marked"),
    [
        ("", "unexpected end of the text", ""),
        ("f(int x,) -> ()", "unexpected `)`", ")"),
        ("f(int) -> ()", "unexpected `)`", ")"),
        ("f(int 2) -> ()", "unexpected number", "2"),
        ("f(int x) -> (int,)", "unexpected `)`", ")"),
        ("f(int x)", "unexpected end of the text", ""),
        ("f(int x) -> ", "unexpected end of the text", ""),
        ("f(int x) ->\n ()", "unexpected end of the line", "\n"),
        ("f(int x) -> (int)[]", "unexpected `[`", "["),
        ("f() -> () f() -> ()", "unexpected name", "f"),
        ("f(..., *) -> ...", "`...` is always the last argument", "..."),
        ("f() -> (..., int)", "`...` is always the last result", "..."),
        ("f(int x=1, ...) -> ()", "`...` excludes defaults", "int"),
        ("f(int x, int x) -> ()", "`x` is given twice", "x"),
        (
            "f(int x=1, int y) -> ()",
            "`y` has no default, but follows some",
            "int y",
        ),
        ("f(int if) -> ()", "unexpected keyword `if`", "if"),
        ("if() -> ()", "unexpected keyword `if`", "if"),
        ("f.if() -> ()", "unexpected keyword `if`", "if"),
        ("f.default() -> ()", "`default` cannot name an overload", "default"),
        ("f.__x() -> ()", "`__x` cannot name an overload", "__x"),
        ("a::b::f() -> ()", "unexpected `::`", "::"),
        ("f.a.b() -> ()", "unexpected `.`", "."),
        ("f(int a b) -> ()", "unexpected name", "b"),
        ("f((int a) -> ()", "unexpected name", "a"),
    ],
)
def test_rejected(text: str, message: str, marked: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(text)
    start, end = caught.value.span
    assert (caught.value.message, text[start:end]) == (message, marked)


def test_names() -> None:
    assert parse_name("a::f.o") == OperatorName("a::f", "o")
    assert parse_name("f\n") == OperatorName("f")
    assert parse_schema_or_name("f") == OperatorName("f")
    assert isinstance(parse_schema_or_name("f() -> ()"), Schema)
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_name("x::f.default")
    assert caught.value.span == (5, 12)
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_name("f x")
    assert caught.value.hint == ("Expected `(` and the arguments, or nothing more.")


PARTS = ("a", "_", "f1", "1f", "for", "None", "default", "__x", "", " ", "\n", "é")


def test_the_usual_form_of_a_name_is_read_as_by_the_parser() -> None:
    """Usual names are read without a parser; both say the same of every text."""

    def read(parse: Callable[[str], object], text: str) -> object:
        try:
            return parse(text)
        except SchemaSyntaxError as error:
            return str(error)

    names = 0
    for one, sign, two, dot, three in product(
        PARTS, ("", "::", ":"), PARTS, ("", "."), PARTS
    ):
        text = f"{one}{sign}{two}{dot}{three}"
        expected = read(parse_schema_or_name.__wrapped__, text)
        assert read(parse_name.__wrapped__, text) == expected, text
        names += isinstance(expected, OperatorName)
    assert names > 500


def test_a_name_where_a_schema_is_asked_for_and_the_reverse() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(" a::f.o")
    assert (
        str(caught.value)
        == """\
this is only the name of an operator
     a::f.o
     ~~~~~^
A schema continues with its arguments and results: (...) -> ..."""
    )
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_name("a::f.o(int x) -> ()")
    assert (
        str(caught.value)
        == """\
this is a whole schema
    a::f.o(int x) -> ()
    ~~~~~~~~~~~~~~~~~~^
Only a name is expected here: write a::f.o."""
    )


def test_parsed_schemas_are_remembered_by_text() -> None:
    assert parse_schema("f(int q) -> ()") is parse_schema("f(int q) -> ()")


def test_parsing_costs_some_calls_a_word() -> None:
    parse = parse_schema_or_name.__wrapped__

    def cost(count: int) -> int:
        arguments = ", ".join(f"Scalar a{place}=1" for place in range(count))
        return calls_of(lambda: parse(f"aten::add({arguments}) -> Tensor"))

    one, ten, hundred = cost(1), cost(10), cost(100)
    assert one < 300
    assert hundred - ten < 11 * (ten - one)


# -- The laws: what is generated prints and parses back; any other text is one error.


@settings(max_examples=FEW)
@given(schema_texts())
def test_law_what_is_parsed_prints_as_text_that_parses_to_it(text: str) -> None:
    prints_back(text)


def prints_back(text: str) -> None:
    schema = parse_schema(text)
    again = parse_schema(str(schema))
    assert again == schema
    assert str(again) == str(schema)


ANY_TEXT = st.text(max_size=60)


def _is_total(text: str) -> None:
    try:
        parsed = parse_schema_or_name(text)
    except SchemaSyntaxError as error:
        start, end = error.span
        assert 0 <= start <= end <= len(text)
        lines = str(error).splitlines()
        assert all(len(line) <= 77 for line in lines[1:3])
        return
    assert parse_schema_or_name(str(parsed)) == parsed


@settings(max_examples=FEW)
@given(ANY_TEXT)
def test_law_any_text_is_a_schema_or_one_error(text: str) -> None:
    _is_total(text)


PIECES = st.sampled_from(
    [
        *("f", "a::f", "(", ")", "[", "]", ",", ":", ".", "=", "?", "!", "|", "*"),
        *("-", "+", "->", "...", "::", "1", "2.5", "1j", "0x10", "'a'", '"', "'"),
        *("Tensor", "int", "float", "Dict", "Union", "Future", "Device", "t", "x"),
        *("None", "True", "if", "cpu", "__torch__", "\\", "#", "\n"),
    ]
)
PHRASES = st.lists(PIECES, max_size=40).map(" ".join)


@settings(max_examples=FEW)
@given(PHRASES)
def test_law_any_words_are_a_schema_or_one_error(text: str) -> None:
    _is_total(text)


@settings(max_examples=FEW)
@given(schema_texts(), st.data())
def test_law_a_damaged_schema_is_a_schema_or_one_error(
    text: str, data: st.DataObject
) -> None:
    _is_total(damaged(text, data))


def damaged(text: str, data: st.DataObject) -> str:
    """The text with a few signs replaced by others."""
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, min(len(text), start + 4)))
    piece = data.draw(st.one_of(st.just(""), PIECES, st.text(max_size=2)))
    return str(text[:start] + piece + text[end:])


@pytest.mark.slow
@settings(max_examples=MANY)
@given(schema_texts())
def test_laws_of_more_schemas(text: str) -> None:
    prints_back(text)


@pytest.mark.slow
@settings(max_examples=MANY)
@given(ANY_TEXT, PHRASES, schema_texts(), st.data())
def test_laws_of_more_texts(any_: str, words: str, text: str, data: Any) -> None:
    _is_total(any_)
    _is_total(words)
    _is_total(damaged(text, data))


@pytest.mark.parametrize("piece", ["(", "[", "f(", "int[", "Dict(", "Tensor(a|", "'"])
def test_long_repetitions_neither_hang_nor_exhaust_the_stack(piece: str) -> None:
    _is_total("f(" + piece * 20_000)


def test_an_error_shows_no_frame_from_inside_the_parser() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema("f(Tensor x, Tensro y) -> Tensor")
    frames = [entry.name for entry in caught.traceback]
    assert frames[1:] == ["parse_schema", "parse_schema_or_name"]
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__


def _default(written: str, text: str) -> Any:
    return parse_schema(f"f({written} x={text}) -> ()").arguments[0].default


@pytest.mark.parametrize(
    ("written", "text", "value"),
    [
        ("Tensor", "None", None),
        ("Tensor?", "1", 1),
        ("Generator", "None", None),
        ("Quantizer", "None", None),
        ("int", "-1", -1),
        ("int", "- 1", -1),
        ("int", "007", 7),
        ("int", "9223372036854775807", 2**63 - 1),
        ("int", "-9223372036854775808", -(2**63)),
        ("int", "1.5", 1.5),
        ("int", "1e3", 1000.0),
        ("int", "'a'", "a"),
        ("int", "float", 6),
        ("int", "complex", 9),
        ("int", "long", 4),
        ("int", "strided", 0),
        ("int", "Mean", 1),
        ("int", "contiguous_format", 0),
        ("int?", "float", 6),
        ("SymInt", "1", 1),
        ("float", "1", 1.0),
        ("float", ".5", 0.5),
        ("float", "-0.0", 0.0),
        ("float", "True", True),
        ("float", "1j", 1j),
        ("float", "None", None),
        ("float", "strided", 0.0),
        ("float?", "1", 1),
        ("bool", "1", 1),
        ("bool", "False", False),
        ("str", "None", None),
        ("str", "'q'", "q"),
        ("str", "'a\"b'", 'a"b'),
        ("str", r"'\n\t\\\'\"\101\000'", "\n\t\\'\"A\0"),
        ("str", "'''a'b'''", "a'b"),
        ("str", "'a\\\nb'", "ab"),
        ("str", "'é'", "é"),
        ("Scalar", "True", True),
        ("Scalar", "1", 1),
        ("Scalar", "1.", 1.0),
        ("Scalar", "-1.5j", complex(0, -1.5)),
        ("Scalar", "0.+1.j", 1j),
        ("Scalar", "-1.5-2.j", complex(-1.5, -2)),
        ("complex", "1", 1 + 0j),
        ("complex", "float", 6 + 0j),
        ("complex", "True", True),
        ("ScalarType", "float32", 6),
        ("ScalarType", "int", 3),
        ("ScalarType", "bfloat16", 15),
        ("ScalarType?", "half", 5),
        ("ScalarType", "float", 6),
        ("Layout", "strided", 0),
        ("MemoryFormat", "contiguous_format", 0),
        ("Device", '"cpu"', Device("cpu")),
        ("Device", "'cuda:1'", Device("cuda", 1)),
        ("Device", "cuda:1", Device("cuda", 1)),
        ("Device?", "cpu", Device("cpu")),
        ("Device?", "None", None),
        ("int[]", "[]", ()),
        ("int[]", "[1, 2]", (1, 2)),
        ("int[2]", "1", (1, 1)),
        ("int[2]", "[1]", (1,)),
        ("int[0]", "1", ()),
        ("int[2]?", "1", 1),
        ("int[]?", "None", None),
        ("SymInt[2]", "1", (1, 1)),
        ("ScalarType[]", "[float32, 1]", (6, 1)),
        ("float[]", "[1, 2.5]", (1.0, 2.5)),
        ("bool[2]", "True", (True, True)),
        ("complex[]", "[1, 2j]", (1 + 0j, 2j)),
        ("Any?", "1", 1),
        ("Dict(str, int)?", "None", None),
        ("(int, int)?", "None", None),
    ],
)
def test_accepted_defaults(written: str, text: str, value: object) -> None:
    found = _default(written, text)
    assert found == value
    assert found.__class__ is value.__class__


def test_elements_of_lists_have_the_right_class() -> None:
    assert [e.__class__ for e in _default("float[]", "[1, 2.5]")] == [float, float]
    assert [e.__class__ for e in _default("complex[]", "[1, 2j]")] == [complex] * 2


def test_a_negative_zero_is_zero() -> None:
    assert str(_default("float", "-0.0")) == "0.0"
    assert str(_default("complex", "-0j")) == "0j"


@pytest.mark.parametrize(
    ("written", "text", "message"),
    [
        ("Tensor", "1", "unexpected number"),
        ("Generator", "1", "unexpected number"),
        ("Device", "None", "unexpected keyword `None`"),
        ("Device", "1", "unexpected number"),
        ("Device", "'bogus'", "'bogus' is not a device"),
        ("Device", "'cuda:01'", "'cuda:01' is not a device"),
        ("Device", "cpu:x", "unexpected name"),
        ("int", "--1", "unexpected `-`"),
        ("int", "+1", "unexpected `+`"),
        ("int", "-float", "unexpected name"),
        ("int", "1+2", "defaults are not computed"),
        ("int", "9223372036854775808", "this integer is too large"),
        ("int", "-9223372036854775809", "this integer is too large"),
        ("int", "9" * 5000, "this integer is too large"),
        ("int", "0x10", "invalid number"),
        ("int", "float32", "`float32` is not a default"),
        ("int", "[1]", "unexpected `[`"),
        ("float", "1e400", "this number is too large"),
        ("float", "inf", "`inf` is not a default"),
        ("float", "nan", "`nan` is not a default"),
        ("Layout", "sparse_coo", "`sparse_coo` is not a default"),
        ("ScalarType", "float33", "`float33` is not a default"),
        ("str", r"'\q'", "this escape means nothing"),
        ("str", r"'\18'", "this escape means nothing"),
        ("Any", "None", "an argument of type Any cannot have a default"),
        ("Dict(str, int)", "None", None),
        ("(int, int)", "None", None),
        ("Storage", "None", None),
        ("Stream", "None", None),
        ("t", "1", None),
        ("str[]", "[]", None),
        ("int?[2]", "1", None),
        ("Scalar[]", "[1]", None),
        ("Tensor[]", "None", None),
        ("SymBool", "True", None),
        ("int[]", "1", "unexpected number"),
        ("int[]", "[1", "unexpected `)`"),
        ("int[2]", "None", "this is not an element of a list of int"),
        ("int[2]", "1.5", "this is not an element of a list of int"),
        ("int[]", "[True]", "this is not an element of a list of int"),
        ("bool[]", "[1]", "this is not an element of a list of bool"),
        ("float[]", "[1j]", "this is not an element of a list of float"),
        ("int[]?", "[1]", "unexpected `[`"),
        ("int[2]", "(1,1)", "unexpected `(`"),
    ],
)
def test_rejected_defaults(written: str, text: str, message: str | None) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        _default(written, text)
    message = message or f"an argument of type {written} cannot have a default"
    assert caught.value.message == message


def test_an_escape_is_marked_inside_its_text() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        _default("str", r"'ab\qc'")
    assert (
        str(caught.value)
        == r"""this escape means nothing
    f(str x='ab\qc') -> ()
               ~^
Escape with \n, \t, \\, a quote, or three octal digits."""
    )
