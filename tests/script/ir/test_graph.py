"""Graphs: what they are made of, how they change, and copies of them."""

from collections.abc import Callable
from random import Random

import pytest

from everyorder.runtime.schema.types import IntType, TensorType
from everyorder.runtime.script.ir import (
    Graph,
    Node,
    Value,
    check,
    copy_graph,
    copy_node,
    copy_nodes,
    graph_text,
    parse_graph,
)
from tests.script.ir.graphs import random_graph, rows


class Line:
    """A graph of a parameter and three nodes, each of which uses the one before."""

    def __init__(self) -> None:
        self.graph = Graph("f")
        self.block = self.graph.block
        self.x = self.block.add_parameter(TensorType, "x")
        self.first = self.neg(self.x)
        self.second = self.neg(self.first.output)
        self.third = self.neg(self.second.output)
        self.block.add_result(self.third.output)

    def neg(self, value: Value) -> Node:
        return self.block.append(Node("demo::neg", [value], [TensorType]))

    @property
    def order(self) -> list[Node]:
        check(self.graph, rows=rows)
        nodes = [*self.block]
        assert [*reversed(self.block)] == nodes[::-1]
        return nodes


@pytest.mark.spec("script 6.5", "graphs")
def test_what_a_graph_is_made_of() -> None:
    line = Line()
    assert line.order == [line.first, line.second, line.third]
    assert line.x.is_parameter
    assert not line.first.output.is_parameter
    assert line.x.uses == [(line.first, 0)]
    assert [*line.block.parameters] == [line.x]
    assert [*line.block.results] == [line.third.output]
    assert repr(line.x) == "Value(x: Tensor of prim::Param)"
    assert repr(line.first) == "Node(demo::neg, 1 inputs)"
    assert repr(line.first.output) == "Value(?: Tensor of demo::neg)"


def test_nodes_are_put_and_taken_out() -> None:
    line = Line()
    node = Node("demo::neg", [line.x], [TensorType])
    assert node.insert_before(line.first) is node
    assert line.order == [node, line.first, line.second, line.third]
    assert node.unlink() is node
    assert node.block is None
    node.insert_after(line.third)
    assert line.order == [line.first, line.second, line.third, node]
    node.unlink().insert_after(line.block.entry)
    assert line.order[0] is node
    node.destroy()
    assert line.x.uses == [(line.first, 0)]
    assert line.order == [line.first, line.second, line.third]


def test_inputs_are_set_added_and_removed() -> None:
    line = Line()
    node = Node("demo::show", [line.x, line.x], [])
    line.block.append(node)
    node.add_input(line.first.output)
    assert [*node.inputs] == [line.x, line.x, line.first.output]
    node.set_input(0, line.first.output)
    assert line.x.uses == [(line.first, 0), (node, 1)]
    node.remove_input(0)
    assert [*node.inputs] == [line.x, line.first.output]
    assert line.x.uses == [(line.first, 0), (node, 0)]
    assert line.first.output.uses == [(line.second, 0), (node, 1)]
    node.set_inputs(reversed(node.inputs))
    assert [*node.inputs] == [line.first.output, line.x]
    node.set_inputs(())
    assert line.x.uses == [(line.first, 0)]


def test_outputs_are_added_and_removed() -> None:
    node = Node("demo::parts", (), [TensorType])
    added = node.add_output(IntType, "n")
    assert (added.index, added.hint) == (1, "n")
    node.remove_output(0)
    assert node.output is added
    assert added.index == 0


def test_a_value_is_replaced_everywhere() -> None:
    line = Line()
    line.first.output.replace_by(line.x)
    assert [*line.second.inputs] == [line.x]
    assert line.first.output.uses == []
    assert line.x.uses == [(line.first, 0), (line.second, 0)]
    line.x.replace_by(line.x)
    assert line.x.uses == [(line.first, 0), (line.second, 0)]
    line.first.destroy()
    assert line.order == [line.second, line.third]


def test_nodes_may_be_changed_while_they_are_given() -> None:
    line = Line()
    seen = []
    for node in line.block:
        seen.append(node)
        if node is line.second:
            node.output.replace_by(line.first.output)
            node.destroy()
        if node is line.first:
            between = Node("demo::neg", [line.x], [TensorType]).insert_after(node)
    assert seen == [line.first, between, line.second, line.third]
    assert line.order == [line.first, between, line.third]
    for node in reversed(line.block):
        if not any(each.uses for each in node.outputs):
            node.destroy()
    assert line.order == [line.first, line.third]


def deep() -> tuple[Graph, Node, Node]:
    """A branch within a branch."""
    graph = Graph()
    condition = graph.block.add_parameter(IntType)
    outer = graph.block.append(Node("prim::If", [condition]))
    inner = outer.add_block().append(Node("prim::If", [condition]))
    inner.add_block().append(Node("demo::a", [condition], [IntType]))
    inner.add_block()
    outer.add_block().append(Node("demo::b"))
    graph.block.append(Node("demo::c"))
    return graph, outer, inner


def test_nodes_within_are_in_the_order_of_the_text() -> None:
    graph, outer, inner = deep()
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == ["prim::If", "prim::If", "demo::a", "demo::b", "demo::c"]
    assert [node.kind for node in outer.nodes_within()] == kinds[1:4]
    for node in graph.nodes():
        if node is inner:
            node.destroy()
    assert [node.kind for node in graph.nodes()] == ["prim::If", "demo::b", "demo::c"]


def test_blocks_are_destroyed_with_their_node() -> None:
    graph, outer, inner = deep()
    (condition,) = graph.block.parameters
    (value,) = [node.output for node in inner.blocks[0]]
    inner.blocks[0].add_result(value)
    outer.destroy()
    assert condition.uses == []
    assert [node.kind for node in graph.nodes()] == ["demo::c"]
    assert [*inner.blocks[0]] == []


def test_a_node_of_no_block_is_destroyed_too() -> None:
    line = Line()
    Node("demo::neg", [line.x], [TensorType]).destroy()
    assert line.order == [line.first, line.second, line.third]


def test_random_graphs_are_destroyed_to_the_last_use() -> None:
    for seed in range(100):
        graph = random_graph(Random(seed))
        values = [each for node in graph.nodes() for each in node.outputs]
        graph.block.clear()
        assert [*graph.nodes()] == []
        assert not any(each.uses for each in (*values, *graph.block.parameters))


@pytest.mark.parametrize(
    ("wrong", "why"),
    [
        (
            lambda line: line.first.insert_before(line.second),
            "a node is in at most one block",
        ),
        (
            lambda line: Node("demo::a").insert_before(line.block.entry),
            "a block starts with its parameters",
        ),
        (
            lambda line: Node("demo::a").insert_after(line.block.exit),
            "a block ends with its results",
        ),
        (lambda line: line.block.entry.unlink(), "a block keeps its ends"),
        (
            lambda line: Node("demo::a").unlink(),
            "only a node of a block can be removed",
        ),
        (lambda line: line.first.destroy(), "a used value cannot be destroyed"),
        (lambda line: line.first.remove_output(0), "a used output cannot be removed"),
    ],
)
def test_what_the_methods_refuse(wrong: Callable[[Line], object], why: str) -> None:
    line = Line()
    with pytest.raises(AssertionError) as caught:
        wrong(line)
    assert str(caught.value).partition("\n")[0] == why
    assert line.order == [line.first, line.second, line.third]


def test_a_copy_prints_the_same_and_shares_no_node() -> None:
    for seed in range(200):
        graph = random_graph(Random(seed))
        text = graph_text(graph)
        copied = copy_graph(graph)
        check(copied, rows=rows)
        assert graph_text(copied) == text
        assert not everything(graph) & everything(copied)
        copied.block.clear()
        check(graph, rows=rows)
        assert graph_text(graph) == text


def everything(graph: Graph) -> set[int]:
    found: set[int] = set()
    todo = [graph]
    for each in todo:
        found.add(id(each))
        for node in each.nodes():
            found |= {id(node), *map(id, node.outputs), *map(id, node.blocks)}
            todo += [v for v in node.attributes.values() if isinstance(v, Graph)]
    return found


LOOP = """\
graph(%n.1 : int, %c.1 : bool):
  %out.1 : int = prim::Loop(%n.1, %c.1, %n.1)
    block0(%i.1 : int, %x.1 : int):
      %y.1 : int = script::add.int(%i.1, %x.1)
      %z.1 : int = script::add.int(%y.1, %n.1)
      -> (%c.1, %z.1)
  return (%out.1)
"""


PEELED = """\
graph(%n.1 : int, %c.1 : bool):
  %y.1 : int = script::add.int(%n.1, %n.1)
  %z.1 : int = script::add.int(%y.1, %n.1)
  %out.1 : int = prim::Loop(%n.1, %c.1, %n.1)
    block0(%i.1 : int, %x.1 : int):
      %y.2 : int = script::add.int(%i.1, %x.1)
      %z.2 : int = script::add.int(%y.2, %n.1)
      -> (%c.1, %z.2)
  return (%out.1, %z.1)
"""


def test_the_nodes_of_a_block_are_copied_with_what_stands_for_parameters() -> None:
    graph = parse_graph(LOOP)
    (loop,) = graph.block
    n = graph.block.parameters[0]
    (body,) = loop.blocks
    index, carried = body.parameters
    condition, result = copy_nodes(body, loop, {index: n, carried: n})
    assert condition is graph.block.parameters[1]
    graph.block.add_result(result)
    check(graph)
    assert graph_text(graph) == PEELED


def test_a_node_is_copied_with_its_blocks() -> None:
    graph = parse_graph(LOOP)
    (loop,) = graph.block
    values: dict[Value, Value] = {}
    copied = copy_node(loop, values)
    assert copied.block is None
    copied.insert_after(loop)
    graph.block.exit.set_input(0, values[loop.output])
    loop.destroy()
    check(graph)
    assert graph_text(graph) == LOOP
