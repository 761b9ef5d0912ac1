"""Freezing: attributes of an object that is known become constants of the graph.

True only here: by which way through attributes a value of a graph is reached, which
attributes a graph may set, and which reads of attributes become constants.

    ("block", "0", "weight")    the way from the first parameter, `self.block.0.weight`

Rules:
- whoever freezes says what an attribute is, or that it stays (`STAYS`); it has to stay
  if any method that will run may set it, by any way to the same object;
- an object that is handed to unknown code, or is reached by a way that is not known
  (a branch gives it), may have all attributes below it set;
- a tensor that becomes a constant is the same tensor: what is written to it is seen, as
  nothing here, or in another pass, computes with tensors early;
- only what a constant can be is put in place: a list, which can be written to, stays
  with its object, and so do objects;
- graphs of forks and awaits within are frozen with their graph; calls are inlined
  before (`runtime.script.passes.inlining`), and dead code goes afterwards.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from runtime.schema.declaration import InterfaceType, ModuleType, ScriptClassType
from runtime.schema.types import AnyType
from runtime.script.ir import Effect, Graph, Node, Rows, Value, row_of
from runtime.script.ir.type_rules import fits
from runtime.script.passes.splicing import constant_before

# The names of attributes from the first parameter on.
Way = tuple[str, ...]
GET, SET = "prim::GetAttr", "prim::SetAttr"
_OBJECTS = (ModuleType, ScriptClassType, InterfaceType)


class _Stays:
    """The type of `STAYS`."""

    def __repr__(self) -> str:
        return "STAYS"


# An attribute that does not become a constant.
STAYS: Any = _Stays()


class Settable(NamedTuple):
    """Attributes that a graph may set, and objects of which it may set any."""

    attributes: frozenset[Way]
    objects: frozenset[Way]

    def has(self, way: Way) -> bool:
        """Whether the graph may set the attribute at the end of a way."""
        heads = [way[:count] for count in range(len(way))]
        return way in self.attributes or not self.objects.isdisjoint(heads)


def settable(graph: Graph, rows: Rows = row_of) -> Settable:
    """What a graph may set of the object that is its first parameter."""
    attributes: set[Way] = set()
    objects: set[Way] = set()
    for node, ways in _walk(graph):
        if node.kind == SET:
            way = ways.get(node.inputs[0])
            if way is not None:
                attributes.add((*way, node.attributes["name"]))
            elif isinstance(node.inputs[0].type, ModuleType):
                objects.add(())
            # What is stored somewhere is reached by another way.
            objects.update(_ways(node.inputs[1:], ways))
        elif node.kind != GET and _hands_on(node, rows):
            objects.update(_ways(node.inputs, ways))
        for block in node.blocks:
            objects.update(_ways(block.results, ways))
    objects.update(_ways(graph.block.results, {graph.block.parameters[0]: ()}))
    return Settable(frozenset(attributes), frozenset(objects))


def freeze_attributes(graph: Graph, value_of: Callable[[Way], Any]) -> int:
    """Put constants in place of attributes; gives how many reads went.

    `value_of` is asked for each attribute that is read and is no object: it gives the
    value, or `STAYS`.
    """
    count = 0
    for node, ways in _walk(graph):
        way = ways.get(node.inputs[0]) if node.kind == GET else None
        if way is None or isinstance(node.output.type, _OBJECTS):
            continue
        full = (*way, node.attributes["name"])
        value = value_of(full)
        if value is STAYS or not fits(value, node.output.type):
            continue
        made = constant_before(node, value, node.output.type, ".".join(("self", *full)))
        node.output.replace_by(made)
        node.destroy()
        count += 1
    return count


def _walk(graph: Graph) -> Iterator[tuple[Node, Mapping[Value, Way]]]:
    """All nodes, of graphs within too, and the ways that are known there."""
    todo: list[tuple[Graph, dict[Value, Way]]] = [
        (graph, {graph.block.parameters[0]: ()})
    ]
    for each, ways in todo:
        for node in each.nodes():
            owner = ways.get(node.inputs[0]) if node.kind == GET else None
            if owner is not None:
                ways[node.output] = (*owner, node.attributes["name"])
            inner = node.attributes.get("graph")
            if isinstance(inner, Graph):
                given = zip(inner.block.parameters, node.inputs, strict=True)
                known = {own: ways[value] for own, value in given if value in ways}
                todo.append((inner, known))
            yield node, ways


def _hands_on(node: Node, rows: Rows) -> bool:
    """Whether what a node is given may be set there, or reached by another way."""
    if "graph" in node.attributes:
        # The graph is looked at itself.
        return False
    row = rows(node.kind)
    return row is None or Effect.UNKNOWN in row.effects or bool(node.outputs)


def _ways(values: Any, ways: Mapping[Value, Way]) -> Iterator[Way]:
    """The ways to the objects among values."""
    for value in values:
        is_object = isinstance(value.type, _OBJECTS) or value.type is AnyType
        if is_object and value in ways:
            yield ways[value]
