"""Warnings: collected while a program runs, raised once when it is done."""

import threading
import warnings
from typing import Any

import pytest

from everyorder.runtime.script.executor import call, fork_pool, run
from everyorder.runtime.script.executor.python_interop import ProgramRun
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

SOURCE = "def f(n):\n    for i in range(n):\n        warn('careful')\n    return n\n"
LOOP = """\
  %yes : bool = prim::Constant[value=True]()
  %text : str = prim::Constant[value="careful"]()
  prim::Loop(%n, %yes)
    block0(%i : int):
      prim::warn(%text) # p.py:3:9
      prim::Print(%i)
      -> (%yes)
  return (%n)
"""


def warning() -> Any:
    return written("f(int n) -> int", LOOP, source=SOURCE)


@pytest.mark.spec("boundary", "the warnings of programs within it are collected")
def test_a_node_warns_once_in_a_run_when_all_is_done(
    capsys: pytest.CaptureFixture[str],
) -> None:
    function = warning()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call(function, (3,)) == 3
        assert call(function, (2,)) == 2
    assert [(str(w.message), w.category, w.filename, w.lineno) for w in caught] == [
        ("careful", UserWarning, "p.py", 3)
    ] * 2
    assert capsys.readouterr().out == "0\n1\n2\n0\n1\n"


@pytest.mark.spec("script 0.17", "errors and warnings")
def test_a_filter_turns_a_warning_into_the_error_of_the_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="careful"):
            call(warning(), (2,))
    # It ran to its end.
    assert capsys.readouterr().out == "0\n1\n"


def failing() -> Any:
    return written(
        "f(int n) -> int",
        """\
  %one : str = prim::Constant[value="one"]()
  %two : str = prim::Constant[value="two"]()
  prim::warn(%one)
  prim::warn(%two)
  prim::RaiseException[class="builtins.KeyError"](%one)
  return (%n)
""",
    )


@pytest.mark.spec("script 0.17", "errors and warnings")
@pytest.mark.parametrize("action", ["always", "error"])
def test_an_error_on_its_way_stays_and_all_warnings_are_told(action: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter(action)
        with pytest.raises(KeyError, match="one"):
            call(failing(), (2,))
    told = [str(each.message) for each in caught]
    assert told == (["one", "two"] if action == "always" else [])


def test_without_a_run_a_warning_is_raised_at_once() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(UserWarning, match="one"):
            run(failing(), [1])


def test_calls_within_a_run_belong_to_it() -> None:
    function = warning()
    python = written(
        "py(int n) -> int",
        """\
  %a : int = prim::PythonOp[name="f", object=object(0)](%n)
  %b : int = prim::PythonOp[name="f", object=object(0)](%n)
  return (%b)
""",
        objects=[lambda n: call(function, (n,))],
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call(python, (1,)) == 1
    assert len(caught) == 1


FORKS = """\
  %fut : Future(int) = prim::fork_0(%n)
  %r : int = prim::wait(%fut)
  return (%r)
with prim::fork_0 = graph(%m : int):
  %text : str = prim::Constant[value="forked"]()
  prim::warn(%text)
  return (%m)
"""


def test_tasks_warn_in_the_run_that_forked_them() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert call(written("f(int n) -> int", FORKS), (1,)) == 1
    assert [str(each.message) for each in caught] == ["forked"]


def test_what_a_task_warns_of_after_the_run_is_raised_at_once() -> None:
    held = threading.Event()
    slow = written(
        "f(int n) -> Future(int)",
        """\
  %fut : Future(int) = prim::fork_0(%n)
  return (%fut)
with prim::fork_0 = graph(%m : int):
  prim::PythonOp[name="hold", object=object(0)]()
  %text : str = prim::Constant[value="late"]()
  prim::warn(%text)
  return (%m)
""",
        objects=[held.wait],
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        future = call(slow, (1,))
        assert caught == []
        held.set()
        assert future.wait() == 1
    assert [str(each.message) for each in caught] == ["late"]
    assert fork_pool.size >= 0


class EndsMeanwhile(ProgramRun):
    """A run that ends in the moment in which a task asks whether it is over."""

    ended = False

    @property
    def is_over(self) -> bool:
        if not self.ended:
            self.finish(False)
        return self.ended

    @is_over.setter
    def is_over(self, ended: bool) -> None:
        self.ended = ended


def test_a_warning_at_the_end_of_the_run_is_raised_once() -> None:
    (node,) = (each for each in warning().graph.block if each.kind == "prim::Loop")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EndsMeanwhile().warn("just now", node)
    assert [str(each.message) for each in caught] == ["just now"]
