"""Values by type: conversion, equality with tags, and what a kernel sees.

The table of numbers was read off torch 2.13.
"""

import gc
import tracemalloc
from collections.abc import Callable
from itertools import pairwise
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import pytest

from everyorder.runtime.schema.enums import Device, DType, Layout, MemoryFormat
from everyorder.runtime.schema.parser import parse_schema, parse_type
from everyorder.runtime.schema.types import ListType, Type, TypeVariable
from everyorder.runtime.schema.values import (
    MISMATCH,
    REMEMBERED,
    converter,
    in_place,
    is_tensor,
    present,
    same,
    to_bool,
    to_complex,
    to_float,
    to_int,
    to_scalar,
    to_symint,
)
from tests.schema.programs import LAYER, NODE, PROGRAM, Colour


class Duck:
    key_bits = 0

    def __init__(self, *elements: object) -> None:
        self.elements = elements

    def item(self) -> object:
        (element,) = self.elements
        return element

    def __eq__(self, other: object) -> bool:
        raise AssertionError("conversion must not compare tensors")

    __hash__ = object.__hash__


class Thing:
    pass


T, THING = Duck(1), Thing()
NO = MISMATCH


def typed(text: str) -> tuple[Type, int | None]:
    (argument,) = parse_schema(f"t::f({text} x) -> ()").arguments
    return argument.type, argument.size


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("Tensor", T, T),
        ("Tensor", None, None),
        ("Tensor", 1, NO),
        ("Tensor?", None, None),
        ("Tensor?", T, T),
        ("Tensor[]", [T], [T]),
        ("Tensor[]", (T, T), [T, T]),
        ("Tensor[]", [None], NO),
        ("Tensor[]", T, NO),
        ("Tensor[2]", T, NO),
        ("Tensor?[]", [None, T], [None, T]),
        ("int?", None, None),
        ("int?", True, 1),
        ("int?", 1.5, NO),
        ("int[]", [1, 2], [1, 2]),
        ("int[]", (True, Duck(2.5)), [1, 2]),
        ("int[]", range(3), [0, 1, 2]),
        ("int[]", np.array([1, 2]), [1, 2]),
        ("int[]", np.array(1), NO),
        ("int[]", [1.5], NO),
        ("int[]", 5, NO),
        ("int[]", "ab", NO),
        ("int[]", None, NO),
        ("int[]", Duck(1), NO),
        ("int[]", {1}, NO),
        ("int[3]", 5, [5, 5, 5]),
        ("int[2]", True, [1, 1]),
        ("int[2]", [1], [1]),
        ("int[2]", [], []),
        ("int[2]", 2.5, NO),
        ("int[2]", Duck(4), NO),
        ("int[2]", 2**63, NO),
        ("int[2]?", 5, [5, 5]),
        ("int[2]?", None, None),
        ("SymInt[2]", 5, [5, 5]),
        ("float[]", [1, True], [1.0, 1.0]),
        ("float[2]", 2.5, [2.5, 2.5]),
        ("float[2]", 5, NO),
        ("bool[2]", True, NO),
        ("bool[2]", [1, 0], [True, False]),
        ("Scalar[]", [1, 2.5], [1, 2.5]),
        ("str", "a", "a"),
        ("str", 1, NO),
        ("str[]", ["a"], ["a"]),
        ("str[]", "ab", NO),
        ("ScalarType", DType(6), 6),
        ("ScalarType", 6, 6),
        ("ScalarType", True, 1),
        ("ScalarType", 99, NO),
        ("ScalarType", 6.0, NO),
        ("ScalarType", "float", NO),
        ("ScalarType", None, NO),
        ("ScalarType", Layout(0), NO),
        ("ScalarType?", None, None),
        ("Layout", Layout(2), 2),
        ("MemoryFormat", 3, 3),
        ("MemoryFormat", 4, NO),
        ("Device", "cuda:1", Device("cuda", 1)),
        ("Device", Device("cpu"), Device("cpu")),
        ("Device", "foo", NO),
        ("Device", "cuda:01", NO),
        ("Device", 0, NO),
        ("Device", None, NO),
        ("Generator", THING, THING),
        ("Generator", None, None),
        ("Generator?", 1, NO),
        ("Storage", THING, THING),
        ("Storage", None, NO),
        ("Storage", T, NO),
        ("Stream", "s", NO),
        ("Any", THING, THING),
        ("Any", [1], [1]),
        ("NoneType", None, None),
        ("NoneType", 1, NO),
        ("DeviceIndex", 1, 1),
        ("QScheme", 1, 1),
        ("t", THING, THING),
        ("Future(int)", THING, THING),
        ("Dict(str, int)", {"a": True}, {"a": 1}),
        ("Dict(str, int)", {1: 1}, NO),
        ("Dict(str, int)", {"a": "b"}, NO),
        ("Dict(str, int)", [("a", 1)], NO),
        ("(int, str)", [True, "a"], (1, "a")),
        ("(int, str)", (1,), NO),
        ("(int, str)", (1, "a", 2), NO),
        ("(int, str)", ("a", "a"), NO),
        ("(int, str)", 1, NO),
        ("Union(int, str)", 1, 1),
        ("Union(int, str)", "a", "a"),
        ("Union(int, str)", True, NO),
        ("Union(int, str)", 1.5, NO),
        ("Union(int[], float)", (1, 2), [1, 2]),
        ("Union(int[], float)", (1, True), NO),
        ("Union(ScalarType, str)", DType(6), 6),
        ("Union(Tensor, int)", T, T),
    ],
)
def test_conversion(text: str, value: Any, expected: Any) -> None:
    type_, size = typed(text)
    found = converter(type_, size)(value)
    assert same(found, expected)


def test_a_tensor_is_what_has_key_bits() -> None:
    assert is_tensor(T)
    assert not is_tensor(np.ones(1))


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        (None, None, True),
        (None, 0, False),
        (1, 1, True),
        (1, 1.0, False),
        (1, True, False),
        (1.0, 1 + 0j, False),
        (1j, 1j, True),
        (0.0, -0.0, True),
        (nan, nan, False),
        ("a", "a", True),
        ([1], [1], True),
        ([1], [1.0], False),
        ([1], [1, 1], False),
        ([1], (1,), False),
        ((1, "a"), (1, "a"), True),
        ([nan], [nan], False),
        ({"a": 1}, {"a": 1}, True),
        ({"a": 1}, {"a": 1.0}, False),
        ({"a": 1}, {"b": 1}, False),
        (Device("cpu"), Device("cpu"), True),
        (Device("cpu"), Device("cpu", 0), False),
        (DType(1), DType(1), True),
        (DType(1), Layout(1), False),
        (T, T, True),
        (T, Duck(1), False),
        (T, None, False),
        (THING, THING, True),
        (THING, Thing(), False),
    ],
)
def test_equality_knows_tags(left: object, right: object, equal: bool) -> None:
    assert same(left, right) is equal
    assert same(right, left) is equal


@pytest.mark.parametrize(
    ("text", "value", "shown"),
    [
        ("ScalarType", 6, DType.named("float32")),
        ("ScalarType?", 6, DType.named("float32")),
        ("ScalarType?", None, None),
        ("ScalarType[]", [6, 4], [DType(6), DType(4)]),
        ("Layout", 1, Layout.named("sparse_coo")),
        ("MemoryFormat", 2, MemoryFormat.named("channels_last")),
        ("int", 6, 6),
        ("ScalarType", "odd default", "odd default"),
        ("int[]?", None, None),
        ("int[]", [1], [1]),
    ],
)
def test_a_kernel_sees_codes_as_objects(text: str, value: Any, shown: Any) -> None:
    type_, _ = typed(text)
    found = present(type_, value)
    assert same(found, shown)


def test_a_kernel_sees_fresh_lists() -> None:
    stack = [1, 2]
    type_, _ = typed("int[]?")
    assert present(type_, stack) == stack
    assert present(type_, stack) is not stack


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int[]", [1, 2]),
        ("t[]", [1, "a", None]),
        ("float[]", [1.5, nan]),
        ("Dict(str, t)", {"a": [1], "b": 2}),
        ("Dict(int, int)", {}),
    ],
)
def test_what_is_written_to_is_the_caller_s_own(text: str, value: Any) -> None:
    type_, _ = typed(text)
    assert in_place(converter(type_))(value) is value


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("int[]", (1, 2)),
        ("int[]", [1, True]),
        ("float[]", [1]),
        ("int[]", ["a"]),
        ("int[]", np.array([1, 2])),
        ("Dict(str, float)", {"a": 1}),
        ("Dict(bool, t)", {1: "a", 2: "b"}),
        ("Dict(float, t)", {1: "a"}),
        ("Dict(str, t)", [("a", 1)]),
        ("int[]", 3),
    ],
)
def test_what_is_written_to_is_not_converted(text: str, value: Any) -> None:
    type_, _ = typed(text)
    assert in_place(converter(type_))(value) is MISMATCH


def test_conversions_to_types_that_are_made_up_are_not_kept() -> None:
    def ask(first: int) -> int:
        for index in range(first, first + REMEMBERED):
            typed_list = ListType(TypeVariable(f"asked{index}"))
            assert converter(typed_list)([1]) == [1]
            assert present(typed_list, [1]) == [1]
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    try:
        used = [ask(number * REMEMBERED) for number in range(4)]
        # A closure with what it holds takes 900 bytes; a table of the interpreter may
        # grow meanwhile, but not each time.
        grown = (after - before for before, after in pairwise(used))
        assert min(grown) < 100 * REMEMBERED
    finally:
        tracemalloc.stop()


class Point(NamedTuple):
    x: int
    y: object


class Other(NamedTuple):
    x: int
    z: object


class Scripted:
    __slots__ = ("schema_type",)

    def __init__(self, schema_type: Type) -> None:
        self.schema_type = schema_type


NODE_OBJECT, LAYER_OBJECT = Scripted(NODE), Scripted(LAYER)
POINT = "NamedTuple(P, x: float, y: int[])"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (POINT, Point(1, (2, 3)), Point(1.0, [2, 3])),  # type: ignore[arg-type]  # converted
        (POINT, Other(1, (2, 3)), NO),
        (POINT, (1, (2, 3)), NO),
        (POINT, Point("x", (2, 3)), NO),  # type: ignore[arg-type]  # refused
        ("(float, int[])", Point(1, [2]), (1.0, [2])),
        ("__torch__.tree.Node", NODE_OBJECT, NODE_OBJECT),
        ("__torch__.tree.Node", LAYER_OBJECT, NO),
        ("__torch__.tree.Node", THING, NO),
        ("__torch__.tree.Node", None, NO),
        ("__torch__.tree.Node?", None, None),
        ("__torch__.tree.Deep", NODE_OBJECT, NODE_OBJECT),
        (
            "__torch__.tree.Deep[]",
            (NODE_OBJECT, LAYER_OBJECT),
            [NODE_OBJECT, LAYER_OBJECT],
        ),
        ("__torch__.tree.Searchable", LAYER_OBJECT, NO),
        ("__torch__.net.Layer", LAYER_OBJECT, LAYER_OBJECT),
        ("__torch__.paint.Colour", Colour.RED, Colour.RED),
        ("__torch__.paint.Colour", 1, NO),
        ("__torch__.paint.Colour", "RED", NO),
        ("Union(int, __torch__.paint.Colour)", Colour.RED, Colour.RED),
        ("Function", len, len),
        ("Function", T, NO),
        ("Function", 3, NO),
        ("PyObject", 3, 3),
        ("PyObject", THING, THING),
        ("PyObject", None, None),
    ],
)
def test_values_of_programs(text: str, value: object, expected: object) -> None:
    converted = converter(parse_type(text, namespace=PROGRAM))(value)
    assert converted is expected or same(converted, expected)
    assert type(converted) is type(expected)


COLUMNS = (to_int, to_symint, to_float, to_complex, to_bool, to_scalar)
TABLE: list[tuple[object, tuple[object, ...]]] = [
    # value            int  SymInt float complex bool Scalar
    (True, (1, 1, 1.0, 1 + 0j, True, True)),
    (0, (0, 0, 0.0, 0j, False, 0)),
    (2, (2, 2, 2.0, 2 + 0j, True, 2)),
    (2.5, (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (2**63, (NO, NO, 2.0**63, complex(2**63), True, 2**63)),
    (2**64, (NO, NO, 2.0**64, complex(2**64), True, NO)),
    (-(2**63), (-(2**63), -(2**63), -(2.0**63), complex(-(2**63)), True, -(2**63))),
    (-(2**63) - 1, (NO, NO, -(2.0**63), complex(-(2**63)), True, NO)),
    (10**400, (NO, NO, NO, NO, True, NO)),
    (1j, (NO, NO, NO, 1j, True, 1j)),
    (None, (NO,) * 6),
    ("1", (NO,) * 6),
    ([1], (NO,) * 6),
    (Duck(3), (3, 3, 3.0, 3 + 0j, True, NO)),
    (Duck(3.5), (3, 3, 3.5, 3.5 + 0j, True, NO)),
    (Duck(-3.5), (-3, -3, -3.5, -3.5 + 0j, True, NO)),
    (Duck(inf), (NO, NO, inf, complex(inf), True, NO)),
    (Duck(True), (1, 1, 1.0, 1 + 0j, True, NO)),
    (Duck(1j), (NO, NO, NO, 1j, True, NO)),
    (Duck(1, 2), (NO,) * 6),
    (Duck(), (NO,) * 6),
    (np.int64(3), (3, 3, 3.0, 3 + 0j, True, 3)),
    (np.float64(2.5), (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (np.float32(2.5), (NO, NO, 2.5, 2.5 + 0j, True, 2.5)),
    (np.complex64(1j), (NO, NO, NO, 1j, True, 1j)),
    (np.bool_(True), (1, 1, 1.0, 1 + 0j, True, True)),
    (np.array([1, 2]), (NO,) * 6),
    (DType.named("float32"), (6, NO, NO, NO, NO, 6)),
    (Layout.named("sparse_coo"), (1, NO, NO, NO, NO, 1)),
]


@pytest.mark.parametrize(("value", "row"), TABLE, ids=lambda v: repr(v)[:20])
def test_the_table_of_conversions(value: object, row: tuple[object, ...]) -> None:
    found = tuple(turn(value) for turn in COLUMNS)
    assert found == row
    assert [type(each) for each in found] == [type(each) for each in row]


def test_a_tensor_that_is_not_a_number_is_no_int() -> None:
    assert to_int(Duck(nan)) is MISMATCH
    assert repr(to_float(Duck(nan))) == "nan"


@pytest.mark.parametrize("turn", [to_int, to_scalar])
def test_what_the_type_takes_loses_its_subclass(turn: Callable[[Any], Any]) -> None:
    class Level(int):
        pass

    assert type(turn(Level(3))) is int


def test_the_mismatch_prints_its_name() -> None:
    assert repr(MISMATCH) == "MISMATCH"
