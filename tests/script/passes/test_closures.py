"""Closures of forks and awaits, lifted: texts before and after."""

from runtime.script.passes import lift_closures
from tests.script.passes.texts import changed


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
