"""Constants: what is known before the graph runs is computed, and kept once.

True only here: what may be computed early, and which branches and loops that decides.

Rules:
- plain values only are computed, of plain values: numbers, texts, None, devices, and
  tuples of these; nothing that can be written to, so that all may share the constant;
- by primitives and a few kinds only: an operator of the runtime may have another kernel
  by the time the graph runs;
- what raises is left to run and raise; what is not deterministic is left, too;
- no constant is longer than `LONGEST`, and none that would be is computed;
- a branch whose condition is known becomes the block that is taken, and a loop that is
  known to have no trip becomes what it was given;
- `propagate_constants` asks nothing of memory; `propagate_all` also looks into lists
  and dictionaries of constants that nobody in the graph writes to;
- `pool_constants` puts each constant once, at the head of the graph, in the order in
  which they were written; equal ones of two types are two.
"""

import re
from collections.abc import Callable
from typing import Any

from runtime.schema.device import Device
from runtime.schema.types import StrType, TupleType
from runtime.script.ir import Block, Graph, Kind, Node, Rows, Value, row_of
from runtime.script.ir.type_rules import fits
from runtime.script.passes.aliases import Aliases
from runtime.script.passes.identity import identity
from runtime.script.passes.splicing import (
    CONSTANT,
    constant_before,
    is_constant,
    replace_node,
    splice,
)
from runtime.script.primitives import by_name

# The longest text, and the most elements of a tuple, that is kept as a constant; the
# time a program takes to compute one that long is nothing that anybody waits for.
LONGEST = 1000
# A text that asks for more than a thousand characters, as formats do.
_WIDE = re.compile(r"[0-9]{4}")
_PLAIN = (int, float, bool, complex, str, type(None), Device)
# They may take long with large numbers, and then are refused.
_SLOW = ("factorial", "comb", "perm", "round", "pow")
# Of numbers and texts nobody says how many objects there are.
_COMPARING = ("is_", "is_not")
_LISTS, _DICTS = "prim::ListConstruct", "prim::DictConstruct"


class _Unknown(Exception):
    """The value is not known."""


def propagate_constants(graph: Graph, rows: Rows = row_of) -> int:
    """Compute what constants decide; gives how many nodes went."""
    return _propagate(graph, rows, None)


def propagate_all(graph: Graph, rows: Rows = row_of) -> int:
    """As `propagate_constants`, and of lists and dictionaries of constants, too."""
    return _propagate(graph, rows, Aliases(graph, rows))


def _propagate(graph: Graph, rows: Rows, aliases: Aliases | None) -> int:
    count = 0
    known: dict[str, Kind | None] = {}
    todo: list[Block] = [graph.block]
    while todo:
        block = todo.pop()
        node = block.entry.behind
        while node is not None and node is not block.exit:
            before = node.before
            assert before is not None, "something is in front of a node"
            changed = _decide(node)
            if not changed:
                if node.kind not in known:
                    known[node.kind] = rows(node.kind)
                changed = _compute(node, known[node.kind], aliases)
            if changed:
                count += 1
                # What was put in its place comes next.
                node = before.behind
                continue
            todo += node.blocks
            node = node.behind
    return count


# Branches and loops


def _decide(node: Node) -> bool:
    """Put what runs in the place of a branch or loop; gives whether that is known."""
    if node.kind == "prim::If" and is_constant(node.inputs[0]):
        taken = node.inputs[0].node.attributes["value"]
        splice(node, node.blocks[0 if taken else 1])
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


def _compute(node: Node, row: Kind | None, aliases: Aliases | None) -> bool:
    """Put constants in the place of a node; gives whether its values are known."""
    compute = _KINDS.get(node.kind)
    if compute is None and not node.kind.startswith("script::"):
        return False
    if row is None or not node.outputs:
        return False
    try:
        values = [_value(each, aliases) for each in node.inputs]
        results = _run(node, row, values) if compute is None else compute(node, values)
    except _Unknown:
        return False
    for value, result in zip(node.outputs, results, strict=True):
        if not _is_plain(result) or not fits(result, value.type):
            return False
    made = [
        constant_before(node, result, value.type, value.hint)
        for value, result in zip(node.outputs, results, strict=True)
    ]
    replace_node(node, made)
    return True


def _value(value: Value, aliases: Aliases | None) -> Any:
    """What a value is known to be."""
    if is_constant(value):
        held = value.node.attributes["value"]
        if _is_plain(held):
            return held
    elif (
        aliases is not None
        and value.node.kind in (_LISTS, _DICTS)
        and len(value.node.inputs) <= LONGEST
        and not aliases.is_written(value)
    ):
        held = [_value(each, None) for each in value.node.inputs]
        if value.node.kind == _LISTS:
            return held
        return dict(zip(held[::2], held[1::2], strict=True))
    raise _Unknown


def _is_plain(value: Any) -> bool:
    if value.__class__ is tuple:
        return len(value) <= LONGEST and all(map(_is_plain, value))
    if value.__class__ is str:
        return len(value) <= LONGEST
    return value.__class__ in _PLAIN


def _run(node: Node, row: Kind, values: list[Any]) -> tuple[Any, ...]:
    """What a primitive gives."""
    primitive = by_name(node.kind)
    if primitive is None or row.writes or "nondeterministic_seeded" in primitive.tags:
        raise _Unknown
    name = node.kind.removeprefix("script::").partition(".")[0]
    if name in _COMPARING and not any(map(_is_single, values)):
        raise _Unknown
    gives_text = any(each.type is StrType for each in node.outputs)
    if (gives_text or name in _SLOW) and any(map(_is_large, values)):
        raise _Unknown
    try:
        result = primitive.function(*values)
    except Exception as error:
        # It is raised when the graph runs.
        raise _Unknown from error
    return result if len(node.outputs) > 1 else (result,)


def _is_single(value: Any) -> bool:
    return value is None or value.__class__ is bool


def _is_large(value: Any) -> bool:
    """Whether a value may make a result, or the way to it, long."""
    if value.__class__ is int:
        return abs(value) > LONGEST
    if value.__class__ is str:
        return _WIDE.search(value) is not None
    if value.__class__ in (tuple, list):
        return any(map(_is_large, value))
    return False


def _tuple(node: Node, values: list[Any]) -> tuple[Any, ...]:
    type_ = node.output.type
    # A tuple with names is of a class that nobody here knows.
    if not isinstance(type_, TupleType) or type_.names:
        raise _Unknown
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
    """Keep each constant once, at the head; gives how many were moved or went."""
    count = 0
    kept: dict[Any, Node] = {}
    last = graph.block.entry
    for node in [*graph.nodes()]:
        if node.kind != CONSTANT:
            continue
        ((name, value),) = node.attributes.items()
        key = id(node.output.type), name, identity(value)
        first = kept.get(key)
        if first is not None:
            first.output.hint = first.output.hint or node.output.hint
            node.output.replace_by(first.output)
            node.destroy()
            count += 1
            continue
        kept[key] = node
        if node.before is not last:
            node.take_out().put_behind(last)
            count += 1
        last = node
    return count
