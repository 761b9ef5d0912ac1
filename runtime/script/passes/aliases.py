"""Alias analysis: which values of a graph may be, or hold, the same memory.

The analysis computes the memory that each value may refer to, and the memory that each
node writes to.

    memory of a value     the memory that it may be: for a parameter, outside
    region of a value     its memory and the memory that it may hold, at any depth
    outside               memory that callers, other functions and threads may reach

A set of memories is an int with one bit per memory: `|` is the union and `&` the
intersection. The first bits are the memory outside before the graph runs, one for each
sort (tensors, lists, objects, ...); each output that may be new memory has a separate
bit.

Rules:
- the analysis is conservative: an unknown value may be anything outside;
- memory outside is distinguished only by its sort, not by types of elements: a caller
  can pass one empty list for two parameters of different types;
- the order of nodes is ignored, and elements, keys and attributes are not
  distinguished;
- tuples, futures and awaits hold; a list, dictionary, object or tensor can be written
  to; a plain value (an int, a str, None) is not memory;
- operators on tensors read modes, which unknown code may switch;
- a value that is passed to unknown code is outside from then on, with all that it
  holds, and memory outside may hold anything outside; the same applies to values
  captured by a closure, a fork or an await, because its body runs at another time;
- the primitives of scripts retain no reference: their results derive from their
  arguments, and they store only into the arguments that they write to.

Each node adds to the memory of its outputs, and to the contents of memories, until a
fixed point is reached (inclusion constraints: Andersen, 1994, flow-insensitive).
"""

from collections.abc import Callable, Iterable, Iterator
from functools import cache

from everyorder.runtime.schema.declared import (
    EnumType,
    InterfaceType,
    ModuleType,
    ScriptClassType,
)
from everyorder.runtime.schema.signature import WILDCARD, AliasInfo
from everyorder.runtime.schema.types import (
    NAMED_BASES,
    AnyClassType,
    AnyType,
    AwaitType,
    CapsuleType,
    ClassType,
    DictType,
    FunctionType,
    FutureType,
    GeneratorType,
    ListType,
    OptionalType,
    RRefType,
    StorageType,
    TensorType,
    TupleType,
    Type,
    UnionType,
)
from everyorder.runtime.script.ir import (
    Graph,
    Node,
    NodeEffect,
    Rows,
    Sharing,
    Value,
    row_of,
)
from everyorder.runtime.script.ir.type_rules import parts_of

# The sorts of memory: a bit for each, and the first bits of every set.
_TENSOR, _GENERATOR, _LIST, _DICT, _OBJECT, _TUPLE, _LATER, _FUNCTION = (
    1 << each for each in range(8)
)
_EVERY = (1 << 8) - 1
# No value has this bit. It is the modes that operators on tensors read (grad mode, the
# state of random generators) and that unknown code may switch.
_MODES = 1 << 8
_SORTS = 9
_OUTSIDE = _EVERY | _MODES
# A future is never an await, but both are held by references: one sort is enough.
_OF_CLASS: dict[type[Type], int] = {
    ListType: _LIST,
    DictType: _DICT,
    TupleType: _TUPLE,
    FutureType: _LATER,
    AwaitType: _LATER,
    RRefType: _LATER,
    ClassType: _OBJECT,
    ScriptClassType: _OBJECT,
    ModuleType: _OBJECT,
    InterfaceType: _OBJECT,
    EnumType: 0,
}
_ANYTHING = (AnyType, AnyClassType, CapsuleType)
_OF_WORD: dict[Type, int] = {
    **dict.fromkeys(NAMED_BASES.values(), 0),
    **dict.fromkeys(_ANYTHING, _EVERY),
    TensorType: _TENSOR,
    StorageType: _TENSOR,
    GeneratorType: _GENERATOR,
    FunctionType: _FUNCTION,
}
PRIMITIVES = "script::"


def sorts(type_: Type) -> int:
    """Return the sorts of memory that a value of the type may be; 0 if it is plain."""
    sort = _OF_WORD.get(type_)
    if sort is None:
        sort = _OF_CLASS.get(type_.__class__)
    if sort is not None:
        return sort
    if isinstance(type_, OptionalType):
        return sorts(type_.element)
    if isinstance(type_, UnionType):
        member_sorts = 0
        for each in type_.members:
            member_sorts |= sorts(each)
        return member_sorts
    # Type variables, Python objects, and types that are added later.
    return _EVERY


def held_sorts(type_: Type) -> int:
    """Return the sorts of memory that a value of the type may hold, at any depth."""
    result, visited, todo = 0, {type_}, [type_]
    while todo:
        outer = todo.pop()
        if sorts(outer) & (_OBJECT | _LATER | _FUNCTION):
            # Attributes may be of subclasses, and futures hold the values of their
            # bodies.
            return _EVERY
        for each in _elements(outer):
            result |= sorts(each)
            if each not in visited:
                visited.add(each)
                todo.append(each)
        if result == _EVERY:
            break
    return result


def _elements(outer: Type) -> tuple[Type, ...]:
    if isinstance(outer, ListType | DictType | TupleType):
        return parts_of(outer)
    if isinstance(outer, OptionalType | UnionType):
        return tuple([each for part in parts_of(outer) for each in _elements(part)])
    return (AnyType,) if sorts(outer) == _EVERY else ()


def bits_of(memory: int) -> Iterator[int]:
    """Yield the numbers of the set bits."""
    while memory:
        low = memory & -memory
        yield low.bit_length() - 1
        memory ^= low


class Aliases:
    """The memory of the values of a graph, computed once.

    Nodes may be removed afterwards; the result stays valid. It does not cover nodes
    that are added, or values that are used in another place.
    """

    def __init__(self, graph: Graph, rows: Rows = row_of) -> None:
        self._row: Rows = cache(rows)
        self._rows = rows
        # Memory that may be reached outside.
        self.outside = _OUTSIDE
        # The memory that each memory holds; memory outside holds all memory outside.
        self._held = [0] * _SORTS
        self._memory: dict[Value, int] = {}
        self._bits: dict[Value, int] = {}
        self._by_sort = [1 << each for each in range(_SORTS)]
        self._masks: dict[int, int] = {}
        self._types: dict[Type, tuple[int, int]] = {}
        self._written: dict[Node, int] = {}
        self._changed = False
        self._number(graph)
        steps = [*self._steps(graph)]
        self._changed = True
        while self._changed:
            self._changed = False
            for step, node in steps:
                step(self, node)
        # The memory that any node of the graph writes to.
        self.all_written = 0
        for node in graph.nodes():
            self.all_written |= self.written(node)

    # Asking

    def memory(self, value: Value) -> int:
        """Return the memory that a value may be."""
        return self._memory.get(value, 0)

    def region(self, value: Value) -> int:
        """Return the memory that a value may be or hold."""
        own = self._memory.get(value, 0)
        if not own:
            return 0
        return own | self._inside(value)

    def may_alias(self, one: Value, other: Value) -> bool:
        """Return True if two values may be the same memory."""
        return bool(self.memory(one) & self.memory(other))

    def may_contain_alias(self, one: Value, other: Value) -> bool:
        """Return True if the regions of two values may overlap."""
        return bool(self.region(one) & self.region(other))

    def written(self, node: Node) -> int:
        """Return the memory that a node writes to, without its blocks."""
        written = self._written.get(node)
        if written is None:
            written = self._written[node] = self._writes(node)
        return written

    def written_within(self, node: Node) -> int:
        """Return the memory that a node and the nodes in its blocks write to."""
        written = self.written(node)
        for each in node.nodes_within():
            written |= self.written(each)
        return written

    def read(self, node: Node) -> int:
        """Return the memory that a node reads, without its blocks."""
        row = self._row(node.kind)
        if row is None or NodeEffect.UNKNOWN in row.effects:
            return self.outside
        if NodeEffect.READS not in row.effects and row.schema is None:
            return 0
        is_operator = row.schema is not None and not node.kind.startswith(PRIMITIVES)
        memory = _MODES if is_operator else 0
        for value in node.inputs:
            # Taking a part reads the whole that holds it, and nothing deeper.
            is_part = row.sharing is Sharing.PARTS
            memory |= self.memory(value) if is_part else self.region(value)
        return memory

    def is_written(self, value: Value) -> bool:
        """Return True if a node may write to a value, or to memory that it holds."""
        return bool(self.region(value) & self.all_written)

    @property
    def writes_outside(self) -> bool:
        """Return True if a node may write to memory outside."""
        return bool(self.all_written & self.outside)

    def is_outside(self, value: Value) -> bool:
        """Return True if a value, or memory that it holds, may be outside."""
        return bool(self.region(value) & self.outside)

    def reachable(self, memory: int) -> int:
        """Return the memory and all that it holds, at any depth."""
        reached = todo = memory
        while todo:
            new = self._holds(todo) & ~reached
            reached |= new
            todo = new
        return reached

    # Preparing

    def _number(self, graph: Graph) -> None:
        """Assign a bit to each output that may be memory."""
        for node in graph.nodes():
            for value in node.outputs:
                own = self._sorts(value.type)[0]
                if own:
                    bit = self._bits[value] = 1 << len(self._held)
                    self._held.append(0)
                    for each in bits_of(own):
                        self._by_sort[each] |= bit
        # Masks that were computed before all bits existed are stale.
        self._masks.clear()
        for value in graph.block.parameters:
            self._add(value, self.outside)

    def _steps(self, graph: Graph) -> Iterator["tuple[_Step, Node]"]:
        """Yield the constraint of each node of the graph that adds one."""
        for node in graph.nodes():
            row = self._row(node.kind)
            touched = [*node.inputs, *node.outputs]
            if not node.blocks and not any(map(self._is_memory, touched)):
                continue
            sharing = Sharing.ANYTHING if row is None else row.sharing
            yield _STEPS[sharing], node
            if row is not None and NodeEffect.UNKNOWN in row.effects:
                yield Aliases._hands_out, node

    def _is_memory(self, value: Value) -> bool:
        return bool(self._sorts(value.type)[0])

    def _sorts(self, type_: Type) -> tuple[int, int]:
        result = self._types.get(type_)
        if result is None:
            result = self._types[type_] = sorts(type_), held_sorts(type_)
        return result

    def _mask(self, sort_bits: int) -> int:
        """Return all memories of some sorts."""
        mask = self._masks.get(sort_bits)
        if mask is None:
            mask = 0
            for each in bits_of(sort_bits):
                mask |= self._by_sort[each]
            self._masks[sort_bits] = mask
        return mask

    # Adding

    def _add(self, value: Value, memory: int) -> None:
        """Let a value be that memory, too, as far as its type allows."""
        before = self._memory.get(value, 0)
        after = before | (memory & self._mask(self._sorts(value.type)[0]))
        if after != before:
            self._memory[value] = after
            self._changed = True

    def _store(self, into: int, memory: int) -> None:
        """Let the memories of `into` hold `memory`."""
        if not memory:
            return
        if into & self.outside:
            self._escape(memory)
        for each in bits_of(into & ~_OUTSIDE):
            contents = self._held[each] | memory
            if contents != self._held[each]:
                self._held[each] = contents
                self._changed = True

    def _escape(self, memory: int) -> None:
        """Let memory, and all that it holds, be reachable outside."""
        outside = self.outside | self.reachable(memory)
        if outside != self.outside:
            self.outside = outside
            self._changed = True

    def _holds(self, memory: int) -> int:
        """Return the memory that memories hold directly."""
        contents = self.outside if memory & self.outside else 0
        for each in bits_of(memory & ~_OUTSIDE):
            contents |= self._held[each]
        return contents

    def _new(self, value: Value, contents: int = 0) -> None:
        """Let a value be new memory with some contents."""
        bit = self._bits.get(value, 0)
        self._add(value, bit)
        self._store(bit, contents)

    def _inside(self, value: Value) -> int:
        """Return the memory that a value of its type may hold, at any depth."""
        allowed = self._sorts(value.type)[1]
        if not allowed:
            return 0
        contents = self._holds(self.memory(value))
        return self.reachable(contents) & self._mask(allowed)

    def _together(self, values: Iterable[Value]) -> int:
        union = 0
        for value in values:
            union |= self.memory(value)
        return union

    # The constraints of nodes, by the kind of sharing

    def _shares_nothing(self, node: Node) -> None:
        for value in node.outputs:
            self._new(value)

    def _holds_inputs(self, node: Node) -> None:
        contents = self._together(node.inputs)
        for value in node.outputs:
            self._new(value, contents)

    def _gives_parts(self, node: Node) -> None:
        (whole, *_) = node.inputs
        # An enum is not memory, but the values of its members may be.
        is_enum = isinstance(whole.type, EnumType)
        parts = self.outside if is_enum else self._holds(self.memory(whole))
        for value in node.outputs:
            self._add(value, parts)

    def _gives_input(self, node: Node) -> None:
        for value in node.outputs:
            self._add(value, self.memory(node.inputs[0]))

    def _gives_of_blocks(self, node: Node) -> None:
        if node.kind == "prim::Loop":
            (body,) = node.blocks
            for place, parameter in enumerate(body.parameters[1:]):
                self._add(parameter, self.memory(node.inputs[place + 2]))
                self._add(parameter, self.memory(body.results[place + 1]))
                self._add(node.outputs[place], self.memory(parameter))
            return
        for block in node.blocks:
            # The entered value is the result of unknown code.
            for value in block.parameters:
                self._add(value, self.outside)
            for value, result in zip(node.outputs, block.results, strict=True):
                self._add(value, self.memory(result))

    def _stores(self, node: Node) -> None:
        first, *others = node.inputs
        self._store(self.memory(first), self._together(others))

    def _hands_out(self, node: Node) -> None:
        self._escape(self._together(node.inputs))

    def _gives_anything(self, node: Node) -> None:
        self._hands_out(node)
        for inner in node.nodes_within():
            self._hands_out(inner)
        for block in node.blocks:
            self._hands_out(block.exit)
        for value in node.outputs:
            self._add(value, self.outside)

    def _follows_schema(self, node: Node) -> None:
        row = self._row(node.kind)
        assert row is not None, "an operator has a row"
        schema = row.schema
        assert schema is not None, "an operator has a schema"
        is_primitive = node.kind.startswith(PRIMITIVES)
        inputs = self._together(node.inputs)
        contents = 0
        for value in node.inputs:
            contents |= self._inside(value)
        sets: dict[str, int] = {}
        stored = written = 0
        for argument, value in zip(schema.arguments, node.inputs, strict=False):
            alias = argument.alias
            if alias is None:
                continue
            memory = self.memory(value)
            for name in alias.sets_before:
                sets[name] = sets.get(name, 0) | memory | self._inside(value)
            if alias.is_write:
                written |= memory
            if WILDCARD in alias.sets_after and WILDCARD not in alias.sets_before:
                stored |= memory
        if stored and not is_primitive:
            self._escape(stored)
        if written:
            self._store(written, stored | contents)
        anything = inputs | contents | (0 if is_primitive else self.outside)
        sets[WILDCARD] = anything
        for place, value in enumerate(node.outputs):
            if place >= len(schema.returns):
                self._new(value, anything | self._bits.get(value, 0))
                self._add(value, self.outside | anything)
                continue
            alias = schema.returns[place].alias
            self._gives_sets(value, alias, sets, contents)

    def _gives_sets(
        self, value: Value, alias: AliasInfo | None, sets: dict[str, int], contents: int
    ) -> None:
        names = () if alias is None else (*alias.before, *alias.after)
        inner = frozenset[str]() if alias is None else alias.sets_before
        memory = 0
        for name in names:
            memory |= sets.get(name, 0)
        for name in inner:
            contents |= sets.get(name, 0)
        if not names or WILDCARD in names:
            # The depth at which it holds the shared memory is unknown: it holds itself,
            # too.
            bit = self._bits.get(value, 0)
            contents &= self._mask(self._sorts(value.type)[1])
            self._new(value, contents | bit if contents else 0)
        self._add(value, memory)

    # Writing

    def _writes(self, node: Node) -> int:
        row = self._row(node.kind)
        if row is None or NodeEffect.UNKNOWN in row.effects:
            return self.outside
        written = 0
        for place in row.writes:
            memory = self.memory(node.inputs[place])
            written |= memory
            if row.schema is not None:
                alias = row.schema.arguments[place].alias
                if alias is not None and any(each.is_write for each in alias.contained):
                    written |= self._holds(memory)
        if row.graph is not None and NodeEffect.RUNS in row.effects:
            # The graph's parameters are outside if the graph is analysed separately.
            inside = node.attributes[row.graph]
            if Aliases(inside, self._rows).writes_outside:
                written |= self.outside
        return written


_Step = Callable[[Aliases, Node], None]
_STEPS: dict[Sharing, _Step] = {
    Sharing.NOTHING: Aliases._shares_nothing,
    Sharing.HOLDS: Aliases._holds_inputs,
    Sharing.PARTS: Aliases._gives_parts,
    Sharing.SAME: Aliases._gives_input,
    Sharing.BLOCKS: Aliases._gives_of_blocks,
    Sharing.STORES: Aliases._stores,
    Sharing.SCHEMA: Aliases._follows_schema,
    Sharing.ANYTHING: Aliases._gives_anything,
}
