"""What functions of programs give: every kind of node."""

from typing import Any

import pytest

from runtime.script.running import call, run
from tests.script.running.written import written

COLLATZ = """\
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %two : int = prim::Constant[value=2]()
  %three : int = prim::Constant[value=3]()
  %most : int = prim::Constant[value=9223372036854775807]()
  %go : bool = script::ne.int(%n, %one)
  %c : int, %m : int = prim::Loop(%most, %go, %zero, %n)
    block0(%i : int, %count : int, %x : int):
      %r : int = script::mod.int(%x, %two)
      %even : bool = script::eq.int(%r, %zero)
      %y : int = prim::If(%even)
        block0():
          %h : int = script::floordiv.int(%x, %two)
          -> (%h)
        block1():
          %t : int = script::mul.int(%x, %three)
          %u : int = script::add.int(%t, %one)
          -> (%u)
      %k : int = script::add.int(%count, %one)
      %again : bool = script::ne.int(%y, %one)
      -> (%again, %k, %y)
  return (%c)
"""


def test_loops_and_branches() -> None:
    collatz = written("collatz(int n) -> int", COLLATZ)
    assert [call(collatz, (each,)) for each in (1, 2, 3, 7, 27)] == [0, 1, 7, 16, 111]
    assert run(collatz, [27]) == 111


def test_what_is_carried_is_moved_at_once() -> None:
    swap = written(
        "swap(int n, str a, str b) -> (str, str)",
        """\
  %yes : bool = prim::Constant[value=True]()
  %c : str, %d : str = prim::Loop(%n, %yes, %a, %b)
    block0(%i : int, %x : str, %y : str):
      -> (%yes, %y, %x)
  %both : (str, str) = prim::TupleConstruct(%c, %d)
  return (%both)
""",
    )
    assert call(swap, (2, "a", "b")) == ("a", "b")
    assert call(swap, (3, "a", "b")) == ("b", "a")


@pytest.mark.parametrize(("trips", "going", "result"), [(0, True, 0), (3, False, 0)])
def test_loops_without_trips(trips: int, going: bool, result: Any) -> None:
    loop = written(
        "loop(int n, bool go) -> int",
        """\
  %zero : int = prim::Constant[value=0]()
  %c : int = prim::Loop(%n, %go, %zero)
    block0(%i : int, %x : int):
      -> (%go, %i)
  return (%c)
""",
    )
    assert call(loop, (trips, going)) == result
    assert call(loop, (3, True)) == 2
