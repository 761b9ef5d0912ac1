"""Inlining: a body in place of what runs it, or made a graph of its own.

    lift_closures    bodies of forks and awaits become graphs, which are given what they
                     use
    inline_calls     the body of a function, or method, in place of a call of it
    unroll_loops     the trips of a short loop, one after another

Rules of closures:
- a `prim::Closure` is used by `prim::forkClosure` and `prim::awaitableClosure` alone,
  and is gone afterwards; the node keeps its place and its type;
- what the body uses of the blocks around it become inputs of the node, and parameters
  of the graph, in the order of their first use; constants are written anew inside;
- a value is captured as it is when the node runs: a name that is assigned anew is
  another value, and what a list holds later is seen, as the list itself is captured;
- a closure stands in front of what runs it, so in the order of the text the innermost
  bodies come first, and what they capture is a use in the body around them.

Rules of calls:
- a call of a function that is a constant is known, and of a method of a class, or of a
  module, as what lies with a declaration stays; one through an interface is not;
- a function that calls itself, directly or through others, is inlined once at most
  where it is called from outside, and its own calls of itself stay;
- a graph does not grow beyond `MOST_NODES`;
- what is inlined is a copy; its nodes keep their places in the source of the function.

Rules of loops:
- the number of trips is a constant of at most `MOST_TRIPS`, and the loop ends by it
  alone: the condition is the constant True before it and in each trip;
- what comes of it has at most `MOST_UNROLLED` nodes; an inner loop is unrolled first.
"""

from collections.abc import Iterator

from runtime.schema.declaration import ModuleType, ScriptClassType
from runtime.schema.types import IntType
from runtime.script.ir import Block, Graph, Node, Value
from runtime.script.ir.graph import copy_block, copy_node, copy_nodes
from runtime.script.ir.type_rules import called
from runtime.script.passes.splicing import (
    constant_before,
    is_constant,
    of_type,
    replace_node,
)
from runtime.script.program import Function

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


# Source: programs of some thousand nodes are compiled in less than a second.
MOST_NODES = 10_000


def inline_calls(graph: Graph) -> int:
    """Inline all known calls, also those in what is inlined; gives how many."""
    size = sum(1 for _ in graph.nodes())
    count = 0
    # A call, and the functions that it lies in.
    todo = [(node, frozenset[int]()) for node in graph.nodes() if callee(node)]
    while todo:
        node, around = todo.pop()
        function = callee(node)
        assert function is not None, "only calls that are known are looked at"
        if id(function) in around:
            continue
        body = function.graph
        if body is graph:
            continue
        added = sum(1 for _ in body.nodes())
        if size + added > MOST_NODES:
            continue
        size += added
        count += 1
        todo += [
            (each, around | {id(function)})
            for each in _inline(node, body)
            if callee(each)
        ]
    return count


def callee(node: Node) -> Function | None:
    """The function that a call runs, or None if it is no call, or not known which."""
    found = None
    if node.kind == "prim::CallFunction":
        found = called(node)
    elif node.kind == "prim::CallMethod":
        owner = node.inputs[0].type
        if isinstance(owner, ScriptClassType | ModuleType):
            found = owner.declaration.functions.get(node.attributes["name"])
    return found if isinstance(found, Function) else None


def _inline(node: Node, body: Graph) -> list[Node]:
    """Put the body of a function in place of a call; gives the nodes that this made."""
    is_function = node.kind == "prim::CallFunction"
    given = node.inputs[1:] if is_function else node.inputs
    parameters = body.block.parameters
    values = {
        parameter: of_type(value, parameter.type, node)
        for parameter, value in zip(parameters, given, strict=True)
    }
    before, block = node.before, node.block
    assert before is not None, "a call is in a block"
    assert block is not None, "a call is in a block"
    results = copy_nodes(body.block, node, values)
    made: list[Node] = []
    each = before.behind
    while each is not None and each is not node:
        made += [each, *each.nodes_within()]
        each = each.behind
    replace_node(node, results)
    return made


# Source: upstream unrolls eight trips, and no body of more than 32 nodes.
MOST_TRIPS, MOST_UNROLLED = 8, 256


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
    if not 0 < count <= MOST_TRIPS or count * size > MOST_UNROLLED:
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
