"""Unrolling: a loop of a few trips that are known is written out.

True only here: which loops are short enough.

Rules:
- the number of trips is a constant of at most `MOST_TRIPS`, and the loop ends by it
  alone: the condition is the constant True before it and in each trip;
- what comes of it has at most `MOST_NODES` nodes;
- a loop in a loop is unrolled first.
"""

from runtime.schema.types import IntType
from runtime.script.ir import Graph, Node, Value
from runtime.script.ir.copy import copy_nodes
from runtime.script.passes.splicing import (
    constant_before,
    is_constant,
    of_type,
    replace_node,
)

# Source: upstream unrolls eight trips, and no body of more than 32 nodes.
MOST_TRIPS, MOST_NODES = 8, 256


def unroll_loops(graph: Graph) -> int:
    """Write out all loops that are short enough; gives how many there were."""
    loops = [node for node in graph.nodes() if node.kind == "prim::Loop"]
    return sum(map(_unroll, reversed(loops)))


def _unroll(node: Node) -> int:
    trips, starts, *carried = node.inputs
    (body,) = node.blocks
    if not (is_constant(trips) and _is_true(starts) and _is_true(body.results[0])):
        return 0
    count = trips.node.attributes["value"]
    size = sum(1 for _ in node.nodes_within())
    if not 0 < count <= MOST_TRIPS or count * size > MOST_NODES:
        return 0
    values = carried
    for index in range(count):
        stand: dict[Value, Value] = {}
        given = [constant_before(node, index, IntType), *values]
        for parameter, value in zip(body.parameters, given, strict=True):
            stand[parameter] = of_type(value, parameter.type, node)
        values = copy_nodes(body, node, stand)[1:]
    replace_node(node, values)
    return 1


def _is_true(value: Value) -> bool:
    return is_constant(value) and value.node.attributes["value"] is True
