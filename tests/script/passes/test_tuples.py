"""Tuples that are made to be taken apart: texts before and after."""

from runtime.script.passes import lower_tuples
from tests.script.passes.texts import changed


def test_parts_of_a_tuple_that_is_made_here() -> None:
    before = """\
graph(%x.1 : int, %y.1 : int?):
  %t.1 : (int?, int?) = prim::TupleConstruct(%x.1, %y.1)
  %u.1 : ((int?, int?), int) = prim::TupleConstruct(%t.1, %x.1)
  %v.1 : (int?, int?), %w.1 : int = prim::TupleUnpack(%u.1)
  %a.1 : int? = prim::TupleIndex[index=1](%v.1)
  return (%a.1, %w.1)
"""
    after = """\
graph(%x.1 : int, %y.1 : int?):
  %t.1 : (int?, int?) = prim::TupleConstruct(%x.1, %y.1)
  %u.1 : ((int?, int?), int) = prim::TupleConstruct(%t.1, %x.1)
  return (%y.1, %x.1)
"""
    assert changed(lower_tuples, before) == (after, 2)


def test_branches_that_make_tuples_give_the_elements() -> None:
    before = """\
graph(%b.1 : bool, %x.1 : int, %y.1 : str):
  %t.1 : (int, str) = prim::If(%b.1)
    block0():
      %m.1 : int = script::neg.int(%x.1)
      %t.2 : (int, str) = prim::TupleConstruct(%m.1, %y.1)
      -> (%t.2)
    block1():
      %t.3 : (int, str) = prim::TupleConstruct(%x.1, %y.1)
      -> (%t.3)
  %a.1 : int, %c.1 : str = prim::TupleUnpack(%t.1)
  return (%a.1, %c.1)
"""
    after = """\
graph(%b.1 : bool, %x.1 : int, %y.1 : str):
  %t.1 : int, %t.2 : str = prim::If(%b.1)
    block0():
      %m.1 : int = script::neg.int(%x.1)
      %t.3 : (int, str) = prim::TupleConstruct(%m.1, %y.1)
      -> (%m.1, %y.1)
    block1():
      %t.4 : (int, str) = prim::TupleConstruct(%x.1, %y.1)
      -> (%x.1, %y.1)
  %t.5 : (int, str) = prim::TupleConstruct(%t.1, %t.2)
  return (%t.1, %t.2)
"""
    text, count = changed(lower_tuples, before)
    assert count == 2
    assert text == after


def test_a_loop_that_carries_a_tuple_carries_its_elements() -> None:
    before = """\
graph(%n.1 : int, %b.1 : bool, %x.1 : int, %y.1 : str):
  %t.1 : (int, str) = prim::TupleConstruct(%x.1, %y.1)
  %k.1 : int, %t.2 : (int, str) = prim::Loop(%n.1, %b.1, %x.1, %t.1)
    block0(%i.1 : int, %j.1 : int, %t.3 : (int, str)):
      %a.1 : int, %c.1 : str = prim::TupleUnpack(%t.3)
      %d.1 : int = script::add.int(%a.1, %i.1)
      %t.4 : (int, str) = prim::TupleConstruct(%d.1, %c.1)
      -> (%b.1, %a.1, %t.4)
  return (%k.1, %t.2)
"""
    after = """\
graph(%n.1 : int, %b.1 : bool, %x.1 : int, %y.1 : str):
  %t.1 : (int, str) = prim::TupleConstruct(%x.1, %y.1)
  %k.1 : int, %t.2 : int, %t.3 : str = prim::Loop(%n.1, %b.1, %x.1, %x.1, %y.1)
    block0(%i.1 : int, %j.1 : int, %t.4 : int, %t.5 : str):
      %t.6 : (int, str) = prim::TupleConstruct(%t.4, %t.5)
      %d.1 : int = script::add.int(%t.4, %i.1)
      %t.7 : (int, str) = prim::TupleConstruct(%d.1, %t.5)
      -> (%b.1, %t.4, %d.1, %t.5)
  %t.8 : (int, str) = prim::TupleConstruct(%t.2, %t.3)
  return (%k.1, %t.8)
"""
    assert changed(lower_tuples, before) == (after, 2)


def test_a_tuple_that_somebody_has_is_not_split() -> None:
    text = """\
graph(%b.1 : bool, %x.1 : int):
  %t.1 : (int, int) = prim::TupleConstruct(%x.1, %x.1)
  %u.1 : (int, int) = prim::If(%b.1)
    block0():
      -> (%t.1)
    block1():
      %t.2 : (int, int) = prim::TupleConstruct(%x.1, %x.1)
      -> (%t.2)
  return (%t.1, %u.1)
"""
    assert changed(lower_tuples, text) == (text, 0)
