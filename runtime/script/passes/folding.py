"""Constant folding: compute, look up and pool values that are known before a run.

    propagate_constants     computes nodes, and resolves branches and loops
    propagate_all           also folds over lists and dictionaries of constants
    pool_constants          moves constants to the head of the graph, each once
    erase_list_literals     lengths and elements of list literals
    lower_tuples            removes tuples that are built only to be unpacked

Rules of constants:
- only plain values are computed, from plain values: numbers, texts, None, devices, and
  tuples of these; all are immutable, so that all uses may share the constant;
- only primitives and a few kinds are computed: an operator of the runtime may have
  another kernel by the time the graph runs;
- a node that raises stays, to raise when the graph runs; a nondeterministic node stays,
  too;
- no constant is longer than `LONGEST`, and none that would be is computed;
- a branch with a constant condition is replaced by the selected block, and a loop with
  zero trips by its carried inputs;
- pooled constants keep the order of the text; equal constants of two types stay two
  constants.

Rules of lists:
- the rules apply to lists that a `prim::ListConstruct` builds and that no node writes
  to, even if code outside may hold them: also for `propagate_all`;
- its length is a constant, an element at a constant index is the value itself, and
  unpacking it returns the elements; a node with an index out of range stays, and
  raises.

Rules of tuples:
- an element of a tuple that the graph builds is replaced by the value it was built
  from; two branches that each build a tuple return its elements; a loop that carries a
  tuple, built before it and in each trip, carries its elements;
- only tuples whose single use is the branch or loop are split: a tuple with other uses
  never becomes two objects; the resulting tuple is built from its elements after the
  branch or loop;
- elements keep the types that the tuple declares.

Dead code elimination removes nodes that these passes leave unused.
"""

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

from everyorder.runtime.schema.types import IntType, StrType, TupleType
from everyorder.runtime.script.ir import (
    Block,
    Graph,
    Node,
    NodeKind,
    Rows,
    Value,
    row_of,
)
from everyorder.runtime.script.ir.type_rules import PLAIN_TYPES, fits
from everyorder.runtime.script.passes.aliases import Aliases
from everyorder.runtime.script.passes.inline import (
    CONSTANT,
    constant_before,
    identity,
    is_constant,
    of_type,
    replace_node,
    splice,
)
from everyorder.runtime.script.primitives import by_name

# The longest text, and the most elements of a tuple, that are stored as a constant.
# Computing a value of this length takes negligible time.
LONGEST = 1000
# A text that asks for a width of 1000 or more, as formats do.
_WIDE = re.compile(r"[0-9]{4}")
# Slow for large numbers: then they are not computed.
_SLOW = ("factorial", "comb", "perm", "round", "pow")
# The number of objects behind equal numbers and texts is unspecified.
_COMPARING = ("is_", "is_not")
_LISTS, _DICTS = "prim::ListConstruct", "prim::DictConstruct"


class _UnknownConstant(Exception):
    """The value is not a constant."""


def propagate_constants(graph: Graph, rows: Rows = row_of) -> int:
    """Fold all constant expressions; return the number of removed nodes."""
    return _propagate(graph, rows, None)


def propagate_all(graph: Graph, rows: Rows = row_of) -> int:
    """Fold as `propagate_constants`, also over lists and dictionaries of constants."""
    return _propagate(graph, rows, Aliases(graph, rows))


def _propagate(graph: Graph, rows: Rows, aliases: Aliases | None) -> int:
    count = 0
    row: Rows = cache(rows)
    todo: list[Block] = [graph.block]
    while todo:
        block = todo.pop()
        node = block.entry.next
        while node is not None and node is not block.exit:
            previous = node.previous
            assert previous is not None, "a block starts with its parameters"
            if _decide(node) or _compute(node, row(node.kind), aliases):
                count += 1
                # Continue with the nodes that replace it.
                node = previous.next
                continue
            todo += node.blocks
            node = node.next
    return count


# Branches and loops


def _decide(node: Node) -> bool:
    """Replace a branch or loop whose course is constant; return True if it was."""
    if node.kind == "prim::If" and is_constant(node.inputs[0]):
        is_true = node.inputs[0].node.attributes["value"]
        splice(node, node.blocks[0 if is_true else 1])
        return True
    if node.kind == "prim::Loop":
        trips, condition, *carried = node.inputs
        no_trip = is_constant(trips) and trips.node.attributes["value"] <= 0
        if no_trip or (
            is_constant(condition) and not condition.node.attributes["value"]
        ):
            replace_node(node, carried)
            return True
    return False


# Values


def _compute(node: Node, row: NodeKind | None, aliases: Aliases | None) -> bool:
    """Replace a node by constants; return True if its values are constant."""
    compute = _KINDS.get(node.kind)
    if compute is None and not node.kind.startswith("script::"):
        return False
    if row is None or not node.outputs:
        return False
    try:
        values = [_value(each, aliases) for each in node.inputs]
        results = _run(node, row, values) if compute is None else compute(node, values)
    except _UnknownConstant:
        return False
    for value, result in zip(node.outputs, results, strict=True):
        if not _is_plain(result) or not fits(result, value.type):
            return False
    constants = [
        constant_before(node, result, value.type, value.hint)
        for value, result in zip(node.outputs, results, strict=True)
    ]
    replace_node(node, constants)
    return True


def _value(value: Value, aliases: Aliases | None) -> Any:
    """Return the constant value of a value of the graph.

    Raises:
        _UnknownConstant: the value is not a constant.
    """
    if is_constant(value):
        content = value.node.attributes["value"]
        if _is_plain(content):
            return content
    elif (
        aliases is not None
        and value.node.kind in (_LISTS, _DICTS)
        and len(value.node.inputs) <= LONGEST
        and not aliases.is_written(value)
    ):
        content = [_value(each, None) for each in value.node.inputs]
        if value.node.kind == _LISTS:
            return content
        return dict(zip(content[::2], content[1::2], strict=True))
    raise _UnknownConstant


def _is_plain(value: Any) -> bool:
    if value.__class__ is tuple:
        return len(value) <= LONGEST and all(map(_is_plain, value))
    if value.__class__ is str:
        return len(value) <= LONGEST
    return value.__class__ in PLAIN_TYPES


def _run(node: Node, row: NodeKind, values: list[Any]) -> tuple[Any, ...]:
    """Return the results of a primitive for constant operands."""
    primitive = by_name(node.kind)
    if primitive is None or row.writes or "nondeterministic_seeded" in primitive.tags:
        raise _UnknownConstant
    name = node.kind.removeprefix("script::").partition(".")[0]
    if name in _COMPARING and not any(map(_is_single, values)):
        raise _UnknownConstant
    returns_text = any(each.type is StrType for each in node.outputs)
    if (returns_text or name in _SLOW) and any(map(_is_large, values)):
        raise _UnknownConstant
    try:
        result = primitive.function(*values)
    except Exception as error:
        # The node raises it when the graph runs.
        raise _UnknownConstant from error
    return result if len(node.outputs) > 1 else (result,)


def _is_single(value: Any) -> bool:
    return value is None or value.__class__ is bool


def _is_large(value: Any) -> bool:
    """Return True if a value may cause a long result or computation."""
    if value.__class__ is int:
        return abs(value) > LONGEST
    if value.__class__ is str:
        return _WIDE.search(value) is not None
    if value.__class__ in (tuple, list):
        return any(map(_is_large, value))
    return False


def _tuple(node: Node, values: list[Any]) -> tuple[Any, ...]:
    type_ = node.output.type
    # The class of a named tuple is not known here.
    if not isinstance(type_, TupleType) or type_.names:
        raise _UnknownConstant
    return (tuple(values),)


def _unpacked(node: Node, values: list[Any]) -> tuple[Any, ...]:
    (whole,) = values
    return tuple(whole)


def _indexed(node: Node, values: list[Any]) -> tuple[Any, ...]:
    return (values[0][node.attributes["index"]],)


def _cast(node: Node, values: list[Any]) -> tuple[Any, ...]:
    return tuple(values)


_KINDS: dict[str, Callable[[Node, list[Any]], tuple[Any, ...]]] = {
    "prim::TupleConstruct": _tuple,
    "prim::TupleUnpack": _unpacked,
    "prim::TupleIndex": _indexed,
    "prim::unchecked_cast": _cast,
}


# Pooling


def pool_constants(graph: Graph) -> int:
    """Pool constants at the head; return the number of moved and removed nodes."""
    count = 0
    first_nodes: dict[Any, Node] = {}
    last = graph.block.entry
    for node in [*graph.nodes()]:
        if node.kind != CONSTANT:
            continue
        ((name, value),) = node.attributes.items()
        key = id(node.output.type), name, identity(value)
        first = first_nodes.get(key)
        if first is not None:
            first.output.hint = first.output.hint or node.output.hint
            node.output.replace_by(first.output)
            node.destroy()
            count += 1
            continue
        first_nodes[key] = node
        if node.previous is not last:
            node.unlink().insert_after(last)
            count += 1
        last = node
    return count


LIST = "prim::ListConstruct"


def erase_list_literals(graph: Graph) -> int:
    """Resolve queries of list literals; return the number of removed nodes."""
    queries = [
        node
        for node in graph.nodes()
        if node.kind in _ANSWERS and node.inputs[0].node.kind == LIST
    ]
    if not queries:
        return 0
    aliases = Aliases(graph)
    count = 0
    for node in queries:
        literal = node.inputs[0]
        if aliases.is_written(literal):
            continue
        answer = _ANSWERS[node.kind](node, literal.node.inputs)
        if answer is not None:
            replace_node(node, answer)
            count += 1
    return count


_Answer = Sequence[Value] | None


def _length(node: Node, elements: Sequence[Value]) -> _Answer:
    return [constant_before(node, len(elements), IntType, node.output.hint)]


def _element(node: Node, elements: Sequence[Value]) -> _Answer:
    if not is_constant(node.inputs[1]):
        return None
    index = node.inputs[1].node.attributes["value"]
    return [elements[index]] if -len(elements) <= index < len(elements) else None


def _all(node: Node, elements: Sequence[Value]) -> _Answer:
    return elements if len(node.outputs) == len(elements) else None


_ANSWERS: dict[str, Callable[[Node, Sequence[Value]], _Answer]] = {
    "script::len.t": _length,
    "script::getitem.t": _element,
    "prim::ListUnpack": _all,
}


MADE = "prim::TupleConstruct"


def lower_tuples(graph: Graph) -> int:
    """Remove tuples; return the number of steps."""
    count = 0
    # Removing an outer tuple exposes the inner ones.
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
    """Return True if a value is a tuple that is built for one use."""
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
        rebuilt = Node(MADE, parts, [type_], None, node.place).insert_after(body.entry)
        rebuilt.output.hint = parameter.hint
        parameter.replace_by(rebuilt.output)
        _make_behind(node, output, type_)
        node.remove_input(index + 2)
        body.exit.remove_input(index + 1)
        body.entry.remove_output(index + 1)
        node.remove_output(index)
        count += 1
    return count


def _give_elements(block: Block, result: Value, type_: TupleType) -> None:
    """Add the elements of a result to the results of a block."""
    for value, part in zip(result.node.inputs, type_.elements, strict=True):
        block.add_result(of_type(value, part, block.exit))


def _make_behind(node: Node, output: Value, type_: TupleType) -> None:
    """Add outputs for the elements of an output, and build the tuple after the node."""
    parts = [node.add_output(each, output.hint) for each in type_.elements]
    rebuilt = Node(MADE, parts, [type_], None, node.place).insert_after(node)
    rebuilt.output.hint = output.hint
    output.replace_by(rebuilt.output)
