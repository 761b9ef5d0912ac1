"""What may share memory.

The tables were compared with torch 2.13 by hand; it overlooks the list `w` and its
element in row 3, column 4.
"""

import pytest

from runtime.schema.declaration import ScriptClassType, register_class
from runtime.schema.parser import parse_schema
from runtime.schema.schema import Schema
from runtime.schema.signature import AliasInfo, Argument, OperatorName
from tests.schema.programs import PROGRAM

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
