"""Whole schemas: what may share memory, and what a definition must satisfy.

The tables of what is shared were compared with torch 2.13 by hand; it overlooks the
list `w` and its element in row 3, column 4.
"""

import pytest

from everyorder.runtime.errors.call import CallError
from everyorder.runtime.errors.schema import SchemaError
from everyorder.runtime.schema.declared import ScriptClassType, register_class
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import TAGS, Schema, check_definition, check_tags
from everyorder.runtime.schema.signature import (
    AliasInfo,
    AliasKind,
    Argument,
    OperatorName,
)
from everyorder.runtime.schema.types import IntType
from tests.coded import code, coded
from tests.schema.programs import PROGRAM


@pytest.mark.parametrize(
    ("given", "printed"),
    [
        ("f(Tensor x, *) -> ()", "f(Tensor x) -> ()"),
        ("f(*, int x, *, int y) -> ()", "f(*, int x, int y) -> ()"),
        ("f(int x, ...) -> (...)", "f(int x, ...) -> ..."),
        ("f(...) -> (int, ...)", "f(...) -> (int, ...)"),
        ("a::f.o(int x) -> (Tensor)", "a::f.o(int x) -> Tensor"),
        ("f() -> ((str, t)[])", "f() -> ((str, t)[])"),
        ("f() -> ((str, str) y)", "f() -> ((str, str) y)"),
        ("f() -> (int x, int y)", "f() -> (int x, int y)"),
        ("f() -> (int x)", "f() -> int x"),
    ],
)
def test_text(given: str, printed: str) -> None:
    assert str(parse_schema(given)) == printed


def test_equality() -> None:
    def same(left: str, right: str) -> bool:
        return parse_schema(left) == parse_schema(right)

    assert same("f(SymInt x) -> ()", "f(int x) -> ()")
    assert same("f(ScalarType[] x) -> ()", "f(int[] x) -> ()")
    assert not same("f(int[2] x) -> ()", "f(int[] x) -> ()")
    assert not same("f(Tensor(a) x) -> ()", "f(Tensor(b) x) -> ()")
    assert not same("f(int x) -> ()", "f(*, int x) -> ()")
    assert not same("f(int x) -> ()", "f.a(int x) -> ()")
    assert not same("f(SymBool x) -> ()", "f(bool x) -> ()")


def test_the_alias_kind_is_carried_but_not_compared_nor_copied() -> None:
    schema = parse_schema("f(Tensor x) -> Tensor")
    pure = schema.with_alias_kind(AliasKind.PURE_FUNCTION)
    assert pure.alias_kind is AliasKind.PURE_FUNCTION
    assert (pure, hash(pure), str(pure)) == (schema, hash(schema), str(schema))
    named = pure.clone_with_name(OperatorName("g", "o"))
    assert (str(named), named.alias_kind, named.overload) == (
        "g.o(Tensor x) -> Tensor",
        None,
        "o",
    )
    assert str(pure.clone_with_arguments(())) == "f() -> Tensor"
    assert pure.clone_with_arguments(()).alias_kind is None
    assert str(pure.clone_with_returns(())) == "f(Tensor x) -> ()"
    assert pure.clone_with_returns(()).alias_kind is None


def test_where_keyword_only_begins() -> None:
    assert parse_schema("f(int x, *, int y) -> ()").kwarg_only_start == 1
    assert parse_schema("f(int x, int y) -> ()").kwarg_only_start == 2
    assert parse_schema("f() -> ()").kwarg_only_start == 0


@pytest.mark.parametrize(
    ("text", "mutable", "view"),
    [
        ("f(Tensor x) -> Tensor", False, False),
        ("f(Tensor(a) x) -> Tensor(a)", False, True),
        ("f(Tensor(a!) x) -> Tensor(a!)", True, False),
        ("f(Tensor(a) x, Tensor(b!)[] y) -> Tensor(a)", True, False),
        ("f(Tensor! x) -> ()", True, False),
    ],
)
def test_mutable_and_view(text: str, mutable: bool, view: bool) -> None:
    schema = parse_schema(text)
    assert (schema.is_mutable, schema.is_view) == (mutable, view)


def test_binding_gives_what_kernels_see() -> None:
    schema = parse_schema(
        "t::f(Tensor? x, int[2] s=1, *, ScalarType d=float, str k='a') -> ()"
    )
    sizes = [1, 2]
    positional, named = schema.bind((None,), {"s": sizes, "d": 4})
    assert (positional, str(named)) == ([None, [1, 2]], "{'d': int64, 'k': 'a'}")
    assert positional[1] is not sizes
    assert schema.fill_defaults((None, sizes), {"d": 4}) == ((None, [1, 2]), named)
    assert schema.strip_defaults((None, 1), {"d": 6, "k": "b"}) == (
        (None,),
        {"k": "b"},
    )
    again, _ = schema.bind((None,), {})
    again[1].append(3)
    assert schema.bind((None,), {})[0] == [None, [1, 1]]


def test_binding_says_what_does_not_fit() -> None:
    schema = parse_schema("t::f(Tensor x, int a=1) -> ()")
    with pytest.raises(CallError, check=code("WrongArgumentType")) as caught:
        schema.bind((None, "b"), {})
    assert str(caught.value) == (
        "Argument 2 of `t::f`, `a`, takes `int`, but was given a str.\n"
        "  call:   t::f(None, 'b')\n"
        "  schema: t::f(Tensor x, int a=1) -> ()\n"
        "  value:  'b'"
    )


register_class("sharing.Thing")
THING = "__torch__.torch.classes.sharing.Thing"

# Every row is an argument, every column a result.
SCHEMA = parse_schema(
    "f(Tensor(a) x, Tensor[] y, Tensor(*) z, Tensor(b)[] w, Union(Tensor, int)(c) u,"
    " (Tensor, int) t) -> (Tensor(a), Tensor[], Tensor(*)[], Tensor[](*), Tensor(b),"
    " (Tensor, int))"
)
MAY_ALIAS = ["X.....", "......", "......", "......", "......", "......"]
MAY_CONTAIN = ["X.....", ".XXX.X", ".XXX.X", ".XXXXX", "......", ".XXX.X"]


def test_may_alias() -> None:
    assert [
        "".join("X" if SCHEMA.may_alias(i, j) else "." for j in range(6))
        for i in range(6)
    ] == MAY_ALIAS


def test_may_contain_alias() -> None:
    assert [
        "".join("X" if SCHEMA.may_contain_alias(i, j) else "." for j in range(6))
        for i in range(6)
    ] == MAY_CONTAIN


@pytest.mark.parametrize(
    ("text", "alias", "contain"),
    [
        ("f(Tensor(a)? x) -> Tensor(a)", True, True),
        ("f(Any(a) x) -> Any(a)", True, True),
        ("f(int(a) x) -> int(a)", False, False),
        ("f(Tensor(a)[](b) x) -> Tensor[](b)", True, True),
        ("f(Tensor[] x) -> Tensor(*)", False, True),
        ("f(Dict(str, Tensor) x) -> Tensor(*)", False, True),
        ("f(Dict(str, Tensor)(a) x) -> Dict(str, Tensor)(a)", True, True),
        ("f(Future(Tensor) x) -> Tensor(*)", False, True),
        ("f(Future(int) x) -> Tensor(*)", False, False),
        ("f((int, int) x) -> ((Tensor, Tensor))", False, False),
        ("f(Tensor[][] x) -> Tensor(*)", False, True),
        ("f(Tensor(a -> b) x) -> Tensor(a)", False, False),
        ("f(Tensor(a) x) -> Tensor(a)[]", False, True),
        ("f(Tensor(a)[] x) -> Tensor(a)", False, True),
        ("f(Tensor(a)[] x) -> Tensor(b)", False, False),
        ("f(int(a)[] x) -> int(a)", False, False),
        ("f(Await(Tensor) x) -> Tensor(*)", False, True),
        ("f(Await(int) x) -> Tensor(*)", False, False),
        ("f(Tensor(*) x) -> Await(Tensor)", False, True),
        ("f(RRef(Tensor[]) x) -> Tensor(*)", False, True),
        ("f(RRef(str) x) -> Tensor(*)", False, False),
        ("f(Await(Await(Tensor)) x) -> RRef(Tensor)", False, True),
        ("f(Await(t) x) -> t(*)", False, True),
        ("f(t(a) x) -> Tensor(a)", True, True),
        ("f(t[](a) x) -> Tensor[](a)", True, True),
        ("f(t[](a) x) -> u[](a)", True, True),
        ("f(t[](a) x) -> int(a)", False, False),
        ("f(t[](a) x) -> int(b)", False, False),
        ("f(Dict(str, t)(a) x) -> Dict(str, int)(a)", True, True),
        ("f(Dict(str, t)(a) x) -> Dict(str, Tensor)(b)", False, True),
        ("f(Any(a) x) -> Tensor(a)", True, True),
        ("f(Any(a) x) -> int(a)", False, False),
        ("f(Tensor[] x) -> Any", False, True),
        (f"f({THING} x) -> Tensor(*)", False, True),
        (f"f({THING} x) -> Tensor[]", False, True),
        (f"f({THING} x) -> int[]", False, False),
        (f"f({THING}(a) x) -> {THING}(a)", True, True),
        (f"f({THING}(a) x) -> Tensor(a)", False, True),
        (f"f({THING}[] x) -> Tensor(*)", False, True),
        ("f(AnyClassType x) -> Tensor(*)", False, True),
        ("f(Capsule(a) x) -> Tensor(a)", True, True),
        ("f(Storage(a) x) -> Tensor(a)", True, True),
        ("f(Generator(a!) x) -> Generator(a!)", True, True),
        ("f(Generator(*) x) -> Tensor(*)[]", False, False),
        ("f(Union(Tensor[], int) x) -> Tensor(*)", False, True),
        ("f(Tensor[]? x) -> Tensor(*)", False, True),
    ],
)
def test_pairs(text: str, alias: bool, contain: bool) -> None:
    schema = parse_schema(text)
    assert schema.may_alias(0, 0) is alias
    assert schema.may_contain_alias(0, 0) is contain


def test_there_must_be_such_an_argument() -> None:
    with pytest.raises(IndexError):
        SCHEMA.may_alias(6, 0)


@pytest.mark.parametrize("wrapper", ["Future", "Await", "RRef"])
@pytest.mark.parametrize(
    ("element", "result", "shares"),
    [
        ("Tensor", "Tensor", True),
        ("Tensor[]", "Tensor[]", True),
        ("Tensor[]", "Tensor", False),
        ("(int, Tensor)", "Tensor", True),
        ("int", "int", False),
    ],
)
def test_what_holds_a_value_shares_what_the_value_shares(
    wrapper: str, element: str, result: str, shares: bool
) -> None:
    # No text annotates these types: who analyses a graph makes such arguments.
    alias = AliasInfo(("a",), ("a",))
    parsed = parse_schema(f"f({wrapper}({element}) x) -> {result}")
    argument = Argument("x", parsed.arguments[0].type, alias=alias)
    returned = Argument("", parsed.returns[0].type, alias=alias)
    schema = Schema(OperatorName("f"), (argument,), (returned,))
    assert schema.may_alias(0, 0) is shares


@pytest.mark.parametrize(
    ("text", "contain"),
    [
        ("f(__torch__.net.Layer x) -> Tensor(*)", True),
        ("f(__torch__.net.Layer x) -> Tensor[]", True),
        ("f(__torch__.net.Layer x) -> int[]", False),
        # Of itself, and a list of itself; no tensor.
        ("f(__torch__.tree.Node x) -> Tensor(*)", False),
        ("f(__torch__.tree.Node x) -> __torch__.tree.Node(*)", True),
        ("f(__torch__.tree.Node x) -> __torch__.tree.Node[](*)", True),
        ("f(__torch__.tree.Deep x) -> Tensor(*)", True),
        ("f(__torch__.tree.Deep x) -> __torch__.tree.Node(*)", True),
        ("f(__torch__.paint.Colour x) -> Any(*)", False),
        ("f(NamedTuple(P, x: int, y: Tensor) x) -> Tensor(*)", True),
        ("f(NamedTuple(P, x: int) x) -> Tensor(*)", False),
        ("f(PyObject x) -> Tensor(*)", True),
        # A method of an object holds the object.
        ("f(Function x) -> Tensor(*)", True),
        ("f(Function x) -> int(*)", False),
    ],
)
def test_objects_of_programs_hold_what_their_attributes_hold(
    text: str, contain: bool
) -> None:
    schema = parse_schema(text, namespace=PROGRAM)
    assert schema.may_contain_alias(0, 0) is contain


def test_an_object_whose_declaration_is_not_sealed_may_hold_anything() -> None:
    made = PROGRAM.declare(ScriptClassType, "__torch__.growing.Thing")
    text = "f(__torch__.growing.Thing x) -> Tensor(*)"
    assert parse_schema(text, namespace=PROGRAM).may_contain_alias(0, 0)
    made.declaration.seal()
    assert not parse_schema(text, namespace=PROGRAM).may_contain_alias(0, 0)
    PROGRAM.discard(made)


def _wide(count: int) -> Schema:
    return parse_schema(f"a::f({', '.join(f'int x{i}' for i in range(count))}) -> ()")


def test_at_most_64_arguments() -> None:
    check_definition(_wide(64))
    with pytest.raises(SchemaError, check=code("TooManySchemaArguments")) as caught:
        check_definition(_wide(65))
    assert str(caught.value) == (
        "a::f would have 65 arguments; an operator has at most 64.\n"
        "Pass several values in one list."
    )
    assert isinstance(caught.value, SchemaError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(
    ("arguments", "is_vararg", "fault"),
    [
        (("x", "x"), False, "has the name of another argument"),
        (("*x", "y"), False, "is positional, but follows a keyword-only argument"),
        (("x=", "y"), False, "has no default, but follows one that has"),
        (("x", "y="), True, "has a default, but `...` allows none"),
    ],
)
def test_order(arguments: tuple[str, ...], is_vararg: bool, fault: str) -> None:
    made = tuple(
        Argument(text.strip("*="), IntType, default=1, kwarg_only="*" in text)
        if "=" in text
        else Argument(text.strip("*="), IntType, kwarg_only="*" in text)
        for text in arguments
    )
    with pytest.raises(SchemaError, check=code("ArgumentOrder")) as caught:
        check_definition(Schema(OperatorName("f"), made, (), is_vararg))
    assert caught.value.fault == fault
    assert caught.value.argument == made[1].name


def test_order_text() -> None:
    twice = (Argument("x", IntType), Argument("x", IntType))
    with pytest.raises(SchemaError, check=code("ArgumentOrder")) as caught:
        check_definition(Schema(OperatorName("f"), twice, ()))
    assert str(caught.value) == (
        "The argument `x` has the name of another argument.\n    f(int x, int x) -> ()"
    )


@pytest.mark.parametrize(
    ("text", "annotated"),
    [
        ("f(Tensor(a!) x) -> Tensor", "Tensor(a!) x"),
        ("f(Tensor x) -> Tensor(a)", "Tensor(a)"),
    ],
)
def test_a_pure_function_is_not_annotated(text: str, annotated: str) -> None:
    check_definition(parse_schema(text).with_alias_kind(AliasKind.FROM_SCHEMA))
    with pytest.raises(SchemaError, check=code("ImpureFunction")) as caught:
        check_definition(parse_schema(text).with_alias_kind(AliasKind.PURE_FUNCTION))
    assert str(caught.value) == (
        f"A PURE_FUNCTION shares no memory, but `{annotated}` is annotated.\n"
        f"    {text}\n"
        "Drop the annotation, or define the operator as FROM_SCHEMA."
    )
    plain = parse_schema("f(Tensor x) -> Tensor")
    check_definition(plain.with_alias_kind(AliasKind.PURE_FUNCTION))


def test_tags_are_checked() -> None:
    with pytest.raises(SchemaError, check=code("TagMismatch")):
        check_definition(parse_schema("f() -> ()"), ("out",))


TagMismatch = coded(SchemaError, "TagMismatch")


def test_tags_are_sorted_and_each_is_accepted_by_some_schema() -> None:
    assert list(TAGS) == sorted(TAGS)
    assert len(TAGS) == 24
    out = parse_schema("f(Tensor x, *, Tensor(a!) out) -> Tensor(a!)")
    check_tags(out, tuple(tag for tag in TAGS if tag != "inplace"))
    check_tags(parse_schema("f(Tensor(a!) x) -> Tensor(a!)"), ("inplace",))


def test_an_unknown_tag() -> None:
    with pytest.raises(SchemaError, check=code("UnknownTag")) as caught:
        check_tags(parse_schema("f() -> ()"), ("core", "pointwize"))
    assert str(caught.value) == ("unknown tag 'pointwize'. Did you mean pointwise?")
    with pytest.raises(SchemaError, check=code("UnknownTag")) as caught:
        check_tags(parse_schema("f() -> ()"), ("?",))
    assert str(caught.value) == "unknown tag '?'."


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("f(Tensor x) -> Tensor", "it writes to no argument"),
        (
            "f(Tensor(a!) x) -> Tensor(a!)",
            "it writes to `Tensor(a!) x`, which is not a keyword-only Tensor",
        ),
        (
            "f(*, Tensor(a!)[] x) -> ()",
            "it writes to `Tensor(a!)[] x`, which is not a keyword-only Tensor",
        ),
        ("f(*, Tensor(a!) x) -> ()", "it writes to 1 but returns 0"),
        (
            "f(*, Tensor(a!) x, Tensor(b!) y) -> (Tensor(b!), Tensor(a!))",
            "result 1 is `Tensor(b!)`, not the written `Tensor(a!) x`",
        ),
    ],
)
def test_out(text: str, fault: str) -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema(text), ("out",))
    assert caught.value.fields() == {
        "tag": "out",
        "schema": str(parse_schema(text)),
        "fault": fault,
    }


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("f() -> ()", "its first argument is not a positional Tensor"),
        (
            "f(*, Tensor(a!) x) -> Tensor(a!)",
            "its first argument is not a positional Tensor",
        ),
        ("f(int x) -> ()", "its first argument is not a positional Tensor"),
        ("f(Tensor x) -> Tensor", "it does not write to its first argument `Tensor x`"),
        (
            "f(Tensor(a!) x, Tensor(b!) y) -> Tensor(a!)",
            "it also writes to `Tensor(b!) y`",
        ),
        ("f(Tensor(a!) x) -> ()", "its one result is not the written `Tensor(a!) x`"),
        (
            "f(Tensor(a!) x, int y) -> Tensor",
            "its one result is not the written `Tensor(a!) x`",
        ),
    ],
)
def test_inplace(text: str, fault: str) -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema(text), ("inplace",))
    assert caught.value.fault == fault


def test_the_whole_text() -> None:
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema("f(Tensor x) -> Tensor"), ("out",))
    assert (
        str(caught.value)
        == """\
This schema does not fit the tag out: it writes to no argument.
    f(Tensor x) -> Tensor
An out operator writes to keyword-only Tensors and returns exactly those,
in order, with the same annotation: f(*, Tensor(a!) out) -> Tensor(a!)"""
    )
    with pytest.raises(TagMismatch) as caught:
        check_tags(parse_schema("f(Tensor x) -> Tensor"), ("inplace",))
    assert str(caught.value).endswith(
        "\nAn in-place operator writes to its first argument only and returns it,\n"
        "with the same annotation: f(Tensor(a!) self) -> Tensor(a!)"
    )
