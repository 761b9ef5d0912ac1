"""Inlining: texts before and after, and what is never inlined."""

import pytest

from runtime.schema.parser import parse_schema
from runtime.script.ir import graph_text, parse_graph
from runtime.script.passes import inline_calls, inlining
from runtime.script.program import Function
from tests.script.passes.programs import CELL
from tests.script.passes.texts import changed, read

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
    monkeypatch.setattr(inlining, "MOST_NODES", 6)
    graph = read(CALLED)
    assert inline_calls(graph) == 1
