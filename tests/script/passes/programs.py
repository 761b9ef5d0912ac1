"""Random programs that run: graphs, arguments for them, and what came of a run.

`random_program(random)` is a graph of the parameters `PARAMETERS`; `outcome` runs one
on arguments of its own and tells value, mutations, what was printed, which of all these
are one object, and what was raised.
"""

import io
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass
from random import Random
from typing import Any

from everyorder import runtime
from everyorder.runtime.futures import Future
from everyorder.runtime.schema.declared import InterfaceType, Namespace, ScriptClassType
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument
from everyorder.runtime.schema.subtyping import optional
from everyorder.runtime.schema.types import (
    AwaitType,
    BoolType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    GeneratorType,
    IntType,
    ListType,
    NoneType_,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor import executor, plan_of
from everyorder.runtime.script.ir import Block, Graph, Node, Value, parse_graph
from everyorder.runtime.script.ir.program import Function, declare_objects

INTS, ROWS, TENSORS = (
    ListType(IntType),
    ListType(ListType(IntType)),
    ListType(TensorType),
)
TABLE = DictType(StrType, INTS)
PAIR = TupleType((IntType, INTS))
MAYBE = optional(IntType)
LATER, READY = FutureType(INTS), AwaitType(INTS)


class Cell:
    """An object of a program."""

    items: list[int]
    count: int


def _cell() -> ScriptClassType:
    cell = NAMES.declare(ScriptClassType, "__torch__.passes.Cell", Cell)
    cell.declaration.add_attribute("items", INTS)
    cell.declaration.add_attribute("count", IntType)
    cell.declaration.add_method("give", _method(cell))
    cell.declaration.seal()
    declare_objects(Cell, cell)
    return cell


def _giver() -> InterfaceType:
    giver = NAMES.declare(InterfaceType, "__torch__.passes.Giver")
    giver.declaration.add_method("give", _method(giver))
    giver.declaration.seal()
    return giver


def _method(owner: Type) -> Schema:
    parsed = parse_schema("give(int[] x) -> int[]")
    arguments = (Argument("self", owner), *parsed.arguments)
    return Schema(parsed.name, arguments, parsed.returns)


NAMES = Namespace()
CELL, GIVER = _cell(), _giver()

PARAMETERS: tuple[Type, ...] = (
    *(IntType, IntType, BoolType, FloatType, StrType, INTS, INTS),
    *(ROWS, TensorType, TensorType, CELL, MAYBE),
)

FUNCTIONS: dict[str, Function] = {
    name: Function(name, parse_schema(schema), parse_graph(text))
    for name, schema, text in (
        (
            "__torch__.passes.grow",
            "grow(int[] x, int y) -> int",
            """\
graph(%x : int[], %y : int):
  script::append.t(%x, %y)
  %n : int = script::len.t(%x)
  prim::Print(%n)
  return (%n)
""",
        ),
        (
            "__torch__.passes.same",
            "same(int[] x, int y) -> int[]",
            """\
graph(%x : int[], %y : int):
  return (%x)
""",
        ),
    )
}


# Kind, types of inputs, types of outputs.
_Step = tuple[str, tuple[Type, ...], tuple[Type, ...]]
STEPS: tuple[_Step, ...] = (
    *(
        (f"script::{name}.int", (IntType, IntType), (IntType,))
        for name in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_", "xor")
    ),
    ("script::pow.int", (IntType, IntType), (IntType,)),
    ("script::invert.int", (IntType,), (IntType,)),
    ("script::neg.int", (IntType,), (IntType,)),
    *(
        (f"script::{name}.int", (IntType, IntType), (BoolType,))
        for name in ("lt", "le", "eq", "ne", "ge", "gt")
    ),
    *(
        (f"script::{name}.bool", (BoolType, BoolType), (BoolType,))
        for name in ("and_", "or_", "xor", "eq", "ne")
    ),
    ("script::not_.bool", (BoolType,), (BoolType,)),
    ("script::not_.bool", (BoolType,), (BoolType,)),
    ("script::int.bool", (BoolType,), (IntType,)),
    ("script::bool.int", (IntType,), (BoolType,)),
    ("script::float.int", (IntType,), (FloatType,)),
    *(
        (f"script::{name}.float", (FloatType, FloatType), (FloatType,))
        for name in ("add", "sub", "mul", "truediv")
    ),
    ("script::neg.float", (FloatType,), (FloatType,)),
    ("script::lt.float", (FloatType, FloatType), (BoolType,)),
    ("script::add.str", (StrType, StrType), (StrType,)),
    ("script::str.t", (StrType,), (StrType,)),
    ("script::str.t", (IntType,), (StrType,)),
    ("script::len.str", (StrType,), (IntType,)),
    ("script::divmod.int", (IntType, IntType), (IntType, IntType)),
    ("script::len.t", (INTS,), (IntType,)),
    ("script::len.t", (ROWS,), (IntType,)),
    ("script::getitem.t", (INTS, IntType), (IntType,)),
    ("script::getitem.t", (ROWS, IntType), (INTS,)),
    ("script::getitem.t", (TENSORS, IntType), (TensorType,)),
    ("script::setitem.t", (INTS, IntType, IntType), ()),
    ("script::setitem.t", (ROWS, IntType, INTS), ()),
    ("script::append.t", (INTS, IntType), ()),
    ("script::append.t", (ROWS, INTS), ()),
    ("script::append.t", (TENSORS, TensorType), ()),
    ("script::pop.t", (INTS, IntType), (IntType,)),
    ("script::pop.t", (ROWS, IntType), (INTS,)),
    ("script::extend.t", (ROWS, ROWS), ()),
    ("script::add.t", (INTS, INTS), (INTS,)),
    ("script::iadd.t", (INTS, INTS), (INTS,)),
    ("script::copy.t", (ROWS,), (ROWS,)),
    ("script::list.t", (INTS,), (INTS,)),
    ("script::sum.int", (INTS,), (IntType,)),
    ("script::sum.int", (INTS,), (IntType,)),
    ("script::contains.t", (INTS, IntType), (BoolType,)),
    ("script::is_.t", (INTS, INTS), (BoolType,)),
    ("script::is_not.t", (ROWS, ROWS), (BoolType,)),
    ("script::is_.t", (MAYBE, NoneType_), (BoolType,)),
    ("script::is_not.t", (IntType, NoneType_), (BoolType,)),
    ("script::getitem.Dict_str", (TABLE, StrType), (INTS,)),
    ("script::setitem.Dict_str", (TABLE, StrType, INTS), ()),
    ("script::values.str", (TABLE,), (ROWS,)),
    ("script::len.Dict_str", (TABLE,), (IntType,)),
    ("core::neg", (TensorType,), (TensorType,)),
    ("core::mul", (TensorType, TensorType), (TensorType,)),
    ("core::mul", (TensorType, TensorType), (TensorType,)),
    ("core::mul_", (TensorType, TensorType), (TensorType,)),
    ("core::zero_", (TensorType,), (TensorType,)),
    ("core::t", (TensorType,), (TensorType,)),
    ("core::detach", (TensorType,), (TensorType,)),
    ("core::relu_", (TensorType,), (TensorType,)),
    ("prim::Print", (IntType,), ()),
    ("prim::Print", (StrType, INTS), ()),
    ("prim::Print", (), ()),
    ("prim::TupleConstruct", (IntType, INTS), (PAIR,)),
    ("prim::TupleUnpack", (PAIR,), (IntType, INTS)),
    ("prim::ListConstruct", (IntType, IntType), (INTS,)),
    ("prim::ListConstruct", (IntType,), (INTS,)),
    ("prim::ListConstruct", (INTS, INTS), (ROWS,)),
    ("prim::ListConstruct", (TensorType,), (TENSORS,)),
    ("prim::DictConstruct", (StrType, INTS), (TABLE,)),
    ("prim::ListUnpack", (INTS,), (IntType, IntType)),
    ("prim::awaitable_nowait", (INTS,), (READY,)),
    ("prim::awaitable_wait", (READY,), (INTS,)),
    ("prim::wait", (LATER,), (INTS,)),
    ("prim::unchecked_cast", (IntType,), (MAYBE,)),
    ("prim::unchecked_cast", (IntType,), (IntType,)),
)
_INDEXED = ("getitem.t", "setitem.t", "pop.t")
CONSTANTS: dict[Type, tuple[Any, ...]] = {
    IntType: (0, 0, 1, 1, 2, -1, 3, 2**63 - 1, -(2**63)),
    BoolType: (True, False),
    FloatType: (0.0, -0.0, 1.0, 1.5, float("inf"), float("nan")),
    StrType: ("", "", "a", "key", "x" * 600),
    NoneType_: (None,),
    MAYBE: (None, 1),
}
DEEPEST = 3


class Growth:
    """A graph that grows: what is visible in a block, and how deep it is."""

    def __init__(
        self, random: Random, block: Block, visible: list[Value], depth: int = 0
    ) -> None:
        self.random = random
        self.block = block
        self.visible = visible
        self.depth = depth
        # What is drawn from: few, so that they meet.
        self.steps: Sequence[_Step] = STEPS
        self.forms: Sequence[Callable[[Growth], None]] = _FORMS
        # How many of the lines are forms.
        self.share = 0.2
        # Whether what is done is seen from outside at another time.
        self.is_quiet = False

    def put(
        self, kind: str, inputs: Any = (), outputs: Any = (), /, **attributes: Any
    ) -> Node:
        node = self.block.append(Node(kind, inputs, outputs, attributes))
        self.visible += node.outputs
        return node

    def value(self, type_: Type) -> Value:
        known = [each for each in self.visible if each.type is type_]
        own = [each for each in known if not each.is_parameter]
        # Of what is its own a program can lose more than of what it is given.
        if own and self.random.random() < 0.7:
            return self.random.choice(own[-4:])
        if known and self.random.random() < 0.6:
            return self.random.choice(known[-6:])
        return self.new(type_)

    def new(self, type_: Type) -> Value:
        if type_ in CONSTANTS:
            value = self.random.choice(CONSTANTS[type_])
            return self.put("prim::Constant", (), [type_], value=value).output
        if type_ in (INTS, ROWS, TENSORS):
            assert isinstance(type_, ListType)
            inputs = [
                self.value(type_.element) for _ in range(self.random.randrange(1, 4))
            ]
            return self.put("prim::ListConstruct", inputs, [type_]).output
        if type_ is TABLE:
            inputs = [self.value(StrType), self.value(INTS)]
            return self.put("prim::DictConstruct", inputs, [type_]).output
        if type_ is PAIR:
            inputs = [self.value(each) for each in PAIR.elements]
            return self.put("prim::TupleConstruct", inputs, [type_]).output
        if type_ is CELL:
            return self.cell()
        if type_ is TensorType:
            size = self.put("prim::ListConstruct", [], [INTS]).output
            return self.random_tensor(size)
        if type_ is LATER:
            return self.later("prim::fork", LATER)
        assert type_ is READY
        return self.later("prim::awaitable", READY)

    def cell(self) -> Value:
        made = self.put("prim::CreateObject", (), [CELL]).output
        self.visible.pop()
        items, count = self.value(INTS), self.value(IntType)
        self.put("prim::SetAttr", [made, items], name="items")
        self.put("prim::SetAttr", [made, count], name="count")
        self.visible.append(made)
        return made

    def random_tensor(self, size: Value) -> Value:
        none = [
            self.put("prim::Constant", (), [optional(each)], value=None).output
            for each in _RAND_NONE
        ]
        pinned = self.put("prim::Constant", (), [BoolType], value=False).output
        return self.put("core::rand", [size, *none, pinned], [TensorType]).output

    def later(self, kind: str, type_: Type) -> Value:
        # What is forked may run at the same time as the rest: it reads no memory.
        is_quiet = kind == "prim::fork"
        if self.random.random() < 0.4:
            closure = self.put("prim::Closure", (), [FunctionType])
            inner = self.within(closure.add_block())
            inner.is_quiet = is_quiet
            if is_quiet:
                inner.visible = [each for each in inner.visible if each.type is IntType]
            inner.lines(3)
            inner.block.add_result(inner.value(INTS))
            return self.put(f"{kind}Closure", closure.outputs, [type_]).output
        inputs = [self.value(IntType if is_quiet else INTS), self.value(IntType)]
        graph = Graph("later")
        visible = [graph.block.add_parameter(each.type) for each in inputs]
        inner = Growth(self.random, graph.block, visible, DEEPEST - 1)
        inner.is_quiet = is_quiet
        if not is_quiet:
            inner.steps, inner.forms = self.steps, self.forms
        inner.lines(3)
        graph.block.add_result(inner.value(INTS))
        return self.put(kind, inputs, [type_], graph=graph).output

    def lines(self, most: int) -> None:
        for _ in range(self.random.randrange(most + 1)):
            if self.forms and self.random.random() < self.share:
                self.random.choice(self.forms)(self)
            else:
                kind, inputs, outputs = self.random.choice(self.steps)
                if self.is_quiet and kind not in QUIET:
                    continue
                values = [self.value(each) for each in inputs]
                if kind.endswith(_INDEXED) and self.random.random() < 0.8:
                    # Most lists have a first element.
                    index = self.random.choice((0, 0, -1))
                    self.put("prim::Constant", (), [IntType], value=index)
                    values[1] = self.visible.pop()
                self.put(kind, values, outputs)

    def within(self, block: Block) -> "Growth":
        inner = Growth(
            self.random, block, [*self.visible, *block.parameters], self.depth + 1
        )
        inner.is_quiet = self.is_quiet
        inner.steps, inner.forms, inner.share = self.steps, self.forms, self.share
        return inner


_RAND_NONE = (GeneratorType, ScalarTypeType, DeviceType)
# What neither writes, reads nor is seen.
_NUMBERS = (IntType, BoolType, FloatType)
QUIET = frozenset(
    kind
    for kind, inputs, outputs in STEPS
    if kind.startswith("script::")
    and all(each in _NUMBERS for each in (*inputs, *outputs))
)


def _types(growth: Growth) -> list[Type]:
    choices = (IntType, BoolType, INTS, ROWS, TensorType, MAYBE, PAIR)
    return [growth.random.choice(choices) for _ in range(growth.random.randrange(3))]


def _if(growth: Growth) -> None:
    if growth.depth >= DEEPEST:
        return
    types = _types(growth)
    node = growth.put("prim::If", [growth.value(BoolType)], types)
    del growth.visible[len(growth.visible) - len(types) :]
    for _ in range(2):
        inner = growth.within(node.add_block())
        inner.lines(3)
        inner.block.exit.set_inputs([inner.value(each) for each in types])
    growth.visible += node.outputs


def _loop(growth: Growth) -> None:
    if growth.depth >= DEEPEST:
        return
    types = _types(growth)
    trips = growth.put(
        "prim::Constant", (), [IntType], value=growth.random.randrange(-1, 4)
    ).output
    carried = [growth.value(each) for each in types]
    inputs = [trips, growth.value(BoolType), *carried]
    node = growth.put("prim::Loop", inputs, types)
    del growth.visible[len(growth.visible) - len(types) :]
    block = node.add_block()
    for each in (IntType, *types):
        block.add_parameter(each)
    inner = growth.within(block)
    inner.lines(4)
    block.exit.set_inputs([inner.value(each) for each in (BoolType, *types)])
    if growth.random.random() < 0.5:
        # As a `for` has it: the number of trips alone counts.
        yes = Node("prim::Constant", (), [BoolType], {"value": True}).insert_before(
            node
        )
        node.set_input(1, yes.output)
        block.exit.set_input(0, yes.output)
    if growth.random.random() < 0.3 and types:
        block.exit.set_input(1, block.parameters[1])
    growth.visible += node.outputs


def _raise(growth: Growth) -> None:
    if growth.depth and not growth.is_quiet:
        growth.put(
            "prim::RaiseException",
            [growth.value(StrType)],
            **{"class": "builtins.ValueError"},
        )


def _call(growth: Growth) -> None:
    if growth.is_quiet:
        return
    function = growth.random.choice([*FUNCTIONS.values()])
    called = growth.put("prim::Constant", (), [FunctionType], function=function).output
    inputs = [called, growth.value(INTS), growth.value(IntType)]
    result = [each.type for each in function.schema.returns]
    growth.put("prim::CallFunction", inputs, result)


def _attribute(growth: Growth) -> None:
    if growth.is_quiet:
        return
    name, type_ = growth.random.choice((("items", INTS), ("count", IntType)))
    owner = growth.value(CELL)
    if growth.random.random() < 0.6:
        growth.put("prim::GetAttr", [owner], [type_], name=name)
    else:
        growth.put("prim::SetAttr", [owner, growth.value(type_)], name=name)


def _rand(growth: Growth) -> None:
    if not growth.is_quiet:
        growth.random_tensor(growth.put("prim::ListConstruct", [], [INTS]).output)


def _index(growth: Growth) -> None:
    index = growth.random.randrange(2)
    pair = growth.value(PAIR)
    growth.put("prim::TupleIndex", [pair], [PAIR.elements[index]], index=index)


def _question(growth: Growth) -> None:
    value = growth.value(growth.random.choice((IntType, MAYBE, INTS, StrType)))
    types = growth.random.choice(((IntType,), (StrType, NoneType_), (INTS,)))
    growth.put("prim::isinstance", [value], [BoolType], types=types)


_FORMS: tuple[Callable[[Growth], None], ...] = (
    *(_if, _if, _loop, _loop, _raise, _call, _attribute, _attribute, _rand),
    *(_index, _question),
)


# Steps that have to do with each other, by their names, and forms beside them.
FAMILIES: tuple[tuple[str, tuple[Callable[[Growth], None], ...]], ...] = (
    ("ListConstruct getitem.t append.t len.t pop.t sum copy.t", (_if, _loop)),
    ("ListConstruct append.t is_.t iadd.t list.t len.t setitem.t", (_if, _loop)),
    ("ListConstruct append.t len.t Print", (_attribute, _attribute, _attribute, _if)),
    ("append.t len.t", (_attribute,)),
    ("ListConstruct append.t len.t", (_call, _attribute)),
    ("TupleConstruct TupleUnpack append.t len.t ListConstruct", (_index, _if)),
    ("DictConstruct getitem.Dict_str setitem.Dict_str values append.t getitem.t", ()),
    ("neg mul mul_ zero_ t detach relu_", (_if, _loop, _rand)),
    ("ListConstruct getitem.t append.t zero_ neg mul_", (_rand,)),
    ("add mul neg truediv sub lt floordiv str not_ float", (_if, _raise)),
    ("awaitable_wait awaitable_nowait wait append.t len.t ListConstruct", (_if,)),
)


def random_program(random: Random, most: int = 30) -> Graph:
    """A graph of at most so many lines, those within blocks not counted."""
    graph = Graph("f")
    visible = [graph.block.add_parameter(each) for each in PARAMETERS]
    growth = Growth(random, graph.block, visible)
    if random.random() < 0.8:
        words, growth.forms = random.choice(FAMILIES)
        growth.share = random.choice((0.1, 0.5))
        growth.steps = [
            step
            for step in STEPS
            if f"{step[0].split('::')[1]}" in words.split()
            or f"{step[0].split('::')[1].split('.')[0]}" in words.split()
        ]
    growth.lines(most)
    given = [each for each in growth.visible if each.type in _GIVEN]
    for _ in range(random.randrange(7)):
        graph.block.add_result(random.choice(given[-20:]))
    return graph


# What is compared: all but awaits and futures, of which only what they give counts.
_GIVEN = (*PARAMETERS, PAIR, TABLE, TENSORS)


def arguments(random: Random) -> list[Any]:
    """Arguments, some of which are one object."""
    lists = [[1, 2, 3, 4, 5], [random.randrange(-3, 4), 2], [], [7, 7]]
    tensors = [runtime.tensor(2.0), runtime.tensor(float(random.randrange(-3, 4)))]
    cell = Cell()
    cell.items, cell.count = random.choice(lists), 5
    pick = random.choice
    return [
        *(random.randrange(-2, 4), pick((2**62, 0, 1, 7)), pick((True, False))),
        *(pick((0.0, -0.0, 2.5, float("nan"))), pick(("", "b", "key"))),
        *(pick(lists), pick(lists), [pick(lists), pick(lists)]),
        *(pick(tensors), pick(tensors), cell, pick((None, 4))),
    ]


@dataclass(frozen=True)
class Outcome:
    """What came of a run."""

    value: Any
    error: Any
    written: Any
    printed: str


def outcome(graph: Graph, random: Random) -> Outcome:
    """Run a graph on arguments that depend on the random numbers alone."""
    given = arguments(random)[: len(graph.block.parameters)]
    runtime.manual_seed(7)
    value: Any = None
    error: Any = None
    out = io.StringIO()
    with redirect_stdout(out), executor(optimize=False):
        try:
            value = plan_of(graph).execute(*given)
        except Exception as caught:
            error = type(caught).__qualname__, str(caught)
    ids: dict[int, int] = {}
    # What is compared has to live as long as it is numbered.
    return Outcome(seen(value, ids), error, seen(given, ids), out.getvalue())


def seen(value: Any, ids: dict[int, int]) -> Any:
    """A value, and which of its parts are one object."""
    if isinstance(value, Cell):
        number, is_new = _numbered(value, ids)
        if not is_new:
            return ("cell", number)
        return ("cell", number, seen(value.items, ids), seen(value.count, ids))
    if isinstance(value, list):
        number, is_new = _numbered(value, ids)
        return ("list", number, is_new and [seen(each, ids) for each in value])
    if isinstance(value, dict):
        number, is_new = _numbered(value, ids)
        items = is_new and [(seen(k, ids), seen(v, ids)) for k, v in value.items()]
        return ("dict", number, items)
    if isinstance(value, tuple):
        return ("tuple", [seen(each, ids) for each in value])
    if hasattr(value, "key_bits"):
        number, _ = _numbered(value, ids)
        return ("tensor", number, repr(value.tolist()))
    if isinstance(value, Future):
        return "future"
    return (type(value).__name__, repr(value))


def _numbered(value: Any, ids: dict[int, int]) -> tuple[int, bool]:
    is_new = id(value) not in ids
    return ids.setdefault(id(value), len(ids)), is_new


@contextmanager
def patched(target: Any, name: str, value: Any) -> Iterator[None]:
    """Set something for a while: an attribute, or an item of a dictionary."""
    if isinstance(target, dict):
        before = target[name]
        target[name] = value
        try:
            yield
        finally:
            target[name] = before
        return
    before = getattr(target, name)
    setattr(target, name, value)
    try:
        yield
    finally:
        setattr(target, name, before)
