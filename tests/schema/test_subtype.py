"""The order between types."""

import pytest

from runtime.schema.classes import register_class
from runtime.schema.parser import parse_schema
from runtime.schema.subtype import is_subtype
from runtime.schema.types import Type

register_class("subtypes.Thing")
THING = "__torch__.torch.classes.subtypes.Thing"


def _type(text: str) -> Type:
    return parse_schema(f"f({text} x) -> ()").arguments[0].type


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("int", "int"),
        ("SymInt", "int"),
        ("int", "Any"),
        ("int", "int?"),
        ("None", "int?"),
        ("int?", "Scalar?"),
        ("int", "Scalar"),
        ("Scalar", "Union(Scalar, str)"),
        ("Union(int, float)", "Scalar"),
        ("int", "Union(int, str)"),
        ("Union(int, str)", "Union(int, str, Tensor)"),
        ("int?", "Union(int, str, None)"),
        ("(int, int)", "(Scalar, Scalar)"),
        ("Future(int)", "Future(Scalar)"),
        ("Await(int)", "Await(Any)"),
        ("RRef(int)", "RRef(int?)"),
        (THING, "AnyClassType"),
    ],
)
def test_narrow_is_subtype_of_wide_only(left: str, right: str) -> None:
    assert is_subtype(_type(left), _type(right))
    same = _type(left) == _type(right) or left == "SymInt"
    assert is_subtype(_type(right), _type(left)) is same


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("bool", "Scalar"),
        ("int[]", "Scalar[]"),
        ("Dict(str, int)", "Dict(str, Scalar)"),
        ("(int, int)", "(int, int, int)"),
        ("int", "float"),
        ("Future(int)", "Await(int)"),
        ("t", "s"),
    ],
)
def test_unrelated(left: str, right: str) -> None:
    assert not is_subtype(_type(left), _type(right))
    assert not is_subtype(_type(right), _type(left))
