"""Every kind by hand: lines that are sound, and lines with the fault that is told."""

import pytest

from everyorder.runtime.errors.script import BrokenGraph
from everyorder.runtime.schema.types import AnyType
from everyorder.runtime.script.ir import KINDS, Graph, Node, check, parse_graph, printed
from everyorder.runtime.script.ir.type_rules import DEEPEST_CONSTANT
from tests.schema.programs import PROGRAM, Colour
from tests.script.ir.graphs import FUNCTIONS, TENSORS, rows

# What the lines below may use.
GIVEN = {
    "i": "int",
    "f": "float",
    "b": "bool",
    "s": "str",
    "t": "Tensor",
    "n": "NoneType",
    "any": "Any",
    "code": "ScalarType",
    "oi": "int?",
    "li": "int[]",
    "lt": "Tensor[]",
    "tup": "(int, str)",
    "point": "NamedTuple(__torch__.geo.Point, x: int, y: float)",
    "node": "__torch__.tree.Node",
    "deep": "__torch__.tree.Deep",
    "layer": "__torch__.net.Layer",
    "colour": "__torch__.paint.Colour",
    "guard": "__torch__.guards.Guard",
    "object": "PyObject",
    "fut": "Future(int)",
    "aw": "Await(Tensor)",
    "function": "Function",
}
OBJECTS = (TENSORS[0], len, (1, 2), Colour.RED)


def graph_of(lines: str) -> Graph:
    parameters = ", ".join(f"%{name} : {type_}" for name, type_ in GIVEN.items())
    head, _, tail = lines.partition("with ")
    text = f"graph({parameters}):\n{head.rstrip()}\n  return ()\n"
    text += f"with {tail}" if tail else ""
    return parse_graph(text, namespace=PROGRAM, objects=OBJECTS, functions=FUNCTIONS)


def told(graph: Graph) -> list[str]:
    """The faults of a graph, each with its law."""
    try:
        check(graph, rows=rows)
    except BrokenGraph as broken:
        return [f"{each.law}: {each.fault}" for each in broken.faults]
    return []


# Kind -> lines, all of them sound.
SOUND: dict[str, str] = {
    "prim::Constant": """
        %0 : NoneType = prim::Constant[value=None]()
        %1 : int? = prim::Constant[value=None]()
        %2 : int? = prim::Constant[value=3]()
        %3 : ScalarType = prim::Constant[value=6]()
        %4 : Scalar = prim::Constant[value=1.5]()
        %5 : float = prim::Constant[value=-inf]()
        %6 : complex = prim::Constant[value=complex(-0.0, nan)]()
        %7 : str = prim::Constant[value="a\\"b"]()
        %8 : Device = prim::Constant[value=device("cuda:1")]()
        %9 : Tensor = prim::Constant[value=object(0)]()
        %10 : (int, (str, Tensor)) = prim::Constant[value=(1, ("a", object(0)))]()
        %11 : __torch__.paint.Colour = prim::Constant[
            value=__torch__.paint.Colour.RED]()
        %12 : Union(int, str) = prim::Constant[value="a"]()
        %13 : Any = prim::Constant[value=(1, ())]()
        %14 : Function = prim::Constant[function="__torch__.twice"]()
        %15 : bool = prim::Constant[value=True]()
    """,
    "prim::If": """
        %0 : int? = prim::If(%b)
          block0():
            -> (%i)
          block1():
            %1 : NoneType = prim::Constant[value=None]()
            -> (%1)
    """,
    "prim::Loop": """
        %0 : int?, %1 : Tensor = prim::Loop(%i, %b, %n, %t)
          block0(%2 : int, %3 : int?, %4 : Tensor):
            -> (%b, %2, %4)
    """,
    "prim::With": """
        %0 : int? = prim::With(%guard)
          block0(%1 : int?):
            -> (%i)
        prim::With(%object)
          block0(%2 : str):
            -> ()
    """,
    "prim::TupleConstruct": """
        %0 : (int, str?) = prim::TupleConstruct(%i, %s)
        %1 : NamedTuple(__torch__.geo.Point, x: int, y: float) = prim::TupleConstruct(
            %i, %f)
    """,
    "prim::TupleUnpack": """
        %0 : int, %1 : str = prim::TupleUnpack(%tup)
        %2 : int, %3 : float = prim::TupleUnpack(%point)
    """,
    "prim::TupleIndex": "%0 : str = prim::TupleIndex[index=1](%tup)",
    "prim::ListConstruct": """
        %0 : int[] = prim::ListConstruct()
        %1 : Tensor?[] = prim::ListConstruct(%t, %n)
    """,
    "prim::ListUnpack": "%0 : int, %1 : int = prim::ListUnpack(%li)",
    "prim::DictConstruct": """
        %0 : Dict(str, int?) = prim::DictConstruct(%s, %i, %s, %n)
    """,
    "prim::CreateObject": "%0 : __torch__.tree.Node = prim::CreateObject()",
    "prim::GetAttr": """
        %0 : __torch__.tree.Node? = prim::GetAttr[name="parent"](%node)
        %1 : Tensor = prim::GetAttr[name="weight"](%layer)
        %2 : str = prim::GetAttr[name="name"](%colour)
    """,
    "prim::SetAttr": 'prim::SetAttr[name="parent"](%node, %n)',
    "prim::CallFunction": """
        %0 : Function = prim::Constant[function="__torch__.pair"]()
        %1 : Tensor, %2 : str = prim::CallFunction(%0, %t, %s)
    """,
    "prim::CallMethod": """
        %0 : Tensor = prim::CallMethod[name="forward"](%layer, %t)
        %1 : __torch__.tree.Node = prim::CallMethod[name="find"](%node, %i, %i)
    """,
    "prim::CallInterface": '%0 : int = prim::CallInterface[name="depth"](%deep)',
    "prim::PythonOp": """
        %0 : int = prim::PythonOp[name="len", object=object(1)](%li)
    """,
    "prim::Closure": """
        %0 : Function = prim::Closure()
          block0():
            -> (%i, %s)
    """,
    "prim::forkClosure": """
        %0 : Function = prim::Closure()
          block0():
            -> (%i, %s)
        %1 : Future((int, str)) = prim::forkClosure(%0)
    """,
    "prim::awaitableClosure": """
        %0 : Function = prim::Closure()
          block0():
            -> ()
        %1 : Await(NoneType) = prim::awaitableClosure(%0)
    """,
    "prim::fork": """
        %0 : Future(int) = prim::fork_0(%i, %n)
        with prim::fork_0 = graph(%a : int, %b : int?):
          return (%a)
    """,
    "prim::awaitable": """
        %0 : Await(NoneType) = prim::awaitable_0(%i)
        with prim::awaitable_0 = graph(%a : int):
          return ()
    """,
    "prim::wait": "%0 : int = prim::wait(%fut)",
    "prim::awaitable_wait": "%0 : Tensor = prim::awaitable_wait(%aw)",
    "prim::awaitable_nowait": "%0 : Await(int?) = prim::awaitable_nowait(%i)",
    "prim::RaiseException": 'prim::RaiseException[class="builtins.ValueError"](%s)',
    "prim::Print": "prim::Print(%s, %t)",
    "prim::warn": "prim::warn(%s)",
    "prim::Uninitialized": "%0 : Tensor[] = prim::Uninitialized()",
    "prim::unchecked_cast": """
        %0 : int = prim::unchecked_cast(%oi)
        %1 : int? = prim::unchecked_cast(%i)
    """,
    "prim::isinstance": "%0 : bool = prim::isinstance[types=[int, str[]]](%any)",
    "prim::FusionGroup": """
        %0 : Tensor = prim::FusionGroup_0(%t, %t)
        with prim::FusionGroup_0 = graph(%a : Tensor, %b : Tensor):
          %c : Tensor = demo::neg(%a)
          return (%c)
    """,
    "operators": """
        %0 : Tensor = demo::neg(%t)
        %1 : int = demo::get.t(%li, %i)
        demo::show(%s, %node, %any)
        %2 : Any, %3 : Any = demo::unknown(%t)
        %4 : int = demo::pure(%i, %code)
    """,
}

# Lines, and the fault in them.
UNSOUND: tuple[tuple[str, str], ...] = (
    (
        "%0 : int = prim::Constant()",
        "a constant has a `value` or a `function`",
    ),
    (
        "%0 : int = prim::Constant[value=1.0]()",
        "the value is not a constant of type int",
    ),
    (
        "%0 : float = prim::Constant[value=1]()",
        "the value is not a constant of type float",
    ),
    (
        "%0 : int = prim::Constant[value=True]()",
        "the value is not a constant of type int",
    ),
    (
        "%0 : (int, int) = prim::Constant[value=(1, 2, 3)]()",
        "the value is not a constant of type (int, int)",
    ),
    (
        "%0 : int[] = prim::Constant[value=(1, 2)]()",
        "the value is not a constant of type int[]",
    ),
    (
        '%0 : Function = prim::Constant[value=1, function="<lambda>"]()',
        "a constant has a `value` or a `function`",
    ),
    (
        '%0 : Any = prim::Constant[function="<lambda>"]()',
        "is of type Function, and says Any",
    ),
    (
        "%0 : __torch__.paint.Colour = prim::Constant[value=1]()",
        "the value is not a constant of type __torch__.paint.Colour",
    ),
    (
        "prim::If(%i)\n block0():\n  -> ()\n block1():\n  -> ()",
        "the condition is of type int",
    ),
    (
        "prim::If(%b)\n block0(%0 : int):\n  -> ()\n block1():\n  -> ()",
        "block 0 of a branch has no parameters",
    ),
    (
        "%0 : int = prim::If(%b)\n block0():\n  -> (%i)\n block1():\n  -> (%s)",
        "block 1: result 0, str, does not fit output 0, int",
    ),
    (
        "%0 : int = prim::If(%b)\n block0():\n  -> (%i)\n block1():\n  -> ()",
        "block 1: there are 0 results for 1 outputs",
    ),
    (
        "prim::Loop(%f, %b)\n block0(%0 : int):\n  -> (%b)",
        "the number of trips is of type float",
    ),
    (
        "prim::Loop(%i, %i)\n block0(%0 : int):\n  -> (%b)",
        "the condition is of type int",
    ),
    (
        "prim::Loop(%i, %b)\n block0():\n  -> (%b)",
        "the first parameter of the block is the index, an int",
    ),
    (
        "prim::Loop(%i, %b)\n block0(%0 : int):\n  -> ()",
        "the first result of the block is the condition",
    ),
    (
        "prim::Loop(%i, %b)\n block0(%0 : int):\n  -> (%i)",
        "the condition is of type int",
    ),
    (
        "%0 : int = prim::Loop(%i, %b, %s)\n"
        " block0(%1 : int, %2 : int):\n  -> (%b, %2)",
        "carried value 0, str, does not fit parameter 0, int",
    ),
    (
        "%0 : int = prim::Loop(%i, %b, %i)\n"
        " block0(%1 : int, %2 : int):\n  -> (%b, %s)",
        "carried result 0, str, does not fit parameter 0, int",
    ),
    (
        "%0 : int = prim::Loop(%i, %b, %i)\n block0(%1 : int, %2 : int):\n  -> (%b)",
        "there are 0 carried results for 1 parameters",
    ),
    (
        "%0 : Any = prim::Loop(%i, %b, %i)\n block0(%1 : int, %2 : int):\n"
        "  -> (%b, %2)",
        "is of type int, and says Any",
    ),
    (
        "prim::With(%node)\n block0(%0 : int):\n  -> ()",
        "__torch__.tree.Node is not a context manager: it has no `__enter__`",
    ),
    (
        "prim::With(%guard)\n block0():\n  -> ()",
        "the block has one parameter, what was entered",
    ),
    (
        "prim::With(%guard)\n block0(%0 : str):\n  -> ()",
        "int is entered, the parameter is of type str",
    ),
    (
        "%0 : int = prim::With(%guard)\n block0(%1 : int):\n  -> (%s)",
        "result 0, str, does not fit output 0, int",
    ),
    (
        "%0 : int = prim::TupleConstruct(%i)",
        "a tuple is made, and the output is of type int",
    ),
    (
        "%0 : (int, str) = prim::TupleConstruct(%i)",
        "there are 1 inputs for 2 elements",
    ),
    (
        "%0 : (int, str) = prim::TupleConstruct(%i, %i)",
        "input 1, int, does not fit element 1, str",
    ),
    ("%0 : int = prim::TupleUnpack(%li)", "int[] is not a tuple"),
    ("%0 : int = prim::TupleUnpack(%tup)", "it gives 2 values for 1 outputs"),
    ("%0 : int = prim::TupleIndex[index=0](%li)", "int[] is not a tuple"),
    ("%0 : int = prim::TupleIndex[index=2](%tup)", "(int, str) has no element 2"),
    ("%0 : int = prim::TupleIndex[index=1](%tup)", "is of type str, and says int"),
    (
        "%0 : int = prim::ListConstruct(%i)",
        "a list is made, and the output is of type int",
    ),
    (
        "%0 : int[] = prim::ListConstruct(%i, %f)",
        "input 1, float, does not fit element 1, int",
    ),
    ("%0 : int = prim::ListUnpack(%tup)", "(int, str) is not a list"),
    ("%0 : str = prim::ListUnpack(%li)", "is of type int, and says str"),
    (
        "%0 : int = prim::DictConstruct(%i, %i)",
        "a dictionary is made, and the output is of type int",
    ),
    ("%0 : Dict(str, int) = prim::DictConstruct(%s)", "the last key has no value"),
    (
        "%0 : Dict(str, int) = prim::DictConstruct(%i, %i)",
        "input 0, int, does not fit element 0, str",
    ),
    (
        "%0 : __torch__.tree.Deep = prim::CreateObject()",
        "__torch__.tree.Deep is not a class of a program",
    ),
    (
        '%0 : int = prim::GetAttr[name="no"](%node)',
        "__torch__.tree.Node has no attribute `no`",
    ),
    ('%0 : int = prim::GetAttr[name="x"](%point)', "has no attribute `x`"),
    (
        'prim::SetAttr[name="no"](%node, %i)',
        "__torch__.tree.Node has no attribute `no`",
    ),
    (
        'prim::SetAttr[name="value"](%node, %s)',
        "attribute `value` is of type int, the value of type str",
    ),
    (
        'prim::SetAttr[name="value"](%colour, %i)',
        "attributes of __torch__.paint.Colour, an enum, cannot be set",
    ),
    (
        "%0 : int = prim::CallFunction(%function, %i)",
        "the function that is called is not a constant",
    ),
    (
        '%0 : Function = prim::Constant[function="__torch__.twice"]()\n'
        "%1 : int = prim::CallFunction(%0, %s)",
        "argument `int x`: str is no int",
    ),
    (
        '%0 : Function = prim::Constant[function="__torch__.twice"]()\n'
        "%1 : int = prim::CallFunction(%0)",
        "0 arguments are given to twice(int x) -> int",
    ),
    (
        '%0 : int = prim::CallMethod[name="depth"](%deep)',
        "a method of __torch__.tree.Deep is not called in this way",
    ),
    (
        '%0 : int = prim::CallMethod[name="no"](%node)',
        "__torch__.tree.Node has no method `no`",
    ),
    (
        '%0 : int = prim::CallInterface[name="depth"](%node)',
        "a method of __torch__.tree.Node is not called in this way",
    ),
    (
        "%0 : Function = prim::Closure()\n block0(%1 : int):\n  -> ()",
        "the block of a closure has no parameters",
    ),
    (
        "%0 : Future(int) = prim::forkClosure(%function)",
        "what is run later is the output of a prim::Closure",
    ),
    (
        "%0 : Function = prim::Closure()\n block0():\n  -> (%i)\n"
        "%1 : Await(int) = prim::forkClosure(%0)",
        "is of type Future(int), and says Await(int)",
    ),
    (
        "%0 : Future(int) = prim::fork_0(%s)\n"
        "with prim::fork_0 = graph(%a : int):\n return (%a)",
        "input 0, str, does not fit parameter 0, int",
    ),
    (
        "%0 : Future(str) = prim::fork_0(%i)\n"
        "with prim::fork_0 = graph(%a : int):\n return (%a)",
        "is of type Future(int), and says Future(str)",
    ),
    (
        "%0 : Await(int) = prim::awaitable_0()\n"
        "with prim::awaitable_0 = graph(%a : int):\n return (%a)",
        "there are 0 inputs for 1 parameters",
    ),
    ("%0 : int = prim::wait(%aw)", "Await(Tensor) is not waited for in this way"),
    ("%0 : int = prim::awaitable_wait(%i)", "int is not waited for in this way"),
    (
        "%0 : Await(str) = prim::awaitable_nowait(%i)",
        "an await of int is made, and the output is of type Await(str)",
    ),
    (
        'prim::RaiseException[class="builtins.ValueError"](%i)',
        "the message is of type int",
    ),
    ("%0 : str = prim::unchecked_cast(%oi)", "no int? is a str"),
    ("%0 : int = prim::isinstance[types=[]](%i)", "is of type bool, and says int"),
    (
        "%0 : Tensor = prim::FusionGroup_0(%s)\n"
        "with prim::FusionGroup_0 = graph(%a : Tensor):\n return (%a)",
        "input 0, str, does not fit parameter 0, Tensor",
    ),
    ("%0 : Tensor = demo::neg(%i)", "argument `Tensor self`: int is no Tensor"),
    ("%0 : str = demo::get.t(%li, %i)", "is of type int, and says str"),
    (
        "%0 : Any = demo::unbound(%n)",
        "nothing says what `t` stands for in demo::unbound(t? x) -> t",
    ),
)


def test_constants_are_nested_as_deeply_as_a_text_can_say() -> None:
    def constant(depth: int) -> Graph:
        value: object = ()
        for _ in range(depth - 1):
            value = (value,)
        graph = Graph()
        graph.block.append(Node("prim::Constant", (), [AnyType], {"value": value}))
        return graph

    graph = constant(DEEPEST_CONSTANT)
    assert told(graph) == []
    assert not printed(graph).objects
    for depth in (DEEPEST_CONSTANT + 2, 5000):
        fault = "types_are_inferred: the value is not a constant of type Any"
        assert told(constant(depth)) == [fault]


def test_an_operator_that_takes_numbers_for_tensors() -> None:
    for name, count in (("t", 0), ("i", 0), ("f", 0), ("b", 0), ("s", 1), ("li", 1)):
        graph = graph_of(f"%0 : Tensor = demo::scale(%t, %{name})")
        assert len(told(graph)) == count


@pytest.mark.spec("script 6.5", "the rules of kinds")
@pytest.mark.parametrize("kind", SOUND)
def test_sound_lines(kind: str) -> None:
    graph = graph_of(SOUND[kind])
    assert told(graph) == []
    drawn = printed(graph)
    again = parse_graph(
        drawn.text, namespace=PROGRAM, objects=drawn.objects, functions=FUNCTIONS
    )
    assert printed(again).text == drawn.text
    if kind != "operators":
        assert kind in {node.kind for node in graph.nodes()}


def test_every_kind_has_lines() -> None:
    ends = {"prim::Param", "prim::Return"}
    assert {*SOUND} == {*KINDS} - ends | {"operators"}


@pytest.mark.spec("script 6.5", "the rules of kinds")
@pytest.mark.parametrize(("lines", "fault"), UNSOUND)
def test_unsound_lines(lines: str, fault: str) -> None:
    assert [each.partition(": ")[0] for each in told(graph_of(lines))] == [
        "types_are_inferred"
    ]
    (words,) = told(graph_of(lines))
    assert words.endswith(fault)
