"""Graphs as text of Python: what it looks like, and in which order it happens."""

import ast
from random import Random
from typing import Any

import pytest

from everyorder.runtime.errors.registration import AlreadyRegistered
from everyorder.runtime.schema.declared import EnumType
from everyorder.runtime.schema.enums import Device
from everyorder.runtime.schema.types import IntType
from everyorder.runtime.script.archive import (
    Constants,
    code_of,
    graph_code,
    register_form,
    type_code,
)
from everyorder.runtime.script.archive import code as writing
from everyorder.runtime.script.archive.spelling import (
    FunctionNames,
    constant_text,
    type_text,
)
from everyorder.runtime.script.ir import Graph, Node, parse_graph
from tests.script.archive.samples import (
    COLOUR,
    NODE,
    POINT,
    SHOWN,
    Colour,
    Point,
    function,
    later,
    loop,
    of_type,
    read,
)
from tests.script.ir.graphs import random_graph


def test_a_loop() -> None:
    constants = Constants()
    assert (
        code_of(loop(), constants)
        == """def loop(x: Tensor, n: int=3) -> Tensor:
  y = x
  for i in range(n):
    y = ops.core.add(y, CONSTANTS.c0)
  return y
"""
    )
    assert [each.tolist() for each in constants.values] == [[1.0, 2.0]]


def test_a_fork_and_an_await_are_functions_before_them() -> None:
    assert (
        code_of(later())
        == """def later(x: Tensor) -> Tensor:
  def __forked_function():
    return __torch__.demo.loop(x, 2)
  fut = fork(__forked_function)
  def __awaitable_function():
    return (x, [x, x])
  aw = awaitable(__awaitable_function)
  a = wait(fut)
  c, l = awaitable_wait(aw)
  return ops.core.add(a, c)
"""
    )


def test_two_forks_have_two_names() -> None:
    text = graph_code(
        read(
            """graph():
  %a : Future(int) = prim::fork_0()
  %b : Future(int) = prim::fork_1()
  return (%b)
with prim::fork_0 = graph():
  %c : int = prim::Constant[value=1]()
  return (%c)
with prim::fork_1 = graph():
  %c : int = prim::Constant[value=2]()
  return (%c)
"""
        )
    )
    assert (
        text
        == """def graph():
  def __forked_function():
    return 1
  a = fork(__forked_function)
  def __forked_function_0():
    return 2
  b = fork(__forked_function_0)
  return b
"""
    )


CONTROL = """graph f(%n.1 : int, %c.1 : bool):
  %one : int = prim::Constant[value=1]()
  %most : int = prim::Constant[value=9223372036854775807]()
  %word : str = prim::Constant[value="odd"]()
  %y.1 : int, %z.1 : int = prim::If(%c.1)
    block0():
      %p : int = script::mul.int(%n.1, %n.1)
      -> (%p, %one)
    block1():
      prim::RaiseException[class="builtins.ValueError"](%word)
      %u : int = prim::Uninitialized()
      -> (%u, %n.1)
  %w.1 : int = prim::Loop(%most, %c.1, %y.1)
    block0(%i.1 : int, %w.2 : int):
      %w.3 : int = script::sub.int(%w.2, %z.1)
      %go.1 : bool = script::gt.int(%w.3, %one)
      -> (%go.1, %w.3)
  %v.1 : int = prim::Loop(%n.1, %c.1, %w.1)
    block0(%j.1 : int, %v.2 : int):
      %v.3 : int = script::add.int(%v.2, %j.1)
      -> (%c.1, %v.3)
  prim::If(%c.1)
    block0():
      prim::Print(%v.1)
      -> ()
    block1():
      -> ()
  return (%v.1)
"""


def test_branches_and_loops() -> None:
    assert (
        graph_code(read(CONTROL))
        == """def f(n: int, c: bool):
  if c:
    y, z = n * n, 1
  else:
    raise ValueError('odd')
    y, z = uninitialized(int), n
  w = y
  go_on = c
  while go_on:
    w_0 = w - z
    go_on, w = w_0 > 1, w_0
  v = w
  go_on_0 = c
  j = 0
  while j < n and go_on_0:
    go_on_0, v = c, v + j
    j = j + 1
  if c:
    print(v)
  return v
"""
    )


OBJECTS = """graph f(%o.1 : NODE, %s.1 : __torch__.tree.Shown, %x.1 : int?):
  %k.1 : __torch__.paint.Colour = prim::Constant[value=__torch__.paint.Colour.BLUE]()
  %f.1 : float = prim::Constant[value=nan]()
  %p.1 : POINT = prim::TupleConstruct(%v.1, %f.1)
  return (%p.1)
"""


def test_objects_tuples_and_constants() -> None:
    text = (
        OBJECTS.replace("POINT", str(POINT))
        .replace("NODE", str(NODE))
        .replace(
            "  %f.1 : float",
            """  %new : __torch__.tree.Node = prim::CreateObject()
  prim::SetAttr[name="parent"](%new, %o.1)
  %v.0 : int = prim::GetAttr[name="value"](%o.1)
  %t : (int, int) = prim::TupleConstruct(%v.0, %v.0)
  %e : int = prim::TupleIndex[index=1](%t)
  %is : bool = prim::isinstance[types=[int, float]](%x.1)
  %v.1 : int = prim::unchecked_cast(%x.1)
  %said : str = prim::CallInterface[name="show"](%s.1, %v.1)
  %more : int = prim::CallMethod[name="more"](%new, %e)
  %none : int? = prim::Constant[value=None]()
  %l : int?[] = prim::ListConstruct(%none, %v.1)
  %d : Dict(str, int) = prim::DictConstruct(%said, %more)
  %empty : int[] = prim::ListConstruct()
  prim::Print(%k.1, %l, %d, %empty, %is)
  %f.1 : float""",
        )
    )
    assert (
        graph_code(read(text))
        == """def f(o: __torch__.tree.Node, s: __torch__.tree.Shown, x: Optional[int]):
  new = create(__torch__.tree.Node)
  new.parent = o
  v = o.value
  e = (v, v)[1]
  is_0 = isinstance(x, (int, float))
  v_0 = unchecked_cast(int, x)
  said = s.show(v_0)
  more = new.more(e)
  l = annotate(List[Optional[int]], [annotate(Optional[int], None), v_0])
  print(__torch__.paint.Colour.BLUE, l, {said: more}, annotate(List[int], []), is_0)
  p = __torch__.tests.script.archive.samples.Point(v_0, non_finite("nan"))
  return p
"""
    )


def test_primitives_are_written_as_programs_write_them() -> None:
    text = """graph f(%l.1 : int[], %s.1 : str):
  %i.1 : int = prim::Constant[value=-1]()
  %a.1 : int = script::getitem.t(%l.1, %i.1)
  %b.1 : int = script::neg.int(%a.1)
  %m.1 : int = script::mul.int(%b.1, %i.1)
  script::append.t(%l.1, %m.1)
  %n.1 : int = script::len.t(%l.1)
  script::setitem.t(%l.1, %i.1, %n.1)
  %k.1 : int[] = script::iadd.t(%l.1, %l.1)
  %h.1 : bool = script::contains.t(%k.1, %i.1)
  %u.1 : str = script::upper.str(%s.1)
  script::delitem.t(%l.1, %i.1)
  return (%u.1, %h.1)
"""
    assert (
        graph_code(read(text))
        == """def f(l: List[int], s: str):
  l.append((- l[-1]) * (-1))
  n = len(l)
  l[-1] = n
  l += l
  h = (-1) in l
  u = s.upper()
  del l[-1]
  return (u, h)
"""
    )


def test_classes_enums_and_interfaces() -> None:
    assert (
        type_code(NODE)
        == """class Node:
  value: int
  parent: Optional[__torch__.tree.Node]
  def more(self, by: int=1) -> int:
    return self.value + by
"""
    )
    assert (
        type_code(SHOWN)
        == "class Shown(Interface):\n  def show(self, by: int) -> str:\n    pass\n"
    )
    assert type_code(COLOUR) == "class Colour(Enum):\n  RED = 1\n  BLUE = 2\n"


@pytest.mark.parametrize(
    ("written", "text"),
    [
        ("int?[]", "List[Optional[int]]"),
        ("Dict(str, Tensor)", "Dict[str, Tensor]"),
        ("()", "Tuple[()]"),
        ("(int, None)", "Tuple[int, None]"),
        ("Union(int, str)", "Union[int, str]"),
        ("Await(Future(RRef(Any)))", "Await[Future[RRef[Any]]]"),
        ("Device", "Device"),
        ("__torch__.tree.Node", "__torch__.tree.Node"),
    ],
)
def test_types(written: str, text: str) -> None:
    assert type_text(of_type(written)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (-7, "-7"),
        (float("-inf"), 'non_finite("-inf")'),
        (-0.0, "-0.0"),
        (complex(1.0, float("nan")), 'complex(1.0, non_finite("nan"))'),
        ("a'\"\n\ud800é", "'a\\'\"\\n\\ud800\\xe9'"),
        ((1, (True, None)), "(1, (True, None))"),
        ((1,), "(1,)"),
        (Device.parse("cuda:1"), 'device("cuda:1")'),
        (Colour.RED, "__torch__.paint.Colour.RED"),
        (Point(1, 2.0), "CONSTANTS.c0"),
    ],
)
def test_constants(value: Any, text: str) -> None:
    constants = Constants()
    assert constant_text(value, constants) == text
    assert constants.values == ([value] if "CONSTANTS" in text else [])


def test_names_hide_nothing() -> None:
    names = FunctionNames()
    hints = ["x.1", "x", "self.l.0", "print", "if", "ops", "7", "", "é", "x"]
    assert [names.fresh(each) for each in hints] == [
        *("x", "x_0", "self_l", "print_0", "if_0", "ops_0", "_0", "_0_0", "__0", "x_1"),
    ]
    assert POINT is not None


# Kinds of plug-ins


class Rows:
    """Kinds that a plug-in has."""

    REMOTE = "rpc::remote"


def _remote() -> Graph:
    graph = Graph("f")
    where = graph.block.add_parameter(of_type("str"), "where")
    values = [where]
    for value, type_ in (("__torch__.two", "str"), ((), "()"), (5.0, "float")):
        node = Node("prim::Constant", (), (of_type(type_),), {"value": value})
        graph.block.append(node)
        values.append(node.output)
    table = Node("prim::DictConstruct", (), (of_type("Dict(str, Tensor)"),))
    graph.block.append(table)
    values.insert(3, table.output)
    call = Node(Rows.REMOTE, values, (of_type("RRef(int)"),), {"depth": 2})
    graph.block.append(call)
    graph.block.add_result(call.output)
    return graph


def test_a_kind_that_nobody_describes_has_all_operands() -> None:
    assert (
        graph_code(_remote())
        == """def f(where: str):
  _0 = ops.rpc.remote(where, '__torch__.two', (), TABLE, 5.0, depth=2)
  return _0
""".replace("TABLE", "annotate(Dict[str, Tensor], {})")
    )


@pytest.mark.spec("script 0.4", "a symbol, a form, an operator of a plug-in")
def test_a_plug_in_describes_its_own() -> None:
    handle = register_form(
        Rows.REMOTE, lambda node, operands, constants: f"rpc.remote({operands[0]})"
    )
    try:
        assert "return rpc.remote(where)\n" in graph_code(_remote())
        with pytest.raises(AlreadyRegistered, match="writers of nodes: "):
            register_form(Rows.REMOTE, lambda node, operands, constants: "")
    finally:
        handle.close()
    assert "ops.rpc.remote(" in graph_code(_remote())


# All graphs


def test_every_graph_is_a_text_of_python() -> None:
    for seed in range(150):
        ast.parse(graph_code(random_graph(Random(seed))))


def test_the_text_is_the_same_again() -> None:
    graph = random_graph(Random(3))
    assert graph_code(graph) == graph_code(graph)


class Ops:
    """Operators that note when they are called, and with what."""

    def __init__(self) -> None:
        self.calls: list[Any] = []
        self.demo = self

    def step(self, number: int, *others: Any) -> int:
        self.calls.append((number, others))
        return number


def _steps(random: Random) -> tuple[Graph, list[Any]]:
    """A line of steps with numbers that use each other, and their calls in order."""
    graph = Graph("f")
    values: list[Any] = []
    calls: list[Any] = []
    for number in range(random.randint(1, 9)):
        known = Node("prim::Constant", (), (IntType,), {"value": number})
        graph.block.append(known)
        picked = [
            random.randrange(number) for _ in range(random.randint(0, 3)) if number
        ]
        inputs = [known.output, *(values[each] for each in picked)]
        node = Node("demo::step", inputs, (IntType,))
        graph.block.append(node)
        values.append(node.output)
        calls.append((number, tuple(picked)))
    for each in random.sample(values, random.randint(0, min(3, len(values)))):
        graph.block.add_result(each)
    return graph, calls


def _played(graph: Graph) -> list[Any]:
    ops = Ops()
    names: dict[str, Any] = {"ops": ops}
    exec(graph_code(graph), names)  # the text of the graph above
    names["f"]()
    return ops.calls


def test_what_happens_happens_in_the_order_of_the_graph() -> None:
    texts = ""
    for seed in range(150):
        graph, calls = _steps(Random(seed))
        assert _played(graph) == calls
        texts += graph_code(graph)
    # Values do stand where they are used, also several in one expression.
    assert "step(1, ops.demo.step(0))" in texts
    assert "), ops.demo.step(" in texts


def _never_flushed(writer: Any, node: Any, values: Any, order: Any = None) -> list[str]:
    return [writer.pending.pop(v, None) or writer.texts[v] for v in values]


def test_an_order_that_changes_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writing._FunctionWriter, "operands", _never_flushed)
    wrong = 0
    for seed in range(60):
        graph, calls = _steps(Random(seed))
        wrong += _played(graph) != calls
    assert wrong > 10


def test_operands_of_in_are_evaluated_from_the_left() -> None:
    text = """graph f(%l.1 : int[][], %m.1 : int[]):
  %a.1 : int[] = script::pop.t(%l.1)
  %b.1 : int = script::pop.t(%m.1)
  %c.1 : bool = script::contains.t(%a.1, %b.1)
  return (%c.1)
"""
    graph = parse_graph(text)
    assert (
        graph_code(graph)
        == """def f(l: List[List[int]], m: List[int]):
  a = l.pop()
  b = m.pop()
  return b in a
"""
    )


def test_enums_are_told_by_their_types() -> None:
    assert isinstance(COLOUR, EnumType)
    giving = function(
        "k",
        "k() -> __torch__.paint.Colour?",
        "graph():\n  %c : __torch__.paint.Colour? = "
        "prim::Constant[value=__torch__.paint.Colour.RED]()\n  return (%c)\n",
    )
    assert code_of(giving).endswith(
        "c = annotate(Optional[__torch__.paint.Colour], __torch__.paint.Colour.RED)\n"
        "  return c\n"
    )
