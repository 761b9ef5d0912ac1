"""Dead code and common subexpression elimination.

    remove_dead_code        removes nodes, outputs and inputs that are not needed
    merge_subexpressions    replaces a node by an equal earlier one

Rules of dead code:
- the results of the graph, nodes with an effect, and all that these need are live; a
  branch or loop is live if any node in its blocks is;
- raising and drawing from a generator are effects; allocating and reading memory are
  not;
- a write is live if its target is outside (see `runtime.script.passes.aliases`), or is
  memory of a live value: it may be read later, or in the next trip of a loop;
- a loop that stops only by its condition may run for ever, and stays;
- a fork stays if its body has effects other than raising, as its future holds the
  exception; an await that is never waited for does not run and is removed, as the table
  of deviations says;
- unused outputs of a branch or loop are removed with the corresponding results, a
  carried value only if the trips do not need it, either; outputs of a `with` stay,
  because they matter when it swallows an exception; inputs of a fork or await that its
  graph does not use are removed;
- the block of a closure stays whole as long as the closure does.

The pass marks backwards from the roots, with one worklist, until no further write
becomes live; then it disconnects and removes everything that is not marked.

Rules of subexpressions:
- the earlier node has the same kind, inputs, attributes and types, and is before the
  later one in the same block, or in an enclosing one;
- nodes that may compute something else the next time, print, or run unknown code are
  never merged, nor are nodes with blocks or a graph; a node that may raise can be
  merged: the earlier one would have raised;
- a node that reads memory is merged only if no node between the two may write there;
  nodes of a loop also follow all writes of that loop;
- a node that allocates memory is merged only if no node of the graph writes to either,
  and at most one has an observable identity: outside, a result of the graph, or
  compared by `is`;
- the identity of immutable values (numbers, strings, tuples) is unspecified.

The pass is one walk in the order of the text with one table; entries of a block are
removed at its end, and entries that a write invalidates are removed at once.
"""

from collections.abc import Hashable
from functools import cache

from everyorder.runtime.script.ir import (
    Block,
    Graph,
    Node,
    NodeEffect,
    Rows,
    Sharing,
    Value,
    effects_of,
    row_of,
)
from everyorder.runtime.script.ir.graph import Nested, run_nested, walk
from everyorder.runtime.script.passes.aliases import Aliases
from everyorder.runtime.script.passes.inline import work_key

# Effects that keep a node that is not used.
KEEPS = (
    NodeEffect.IO
    | NodeEffect.UNKNOWN
    | NodeEffect.MAY_RAISE
    | NodeEffect.NONDETERMINISTIC
)
IF, LOOP, WITH, CLOSURE = "prim::If", "prim::Loop", "prim::With", "prim::Closure"
_SLOTTED = (IF, LOOP)
_LATER = ("prim::fork", "prim::awaitable")
# The trips of a loop that stops only by its condition, as the emitter writes a `while`.
ENDLESS = 2**63 - 1


def remove_dead_code(graph: Graph, rows: Rows = row_of) -> int:
    """Remove dead code; return the number of removed nodes, outputs and inputs."""
    total = 0
    while True:
        # A removed node may have been the only one that moved memory outside.
        changes = sum(map(_drop_unused, graph.nodes())) + _sweep(_Marking(graph, rows))
        if not changes:
            return total
        total += changes


class _Marking:
    """The live nodes and values of a graph."""

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.graph = graph
        self.rows = rows
        self.row: Rows = cache(rows)
        self.aliases = Aliases(graph, rows)
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self.todo: list[Node | Value] = []
        # Memory of live values.
        self.memory = self.aliases.outside
        self.todo += graph.block.results
        # The nodes that run when the graph does: nodes of closures do not.
        running = [*walk((graph.block,), skipped=CLOSURE)]
        self.todo += [each for each in running if self.has_effect(each)]
        writing = [(each, self.aliases.written(each)) for each in running]
        writing = [each for each in writing if each[1]]
        before = -1
        while before != len(self.nodes):
            before = len(self.nodes)
            self.run()
            self.todo += [each for each, memory in writing if memory & self.memory]
            self.run()

    def run(self) -> None:
        while self.todo:
            each = self.todo.pop()
            if isinstance(each, Value):
                self.value(each)
            else:
                self.node(each)

    def has_effect(self, node: Node) -> bool:
        """Return True if the node is live by itself, without its blocks and writes."""
        row = self.row(node.kind)
        if row is None:
            return True
        if row.graph is not None and NodeEffect.RUNS in row.effects:
            return bool(effects_of(node, self.rows) & KEEPS & ~NodeEffect.MAY_RAISE)
        if node.kind == LOOP:
            trips = node.inputs[0].node.attributes.get("value")
            return trips is not None and trips >= ENDLESS
        return bool(row.effects & KEEPS)

    def node(self, node: Node) -> None:
        if node in self.nodes:
            return
        self.nodes.add(node)
        if node.block is not None and node.block.owner is not None:
            self.todo.append(node.block.owner)
        if node.kind == LOOP:
            self.todo += (*node.inputs[:2], node.blocks[0].results[0])
            return
        self.todo += node.inputs
        if node.kind == CLOSURE:
            self.todo += node.nodes_within()
        if node.kind in (CLOSURE, WITH):
            self.todo += node.blocks[0].results

    def value(self, value: Value) -> None:
        if value in self.values:
            return
        self.values.add(value)
        self.memory |= self.aliases.region(value)
        node, place = value.node, value.index
        if value.is_parameter:
            owner = _owner(node)
            if owner is not None:
                self.todo.append(owner)
                if owner.kind == LOOP and place > 0:
                    self.slot(owner, place - 1)
            return
        self.todo.append(node)
        if node.kind in _SLOTTED:
            self.slot(node, place)

    def slot(self, node: Node, place: int) -> None:
        """Mark the values that an output of a branch or loop results from."""
        if node.kind == LOOP:
            self.todo.append(node.inputs[place + 2])
            self.todo.append(node.blocks[0].results[place + 1])
        else:
            self.todo += [block.results[place] for block in node.blocks]

    def needs(self, node: Node, place: int) -> bool:
        """Return True if an output of a branch or loop is needed."""
        if node.kind == LOOP and node.blocks[0].parameters[place + 1] in self.values:
            return True
        return node.outputs[place] in self.values


def _owner(entry: Node) -> Node | None:
    return None if entry.block is None else entry.block.owner


def _sweep(live: _Marking) -> int:
    nodes = [*live.graph.nodes()]
    dead = [each for each in nodes if each not in live.nodes]
    # First remove the uses by dead nodes, then the uses of dead values.
    for node in dead:
        node.set_inputs(())
        for block in node.blocks:
            block.exit.set_inputs(())
    slots = [
        (node, place)
        for node in nodes
        if node in live.nodes and node.kind in _SLOTTED
        for place in reversed(range(len(node.outputs)))
        if not live.needs(node, place)
    ]
    for node, place in slots:
        _cut(node, place)
    for node, place in slots:
        if node.kind == LOOP:
            node.blocks[0].entry.remove_output(place + 1)
        node.remove_output(place)
    for node in reversed(dead):
        node.destroy()
    return len(dead) + len(slots)


def _cut(node: Node, place: int) -> None:
    """Remove the values that an output of a branch or loop results from."""
    if node.kind == LOOP:
        node.remove_input(place + 2)
        node.blocks[0].exit.remove_input(place + 1)
    else:
        for block in node.blocks:
            block.exit.remove_input(place)


def _drop_unused(node: Node) -> int:
    """Remove the inputs that the graph of a fork or an await does not use."""
    graph = node.attributes.get("graph")
    if not isinstance(graph, Graph) or node.kind not in _LATER:
        return 0
    count = len(node.inputs)
    for place in reversed(range(count)):
        if not graph.block.parameters[place].uses:
            graph.block.entry.remove_output(place)
            node.remove_input(place)
    return count - len(node.inputs)


_NEVER = (
    NodeEffect.IO | NodeEffect.UNKNOWN | NodeEffect.NONDETERMINISTIC | NodeEffect.RUNS
)
CONSTANT = "prim::Constant"
# Every bit of a set of memories.
EVERYTHING = -1
# Nodes that observe whether two objects are identical.
_COMPARES = ("script::is_.t", "script::is_not.t")
# Their outputs exist already: running twice returns the same object.
_FINDS = (Sharing.PARTS, Sharing.SAME)


def merge_subexpressions(graph: Graph, rows: Rows = row_of) -> int:
    """Replace repeated nodes by the first one; return the number of removed nodes."""
    return _Merging(graph, rows).run()


class _Merging:
    """One walk through a graph."""

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.graph = graph
        self.row: Rows = cache(rows)
        self.aliases = Aliases(graph, rows)
        self.table: dict[Hashable, Node] = {}
        # Key -> memory that the node has read; `read` is their union.
        self.reading: dict[Hashable, int] = {}
        self.read = 0
        # Memory whose identity is observable.
        self.seen = self.aliases.outside
        for value in graph.block.results:
            self.seen |= self.aliases.region(value)
        for node in graph.nodes():
            if node.kind in _COMPARES:
                for value in node.inputs:
                    self.seen |= self.aliases.memory(value)
        self.count = 0

    def run(self) -> int:
        run_nested(self.block(self.graph.block))
        return self.count

    def block(self, block: Block) -> Nested:
        added: list[Hashable] = []
        for node in block:
            if node.blocks:
                written = self.aliases.written_within(node)
                if node.kind == "prim::Closure":
                    # The block runs at another time.
                    self.invalidate(EVERYTHING)
                elif node.kind != "prim::If":
                    self.invalidate(written)
                yield from map(self.block, node.blocks)
                self.invalidate(written)
                continue
            written = self.aliases.written(node)
            if written:
                self.invalidate(written)
            elif self.is_mergeable(node):
                self.merge(node, added)
        for key in added:
            self.table.pop(key, None)
            self.reading.pop(key, None)

    def invalidate(self, written: int) -> None:
        """Remove the entries that have read memory that is written to."""
        if not written & self.read:
            return
        stale = [key for key, memory in self.reading.items() if memory & written]
        for key in stale:
            del self.reading[key], self.table[key]
        self.read = 0
        for memory in self.reading.values():
            self.read |= memory

    def is_mergeable(self, node: Node) -> bool:
        row = self.row(node.kind)
        if row is None or row.effects & _NEVER or not node.outputs:
            return False
        return row.graph is None and node.kind != "prim::Uninitialized"

    def merge(self, node: Node, added: list[Hashable]) -> None:
        key = work_key(node)
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
        """Return True if the outputs of two equal nodes are indistinguishable."""
        row = self.row(node.kind)
        assert row is not None, "a node without a row is not merged"
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
