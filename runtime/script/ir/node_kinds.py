"""Kinds of nodes: one table of the inputs, outputs and effects of each kind.

The checker, alias analysis, passes, printer, parser and plans learn about a kind only
from this table.

    NodeKind         a row: counts, attributes, type rule, effects, shared memory
    KINDS            the rows by name, `prim::...`
    register_kind    adds a row for a plug-in
    known_kind       the row of a name, except operators
    row_of           the row of a name: of the table, or of an operator

Rules:
- a kind is `prim::Name`, or the full name of an operator with its overload
  (`core::add.Tensor`); an operator is described by its schema and its tags;
- a kind without a row is assumed to have every effect: `UNKNOWN`;
- `effects` and `sharing` are independent: `effects` are the side effects of the node,
  `sharing` is the memory that its outputs may be, or hold;
- an operator may raise, unless its definition has the tag `total`, or it is one of
  namespace `core`: an unused operator on tensors is removed, though it might have
  raised (a deviation from Python);
- the row of an operator is cached on the spec of its definition, and so is never stale.

Type rules are functions of `runtime.script.ir.type_rules`; each takes a
node of which counts and attributes agree with the row.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, Flag, auto
from typing import Any, NamedTuple

from everyorder.runtime.base.registry import Registry, RegistryHandle
from everyorder.runtime.dispatch.dispatcher import Dispatcher, default_dispatcher
from everyorder.runtime.dispatch.handle import provide
from everyorder.runtime.dispatch.registration_record import OperatorSpec
from everyorder.runtime.schema.schema import NUMBERS_AS_TENSORS, TOTAL, Schema
from everyorder.runtime.schema.signature import AliasKind, OperatorName
from everyorder.runtime.schema.types import AwaitType, FutureType
from everyorder.runtime.script.ir import type_rules as rules
from everyorder.runtime.script.ir.graph import PARAM, RETURN, Block, Graph, Node

# The deepest nesting of blocks. An interpreter of such programs supports some hundred
# levels, and Python itself rejects twenty nested loops.
DEEPEST = 200
# The namespace whose unused operators are removed.
CORE = "core"


class NodeEffect(Flag):
    """The effects of a node apart from computing its outputs."""

    NONE = 0
    # Visible from outside: the order of all nodes with this effect is preserved.
    IO = auto()
    # Reads memory that other nodes may have written to.
    READS = auto()
    # Allocates memory that may be written to: two such nodes are never merged.
    FRESH = auto()
    # May raise, depending on its inputs.
    MAY_RAISE = auto()
    # May return a different result each time.
    NONDETERMINISTIC = auto()
    # Runs its blocks or its graph: their effects are effects of the node.
    RUNS = auto()
    # Runs unknown code: it may read, write, raise and print.
    UNKNOWN = auto()


class Sharing(Enum):
    """The memory that outputs may be, or hold."""

    # Memory that no input shares.
    NOTHING = auto()
    # New memory that holds the inputs.
    HOLDS = auto()
    # The parts of the first input.
    PARTS = auto()
    # The input itself.
    SAME = auto()
    # The results of the blocks; parameters of blocks share the inputs of the node.
    BLOCKS = auto()
    # There are no outputs; afterwards the first input holds the other inputs.
    STORES = auto()
    # As the alias annotations of the schema say.
    SCHEMA = auto()
    # Anything; afterwards other objects may hold the inputs, too.
    ANYTHING = auto()


class AttributeForm(Enum):
    """The form of an attribute: its values, and how they are written."""

    # A constant accepted by `runtime.script.ir.type_rules.fits`.
    VALUE = auto()
    # A function of a program: has `qualname`, `schema` and `graph`.
    FUNCTION = auto()
    TEXT = auto()
    INDEX = auto()
    TYPES = auto()
    # A graph, written after the graph that names it.
    GRAPH = auto()
    # Any Python object, stored in the table that accompanies the text.
    OBJECT = auto()


class NodeAttribute(NamedTuple):
    """An attribute of the nodes of a kind."""

    name: str
    form: AttributeForm
    is_required: bool = True


class Count(NamedTuple):
    """The least and the greatest number; `most` is None if unbounded."""

    least: int
    most: int | None

    def takes(self, number: int) -> bool:
        """Return True if the number is in the range."""
        return self.least <= number and (self.most is None or number <= self.most)

    def __str__(self) -> str:
        if self.least == self.most:
            return str(self.least)
        if self.most is None:
            return f"{self.least} or more"
        return f"{self.least} to {self.most}"


NONE, ONE, TWO, ANY = Count(0, 0), Count(1, 1), Count(2, 2), Count(0, None)
SOME = Count(1, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeKind:
    """A row of the table: the description of a kind of nodes.

    `infer` returns the types of the outputs, or a fault; `writes` has the indexes of
    the inputs that are written to; `schema` is the schema of an operator.
    """

    name: str
    inputs: Count
    outputs: Count
    infer: rules.Rule
    blocks: int = 0
    attributes: tuple[NodeAttribute, ...] = ()
    effects: NodeEffect = NodeEffect.NONE
    writes: tuple[int, ...] = ()
    sharing: Sharing = Sharing.NOTHING
    schema: Schema | None = None

    @property
    def graph(self) -> str | None:
        """Return the name of the attribute that is a graph, or None."""
        for attribute in self.attributes:
            if attribute.form is AttributeForm.GRAPH:
                return attribute.name
        return None


def _kind(
    name: str, inputs: Count, outputs: Count, infer: rules.Rule, **fields: Any
) -> NodeKind:
    return NodeKind(
        name=f"prim::{name}", inputs=inputs, outputs=outputs, infer=infer, **fields
    )


_NAME = (NodeAttribute("name", AttributeForm.TEXT),)
_GRAPH = (NodeAttribute("graph", AttributeForm.GRAPH),)
_CALL: dict[str, Any] = {"effects": NodeEffect.UNKNOWN, "sharing": Sharing.ANYTHING}

# fmt: off
_ROWS = (
    _kind("Param", NONE, ANY, rules.own, sharing=Sharing.ANYTHING),
    _kind("Return", ANY, NONE, rules.nothing),
    _kind("Constant", NONE, ONE, rules.constant,
          attributes=(NodeAttribute("value", AttributeForm.VALUE, False),
                      NodeAttribute("function", AttributeForm.FUNCTION, False)),
          sharing=Sharing.ANYTHING),

    _kind("If", ONE, ANY, rules.branches, blocks=2,
          effects=NodeEffect.RUNS, sharing=Sharing.BLOCKS),
    _kind("Loop", Count(2, None), ANY, rules.loop, blocks=1,
          effects=NodeEffect.RUNS, sharing=Sharing.BLOCKS),
    _kind("With", ONE, ANY, rules.with_block, blocks=1,
          effects=NodeEffect.RUNS | NodeEffect.UNKNOWN, sharing=Sharing.BLOCKS),

    _kind("TupleConstruct", ANY, ONE, rules.tuple_construct, sharing=Sharing.HOLDS),
    _kind("TupleUnpack", ONE, ANY, rules.tuple_unpack, sharing=Sharing.PARTS),
    _kind("TupleIndex", ONE, ONE, rules.tuple_index, sharing=Sharing.PARTS,
          attributes=(NodeAttribute("index", AttributeForm.INDEX),)),
    _kind("ListConstruct", ANY, ONE, rules.list_construct,
          effects=NodeEffect.FRESH, sharing=Sharing.HOLDS),
    _kind("ListUnpack", ONE, ANY, rules.list_unpack,
          effects=NodeEffect.READS | NodeEffect.MAY_RAISE, sharing=Sharing.PARTS),
    # A key of type Any may be unhashable.
    _kind("DictConstruct", ANY, ONE, rules.dict_construct,
          effects=NodeEffect.FRESH | NodeEffect.MAY_RAISE, sharing=Sharing.HOLDS),

    _kind("CreateObject", NONE, ONE, rules.create_object, effects=NodeEffect.FRESH),
    _kind("GetAttr", ONE, ONE, rules.get_attribute, attributes=_NAME,
          effects=NodeEffect.READS, sharing=Sharing.PARTS),
    _kind("SetAttr", TWO, NONE, rules.set_attribute, attributes=_NAME,
          writes=(0,), sharing=Sharing.STORES),

    _kind("CallFunction", SOME, ANY, rules.call_function, **_CALL),
    _kind("CallMethod", SOME, ANY, rules.call_method, attributes=_NAME, **_CALL),
    _kind("CallInterface", SOME, ANY, rules.call_interface, attributes=_NAME, **_CALL),
    _kind("PythonOp", ANY, ANY, rules.own, **_CALL,
          attributes=(*_NAME, NodeAttribute("object", AttributeForm.OBJECT))),

    _kind("Closure", NONE, ONE, rules.closure, blocks=1, sharing=Sharing.ANYTHING),
    _kind("forkClosure", ONE, ONE, rules.from_closure(FutureType), **_CALL),
    _kind("awaitableClosure", ONE, ONE, rules.from_closure(AwaitType),
          effects=NodeEffect.FRESH, sharing=Sharing.ANYTHING),
    # The future holds an exception that the fork raises.
    _kind("fork", ANY, ONE, rules.from_graph(FutureType), attributes=_GRAPH,
          effects=NodeEffect.FRESH | NodeEffect.RUNS, sharing=Sharing.ANYTHING),
    _kind("awaitable", ANY, ONE, rules.from_graph(AwaitType), attributes=_GRAPH,
          effects=NodeEffect.FRESH, sharing=Sharing.ANYTHING),
    _kind("wait", ONE, ONE, rules.waited(FutureType), **_CALL),
    _kind("awaitable_wait", ONE, ONE, rules.waited(AwaitType), **_CALL),
    _kind("awaitable_nowait", ONE, ONE, rules.nowait,
          effects=NodeEffect.FRESH, sharing=Sharing.HOLDS),

    _kind("RaiseException", ONE, NONE, rules.raises, effects=NodeEffect.MAY_RAISE,
          attributes=(NodeAttribute("class", AttributeForm.TEXT),)),
    _kind("Print", ANY, NONE, rules.nothing, effects=NodeEffect.IO | NodeEffect.READS),
    # A filter may turn a warning into an exception.
    _kind("warn", ANY, NONE, rules.nothing,
          effects=NodeEffect.IO | NodeEffect.READS | NodeEffect.MAY_RAISE),
    _kind("Uninitialized", NONE, ONE, rules.own),
    _kind("unchecked_cast", ONE, ONE, rules.cast, sharing=Sharing.SAME),
    _kind("isinstance", ONE, ONE, rules.truth,
          attributes=(NodeAttribute("types", AttributeForm.TYPES),)),
    _kind("FusionGroup", ANY, ANY, rules.fused, attributes=_GRAPH,
          effects=NodeEffect.RUNS),
)
# fmt: on

# Name -> row.
KINDS: Mapping[str, NodeKind] = {each.name: each for each in _ROWS}

# Rows of plug-ins by their names.
_PLUG_IN_KINDS: Registry[str, NodeKind] = Registry("kinds of nodes", order=str)

# Returns the row of a kind, or None for an unknown kind.
Rows = Callable[[str], NodeKind | None]


def register_kind(row: NodeKind) -> RegistryHandle:
    """Let nodes be of a kind of a plug-in."""
    assert row.name not in KINDS, f"{row.name} is a kind already"
    assert row.name.startswith("prim::"), "other namespaces are those of operators"
    return _PLUG_IN_KINDS.register(row.name, row, stacklevel=2)


def known_kind(name: str) -> NodeKind | None:
    """Return the row of a kind that is not an operator."""
    return KINDS.get(name) or _PLUG_IN_KINDS.rows.get(name)


def kind_names() -> tuple[str, ...]:
    """Return the names of all kinds that are not operators."""
    return (*KINDS, *_PLUG_IN_KINDS.rows)


def row_of(name: str, dispatcher: Dispatcher | None = None) -> NodeKind | None:
    """Return the row of a kind, or None for an unknown kind.

    An operator is looked up as registered now, in the default dispatcher unless another
    is passed; the library that provides its namespace is loaded. An operator without a
    schema has no row.
    """
    row = known_kind(name)
    if row is not None:
        return row
    namespace, scope, _ = name.partition("::")
    if not scope or namespace == "prim":
        return None
    registry = default_dispatcher() if dispatcher is None else dispatcher
    entry = registry.state.find(namespace, name)
    if entry is None and dispatcher is None:
        provide(OperatorName(name))
        entry = registry.state.find(namespace, name)
    if entry is None or entry.definition is None:
        return None
    reading = entry.definition.reading
    row_in_memo: NodeKind | None = reading.memo.get("kind")
    if row_in_memo is None:
        row_in_memo = reading.memo["kind"] = _operator(reading)
    return row_in_memo


def _operator(reading: OperatorSpec) -> NodeKind:
    """Return the row of an operator, derived from its schema and tags."""
    schema, tags = reading.schema, reading.tags
    arguments, returns = len(schema.arguments), len(schema.returns)
    effects = NodeEffect.NONE if tags_are_total(reading) else NodeEffect.MAY_RAISE
    sharing = Sharing.SCHEMA
    if schema.alias_kind is not AliasKind.PURE_FUNCTION:
        effects |= NodeEffect.READS
    if (
        schema.alias_kind is AliasKind.CONSERVATIVE
        or "maybe_aliasing_or_mutating" in tags
    ):
        effects |= NodeEffect.UNKNOWN
        sharing = Sharing.ANYTHING
    if "nondeterministic_seeded" in tags:
        effects |= NodeEffect.NONDETERMINISTIC
    writes = [place for place, each in enumerate(schema.arguments) if each.is_write]
    return NodeKind(
        name=reading.text,
        inputs=Count(arguments, None if schema.is_vararg else arguments),
        outputs=Count(returns, None if schema.is_varret else returns),
        infer=rules.operator(schema, NUMBERS_AS_TENSORS in tags),
        effects=effects,
        writes=tuple(writes),
        sharing=sharing,
        schema=schema,
    )


def tags_are_total(reading: OperatorSpec) -> bool:
    """Return True if calls of the operator count as calls that cannot raise."""
    return reading.namespace == CORE or TOTAL in reading.tags


def bodies(node: Node, row: NodeKind) -> Sequence[Block]:
    """Return the blocks of the node and the block of its graph."""
    graph = None if row.graph is None else node.attributes.get(row.graph)
    return [*node.blocks, graph.block] if isinstance(graph, Graph) else node.blocks


def effects_of(node: Node, rows: Rows = row_of) -> NodeEffect:
    """Return the effects of a node, including those of the blocks that run with it.

    `FRESH` and `READS` of nodes within blocks count. The ends of blocks have no
    effects. A kind without a row has every effect.
    """
    effects = NodeEffect.NONE
    todo = [node]
    while todo:
        each = todo.pop()
        row = rows(each.kind)
        if row is None:
            effects |= NodeEffect.UNKNOWN
            continue
        effects |= row.effects
        if NodeEffect.RUNS in row.effects:
            for block in bodies(each, row):
                todo += block
    return effects


def writes_of(node: Node, rows: Rows = row_of) -> Iterator[tuple[Node, int]]:
    """Yield the nodes and input indexes that are written to when the node runs."""
    todo = [node]
    while todo:
        each = todo.pop()
        row = rows(each.kind)
        if row is None:
            continue
        for place in row.writes:
            yield each, place
        if NodeEffect.RUNS in row.effects:
            for block in bodies(each, row):
                todo += block


assert PARAM in KINDS, "parameters of blocks have a kind"
assert RETURN in KINDS, "results of blocks have a kind"
