"""Inlining: closures, calls and loops, as graphs before and after."""

import pytest

from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.script.ir import graph_text, parse_graph
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.passes import (
    inline,
    inline_calls,
    lift_closures,
    unroll_loops,
)
from tests.script.passes.programs import CELL
from tests.script.passes.texts import changed, read


def test_what_a_body_uses_becomes_inputs_and_constants_are_written_inside() -> None:
    before = """\
graph(%x.1 : Tensor, %n.1 : int):
  %one.1 : int = prim::Constant[value=1]()
  %f.1 : Function = prim::Closure()
    block0():
      %m.1 : int = script::add.int(%n.1, %one.1)
      %y.1 : Tensor = core::neg(%x.1)
      %pair.1 : (Tensor, int) = prim::TupleConstruct(%y.1, %m.1)
      -> (%pair.1)
  %fut.1 : Future((Tensor, int)) = prim::forkClosure(%f.1)
  return (%fut.1)
"""
    after = """\
graph(%x.1 : Tensor, %n.1 : int):
  %one.1 : int = prim::Constant[value=1]()
  %fut.1 : Future((Tensor, int)) = prim::fork_0(%n.1, %x.1)
  return (%fut.1)
with prim::fork_0 = graph(%n.1 : int, %x.1 : Tensor):
  %one.1 : int = prim::Constant[value=1]()
  %m.1 : int = script::add.int(%n.1, %one.1)
  %y.1 : Tensor = core::neg(%x.1)
  %pair.1 : (Tensor, int) = prim::TupleConstruct(%y.1, %m.1)
  return (%pair.1)
"""
    assert changed(lift_closures, before) == (after, 1)


def test_a_body_in_a_body_captures_through_the_outer_one() -> None:
    before = """\
graph(%x.1 : int, %b.1 : bool):
  %a.1 : Await(int) = prim::If(%b.1)
    block0():
      %f.1 : Function = prim::Closure()
        block0():
          %g.1 : Function = prim::Closure()
            block0():
              %y.1 : int = script::neg.int(%x.1)
              -> (%y.1)
          %fut.1 : Future(int) = prim::forkClosure(%g.1)
          %z.1 : int = prim::wait(%fut.1)
          -> (%z.1)
      %aw.1 : Await(int) = prim::awaitableClosure(%f.1)
      -> (%aw.1)
    block1():
      %r.1 : Await(int) = prim::awaitable_nowait(%x.1)
      -> (%r.1)
  return (%a.1)
"""
    after = """\
graph(%x.1 : int, %b.1 : bool):
  %a.1 : Await(int) = prim::If(%b.1)
    block0():
      %aw.1 : Await(int) = prim::awaitable_0(%x.1)
      -> (%aw.1)
    block1():
      %r.1 : Await(int) = prim::awaitable_nowait(%x.1)
      -> (%r.1)
  return (%a.1)
with prim::awaitable_0 = graph(%x.1 : int):
  %fut.1 : Future(int) = prim::fork_0(%x.1)
  %z.1 : int = prim::wait(%fut.1)
  return (%z.1)
with prim::fork_0 = graph(%x.1 : int):
  %y.1 : int = script::neg.int(%x.1)
  return (%y.1)
"""
    assert changed(lift_closures, before) == (after, 2)


def test_what_is_defined_inside_is_not_captured() -> None:
    before = """\
graph(%n.1 : int, %b.1 : bool):
  %f.1 : Function = prim::Closure()
    block0():
      %s.1 : int = prim::Loop(%n.1, %b.1, %n.1)
        block0(%i.1 : int, %c.1 : int):
          %d.1 : int = script::add.int(%c.1, %i.1)
          -> (%b.1, %d.1)
      -> (%s.1)
  %fut.1 : Future(int) = prim::forkClosure(%f.1)
  return (%fut.1)
"""
    text, _ = changed(lift_closures, before)
    assert "prim::fork_0(%n.1, %b.1)" in text


CALLED = """\
graph(%x.1 : int[], %n.1 : int):
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %m.1 : int = prim::CallFunction(%f.1, %x.1, %n.1)
  %k.1 : int = prim::CallFunction(%f.1, %x.1, %m.1)
  return (%k.1)
"""


def _function_line() -> str:
    """How a graph names the function of the tests."""
    return next(line for line in CALLED.splitlines() if "Constant" in line)


@pytest.mark.spec("script 6.7", "inlining")
def test_a_call_is_replaced_by_a_copy_of_the_body_each_time() -> None:
    after = f"""\
graph(%x.1 : int[], %n.1 : int):
{_function_line()}
  script::append.t(%x.1, %n.1)
  %n.2 : int = script::len.t(%x.1)
  prim::Print(%n.2)
  script::append.t(%x.1, %n.2)
  %n.3 : int = script::len.t(%x.1)
  prim::Print(%n.3)
  return (%n.3)
"""
    text, count = changed(inline_calls, CALLED)
    assert count == 2
    assert text.replace("%k.1", "%n.3").replace("%m.1", "%n.2") == after


def test_a_function_that_calls_itself_is_inlined_once() -> None:
    schema = parse_schema("down(int n) -> int")
    function = Function("__torch__.down", schema, lambda: graph)
    text = """\
graph(%n.1 : int):
  %f.1 : Function = prim::Constant[function="__torch__.down"]()
  %m.1 : int = prim::CallFunction(%f.1, %n.1)
  return (%m.1)
"""
    graph = parse_graph(text, functions={"__torch__.down": function})
    own = parse_graph(text, functions={"__torch__.down": function})
    assert inline_calls(graph) == 0
    assert inline_calls(own) == 1
    assert sum(node.kind == "prim::CallFunction" for node in own.nodes()) == 1


def test_methods_of_a_class_are_known_and_other_calls_are_not() -> None:
    text = """\
graph(%self.1 : __torch__.passes.Cell):
  %n.1 : int = prim::GetAttr[name="count"](%self.1)
  return (%n.1)
"""
    body = read(text)
    schema = parse_schema("inlined(t self) -> int")
    CELL.declaration.functions["inlined"] = Function("C.inlined", schema, body)
    try:
        call = read("""\
graph(%c.1 : __torch__.passes.Cell):
  %n.1 : int = prim::CallMethod[name="inlined"](%c.1)
  return (%n.1)
""")
        assert inline_calls(call) == 1
        assert graph_text(call) == text.replace("self", "c")
    finally:
        del CELL.declaration.functions["inlined"]


def test_a_graph_does_not_grow_beyond_its_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inline, "MOST_NODES", 6)
    graph = read(CALLED)
    assert inline_calls(graph) == 1


LOOP = """\
graph(%x.1 : int):
  %n.1 : int = prim::Constant[value=2]()
  %go.1 : bool = prim::Constant[value=True]()
  %y.1 : int = prim::Loop(%n.1, %go.1, %x.1)
    block0(%i.1 : int, %c.1 : int):
      %d.1 : int = script::add.int(%c.1, %i.1)
      prim::Print(%d.1)
      -> (%go.1, %d.1)
  return (%y.1)
"""


def test_a_loop_of_two_trips() -> None:
    text, count = changed(unroll_loops, LOOP)
    assert count == 1
    assert [
        line.strip().partition(" : ")[2] or line.strip() for line in text.splitlines()
    ] == [
        "int):",
        "int = prim::Constant[value=2]()",
        "bool = prim::Constant[value=True]()",
        "int = prim::Constant[value=0]()",
        "int = script::add.int(%x.1, %3)",
        "prim::Print(%d.1)",
        "int = prim::Constant[value=1]()",
        "int = script::add.int(%d.1, %5)",
        "prim::Print(%d.2)",
        "return (%d.2)",
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("value=2", "value=0"),
        ("value=2", "value=9"),
        ("value=True", "value=False"),
        (
            "graph(%x.1 : int):\n  %n.1 : int = prim::Constant[value=2]()",
            "graph(%x.1 : int, %n.1 : int):",
        ),
        (
            "%go.1 : bool = prim::Constant[value=True]()",
            "%go.1 : bool = script::bool.int(%x.1)",
        ),
    ],
)
def test_other_loops_stay(before: str, after: str) -> None:
    assert before in LOOP
    text = LOOP.replace(before, after)
    assert changed(unroll_loops, text) == (text, 0)


def test_no_loop_grows_beyond_the_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inline, "MOST_UNROLLED", 3)
    assert changed(unroll_loops, LOOP) == (LOOP, 0)


def test_a_loop_in_a_loop_is_unrolled_first() -> None:
    nested = """\
graph(%x.1 : int):
  %n.1 : int = prim::Constant[value=2]()
  %go.1 : bool = prim::Constant[value=True]()
  %y.1 : int = prim::Loop(%n.1, %go.1, %x.1)
    block0(%i.1 : int, %c.1 : int):
      %z.1 : int = prim::Loop(%n.1, %go.1, %c.1)
        block0(%j.1 : int, %e.1 : int):
          %d.1 : int = script::add.int(%e.1, %i.1)
          -> (%go.1, %d.1)
      -> (%go.1, %z.1)
  return (%y.1)
"""
    text, count = changed(unroll_loops, nested)
    assert count == 2
    assert text.count("script::add.int") == 4
    assert "Loop" not in text
