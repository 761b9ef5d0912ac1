"""Freezing of modules: attributes that nobody sets become constants of the graphs.

Rules of modules:
- a module that is being trained is not frozen;
- `forward`, the hooks of the module, and what is named as preserved, stay; other
  methods go, as do the attributes that nothing asks for any more;
- an attribute that one of the methods may set stays one, by whichever way it is
  reached; a tensor that becomes a constant has no history;
- the constants are named as they were reached, `self.layers.0.weight`;
- the module that is frozen stays as it was; what stays an attribute is the same object
  in both, as are tensors.

Rules of graphs:
- an attribute is known by its way from the first parameter: `self.block.0.weight` is
  `("block", "0", "weight")`;
- an object that is handed to unknown code, or is reached by a way that is not known
  (a branch gives it), may have all attributes below it set;
- a tensor that becomes a constant is the same tensor: what is written to it is seen, as
  no pass computes with tensors early;
- only what a constant can be is put in place: a list, which can be written to, stays
  with its object, and so do objects;
- graphs of forks and awaits within are frozen with their graph; calls are inlined
  before, and dead code goes afterwards.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from everyorder.runtime.errors.base import nearest
from everyorder.runtime.errors.script import ModuleError, NotScriptable
from everyorder.runtime.schema.declared import (
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.types import AnyType
from everyorder.runtime.script.ir import (
    Graph,
    Node,
    NodeEffect,
    Rows,
    Value,
    copy_graph,
    row_of,
)
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.ir.type_rules import fits
from everyorder.runtime.script.modules.script_module import ScriptModule
from everyorder.runtime.script.passes import CLEANUP, inline_calls, run_passes
from everyorder.runtime.script.passes.inline import constant_before
from everyorder.runtime.tensors import Tensor

# Graphs

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
    """The attributes that a graph may set, of its first parameter."""
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
    return row is None or NodeEffect.UNKNOWN in row.effects or bool(node.outputs)


def _ways(values: Any, ways: Mapping[Value, Way]) -> Iterator[Way]:
    """The ways to the objects among values."""
    for value in values:
        is_object = isinstance(value.type, _OBJECTS) or value.type is AnyType
        if is_object and value in ways:
            yield ways[value]


# Modules


def freeze(module: ScriptModule, preserved: Sequence[str] = ()) -> ScriptModule:
    """A module that computes the same, whose attributes are constants of its graphs.

    Raises:
        NotScriptable: it is being trained.
        ModuleError: it has no attribute, or method, that is to be preserved.
    """
    declaration = module.__script_type__.declaration
    if module.training:
        raise NotScriptable(
            found=f"the module `{module.original_name}`",
            reason="a module is not frozen while it is trained",
            hint="Call its `eval()` first.",
        )
    known = [*declaration.attributes, *declaration.methods, *declaration.constants]
    for name in preserved:
        if name not in known:
            raise ModuleError(
                code="NoSuchMember",
                module=module.original_name,
                wanted="attribute or method",
                path=name,
                near=nearest(name, known),
            )
    before, behind = module._script_hooks
    asked = ("forward", *before, *behind, *preserved)
    methods = [name for name in declaration.methods if name in asked]
    graphs = {name: _inlined(declaration.functions[name].graph) for name in methods}
    values = _AttributeValues(
        module, preserved, [settable(each) for each in graphs.values()]
    )
    for graph in graphs.values():
        freeze_attributes(graph, values)
        run_passes(graph, CLEANUP)
    return _module(module, graphs, preserved)


def _inlined(graph: Graph) -> Graph:
    made = copy_graph(graph)
    inline_calls(made)
    run_passes(made, CLEANUP)
    return made


class _AttributeValues:
    """The values of attributes by their ways; called by the pass."""

    __slots__ = ("_module", "_objects", "_preserved", "_set")

    def __init__(
        self, module: ScriptModule, preserved: Sequence[str], known: Sequence[Settable]
    ) -> None:
        self._module = module
        self._preserved = preserved
        # An object may be reached by several ways, so the objects themselves count.
        self._set = {
            (id(self._object_at(way[:-1])), way[-1])
            for each in known
            for way in each.attributes
        }
        self._objects = {
            id(each)
            for one in known
            for way in one.objects
            for each in self._objects_below(way)
        }

    def _object_at(self, way: Sequence[str]) -> Any:
        found: Any = self._module
        for name in way:
            found = getattr(found, name)
        return found

    def _objects_below(self, way: Sequence[str]) -> Iterator[Any]:
        found = self._object_at(way)
        yield from found.modules() if isinstance(found, ScriptModule) else (found,)

    def __call__(self, way: Sequence[str]) -> Any:
        owner = self._object_at(way[:-1])
        is_set = (id(owner), way[-1]) in self._set or id(owner) in self._objects
        if is_set or way[0] in self._preserved:
            return STAYS
        value = getattr(owner, way[-1])
        return value.detach() if isinstance(value, Tensor) else value


def _module(
    module: ScriptModule, graphs: dict[str, Graph], preserved: Sequence[str]
) -> ScriptModule:
    """A module with these methods, and with the attributes that they ask for."""
    old = module.__script_type__
    namespace = old.declaration.namespace
    made = namespace.declare(ModuleType, old.declaration.qualname)
    used = {*preserved, "training"}
    for graph in graphs.values():
        used |= _used(graph, old)
    roles = {}
    for name, of in old.declaration.attributes.items():
        if name in used:
            made.declaration.add_attribute(name, of)
        for role, table in (
            ("parameter", module._parameters),
            ("buffer", module._buffers),
        ):
            if name in table:
                roles[name] = role
    for name, value in old.declaration.constants.items():
        made.declaration.add_constant(name, value)
    for name, graph in graphs.items():
        was = old.declaration.functions[name]
        graph.block.parameters[0].type = made
        first = Argument(was.schema.arguments[0].name, made)
        rest = was.schema.arguments[1:]
        schema = Schema(OperatorName(name), (first, *rest), was.schema.returns)
        function = Function(f"{made.declaration.qualname}.{name}", schema, graph)
        made.declaration.add_method(name, schema)
        made.declaration.functions[name] = function
    values = {name: getattr(module, name) for name in made.declaration.attributes}
    return ScriptModule(made, values, roles, module._script_hooks)


def _used(graph: Graph, of: ModuleType) -> set[str]:
    """The attributes of the object that a graph asks for; all, if it is handed on."""
    names = set()
    todo = [graph.block.parameters[0]]
    for value in todo:
        for node, place in value.uses:
            inner = node.attributes.get("graph")
            if node.kind in (GET, SET) and place == 0:
                names.add(node.attributes["name"])
            elif isinstance(inner, Graph):
                todo.append(inner.block.parameters[place])
            else:
                return {*of.declaration.attributes}
    return names
