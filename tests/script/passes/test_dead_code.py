"""Dead code: what goes and what stays, as texts before and after."""

import pytest

from everyorder.runtime.script.passes import remove_dead_code
from tests.script.passes.texts import changed

# Name -> before, after, changes.
CASES: dict[str, tuple[str, str, int]] = {
    "what nobody uses": (
        """\
graph(%x.1 : Tensor):
  %y.1 : Tensor = core::neg(%x.1)
  %z.1 : Tensor = core::neg(%y.1)
  return (%x.1)
""",
        """\
graph(%x.1 : Tensor):
  return (%x.1)
""",
        2,
    ),
    "a write to what the caller has": (
        """\
graph(%x.1 : Tensor):
  %y.1 : Tensor = core::mul_(%x.1, %x.1)
  %v.1 : Tensor = core::t(%x.1)
  %w.1 : Tensor = core::zero_(%v.1)
  return ()
""",
        "",
        0,
    ),
    "a write to what nobody has": (
        """\
graph(%x.1 : Tensor):
  %y.1 : Tensor = core::neg(%x.1)
  %v.1 : Tensor = core::t(%y.1)
  %w.1 : Tensor = core::zero_(%v.1)
  return ()
""",
        """\
graph(%x.1 : Tensor):
  return ()
""",
        3,
    ),
    "a write to what is read later, and in a list": (
        """\
graph(%x.1 : Tensor):
  %y.1 : Tensor = core::neg(%x.1)
  %l.1 : Tensor[] = prim::ListConstruct(%y.1)
  %w.1 : Tensor = core::zero_(%y.1)
  return (%l.1)
""",
        "",
        0,
    ),
    "what is seen, raises, draws or is not known": (
        """\
graph(%x.1 : int, %l.1 : int[]):
  %f.1 : Function = prim::Constant[function="__torch__.passes.same"]()
  %y.1 : int = script::floordiv.int(%x.1, %x.1)
  prim::Print(%x.1)
  %z.1 : int[] = prim::CallFunction(%f.1, %l.1, %x.1)
  %h.1 : int = script::hash.t(%x.1)
  prim::warn(%x.1)
  return ()
""",
        "",
        0,
    ),
    "what raises": (
        """\
graph(%s.1 : str, %l.1 : int[], %k.1 : Tensor):
  %a.1 : int, %b.1 : int = prim::ListUnpack(%l.1)
  %d.1 : Dict(Tensor, str) = prim::DictConstruct(%k.1, %s.1)
  prim::RaiseException[class="builtins.ValueError"](%s.1)
  return ()
""",
        "",
        0,
    ),
    "code of which nothing is known": (
        """\
graph(%c.1 : __torch__.passes.Cell, %g.1 : __torch__.passes.Giver, %l.1 : int[]):
  %a.1 : int[] = prim::CallMethod[name="give"](%c.1, %l.1)
  %b.1 : int[] = prim::CallInterface[name="give"](%g.1, %l.1)
  prim::PythonOp[name="f", object=object(0)](%l.1)
  return ()
""",
        "",
        0,
    ),
    "a manager is entered and left, and what the block gives stays": (
        """\
graph(%m.1 : PyObject, %x.1 : int):
  %y.1 : int = prim::With(%m.1)
    block0(%e.1 : Any):
      %z.1 : int = script::invert.int(%x.1)
      %w.1 : int = script::invert.int(%z.1)
      -> (%z.1)
  return ()
""",
        """\
graph(%m.1 : PyObject, %x.1 : int):
  %y.1 : int = prim::With(%m.1)
    block0(%e.1 : Any):
      %z.1 : int = script::invert.int(%x.1)
      -> (%z.1)
  return ()
""",
        1,
    ),
    "forks whose bodies have effects in blocks": (
        """\
graph(%c.1 : bool, %n.1 : int):
  %f.1 : Future(NoneType) = prim::fork_0(%c.1)
  %g.1 : Future(NoneType) = prim::fork_1(%c.1, %n.1)
  return ()
with prim::fork_0 = graph(%c.1 : bool):
  prim::If(%c.1)
    block0():
      prim::Print(%c.1)
      -> ()
    block1():
      -> ()
  return ()
with prim::fork_1 = graph(%c.1 : bool, %n.1 : int):
  prim::Loop(%n.1, %c.1)
    block0(%i.1 : int):
      prim::warn(%n.1)
      -> (%c.1)
  return ()
""",
        "",
        0,
    ),
    "a closure that is forked": (
        """\
graph(%x.1 : int):
  %f.1 : Function = prim::Closure()
    block0():
      prim::Print(%x.1)
      -> (%x.1)
  %g.1 : Future(int) = prim::forkClosure(%f.1)
  return ()
""",
        "",
        0,
    ),
    "a branch with an effect stays, and its outputs go": (
        """\
graph(%c.1 : bool, %x.1 : int):
  %y.1 : int, %z.1 : int = prim::If(%c.1)
    block0():
      prim::Print(%x.1)
      %a.1 : int = script::invert.int(%x.1)
      -> (%a.1, %x.1)
    block1():
      %b.1 : int = script::invert.int(%x.1)
      -> (%b.1, %b.1)
  return (%z.1)
""",
        """\
graph(%c.1 : bool, %x.1 : int):
  %z.1 : int = prim::If(%c.1)
    block0():
      prim::Print(%x.1)
      -> (%x.1)
    block1():
      %b.1 : int = script::invert.int(%x.1)
      -> (%b.1)
  return (%z.1)
""",
        2,
    ),
    "a branch without an effect goes": (
        """\
graph(%c.1 : bool, %x.1 : int):
  %y.1 : int = prim::If(%c.1)
    block0():
      %a.1 : int = script::invert.int(%x.1)
      -> (%a.1)
    block1():
      -> (%x.1)
  return (%x.1)
""",
        """\
graph(%c.1 : bool, %x.1 : int):
  return (%x.1)
""",
        2,
    ),
    "what is carried for nobody goes, and what feeds another stays": (
        """\
graph(%n.1 : int, %c.1 : bool, %x.1 : int):
  %a.1 : int, %b.1 : int, %d.1 : int = prim::Loop(%n.1, %c.1, %x.1, %x.1, %x.1)
    block0(%i.1 : int, %p.1 : int, %q.1 : int, %r.1 : int):
      %s.1 : int = script::invert.int(%q.1)
      %t.1 : int = script::and_.int(%r.1, %r.1)
      -> (%c.1, %s.1, %i.1, %t.1)
  return (%a.1)
""",
        """\
graph(%n.1 : int, %c.1 : bool, %x.1 : int):
  %a.1 : int, %b.1 : int = prim::Loop(%n.1, %c.1, %x.1, %x.1)
    block0(%i.1 : int, %p.1 : int, %q.1 : int):
      %s.1 : int = script::invert.int(%q.1)
      -> (%c.1, %s.1, %i.1)
  return (%a.1)
""",
        2,
    ),
    "a write that a later trip reads": (
        """\
graph(%n.1 : int, %c.1 : bool):
  %l.1 : int[] = prim::ListConstruct(%n.1)
  %a.1 : int = prim::Loop(%n.1, %c.1, %n.1)
    block0(%i.1 : int, %p.1 : int):
      %s.1 : int = script::len.t(%l.1)
      script::append.t(%l.1, %i.1)
      -> (%c.1, %s.1)
  return (%a.1)
""",
        "",
        0,
    ),
    "a loop that ends by its condition alone": (
        """\
graph(%c.1 : bool):
  %n.1 : int = prim::Constant[value=9223372036854775807]()
  prim::Loop(%n.1, %c.1)
    block0(%i.1 : int):
      -> (%c.1)
  return ()
""",
        "",
        0,
    ),
    "a loop that ends": (
        """\
graph(%c.1 : bool, %n.1 : int):
  prim::Loop(%n.1, %c.1)
    block0(%i.1 : int):
      %x.1 : int = script::invert.int(%i.1)
      -> (%c.1)
  return ()
""",
        """\
graph(%c.1 : bool, %n.1 : int):
  return ()
""",
        2,
    ),
    "a fork whose body prints, and one whose body only raises": (
        """\
graph(%x.1 : int):
  %f.1 : Future(int) = prim::fork_0(%x.1)
  %g.1 : Future(int) = prim::fork_1(%x.1)
  return ()
with prim::fork_0 = graph(%x.1 : int):
  prim::Print(%x.1)
  return (%x.1)
with prim::fork_1 = graph(%x.1 : int):
  %y.1 : int = script::floordiv.int(%x.1, %x.1)
  return (%y.1)
""",
        """\
graph(%x.1 : int):
  %f.1 : Future(int) = prim::fork_0(%x.1)
  return ()
with prim::fork_0 = graph(%x.1 : int):
  prim::Print(%x.1)
  return (%x.1)
""",
        1,
    ),
    "a fork whose body writes to what it is given": (
        """\
graph(%x.1 : int[], %y.1 : int):
  %f.1 : Future(int) = prim::fork_0(%x.1, %y.1)
  return ()
with prim::fork_0 = graph(%x.1 : int[], %y.1 : int):
  script::append.t(%x.1, %y.1)
  return (%y.1)
""",
        "",
        0,
    ),
    "a fork whose body writes to a list of its own": (
        """\
graph(%y.1 : int):
  %f.1 : Future(int) = prim::fork_0(%y.1)
  return ()
with prim::fork_0 = graph(%y.1 : int):
  %x.1 : int[] = prim::ListConstruct(%y.1)
  script::append.t(%x.1, %y.1)
  return (%y.1)
""",
        """\
graph(%y.1 : int):
  return ()
""",
        1,
    ),
    "an await that nobody waits for, and then what it alone had": (
        """\
graph(%y.1 : int):
  %l.1 : int[] = prim::ListConstruct(%y.1)
  script::append.t(%l.1, %y.1)
  %f.1 : Await(int) = prim::awaitable_0(%l.1, %y.1)
  return ()
with prim::awaitable_0 = graph(%l.1 : int[], %y.1 : int):
  prim::Print(%l.1)
  return (%y.1)
""",
        """\
graph(%y.1 : int):
  return ()
""",
        3,
    ),
    "a wait": (
        """\
graph(%f.1 : Future(int), %g.1 : Await(int)):
  %x.1 : int = prim::wait(%f.1)
  %y.1 : int = prim::awaitable_wait(%g.1)
  return ()
""",
        "",
        0,
    ),
    "an object that nobody sees, and one that is handed in": (
        """\
graph(%c.1 : __torch__.passes.Cell, %n.1 : int):
  %d.1 : __torch__.passes.Cell = prim::CreateObject()
  prim::SetAttr[name="count"](%d.1, %n.1)
  prim::SetAttr[name="count"](%c.1, %n.1)
  return ()
""",
        """\
graph(%c.1 : __torch__.passes.Cell, %n.1 : int):
  prim::SetAttr[name="count"](%c.1, %n.1)
  return ()
""",
        2,
    ),
    "a closure as a whole": (
        """\
graph(%x.1 : int):
  %f.1 : Function = prim::Closure()
    block0():
      prim::Print(%x.1)
      -> (%x.1)
  %g.1 : Function = prim::Closure()
    block0():
      %y.1 : int = script::invert.int(%x.1)
      -> (%x.1)
  %h.1 : Future(int) = prim::forkClosure(%g.1)
  return (%h.1)
""",
        """\
graph(%x.1 : int):
  %g.1 : Function = prim::Closure()
    block0():
      %y.1 : int = script::invert.int(%x.1)
      -> (%x.1)
  %h.1 : Future(int) = prim::forkClosure(%g.1)
  return (%h.1)
""",
        2,
    ),
}


@pytest.mark.spec("script 6.7", "dead code")
@pytest.mark.parametrize("case", CASES)
def test_dead_code(case: str) -> None:
    before, after, count = CASES[case]
    assert changed(remove_dead_code, before) == (after or before, count)


def test_numbers_are_drawn() -> None:
    text = """\
graph(%x.1 : Tensor):
  %n.1 : ScalarType? = prim::Constant[value=None]()
  %d.1 : Device? = prim::Constant[value=None]()
  %m.1 : MemoryFormat? = prim::Constant[value=None]()
  %a.1 : Tensor = core::rand_like(%x.1, %n.1, %d.1, %m.1)
  return ()
"""
    assert changed(remove_dead_code, text) == (text, 0)
