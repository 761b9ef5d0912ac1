"""Splicing: bodies, blocks and values in place of others, and bodies made graphs.

    splice, replace_node, replace_output    what takes the place of what
    identity, work_key                      equal for equal constants, or nodes
    lift_closures    bodies of forks and awaits become graphs, which are given what they
                     use
    inline_calls     the body of a function, or method, in place of a call of it
    unroll_loops     the trips of a short loop, one after another

Rules of values:
- a value that takes the place of a wider one is cast to that type, since what is
  inferred from it may hang on the type; a constant is written anew with the type;
- where a block takes a place nothing is copied: nodes are moved, and their places and
  hints stay;
- the kind of a constant counts: 1, 1.0 and True are three, and so are 0.0 and -0.0; one
  NaN is another; what is no plain value (a tensor, a function, a member of an enum) is
  itself only.

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
    """Whether a value is a constant, and no function."""
    return value.node.kind == CONSTANT and "value" in value.node.attributes


def constant_before(
    node: Node, value: Any, type_: Type, hint: str = "", place: Place | None = None
) -> Value:
    """A new constant in front of a node; `value` fits the type."""
    made = Node(CONSTANT, (), [type_], {"value": value}, place or node.place)
    made.insert_before(node)
    made.output.hint = hint
    return made.output


def of_type(value: Value, type_: Type, before: Node) -> Value:
    """The value, as one of a wider type; what that takes is put in front of a node."""
    if fake(value.type) is fake(type_):
        return value
    if is_constant(value):
        held = value.node.attributes["value"]
        if fits(held, type_):
            return constant_before(before, held, type_, place=value.node.place)
    return Node(CAST, [value], [type_], None, before.place).insert_before(before).output


def replace_output(output: Value, value: Value, before: Node | None = None) -> None:
    """Let a value take the place of an output of a node.

    A cast is put in front of that node, or of `before`.
    """
    stand_in = of_type(value, output.type, output.node if before is None else before)
    stand_in.hint = stand_in.hint or output.hint
    output.replace_by(stand_in)


def replace_node(node: Node, values: Sequence[Value]) -> None:
    """Let values take the place of the outputs of a node, which is destroyed."""
    for output, value in zip(node.outputs, values, strict=True):
        replace_output(output, value)
    node.destroy()


def splice(node: Node, block: Block) -> None:
    """Put what is in a block of a node, which has no parameters, in its place."""
    assert not block.parameters, "what stands for parameters is put there before"
    results = [*block.results]
    block.exit.set_inputs(())
    for each in block:
        each.unlink().insert_before(node)
    replace_node(node, results)


_PLAIN = (int, bool, str, type(None))


def identity(value: Any) -> Hashable:
    """A key that two constants share exactly when they are the same."""
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
    """A key that two nodes without blocks share exactly when they do the same."""
    attributes = node.attributes
    return (
        node.kind,
        tuple(map(id, node.inputs)),
        tuple([id(each.type) for each in node.outputs]),
        tuple([(name, identity(attributes[name])) for name in sorted(attributes)]),
    )


CLOSURE = "prim::Closure"
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
    ).insert_before(node)
    lifted.output.hint = node.output.hint
    node.output.replace_by(lifted.output)
    node.destroy()
    if not source.output.uses:
        source.destroy()


def captured(block: Block) -> list[Value]:
    """The values of blocks around it that a block uses, by their first use."""
    own: set[Value] = set()
    found: dict[Value, None] = {}
    for node in walk((block,), _with_ends):
        for value in node.inputs:
            if value not in own:
                found[value] = None
        own.update(node.outputs)
    return [*found]


def _with_ends(block: Block) -> Iterator[Node]:
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
    previous = node.previous
    assert previous is not None, "a call is in a block"
    results = copy_nodes(body.block, node, values)
    made: list[Node] = []
    each = previous.next
    while each is not None and each is not node:
        made += [each, *each.nodes_within()]
        each = each.next
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
