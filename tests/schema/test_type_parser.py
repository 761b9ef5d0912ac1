"""Types in the text of schemas."""

import pytest
from hypothesis import given

from everyorder.runtime.errors.schema import SchemaSyntaxError
from everyorder.runtime.schema.parser import parse_schema, parse_type
from everyorder.runtime.schema.signature import AliasInfo
from everyorder.runtime.schema.type_parser import DEEPEST, LARGEST_SIZE
from everyorder.runtime.schema.types import Type
from tests.schema.programs import PROGRAM, TYPES


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
        ("int[2][]", "a sized list cannot be extended"),
        ("int[2][3]", "a sized list cannot be extended"),
        ("int[2]?[]", "a sized list cannot be extended"),
        ("int[2]??", "a sized list cannot be extended"),
        ("(int[2], int)", "unexpected `[`"),
        ("Tensor?(a!)", "unexpected `(`"),
        ("Tensor(a)!", "unexpected `!`"),
        ("Tensor()", "unexpected `)`"),
        ("Tensor(a->)", "unexpected `)`"),
        ("(int, int)(a)", "unexpected `(`"),
        ("Future(int)(a)", "unexpected `(`"),
        (
            "(Tensor(a), int)",
            "an alias annotation inside another type has no meaning",
        ),
        ("Foo", "`Foo` is not a type"),
        ("SymFloat", "`SymFloat` is not a type"),
        ("Dimname", "`Dimname` is not a type"),
        ("_t", "`_t` is not a type"),
        ("if", "unexpected keyword `if`"),
        ("Future", "unexpected name"),
        ("Future()", "the number of types is wrong"),
        ("Dict(int)", "the number of types is wrong"),
        ("Dict(t, int)", "a t cannot be the key of a dictionary"),
        ("Dict(int?, int)", "a int? cannot be the key of a dictionary"),
        ("Union(int)", "the number of types is wrong"),
        ("int[-1]", "unexpected `-`"),
        ("int[1.5]", "this is not the size of a list"),
        ("int[1e1]", "this is not the size of a list"),
        ("int[99999999999999999999]", "this is not the size of a list"),
        (f"int[{LARGEST_SIZE + 1}]", "this is not the size of a list"),
        ("__torch__.torch.models.a.B", "this is not the path of a class"),
        ("int" + "[]" * DEEPEST, "this type is nested too deeply"),
        (f"Union({', '.join(['int'] * 33)})", "this union has too many members"),
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
`tensor` is not a type
    f(tensor x) -> t
      ~~~~~^
Did you mean Tensor?"""
    )


@pytest.mark.parametrize(
    ("text", "printed"),
    [
        ("Function", None),
        ("PyObject?", None),
        ("NamedTuple(__torch__.P, x: int, y: Tensor[])", None),
        ("NamedTuple(__torch__.P)[]", None),
        (
            "NamedTuple(__torch__.a.None.in,x:SymInt)",
            "NamedTuple(__torch__.a.None.in, x: int)",
        ),
        ("__torch__.tree.Node", None),
        ("__torch__.tree.Node(a!)", None),
        ("__torch__.tree.Node?[]", None),
        ("Dict(str, __torch__.paint.Colour)", None),
        ("Future[int]", "Future(int)"),
        ("RRef[Await(__torch__.tree.Node)]", "RRef(Await(__torch__.tree.Node))"),
        ("Dict[str, int]", "Dict(str, int)"),
        ("Future(int)[]", None),
        ("__torch__.torch.classes.programs.Thing", None),
    ],
)
def test_types_of_programs(text: str, printed: str | None) -> None:
    def print_again(text: str) -> str:
        return str(parse_schema(f"f({text} x) -> ()", namespace=PROGRAM).arguments[0])

    assert print_again(text) == print_again(printed or text) == f"{printed or text} x"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (
            "int[] | str",
            """\
unexpected `|`
    int[] | str
          ^
Expected nothing more.""",
        ),
        (
            "Tensor(a)?",
            """\
an alias annotation is not part of a type
    Tensor(a)?
    ~~~~~~~~~^""",
        ),
        (
            "__torch__.paint.Color[]",
            """\
no type __torch__.paint.Color is declared
    __torch__.paint.Color[]
    ~~~~~~~~~~~~~~~~~~~~^
Did you mean __torch__.paint.Colour?""",
        ),
        (
            "Function_",
            """\
`Function_` is not a type
    Function_
    ~~~~~~~~^
Did you mean Function?""",
        ),
        (
            "NamedTuple(P, x: int, x: str)",
            """\
`x` is given twice
    NamedTuple(P, x: int, x: str)
                          ^
Each element needs a different name.""",
        ),
        (
            "NamedTuple(P, int)",
            """\
unexpected `)`
    NamedTuple(P, int)
                     ^
Expected `:` and the type of the element.""",
        ),
        (
            "Future[int)",
            """\
unexpected `)`
    Future[int)
              ^
Expected `,` and another type, or `]`.""",
        ),
        (
            "__torch__.torch.classes.programs.Other",
            """\
no class programs.Other is registered
    __torch__.torch.classes.programs.Other
    ~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~^
Register the class before a schema names it.""",
        ),
    ],
)
def test_types_of_programs_that_are_refused(text: str, error: str) -> None:
    with pytest.raises(SchemaSyntaxError) as caught:
        parse_type(text, namespace=PROGRAM)
    assert str(caught.value) == error
    assert [entry.name for entry in caught.traceback][1:] == ["parse_type"]


@pytest.mark.parametrize(
    "text",
    ["Function", "PyObject", "NamedTuple(P)", "Future[int]", "__torch__.tree.Node"],
)
def test_schemas_of_operators_do_not_have_the_types_of_programs(text: str) -> None:
    with pytest.raises(SchemaSyntaxError):
        parse_type(text)


@pytest.mark.spec("script 6.3", "all types")
@given(TYPES)
def test_every_type_prints_as_text_that_is_read_as_that_type(written: Type) -> None:
    assert parse_type(str(written), namespace=PROGRAM) is written
