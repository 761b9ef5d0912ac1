"""The marked source line of syntax errors, at the width of a terminal."""

import pickle

import pytest

from everyorder.runtime.errors.schema import SchemaSyntaxError, marked_line
from everyorder.runtime.schema.parser import parse_schema


def _rendered(text: str) -> str:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(text)
    return str(caught.value)


def test_the_fault_is_marked_and_what_belongs_there_is_said() -> None:
    assert (
        _rendered("f(int x y) -> ()")
        == """\
unexpected name
    f(int x y) -> ()
            ^
Expected `,` and another argument, or `)`."""
    )
    assert (
        _rendered("f(Tensr x) -> ()")
        == """\
`Tensr` is not a type
    f(Tensr x) -> ()
      ~~~~^
Did you mean Tensor?"""
    )
    assert (
        _rendered("f(Zzz x) -> ()")
        == """\
`Zzz` is not a type
    f(Zzz x) -> ()
      ~~^
Common types are Tensor, int, SymInt, float, bool, Scalar and str."""
    )
    assert (
        _rendered("f(int x, str x) -> ()")
        == """\
`x` is given twice
    f(int x, str x) -> ()
                 ^
Each argument needs a different name."""
    )
    assert (
        _rendered("f(int x=0x10) -> ()")
        == """\
invalid number
    f(int x=0x10) -> ()
            ~~~^
Write a decimal number, such as 16 or 1.5e-3."""
    )


def test_a_fault_without_hint_ends_with_the_marker() -> None:
    assert (
        _rendered("f() -> ();")
        == """\
this character means nothing here
    f() -> ();
             ^"""
    )


def test_the_end_of_the_text_is_marked_behind_it() -> None:
    assert (
        _rendered("f(int x")
        == """\
unexpected end of the text
    f(int x
           ^
Expected `,` and another argument, or `)`."""
    )


def test_only_the_line_of_the_fault_is_shown() -> None:
    assert (
        _rendered("f(\n  int x,\n  int x\n) -> ()")
        == """\
`x` is given twice
      int x
          ^
Each argument needs a different name."""
    )


def test_a_long_line_is_cut_around_the_fault() -> None:
    arguments = ", ".join(f"Tensor input{i}" for i in range(20))
    assert (
        _rendered(f"f({arguments}, Tensr y, {arguments[:40]}) -> ()")
        == """\
`Tensr` is not a type
    17, Tensor input18, Tensor input19, Tensr y, Tensor input0, Tensor input
                                        ~~~~^
Did you mean Tensor?"""
    )


def test_the_marker_stands_under_what_is_printed() -> None:
    assert marked_line("a\tb\x00c", (4, 5)) == ("a\tb c", " \t  ^")
    assert marked_line("f(é 世界 x) y", (4, 6)) == ("f(é 世界 x) y", "    ~~~^")
    assert marked_line("ab", (2, 2)) == ("ab", "  ^")
    assert marked_line("ab\ncd", (2, 5)) == ("ab", "  ^")


def test_an_error_crosses_a_process_whole() -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema("f(")
    copy = pickle.loads(pickle.dumps(caught.value))
    assert (
        copy.fields()
        == caught.value.fields()
        == {
            "message": "unexpected end of the text",
            "source": "f(",
            "span": (2, 2),
            "hint": "Expected a type.",
        }
    )
    assert isinstance(copy, ValueError)
