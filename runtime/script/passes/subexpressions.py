"""Common subexpressions: what has been computed already is not computed again.

True only here: when a node may be taken for an earlier one of the same kind, inputs,
attributes and types.

Rules:
- the earlier one stands before it in the same block, or in one around it;
- nothing that may give something else the next time, prints, or runs unknown code; that
  it may raise does not matter: the earlier one would have;
- nothing that has blocks or a graph;
- what reads memory, only if nothing between the two may write there; nodes of a loop
  stand behind all writes of that loop, too;
- what gives new memory, only if nobody in the graph writes to the one or the other, and
  not both can be told apart: known outside, given by the graph, or asked for identity;
- identity of what cannot be written to (numbers, strings, tuples) is nobody's to ask.

How it works: one walk in the order of the text with one table; what a block adds is
forgotten at its end, and what a write spoils is forgotten at once.
"""

from collections.abc import Hashable, Iterator

from runtime.script.ir import (
    Block,
    Effect,
    Graph,
    Kind,
    Node,
    Rows,
    Sharing,
    Value,
    row_of,
)
from runtime.script.passes.aliases import Aliases
from runtime.script.passes.identity import same_work

_NEVER = Effect.IO | Effect.UNKNOWN | Effect.NONDETERMINISTIC | Effect.RUNS
CONSTANT = "prim::Constant"
# Every bit of a set of memories.
EVERYTHING = -1
# What sees whether two objects are one.
_COMPARES = ("script::is_.t", "script::is_not.t")
# They give what is there already: twice is the same.
_FINDS = (Sharing.PARTS, Sharing.SAME)


def merge_subexpressions(graph: Graph, rows: Rows = row_of) -> int:
    """Let the first of equal nodes stand for all; gives how many nodes went."""
    return _Merging(graph, rows).run()


class _Merging:
    """One walk through a graph."""

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.graph = graph
        self.rows = rows
        self.known: dict[str, Kind | None] = {}
        self.aliases = Aliases(graph, rows)
        self.table: dict[Hashable, Node] = {}
        # Key -> what the node has looked at; and all of that together.
        self.reading: dict[Hashable, int] = {}
        self.read = 0
        # Memory of which somebody may see whether it is one or two.
        self.seen = self.aliases.outside
        for value in graph.block.results:
            self.seen |= self.aliases.region(value)
        for node in graph.nodes():
            if node.kind in _COMPARES:
                for value in node.inputs:
                    self.seen |= self.aliases.memory(value)
        self.count = 0

    def run(self) -> int:
        todo = [self.block(self.graph.block)]
        while todo:
            inner = next(todo[-1], None)
            if inner is None:
                todo.pop()
            else:
                todo.append(self.block(inner))
        return self.count

    def block(self, block: Block) -> Iterator[Block]:
        added: list[Hashable] = []
        for node in block:
            if node.blocks:
                written = self.aliases.written_within(node)
                if node.kind == "prim::Closure":
                    # It runs at another time.
                    self.spoil(EVERYTHING)
                elif node.kind != "prim::If":
                    self.spoil(written)
                yield from node.blocks
                self.spoil(written)
                continue
            written = self.aliases.written(node)
            if written:
                self.spoil(written)
            elif self.is_mergeable(node):
                self.merge(node, added)
        for key in added:
            self.table.pop(key, None)
            self.reading.pop(key, None)

    def spoil(self, written: int) -> None:
        """Forget what has looked at memory that is written to."""
        if not written & self.read:
            return
        gone = [key for key, memory in self.reading.items() if memory & written]
        for key in gone:
            del self.reading[key], self.table[key]
        self.read = 0
        for memory in self.reading.values():
            self.read |= memory

    def row(self, node: Node) -> Kind | None:
        if node.kind not in self.known:
            self.known[node.kind] = self.rows(node.kind)
        return self.known[node.kind]

    def is_mergeable(self, node: Node) -> bool:
        row = self.row(node)
        if row is None or row.effects & _NEVER or not node.outputs:
            return False
        return row.graph is None and node.kind != "prim::Uninitialized"

    def merge(self, node: Node, added: list[Hashable]) -> None:
        key = same_work(node)
        earlier = self.table.get(key)
        if earlier is not None and self.are_one(node, earlier):
            for value, other in zip(node.outputs, earlier.outputs, strict=True):
                other.hint = other.hint or value.hint
                value.replace_by(other)
            node.destroy()
            self.count += 1
            return
        if earlier is not None:
            return
        self.table[key] = node
        added.append(key)
        looked = self.aliases.read(node)
        if looked:
            self.reading[key] = looked
            self.read |= looked

    def are_one(self, node: Node, earlier: Node) -> bool:
        """Whether nobody can tell the outputs of two equal nodes apart."""
        row = self.row(node)
        assert row is not None, "what has no row is not merged"
        if row.sharing in _FINDS or node.kind == CONSTANT:
            return True
        pairs = [*zip(node.outputs, earlier.outputs, strict=True)]
        for value, other in pairs:
            if self.aliases.is_written(value) or self.aliases.is_written(other):
                return False
            if self.is_seen(value) and self.is_seen(other):
                return False
        for value, other in pairs:
            if self.is_seen(value):
                self.seen |= self.aliases.memory(other)
        return True

    def is_seen(self, value: Value) -> bool:
        return bool(self.aliases.memory(value) & self.seen)
