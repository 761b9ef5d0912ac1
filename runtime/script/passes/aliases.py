"""Alias analysis: which values of a graph may be, or hold, the same memory.

For each value it is known where its memory may lie, and for each node what it writes
to.

    memory of a value     where it may lie: of a parameter, outside
    region of a value     that, and what it may hold, at any depth
    outside               what callers, other functions and other threads may know

A set of memories is an int, a bit for each, so that a union is `|` and a meeting `&`.
The first bits are what lies outside before the graph runs, one for each sort of memory
(tensors, lists, objects, ...); each output that may be new memory has a bit of its own.

Rules:
- it says too much, never too little: what is not known may be anything outside;
- what lies outside is told apart by its sort alone, not by types of elements: an empty
  list can be handed in for two parameters of unlike types;
- the order of nodes does not count, and elements, keys and attributes are one;
- tuples, futures and awaits hold; a list, dictionary, object or tensor can be written
  to; a plain value (an int, a str, None) is no memory;
- operators on tensors look at modes, which unknown code may switch;
- what is handed to unknown code is outside from then on, with all that it holds, and
  what lies outside may hold anything there; so is what a closure, a fork or an await
  takes along, as its body runs at another time;
- the primitives of scripts keep nothing: what they give comes of their arguments, and
  what they store lies in the arguments that they write to.

Each node adds to the memory of its outputs, and to what memories hold,
until nothing is added any more (inclusion constraints: Andersen, 1994, without order).
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
# What no value is: modes that operators on tensors look at (whether gradients are
# recorded, which numbers are drawn), and that unknown code may switch.
_MODES = 1 << 8
_SORTS = 9
_OUTSIDE = _EVERY | _MODES
# A future is none of an await, but both are held by references: one sort is enough.
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
    """The sorts of memory that a value of the type may be; 0 for a plain value."""
    known = _OF_WORD.get(type_)
    if known is None:
        known = _OF_CLASS.get(type_.__class__)
    if known is not None:
        return known
    if isinstance(type_, OptionalType):
        return sorts(type_.element)
    if isinstance(type_, UnionType):
        found = 0
        for each in type_.members:
            found |= sorts(each)
        return found
    # Variables, Python's objects, and what comes later.
    return _EVERY


def held_sorts(type_: Type) -> int:
    """The sorts of memory that a value of the type may hold, at any depth."""
    found, seen, todo = 0, {type_}, [type_]
    while todo:
        outer = todo.pop()
        if sorts(outer) & (_OBJECT | _LATER | _FUNCTION):
            # Attributes may be of subclasses, and futures hold what their bodies do.
            return _EVERY
        for each in _elements(outer):
            found |= sorts(each)
            if each not in seen:
                seen.add(each)
                todo.append(each)
        if found == _EVERY:
            break
    return found


def _elements(outer: Type) -> tuple[Type, ...]:
    if isinstance(outer, ListType | DictType | TupleType):
        return parts_of(outer)
    if isinstance(outer, OptionalType | UnionType):
        return tuple([each for part in parts_of(outer) for each in _elements(part)])
    return (AnyType,) if sorts(outer) == _EVERY else ()


def bits_of(memory: int) -> Iterator[int]:
    """The numbers of the bits of a set."""
    while memory:
        low = memory & -memory
        yield low.bit_length() - 1
        memory ^= low


class Aliases:
    """The memory of the values of a graph, as it is now.

    Nodes that are taken out afterwards do no harm; of those that are put in, and of
    values that are used in another place, it knows nothing.
    """

    def __init__(self, graph: Graph, rows: Rows = row_of) -> None:
        self._row: Rows = cache(rows)
        self._rows = rows
        # What may be known outside.
        self.outside = _OUTSIDE
        # What each memory holds; what lies outside holds all that does.
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
        # What any node of the graph writes to.
        self.all_written = 0
        for node in graph.nodes():
            self.all_written |= self.written(node)

    # Asking

    def memory(self, value: Value) -> int:
        """Where a value may lie."""
        return self._memory.get(value, 0)

    def region(self, value: Value) -> int:
        """Where a value, and what it holds, may lie."""
        own = self._memory.get(value, 0)
        if not own:
            return 0
        return own | self._inside(value)

    def may_alias(self, one: Value, other: Value) -> bool:
        """Whether two values may be the same memory."""
        return bool(self.memory(one) & self.memory(other))

    def may_contain_alias(self, one: Value, other: Value) -> bool:
        """Whether one may be, or hold, what the other is or holds."""
        return bool(self.region(one) & self.region(other))

    def written(self, node: Node) -> int:
        """The memory that a node writes to, its blocks not counted."""
        known = self._written.get(node)
        if known is None:
            known = self._written[node] = self._writes(node)
        return known

    def written_within(self, node: Node) -> int:
        """The memory that a node and the nodes in its blocks write to."""
        found = self.written(node)
        for each in node.nodes_within():
            found |= self.written(each)
        return found

    def read(self, node: Node) -> int:
        """The memory that a node reads, its blocks not counted."""
        row = self._row(node.kind)
        if row is None or NodeEffect.UNKNOWN in row.effects:
            return self.outside
        if NodeEffect.READS not in row.effects and row.schema is None:
            return 0
        is_operator = row.schema is not None and not node.kind.startswith(PRIMITIVES)
        found = _MODES if is_operator else 0
        for value in node.inputs:
            # A part is found by looking at what it is a part of, and no deeper.
            is_part = row.sharing is Sharing.PARTS
            found |= self.memory(value) if is_part else self.region(value)
        return found

    def is_written(self, value: Value) -> bool:
        """Whether some node may write to a value, or to what it holds."""
        return bool(self.region(value) & self.all_written)

    @property
    def writes_outside(self) -> bool:
        """Whether some node may write to what is known outside."""
        return bool(self.all_written & self.outside)

    def is_outside(self, value: Value) -> bool:
        """Whether a value, or what it holds, may be known outside."""
        return bool(self.region(value) & self.outside)

    def reachable(self, memory: int) -> int:
        """The memory, and what it holds, at any depth."""
        seen = todo = memory
        while todo:
            new = self._holds(todo) & ~seen
            seen |= new
            todo = new
        return seen

    # Preparing

    def _number(self, graph: Graph) -> None:
        """Give a bit to each output that may be memory."""
        for node in graph.nodes():
            for value in node.outputs:
                own = self._sorts(value.type)[0]
                if own:
                    bit = self._bits[value] = 1 << len(self._held)
                    self._held.append(0)
                    for each in bits_of(own):
                        self._by_sort[each] |= bit
        # Of what was asked before all bits were there.
        self._masks.clear()
        for value in graph.block.parameters:
            self._add(value, self.outside)

    def _steps(self, graph: Graph) -> Iterator["tuple[_Step, Node]"]:
        """The constraint of each node of the graph that adds one."""
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
        known = self._types.get(type_)
        if known is None:
            known = self._types[type_] = sorts(type_), held_sorts(type_)
        return known

    def _mask(self, wanted: int) -> int:
        """All memories of some sorts."""
        known = self._masks.get(wanted)
        if known is None:
            known = 0
            for each in bits_of(wanted):
                known |= self._by_sort[each]
            self._masks[wanted] = known
        return known

    # Adding

    def _add(self, value: Value, memory: int) -> None:
        """Let a value lie there, too, as far as its type allows."""
        before = self._memory.get(value, 0)
        after = before | (memory & self._mask(self._sorts(value.type)[0]))
        if after != before:
            self._memory[value] = after
            self._changed = True

    def _store(self, into: int, memory: int) -> None:
        """Let what lies in `into` hold what lies in `memory`."""
        if not memory:
            return
        if into & self.outside:
            self._escape(memory)
        for each in bits_of(into & ~_OUTSIDE):
            held = self._held[each] | memory
            if held != self._held[each]:
                self._held[each] = held
                self._changed = True

    def _escape(self, memory: int) -> None:
        """Let what lies there, and what it holds, be known outside."""
        outside = self.outside | self.reachable(memory)
        if outside != self.outside:
            self.outside = outside
            self._changed = True

    def _holds(self, memory: int) -> int:
        """The memory that memories hold directly."""
        found = self.outside if memory & self.outside else 0
        for each in bits_of(memory & ~_OUTSIDE):
            found |= self._held[each]
        return found

    def _new(self, value: Value, held: int = 0) -> None:
        """Let a value be new memory that holds something."""
        bit = self._bits.get(value, 0)
        self._add(value, bit)
        self._store(bit, held)

    def _inside(self, value: Value) -> int:
        """The memory that a value holds, at any depth, as far as its type allows."""
        allowed = self._sorts(value.type)[1]
        if not allowed:
            return 0
        held = self._holds(self.memory(value))
        return self.reachable(held) & self._mask(allowed)

    def _together(self, values: Iterable[Value]) -> int:
        found = 0
        for value in values:
            found |= self.memory(value)
        return found

    # What nodes add, by what they share

    def _shares_nothing(self, node: Node) -> None:
        for value in node.outputs:
            self._new(value)

    def _holds_inputs(self, node: Node) -> None:
        held = self._together(node.inputs)
        for value in node.outputs:
            self._new(value, held)

    def _gives_parts(self, node: Node) -> None:
        (whole, *_) = node.inputs
        # An enum is no memory, but its members may have been given some.
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
            # What is entered is what unknown code gives.
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
        given = self._together(node.inputs)
        held = 0
        for value in node.inputs:
            held |= self._inside(value)
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
            self._store(written, stored | held)
        anything = given | held | (0 if is_primitive else self.outside)
        sets[WILDCARD] = anything
        for place, value in enumerate(node.outputs):
            if place >= len(schema.returns):
                self._new(value, anything | self._bits.get(value, 0))
                self._add(value, self.outside | anything)
                continue
            alias = schema.returns[place].alias
            self._gives_sets(value, alias, sets, held)

    def _gives_sets(
        self, value: Value, alias: AliasInfo | None, sets: dict[str, int], held: int
    ) -> None:
        names = () if alias is None else (*alias.before, *alias.after)
        inner = frozenset[str]() if alias is None else alias.sets_before
        found = 0
        for name in names:
            found |= sets.get(name, 0)
        for name in inner:
            held |= sets.get(name, 0)
        if not names or WILDCARD in names:
            # The depth at which it holds what is shared is open: it holds itself, too.
            bit = self._bits.get(value, 0)
            held &= self._mask(self._sorts(value.type)[1])
            self._new(value, held | bit if held else 0)
        self._add(value, found)

    # Writing

    def _writes(self, node: Node) -> int:
        row = self._row(node.kind)
        if row is None or NodeEffect.UNKNOWN in row.effects:
            return self.outside
        found = 0
        for place in row.writes:
            memory = self.memory(node.inputs[place])
            found |= memory
            if row.schema is not None:
                alias = row.schema.arguments[place].alias
                if alias is not None and any(each.is_write for each in alias.contained):
                    found |= self._holds(memory)
        if row.graph is not None and NodeEffect.RUNS in row.effects:
            # What the graph is given lies outside, where it is looked at by itself.
            inside = node.attributes[row.graph]
            if Aliases(inside, self._rows).writes_outside:
                found |= self.outside
        return found


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
