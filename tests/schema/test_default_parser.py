"""Defaults in the text of schemas."""

from typing import Any

import pytest

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.codes import Device
from runtime.schema.parser import parse_schema


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
def test_accepted(written: str, text: str, value: object) -> None:
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
        ("Tensor", "1", "a number cannot stand here"),
        ("Generator", "1", "a number cannot stand here"),
        ("Device", "None", "the keyword `None` cannot stand here"),
        ("Device", "1", "a number cannot stand here"),
        ("Device", "'bogus'", "'bogus' is no device"),
        ("Device", "'cuda:01'", "'cuda:01' is no device"),
        ("Device", "cpu:x", "a name cannot stand here"),
        ("int", "--1", "`-` cannot stand here"),
        ("int", "+1", "`+` cannot stand here"),
        ("int", "-float", "a name cannot stand here"),
        ("int", "1+2", "defaults are not computed"),
        ("int", "9223372036854775808", "this integer is too large"),
        ("int", "-9223372036854775809", "this integer is too large"),
        ("int", "9" * 5000, "this integer is too large"),
        ("int", "0x10", "this is no number"),
        ("int", "float32", "`float32` is no default"),
        ("int", "[1]", "`[` cannot stand here"),
        ("float", "1e400", "this number is too large"),
        ("float", "inf", "`inf` is no default"),
        ("float", "nan", "`nan` is no default"),
        ("Layout", "sparse_coo", "`sparse_coo` is no default"),
        ("ScalarType", "float33", "`float33` is no default"),
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
        ("int[]", "1", "a number cannot stand here"),
        ("int[]", "[1", "`)` cannot stand here"),
        ("int[2]", "None", "this is no element of a list of int"),
        ("int[2]", "1.5", "this is no element of a list of int"),
        ("int[]", "[True]", "this is no element of a list of int"),
        ("bool[]", "[1]", "this is no element of a list of bool"),
        ("float[]", "[1j]", "this is no element of a list of float"),
        ("int[]?", "[1]", "`[` cannot stand here"),
        ("int[2]", "(1,1)", "`(` cannot stand here"),
    ],
)
def test_rejected(written: str, text: str, message: str | None) -> None:
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
