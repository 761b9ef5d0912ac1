"""The graph checker: verify the laws of a graph from its parts alone.

The checker trusts nothing that the graph stores: it follows links in both directions
and infers types and effects again.

    LINKS   laws of links; if one is broken, the other laws are not checked
    LAWS    laws of scopes, forms, types and effects

Rules:
- a law is a function of a `GraphWalk`: its name is the name of the law, and the first
  line of its docstring states the law; it yields the violations and repairs nothing;
- a graph that keeps all laws prints as text that parses back to the same graph;
- any graph can be checked, even if its links are broken: no walk is endless, and no
  recursion is as deep as the nesting of blocks.

`check` runs between passes, in the tests after each pass.
"""

from collections.abc import Callable, Iterator
from enum import Enum, auto
from functools import cache
from typing import Any, NamedTuple

from everyorder.runtime.errors.script import BrokenGraph, GraphFault
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.type_parser import MOST_MEMBERS
from everyorder.runtime.schema.types import (
    DICT_KEYS,
    DictType,
    Type,
    TypeVariable,
    UnionType,
    fake,
)
from everyorder.runtime.script.ir.graph import (
    PARAM,
    RETURN,
    Block,
    Graph,
    Nested,
    Node,
    Value,
    run_nested,
)
from everyorder.runtime.script.ir.node_kinds import (
    DEEPEST,
    AttributeForm,
    NodeEffect,
    NodeKind,
    Rows,
    effects_of,
    row_of,
    writes_of,
)
from everyorder.runtime.script.ir.printer import printed
from everyorder.runtime.script.ir.type_rules import parts_of

# The deepest nesting of types that the type parser reads.
DEEPEST_TYPE = 64


class BrokenGraphLaw(NamedTuple):
    """A violation of a law at a node; `value` is set if `words` describe a value."""

    node: Node
    words: str
    value: Value | None = None


class Visit(Enum):
    """One step of a walk through a graph."""

    ENTER = auto()
    NODE = auto()
    # The results of a block.
    LEAVE = auto()
    # All blocks of the node are visited: its outputs are defined from here on.
    DONE = auto()


class GraphWalk:
    """A walk that visits each block and node of a graph and all nested graphs once.

    `ways` has one list of steps per graph; `blocks` pairs each block with its depth. A
    block that was visited before, or is nested too deeply, is not entered; the laws of
    links report it.
    """

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.graph = graph
        # Each kind is looked up once.
        self.rows: Rows = cache(rows)
        self.nodes: list[Node] = []
        self.blocks: list[tuple[Block, int]] = []
        self.ways: list[list[tuple[Visit, Node]]] = []
        self.graphs = [graph]
        self._seen = {id(graph)}
        for each in self.graphs:
            self.ways.append(self._way(each))

    def row(self, node: Node) -> NodeKind | None:
        """Return the row of the node's kind, or None for an unknown kind."""
        return self.rows(node.kind)

    def _way(self, graph: Graph) -> list[tuple[Visit, Node]]:
        way: list[tuple[Visit, Node]] = []
        run_nested(self._block(graph.block, 1, way))
        return way

    def _block(self, block: Block, depth: int, way: list[tuple[Visit, Node]]) -> Nested:
        if id(block) in self._seen:
            return
        self._seen.add(id(block))
        self.blocks.append((block, depth))
        way.append((Visit.ENTER, block.entry))
        node = block.entry.next
        while node is not None and node is not block.exit:
            if id(node) in self._seen:
                break
            self._seen.add(id(node))
            self.nodes.append(node)
            way.append((Visit.NODE, node))
            for inner in node.blocks:
                yield self._block(inner, depth + 1, way)
            way.append((Visit.DONE, node))
            row = self.row(node)
            if row is not None and row.graph is not None:
                inside = node.attributes.get(row.graph)
                if isinstance(inside, Graph) and id(inside) not in self._seen:
                    self._seen.add(id(inside))
                    self.graphs.append(inside)
            node = node.next
        way.append((Visit.LEAVE, block.exit))


Law = Callable[[GraphWalk], Iterator[BrokenGraphLaw]]


def check(graph: Graph, stage: str = "", rows: Rows = row_of) -> None:
    """Raise if a graph breaks a law; `stage` names the step that produced the graph.

    Raises:
        BrokenGraph: a law is broken; the error has the violations and the text.
    """
    broken = faults(graph, rows)
    if not broken:
        return
    text = printed(graph, places=False)
    lines = {id(node): at for at, node in reversed([*enumerate(text.nodes, 1)])}
    reported = []
    for law, fault in broken:
        words = fault.words
        if fault.value is not None:
            words = f"{text.names.get(fault.value, 'a value of no graph')} {words}"
        # A node that was not printed is reported at the last line.
        line = lines.get(id(fault.node), len(text.lines))
        reported.append(GraphFault(law, line, words))
    raise BrokenGraph(
        graph=graph.name, stage=stage, faults=tuple(reported), text=text.text
    )


def faults(graph: Graph, rows: Rows = row_of) -> list[tuple[str, BrokenGraphLaw]]:
    """Return the violated laws by name and the violations; empty for a sound graph."""
    walk = GraphWalk(graph, rows)
    violations = [(law.__name__, fault) for law in LINKS for fault in law(walk)]
    if not violations:
        violations = [(law.__name__, fault) for law in LAWS for fault in law(walk)]
    return violations


# Links


def blocks_are_rings(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that the nodes of a block are linked in both directions, entry to exit."""
    visited: set[int] = set()
    for block, _ in walk.blocks:
        if block.entry.kind != PARAM or block.exit.kind != RETURN:
            yield BrokenGraphLaw(block.entry, "the block has no ends")
        if block.entry.block is not block or block.exit.block is not block:
            yield BrokenGraphLaw(
                block.entry, "the ends of the block are of another one"
            )
        node = block.entry
        while node is not block.exit:
            visited.add(id(node))
            following = node.next
            if following is None:
                yield BrokenGraphLaw(node, "nothing is behind it")
                break
            if following.previous is not node:
                yield BrokenGraphLaw(following, "it does not know what is before it")
            if following.block is not block:
                words = "it says that it is in another block, or in none"
                yield BrokenGraphLaw(following, words)
            if id(following) in visited:
                yield BrokenGraphLaw(following, "it is in a block a second time")
                break
            node = following
        if block.entry.previous is not None or block.exit.next is not None:
            yield BrokenGraphLaw(
                block.exit, "something is outside of the ends of the block"
            )


def ends_are_ends(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that parameters and results are at the ends of blocks, and only there."""
    for node in walk.nodes:
        if node.kind in (PARAM, RETURN):
            yield BrokenGraphLaw(node, f"a {node.kind} is within a block")
    for block, _ in walk.blocks:
        for node in (block.entry, block.exit):
            if node.blocks or node.attributes:
                yield BrokenGraphLaw(
                    node, "the end of a block has blocks or attributes"
                )
        if block.entry.inputs or block.exit.outputs:
            yield BrokenGraphLaw(
                block.entry, "parameters have inputs, or results outputs"
            )


def blocks_have_owners(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that each block has one owner node, and the outermost block has none."""
    outermost = {id(graph.block) for graph in walk.graphs}
    visited = set(outermost)
    for graph in walk.graphs:
        if graph.block.owner is not None:
            yield BrokenGraphLaw(graph.block.entry, "the block of a graph has an owner")
    for node in walk.nodes:
        for block in node.blocks:
            if block.owner is not node:
                yield BrokenGraphLaw(node, "a block of it has another owner")
            if id(block) in visited:
                yield BrokenGraphLaw(node, "a block of it belongs to two")
            visited.add(id(block))


def blocks_are_not_too_deep(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that blocks are nested no deeper than the parser accepts."""
    for block, depth in walk.blocks:
        # Deeper blocks are inside this one: report the violation once.
        if depth == DEEPEST + 1:
            yield BrokenGraphLaw(block.entry, f"blocks may be nested {DEEPEST} deep")


def graphs_have_one_node(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that a graph that is an attribute belongs to exactly one node."""
    visited = {id(walk.graph)}
    for node in walk.nodes:
        for value in node.attributes.values():
            if isinstance(value, Graph):
                if id(value) in visited:
                    yield BrokenGraphLaw(node, "its graph is another one's, too")
                visited.add(id(value))


def outputs_know_their_nodes(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that each output names its node and its index."""
    for node in _all_nodes(walk):
        for place, value in enumerate(node.outputs):
            if value.node is not node or value.index != place:
                yield BrokenGraphLaw(
                    node, f"is not output {place} by its own words", value
                )


def uses_have_two_ends(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that the uses of values and the inputs of nodes agree."""
    nodes = _all_nodes(walk)
    inside = {id(node) for node in nodes}
    uses: dict[tuple[int, int], Value] = {}
    for node in nodes:
        for value in node.outputs:
            for user, place in value.uses:
                inputs = user.inputs
                if id(user) not in inside:
                    yield BrokenGraphLaw(
                        node, f"is used by a {user.kind} of no block", value
                    )
                elif not (0 <= place < len(inputs) and inputs[place] is value):
                    words = f"is not input {place} of a {user.kind}, as it says"
                    yield BrokenGraphLaw(node, words, value)
                elif (id(user), place) in uses:
                    words = f"is input {place} of a {user.kind}, and says so twice"
                    yield BrokenGraphLaw(node, words, value)
                else:
                    uses[id(user), place] = value
    for node in nodes:
        for place, value in enumerate(node.inputs):
            if id(value.node) not in inside:
                yield BrokenGraphLaw(
                    node, "is an output of no node of the graph", value
                )
            elif (id(node), place) not in uses:
                words = f"does not know that it is input {place}"
                yield BrokenGraphLaw(node, words, value)


def _all_nodes(walk: GraphWalk) -> list[Node]:
    ends = [node for block, _ in walk.blocks for node in (block.entry, block.exit)]
    return walk.nodes + ends


# Scopes


def values_are_defined_before_use(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that a value is used after its node, in the same or a nested block."""
    for way in walk.ways:
        visible: set[int] = set()
        scopes: list[list[int]] = []
        for step, node in way:
            if step is Visit.ENTER:
                scopes.append([])
            if step is Visit.NODE or step is Visit.LEAVE:
                for value in node.inputs:
                    if id(value) not in visible:
                        yield BrokenGraphLaw(node, "is not defined here", value)
            if step is Visit.ENTER or step is Visit.DONE:
                defined = [id(value) for value in node.outputs]
                visible.update(defined)
                scopes[-1] += defined
            elif step is Visit.LEAVE:
                visible.difference_update(scopes.pop())


# Forms


def kinds_are_known(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that each kind has a row: in the table, or as an operator with a schema."""
    for node in walk.nodes:
        if walk.row(node) is None:
            yield BrokenGraphLaw(
                node, f"there is no kind, and no operator, {node.kind}"
            )


def counts_agree(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that inputs, outputs and blocks are as many as the row of the kind says."""
    for node in walk.nodes:
        row = walk.row(node)
        if row is not None:
            for words in _miscounts(node, row):
                yield BrokenGraphLaw(node, words)


def _miscounts(node: Node, row: NodeKind) -> Iterator[str]:
    if not row.inputs.takes(len(node.inputs)):
        yield f"it has {len(node.inputs)} inputs, not {row.inputs}"
    if not row.outputs.takes(len(node.outputs)):
        yield f"it has {len(node.outputs)} outputs, not {row.outputs}"
    if len(node.blocks) != row.blocks:
        yield f"it has {len(node.blocks)} blocks, not {row.blocks}"


def attributes_agree(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that a node has exactly the attributes of its row, each in its form."""
    for node in walk.nodes:
        row = walk.row(node)
        if row is not None:
            for words in _misformed(node, row):
                yield BrokenGraphLaw(node, words)


def _misformed(node: Node, row: NodeKind) -> Iterator[str]:
    left = dict(node.attributes)
    for name, form, is_required in row.attributes:
        if name in left:
            if not _FORMS[form](left.pop(name)):
                yield f"its attribute `{name}` is no {form.name.lower()}"
        elif is_required:
            yield f"it has no attribute `{name}`"
    for name in left:
        yield f"it has an attribute `{name}`, of which nothing is known"


def _is_function(value: Any) -> bool:
    name, schema = getattr(value, "qualname", None), getattr(value, "schema", None)
    return isinstance(name, str) and isinstance(schema, Schema)


def _is_index(value: Any) -> bool:
    return value.__class__ is int and 0 <= value < 2**63


def _is_types(value: Any) -> bool:
    return (
        isinstance(value, tuple)
        and all(isinstance(each, Type) for each in value)
        and not any(map(_type_fault, value))
    )


# Form -> test of an attribute; the type rules test values of the form VALUE.
_FORMS: dict[AttributeForm, Callable[[Any], bool]] = {
    AttributeForm.VALUE: lambda value: True,
    AttributeForm.FUNCTION: _is_function,
    AttributeForm.TEXT: lambda value: value.__class__ is str,
    AttributeForm.INDEX: _is_index,
    AttributeForm.TYPES: _is_types,
    AttributeForm.GRAPH: lambda value: isinstance(value, Graph),
    AttributeForm.OBJECT: lambda value: True,
}


# Types


def types_are_inferred(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that outputs have the types inferred from inputs, blocks and attributes."""
    for node in walk.nodes:
        row = walk.row(node)
        if row is None or any(_miscounts(node, row)) or any(_misformed(node, row)):
            continue
        inferred = row.infer(node)
        if isinstance(inferred, str):
            yield BrokenGraphLaw(node, inferred)
        elif len(inferred) != len(node.outputs):
            words = f"it gives {len(inferred)} values for {len(node.outputs)} outputs"
            yield BrokenGraphLaw(node, words)
        else:
            for value, type_ in zip(node.outputs, inferred, strict=True):
                if fake(value.type) is not fake(type_):
                    words = f"is of type {type_}, and says {value.type}"
                    yield BrokenGraphLaw(node, words, value)


def types_can_be_written(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that the type of a value is closed and parses back from its text."""
    faults: dict[Type, str | None] = {}
    for node in _all_nodes(walk):
        for value in node.outputs:
            type_ = value.type
            if type_ not in faults:
                faults[type_] = _type_fault(type_)
            words = faults[type_]
            if words is not None:
                yield BrokenGraphLaw(node, words, value)


def _type_fault(outer: Type) -> str | None:
    """Return the reason why the text of a graph cannot hold the type, or None."""
    todo = [(outer, 1)]
    while todo:
        each, depth = todo.pop()
        if depth > DEEPEST_TYPE:
            return f"has a type that is nested more than {DEEPEST_TYPE} deep"
        if isinstance(each, TypeVariable):
            return f"has a type with the variable {each}"
        if isinstance(each, DictType) and each.key not in DICT_KEYS:
            return f"has a type with keys of type {each.key}"
        if isinstance(each, UnionType) and len(each.members) > MOST_MEMBERS:
            return f"has a type with a union of more than {MOST_MEMBERS} members"
        todo += [(inner, depth + 1) for inner in parts_of(each)]
    return None


# Effects

# The effects that the nodes of a fused graph may have.
_COMPUTES = NodeEffect.RUNS | NodeEffect.READS | NodeEffect.FRESH


def fused_graphs_only_compute(walk: GraphWalk) -> Iterator[BrokenGraphLaw]:
    """Check that a fused graph is pure: it may run in any order, or never."""
    for node in walk.nodes:
        if node.kind != "prim::FusionGroup" or not _is_graph(node):
            continue
        effects = effects_of(node, walk.rows) & ~_COMPUTES
        if effects:
            yield BrokenGraphLaw(node, f"it has effects: {_words(effects)}")
        for user, place in writes_of(node, walk.rows):
            yield BrokenGraphLaw(node, f"its {user.kind} writes to input {place}")


def _is_graph(node: Node) -> bool:
    return isinstance(node.attributes.get("graph"), Graph)


def _words(effects: NodeEffect) -> str:
    return ", ".join(each.name or "" for each in effects)


LINKS: tuple[Law, ...] = (
    blocks_are_rings,
    ends_are_ends,
    blocks_have_owners,
    blocks_are_not_too_deep,
    graphs_have_one_node,
    outputs_know_their_nodes,
    uses_have_two_ends,
)
LAWS: tuple[Law, ...] = (
    values_are_defined_before_use,
    kinds_are_known,
    counts_agree,
    attributes_agree,
    types_are_inferred,
    types_can_be_written,
    fused_graphs_only_compute,
)
