"""Dead code: what nobody uses, and what has no effect, is taken out.

True only here: when a node is live, and which slots of a branch or loop are.

Rules:
- live are the results of the graph, nodes with an effect, and what these need; a branch
  or loop is live with any node in its blocks;
- that a node may raise is an effect, and so is drawing from a generator; that it makes,
  or reads, memory is none;
- a write is live if what it writes to is known outside (see
  `runtime.script.passes.aliases`), or is memory of a live value: whoever reads it may
  come later, or in the next trip of a loop;
- a loop that stops only by its condition may run for ever, and stays;
- a fork stays if its body has effects, though not for what it raises, which its future
  keeps; an await that nobody waits for never runs, and goes (deviation D7 of the
  specification is kept to for forks only);
- outputs of a branch or loop that nobody uses go with the results that stand for them,
  a carried value only if the trips do not need it, either; those of a `with` stay, as
  what is swallowed there hangs on them; what a fork or await is given and its graph
  does not use is not given any more;
- the block of a closure stays whole as long as the closure does.

How it works: marking backwards from what is live by itself, in one worklist, until no
write becomes live; then everything that is not marked is cut off and taken out.
"""

from collections.abc import Iterator

from runtime.script.ir import (
    Block,
    Effect,
    Graph,
    Kind,
    Node,
    Rows,
    Value,
    effects_of,
    row_of,
)
from runtime.script.passes.aliases import Aliases

# What keeps a node that nobody uses.
KEEPS = Effect.IO | Effect.UNKNOWN | Effect.MAY_RAISE | Effect.NONDETERMINISTIC
IF, LOOP, WITH, CLOSURE = "prim::If", "prim::Loop", "prim::With", "prim::Closure"
_SLOTTED = (IF, LOOP)
_LATER = ("prim::fork", "prim::awaitable")
# The trips of a loop that stops only by its condition; source: `while` of a program.
ENDLESS = 2**63 - 1


def remove_dead_code(graph: Graph, rows: Rows = row_of) -> int:
    """Take out what is not live; gives how many nodes, outputs and inputs went."""
    total = 0
    while True:
        # What went may have been all that made memory known outside.
        changes = sum(map(_ungive, graph.nodes())) + _sweep(_Marking(graph, rows))
        if not changes:
            return total
        total += changes


class _Marking:
    """Which nodes and values are live."""

    def __init__(self, graph: Graph, rows: Rows) -> None:
        self.graph = graph
        self.rows = rows
        self.known: dict[str, Kind | None] = {}
        self.aliases = Aliases(graph, rows)
        self.nodes: set[Node] = set()
        self.values: set[Value] = set()
        self.todo: list[Node | Value] = []
        # Memory of live values.
        self.memory = self.aliases.outside
        self.todo += graph.block.results
        running = [*_running(graph.block)]
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
        """Whether the node is live by itself, its blocks and writes not counted."""
        row = self.row(node)
        if row is None:
            return True
        if row.graph is not None and Effect.RUNS in row.effects:
            return bool(effects_of(node, self.rows) & KEEPS & ~Effect.MAY_RAISE)
        if node.kind == LOOP:
            trips = node.inputs[0].node.attributes.get("value")
            return trips is not None and trips >= ENDLESS
        return bool(row.effects & KEEPS)

    def row(self, node: Node) -> Kind | None:
        if node.kind not in self.known:
            self.known[node.kind] = self.rows(node.kind)
        return self.known[node.kind]

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
        """What stands for an output of a branch or loop."""
        if node.kind == LOOP:
            self.todo.append(node.inputs[place + 2])
            self.todo.append(node.blocks[0].results[place + 1])
        else:
            self.todo += [block.results[place] for block in node.blocks]

    def needs(self, node: Node, place: int) -> bool:
        """Whether an output of a branch or loop is needed."""
        if node.kind == LOOP and node.blocks[0].parameters[place + 1] in self.values:
            return True
        return node.outputs[place] in self.values


def _owner(entry: Node) -> Node | None:
    return None if entry.block is None else entry.block.owner


def _running(block: Block) -> Iterator[Node]:
    """The nodes that run when the block does: those of closures do not."""
    todo = [iter(block)]
    while todo:
        for node in todo[-1]:
            yield node
            if node.blocks and node.kind != CLOSURE:
                todo += [iter(each) for each in reversed(node.blocks)]
                break
        else:
            todo.pop()


def _sweep(live: _Marking) -> int:
    nodes = [*live.graph.nodes()]
    dead = [each for each in nodes if each not in live.nodes]
    # First nothing that is dead uses anything, then nothing uses what is dead.
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
    """Take away what stands for an output of a branch or loop."""
    if node.kind == LOOP:
        node.remove_input(place + 2)
        node.blocks[0].exit.remove_input(place + 1)
    else:
        for block in node.blocks:
            block.exit.remove_input(place)


def _ungive(node: Node) -> int:
    """Take out what a fork or an await is given, and does not use."""
    graph = node.attributes.get("graph")
    if not isinstance(graph, Graph) or node.kind not in (
        "prim::fork",
        "prim::awaitable",
    ):
        return 0
    count = len(node.inputs)
    for place in reversed(range(count)):
        if not graph.block.parameters[place].uses:
            graph.block.entry.remove_output(place)
            node.remove_input(place)
    return count - len(node.inputs)
