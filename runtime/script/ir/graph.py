"""Graphs: what a program is compiled to, and copies of them.

    Graph    a name and its outermost block
    Block    parameters, nodes in order, results
    Node     a kind, inputs, outputs, blocks of its own, attributes, a place in a source
    Value    a type, the node that it is an output of, and its uses

A block begins with a node of kind `prim::Param`, whose outputs are the parameters, and
ends with one of kind `prim::Return`, whose inputs are the results.  So every value is
an output of a node, and every use is a place among the inputs of one: nothing else
refers to a value.  The nodes of a block are a ring that the two close.

Rules:
- a value is used in its own block behind its node, and in the blocks of nodes there;
- control is structured: `prim::If` and `prim::Loop` are the only branches, and have
  blocks; nothing jumps;
- a graph is changed by the methods here alone, which keep both ends of every link; the
  meaning of a change is not checked (see `runtime.script.ir.checker`);
- names are hints for readers: two values may have the same, and the printer numbers
  them;
- nothing here is shared by threads while it is changed;
- in a copy `values` says which value stands for which; what it makes is added to that,
  and a value that is not there stands for itself; constants, types, places and
  functions are shared, blocks, and graphs that are attributes, are copied; the copy of
  a sound graph is sound, and prints as the same text.

Source of the form: SSA with block arguments in place of phi nodes, and nested regions
in place of jumps, as in MLIR (Lattner et al., 2021).
"""

from collections.abc import (
    Callable,
    Iterable,
    Iterator,
    Mapping,
    MutableMapping,
    Sequence,
)
from typing import Any, NamedTuple

from everyorder.runtime.errors.source import Source, Span
from everyorder.runtime.schema.types import Type

PARAM, RETURN = "prim::Param", "prim::Return"


class Place(NamedTuple):
    """Where in a source something is written."""

    source: Source
    span: Span


# The node, and the place among its inputs, at which a value is used.  Plain pairs: a
# class of its own would be a third of what a node costs.
Use = tuple["Node", int]


class Value:
    """An output of a node, or a parameter of a block."""

    __slots__ = ("hint", "index", "node", "type", "uses")

    def __init__(
        self,
        node: "Node",
        index: int,
        type: Type,  # noqa: A002  # the field's own word
        hint: str = "",
    ) -> None:
        self.node = node
        self.index = index
        self.type = type
        self.hint = hint
        # In the order in which the uses came; most values have one or two.
        self.uses: list[Use] = []

    @property
    def is_parameter(self) -> bool:
        """Whether it is a parameter of a block."""
        return self.node.kind == PARAM

    def replace_by(self, other: "Value") -> None:
        """Let everything that uses this value use `other` in its place."""
        if other is self:
            return
        for node, index in self.uses:
            node._inputs[index] = other
        other.uses += self.uses
        self.uses = []

    def forget(self, use: Use) -> None:
        """Take a use away; the node does so itself, in its methods."""
        # Graphs are mostly taken down from their ends.
        if self.uses and self.uses[-1] == use:
            self.uses.pop()
        else:
            self.uses.remove(use)

    def __repr__(self) -> str:
        return f"Value({self.hint or '?'}: {self.type} of {self.node.kind})"


class Node:
    """One step of a block; belongs to none until it is put into one."""

    __slots__ = (
        "_inputs",
        "_outputs",
        "attributes",
        "block",
        "blocks",
        "kind",
        "next",
        "place",
        "previous",
    )

    def __init__(
        self,
        kind: str,
        inputs: Iterable[Value] = (),
        types: Iterable[Type] = (),
        attributes: Mapping[str, Any] | None = None,
        place: Place | None = None,
    ) -> None:
        self.kind = kind
        self.place = place
        self.attributes: dict[str, Any] = {} if attributes is None else {**attributes}
        self.blocks: list[Block] = []
        self.block: Block | None = None
        self.previous: Node | None = None
        self.next: Node | None = None
        self._outputs = [Value(self, at, each) for at, each in enumerate(types)]
        self._inputs = kept = [*inputs]
        for at, value in enumerate(kept):
            value.uses.append((self, at))

    @property
    def inputs(self) -> Sequence[Value]:
        """The values that the node reads; changed by the methods alone."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[Value]:
        """The values that the node computes; changed by the methods alone."""
        return self._outputs

    @property
    def output(self) -> Value:
        """The only output; an assertion fails if there are more, or none."""
        (one,) = self._outputs
        return one

    def add_input(self, value: Value) -> None:
        """Give the node one value more."""
        value.uses.append((self, len(self._inputs)))
        self._inputs.append(value)

    def set_input(self, index: int, value: Value) -> None:
        """Give the node another value at a place."""
        self._inputs[index].forget((self, index))
        self._inputs[index] = value
        value.uses.append((self, index))

    def remove_input(self, index: int) -> None:
        """Take a value away; those behind it move up."""
        kept = [*self._inputs[:index], *self._inputs[index + 1 :]]
        self.set_inputs(kept)

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Give the node these values and no others."""
        kept = list(values)
        for index, value in enumerate(self._inputs):
            value.forget((self, index))
        self._inputs = []
        for value in kept:
            self.add_input(value)

    def add_output(self, type: Type, hint: str = "") -> Value:  # noqa: A002  # the field's own word
        """Let the node compute one value more."""
        value = Value(self, len(self._outputs), type, hint)
        self._outputs.append(value)
        return value

    def remove_output(self, index: int) -> None:
        """Take an output away; an assertion fails if it is used."""
        assert not self._outputs[index].uses, "a value that is used stays"
        del self._outputs[index]
        for at, value in enumerate(self._outputs):
            value.index = at

    def add_block(self) -> "Block":
        """A new block of the node's own, behind those that it has."""
        block = Block(self)
        self.blocks.append(block)
        return block

    def insert_before(self, other: "Node") -> "Node":
        """Put the node, which is in no block, in front of `other`; gives the node."""
        assert self.block is None, "a node is in one block"
        assert other.previous is not None, "nothing is put in front of the parameters"
        previous = other.previous
        self.block, self.previous, self.next = other.block, previous, other
        previous.next = other.previous = self
        return self

    def insert_after(self, other: "Node") -> "Node":
        """Put the node, which is in no block, behind `other`; gives the node."""
        assert other.next is not None, "nothing is put behind the results"
        return self.insert_before(other.next)

    def unlink(self) -> "Node":
        """Take the node out of its block, as it is, to be put elsewhere."""
        assert self.kind not in (PARAM, RETURN), "these stay with their block"
        previous, following = self.previous, self.next
        assert previous is not None, "a node that is taken out is in a block"
        assert following is not None, "a node that is taken out is in a block"
        previous.next, following.previous = following, previous
        self.block = self.previous = self.next = None
        return self

    def destroy(self) -> None:
        """Take the node out for good; an assertion fails if an output is used.

        Its blocks are destroyed with it.
        """
        self._unused()
        nodes = [self, *self.nodes_within()]
        for node in nodes:
            for block in node.blocks:
                block.exit.set_inputs(())
        for node in reversed(nodes):
            node._unused()
            node.set_inputs(())
            if node.block is not None:
                node.unlink()

    def _unused(self) -> None:
        for value in self._outputs:
            assert not value.uses, "a value that is used stays"

    def is_within(self, block: "Block") -> bool:
        """Whether it is in a block, or in a block of a node there."""
        around = self.block
        while around is not None and around is not block:
            around = None if around.owner is None else around.owner.block
        return around is block

    def nodes_within(self) -> Iterator["Node"]:
        """The nodes of its blocks, and those of their blocks, in the order of the text.

        The node that was given last may be destroyed, with its blocks.
        """
        return walk(self.blocks)

    def __repr__(self) -> str:
        return f"Node({self.kind}, {len(self._inputs)} inputs)"


class Block:
    """Nodes in order, between parameters and results."""

    __slots__ = ("entry", "exit", "owner")

    def __init__(self, owner: Node | None = None) -> None:
        self.owner = owner
        self.entry, self.exit = Node(PARAM), Node(RETURN)
        self.entry.block = self.exit.block = self
        self.entry.next, self.exit.previous = self.exit, self.entry

    @property
    def parameters(self) -> Sequence[Value]:
        """The values that the block is given; more by `entry.add_output`."""
        return self.entry.outputs

    @property
    def results(self) -> Sequence[Value]:
        """The values that the block gives; more by `exit.add_input`."""
        return self.exit.inputs

    def add_parameter(self, type: Type, hint: str = "") -> Value:  # noqa: A002  # the field's own word
        """One parameter more."""
        return self.entry.add_output(type, hint)

    def add_result(self, value: Value) -> None:
        """One result more."""
        self.exit.add_input(value)

    def append(self, node: Node) -> Node:
        """Put a node, which is in no block, at the end; gives the node."""
        return node.insert_before(self.exit)

    def __iter__(self) -> Iterator[Node]:
        """The nodes in order; the one that was given last may be taken out."""
        node = self.entry.next
        while node is not None and node is not self.exit:
            following = node.next
            yield node
            # What was put behind it meanwhile is seen, too.
            node = following if node.block is not self else node.next

    def __reversed__(self) -> Iterator[Node]:
        """The nodes from the last one on; the one that was given may be taken out."""
        node = self.exit.previous
        while node is not None and node is not self.entry:
            previous = node.previous
            yield node
            node = previous if node.block is not self else node.previous

    def clear(self) -> None:
        """Destroy all that is in the block, from its end; the parameters stay."""
        self.exit.set_inputs(())
        for node in reversed(self):
            node.destroy()


class Graph:
    """A program of one block, with a name; `block.results` is what it gives."""

    __slots__ = ("block", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.block = Block()

    def nodes(self) -> Iterator[Node]:
        """All nodes, also those of blocks, in the order of the text.

        The node that was given last may be destroyed, with its blocks.
        """
        return walk((self.block,))


def walk(
    blocks: Sequence[Block],
    nodes_of: Callable[[Block], Iterator[Node]] = iter,
    skipped: str = "",
) -> Iterator[Node]:
    """The nodes of blocks, each before those of its own blocks, without recursion.

    `nodes_of` gives the nodes of one block; blocks of a node of the kind `skipped` are
    not entered.
    """
    todo = [nodes_of(each) for each in reversed(blocks)]
    while todo:
        for node in todo[-1]:
            yield node
            if node.blocks and node.block is not None and node.kind != skipped:
                todo += [nodes_of(each) for each in reversed(node.blocks)]
                break
        else:
            todo.pop()


# A generator that gives the generators to be run before it goes on.
Nested = Iterator["Nested"]


def run_nested(outermost: Nested) -> None:
    """Run a generator and those that it gives, however deeply, without recursion."""
    running = [outermost]
    while running:
        inner = next(running[-1], None)
        if inner is None:
            running.pop()
        else:
            running.append(inner)


# What stands for a value in the copy.
Values = MutableMapping[Value, Value]
_Pairs = list[tuple[Block, Block]]


def copy_graph(graph: Graph, values: Values | None = None) -> Graph:
    """A graph of its own, that is like `graph`."""
    copied = Graph(graph.name)
    copy_block(graph.block, copied.block, {} if values is None else values)
    return copied


def copy_block(block: Block, into: Block, values: Values) -> None:
    """Let `into`, which is empty, have what `block` has, parameters and results too."""
    _copy([(block, into)], values)


def copy_node(node: Node, values: Values) -> Node:
    """A node like `node`, in no block, of what stands for its inputs."""
    todo: _Pairs = []
    copied = _node(node, values, todo)
    _copy(todo, values)
    return copied


def copy_nodes(block: Block, before: Node, values: Values) -> list[Value]:
    """Put copies of the nodes of `block` before a node; gives what it would give.

    `values` says what stands for the parameters.
    """
    todo: _Pairs = []
    for node in block:
        _node(node, values, todo).insert_before(before)
    _copy(todo, values)
    return [values.get(each, each) for each in block.results]


def _copy(todo: _Pairs, values: Values) -> None:
    # It grows while it is read.
    for block, into in todo:
        for value in block.parameters:
            values[value] = into.add_parameter(value.type, value.hint)
        for node in block:
            into.append(_node(node, values, todo))
        for value in block.results:
            into.add_result(values.get(value, value))


def _node(node: Node, values: Values, todo: _Pairs) -> Node:
    made = Node(
        node.kind,
        [values.get(each, each) for each in node.inputs],
        [each.type for each in node.outputs],
        node.attributes,
        node.place,
    )
    for value, copied in zip(node.outputs, made.outputs, strict=True):
        copied.hint = value.hint
        values[value] = copied
    for block in node.blocks:
        todo.append((block, made.add_block()))
    for name, value in node.attributes.items():
        if isinstance(value, Graph):
            inner = made.attributes[name] = Graph(value.name)
            todo.append((value.block, inner.block))
    return made
