"""Copies: of a graph, of what is in a block, of one node.

True only here: what a copy shares with what it was made of.

Rules:
- `values` says which value stands for which; what a copy makes is added to it, and a
  value that it does not have stands for itself;
- a copy shares constants, types, places and functions, and has blocks, and graphs that
  are attributes, of its own;
- the copy of a sound graph is sound, and prints as the same text.

How it works: blocks are copied from the outermost inwards, so that what a block uses of
those around it is known; nothing here calls itself for a block.
"""

from collections.abc import MutableMapping

from runtime.script.ir.graph import Block, Graph, Node, Value

# What stands for a value in the copy.
Values = MutableMapping[Value, Value]
_Pairs = list[tuple[Block, Block]]


def copy_graph(graph: Graph, values: Values | None = None) -> Graph:
    """A graph of its own, that is like `graph`."""
    made = Graph(graph.name)
    copy_block(graph.block, made.block, {} if values is None else values)
    return made


def copy_block(block: Block, into: Block, values: Values) -> None:
    """Let `into`, which is empty, have what `block` has, parameters and results too."""
    _copy([(block, into)], values)


def copy_node(node: Node, values: Values) -> Node:
    """A node like `node`, in no block, of what stands for its inputs."""
    todo: _Pairs = []
    made = _node(node, values, todo)
    _copy(todo, values)
    return made


def copy_nodes(block: Block, before: Node, values: Values) -> list[Value]:
    """Put copies of the nodes of `block` before a node; gives what it would give.

    `values` says what stands for the parameters.
    """
    todo: _Pairs = []
    for node in block:
        _node(node, values, todo).put_before(before)
    _copy(todo, values)
    return [values.get(each, each) for each in block.results]


def _copy(todo: _Pairs, values: Values) -> None:
    # It grows while it is read.
    for block, into in todo:
        for value in block.parameters:
            values[value] = into.add_parameter(value.type, value.hint)
        for node in block:
            into.append(_node(node, values, todo))
        for value in block.results:
            into.add_result(values.get(value, value))


def _node(node: Node, values: Values, todo: _Pairs) -> Node:
    made = Node(
        node.kind,
        [values.get(each, each) for each in node.inputs],
        [each.type for each in node.outputs],
        node.attributes,
        node.place,
    )
    for value, copied in zip(node.outputs, made.outputs, strict=True):
        copied.hint = value.hint
        values[value] = copied
    for block in node.blocks:
        todo.append((block, made.add_block()))
    for name, value in node.attributes.items():
        if isinstance(value, Graph):
            inner = made.attributes[name] = Graph(value.name)
            todo.append((value.block, inner.block))
    return made
