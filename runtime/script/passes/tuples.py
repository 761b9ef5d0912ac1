"""Tuples: those that are made to be taken apart are not made.

True only here: what becomes of a tuple that a program has only for its elements.

    parts     an element of a tuple that is made here is the value it was made of
    branches  two branches that each make a tuple give its elements
    loops     a loop that carries a tuple, made before it and in each trip, carries its
              elements

Rules:
- a tuple that goes elsewhere as well is still made, behind the branch or loop from the
  elements, and goes as dead code if nobody uses it;
- only tuples that are made for a branch or loop, and for nothing else, are split: no
  second object comes of one that somebody has;
- elements keep the types that the tuple says.
"""

from collections.abc import Sequence

from runtime.schema.types import TupleType
from runtime.script.ir import Block, Graph, Node, Value
from runtime.script.passes.splicing import of_type, replace_node

MADE = "prim::TupleConstruct"


def lower_tuples(graph: Graph) -> int:
    """Have fewer tuples; gives how many steps that took."""
    count = 0
    # Tuples of tuples come to light one after another.
    while steps := _lower(graph):
        count += steps
    return count


def _lower(graph: Graph) -> int:
    count = 0
    for node in graph.nodes():
        if node.kind == "prim::If":
            count += _branches(node)
        elif node.kind == "prim::Loop":
            count += _loop(node)
    for node in graph.nodes():
        if node.kind in _PARTS and node.inputs[0].node.kind == MADE:
            count += _take_apart(node)
    return count


_PARTS = ("prim::TupleUnpack", "prim::TupleIndex")


def _take_apart(node: Node) -> int:
    elements: Sequence[Value] = node.inputs[0].node.inputs
    if node.kind == "prim::TupleIndex":
        elements = [elements[node.attributes["index"]]]
    replace_node(node, elements)
    return 1


def _is_own(value: Value) -> bool:
    """Whether a value is a tuple that is made for one use."""
    return value.node.kind == MADE and len(value.uses) == 1


def _branches(node: Node) -> int:
    count = 0
    for index in reversed(range(len(node.outputs))):
        output = node.outputs[index]
        type_ = output.type
        results = [block.results[index] for block in node.blocks]
        if not isinstance(type_, TupleType) or not all(map(_is_own, results)):
            continue
        for block, result in zip(node.blocks, results, strict=True):
            _give_elements(block, result, type_)
            block.exit.remove_input(index)
        _make_behind(node, output, type_)
        node.remove_output(index)
        count += 1
    return count


def _loop(node: Node) -> int:
    (body,) = node.blocks
    count = 0
    for index in reversed(range(len(node.outputs))):
        output = node.outputs[index]
        parameter = body.parameters[index + 1]
        first, again = node.inputs[index + 2], body.results[index + 1]
        type_ = output.type
        if not isinstance(type_, TupleType) or not (_is_own(first) and _is_own(again)):
            continue
        for value, part in zip(first.node.inputs, type_.elements, strict=True):
            node.add_input(of_type(value, part, node))
        _give_elements(body, again, type_)
        parts = [body.add_parameter(each, parameter.hint) for each in type_.elements]
        made = Node(MADE, parts, [type_], None, node.place).put_behind(body.entry)
        made.output.hint = parameter.hint
        parameter.replace_by(made.output)
        _make_behind(node, output, type_)
        node.remove_input(index + 2)
        body.exit.remove_input(index + 1)
        body.entry.remove_output(index + 1)
        node.remove_output(index)
        count += 1
    return count


def _give_elements(block: Block, result: Value, type_: TupleType) -> None:
    """Let a block give the elements of one of its results, too."""
    for value, part in zip(result.node.inputs, type_.elements, strict=True):
        block.add_result(of_type(value, part, block.exit))


def _make_behind(node: Node, output: Value, type_: TupleType) -> None:
    """Let a node give the elements of an output, and make the tuple behind it."""
    parts = [node.add_output(each, output.hint) for each in type_.elements]
    made = Node(MADE, parts, [type_], None, node.place).put_behind(node)
    made.output.hint = output.hint
    output.replace_by(made.output)
