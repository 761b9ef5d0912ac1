"""Random graphs with nodes of every kind, all of them sound.

`random_graph(random.Random(seed))` is one: the same for the same seed.  `GROWN` says
how a node of each kind is grown; `structure` is what a graph is, read off its parts
and not off its text.
"""

import operator
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

from everyorder.runtime.dispatch.dispatcher import Dispatcher
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.declared import ScriptClassType
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.types import (
    AnyType,
    AwaitType,
    BoolType,
    ComplexType,
    DeviceType,
    DictType,
    FloatType,
    FunctionType,
    FutureType,
    IntType,
    ListType,
    NoneType_,
    PyObjectType,
    ScalarTypeType,
    StrType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.ir.graph import Block, Graph, Node, Place, Value
from everyorder.runtime.script.ir.node_kinds import NodeKind, row_of
from tests.schema.programs import COLOUR, DEEP, LAYER, NODE, PROGRAM, Colour, method

DISPATCHER = Dispatcher()
LIBRARY = Library("demo", dispatcher=DISPATCHER)
for _text, _tags in (
    ("neg(Tensor self) -> Tensor", ("total",)),
    ("add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor", ()),
    ("add_(Tensor(a!) self, Tensor other) -> Tensor(a!)", ()),
    ("get.t(t[] self, int index) -> t", ()),
    ("rand(int[] size) -> Tensor", ("nondeterministic_seeded",)),
    ("show(str text, ...) -> ()", ()),
    ("parts(Tensor self) -> (Tensor, int)", ()),
    ("unbound(t? x) -> t", ()),
    ("scale(Tensor self, Tensor factor) -> Tensor", ("numbers_as_tensors",)),
):
    LIBRARY.define(parse_schema(_text), tags=_tags)
LIBRARY.define("unknown(Tensor self) -> ...", "CONSERVATIVE")
LIBRARY.define("pure(int a, int b) -> int", "PURE_FUNCTION", tags=("total",))


def rows(name: str) -> NodeKind | None:
    """The rows of the table, and of the operators above."""
    return row_of(name, DISPATCHER)


def _guard() -> ScriptClassType:
    guard = PROGRAM.declare(ScriptClassType, "__torch__.guards.Guard")
    guard.declaration.add_attribute("count", IntType)
    guard.declaration.add_method("__enter__", method(guard, "__enter__() -> int"))
    guard.declaration.add_method("__exit__", method(guard, "__exit__(Any e) -> ()"))
    guard.declaration.seal()
    return guard


GUARD = _guard()
POINT = TupleType((IntType, FloatType), ("x", "y"), "__torch__.geo.Point")


class Function:
    """A function of a program."""

    def __init__(self, qualname: str, schema: Schema) -> None:
        self.qualname = qualname
        self.schema = schema
        self.graph = Graph(qualname)


FUNCTIONS: Mapping[str, Function] = {
    name: Function(name, parse_schema(text))
    for name, text in (
        ("__torch__.twice", "twice(int x) -> int"),
        ("__torch__.pair", "pair(Tensor x, str name) -> (Tensor, str)"),
        ("<lambda>", "nothing() -> ()"),
    )
}


class Data:
    """What stands for a tensor: the attribute says so."""

    key_bits = 0


# What no text holds; always the same, so that equal graphs are equal.
TENSORS = (Data(), Data())
SOURCE = Source("def f(x):\n    return x\n\n# ends with é\n", "program.py", 7)
SOURCES = {"program.py": SOURCE}

TYPES: tuple[Type, ...] = (
    *(IntType, FloatType, BoolType, StrType, ComplexType, NoneType_, DeviceType),
    *(TensorType, TensorType, IntType, AnyType, ScalarTypeType, PyObjectType),
    *(COLOUR, NODE, LAYER, DEEP, GUARD, POINT, FunctionType),
    *(ListType(IntType), ListType(TensorType), ListType(optional(StrType))),
    TupleType(()),
    TupleType((IntType, TupleType((StrType, TensorType)))),
    *(DictType(StrType, IntType), DictType(IntType, ListType(TensorType))),
    *(optional(IntType), optional(NODE), optional(COLOUR), union((IntType, StrType))),
    *(FutureType(IntType), AwaitType(TensorType), AwaitType(optional(IntType))),
)
HINTS = ("", "", "x", "y", "x.1", "self.l.0", "7", "é b", "x..")
TEXTS = ("", "a", 'quote " and \\', "line\nend", "\x00\x7f", "é漢", "\ud800", "%x.1 #")
INTS = (0, 1, -1, 2**63 - 1, -(2**63))
FLOATS = (0.0, -0.0, 1.0, 1.5, 1e300, 5e-324, 0.1, float("inf"), -float("inf"))
NAN = float("nan")
PLACES = (
    None,
    Place(SOURCE, (0, 3)),
    Place(SOURCE, (14, 20)),
    Place(SOURCE, (37, 38)),
    Place(Source("   x", "elsewhere file.py"), (3, 4)),
    Place(Source("x"), (0, 1)),
)
# How deeply blocks are nested.
DEEPEST = 3


class Growth:
    """A graph that grows: a block, what is visible in it, and how deep it is."""

    def __init__(self, random: Random, block: Block, depth: int = 0) -> None:
        self.random = random
        self.block = block
        self.depth = depth
        self.visible = [*block.parameters]

    def within(self, block: Block, *, sees: bool = True) -> "Growth":
        """The growth of a deeper block, which sees what this one does."""
        inner = Growth(self.random, block, self.depth + 1)
        if sees:
            inner.visible = self.visible + inner.visible
        return inner

    def put(
        self, kind: str, inputs: Any = (), outputs: Any = (), /, **attributes: Any
    ) -> Node:
        """A node at the end of the block; what it gives is visible later on."""
        place = self.random.choice(PLACES)
        node = Node(kind, inputs, outputs, attributes, place)
        for value in node.outputs:
            value.hint = self.random.choice(HINTS)
        self.block.append(node)
        self.visible += node.outputs
        return node

    def open(self, kind: str, inputs: Any = (), types: Any = ()) -> Node:
        """As `put`, for a node with blocks: its outputs are not visible to them."""
        node = self.put(kind, inputs, types)
        del self.visible[len(self.visible) - len(node.outputs) :]
        return node

    def type(self) -> Type:
        return self.random.choice(TYPES)

    def types(self, most: int = 3) -> list[Type]:
        return [self.type() for _ in range(self.random.randrange(most + 1))]

    def value(self, type_: Type) -> Value:
        """A visible value of the type, or a new one."""
        known = [each for each in self.visible if each.type is type_]
        if known and self.random.random() < 0.7:
            return self.random.choice(known)
        return self.new(type_)

    def values(self, types: Any) -> list[Value]:
        return [self.value(each) for each in types]

    def new(self, type_: Type) -> Value:
        constants = self.constants(type_)
        if constants and self.random.random() < 0.8:
            value = self.random.choice(constants)
            return self.put("prim::Constant", (), [type_], value=value).output
        if isinstance(type_, ListType):
            inputs = self.values([type_.element] * self.random.randrange(3))
            return self.put("prim::ListConstruct", inputs, [type_]).output
        if isinstance(type_, TupleType):
            inputs = self.values(type_.elements)
            return self.put("prim::TupleConstruct", inputs, [type_]).output
        if isinstance(type_, DictType):
            pairs = [type_.key, type_.value] * self.random.randrange(3)
            return self.put("prim::DictConstruct", self.values(pairs), [type_]).output
        if isinstance(type_, AwaitType) and self.random.random() < 0.5:
            inner = self.value(type_.element)
            return self.put("prim::awaitable_nowait", [inner], [type_]).output
        if type_ is FunctionType:
            function = self.random.choice([*FUNCTIONS.values()])
            return self.put("prim::Constant", (), [type_], function=function).output
        if isinstance(type_, ScriptClassType):
            return self.put("prim::CreateObject", (), [type_]).output
        return self.put("prim::Uninitialized", (), [type_]).output

    def constants(self, type_: Type) -> tuple[Any, ...]:
        return CONSTANTS.get(type_, ())

    def lines(self, most: int) -> None:
        for _ in range(self.random.randrange(most + 1)):
            kind = self.random.choice([*GROWN])
            if self.depth < DEEPEST or kind not in DEEP_KINDS:
                GROWN[kind](self)

    def graph(self, inputs: list[Value]) -> tuple[Graph, list[Type]]:
        """A graph of its own for these inputs, and what it gives."""
        made = Graph(self.random.choice(("", "inner", "a b")))
        for value in inputs:
            made.block.add_parameter(value.type, self.random.choice(HINTS))
        inner = self.within(made.block, sees=False)
        inner.lines(3)
        results = inner.values(self.types(2))
        made.block.exit.set_inputs(results)
        return made, [each.type for each in results]


CONSTANTS: dict[Type, tuple[Any, ...]] = {
    IntType: INTS,
    FloatType: (*FLOATS, NAN),
    BoolType: (True, False),
    StrType: TEXTS,
    ComplexType: (1j, complex(-0.0, -0.0), complex(NAN, float("inf"))),
    NoneType_: (None,),
    DeviceType: (Device("cpu"), Device("cuda", 1)),
    TensorType: TENSORS,
    AnyType: (None, 1, ("a", (TENSORS[1], 2.0))),
    ScalarTypeType: (0, 6),
    COLOUR: tuple(Colour),
    TupleType(()): ((),),
    TupleType((IntType, TupleType((StrType, TensorType)))): (
        (1, ("x", TENSORS[0])),
        (-5, ("", TENSORS[1])),
    ),
    optional(IntType): (None, 3),
    optional(COLOUR): (None, Colour.BLUE),
    union((IntType, StrType)): (3, "three"),
}


def _constant(growth: Growth) -> None:
    growth.new(growth.random.choice([*CONSTANTS, FunctionType]))


def _if(growth: Growth) -> None:
    types = growth.types()
    node = growth.open("prim::If", [growth.value(BoolType)], types)
    for _ in range(2):
        inner = growth.within(node.add_block())
        inner.lines(3)
        inner.block.exit.set_inputs(inner.values(types))
    growth.visible += node.outputs


def _loop(growth: Growth) -> None:
    types = growth.types()
    carried = growth.values(types)
    inputs = [growth.value(IntType), growth.value(BoolType), *carried]
    node = growth.open("prim::Loop", inputs, types)
    block = node.add_block()
    for each in (IntType, *types):
        block.add_parameter(each, growth.random.choice(HINTS))
    inner = growth.within(block)
    inner.lines(3)
    block.exit.set_inputs(inner.values((BoolType, *types)))
    growth.visible += node.outputs


def _with(growth: Growth) -> None:
    types = growth.types()
    manager = growth.random.choice((GUARD, PyObjectType))
    node = growth.open("prim::With", [growth.value(manager)], types)
    block = node.add_block()
    block.add_parameter(growth.random.choice((IntType, optional(IntType))), "entered")
    inner = growth.within(block)
    inner.lines(3)
    block.exit.set_inputs(inner.values(types))
    growth.visible += node.outputs


def _closure(growth: Growth) -> tuple[Value, Type]:
    node = growth.open("prim::Closure", (), [FunctionType])
    inner = growth.within(node.add_block())
    inner.lines(2)
    results = inner.values(growth.types(2))
    inner.block.exit.set_inputs(results)
    growth.visible += node.outputs
    return node.output, _together([each.type for each in results])


def _together(types: list[Type]) -> Type:
    if len(types) == 1:
        return IntType if types[0] is ScalarTypeType else types[0]
    boxed = (IntType if each is ScalarTypeType else each for each in types)
    return TupleType(tuple(boxed)) if types else NoneType_


def _later(kind: str, wrapper: Any) -> Callable[[Growth], None]:
    def grow(growth: Growth) -> None:
        inputs = growth.values(growth.types())
        graph, results = growth.graph(inputs)
        growth.put(kind, inputs, [wrapper(_together(results))], graph=graph)

    return grow


def _from_closure(kind: str, wrapper: Any) -> Callable[[Growth], None]:
    def grow(growth: Growth) -> None:
        closure, result = _closure(growth)
        growth.put(kind, [closure], [wrapper(result)])

    return grow


def _fused(growth: Growth) -> None:
    inputs = growth.values([TensorType] * growth.random.randrange(1, 3))
    graph = Graph()
    values = [graph.block.add_parameter(TensorType, "x") for _ in inputs]
    for _ in range(growth.random.randrange(4)):
        node = Node("demo::neg", [growth.random.choice(values)], [TensorType])
        values.append(graph.block.append(node).output)
    graph.block.add_result(values[-1])
    growth.put("prim::FusionGroup", inputs, [TensorType], graph=graph)


def _put(
    kind: str, inputs: Any = (), outputs: Any = (), /, **attributes: Any
) -> Callable[[Growth], None]:
    def grow(growth: Growth) -> None:
        growth.put(kind, growth.values(inputs), outputs, **attributes)

    return grow


def _any_of(*ways: Callable[[Growth], None]) -> Callable[[Growth], None]:
    return lambda growth: growth.random.choice(ways)(growth)


def _unpack(growth: Growth) -> None:
    types = tuple(growth.types())
    whole = growth.value(TupleType(tuple(map(_boxed, types))))
    growth.put("prim::TupleUnpack", [whole], map(_boxed, types))


def _boxed(type_: Type) -> Type:
    return IntType if type_ is ScalarTypeType else type_


def _new(*types: Type) -> Callable[[Growth], None]:
    return lambda growth: (growth.new(growth.random.choice(types)), None)[1]


def _call(growth: Growth) -> None:
    name = growth.random.choice([*FUNCTIONS])
    schema = FUNCTIONS[name].schema
    function = growth.put(
        "prim::Constant", (), [FunctionType], function=FUNCTIONS[name]
    ).output
    inputs = growth.values([each.type for each in schema.arguments])
    results = [each.type for each in schema.returns]
    growth.put("prim::CallFunction", [function, *inputs], results)


def _cast(growth: Growth) -> None:
    pair = [optional(IntType), IntType]
    growth.random.shuffle(pair)
    growth.put("prim::unchecked_cast", [growth.value(pair[0])], [pair[1]])


_CREATED = (NODE, GUARD)
GROWN: dict[str, Callable[[Growth], Any]] = {
    "prim::Constant": _constant,
    "prim::If": _if,
    "prim::Loop": _loop,
    "prim::With": _with,
    "prim::TupleConstruct": _put("prim::TupleConstruct", POINT.elements, [POINT]),
    "prim::TupleUnpack": _unpack,
    "prim::TupleIndex": _put("prim::TupleIndex", [POINT], [FloatType], index=1),
    "prim::ListConstruct": _put(
        "prim::ListConstruct", [IntType, NoneType_], [ListType(optional(IntType))]
    ),
    "prim::ListUnpack": _put("prim::ListUnpack", [ListType(IntType)], [IntType] * 2),
    "prim::DictConstruct": _put(
        "prim::DictConstruct", [StrType, IntType] * 2, [DictType(StrType, IntType)]
    ),
    "prim::CreateObject": _any_of(
        *(_put("prim::CreateObject", (), [each]) for each in _CREATED)
    ),
    "prim::GetAttr": _any_of(
        _put("prim::GetAttr", [NODE], [optional(NODE)], name="parent"),
        _put("prim::GetAttr", [LAYER], [TensorType], name="weight"),
        _put("prim::GetAttr", [COLOUR], [IntType], name="value"),
    ),
    "prim::SetAttr": _any_of(
        _put("prim::SetAttr", [NODE, IntType], name="value"),
        _put("prim::SetAttr", [NODE, NODE], name="parent"),
    ),
    "prim::CallFunction": _call,
    "prim::CallMethod": _any_of(
        _put("prim::CallMethod", [LAYER, TensorType], [TensorType], name="forward"),
        _put("prim::CallMethod", [NODE, IntType, IntType], [NODE], name="find"),
    ),
    "prim::CallInterface": _put("prim::CallInterface", [DEEP], [IntType], name="depth"),
    "prim::PythonOp": _any_of(
        _put("prim::PythonOp", [AnyType], [IntType], name="len", object=len),
        _put("prim::PythonOp", name="f\n", object=operator.add),
    ),
    "prim::Closure": _closure,
    "prim::forkClosure": _from_closure("prim::forkClosure", FutureType),
    "prim::awaitableClosure": _from_closure("prim::awaitableClosure", AwaitType),
    "prim::fork": _later("prim::fork", FutureType),
    "prim::awaitable": _later("prim::awaitable", AwaitType),
    "prim::wait": _put("prim::wait", [FutureType(IntType)], [IntType]),
    "prim::awaitable_wait": _put(
        "prim::awaitable_wait", [AwaitType(TensorType)], [TensorType]
    ),
    "prim::awaitable_nowait": _put(
        "prim::awaitable_nowait", [IntType], [AwaitType(optional(IntType))]
    ),
    "prim::RaiseException": _put(
        "prim::RaiseException", [StrType], **{"class": "builtins.ValueError"}
    ),
    "prim::Print": _put("prim::Print", [StrType, TensorType]),
    "prim::warn": _put("prim::warn", [StrType]),
    "prim::Uninitialized": _put("prim::Uninitialized", (), [ListType(AnyType)]),
    "prim::unchecked_cast": _cast,
    "prim::isinstance": _put(
        "prim::isinstance",
        [AnyType],
        [BoolType],
        types=(IntType, ListType(StrType), COLOUR, POINT),
    ),
    "prim::FusionGroup": _fused,
    "demo::neg": _put("demo::neg", [TensorType], [TensorType]),
    "demo::add.Tensor": _put(
        "demo::add.Tensor", [TensorType, TensorType, IntType], [TensorType]
    ),
    "demo::add_": _put("demo::add_", [TensorType, TensorType], [TensorType]),
    "demo::get.t": _put(
        "demo::get.t", [ListType(optional(StrType)), IntType], [optional(StrType)]
    ),
    "demo::rand": _put("demo::rand", [ListType(IntType)], [TensorType]),
    "demo::show": _any_of(
        _put("demo::show", [StrType]), _put("demo::show", [StrType, NODE, AnyType])
    ),
    "demo::unbound": _put("demo::unbound", [optional(IntType)], [IntType]),
    "demo::scale": _any_of(
        *(
            _put("demo::scale", [TensorType, each], [TensorType])
            for each in (TensorType, IntType, FloatType, BoolType)
        )
    ),
    "demo::parts": _put("demo::parts", [TensorType], [TensorType, IntType]),
    "demo::unknown": _put("demo::unknown", [TensorType], [AnyType, AnyType]),
    "demo::pure": _put("demo::pure", [IntType, ScalarTypeType], [IntType]),
}
DEEP_KINDS = frozenset(
    {
        *("prim::If", "prim::Loop", "prim::With", "prim::Closure"),
        *("prim::forkClosure", "prim::awaitableClosure"),
        *("prim::fork", "prim::awaitable"),
    }
)


def random_graph(random: Random, most: int = 12) -> Graph:
    """A sound graph of at most so many lines, those within blocks not counted."""
    graph = Graph(random.choice(("", "f", "__torch__.net.forward", "<lambda>", "if")))
    for _ in range(random.randrange(4)):
        graph.block.add_parameter(random.choice(TYPES), random.choice(HINTS))
    growth = Growth(random, graph.block)
    growth.lines(most)
    graph.block.exit.set_inputs(growth.values(growth.types(2)))
    return graph


def structure(graph: Graph) -> Any:
    """What a graph is, as nested tuples; values are numbered as they are defined."""
    numbers: dict[int, int] = {}

    def block_of(block: Block) -> Any:
        for value in block.parameters:
            numbers[id(value)] = len(numbers)
        parameters = [str(each.type) for each in block.parameters]
        nodes = [node_of(node) for node in block]
        return parameters, nodes, [numbers[id(each)] for each in block.results]

    def node_of(node: Node) -> Any:
        inputs = [numbers[id(each)] for each in node.inputs]
        attributes = {
            name: form_of(value) for name, value in sorted(node.attributes.items())
        }
        blocks = [block_of(each) for each in node.blocks]
        for value in node.outputs:
            numbers[id(value)] = len(numbers)
        outputs = [str(each.type) for each in node.outputs]
        return node.kind, inputs, outputs, attributes, blocks

    def form_of(value: Any) -> Any:
        if isinstance(value, Graph):
            return structure(value)
        if value.__class__ is tuple:
            return tuple(map(form_of, value))
        if value.__class__ in (int, float, complex, bool, str):
            return value.__class__, repr(value)
        return id(value)

    return graph.name, block_of(graph.block)
