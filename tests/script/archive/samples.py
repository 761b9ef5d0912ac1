"""Programs to save: functions read from the texts of graphs, and what they refer to."""

import enum
from io import BytesIO
from typing import Any, NamedTuple

from everyorder import runtime
from everyorder.runtime.errors.source import Source
from everyorder.runtime.nn import Parameter
from everyorder.runtime.schema.declared import (
    DeclaredType,
    EnumType,
    InterfaceType,
    ModuleType,
    Namespace,
    ScriptClassType,
)
from everyorder.runtime.schema.parser import parse_schema, parse_type
from everyorder.runtime.schema.schema import Schema
from everyorder.runtime.schema.signature import Argument, OperatorName
from everyorder.runtime.schema.subtyping import optional
from everyorder.runtime.schema.types import IntType, StrType, TupleType, Type
from everyorder.runtime.script.archive import load, save
from everyorder.runtime.script.ir import Graph, check, parse_graph
from everyorder.runtime.script.ir.program import Function, declare_objects
from everyorder.runtime.script.modules import ScriptModule
from everyorder.runtime.script.types.annotations import TypeScope
from everyorder.runtime.script.types.python_classes import PythonClasses

NAMES = Namespace()


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Node:
    """A class of a program, of which a script knows `value` and `parent`."""

    value: int
    parent: Any


class Point(NamedTuple):
    x: int
    y: float


def _colour() -> EnumType:
    declared = NAMES.declare(EnumType, "__torch__.paint.Colour", Colour)
    declared.declaration.add_attribute("name", StrType)
    declared.declaration.add_attribute("value", IntType)
    for each in Colour:
        declared.declaration.add_constant(each.name, each.value)
    declared.declaration.seal()
    declare_objects(Colour, declared)
    return declared


COLOUR = _colour()
POINT = PythonClasses(NAMES)(Point, TypeScope())


def read(text: str, *objects: Any, **functions: Function) -> Graph:
    """The graph of a text, which keeps the laws."""
    named = {each.qualname: each for each in functions.values()}
    source = Source("def f(x):\n    y = x\n    return y\n", "demo.py", 7)
    sources = {"demo.py": source}
    graph = parse_graph(
        text, namespace=NAMES, objects=objects, functions=named, sources=sources
    )
    check(graph)
    return graph


def function(
    name: str, schema: str, text: str, *objects: Any, **functions: Function
) -> Function:
    """The function `__torch__.demo.NAME`."""
    parsed = parse_schema(schema, namespace=NAMES)
    if len(parsed.returns) > 1:
        # Functions of programs give one value.
        elements = tuple(each.type for each in parsed.returns)
        parsed = parsed.clone_with_returns((Argument("", TupleType(elements)),))
    graph = read(text, *objects, **functions)
    return Function(f"__torch__.demo.{name}", parsed, graph)


def of_type(text: str) -> Type:
    """The type that a text means among those here."""
    return parse_type(text, namespace=NAMES)


def method(owner: DeclaredType, name: str, schema: str, text: str | None) -> None:
    """Give a type a method; without a text, one that is only declared."""
    parsed = parse_schema(schema, namespace=NAMES)
    arguments = (Argument("self", owner), *parsed.arguments)
    whole = Schema(OperatorName(name), arguments, parsed.returns)
    declaration = owner.declaration
    declaration.add_method(name, whole)
    if text is not None:
        qualname = f"{declaration.qualname}.{name}"
        declaration.functions[name] = Function(qualname, whole, read(text))


def _node() -> ScriptClassType:
    declared = NAMES.declare(ScriptClassType, "__torch__.tree.Node", Node)
    declared.declaration.add_attribute("value", IntType)
    declared.declaration.add_attribute("parent", optional(declared))
    method(
        declared,
        "more",
        "more(int by=1) -> int",
        """graph(%self.1 : __torch__.tree.Node, %by.1 : int):
  %v.1 : int = prim::GetAttr[name="value"](%self.1)
  %s.1 : int = script::add.int(%v.1, %by.1)
  return (%s.1)
""",
    )
    declare_objects(Node, declared)
    return declared


NODE = _node()


def _shown() -> InterfaceType:
    declared = NAMES.declare(InterfaceType, "__torch__.tree.Shown")
    method(declared, "show", "show(int by) -> str", None)
    return declared


SHOWN = _shown()


def node(value: int, parent: Any = None) -> Node:
    """An object of the class."""
    made = Node()
    made.value, made.parent = value, parent
    return made


LOOP = """graph(%x.1 : Tensor, %n.1 : int):
  %one : int = prim::Constant[value=1]()
  %true : bool = prim::Constant[value=True]()
  %c : Tensor = prim::Constant[value=object(0)]()
  %y.1 : Tensor = prim::Loop(%n.1, %true, %x.1)  # demo.py:8:5
    block0(%i.1 : int, %y.2 : Tensor):
      %z.1 : Tensor = core::add(%y.2, %c, %one)  # demo.py:8:9
      -> (%true, %z.1)
  return (%y.1)
"""

LATER = """graph(%x.1 : Tensor):
  %n : int = prim::Constant[value=2]()
  %fut.1 : Future(Tensor) = prim::fork_0(%x.1, %n)
  %aw.1 : Await((Tensor, Tensor[])) = prim::awaitable_0(%x.1)
  %a : Tensor = prim::wait(%fut.1)
  %b : (Tensor, Tensor[]) = prim::awaitable_wait(%aw.1)
  %c : Tensor, %l : Tensor[] = prim::TupleUnpack(%b)
  %one : int = prim::Constant[value=1]()
  %r : Tensor = core::add(%a, %c, %one)
  return (%r)
with prim::fork_0 = graph(%x.1 : Tensor, %n : int):
  %g : Function = prim::Constant[function="__torch__.demo.loop"]()
  %r : Tensor = prim::CallFunction(%g, %x.1, %n)
  return (%r)
with prim::awaitable_0 = graph(%x.1 : Tensor):
  %l : Tensor[] = prim::ListConstruct(%x.1, %x.1)
  %t : (Tensor, Tensor[]) = prim::TupleConstruct(%x.1, %l)
  return (%t)
"""


def loop() -> Function:
    """Adds a constant to a tensor, again and again."""
    constant = runtime.tensor([1.0, 2.0])
    return function("loop", "loop(Tensor x, int n=3) -> Tensor", LOOP, constant)


def later() -> Function:
    """A fork of `loop`, and an await."""
    return function("later", "later(Tensor x) -> Tensor", LATER, loop=loop())


def constant(value: Any, type_: str, name: str = "constant") -> Function:
    """A function that gives a constant."""
    text = (
        f"graph():\n  %c : {type_} = prim::Constant[value=object(0)]()\n  return (%c)\n"
    )
    return function(name, f"{name}() -> {type_}", text, value)


def saved(value: Any, **extra: Any) -> bytes:
    """The bytes of an archive."""
    buffer = BytesIO()
    save(value, buffer, _extra_files=extra)
    return buffer.getvalue()


def loaded(data: bytes) -> Any:
    """What is in an archive."""
    return load(BytesIO(data))


def _layer() -> ModuleType:
    layer = NAMES.declare(ModuleType, "__torch__.net.Layer")
    for name, text in (
        ("weight", "Tensor"),
        ("count", "Tensor"),
        ("names", "str[]"),
        ("training", "bool"),
    ):
        layer.declaration.add_attribute(name, of_type(text))
    layer.declaration.add_constant("scale", 3)
    method(
        layer,
        "forward",
        "forward(Tensor x) -> Tensor",
        """graph(%self : __torch__.net.Layer, %x.1 : Tensor):
  %w.1 : Tensor = prim::GetAttr[name="weight"](%self)
  %one : int = prim::Constant[value=1]()
  %r : Tensor = core::add(%x.1, %w.1, %one)
  return (%r)
""",
    )
    return layer


def _outer(layer: ModuleType) -> ModuleType:
    outer = NAMES.declare(ModuleType, "__torch__.net.Outer")
    outer.declaration.add_attribute("0", layer)
    outer.declaration.add_attribute("training", of_type("bool"))
    text = """graph(%self : NAME, %x.1 : Tensor):
  %l : __torch__.net.Layer = prim::GetAttr[name="0"](%self)
  %r : Tensor = prim::CallMethod[name="forward"](%l, %x.1)
  return (%r)
"""
    name = outer.declaration.qualname
    method(outer, "forward", "forward(Tensor x) -> Tensor", text.replace("NAME", name))
    return outer


LAYER = _layer()
OUTER = _outer(LAYER)


def network() -> ScriptModule:
    """A module in a module."""
    values = {
        "weight": Parameter(runtime.tensor([1.0, 2.0])),
        "count": runtime.tensor([0]),
        "names": ["a", "b"],
        "training": False,
    }
    roles = {"weight": "parameter", "count": "buffer"}
    inner = ScriptModule(LAYER, values, roles)
    return ScriptModule(OUTER, {"0": inner, "training": True})
