"""Options: what can be chosen, and what a plan does then."""

import sys
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.errors.tensor import WrongOption
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.script.executor import (
    ExecutorOptions,
    call,
    executor,
    executor_options,
    plan_of,
    run,
    set_executor,
)
from everyorder.runtime.script.ir import Graph, graph_text
from everyorder.runtime.script.ir.program import Function
from tests.coded import code
from tests.script.executor.written import written

ADD = "  %m : int = script::add.int(%n, %n)\n  return (%m)\n"


def is_text(function: Any) -> bool:
    return getattr(function.memo["plan"].execute, "__name__", "") == "execute"


def test_options_are_a_value_that_is_replaced() -> None:
    before = executor_options()
    assert set_executor(optimize=False, threads=3) is before
    try:
        assert executor_options() == ExecutorOptions(optimize=False, threads=3)
        assert set_executor(optimize=False) is executor_options()
    finally:
        set_executor(before)
    assert executor_options() == before


def test_options_for_a_while() -> None:
    before = executor_options()
    with executor(text_after=None) as chosen:
        assert chosen.text_after is None
        assert executor_options() is chosen
    assert executor_options() is before
    with pytest.raises(KeyError), executor(optimize=False):
        raise KeyError
    assert executor_options() is before


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("optimize", 1, "was given 1.\n  it takes: True or False"),
        ("fuse", None, "was given None.\n  it takes: True or False"),
        ("threads", 0, "was given 0.\n  it takes: a number of threads, from 1 on"),
        ("fuse_after", -1, "was given -1.\n  it takes: a number of runs"),
        ("fuse_after", True, "was given True.\n  it takes: a number of runs"),
        (
            "text_after",
            "a",
            "was given 'a'.\n  it takes: a number of runs, or None for never",
        ),
        (
            "speed",
            9,
            "does not exist.\n"
            "  it takes: optimize, text_after, fuse, fuse_after and threads",
        ),
    ],
)
def test_options_that_are_refused(option: str, value: Any, error: str) -> None:
    before = executor_options()
    with pytest.raises(WrongOption, check=code("ExecutorRefused")) as caught:
        set_executor(**{option: value})
    assert str(caught.value).endswith(error)
    assert executor_options() is before


def test_text_after_so_many_runs() -> None:
    function = written("f(int n) -> int", ADD)
    with executor(text_after=3):
        for runs in range(5):
            assert call(function, (2,)) == 4
            assert is_text(function) is (runs >= 2)
    with executor(text_after=None):
        for _ in range(5):
            assert call(function, (2,)) == 4
        assert not is_text(function)


@pytest.mark.parametrize("one", ["1", '"a"', "None", "2.5"])
@pytest.mark.parametrize("name", ["is_", "is_not"])
def test_text_that_python_would_warn_of(name: str, one: str) -> None:
    kind = {"1": "int", '"a"': "str", "None": "NoneType", "2.5": "float"}[one]
    function = written(
        "f(int n) -> bool",
        f"""\
  %one : {kind} = prim::Constant[value={one}]()
  %is : bool = script::{name}.t(%one, %n)
  return (%is)
""",
    )
    with executor(text_after=0, optimize=False):
        assert call(function, (7,)) is (name == "is_not")
        assert is_text(function)


def test_recursion_is_as_deep_the_first_time_as_ever() -> None:
    known = Function("f", parse_schema("f(int n) -> int"), Graph())
    function = written(
        "down(int n) -> int",
        """\
  %f : Function = prim::Constant[function="f"]()
  %zero : int = prim::Constant[value=0]()
  %one : int = prim::Constant[value=1]()
  %more : bool = script::gt.int(%n, %zero)
  %r : int = prim::If(%more)
    block0():
      %m : int = script::sub.int(%n, %one)
      %d : int = prim::CallFunction(%f, %m)
      %s : int = script::add.int(%d, %one)
      -> (%s)
    block1():
      -> (%zero)
  return (%r)
""",
        functions={"f": known},
    )
    for node in function.graph.nodes():
        if "function" in node.attributes:
            node.attributes["function"] = function
    deep = sys.getrecursionlimit() // 2
    with executor(text_after=600):
        assert call(function, (deep,)) == deep


def test_trips_of_loops_count_as_runs() -> None:
    function = written(
        "f(int n) -> int",
        "  %yes : bool = prim::Constant[value=True]()\n"
        "  prim::Loop(%n, %yes)\n"
        "    block0(%i : int):\n      -> (%yes)\n  return (%n)\n",
    )
    with executor(text_after=100, optimize=False):
        call(function, (50,))
        assert not is_text(function)
        call(function, (50,))
        assert is_text(function)


def calls_of(action: Callable[[], object]) -> tuple[int, int]:
    """The calls of Python that an action makes, and in how many files."""
    files: Counter[str] = Counter()

    def called(frame: Any, event: str, _: object) -> None:
        if event == "call":
            files[frame.f_code.co_filename] += 1

    sys.setprofile(called)
    try:
        action()
    finally:
        sys.setprofile(None)
    return files.total(), len(files)


def test_a_function_is_laid_out_again_once() -> None:
    """The first runs show the shapes; the layout for them is that of all later runs."""
    add = "  %r : Tensor = core::add(%x, %x, %one)\n  return (%r)\n"
    one = "  %one : int = prim::Constant[value=1]()\n"
    x = runtime.ones(3)

    def runs_of(function: Function) -> list[tuple[int, int]]:
        with executor(fuse=True, fuse_after=1, text_after=2):
            return [calls_of(lambda: call(function, (x,))) for _ in range(8)]

    # What all functions share is imported by the first one.
    runs_of(written("f(Tensor x) -> Tensor", one + add))
    runs = runs_of(written("f(Tensor x) -> Tensor", one + add))
    assert runs[1][0] > 10 * runs[3][0]
    assert {*runs[3:]} == {runs[3]}
    # The function, its generated code, the operator's, and this file among them.
    assert runs[3][1] <= 16


def test_what_is_nested_too_deeply_stays_on_registers() -> None:
    depth = 25
    lines = ["  %yes : bool = prim::Constant[value=True]()"]
    lines.append("  %one : int = prim::Constant[value=1]()")
    for each in range(depth):
        margin = "  " * (2 * each + 1)
        lines.append(f"{margin}prim::Loop(%one, %yes)")
        lines.append(f"{margin}  block0(%i{each} : int):")
    lines.append("  " * (2 * depth + 1) + "prim::Print(%n)")
    lines += ["  " * (2 * each + 3) + "-> (%yes)" for each in reversed(range(depth))]
    function = written("f(int n) -> int", "\n".join([*lines, "  return (%n)\n"]))
    # Passes would know that each loop has one trip.
    with executor(text_after=0, optimize=False):
        assert call(function, (5,)) == 5
        assert not is_text(function)


def test_branches_may_be_nested_as_deeply_as_text_is_indented() -> None:
    depth = 120
    lines = []
    for each in range(depth):
        margin = "  " * (2 * each + 1)
        lines.append(f"{margin}prim::If(%b)")
        lines.append(f"{margin}  block0():")
    lines.append("  " * (2 * depth + 1) + "prim::Print()")
    for each in reversed(range(depth)):
        margin = "  " * (2 * each + 3)
        lines += [f"{margin}-> ()", f"{margin[:-2]}block1():", f"{margin}-> ()"]
    function = written("f(bool b) -> bool", "\n".join([*lines, "  return (%b)\n"]))
    with executor(text_after=0, optimize=False):
        assert call(function, (True,)) is True
        assert not is_text(function)


def test_a_plan_of_a_graph_is_whoever_asks_for_its_own() -> None:
    function = written("f(int n) -> int", ADD)
    plan = plan_of(function.graph, "mine")
    assert plan.execute(3) == 6
    assert function.memo == {}
    assert run(function, (3,)) == 6


def test_the_graph_of_a_function_stays_as_it_was() -> None:
    function = written(
        "f() -> int",
        "  %a : int = prim::Constant[value=2]()\n"
        "  %b : int = script::add.int(%a, %a)\n  return (%b)\n",
    )
    before = graph_text(function.graph)
    with executor(optimize=True):
        assert call(function) == 4
        assert function.memo["plan"].frame[0].layout.steps == []
    assert graph_text(function.graph) == before
