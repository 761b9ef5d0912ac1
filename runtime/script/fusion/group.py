"""Groups: neighbouring pointwise operators become one node, which runs one kernel.

True only here: which nodes belong together.

Rules:
- the nodes of a group follow one another in a block; between them lies only what does
  nothing but give a value (constants, and nodes without any effect), which is put in
  front of the group;
- each has a step (`runtime.script.fusion.pointwise`) for the dtypes and shapes that are
  known; the results of all have one shape, of at least `LEAST` elements, and what is
  read has that shape, or one element;
- nothing is written, nothing moves over what has an effect: what a group gives and
  raises is what its nodes gave and raised, in their order;
- dtypes and shapes are hints: what the group is given decides, when it runs
  (`runtime.script.fusion.compiled`).
"""

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from runtime.schema.types import BoolType, FloatType, IntType, TensorType
from runtime.script.fusion.pointwise import Later, is_single, operators, step_of
from runtime.script.ir import Block, Effect, Graph, Node, Value, effects_of
from runtime.script.ir.copy import copy_node
from runtime.script.passes import Facts

GROUP, CONSTANT = "prim::FusionGroup", "prim::Constant"
# Below, the call of an operator costs as much as its loop, and a kernel takes a fifth
# of a second to compile.
LEAST = 1_000
# What the compiler makes one vectorised loop of: beyond eight pairs of an array that is
# written and another it does not ask whether they overlap, and a long body has too many
# values for the registers.
MOST_NODES, MOST_PAIRS = 24, 8

_LATER: Mapping[Any, type] = {IntType: int, FloatType: float, BoolType: bool}


def fuse(graph: Graph, shapes: Mapping[Value, Facts], *, least: int = LEAST) -> int:
    """Form groups, where `shapes` says what values are; gives how many there are now.

    A value that `shapes` does not have is in no group.  `least` are the elements from
    which on that is worth it.
    """
    count = 0
    todo = [graph.block]
    while todo:
        block = todo.pop()
        for members in _groups(block, shapes, least):
            _form(members)
            count += 1
        todo += [inner for node in block for inner in node.blocks]
    return count


def _groups(
    block: Block, shapes: Mapping[Value, Facts], least: int
) -> list[list[Node]]:
    """The nodes of each group of the block."""
    found: list[list[Node]] = []
    members: list[Node] = []
    known: dict[Value, Any] = {}
    made: set[Value] = set()

    def close() -> None:
        if len(members) > 1:
            found.append(members.copy())
        members.clear()
        made.clear()

    for node in block:
        shape = _shape(node, shapes, known, least)
        if shape is not None:
            first = members[0].output if members else node.output
            if shapes[first].shape != shape or not _has_room([*members, node]):
                close()
            members.append(node)
            made.add(node.output)
        elif not _passes(node, made):
            close()
    close()
    return found


def _shape(
    node: Node, shapes: Mapping[Value, Facts], known: dict[Value, Any], least: int
) -> tuple[int, ...] | None:
    """The shape of what the node gives, if it can be in a group."""
    if node.kind not in operators():
        return None
    for value in node.inputs:
        if value.node.kind == CONSTANT:
            if "value" not in value.node.attributes:
                return None
            known[value] = value.node.attributes["value"]
        elif value in shapes:
            known[value] = shapes[value]
        elif value.type in _LATER:
            known[value] = Later(_LATER[value.type])
        else:
            return None
    step = step_of(node, known)
    if step is None or shapes.get(node.output) != step.facts:
        return None
    shape = step.facts.shape
    fits = all(
        shapes[each].shape == shape or is_single(shapes[each].shape)
        for each in node.inputs
        if each in shapes
    )
    return shape if fits and prod(shape) >= least else None


def _has_room(members: Sequence[Node]) -> bool:
    if len(members) > MOST_NODES:
        return False
    inputs = [each for each in inputs_of(members) if each.type is TensorType]
    outputs = outputs_of(members)
    pairs = len(outputs) * len(inputs) + len(outputs) * (len(outputs) - 1) // 2
    return pairs <= MOST_PAIRS


def _passes(node: Node, made: set[Value]) -> bool:
    """Whether a group may lie on both sides of the node, behind it."""
    if node.kind == CONSTANT:
        return True
    if node.kind.startswith("core::") or effects_of(node) is not Effect.NONE:
        return False
    return not node.blocks and not any(each in made for each in node.inputs)


def inputs_of(members: Sequence[Node]) -> list[Value]:
    """What the nodes read of others, in the order of the first use; no constants."""
    own = {each.output for each in members}
    read = [value for node in members for value in node.inputs]
    return [
        each
        for each in dict.fromkeys(read)
        if each not in own and each.node.kind != CONSTANT
    ]


def outputs_of(members: Sequence[Node]) -> list[Value]:
    """What others read of the nodes, in the order of the nodes."""
    own = {*members}
    return [
        each.output
        for each in members
        if any(user not in own for user, _ in each.output.uses)
    ]


def _form(members: Sequence[Node]) -> None:
    """Put one node in the place of the last of them."""
    inputs, outputs = inputs_of(members), outputs_of(members)
    body = Graph()
    values = {each: body.block.add_parameter(each.type, each.hint) for each in inputs}
    for node in members:
        for value in node.inputs:
            if value.node.kind == CONSTANT and value not in values:
                body.block.append(copy_node(value.node, values))
        body.block.append(copy_node(node, values))
    for value in outputs:
        body.block.add_result(values[value])
    types = [each.type for each in outputs]
    group = Node(GROUP, inputs, types, {"graph": body}, members[0].place)
    group.put_before(members[-1])
    for value, output in zip(outputs, group.outputs, strict=True):
        output.hint = value.hint
        value.replace_by(output)
    for node in reversed(members):
        node.destroy()
