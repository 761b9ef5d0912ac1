"""Splicing: blocks in place of nodes that own them, values in place of others.

    splice, replace_node, replace_output    what takes the place of what
    identity, same_work                     when constants, or nodes, say the same

Rules:
- a value that takes the place of a wider one is cast to that type, since what is
  inferred from it may hang on the type; a constant is written anew with the type;
- nothing is copied: nodes are moved, and their places and hints stay;
- the kind of a constant counts: 1, 1.0 and True are three, and so are 0.0 and -0.0; one
  NaN is another; what is no plain value (a tensor, a function, a member of an enum) is
  itself only.
"""

from collections.abc import Hashable, Sequence
from typing import Any

from runtime.schema.types import Type, fake
from runtime.script.ir import Block, Node, Value
from runtime.script.ir.graph import Place
from runtime.script.ir.type_rules import fits

CONSTANT, CAST = "prim::Constant", "prim::unchecked_cast"


def is_constant(value: Value) -> bool:
    """Whether a value is a constant, and no function."""
    return value.node.kind == CONSTANT and "value" in value.node.attributes


def constant_before(
    node: Node, value: Any, type_: Type, hint: str = "", place: Place | None = None
) -> Value:
    """A new constant in front of a node; `value` fits the type."""
    made = Node(CONSTANT, (), [type_], {"value": value}, place or node.place)
    made.put_before(node)
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
    return Node(CAST, [value], [type_], None, before.place).put_before(before).output


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
        each.take_out().put_before(node)
    replace_node(node, results)


_PLAIN = (int, bool, str, type(None))


def identity(value: Any) -> Hashable:
    """What two values have in common exactly when they are the same."""
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


def same_work(node: Node) -> Hashable:
    """What two nodes without blocks have in common exactly when they do the same."""
    attributes = node.attributes
    return (
        node.kind,
        tuple(map(id, node.inputs)),
        tuple([id(each.type) for each in node.outputs]),
        tuple([(name, identity(attributes[name])) for name in sorted(attributes)]),
    )
