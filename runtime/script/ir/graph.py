"""Graphs, the compiled form of a program, and functions that copy them.

    Graph    a name and its outermost block
    Block    parameters, nodes in order, results
    Node     a kind, inputs, outputs, nested blocks, attributes, a place in a source
    Value    a type, the node that it is an output of, and its uses

A block begins with a node of kind `prim::Param`, whose outputs are the parameters, and
ends with one of kind `prim::Return`, whose inputs are the results.  So every value is
an output of a node, and every use is an input position of a node: nothing else refers
to a value. The nodes of a block are a linked list from the first to the last of these.

Rules:
- a value is used in its own block after its node, and in blocks nested there;
- control is structured: `prim::If` and `prim::Loop` are the only branches, and hold
  blocks; there are no jumps;
- only the methods of this module change a graph; they update both ends of every link;
  they do not check the meaning of a change (see `runtime.script.ir.checker`);
- names are hints for readers: two values may have the same name, and the printer
  numbers them;
- threads do not share a graph while it is changed;
- in the functions that copy, `values` maps original values to their replacements; each
  copied value is added to it, and a value without an entry is used as it is; constants,
  types, places and functions are shared, blocks, and graphs that are attributes, are
  copied; the copy of a sound graph is sound, and prints as the same text.

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
    """A position in a source."""

    source: Source
    span: Span


# The node, and the index of the input, at which a value is used. Plain pairs: a class
# would add a third to the cost of a node.
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
        # In the order in which the uses were added; most values have one or two.
        self.uses: list[Use] = []

    @property
    def is_parameter(self) -> bool:
        """Return True if the value is a parameter of a block."""
        return self.node.kind == PARAM

    def replace_by(self, other: "Value") -> None:
        """Replace this value by `other` in all its uses."""
        if other is self:
            return
        for node, index in self.uses:
            node._inputs[index] = other
        other.uses += self.uses
        self.uses = []

    def forget(self, use: Use) -> None:
        """Remove a use; only the methods of `Node` call this."""
        # Graphs are mostly destroyed from their ends.
        if self.uses and self.uses[-1] == use:
            self.uses.pop()
        else:
            self.uses.remove(use)

    def __repr__(self) -> str:
        return f"Value({self.hint or '?'}: {self.type} of {self.node.kind})"


class Node:
    """One step of a block; in no block until it is inserted."""

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
        self._inputs = stored = [*inputs]
        for at, value in enumerate(stored):
            value.uses.append((self, at))

    @property
    def inputs(self) -> Sequence[Value]:
        """Return the values that the node reads; only the methods change them."""
        return self._inputs

    @property
    def outputs(self) -> Sequence[Value]:
        """Return the values that the node computes; only the methods change them."""
        return self._outputs

    @property
    def output(self) -> Value:
        """Return the only output; an assertion fails unless there is exactly one."""
        (one,) = self._outputs
        return one

    def add_input(self, value: Value) -> None:
        """Append an input."""
        value.uses.append((self, len(self._inputs)))
        self._inputs.append(value)

    def set_input(self, index: int, value: Value) -> None:
        """Replace the input at an index."""
        self._inputs[index].forget((self, index))
        self._inputs[index] = value
        value.uses.append((self, index))

    def remove_input(self, index: int) -> None:
        """Remove an input; later inputs move up."""
        remaining = [*self._inputs[:index], *self._inputs[index + 1 :]]
        self.set_inputs(remaining)

    def set_inputs(self, values: Iterable[Value]) -> None:
        """Replace all inputs."""
        new_inputs = list(values)
        for index, value in enumerate(self._inputs):
            value.forget((self, index))
        self._inputs = []
        for value in new_inputs:
            self.add_input(value)

    def add_output(self, type: Type, hint: str = "") -> Value:  # noqa: A002  # the field's own word
        """Append an output."""
        value = Value(self, len(self._outputs), type, hint)
        self._outputs.append(value)
        return value

    def remove_output(self, index: int) -> None:
        """Remove an output; an assertion fails if it is used."""
        assert not self._outputs[index].uses, "a used output cannot be removed"
        del self._outputs[index]
        for at, value in enumerate(self._outputs):
            value.index = at

    def add_block(self) -> "Block":
        """Append a new block to the node and return it."""
        block = Block(self)
        self.blocks.append(block)
        return block

    def insert_before(self, other: "Node") -> "Node":
        """Insert the node, which is in no block, before `other`; return the node."""
        assert self.block is None, "a node is in at most one block"
        assert other.previous is not None, "a block starts with its parameters"
        previous = other.previous
        self.block, self.previous, self.next = other.block, previous, other
        previous.next = other.previous = self
        return self

    def insert_after(self, other: "Node") -> "Node":
        """Insert the node, which is in no block, after `other`; return the node."""
        assert other.next is not None, "a block ends with its results"
        return self.insert_before(other.next)

    def unlink(self) -> "Node":
        """Remove the node from its block, unchanged, to insert it elsewhere."""
        assert self.kind not in (PARAM, RETURN), "a block keeps its ends"
        previous, following = self.previous, self.next
        assert previous is not None, "only a node of a block can be removed"
        assert following is not None, "only a node of a block can be removed"
        previous.next, following.previous = following, previous
        self.block = self.previous = self.next = None
        return self

    def destroy(self) -> None:
        """Remove the node and its blocks for good.

        An assertion fails if an output is used.
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
            assert not value.uses, "a used value cannot be destroyed"

    def is_within(self, block: "Block") -> bool:
        """Return True if the node is in a block or in a block nested there."""
        around = self.block
        while around is not None and around is not block:
            around = None if around.owner is None else around.owner.block
        return around is block

    def nodes_within(self) -> Iterator["Node"]:
        """Yield the nodes of all nested blocks in the order of the text.

        The caller may destroy the node yielded last, with its blocks.
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
        """Return the parameters of the block; `entry.add_output` appends one."""
        return self.entry.outputs

    @property
    def results(self) -> Sequence[Value]:
        """Return the results of the block; `exit.add_input` appends one."""
        return self.exit.inputs

    def add_parameter(self, type: Type, hint: str = "") -> Value:  # noqa: A002  # the field's own word
        """Append a parameter."""
        return self.entry.add_output(type, hint)

    def add_result(self, value: Value) -> None:
        """Append a result."""
        self.exit.add_input(value)

    def append(self, node: Node) -> Node:
        """Insert a node, which is in no block, at the end; return the node."""
        return node.insert_before(self.exit)

    def __iter__(self) -> Iterator[Node]:
        """Yield the nodes in order; the caller may remove the node yielded last."""
        node = self.entry.next
        while node is not None and node is not self.exit:
            following = node.next
            yield node
            # Nodes that were inserted after it in the meantime are yielded, too.
            node = following if node.block is not self else node.next

    def __reversed__(self) -> Iterator[Node]:
        """Yield the nodes in reverse; the caller may remove the node yielded last."""
        node = self.exit.previous
        while node is not None and node is not self.entry:
            previous = node.previous
            yield node
            node = previous if node.block is not self else node.previous

    def clear(self) -> None:
        """Destroy all nodes of the block, from its end; the parameters stay."""
        self.exit.set_inputs(())
        for node in reversed(self):
            node.destroy()


class Graph:
    """A program of one block, with a name; it returns `block.results`."""

    __slots__ = ("block", "name")

    def __init__(self, name: str = "") -> None:
        self.name = name
        self.block = Block()

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, including those of nested blocks, in the order of the text.

        The caller may destroy the node yielded last, with its blocks.
        """
        return walk((self.block,))


def walk(
    blocks: Sequence[Block],
    nodes_of: Callable[[Block], Iterator[Node]] = iter,
    skipped: str = "",
) -> Iterator[Node]:
    """Yield the nodes of blocks, each before those of its blocks, without recursion.

    `nodes_of` yields the nodes of one block; blocks of a node of the kind `skipped` are
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


# A generator that yields the generators to run before it continues.
Nested = Iterator["Nested"]


def run_nested(outermost: Nested) -> None:
    """Run a generator and all generators that it yields, without recursion."""
    running = [outermost]
    while running:
        inner = next(running[-1], None)
        if inner is None:
            running.pop()
        else:
            running.append(inner)


# Original value -> its replacement in the copy.
Values = MutableMapping[Value, Value]
_Pairs = list[tuple[Block, Block]]


def copy_graph(graph: Graph, values: Values | None = None) -> Graph:
    """Return a copy of `graph`."""
    copied = Graph(graph.name)
    copy_block(graph.block, copied.block, {} if values is None else values)
    return copied


def copy_block(block: Block, into: Block, values: Values) -> None:
    """Copy the nodes, parameters and results of `block` into the empty block `into`."""
    _copy([(block, into)], values)


def copy_node(node: Node, values: Values) -> Node:
    """Return a copy of `node`, in no block, whose inputs are replaced by `values`."""
    todo: _Pairs = []
    copied = _node(node, values, todo)
    _copy(todo, values)
    return copied


def copy_nodes(block: Block, before: Node, values: Values) -> list[Value]:
    """Insert copies of the nodes of `block` before a node; return the copied results.

    `values` maps the parameters to their replacements.
    """
    todo: _Pairs = []
    for node in block:
        _node(node, values, todo).insert_before(before)
    _copy(todo, values)
    return [values.get(each, each) for each in block.results]


def _copy(todo: _Pairs, values: Values) -> None:
    # The list grows during the iteration.
    for block, into in todo:
        for value in block.parameters:
            values[value] = into.add_parameter(value.type, value.hint)
        for node in block:
            into.append(_node(node, values, todo))
        for value in block.results:
            into.add_result(values.get(value, value))


def _node(node: Node, values: Values, todo: _Pairs) -> Node:
    copied_node = Node(
        node.kind,
        [values.get(each, each) for each in node.inputs],
        [each.type for each in node.outputs],
        node.attributes,
        node.place,
    )
    for value, copied in zip(node.outputs, copied_node.outputs, strict=True):
        copied.hint = value.hint
        values[value] = copied
    for block in node.blocks:
        todo.append((block, copied_node.add_block()))
    for name, value in node.attributes.items():
        if isinstance(value, Graph):
            inner = copied_node.attributes[name] = Graph(value.name)
            todo.append((value.block, inner.block))
    return copied_node
