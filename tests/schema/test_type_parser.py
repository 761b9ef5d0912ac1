"""Types in the text of schemas."""

import pytest

from runtime.errors.schema import SchemaSyntaxError
from runtime.schema.alias import AliasInfo
from runtime.schema.parser import parse_schema
from runtime.schema.type_parser import DEEPEST, LARGEST_SIZE


def _printed(text: str) -> str:
    return str(parse_schema(f"f({text} x) -> ()").arguments[0])[:-2]


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("int??", "int?"),
        ("int[][2]", None),
        ("Tensor[2]", None),
        ("int?[2]", None),
        ("int?[]", None),
        ("int[]?[]", None),
        ("int[]?[2]?", None),
        ("Tensor??[]", "Tensor?[]"),
        ("DeviceIndex", "int"),
        ("ConstQuantizerPtr", "int"),
        ("None", "NoneType"),
        ("t", None),
        ("number", None),
        ("tensor", None),
        ("()", None),
        ("(SymInt, int)", "(int, int)"),
        ("Dict(str, SymInt)", "Dict(str, int)"),
        ("Dict(str,int)(a!)", "Dict(str, int)(a!)"),
        ("Union(int, float)", "Union(float, int)"),
        ("Union(int, None)", "int?"),
        ("Union(int?, str)?", "Union(int, str)?"),
        ("Union(SymInt, str)(a)", "Union(int, str)(a)"),
        ("Future(t)", None),
        ("Await(t)", None),
        ("RRef(t)", None),
        ("Tensor(a)", None),
        ("Tensor(a!)?", None),
        ("Tensor(a)?[]", None),
        ("Tensor(a)[][]", None),
        ("Tensor(a)[](b)", None),
        ("Tensor(a! -> b)", None),
        ("Tensor(a -> *)", None),
        ("Tensor(b|a)", "Tensor(a|b)"),
        ("Tensor(*|b)", "Tensor(*)"),
        ("Tensor(b|*)", "Tensor(*)"),
        ("Tensor(a->a)", "Tensor(a)"),
        ("Tensor!", None),
        ("Tensor!?", None),
        ("Tensor![]", None),
        ("Tensor![]!", None),
        ("int[2]!", None),
        ("int(a)", None),
        ("Tensor(a!)[2]", None),
        ("Tensor(b)[2](a!)?", None),
        ("int[007]", "int[7]"),
    ],
)
def test_accepted(text: str, printed: str | None) -> None:
    assert _printed(text) == (printed or text)
    assert _printed(printed or text) == (printed or text)


def test_a_list_carries_the_annotation_of_its_elements() -> None:
    alias = parse_schema("f(Tensor(a!)[] x) -> ()").arguments[0].alias
    assert alias == AliasInfo((), (), True, (AliasInfo(("a",), ("a",), True),))
    alias = parse_schema("f(Tensor(a!)[](b) x) -> ()").arguments[0].alias
    element = AliasInfo(("a",), ("a",), True)
    assert alias == AliasInfo(("b",), ("b",), False, (element,))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("int[2][]", "nothing can be made of a sized list"),
        ("int[2][3]", "nothing can be made of a sized list"),
        ("int[2]?[]", "nothing can be made of a sized list"),
        ("int[2]??", "nothing can be made of a sized list"),
        ("(int[2], int)", "`[` cannot stand here"),
        ("Tensor?(a!)", "`(` cannot stand here"),
        ("Tensor(a)!", "`!` cannot stand here"),
        ("Tensor()", "`)` cannot stand here"),
        ("Tensor(a->)", "`)` cannot stand here"),
        ("(int, int)(a)", "`(` cannot stand here"),
        ("Future(int)(a)", "`(` cannot stand here"),
        (
            "(Tensor(a), int)",
            "an alias annotation inside another type has no meaning",
        ),
        ("Foo", "`Foo` is no type"),
        ("SymFloat", "`SymFloat` is no type"),
        ("Dimname", "`Dimname` is no type"),
        ("_t", "`_t` is no type"),
        ("if", "the keyword `if` cannot stand here"),
        ("Future", "a name cannot stand here"),
        ("Future()", "the number of types is wrong"),
        ("Dict(int)", "the number of types is wrong"),
        ("Dict(t, int)", "a t cannot be the key of a dictionary"),
        ("Dict(int?, int)", "a int? cannot be the key of a dictionary"),
        ("Union(int)", "the number of types is wrong"),
        ("int[-1]", "`-` cannot stand here"),
        ("int[1.5]", "this is not the size of a list"),
        ("int[1e1]", "this is not the size of a list"),
        ("int[99999999999999999999]", "this is not the size of a list"),
        (f"int[{LARGEST_SIZE + 1}]", "this is not the size of a list"),
        ("__torch__.torch.models.a.B", "no class lives there"),
        ("int" + "[]" * DEEPEST, "this type is nested too deeply"),
        ("(" * 5000, "this type is nested too deeply"),
    ],
)
def test_rejected(text: str, message: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema(f"f({text} x) -> ()")
    assert caught.value.message == message


def test_limits_are_reached() -> None:
    deep = "int" + "[]" * (DEEPEST - 1)
    assert _printed(deep) == deep
    assert _printed(f"int[{LARGEST_SIZE}]") == f"int[{LARGEST_SIZE}]"


def test_type_variables_can_be_refused() -> None:
    assert str(parse_schema("f(t x) -> t")) == "f(t x) -> t"
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_schema("f(tensor x) -> t", type_variables=False)
    assert (
        str(caught.value)
        == """\
`tensor` is no type
    f(tensor x) -> t
      ~~~~~^
Did you mean Tensor?"""
    )
