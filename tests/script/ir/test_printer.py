"""How graphs, nodes and constants are written."""

from enum import Enum
from typing import Any, NamedTuple

import pytest

from everyorder.runtime.errors.source import Source
from everyorder.runtime.schema.declared import EnumType, Namespace
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.subtyping import optional, union
from everyorder.runtime.schema.types import (
    AnyType,
    IntType,
    TensorType,
    TupleType,
    Type,
)
from everyorder.runtime.script.ir import (
    Graph,
    Node,
    Place,
    graph_text,
    parse_graph,
    printed,
)
from tests.schema.programs import COLOUR, PROGRAM, Colour
from tests.script.ir.graphs import FUNCTIONS, TENSORS

SOURCE = Source("def f(x, c):\n    if c:\n        x = -x\n    return x\n", "f.py", 10)

WHOLE = """graph __torch__.f(%x.1 : Tensor, %c.1 : bool):
  %y.1 : Tensor, %3 : int = prim::If(%c.1)  # f.py:11:5
    block0():
      %x.2 : Tensor = demo::neg(%x.1)  # f.py:12:9
      %5 : int = prim::Constant[value=1]()
      -> (%x.2, %5)
    block1():
      %6 : int = prim::Constant[value=2]()
      -> (%x.1, %6)
  %f.1 : Future(Tensor) = prim::fork_0(%y.1)
  %f.2 : Future(int) = prim::fork_1(%3)
  %9 : Await(int) = prim::awaitable_0(%3)
  %10 : Tensor = prim::wait(%f.1)
  prim::Print(%10, %3)
  return (%10, %f.2)
with prim::fork_0 = graph(%x.1 : Tensor):
  %1 : Future(NoneType) = prim::fork_2()
  return (%x.1)
with prim::fork_1 = graph "a name"(%0 : int):
  return (%0)
with prim::awaitable_0 = graph(%x.1 : int):
  return (%x.1)
with prim::fork_2 = graph():
  return ()
"""


@pytest.mark.spec("script 6.5", "the text")
def test_a_whole_graph() -> None:
    graph = parse_graph(WHOLE, sources={"f.py": SOURCE})
    assert graph_text(graph) == WHOLE
    branch = next(iter(graph.block))
    assert branch.place == Place(SOURCE, (17, 17))
    plain = graph_text(graph, places=False)
    assert plain == WHOLE.replace("  # f.py:11:5", "").replace("  # f.py:12:9", "")


def test_lines_know_their_nodes_and_values_their_names() -> None:
    graph = parse_graph(WHOLE)
    drawn = printed(graph)
    branch, fork, *_ = graph.block
    assert drawn.text == WHOLE
    assert len(drawn.nodes) == len(drawn.lines)
    assert drawn.nodes[0] is graph.block.entry
    assert drawn.nodes[1] is branch
    assert drawn.nodes[2] is branch.blocks[0].entry
    assert drawn.nodes[5] is branch.blocks[0].exit
    assert drawn.names[branch.outputs[1]] == "%3"
    assert drawn.names[fork.output] == "%f.1"


def test_an_empty_graph() -> None:
    assert graph_text(Graph()) == "graph():\n  return ()\n"


def test_names_are_written_bare_where_they_can_be() -> None:
    names = ("f", "a.b_1.c", "if.x", "<lambda>", "a.", "1", "a b", 'q"', "é")
    texts = [graph_text(Graph(name)).partition("(")[0] for name in names]
    assert texts == [
        *("graph f", "graph a.b_1.c", "graph if.x", 'graph "<lambda>"', 'graph "a."'),
        *('graph "1"', 'graph "a b"', 'graph "q\\""', 'graph "é"'),
    ]
    for name in names:
        assert parse_graph(graph_text(Graph(name))).name == name


def test_hints_become_names() -> None:
    graph = Graph()
    for hint in ("", "x", "x", "x.1", "7", "", "é b", "__b", "..a..b.", ".", "x"):
        graph.block.add_parameter(IntType, hint)
    names = [*printed(graph).names.values()]
    assert names == [
        *("%0", "%x.1", "%x.2", "%x.1.1", "%7.1", "%5"),
        *("%__b.1", "%__b.2", "%a.b.1", "%9", "%x.3"),
    ]
    assert graph_text(parse_graph(graph_text(graph))) == graph_text(graph)


class Corner(Enum):
    FIRST = 1
    SECOND = 2


class Point(NamedTuple):
    x: int
    y: int


NAN = float("nan")
BIG = 2**63

CONSTANTS: list[tuple[Any, Type, str]] = [
    (None, IntType, "None"),
    (True, IntType, "True"),
    (-(2**63), IntType, "-9223372036854775808"),
    (BIG, IntType, "object(0)"),
    (1.0, IntType, "1.0"),
    (-0.0, IntType, "-0.0"),
    (1e300, IntType, "1e+300"),
    (5e-324, IntType, "5e-324"),
    (NAN, IntType, "nan"),
    (float("-inf"), IntType, "-inf"),
    (complex(-0.0, NAN), IntType, "complex(-0.0, nan)"),
    ("", IntType, '""'),
    ('a"\\\n\x00é', IntType, '"a\\"\\\\\\n\\000é"'),
    (Device("cuda", 1), IntType, 'device("cuda:1")'),
    ((), IntType, "()"),
    ((1,), IntType, "(1,)"),
    ((1, ("a", None)), IntType, '(1, ("a", None))'),
    (Point(1, 2), IntType, "object(0)"),
    (TENSORS[0], TensorType, "object(0)"),
    (
        (TENSORS[0], TENSORS[1], TENSORS[0]),
        AnyType,
        "(object(0), object(1), object(0))",
    ),
    (Colour.RED, COLOUR, "__torch__.paint.Colour.RED"),
    (Colour.RED, optional(COLOUR), "__torch__.paint.Colour.RED"),
    (Colour.RED, union((IntType, COLOUR)), "__torch__.paint.Colour.RED"),
    (
        (1, Colour.BLUE),
        TupleType((IntType, COLOUR)),
        "(1, __torch__.paint.Colour.BLUE)",
    ),
    # An enum that the type does not name.
    (Corner.FIRST, AnyType, "object(0)"),
    (Colour.RED, AnyType, "object(0)"),
]


@pytest.mark.parametrize(("value", "type_", "text"), CONSTANTS)
def test_constants(value: Any, type_: Type, text: str) -> None:
    graph = Graph()
    graph.block.append(Node("prim::Constant", (), [type_], {"value": value}))
    drawn = printed(graph)
    assert drawn.lines[1] == f"  %0 : {type_} = prim::Constant[value={text}]()"
    again = parse_graph(drawn.text, namespace=PROGRAM, objects=drawn.objects)
    (node,) = again.block
    read = node.attributes["value"]
    assert read.__class__ is value.__class__
    assert repr(read) == repr(value)
    assert text == "object(0)" or isinstance(value, tuple) or not drawn.objects


def test_a_tuple_that_is_too_deep_is_an_object() -> None:
    value: Any = ()
    for _ in range(5000):
        value = (value,)
    graph = Graph()
    graph.block.append(Node("prim::Constant", (), [AnyType], {"value": value}))
    assert printed(graph).lines[1].count("object(0)") == 1


def test_an_enum_whose_class_is_gone_is_no_constant() -> None:
    namespace = Namespace()
    gone = namespace.declare(EnumType, "__torch__.Gone", None)
    graph = Graph()
    graph.block.append(Node("prim::Constant", (), [gone], {"value": Colour.RED}))
    assert "value=object(0)" in printed(graph).text


def test_functions_go_by_name_but_two_of_one_name_do_not() -> None:
    class Other:
        qualname = "__torch__.twice"

    graph = Graph()
    twice = FUNCTIONS["__torch__.twice"]
    for each in (twice, Other(), twice):
        graph.block.append(Node("prim::Constant", (), [], {"function": each}))
    drawn = printed(graph)
    assert drawn.lines[1:4] == (
        '  prim::Constant[function="__torch__.twice"]()',
        "  prim::Constant[function=object(0)]()",
        '  prim::Constant[function="__torch__.twice"]()',
    )
    assert drawn.functions == {"__torch__.twice": twice}
    again = parse_graph(drawn.text, objects=drawn.objects, functions=drawn.functions)
    assert [node.attributes["function"] for node in again.block] == [
        node.attributes["function"] for node in graph.block
    ]


def test_attributes_stand_in_the_order_of_the_table_and_strangers_behind() -> None:
    graph = Graph()
    attributes = {"zone": 1, "object": len, "area": "x", "name": "f"}
    graph.block.append(Node("prim::PythonOp", (), (), attributes))
    assert printed(graph).lines[1] == (
        '  prim::PythonOp[name="f", object=object(0), area=object(1), zone=object(2)]()'
    )


def test_broken_attributes_are_written_all_the_same() -> None:
    graph = Graph()
    for kind, name in (
        *(("TupleIndex", "index"), ("GetAttr", "name"), ("isinstance", "types")),
        *(("fork", "graph"), ("Constant", "function")),
    ):
        graph.block.append(Node(f"prim::{kind}", (), (), {name: [None]}))
    lines = printed(graph).lines
    assert [line.partition("=")[2] for line in lines[1:-1]] == [
        f"object({at})]()" for at in range(5)
    ]


def test_a_place_is_one_line_whatever_the_file_is_called() -> None:
    graph = Graph()
    place = Place(Source("ab", " odd\nname # 1 "), (1, 2))
    graph.block.append(Node("prim::Print", place=place))
    text = graph_text(graph)
    assert text.splitlines()[1] == "  prim::Print()  # odd name # 1:1:2"
    assert graph_text(parse_graph(text)) == text


def test_a_broken_ring_ends() -> None:
    graph = Graph()
    first = graph.block.append(Node("demo::a"))
    graph.block.append(Node("demo::b")).next = first
    assert [line.strip() for line in printed(graph).lines] == [
        *("graph():", "demo::a()", "demo::b()", "return ()")
    ]
