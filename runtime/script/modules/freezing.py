"""Freezing of modules: attributes that no method sets become constants of the graphs.

Rules of modules:
- a module that is being trained is not frozen;
- `forward`, `__call__`, the hooks of the module, and preserved members stay; other
  methods are removed, and so are attributes that the remaining methods do not use;
- a member of a submodule is preserved by its path, `sub.limit`: the submodule stays;
  with a method of it, so do all attributes below it;
- an attribute that one of the methods may set stays an attribute, on every path to it;
  a tensor that becomes a constant is detached from autograd;
- the constants are named after their paths, `self.layers.0.weight`;
- the original module does not change, and later changes of it are not seen: remaining
  submodules, lists and dictionaries are copies; tensors and objects are the same in
  both modules.

Rules of graphs:
- an attribute is identified by its path from the first parameter: `self.block.0.weight`
  is `("block", "0", "weight")`;
- for an object that is passed to unknown code, or is reached on an unknown path (as the
  result of a branch), all attributes below it may be set;
- a tensor that becomes a constant is the same object: later writes to it are visible,
  as no pass computes with tensors early;
- only values that a constant can hold are replaced: a list, which can be written to,
  stays an attribute, and so do objects;
- nested graphs of forks and awaits are frozen with their graph; calls are inlined
  before, and dead code is removed afterwards.
"""

import copy
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

# Names of attributes, starting at the first parameter.
Way = tuple[str, ...]
GET, SET = "prim::GetAttr", "prim::SetAttr"
_OBJECTS = (ModuleType, ScriptClassType, InterfaceType)


class _Stays:
    """The type of `STAYS`."""

    def __repr__(self) -> str:
        return "STAYS"


# Returned for an attribute that does not become a constant.
STAYS: Any = _Stays()


class Settable(NamedTuple):
    """The attributes that a graph may set, and objects with any attribute set."""

    attributes: frozenset[Way]
    objects: frozenset[Way]

    def has(self, way: Way) -> bool:
        """Return True if the graph may set the attribute at the end of a path."""
        heads = [way[:count] for count in range(len(way))]
        return way in self.attributes or not self.objects.isdisjoint(heads)


def settable(graph: Graph, rows: Rows = row_of) -> Settable:
    """Return the attributes of the first parameter that a graph may set."""
    attributes: set[Way] = set()
    objects: set[Way] = set()
    for node, ways in _walk(graph):
        if node.kind == SET:
            way = ways.get(node.inputs[0])
            if way is not None:
                attributes.add((*way, node.attributes["name"]))
            elif isinstance(node.inputs[0].type, ModuleType):
                objects.add(())
            # The stored object can be reached on another path.
            objects.update(_ways(node.inputs[1:], ways))
        elif node.kind != GET and _hands_on(node, rows):
            objects.update(_ways(node.inputs, ways))
        for block in node.blocks:
            objects.update(_ways(block.results, ways))
    objects.update(_ways(graph.block.results, {graph.block.parameters[0]: ()}))
    return Settable(frozenset(attributes), frozenset(objects))


def freeze_attributes(graph: Graph, value_of: Callable[[Way], Any]) -> int:
    """Replace attributes by constants; return the number of replaced reads.

    `value_of` is called for each attribute that is read, except objects; it returns the
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
        constant = constant_before(
            node, value, node.output.type, ".".join(("self", *full))
        )
        node.output.replace_by(constant)
        node.destroy()
        count += 1
    return count


def _walk(graph: Graph) -> Iterator[tuple[Node, Mapping[Value, Way]]]:
    """Yield all nodes, including those of nested graphs, with the known paths."""
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
                pairs = zip(inner.block.parameters, node.inputs, strict=True)
                inner_ways = {own: ways[value] for own, value in pairs if value in ways}
                todo.append((inner, inner_ways))
            yield node, ways


def _hands_on(node: Node, rows: Rows) -> bool:
    """Return True if a node may set attributes of its inputs, or pass them on."""
    if "graph" in node.attributes:
        # The walk visits the graph itself.
        return False
    row = rows(node.kind)
    return row is None or NodeEffect.UNKNOWN in row.effects or bool(node.outputs)


def _ways(values: Any, ways: Mapping[Value, Way]) -> Iterator[Way]:
    """Yield the paths to the objects among values."""
    for value in values:
        is_object = isinstance(value.type, _OBJECTS) or value.type is AnyType
        if is_object and value in ways:
            yield ways[value]


# Modules


def freeze(module: ScriptModule, preserved: Sequence[str] = ()) -> ScriptModule:
    """Return an equivalent module whose attributes are constants of its graphs.

    Raises:
        NotScriptable: the module is in training mode. ModuleError: an attribute or
        method of `preserved` does not exist.
    """
    declaration = module.__script_type__.declaration
    if module.training:
        raise NotScriptable(
            found=f"the module `{module.original_name}`",
            reason="a module is not frozen while it is trained",
            hint="Call its `eval()` first.",
        )
    ways = [_preserved_way(module, name) for name in preserved]
    before, behind = module._script_hooks
    roots = ("forward", "__call__", *before, *behind, *preserved)
    methods = [name for name in declaration.methods if name in roots]
    graphs = {name: _inlined(declaration.functions[name].graph) for name in methods}
    values = _AttributeValues(
        module, ways, [settable(each) for each in graphs.values()]
    )
    for graph in graphs.values():
        freeze_attributes(graph, values)
        run_passes(graph, CLEANUP)
    names = [name.partition(".")[0] for name in preserved]
    return _module(module, graphs, names)


def _preserved_way(module: ScriptModule, path: str) -> Way:
    """Return the path below which attributes stay, for a preserved member.

    Raises:
        ModuleError: the member does not exist.
    """
    *heads, last = path.split(".")
    owner = module
    for name in heads:
        inner = {
            each: one
            for each, one in owner._modules.items()
            if isinstance(one, ScriptModule)
        }
        _check_member(owner, "submodule", name, [*inner])
        owner = inner[name]
    declaration = owner.__script_type__.declaration
    members = [*declaration.attributes, *declaration.methods, *declaration.constants]
    _check_member(owner, "attribute or method", last, members)
    is_below = heads and last in declaration.methods
    return tuple(heads) if is_below else (*heads, last)


def _check_member(
    owner: ScriptModule, wanted: str, name: str, members: list[str]
) -> None:
    if name not in members:
        raise ModuleError(
            code="NoSuchMember",
            module=owner.original_name,
            wanted=wanted,
            path=name,
            near=nearest(name, members),
        )


def _inlined(graph: Graph) -> Graph:
    result = copy_graph(graph)
    inline_calls(result)
    run_passes(result, CLEANUP)
    return result


class _AttributeValues:
    """The values of attributes by their paths; the pass calls it."""

    __slots__ = ("_module", "_objects", "_preserved", "_set")

    def __init__(
        self,
        module: ScriptModule,
        preserved: Sequence[Way],
        settables: Sequence[Settable],
    ) -> None:
        self._module = module
        self._preserved = preserved
        # Identified by object: an object may be reached on several paths.
        self._set = {
            (id(self._object_at(way[:-1])), way[-1])
            for each in settables
            for way in each.attributes
        }
        self._objects = {
            id(each)
            for one in settables
            for way in one.objects
            for each in self._objects_below(way)
        }

    def _object_at(self, way: Sequence[str]) -> Any:
        target: Any = self._module
        for name in way:
            target = getattr(target, name)
        return target

    def _objects_below(self, way: Sequence[str]) -> Iterator[Any]:
        target = self._object_at(way)
        yield from target.modules() if isinstance(target, ScriptModule) else (target,)

    def __call__(self, way: Sequence[str]) -> Any:
        owner = self._object_at(way[:-1])
        is_set = (id(owner), way[-1]) in self._set or id(owner) in self._objects
        is_preserved = any(tuple(way[: len(each)]) == each for each in self._preserved)
        if is_set or is_preserved:
            return STAYS
        value = getattr(owner, way[-1])
        return value.detach() if isinstance(value, Tensor) else value


def _module(
    module: ScriptModule, graphs: dict[str, Graph], preserved: Sequence[str]
) -> ScriptModule:
    """Return a module with these methods and the attributes that they use."""
    old = module.__script_type__
    namespace = old.declaration.namespace
    frozen_type = namespace.declare(ModuleType, old.declaration.qualname)
    used = {*preserved, "training"}
    for graph in graphs.values():
        used |= _used(graph, old)
    roles = {}
    for name, of in old.declaration.attributes.items():
        if name in used:
            frozen_type.declaration.add_attribute(name, of)
        for role, table in (
            ("parameter", module._parameters),
            ("buffer", module._buffers),
        ):
            if name in table:
                roles[name] = role
    for name, value in old.declaration.constants.items():
        frozen_type.declaration.add_constant(name, value)
    for name, graph in graphs.items():
        was = old.declaration.functions[name]
        graph.block.parameters[0].type = frozen_type
        first = Argument(was.schema.arguments[0].name, frozen_type)
        rest = was.schema.arguments[1:]
        schema = Schema(OperatorName(name), (first, *rest), was.schema.returns)
        function = Function(f"{frozen_type.declaration.qualname}.{name}", schema, graph)
        frozen_type.declaration.add_method(name, schema)
        frozen_type.declaration.functions[name] = function
    memo: dict[int, Any] = {}
    values = {
        name: _copied(getattr(module, name), memo)
        for name in frozen_type.declaration.attributes
    }
    return ScriptModule(frozen_type, values, roles, module._script_hooks)


def _copied(value: Any, memo: dict[int, Any]) -> Any:
    """Return a copy of modules and containers, with the same tensors and objects."""
    if id(value) in memo:
        return memo[id(value)]
    if isinstance(value, ScriptModule):
        one = memo[id(value)] = copy.copy(value)
        vars(one)["_modules"] = {
            name: _copied(each, memo) for name, each in value._modules.items()
        }
        for name in value.__script_type__.declaration.attributes:
            if name in vars(one):
                vars(one)[name] = _copied(vars(one)[name], memo)
        return one
    if isinstance(value, list | dict):
        container = memo[id(value)] = copy.copy(value)
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in items:
            container[key] = _copied(each, memo)
        return container
    if isinstance(value, tuple):
        parts = [_copied(each, memo) for each in value]
        make: Any = type(value)
        return make(*parts) if hasattr(value, "_fields") else make(parts)
    return value


def _used(graph: Graph, of: ModuleType) -> set[str]:
    """Return the attributes of the object that a graph uses; all if it is passed on."""
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
