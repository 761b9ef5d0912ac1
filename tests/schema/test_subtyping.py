"""The order of types, and what variables stand for."""

import itertools
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from everyorder.runtime.schema.declared import (
    InterfaceType,
    Namespace,
    ScriptClassType,
    register_class,
)
from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.subtyping import (
    Mismatch,
    is_subtype,
    match,
    misfit,
    optional,
    substitute,
    union,
    variables,
)
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    OptionalType,
    StrType,
    SymIntType,
    TupleType,
    Type,
    TypeVariable,
    fake,
)
from tests.schema.programs import (
    DEEP,
    FORMALS,
    LAYER,
    NODE,
    PROGRAM,
    SEARCHABLE,
    TYPES,
    method,
)

register_class("subtypes.Thing")
THING = "__torch__.torch.classes.subtypes.Thing"


def _type(text: str) -> Type:
    return parse_type(text, namespace=PROGRAM)


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
        ("__torch__.tree.Node", "AnyClassType"),
        ("__torch__.net.Layer", "AnyClassType"),
        ("__torch__.paint.Colour", "AnyEnumType"),
        ("__torch__.tree.Node", "__torch__.tree.Deep"),
        ("__torch__.tree.Node", "__torch__.tree.Searchable"),
        ("__torch__.net.Layer", "__torch__.tree.Deep"),
        ("__torch__.net.Layer", "Union(int, __torch__.tree.Deep)"),
        ("(__torch__.net.Layer, int)", "(__torch__.tree.Deep, Scalar)"),
        ("NamedTuple(P, x: int, y: str)", "(int, str)"),
        ("NamedTuple(P, x: int, y: str)", "(Scalar, Any)"),
        ("NamedTuple(P, x: int)", "NamedTuple(P, x: int?)"),
        ("NamedTuple(P)", "()"),
        ("Function", "Function?"),
        ("PyObject", "Any"),
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
        ("NamedTuple(P, x: int)", "NamedTuple(Q, x: int)"),
        ("NamedTuple(P, x: int)", "NamedTuple(P, y: int)"),
        ("NamedTuple(P, x: int)", "NamedTuple(P, x: str)"),
        ("NamedTuple(P)", "NamedTuple(Q)"),
        ("__torch__.paint.Colour", "AnyClassType"),
        ("__torch__.paint.Colour", "int"),
        ("__torch__.tree.Node", "__torch__.net.Layer"),
        ("__torch__.net.Layer", "__torch__.tree.Searchable"),
        ("__torch__.tree.Node[]", "__torch__.tree.Deep[]"),
        ("Function", "PyObject"),
        ("int", "PyObject"),
    ],
)
def test_unrelated(left: str, right: str) -> None:
    assert not is_subtype(_type(left), _type(right))
    assert not is_subtype(_type(right), _type(left))


def test_an_interface_says_what_does_not_fit() -> None:
    names = Namespace()
    wanted = names.declare(InterfaceType, "__torch__.Wanted")
    wanted.declaration.add_method(
        "run", method(wanted, "run(int x, *, int k=1) -> int")
    )

    def fault(text: str) -> str:
        made = names.declare(ScriptClassType, "__torch__.Made")
        schema = method(made, text)
        made.declaration.add_method(str(schema.name), schema)
        found = misfit(made.declaration, wanted.declaration)
        assert is_subtype(made, wanted) == (found is None)
        return "" if found is None else str(found)

    assert fault("run(int x, *, int k=1) -> int") == ""
    assert fault("run(Scalar x, int k=2, int more=3) -> int") == ""
    fits_not = "its method `run`"
    assert fault("walk(int x) -> int") == f"{fits_not} is missing"
    assert fault("run(int x) -> int") == f"{fits_not} has no argument `k`"
    assert fault("run(int y, int k=1) -> int") == (
        f"{fits_not} has the argument `y` in place of `x`"
    )
    assert fault("run(*, int x, int k=1) -> int") == (
        f"{fits_not} takes `x` by keyword only"
    )
    assert fault("run(int x, int k) -> int") == f"{fits_not} has no default for `k`"
    assert fault("run(str x, int k=1) -> int") == (
        f"{fits_not} takes str for `x`, not int"
    )
    assert fault("run(int x, int k=1, *, int m) -> int") == (
        f"{fits_not} also needs the argument `m`"
    )
    assert fault("run(int x, int k=1) -> (int, int)") == (
        f"{fits_not} returns 2 values, not 1"
    )
    assert fault("run(int x, int k=1) -> int?") == f"{fits_not} returns int?, not int"


def _rings(size: int, odd: int) -> tuple[list[ScriptClassType], list[InterfaceType]]:
    """Classes and interfaces, each of which speaks of all of its own kind.

    The last class returns an int where it should not, if `odd` says so.
    """
    names = Namespace()
    classes = [names.declare(ScriptClassType, f"__torch__.C{i}") for i in range(size)]
    faces = [names.declare(InterfaceType, f"__torch__.I{i}") for i in range(size)]
    kinds: tuple[list[Any], ...] = (classes, faces)
    for kind in kinds:
        for owner, place in itertools.product(kind, range(size)):
            wrong = odd and owner is classes[-1] and place == size - 1
            returned = Argument("", IntType if wrong else kind[place])
            schema = Schema(
                OperatorName(f"m{place}"), (Argument("self", owner),), (returned,)
            )
            owner.declaration.add_method(f"m{place}", schema)
    return classes, faces


@pytest.mark.parametrize("odd", [0, 1])
def test_interfaces_that_speak_of_one_another_are_compared_once(odd: int) -> None:
    """Each pair, not each way from one to another: of those there are 40!."""
    classes, faces = _rings(40, odd)
    for one, face in zip(classes, faces, strict=True):
        assert is_subtype(one, face) is not bool(odd)


def test_what_relied_on_a_pair_that_does_not_fit_is_looked_at_again() -> None:
    """A class would be `K` if it were `I`; it is none, which is found later."""
    names = Namespace()
    face, other = (names.declare(InterfaceType, f"__torch__.{name}") for name in "IK")
    made = names.declare(ScriptClassType, "__torch__.Made")

    def add(owner: Any, name: str, returned: Type) -> None:
        schema = Schema(
            OperatorName(name), (Argument("self", owner),), (Argument("", returned),)
        )
        owner.declaration.add_method(name, schema)

    add(face, "m", other)
    add(face, "n", StrType)
    add(other, "p", face)
    for name, returned in (("m", made), ("p", made), ("n", IntType)):
        add(made, name, returned)
    assert not is_subtype(made, other)
    assert not is_subtype(made, union((face, other, StrType)))
    assert not is_subtype(made, union((other, face, StrType)))


@pytest.mark.parametrize("kind", [FutureType, AwaitType, ListType, OptionalType])
def test_inside_other_types_symbolic_integers_are_integers(kind: Any) -> None:
    for make in (
        kind,
        lambda one: TupleType((one,)),
        lambda one: union((one, StrType)),
    ):
        for inner in (SymIntType, kind(SymIntType), TupleType((SymIntType,))):
            boxed = fake(inner)
            assert inner is not boxed
            assert is_subtype(make(inner), make(boxed))
            assert is_subtype(make(boxed), make(inner))


def test_interfaces_that_speak_of_themselves_can_be_compared() -> None:
    names = Namespace()
    one, other = (names.declare(InterfaceType, f"__torch__.{name}") for name in "AB")
    for each, inner in ((one, other), (other, one)):
        schema = method(each, "next() -> int").clone_with_returns(
            method(inner, "next() -> int").arguments
        )
        each.declaration.add_method("next", schema)
    assert is_subtype(one, other)
    assert is_subtype(other, one)
    assert not is_subtype(one, SEARCHABLE)
    assert misfit(NODE.declaration, SEARCHABLE.declaration) is None
    assert misfit(LAYER.declaration, DEEP.declaration) is None


# Interfaces of the same methods are no pair here, so it is an order.
@given(TYPES, TYPES)
def test_no_two_types_are_subtypes_of_each_other(left: Type, right: Type) -> None:
    assert is_subtype(left, left)
    if is_subtype(left, right) and is_subtype(right, left):
        assert left is right


@pytest.mark.spec("script 6.3", "subtypes")
@given(TYPES, TYPES, TYPES)
def test_a_subtype_of_a_subtype_is_a_subtype(one: Type, two: Type, three: Type) -> None:
    for low, middle, high in ((one, two, three), (two, three, one), (three, one, two)):
        if is_subtype(low, middle) and is_subtype(middle, high):
            assert is_subtype(low, high)


@given(TYPES, TYPES, TYPES)
def test_what_is_made_of_subtypes_is_a_subtype(
    one: Type, two: Type, more: Type
) -> None:
    high = union((one, two))
    assume(high is not one)
    assert is_subtype(one, high)
    assert is_subtype(NoneType_, optional(one))
    assert is_subtype(optional(one), optional(high))
    assert is_subtype(TupleType((more, one)), TupleType((more, high)))
    assert is_subtype(FutureType(one), FutureType(high))
    assert is_subtype(union((one, more)), union((more, high)))
    assert is_subtype(high, more) == (is_subtype(one, more) and is_subtype(two, more))


def test_the_pairs_that_say_the_same_in_two_ways() -> None:
    for left, right in (
        (SymIntType, parse_type("int")),
        (OptionalType(AnyType), AnyType),
    ):
        assert is_subtype(left, right)
        assert is_subtype(right, left)


@pytest.mark.spec("script 6.3", "variables")
@pytest.mark.parametrize(
    ("formals", "actuals", "bound"),
    [
        ("int", "int", {}),
        ("Scalar", "int", {}),
        ("t", "int", {"t": "int"}),
        ("t[]", "int[]", {"t": "int"}),
        ("t?", "int", {"t": "int"}),
        ("t?", "int?", {"t": "int"}),
        ("t?", "None", {}),
        ("t t", "int None", {"t": "int?"}),
        ("t?[] t", "int?[] int", {"t": "int"}),
        ("t t[]", "int Scalar[]", {"t": "Scalar"}),
        # The first two have nothing in common before the third one comes.
        ("t t t", "int float Scalar", {"t": "Scalar"}),
        ("(t,t) t?", "(int,float) Scalar?", {"t": "Scalar"}),
        ("Dict(str,t) t1", "Dict(str,int) str", {"t": "int", "t1": "str"}),
        ("(t,t1,t)", "(int,str,Scalar)", {"t": "Scalar", "t1": "str"}),
        ("Await(t)", "Await(Await(Tensor))", {"t": "Await(Tensor)"}),
        ("Future(t) RRef(t1)", "Future(int) RRef(int[])", {"t": "int", "t1": "int[]"}),
        ("Union(t[],int)", "int", {}),
        ("Union(t[],int)", "Union(str[],int)", {"t": "str"}),
        ("Union(t[],t1) t", "int[] int", {"t": "int"}),
        ("t Union(t[],t1)", "int str[]", {"t": "int", "t1": "str[]"}),
        ("NamedTuple(P,x:t)", "NamedTuple(P,x:int)", {"t": "int"}),
        ("(t)", "NamedTuple(P,x:int)", {"t": "int"}),
    ],
)
def test_what_variables_stand_for(
    formals: str, actuals: str, bound: dict[str, str]
) -> None:
    found = match(list(map(_type, formals.split())), list(map(_type, actuals.split())))
    assert isinstance(found, Mapping)
    assert {name: str(each) for name, each in found.items()} == bound


@pytest.mark.parametrize(
    ("formals", "actuals", "index", "reason"),
    [
        ("int", "str", 0, "str is no int"),
        ("Await(t)", "Tensor", 0, "Tensor is no Await(t)"),
        ("int t[]", "int Tensor", 1, "Tensor is no t[]"),
        ("Await(t)", "Future(int)", 0, "Future(int) is no Await(t)"),
        ("(t,t)", "(int)", 0, "(int) is no (t, t): the lengths differ"),
        ("(t,int)", "(int,str)", 0, "str is no int"),
        ("Dict(str,t)", "int", 0, "int is no Dict(str, t)"),
        ("Union(t[],int)", "str", 0, "str is not a member of Union(t[], int)"),
        (
            "t t",
            "int str",
            1,
            "t is int already and would be str; int and str have no common type: "
            "a value of both would be a Union(int, str), which is not inferred",
        ),
        ("t[] t", "int[] Scalar", 0, "int[] is no Scalar[]"),
        ("NamedTuple(P,x:t)", "(int)", 0, "(int) is no NamedTuple(P, x: int)"),
    ],
)
def test_why_a_type_does_not_match(
    formals: str, actuals: str, index: int, reason: str
) -> None:
    formal, actual = (
        list(map(_type, formals.split())),
        list(map(_type, actuals.split())),
    )
    found = match(formal, actual)
    assert isinstance(found, Mismatch)
    assert (found.index, str(found)) == (index, reason)
    assert (found.left, found.right) == (formal[index], actual[index])


@given(st.lists(st.tuples(FORMALS, TYPES), min_size=1, max_size=3))
def test_what_is_substituted_is_a_supertype_of_what_was_given(
    pairs: list[tuple[Type, Type]],
) -> None:
    formals, actuals = map(list, zip(*pairs, strict=True))
    found = match(formals, actuals)
    if isinstance(found, Mismatch):
        return
    for formal, actual in pairs:
        assert is_subtype(actual, substitute(formal, found))


def _some(each: Type) -> bool:
    return each is not NoneType_


@given(FORMALS, FORMALS, TYPES.filter(_some), TYPES.filter(_some))
def test_what_a_pattern_was_made_into_matches_it(
    one: Type, two: Type, first: Type, second: Type
) -> None:
    bound = {"t": first, "t1": second}
    actuals = [substitute(one, bound), substitute(two, bound)]
    found = match((one, two), actuals)
    assert isinstance(found, Mapping), found
    assert found.keys() == variables(one) | variables(two)
    assert [substitute(one, found), substitute(two, found)] == actuals


def test_a_variable_that_stands_for_nothing_stays() -> None:
    formal = TupleType((TypeVariable("t"), OptionalType(TypeVariable("t1"))))
    assert str(substitute(formal, {"t": IntType})) == "(int, t1?)"
    assert variables(formal) == {"t", "t1"}
