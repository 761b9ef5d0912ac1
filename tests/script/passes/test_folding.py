"""Folding: constants, lists and tuples that are known, as graphs before and after."""

from functools import partial

import pytest

from everyorder.runtime.script.ir import Graph, graph_text
from everyorder.runtime.script.passes import (
    erase_list_literals,
    lower_tuples,
    pool_constants,
    propagate_all,
    propagate_constants,
)
from tests.script.passes.texts import changed, read

# Name -> before, after ("" for the same), changes.
CASES: dict[str, tuple[str, str, int]] = {
    "numbers, texts and tuples": (
        """\
graph():
  %a.1 : int = prim::Constant[value=2]()
  %b.1 : int = prim::Constant[value=3]()
  %c.1 : int = script::mul.int(%a.1, %b.1)
  %d.1 : int, %e.1 : int = script::divmod.int(%c.1, %a.1)
  %f.1 : (int, int) = prim::TupleConstruct(%d.1, %e.1)
  %g.1 : int = prim::TupleIndex[index=1](%f.1)
  %h.1 : str = script::str.t(%c.1)
  return (%f.1, %g.1, %h.1)
""",
        """\
graph():
  %a.1 : int = prim::Constant[value=2]()
  %b.1 : int = prim::Constant[value=3]()
  %c.1 : int = prim::Constant[value=6]()
  %d.1 : int = prim::Constant[value=3]()
  %e.1 : int = prim::Constant[value=0]()
  %f.1 : (int, int) = prim::Constant[value=(3, 0)]()
  %g.1 : int = prim::Constant[value=0]()
  %h.1 : str = prim::Constant[value="6"]()
  return (%f.1, %g.1, %h.1)
""",
        5,
    ),
    "what raises, draws, is an operator's, or can be written to": (
        """\
graph():
  %a.1 : int = prim::Constant[value=0]()
  %b.1 : int = script::floordiv.int(%a.1, %a.1)
  %c.1 : str = prim::Constant[value="a b"]()
  %d.1 : str? = prim::Constant[value=None]()
  %e.1 : str[] = script::split.str(%c.1, %d.1, %a.1)
  %f.1 : int = script::hash.t(%a.1)
  %g.1 : int[] = prim::ListConstruct(%a.1)
  %h.1 : int = script::len.t(%g.1)
  %i.1 : bool = script::is_.t(%c.1, %c.1)
  return (%b.1, %e.1, %f.1, %h.1, %i.1)
""",
        "",
        0,
    ),
    "texts that would be long, and numbers that would take long": (
        """\
graph():
  %a.1 : int = prim::Constant[value=1000000]()
  %b.1 : str = prim::Constant[value="ab"]()
  %c.1 : str = script::mul.str(%b.1, %a.1)
  %d.1 : str = script::zfill.str(%b.1, %a.1)
  %e.1 : str = prim::Constant[value="%1000000d"]()
  %f.1 : str = script::mod.str(%e.1, %a.1)
  %g.1 : int = script::factorial.int(%a.1)
  return (%c.1, %d.1, %f.1, %g.1)
""",
        "",
        0,
    ),
    "the branch that is taken": (
        """\
graph(%x.1 : int):
  %c.1 : bool = prim::Constant[value=True]()
  %d.1 : bool = script::not_.bool(%c.1)
  %y.1 : int = prim::If(%d.1)
    block0():
      prim::Print(%x.1)
      -> (%x.1)
    block1():
      %a.1 : int = script::invert.int(%x.1)
      %z.1 : int = prim::If(%c.1)
        block0():
          prim::Print(%a.1)
          -> (%a.1)
        block1():
          -> (%x.1)
      -> (%z.1)
  return (%y.1)
""",
        """\
graph(%x.1 : int):
  %c.1 : bool = prim::Constant[value=True]()
  %d.1 : bool = prim::Constant[value=False]()
  %a.1 : int = script::invert.int(%x.1)
  prim::Print(%a.1)
  return (%a.1)
""",
        3,
    ),
    "a branch that gives less than its output may be": (
        """\
graph(%x.1 : int):
  %c.1 : bool = prim::Constant[value=False]()
  %n.1 : int = prim::Constant[value=4]()
  %y.1 : int?, %z.1 : int? = prim::If(%c.1)
    block0():
      -> (%x.1, %x.1)
    block1():
      -> (%x.1, %n.1)
  return (%y.1, %z.1)
""",
        """\
graph(%x.1 : int):
  %c.1 : bool = prim::Constant[value=False]()
  %n.1 : int = prim::Constant[value=4]()
  %y.1 : int? = prim::unchecked_cast(%x.1)
  %z.1 : int? = prim::Constant[value=4]()
  return (%y.1, %z.1)
""",
        1,
    ),
    "loops without a trip": (
        """\
graph(%x.1 : int, %c.1 : bool):
  %n.1 : int = prim::Constant[value=0]()
  %d.1 : bool = prim::Constant[value=False]()
  %y.1 : int = prim::Loop(%n.1, %c.1, %x.1)
    block0(%i.1 : int, %a.1 : int):
      prim::Print(%i.1)
      -> (%c.1, %i.1)
  %z.1 : int = prim::Loop(%x.1, %d.1, %y.1)
    block0(%i.2 : int, %b.1 : int):
      prim::Print(%i.2)
      -> (%c.1, %i.2)
  return (%z.1)
""",
        """\
graph(%x.1 : int, %c.1 : bool):
  %n.1 : int = prim::Constant[value=0]()
  %d.1 : bool = prim::Constant[value=False]()
  return (%x.1)
""",
        2,
    ),
}


@pytest.mark.spec("script 6.7", "constants")
@pytest.mark.parametrize("case", CASES)
def test_constants(case: str) -> None:
    before, after, count = CASES[case]
    assert changed(propagate_constants, before) == (after or before, count)


LISTS = """\
graph(%x.1 : int):
  %a.1 : int = prim::Constant[value=3]()
  %b.1 : int[] = prim::ListConstruct(%a.1, %a.1)
  %c.1 : int = script::len.t(%b.1)
  %d.1 : int = script::sum.int(%b.1)
  %e.1 : int[] = prim::ListConstruct(%a.1)
  script::append.t(%e.1, %x.1)
  %f.1 : int = script::len.t(%e.1)
  %k.1 : str = prim::Constant[value="k"]()
  %g.1 : Dict(str, int) = prim::DictConstruct(%k.1, %a.1)
  %h.1 : int = script::getitem.Dict_str(%g.1, %k.1)
  %i.1 : int[] = script::copy.t(%b.1)
  return (%c.1, %d.1, %f.1, %h.1, %i.1)
"""
KNOWN = """\
graph(%x.1 : int):
  %a.1 : int = prim::Constant[value=3]()
  %b.1 : int[] = prim::ListConstruct(%a.1, %a.1)
  %c.1 : int = prim::Constant[value=2]()
  %d.1 : int = prim::Constant[value=6]()
  %e.1 : int[] = prim::ListConstruct(%a.1)
  script::append.t(%e.1, %x.1)
  %f.1 : int = script::len.t(%e.1)
  %k.1 : str = prim::Constant[value="k"]()
  %g.1 : Dict(str, int) = prim::DictConstruct(%k.1, %a.1)
  %h.1 : int = prim::Constant[value=3]()
  %i.1 : int[] = script::copy.t(%b.1)
  return (%c.1, %d.1, %f.1, %h.1, %i.1)
"""


def test_lists_of_constants_are_looked_into_if_nobody_writes_to_them() -> None:
    assert changed(propagate_constants, LISTS) == (LISTS, 0)
    assert changed(propagate_all, LISTS) == (KNOWN, 3)


@pytest.mark.spec("script 6.7", "constants")
def test_constants_are_kept_once_at_the_head() -> None:
    before = """\
graph(%c.1 : bool):
  %a.1 : int = prim::Constant[value=1]()
  %y.1 : int = prim::If(%c.1)
    block0():
      %0 : int = prim::Constant[value=1]()
      -> (%0)
    block1():
      %b.1 : int = prim::Constant[value=2]()
      -> (%b.1)
  %d.1 : float = prim::Constant[value=1.0]()
  %e.1 : bool = prim::Constant[value=True]()
  %f.1 : int? = prim::Constant[value=1]()
  %g.1 : float = prim::Constant[value=nan]()
  %h.1 : float = prim::Constant[value=nan]()
  %i.1 : float = prim::Constant[value=-0.0]()
  %j.1 : float = prim::Constant[value=0.0]()
  return (%y.1, %a.1, %d.1, %e.1, %f.1, %g.1, %h.1, %i.1, %j.1)
"""
    after = """\
graph(%c.1 : bool):
  %a.1 : int = prim::Constant[value=1]()
  %b.1 : int = prim::Constant[value=2]()
  %d.1 : float = prim::Constant[value=1.0]()
  %e.1 : bool = prim::Constant[value=True]()
  %f.1 : int? = prim::Constant[value=1]()
  %g.1 : float = prim::Constant[value=nan]()
  %i.1 : float = prim::Constant[value=-0.0]()
  %j.1 : float = prim::Constant[value=0.0]()
  %y.1 : int = prim::If(%c.1)
    block0():
      -> (%a.1)
    block1():
      -> (%b.1)
  return (%y.1, %a.1, %d.1, %e.1, %f.1, %g.1, %g.1, %i.1, %j.1)
"""
    assert changed(pool_constants, before) == (after, 9)


def test_constants_that_are_objects_are_one_if_they_are_one_object() -> None:
    class Data:
        key_bits = 0

    text = """\
graph():
  %a.1 : Tensor = prim::Constant[value=object(0)]()
  %b.1 : Tensor = prim::Constant[value=object(1)]()
  %c.1 : Tensor = prim::Constant[value=object(0)]()
  return (%a.1, %b.1, %c.1)
"""
    graph = read(text, objects=(Data(), Data()))
    assert pool_constants(graph) == 1
    assert (
        graph_text(graph)
        == """\
graph():
  %a.1 : Tensor = prim::Constant[value=object(0)]()
  %b.1 : Tensor = prim::Constant[value=object(1)]()
  return (%a.1, %b.1, %a.1)
"""
    )


def test_many_constants_are_pooled_in_one_go() -> None:
    lines = "".join(
        f"  %c{n}.1 : int = prim::Constant[value={n}]()\n  prim::Print(%c{n}.1)\n"
        for n in range(2000)
    )
    graph = read(f"graph():\n{lines}  return ()\n")
    pool: partial[int] = partial(pool_constants, graph)
    assert (pool(), pool()) == (1999, 0)
    kinds = [node.kind for node in graph.nodes()]
    assert kinds == ["prim::Constant"] * 2000 + ["prim::Print"] * 2000
    assert isinstance(graph, Graph)


def test_tensors_are_not_computed_early() -> None:
    class Data:
        key_bits = 0

    text = """\
graph():
  %a.1 : Tensor = prim::Constant[value=object(0)]()
  %b.1 : Tensor = core::neg(%a.1)
  %c.1 : float = script::float.Tensor(%a.1)
  return (%b.1, %c.1)
"""
    assert changed(propagate_all, text, objects=(Data(),)) == (text, 0)


HEAD = """\
graph(%x.1 : int, %y.1 : int):
  %i.1 : int = prim::Constant[value=-1]()
  %far.1 : int = prim::Constant[value=2]()
  %l.1 : int[] = prim::ListConstruct(%x.1, %y.1)
"""
TAIL = "  return (%n.1, %e.1, %a.1, %b.1)\n"
ASKED = """\
  %n.1 : int = script::len.t(%l.1)
  %e.1 : int = script::getitem.t(%l.1, %i.1)
  %a.1 : int, %b.1 : int = prim::ListUnpack(%l.1)
"""


@pytest.mark.spec("script 6.7", "list literals")
def test_length_elements_and_unpacking_are_known() -> None:
    after = f"""\
{HEAD}  %n.1 : int = prim::Constant[value=2]()
  return (%n.1, %y.1, %x.1, %y.1)
"""
    assert changed(erase_list_literals, HEAD + ASKED + TAIL) == (after, 3)


def test_a_list_that_is_written_to_is_asked_itself() -> None:
    write = "  script::append.t(%l.1, %x.1)\n"
    for text in (HEAD + write + ASKED + TAIL, HEAD + ASKED + write + TAIL):
        assert changed(erase_list_literals, text) == (text, 0)


def test_a_list_that_others_have_may_be_written_to() -> None:
    call = """\
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %m.1 : int = prim::CallFunction(%f.1, %l.1, %x.1)
"""
    text = HEAD + call + ASKED + TAIL
    assert changed(erase_list_literals, text) == (text, 0)


def test_what_is_out_of_range_stays_and_raises() -> None:
    text = (
        HEAD
        + "  %e.1 : int = script::getitem.t(%l.1, %far.1)\n"
        + "  %a.1 : int, %b.1 : int, %c.1 : int = prim::ListUnpack(%l.1)\n"
        + "  return (%e.1, %a.1)\n"
    )
    assert changed(erase_list_literals, text) == (text, 0)


@pytest.mark.spec("script 6.7", "tuples")
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
