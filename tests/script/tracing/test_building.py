"""Graphs that are built from Python."""

from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.script import BrokenGraph, Untraceable
from everyorder.runtime.schema.types import (
    AnyType,
    BoolType,
    DictType,
    IntType,
    ListType,
    StrType,
    TensorType,
    TupleType,
)
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import Graph, graph_text
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.tracing import GraphBuilder
from tests.coded import code
from tests.script.tracing.traced import arange, same


def ran(graph: Graph, schema: str, *args: Any) -> Any:
    """What a graph gives."""
    return call(Function("__torch__.f", runtime.parse_schema(schema), graph), args)


def test_operators_take_values_and_constants() -> None:
    builder = GraphBuilder("f")
    x = builder.parameter(TensorType, "x")
    y = builder.insert("core::add", x, 1, alpha=2)
    total = builder.insert("core::sum", y, [0], dtype=runtime.float64)
    builder.result(builder.insert("core::cat", [total, y], 1))
    graph = builder.finish()
    assert (
        graph_text(graph)
        == """\
graph f(%x.1 : Tensor):
  %1 : int = prim::Constant[value=1]()
  %2 : int = prim::Constant[value=2]()
  %3 : Tensor = core::add(%x.1, %1, %2)
  %4 : int = prim::Constant[value=0]()
  %5 : int[] = prim::ListConstruct(%4)
  %6 : bool = prim::Constant[value=False]()
  %7 : int = prim::Constant[value=7]()
  %8 : Tensor = core::sum(%3, %5, %6, %7)
  %9 : Tensor[] = prim::ListConstruct(%8, %3)
  %10 : int = prim::Constant[value=1]()
  %11 : Tensor = core::cat(%9, %10)
  return (%11)
"""
    )


def test_overloads_are_tried_in_turn() -> None:
    builder = GraphBuilder()
    x, n = builder.parameter(TensorType), builder.parameter(IntType)
    assert builder.insert("script::add", n, 2).node.kind == "script::add.int"
    assert builder.insert("script::add", n, 2.5).node.kind == "script::add.Scalar"
    assert builder.insert("core::max", x).node.kind == "core::max"
    pair = builder.insert("core::max", x, 0)
    assert [each.type for each in pair] == [TensorType, TensorType]
    assert (
        builder.insert("core::max", x, 0, keepdim=True)[0].node.kind == "core::max.dim"
    )
    builder.finish()


def test_branches_and_loops_are_filled_afterwards() -> None:
    builder = GraphBuilder("collatz")
    n = builder.parameter(IntType, "n")
    loop = builder.node("prim::Loop", [10, True, n], [IntType], blocks=1)
    with builder.inside(loop.blocks[0]) as block:
        builder.parameter(IntType, "i")
        k = builder.parameter(IntType, "k")
        odd = builder.insert("script::eq", builder.insert("script::mod", k, 2), 1)
        branch = builder.node("prim::If", [odd], [IntType], blocks=2)
        with builder.inside(branch.blocks[0]):
            tripled = builder.insert("script::mul", k, 3)
            builder.result(builder.insert("script::add", tripled, 1))
        with builder.inside(branch.blocks[1]):
            builder.result(builder.insert("script::floordiv", k, 2))
        builder.result(builder.insert("script::ne", branch.output, 1))
        builder.result(branch.output)
    assert builder.block is not block
    builder.result(loop.output)
    assert ran(builder.finish(), "f(int n) -> int", 3) == 1


def test_containers_are_nodes() -> None:
    builder = GraphBuilder()
    x = builder.parameter(TensorType, "x")
    whole = builder.value((x, [1, 2], {"a": 2.5}))
    assert whole.type is TupleType(
        (TensorType, ListType(IntType), DictType(StrType, builder.value(2.5).type))
    )
    _, numbers, _ = builder.unpack(whole)
    one, two = builder.unpack(numbers, 2)
    builder.result(builder.insert("script::add", one, two))
    assert ran(builder.finish(), "f(Tensor x) -> int", arange(2)) == 3


def test_empty_containers_are_told_what_they_hold() -> None:
    builder = GraphBuilder()
    assert builder.list_of([], IntType).type is ListType(IntType)
    assert builder.dict_of({}, (StrType, IntType)).type is DictType(StrType, IntType)
    assert builder.value([], ListType(AnyType)).type is ListType(AnyType)
    assert builder.insert("core::cat", [builder.parameter(TensorType)]) is not None


def test_functions_are_called() -> None:
    inner = GraphBuilder("double")
    n = inner.parameter(IntType, "n")
    inner.result(inner.insert("script::mul", n, 2))
    schema = runtime.parse_schema("double(int n) -> int")
    double = Function("__torch__.double", schema, inner.finish())
    builder = GraphBuilder("f")
    builder.result(
        builder.call(double, builder.call(double, builder.parameter(IntType)))
    )
    assert ran(builder.finish(), "f(int n) -> int", 3) == 12


def test_tensors_and_devices_are_constants() -> None:
    builder = GraphBuilder()
    kept = arange(2)
    builder.result(builder.value(kept))
    builder.result(builder.value(runtime.device("cpu")))
    builder.result(builder.value(True))
    builder.finish()
    assert builder.graph.block.results[0].node.attributes["value"] is kept
    assert builder.graph.block.results[2].type is BoolType


def test_a_graph_that_is_none_is_found_at_the_end() -> None:
    builder = GraphBuilder()
    builder.node("prim::If", [True], [IntType], blocks=2)
    with pytest.raises(BrokenGraph) as raised:
        builder.finish()
    assert raised.value.stage == "building"


@pytest.mark.parametrize(
    ("build", "kind", "reason"),
    [
        (
            lambda b, x: b.value(object()),
            "prim::Constant",
            "an object is not a constant of a graph",
        ),
        (
            lambda b, x: b.value([]),
            "prim::ListConstruct",
            "the type of its elements is not known",
        ),
        (
            lambda b, x: b.value({}),
            "prim::DictConstruct",
            "the type of its elements is not known",
        ),
        (
            lambda b, x: b.insert("core::missing", x),
            "core::missing",
            "there is no such operator",
        ),
        (lambda b, x: b.insert("core::neg"), "core::neg", "`self` is missing"),
        (lambda b, x: b.insert("core::neg", x, x), "core::neg", "it has no room for 2"),
        (
            lambda b, x: b.insert("core::neg", x, y=1),
            "core::neg",
            "it has no argument `y`",
        ),
        (
            lambda b, x: b.insert("core::neg", object()),
            "core::neg",
            "an object is not a constant of a graph",
        ),
        (
            lambda b, x: b.insert("core::neg", "a"),
            "core::neg",
            "argument `Tensor self`: str is no Tensor",
        ),
        (
            lambda b, x: b.node("prim::Missing"),
            "prim::Missing",
            "there is no such kind",
        ),
        (
            lambda b, x: b.node("prim::GetAttr", [], name="a"),
            "prim::GetAttr",
            "it does not take 0 inputs",
        ),
        (
            lambda b, x: b.node("prim::TupleUnpack", [x]),
            "prim::TupleUnpack",
            "Tensor is not a tuple",
        ),
        (lambda b, x: b.unpack(x), "prim::TupleUnpack", "Tensor is not a tuple"),
    ],
    ids=range(13),
)
def test_what_cannot_be_built_is_refused_and_leaves_nothing(
    build: Any, kind: str, reason: str
) -> None:
    builder = GraphBuilder()
    x = builder.parameter(TensorType, "x")
    with pytest.raises(Untraceable, check=code("BuildRefused")) as raised:
        build(builder, x)
    assert raised.value.kind == kind
    assert raised.value.reason == reason
    assert list(builder.graph.nodes()) == []
    assert x.uses == []


def test_the_text_of_a_refusal() -> None:
    assert str(
        Untraceable(code="BuildRefused", kind="core::neg", reason="`self` is missing")
    ) == ("No node `core::neg` can be built: `self` is missing.")


def test_the_same_is_computed() -> None:
    builder = GraphBuilder()
    x = builder.parameter(TensorType, "x")
    builder.result(builder.insert("core::reshape", x, (-1,)))
    given = ran(builder.finish(), "f(Tensor x) -> Tensor", arange(2, 2))
    assert same(given, arange(4))
