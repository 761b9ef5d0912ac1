"""The least common type, and what schema variables stand for."""

import itertools
from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.schema.parser import parse_type
from runtime.schema.subtyping import (
    Mismatch,
    is_subtype,
    match,
    optional,
    substitute,
    unify,
    variables,
)
from runtime.schema.types import (
    AnyType,
    AwaitType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    SymIntType,
    TupleType,
    Type,
    TypeVariable,
)
from tests.schema.programs import FORMALS, NODE, PLAIN_TYPES, PROGRAM, SEARCHABLE, TYPES


def _type(text: str) -> Type:
    return parse_type(text, namespace=PROGRAM)


@pytest.mark.parametrize(
    ("types", "common"),
    [
        ("int", "int"),
        ("int int", "int"),
        ("int None", "int?"),
        ("int? None", "int?"),
        ("int? Scalar", "Scalar?"),
        ("int float Scalar", "Scalar"),
        ("int str Any", "Any"),
        ("Tensor[] None", "Tensor[]?"),
        ("Union(int,str) None", "Union(int, str)?"),
        ("Union(int,str) str", "Union(int, str)"),
        ("(int,None) (None,str)", "(int?, str?)"),
        ("(int,None)? (int?,str)", "(int?, str?)?"),
        ("((int),None) ((None),int)", "((int?), int?)"),
        ("Await(int) Await(None)", "Await(int?)"),
        ("Future((int,None)) Future((None,int))", "Future((int?, int?))"),
        ("RRef(int) None RRef(Scalar)", "RRef(Scalar)?"),
        ("NamedTuple(P,x:int) NamedTuple(P,x:None)", "NamedTuple(P, x: int?)"),
        ("NamedTuple(P,x:int) NamedTuple(Q,x:None)", "(int?)"),
        ("NamedTuple(P,x:int) (None)", "(int?)"),
        ("__torch__.tree.Node __torch__.tree.Deep", "__torch__.tree.Deep"),
        ("__torch__.tree.Node __torch__.tree.Node?", "__torch__.tree.Node?"),
        # No two of the first three have a common type; the last is one of all.
        ("int float complex Scalar", "Scalar"),
        ("(int,int) (float,int) (Scalar,None)", "(Scalar, int?)"),
        # The union is less than the second one, and so says nothing.
        ("Union((int,int),(None,int)) (int?,int) (int,int?)", "(int?, int?)"),
        ("Union((int),(None))? (int?) None", "(int?)?"),
    ],
)
def test_the_least_common_type(types: str, common: str) -> None:
    given_types = [_type(text) for text in types.split()]
    for order in itertools.permutations(given_types):
        assert unify(*order) is _type(common)


@pytest.mark.parametrize(
    ("types", "index", "reason"),
    [
        (
            "int str",
            1,
            "int and str have no common type: "
            "a value of both would be a Union(int, str), which is not inferred",
        ),
        (
            "int float",
            1,
            "int and float have no common type: "
            "a value of both would be a Union(float, int), which is not inferred",
        ),
        (
            "int None Scalar float str? int",
            4,
            "Scalar and str? have no common type: "
            "a value of both would be a Union(Scalar, str), which is not inferred",
        ),
        (
            "int[] None[]",
            1,
            "int[] and NoneType[] have no common type: "
            "a list can be written to, so its elements are of one type",
        ),
        (
            "Dict(str,int) Dict(str,str)",
            1,
            "Dict(str, int) and Dict(str, str) have no common type: "
            "a dictionary can be written to, so what it holds is of one type",
        ),
        (
            "(int,int) (int)",
            1,
            "(int, int) and (int) have no common type: "
            "the one has 2 elements, the other 1",
        ),
        (
            "(None,int) (int,str)",
            1,
            "(NoneType, int) and (int, str) have no common type: "
            "so have their elements 1, int and str",
        ),
        (
            "__torch__.tree.Node __torch__.net.Layer",
            1,
            "__torch__.tree.Node and __torch__.net.Layer have no common type: "
            "a value of both would be a Union(__torch__.net.Layer, "
            "__torch__.tree.Node), which is not inferred",
        ),
        (
            "Await(int) Future(int)",
            1,
            "Await(int) and Future(int) have no common type: a value of both "
            "would be a Union(Future(int), Await(int)), which is not inferred",
        ),
    ],
)
def test_why_there_is_none(types: str, index: int, reason: str) -> None:
    found = unify(*map(_type, types.split()))
    assert isinstance(found, Mismatch)
    assert (found.index, str(found)) == (index, reason)
    for order in itertools.permutations(map(_type, types.split())):
        assert isinstance(unify(*order), Mismatch)


def test_of_types_that_say_the_same_one_is_chosen() -> None:
    for order in itertools.permutations((SymIntType, IntType)):
        assert unify(*order) is IntType
    maybe = OptionalType(AnyType)
    assert unify(maybe, AnyType) is unify(AnyType, maybe) is AnyType
    assert unify(SymIntType, SymIntType) is SymIntType


@given(TYPES)
def test_a_type_is_its_own_common_type(one: Type) -> None:
    assert unify(one) is unify(one, one) is one


@given(st.lists(TYPES, min_size=1, max_size=4))
def test_a_common_type_is_a_supertype_of_all_in_any_order(types: list[Type]) -> None:
    found = unify(*types)
    for order in itertools.permutations(types):
        again = unify(*order)
        if isinstance(found, Mismatch):
            assert isinstance(again, Mismatch)
        else:
            assert again is found
    if isinstance(found, Mismatch):
        assert found.right is types[found.index]
        assert found.left in types[: found.index]
    else:
        assert all(is_subtype(each, found) for each in types)


def _layers(inner: Sequence[Type]) -> list[Type]:
    """All types that are made of some others in one step, and those others."""
    pairs = itertools.product(inner[:4], repeat=2)
    tuples = [*map(TupleType, pairs), *(TupleType((each,)) for each in inner)]
    named = [TupleType((each,), ("x",), "P") for each in inner]
    wrapped = [kind(each) for each in inner for kind in (AwaitType, ListType)]
    made = dict.fromkeys((*inner, *tuples, *named, *wrapped))
    return list(dict.fromkeys((*made, *map(optional, made))))


@pytest.mark.long
def test_no_other_common_supertype_is_less_in_a_whole_universe() -> None:
    leaves = [IntType, NoneType_, NumberType, NODE, SEARCHABLE, StrType]
    universe = _layers(leaves)
    universe += [TupleType((each,)) for each in universe]
    above = {
        each: {other for other in universe if is_subtype(each, other)}
        for each in universe
    }
    found_some = 0
    for left, right in itertools.combinations(universe, 2):
        found, uppers = unify(left, right), above[left] & above[right]
        if isinstance(found, Mismatch):
            assert not uppers
        else:
            assert all(is_subtype(found, upper) for upper in uppers)
            found_some += found is not left and found is not right
    assert found_some > 1000


@given(PLAIN_TYPES, PLAIN_TYPES, PLAIN_TYPES)
def test_no_other_common_supertype_is_less(left: Type, right: Type, high: Type) -> None:
    found = unify(left, right)
    for upper in (high, left, right):
        if is_subtype(left, upper) and is_subtype(right, upper):
            assert isinstance(found, Mismatch) or is_subtype(found, upper)


@given(PLAIN_TYPES, PLAIN_TYPES)
def test_a_common_type_takes_in_what_is_less(left: Type, right: Type) -> None:
    found = unify(left, right)
    if not isinstance(found, Mismatch):
        assert unify(found, left) is unify(found, right) is found


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
        ("Union(t[],int)", "str", 0, "str is no member of Union(t[], int)"),
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
