"""Forks, awaits and closures, by both executors."""

from typing import Any

import pytest

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.futures import Await, Future, awaitable, awaitable_nowait
from everyorder.runtime.script.executor import ForkFuture, call
from tests.coded import code
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

FORK = """\
  %fut : Future(int) = prim::fork_0(%n)
  %r : int = prim::wait(%fut)
  return (%r)
with prim::fork_0 = graph(%m : int):
  %s : int = script::mul.int(%m, %m)
  return (%s)
"""


def test_forks() -> None:
    assert call(written("square(int n) -> int", FORK), (7,)) == 49
    future = call(
        written(
            "late(int n) -> Future(int)",
            FORK.replace(
                "  %r : int = prim::wait(%fut)\n  return (%r)", "  return (%fut)"
            ),
        ),
        (7,),
    )
    assert isinstance(future, ForkFuture)
    assert future.wait() == 49


def test_a_graph_of_several_results_gives_a_tuple() -> None:
    both = written(
        "both(int n) -> (int, int)",
        """\
  %fut : Future((int, int)) = prim::fork_0(%n)
  %r : (int, int) = prim::wait(%fut)
  return (%r)
with prim::fork_0 = graph(%m : int):
  return (%m, %m)
""",
    )
    nothing = written(
        "nothing() -> None",
        """\
  %fut : Future(None) = prim::fork_0()
  %r : None = prim::wait(%fut)
  return (%r)
with prim::fork_0 = graph():
  return ()
""",
    )
    assert call(both, (3,)) == (3, 3)
    assert call(nothing) is None


@pytest.mark.spec("futures 1.8", "the boundary of scripts")
@pytest.mark.spec("futures 10", "D3 an await of a script is not complete before it ran")
@pytest.mark.spec("script 0.22", "closures that run at the wait")
def test_awaits_run_when_they_are_waited_for(
    capsys: pytest.CaptureFixture[str],
) -> None:
    later = written(
        "later(int n) -> Await(int)",
        """\
  %aw : Await(int) = prim::awaitable_0(%n)
  return (%aw)
with prim::awaitable_0 = graph(%m : int):
  %text : str = prim::Constant[value="running"]()
  prim::Print(%text, %m)
  return (%m)
""",
    )
    wait = written(
        "wait(Await(int) a) -> int",
        "  %r : int = prim::awaitable_wait(%a)\n  return (%r)\n",
    )
    made = call(later, (3,))
    assert isinstance(made, Await)
    assert (made.args(), made.is_nowait()) == ((3,), False)
    assert capsys.readouterr().out == ""
    assert call(wait, (made,)) == 3
    assert call(wait, (made,)) == 3
    assert capsys.readouterr().out == "running 3\n"


def test_an_await_of_a_value() -> None:
    now = written(
        "now(int n) -> Await(int)",
        "  %a : Await(int) = prim::awaitable_nowait(%n)\n  return (%a)\n",
    )
    made = call(now, (3,))
    assert (made.is_nowait(), made.wait()) == (True, 3)


def test_closures_capture_what_they_use() -> None:
    closed = written(
        "closed(int n, int m) -> (int, int)",
        """\
  %f : Function = prim::Closure()
    block0():
      %yes : bool = prim::Constant[value=True]()
      %s : int = prim::Loop(%m, %yes, %n)
        block0(%i : int, %x : int):
          %y : int = script::add.int(%x, %n)
          -> (%yes, %y)
      -> (%s)
  %fut : Future(int) = prim::forkClosure(%f)
  %aw : Await(int) = prim::awaitableClosure(%f)
  %a : int = prim::wait(%fut)
  %b : int = prim::awaitable_wait(%aw)
  %r : (int, int) = prim::TupleConstruct(%a, %b)
  return (%r)
""",
    )
    assert call(closed, (2, 3)) == (8, 8)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (
            awaitable_nowait("a"),
            "An await returned a str, expected `int`.\n  value: 'a'",
        ),
        (
            awaitable(lambda: None),
            "An await returned None, expected `int`.\n  value: None",
        ),
    ],
)
def test_what_an_await_of_python_gives_is_looked_at(
    given: Await[Any], error: str
) -> None:
    wait = written(
        "wait(Await(int) a) -> int",
        "  %r : int = prim::awaitable_wait(%a)\n  return (%r)\n",
    )
    with pytest.raises(RunningError, check=code("NotOfType")) as caught:
        call(wait, (given,))
    assert str(caught.value) == error


def test_what_a_future_of_python_gives_is_looked_at() -> None:
    wait = written(
        "wait(Future(int) a) -> int",
        "  %r : int = prim::wait(%a)\n  return (%r)\n",
    )
    given: Future[Any] = Future()
    given.set_result(2)
    assert call(wait, (given,)) == 2
    given = Future()
    given.set_result("a")
    with pytest.raises(
        RunningError,
        check=code("NotOfType"),
        match="A future returned a str, expected `int`",
    ):
        call(wait, (given,))
    given = Future()
    given.set_exception(KeyError("k"))
    with pytest.raises(KeyError, match="k"):
        call(wait, (given,))
