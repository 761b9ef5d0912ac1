"""Common subexpressions: what is merged and what is not, as texts before and after."""

import pytest

from everyorder.runtime.script.passes import merge_subexpressions
from tests.script.passes.texts import changed

# Name -> before, after ("" for the same), changes.
CASES: dict[str, tuple[str, str, int]] = {
    "equal work on equal inputs, also if it raises": (
        """\
graph(%x.1 : int, %y.1 : int):
  %a.1 : int = script::floordiv.int(%x.1, %y.1)
  %b.1 : int = script::floordiv.int(%x.1, %y.1)
  %c.1 : int = script::floordiv.int(%y.1, %x.1)
  %d.1 : int = script::add.int(%a.1, %c.1)
  %e.1 : int = script::add.int(%b.1, %c.1)
  return (%d.1, %e.1)
""",
        """\
graph(%x.1 : int, %y.1 : int):
  %a.1 : int = script::floordiv.int(%x.1, %y.1)
  %c.1 : int = script::floordiv.int(%y.1, %x.1)
  %d.1 : int = script::add.int(%a.1, %c.1)
  return (%d.1, %d.1)
""",
        2,
    ),
    "attributes count, and types, and the kind of a constant": (
        """\
graph(%p.1 : (int, int), %x.1 : int):
  %a.1 : int = prim::TupleIndex[index=0](%p.1)
  %b.1 : int = prim::TupleIndex[index=1](%p.1)
  %c.1 : float = prim::Constant[value=0.0]()
  %d.1 : float = prim::Constant[value=-0.0]()
  %e.1 : int? = prim::unchecked_cast(%x.1)
  %f.1 : Scalar = prim::unchecked_cast(%x.1)
  return (%a.1, %b.1, %c.1, %d.1, %e.1, %f.1)
""",
        "",
        0,
    ),
    "what a block around has computed, and not what one beside has": (
        """\
graph(%c.1 : bool, %x.1 : int):
  %a.1 : int = script::invert.int(%x.1)
  %y.1 : int = prim::If(%c.1)
    block0():
      %b.1 : int = script::invert.int(%x.1)
      %d.1 : int = script::bit_length.int(%b.1)
      -> (%d.1)
    block1():
      %e.1 : int = script::bit_length.int(%a.1)
      -> (%e.1)
  %f.1 : int = script::bit_length.int(%a.1)
  return (%y.1, %f.1)
""",
        """\
graph(%c.1 : bool, %x.1 : int):
  %a.1 : int = script::invert.int(%x.1)
  %y.1 : int = prim::If(%c.1)
    block0():
      %d.1 : int = script::bit_length.int(%a.1)
      -> (%d.1)
    block1():
      %e.1 : int = script::bit_length.int(%a.1)
      -> (%e.1)
  %f.1 : int = script::bit_length.int(%a.1)
  return (%y.1, %f.1)
""",
        1,
    ),
    "numbers that are drawn": (
        """\
graph(%x.1 : Tensor):
  %n.1 : ScalarType? = prim::Constant[value=None]()
  %d.1 : Device? = prim::Constant[value=None]()
  %m.1 : MemoryFormat? = prim::Constant[value=None]()
  %a.1 : Tensor = core::rand_like(%x.1, %n.1, %d.1, %m.1)
  %b.1 : Tensor = core::rand_like(%x.1, %n.1, %d.1, %m.1)
  %c.1 : Tensor = core::mul(%a.1, %b.1)
  return (%c.1)
""",
        "",
        0,
    ),
    "what is read before and behind a write": (
        """\
graph(%l.1 : int[], %m.1 : int[], %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  %b.1 : int = script::len.t(%l.1)
  script::append.t(%m.1, %x.1)
  %c.1 : int = script::len.t(%l.1)
  return (%a.1, %b.1, %c.1)
""",
        """\
graph(%l.1 : int[], %m.1 : int[], %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  script::append.t(%m.1, %x.1)
  %c.1 : int = script::len.t(%l.1)
  return (%a.1, %a.1, %c.1)
""",
        1,
    ),
    "what is read before and behind a write to something else": (
        """\
graph(%l.1 : int[], %x.1 : int):
  %m.1 : int[] = prim::ListConstruct(%x.1)
  %a.1 : int = script::len.t(%l.1)
  script::append.t(%m.1, %x.1)
  %b.1 : int = script::len.t(%l.1)
  return (%a.1, %b.1, %m.1)
""",
        """\
graph(%l.1 : int[], %x.1 : int):
  %m.1 : int[] = prim::ListConstruct(%x.1)
  %a.1 : int = script::len.t(%l.1)
  script::append.t(%m.1, %x.1)
  return (%a.1, %a.1, %m.1)
""",
        1,
    ),
    "elements of a list, before and behind a write": (
        """\
graph(%l.1 : int[], %x.1 : int):
  %a.1 : int, %b.1 : int = prim::ListUnpack(%l.1)
  %c.1 : int, %d.1 : int = prim::ListUnpack(%l.1)
  script::append.t(%l.1, %x.1)
  %e.1 : int, %f.1 : int = prim::ListUnpack(%l.1)
  return (%a.1, %d.1, %e.1)
""",
        """\
graph(%l.1 : int[], %x.1 : int):
  %a.1 : int, %b.1 : int = prim::ListUnpack(%l.1)
  script::append.t(%l.1, %x.1)
  %e.1 : int, %f.1 : int = prim::ListUnpack(%l.1)
  return (%a.1, %b.1, %e.1)
""",
        1,
    ),
    "a write in one branch": (
        """\
graph(%l.1 : int[], %c.1 : bool, %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  prim::If(%c.1)
    block0():
      script::append.t(%l.1, %x.1)
      -> ()
    block1():
      %b.1 : int = script::len.t(%l.1)
      prim::Print(%b.1)
      -> ()
  %d.1 : int = script::len.t(%l.1)
  return (%a.1, %d.1)
""",
        """\
graph(%l.1 : int[], %c.1 : bool, %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  prim::If(%c.1)
    block0():
      script::append.t(%l.1, %x.1)
      -> ()
    block1():
      %b.1 : int = script::len.t(%l.1)
      prim::Print(%b.1)
      -> ()
  %d.1 : int = script::len.t(%l.1)
  return (%a.1, %d.1)
""",
        0,
    ),
    "a write further on in a loop": (
        """\
graph(%l.1 : int[], %c.1 : bool, %n.1 : int):
  %a.1 : int = script::len.t(%l.1)
  %r.1 : int = prim::Loop(%n.1, %c.1, %a.1)
    block0(%i.1 : int, %p.1 : int):
      %b.1 : int = script::len.t(%l.1)
      script::append.t(%l.1, %i.1)
      -> (%c.1, %b.1)
  return (%r.1)
""",
        "",
        0,
    ),
    "a call may write to what it may know": (
        """\
graph(%l.1 : int[], %x.1 : int):
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %m.1 : int[] = prim::ListConstruct(%x.1)
  %a.1 : int = script::len.t(%l.1)
  %b.1 : int = script::len.t(%m.1)
  %n.1 : int = prim::CallFunction(%f.1, %l.1, %x.1)
  %c.1 : int = script::len.t(%l.1)
  %d.1 : int = script::len.t(%m.1)
  return (%a.1, %b.1, %c.1, %d.1)
""",
        """\
graph(%l.1 : int[], %x.1 : int):
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %m.1 : int[] = prim::ListConstruct(%x.1)
  %a.1 : int = script::len.t(%l.1)
  %b.1 : int = script::len.t(%m.1)
  %n.1 : int = prim::CallFunction(%f.1, %l.1, %x.1)
  %c.1 : int = script::len.t(%l.1)
  return (%a.1, %b.1, %c.1, %b.1)
""",
        1,
    ),
    "a call may switch what operators on tensors do": (
        """\
graph(%x.1 : Tensor, %l.1 : int[], %n.1 : int):
  %f.1 : Function = prim::Constant[function="__torch__.passes.grow"]()
  %y.1 : Tensor = core::neg(%x.1)
  %a.1 : Tensor = core::neg(%y.1)
  %m.1 : int = prim::CallFunction(%f.1, %l.1, %n.1)
  %b.1 : Tensor = core::neg(%y.1)
  %c.1 : Tensor = core::mul(%a.1, %b.1)
  return (%c.1)
""",
        "",
        0,
    ),
    "new memory that is written to, or given twice": (
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %b.1 : Tensor = core::neg(%x.1)
  %c.1 : Tensor = core::zero_(%a.1)
  %d.1 : Tensor = core::t(%x.1)
  %e.1 : Tensor = core::t(%x.1)
  return (%b.1, %d.1, %e.1)
""",
        "",
        0,
    ),
    "new memory of which one may be given": (
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %b.1 : Tensor = core::neg(%x.1)
  %c.1 : Tensor = core::neg(%x.1)
  %d.1 : Tensor = core::mul(%a.1, %a.1)
  return (%b.1, %c.1, %d.1)
""",
        """\
graph(%x.1 : Tensor):
  %a.1 : Tensor = core::neg(%x.1)
  %c.1 : Tensor = core::neg(%x.1)
  %d.1 : Tensor = core::mul(%a.1, %a.1)
  return (%a.1, %c.1, %d.1)
""",
        1,
    ),
    "new memory that is asked whether it is one": (
        """\
graph(%x.1 : int):
  %a.1 : int[] = prim::ListConstruct(%x.1)
  %b.1 : int[] = prim::ListConstruct(%x.1)
  %c.1 : bool = script::is_.t(%a.1, %b.1)
  return (%c.1)
""",
        "",
        0,
    ),
    "lists that nobody writes to": (
        """\
graph(%x.1 : int):
  %a.1 : int[] = prim::ListConstruct(%x.1)
  %b.1 : int[] = prim::ListConstruct(%x.1)
  %c.1 : int = script::sum.int(%a.1)
  %d.1 : int = script::sum.int(%b.1)
  return (%c.1, %d.1)
""",
        """\
graph(%x.1 : int):
  %a.1 : int[] = prim::ListConstruct(%x.1)
  %c.1 : int = script::sum.int(%a.1)
  return (%c.1, %c.1)
""",
        2,
    ),
    "attributes, and a write to one": (
        """\
graph(%c.1 : __torch__.passes.Cell, %d.1 : __torch__.passes.Cell, %x.1 : int):
  %a.1 : int[] = prim::GetAttr[name="items"](%c.1)
  %b.1 : int[] = prim::GetAttr[name="items"](%c.1)
  script::append.t(%a.1, %x.1)
  %e.1 : int[] = prim::GetAttr[name="items"](%c.1)
  prim::SetAttr[name="items"](%d.1, %a.1)
  %f.1 : int[] = prim::GetAttr[name="items"](%c.1)
  return (%b.1, %e.1, %f.1)
""",
        """\
graph(%c.1 : __torch__.passes.Cell, %d.1 : __torch__.passes.Cell, %x.1 : int):
  %a.1 : int[] = prim::GetAttr[name="items"](%c.1)
  script::append.t(%a.1, %x.1)
  prim::SetAttr[name="items"](%d.1, %a.1)
  %f.1 : int[] = prim::GetAttr[name="items"](%c.1)
  return (%a.1, %a.1, %f.1)
""",
        2,
    ),
    "what runs at another time reads at another time": (
        """\
graph(%l.1 : int[], %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  %b.1 : int = script::invert.int(%x.1)
  %f.1 : Function = prim::Closure()
    block0():
      %c.1 : int = script::len.t(%l.1)
      %d.1 : int = script::invert.int(%x.1)
      %e.1 : int = script::and_.int(%c.1, %d.1)
      -> (%e.1)
  %g.1 : Await(int) = prim::awaitableClosure(%f.1)
  script::append.t(%l.1, %b.1)
  return (%g.1, %a.1)
""",
        """\
graph(%l.1 : int[], %x.1 : int):
  %a.1 : int = script::len.t(%l.1)
  %b.1 : int = script::invert.int(%x.1)
  %f.1 : Function = prim::Closure()
    block0():
      %c.1 : int = script::len.t(%l.1)
      %e.1 : int = script::and_.int(%c.1, %b.1)
      -> (%e.1)
  %g.1 : Await(int) = prim::awaitableClosure(%f.1)
  script::append.t(%l.1, %b.1)
  return (%g.1, %a.1)
""",
        1,
    ),
    "awaits, and waits": (
        """\
graph(%x.1 : int[]):
  %a.1 : Await(int[]) = prim::awaitable_nowait(%x.1)
  %b.1 : Await(int[]) = prim::awaitable_nowait(%x.1)
  %c.1 : int[] = prim::awaitable_wait(%a.1)
  %d.1 : int[] = prim::awaitable_wait(%b.1)
  return (%c.1, %d.1)
""",
        "",
        0,
    ),
}


@pytest.mark.spec("script 6.7", "common subexpressions")
@pytest.mark.parametrize("case", CASES)
def test_subexpressions(case: str) -> None:
    before, after, count = CASES[case]
    assert changed(merge_subexpressions, before) == (after or before, count)
