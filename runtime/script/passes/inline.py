"""Inlining: replace nodes by blocks, bodies and values, and move bodies into graphs.

    splice, replace_node, replace_output    replacements of nodes and outputs
    identity, work_key                      keys of equal constants, or nodes
    lift_closures    moves bodies of forks and awaits into graphs, whose inputs are the
                     captured values
    inline_calls     replaces calls by the bodies of functions and methods
    unroll_loops     replaces short loops by their trips, one after another

Rules of values:
- a value that replaces one of a wider type is cast to that type, because inferred types
  may depend on it; a constant is created again with the type;
- a block that replaces a node is moved, not copied: its nodes keep their places and
  hints;
- constants are compared with their kind: 1, 1.0 and True differ, and so do 0.0 and
  -0.0; all NaNs are equal; objects that are not plain values (a tensor, a function, a
  member of an enum) are equal only if identical.

Rules of closures:
- only `prim::forkClosure` and `prim::awaitableClosure` use a `prim::Closure`; the pass
  removes it; the node keeps its place and its type;
- values of enclosing blocks that the body uses become inputs of the node, and
  parameters of the graph, in the order of their first use; constants are copied into
  the graph;
- a value is captured as it is when the node runs: a later assignment to the name
  creates another value, but later changes of a list are visible, as the list itself is
  captured;
- a closure precedes the node that runs it, so in the order of the text the innermost
  bodies are first, and their captures are uses in the enclosing body.

Rules of calls:
- the callee is known if the function is a constant, and for methods of a class or
  module, because declarations do not change; the callee behind an interface is not
  known;
- a function that calls itself, directly or through others, is inlined at most once
  where other code calls it, and its recursive calls stay;
- a graph does not grow beyond `MOST_NODES`;
- the inlined body is a copy; its nodes keep their places in the source of the function.

Rules of loops:
- the number of trips is a constant of at most `MOST_TRIPS`, and the loop ends by it
  alone: the condition is the constant True before it and in each trip;
- the unrolled loop has at most `MOST_UNROLLED` nodes; inner loops are unrolled first.
"""

from collections.abc import Hashable, Iterator, Sequence
from typing import Any

from everyorder.runtime.schema.declared import ModuleType, ScriptClassType
from everyorder.runtime.schema.types import IntType, Type, fake
from everyorder.runtime.script.ir import Block, Graph, Node, Value
from everyorder.runtime.script.ir.graph import (
    Place,
    copy_block,
    copy_node,
    copy_nodes,
    walk,
)
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.ir.type_rules import called, fits

CONSTANT, CAST = "prim::Constant", "prim::unchecked_cast"


def is_constant(value: Value) -> bool:
    """Return True if a value is a constant other than a function."""
    return value.node.kind == CONSTANT and "value" in value.node.attributes


def constant_before(
    node: Node, value: Any, type_: Type, hint: str = "", place: Place | None = None
) -> Value:
    """Insert a new constant before a node; `value` must fit the type."""
    constant = Node(CONSTANT, (), [type_], {"value": value}, place or node.place)
    constant.insert_before(node)
    constant.output.hint = hint
    return constant.output


def of_type(value: Value, type_: Type, before: Node) -> Value:
    """Return the value as one of a wider type, with a cast inserted before a node."""
    if fake(value.type) is fake(type_):
        return value
    if is_constant(value):
        content = value.node.attributes["value"]
        if fits(content, type_):
            return constant_before(before, content, type_, place=value.node.place)
    return Node(CAST, [value], [type_], None, before.place).insert_before(before).output


def replace_output(output: Value, value: Value, before: Node | None = None) -> None:
    """Replace an output of a node by a value in all uses.

    A cast is inserted before that node, or before `before`.
    """
    stand_in = of_type(value, output.type, output.node if before is None else before)
    stand_in.hint = stand_in.hint or output.hint
    output.replace_by(stand_in)


def replace_node(node: Node, values: Sequence[Value]) -> None:
    """Replace all outputs of a node by values and destroy the node."""
    for output, value in zip(node.outputs, values, strict=True):
        replace_output(output, value)
    node.destroy()


def splice(node: Node, block: Block) -> None:
    """Replace a node by the contents of one of its blocks, without parameters."""
    assert not block.parameters, "the caller has replaced the parameters"
    results = [*block.results]
    block.exit.set_inputs(())
    for each in block:
        each.unlink().insert_before(node)
    replace_node(node, results)


_PLAIN = (int, bool, str, type(None))


def identity(value: Any) -> Hashable:
    """Return a key that two constants share exactly if they are the same."""
    kind = value.__class__
    if kind in _PLAIN:
        return kind, value
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind is tuple:
        return kind, tuple(map(identity, value))
    return (kind, value) if isinstance(value, Type) else (kind, id(value))


def work_key(node: Node) -> Hashable:
    """Return a key that nodes without blocks share if they compute the same."""
    attributes = node.attributes
    return (
        node.kind,
        tuple(map(id, node.inputs)),
        tuple([id(each.type) for each in node.outputs]),
        tuple([(name, identity(attributes[name])) for name in sorted(attributes)]),
    )


CLOSURE = "prim::Closure"
# Kind of a node that runs a closure -> kind of the node that runs the graph.
_LIFTED = {
    "prim::forkClosure": "prim::fork",
    "prim::awaitableClosure": "prim::awaitable",
}


def lift_closures(graph: Graph) -> int:
    """Move all closures into graphs; return the number of forks and awaits."""
    nodes = [node for node in graph.nodes() if node.kind in _LIFTED]
    for node in nodes:
        _lift(node)
    return len(nodes)


def _lift(node: Node) -> None:
    source = node.inputs[0].node
    assert source.kind == CLOSURE, "the type rule of the kind requires it"
    (block,) = source.blocks
    body = Graph()
    values: dict[Value, Value] = {}
    inputs: list[Value] = []
    for value in captured(block):
        if value.node.kind == CONSTANT:
            constant = body.block.append(copy_node(value.node, {}))
            values[value] = constant.output
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
    ).insert_before(node)
    lifted.output.hint = node.output.hint
    node.output.replace_by(lifted.output)
    node.destroy()
    if not source.output.uses:
        source.destroy()


def captured(block: Block) -> list[Value]:
    """Return the values of enclosing blocks that a block uses, by their first use."""
    own: set[Value] = set()
    captures: dict[Value, None] = {}
    for node in walk((block,), _with_ends):
        for value in node.inputs:
            if value not in own:
                captures[value] = None
        own.update(node.outputs)
    return [*captures]


def _with_ends(block: Block) -> Iterator[Node]:
    yield block.entry
    yield from block
    yield block.exit


# Programs of some thousand nodes compile in less than a second.
MOST_NODES = 10_000


def inline_calls(graph: Graph) -> int:
    """Inline all known calls, also those in inlined bodies; return their number."""
    size = sum(1 for _ in graph.nodes())
    count = 0
    # A call, and the functions that it is nested in.
    todo = [(node, frozenset[int]()) for node in graph.nodes() if callee(node)]
    while todo:
        node, around = todo.pop()
        function = callee(node)
        assert function is not None, "only calls with a known callee are collected"
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
    """Return the function that a node calls, or None if it is unknown or no call."""
    function = None
    if node.kind == "prim::CallFunction":
        function = called(node)
    elif node.kind == "prim::CallMethod":
        owner = node.inputs[0].type
        if isinstance(owner, ScriptClassType | ModuleType):
            function = owner.declaration.functions.get(node.attributes["name"])
    return function if isinstance(function, Function) else None


def _inline(node: Node, body: Graph) -> list[Node]:
    """Replace a call by the body of a function; return the new nodes."""
    is_function = node.kind == "prim::CallFunction"
    arguments = node.inputs[1:] if is_function else node.inputs
    parameters = body.block.parameters
    values = {
        parameter: of_type(value, parameter.type, node)
        for parameter, value in zip(parameters, arguments, strict=True)
    }
    previous = node.previous
    assert previous is not None, "a call is in a block"
    results = copy_nodes(body.block, node, values)
    new_nodes: list[Node] = []
    each = previous.next
    while each is not None and each is not node:
        new_nodes += [each, *each.nodes_within()]
        each = each.next
    replace_node(node, results)
    return new_nodes


# Upstream's limits: eight trips, and bodies of at most 32 nodes.
MOST_TRIPS, MOST_UNROLLED = 8, 256


def unroll_loops(graph: Graph) -> int:
    """Unroll all short loops; return their number."""
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
        arguments = [constant_before(node, index, IntType), *values]
        for parameter, value in zip(body.parameters, arguments, strict=True):
            stand[parameter] = of_type(value, parameter.type, node)
        values = copy_nodes(body, node, stand)[1:]
    replace_node(node, values)
    return 1


def _is_true(value: Value) -> bool:
    return is_constant(value) and value.node.attributes["value"] is True
