"""Freezing of modules: attributes that nobody sets become constants of the graphs.

True only here: which methods and attributes a frozen module has.

Rules:
- a module that is being trained is not frozen;
- `forward`, the hooks of the module, and what is named as preserved, stay; other
  methods go, as do the attributes that nothing asks for any more;
- an attribute that one of the methods may set stays one, by whichever way it is
  reached; a tensor that becomes a constant has no history;
- the constants are named as they were reached, `self.layers.0.weight`;
- the module that is frozen stays as it was; what stays an attribute is the same object
  in both, as are tensors.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from runtime.errors.base import nearest
from runtime.errors.module import NoSuchMember, NotScriptable
from runtime.schema.argument import Argument
from runtime.schema.declaration import ModuleType
from runtime.schema.names import OperatorName
from runtime.schema.schema import Schema
from runtime.script.ir import Graph, copy_graph
from runtime.script.modules.script_module import ScriptModule
from runtime.script.passes import (
    CLEANUP,
    STAYS,
    Settable,
    freeze_attributes,
    inline_calls,
    run_passes,
    settable,
)
from runtime.script.program import Function
from runtime.tensors import Tensor

_OWN = ("prim::GetAttr", "prim::SetAttr")


def freeze(module: ScriptModule, preserved: Sequence[str] = ()) -> ScriptModule:
    """A module that computes the same, whose attributes are constants of its graphs.

    Raises:
        NotScriptable: it is being trained.
        NoSuchMember: it has no attribute, or method, that is to be preserved.
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
            raise NoSuchMember(
                module=module.original_name,
                wanted="attribute or method",
                path=name,
                near=nearest(name, known),
            )
    before, behind = module._script_hooks
    asked = ("forward", *before, *behind, *preserved)
    methods = [name for name in declaration.methods if name in asked]
    graphs = {name: _inlined(declaration.functions[name].graph) for name in methods}
    values = _Values(module, preserved, [settable(each) for each in graphs.values()])
    for graph in graphs.values():
        freeze_attributes(graph, values)
        run_passes(graph, CLEANUP)
    return _module(module, graphs, preserved)


def _inlined(graph: Graph) -> Graph:
    made = copy_graph(graph)
    inline_calls(made)
    run_passes(made, CLEANUP)
    return made


class _Values:
    """What attributes are, by their ways; called by the pass."""

    __slots__ = ("_module", "_objects", "_preserved", "_set")

    def __init__(
        self, module: ScriptModule, preserved: Sequence[str], known: Sequence[Settable]
    ) -> None:
        self._module = module
        self._preserved = preserved
        # An object may be reached by several ways, so the objects themselves count.
        self._set = {
            (id(self._at(way[:-1])), way[-1])
            for each in known
            for way in each.attributes
        }
        self._objects = {
            id(each)
            for one in known
            for way in one.objects
            for each in self._below(way)
        }

    def _at(self, way: Sequence[str]) -> Any:
        found: Any = self._module
        for name in way:
            found = getattr(found, name)
        return found

    def _below(self, way: Sequence[str]) -> Iterator[Any]:
        found = self._at(way)
        yield from found.modules() if isinstance(found, ScriptModule) else (found,)

    def __call__(self, way: Sequence[str]) -> Any:
        owner = self._at(way[:-1])
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
            if node.kind in _OWN and place == 0:
                names.add(node.attributes["name"])
            elif isinstance(inner, Graph):
                todo.append(inner.block.parameters[place])
            else:
                return {*of.declaration.attributes}
    return names
