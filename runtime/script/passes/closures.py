"""Closures: the bodies of forks and awaits become graphs that are given what they use.

True only here: what a body captures, and how it is given to it.

Rules:
- a `prim::Closure` is used by `prim::forkClosure` and `prim::awaitableClosure` alone,
  and is gone afterwards;
- what the body uses of the blocks around it become inputs of the node, and parameters
  of the graph, in the order of their first use; constants are written anew inside;
- a value is captured as it is when the node runs: a name that is assigned anew is
  another value, and what a list holds later is seen, as the list itself is captured;
- the node keeps its place and its type.

How it works: a closure stands in front of what runs it, so in the order of the text the
innermost bodies come first, and what they capture is a use in the body around them.
"""

from collections.abc import Iterator

from runtime.script.ir import Block, Graph, Node, Value
from runtime.script.ir.copy import copy_block, copy_node

CLOSURE, CONSTANT = "prim::Closure", "prim::Constant"
# What is made of what runs a closure.
_LIFTED = {
    "prim::forkClosure": "prim::fork",
    "prim::awaitableClosure": "prim::awaitable",
}


def lift_closures(graph: Graph) -> int:
    """Make graphs of all closures; gives how many forks and awaits there were."""
    nodes = [node for node in graph.nodes() if node.kind in _LIFTED]
    for node in nodes:
        _lift(node)
    return len(nodes)


def _lift(node: Node) -> None:
    source = node.inputs[0].node
    assert source.kind == CLOSURE, "a law of the kind"
    (block,) = source.blocks
    body = Graph()
    values: dict[Value, Value] = {}
    inputs: list[Value] = []
    for value in captured(block):
        if value.node.kind == CONSTANT:
            made = body.block.append(copy_node(value.node, {}))
            values[value] = made.output
        else:
            inputs.append(value)
            values[value] = body.block.add_parameter(value.type, value.hint)
    copy_block(block, body.block, values)
    lifted = Node(
        _LIFTED[node.kind],
        inputs,
        [node.output.type],
        {"graph": body},
        node.place,
    ).put_before(node)
    lifted.output.hint = node.output.hint
    node.output.replace_by(lifted.output)
    node.destroy()
    if not source.output.uses:
        source.destroy()


def captured(block: Block) -> list[Value]:
    """What a block uses of those around it, in the order of the first use."""
    own: set[Value] = set()
    found: dict[Value, None] = {}
    for node in _all(block):
        for value in node.inputs:
            if value not in own:
                found[value] = None
        own.update(node.outputs)
    return [*found]


def _all(block: Block) -> Iterator[Node]:
    """The nodes of a block, those within, and the ends of all, as they would run."""
    todo: list[Iterator[Node]] = [_whole(block)]
    while todo:
        for node in todo[-1]:
            yield node
            if node.blocks:
                todo += [_whole(each) for each in reversed(node.blocks)]
                break
        else:
            todo.pop()


def _whole(block: Block) -> Iterator[Node]:
    yield block.entry
    yield from block
    yield block.exit
