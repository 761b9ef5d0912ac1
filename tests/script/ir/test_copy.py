"""Copies of graphs: like what they were made of, and of their own."""

from random import Random

from runtime.script.ir import (
    Graph,
    Value,
    check,
    copy_graph,
    copy_node,
    copy_nodes,
    graph_text,
    parse_graph,
)
from tests.script.ir.graphs import random_graph, rows


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
    copied.put_behind(loop)
    graph.block.exit.set_input(0, values[loop.output])
    loop.destroy()
    check(graph)
    assert graph_text(graph) == LOOP
