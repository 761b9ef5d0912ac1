"""Optionals and unions in their normal form, and least common types."""

import itertools
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from everyorder.runtime.schema import types as t
from everyorder.runtime.schema.parser import parse_type
from everyorder.runtime.schema.subtyping import (
    Mismatch,
    is_subtype,
    optional,
    unify,
    union,
)
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    BoolType,
    ClassType,
    ComplexType,
    FloatType,
    IntType,
    ListType,
    NoneType_,
    NumberType,
    OptionalType,
    StrType,
    SymIntType,
    TensorType,
    TupleType,
    Type,
    TypeVariable,
    UnionType,
)
from tests.schema.programs import NODE, PLAIN_TYPES, PROGRAM, SEARCHABLE, TYPES


def _type(text: str) -> Type:
    return parse_type(text, namespace=PROGRAM)


@pytest.mark.parametrize(
    ("element", "text"),
    [
        (IntType, "int?"),
        (OptionalType(IntType), "int?"),
        (NoneType_, "NoneType"),
        (AnyType, "Any?"),
        (UnionType((IntType, NoneType_, StrType)), "Union(int, str)?"),
        (UnionType((NoneType_, IntType)), "int?"),
        (UnionType((IntType, StrType)), "Union(int, str)?"),
        (ListType(OptionalType(IntType)), "int?[]?"),
    ],
)
def test_an_optional_is_outermost_and_said_once(element: Type, text: str) -> None:
    assert str(optional(element)) == text
    assert optional(optional(element)) is optional(element)
    assert union((element, NoneType_)) is optional(element)


@pytest.mark.parametrize(
    ("members", "text"),
    [
        ((IntType, FloatType), "Union(float, int)"),
        ((IntType, FloatType, IntType), "Union(float, int)"),
        ((IntType, NoneType_), "int?"),
        ((NoneType_, NoneType_), "NoneType"),
        ((IntType, IntType), "int"),
        ((IntType, FloatType, ComplexType), "Scalar"),
        ((IntType, FloatType, ComplexType, NoneType_), "Scalar?"),
        ((NumberType, IntType, StrType), "Union(Scalar, str)"),
        ((NumberType, IntType, BoolType), "Union(Scalar, bool)"),
        ((OptionalType(IntType), StrType), "Union(int, str)?"),
        (
            (OptionalType(UnionType((IntType, StrType))), TensorType),
            "Union(Tensor, int, str)?",
        ),
        ((UnionType((IntType, StrType)), TensorType), "Union(Tensor, int, str)"),
        (
            (t.LayoutType, ListType(IntType), ClassType("a.B")),
            "Union(int[], __torch__.torch.classes.a.B, Layout)",
        ),
        ((TypeVariable("t"), IntType), "Union(int, t)"),
        ((AnyType, IntType, StrType), "Any"),
        ((AnyType, OptionalType(IntType)), "Any?"),
        ((TupleType((IntType,)), TupleType((NumberType,))), "(Scalar)"),
        ((ListType(IntType), ListType(NumberType)), "Union(Scalar[], int[])"),
        ((t.SymIntType, IntType, StrType), "Union(int, str)"),
    ],
)
def test_a_union_has_one_normal_form(members: tuple[Type, ...], text: str) -> None:
    for order in itertools.permutations(members):
        assert str(union(order)) == text
        assert union(order) is union((union(order),)) is union(members)


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


@pytest.mark.slow
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
