"""Backtraces: the frames of the program on what it raises."""

import gc
import pickle
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

from everyorder.runtime.errors.script import RunningError
from everyorder.runtime.futures import Future
from everyorder.runtime.schema.parser import parse_schema
from everyorder.runtime.script.executor import (
    Frame,
    call,
    fork_pool,
    run,
    script_frames,
)
from everyorder.runtime.script.executor.python_interop import exception
from everyorder.runtime.script.ir import Graph
from everyorder.runtime.script.ir.program import Function
from tests.coded import code, coded, kind_of
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

SOURCE = """\
def inner(n: int) -> int:
    return 1 // n


def outer(n: int) -> int:
    return inner(n)
"""
INNER = """\
  %one : int = prim::Constant[value=1]()
  %r : int = script::floordiv.int(%one, %n) # p.py:2:12
  return (%r)
"""
OUTER = """\
  %f : Function = prim::Constant[function="inner"]()
  %r : int = prim::CallFunction(%f, %n) # p.py:6:12
  return (%r)
"""


def inner() -> Function:
    return written("inner(int n) -> int", INNER, source=SOURCE)


def outer() -> Function:
    return written(
        "outer(int n) -> int", OUTER, functions={"inner": inner()}, source=SOURCE
    )


@pytest.mark.spec("script 0.17", "errors and warnings")
@pytest.mark.spec("script 6.8", "exceptions")
@pytest.mark.spec(
    "boundary",
    "an exception that leaves a program is the very object that was raised within",
)
def test_an_operator_raises_its_own_exception_with_a_note() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        call(outer(), (0,))
    assert caught.value.__notes__ == [
        """\
Traceback of the program (most recent call last):
  File "p.py", line 6, in outer
    return inner(n)
           ~ <--- HERE
  File "p.py", line 2, in inner
    return 1 // n
           ~ <--- HERE"""
    ]
    frames = script_frames(caught.value)
    assert [each.function for each in frames] == ["outer", "inner"]
    assert [
        each.place and each.place.source.place(each.place.span[0]) for each in frames
    ] == [
        (6, 12),
        (2, 12),
    ]


@pytest.mark.spec("script 6.9", "while it runs")
def test_run_leaves_frames_and_no_note() -> None:
    with pytest.raises(ZeroDivisionError) as caught:
        run(inner(), [0])
    assert [each.function for each in script_frames(caught.value)] == ["inner"]
    assert not hasattr(caught.value, "__notes__")


def test_a_frame_without_a_place() -> None:
    assert Frame("f", None).render() == "  in f"
    fails = written("fails(int n) -> int", INNER.replace(" # p.py:2:12", ""))
    with pytest.raises(ZeroDivisionError) as caught:
        call(fails, (0,))
    assert caught.value.__notes__ == [
        "Traceback of the program (most recent call last):\n  in fails"
    ]


class Refused(Exception):
    """An exception of a program."""


class Picky(Exception):
    """An exception that takes two arguments."""

    def __init__(self, one: object, other: object) -> None:
        super().__init__(one, other)


HERE = __name__
ScriptRaised = coded(RunningError, "ScriptRaised")


@pytest.mark.spec("script 0.17", "errors and warnings")
@pytest.mark.spec("script 6.8", "exceptions")
@pytest.mark.parametrize(
    ("kind", "raised", "text"),
    [
        ("builtins.ValueError", ValueError, "no"),
        ("ValueError", ValueError, "no"),
        (f"{HERE}.Refused", Refused, "no"),
        (f"{HERE}.Picky", ScriptRaised, f"{HERE}.Picky: no"),
        (f"{HERE}.Missing", ScriptRaised, f"{HERE}.Missing: no"),
        ("builtins.int", ScriptRaised, "builtins.int: no"),
        (
            "builtins.KeyboardInterrupt",
            ScriptRaised,
            "builtins.KeyboardInterrupt: no",
        ),
        (
            "nowhere.to.be.Found",
            ScriptRaised,
            "nowhere.to.be.Found: no",
        ),
        ("", ScriptRaised, "Exception: no"),
    ],
)
def test_a_program_raises_the_class_that_it_names(
    kind: str, raised: type[Exception], text: str
) -> None:
    fails = written(
        "fails() -> None",
        f"""\
  %text : str = prim::Constant[value="no"]()
  prim::RaiseException[class="{kind}"](%text)
  %none : None = prim::Constant[value=None]()
  return (%none)
""",
    )
    with pytest.raises(raised) as caught:
        call(fails)
    assert (kind_of(caught.value), str(caught.value)) == (raised, text)


def test_no_module_is_asked_for_what_it_does_not_have_yet(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A module that loads others when it is asked would, because a program says so."""
    asked: list[str] = []

    def find(name: str) -> Any:
        asked.append(name)
        return Refused

    lazy: Any = ModuleType("lazy_module")
    lazy.__getattr__, lazy.Here = find, Refused
    monkeypatch.setitem(sys.modules, "lazy_module", lazy)
    raised = [
        kind_of(exception(f"lazy_module.{name}", "no"))
        for name in ("Here", "There", "sub.There", "find.__globals__.Refused")
    ]
    assert (raised, asked) == (
        [Refused, *[ScriptRaised] * 3],
        [],
    )


def test_an_error_of_this_area_crosses_processes() -> None:
    error = RunningError(code="ScriptRaised", kind="a.B", message="c")
    error.add_note("n")
    again = pickle.loads(pickle.dumps(error))
    assert (again.fields(), again.__notes__) == (error.fields(), ["n"])


FORKED = """\
  %fut : Future(int) = prim::fork_0(%n) # p.py:5:5
  %r : int = prim::wait(%fut) # p.py:6:5
  return (%r)
with prim::fork_0 = graph(%m : int):
  %one : int = prim::Constant[value=1]()
  %s : int = script::floordiv.int(%one, %m) # p.py:2:12
  return (%s)
"""


def names(error: BaseException) -> list[str]:
    return [each.function for each in script_frames(error)]


@pytest.mark.spec("script 6.8", "errors of forks")
def test_frames_of_tasks_stay_below_those_of_who_waits() -> None:
    waits = written("waits(int n) -> int", FORKED, source=SOURCE)
    with pytest.raises(ZeroDivisionError) as caught:
        call(waits, (0,))
    assert names(caught.value) == ["waits", "<forked function>"]
    assert len(caught.value.__notes__) == 1


def test_everybody_who_waits_has_frames_of_its_own() -> None:
    late = FORKED.replace(
        "  %r : int = prim::wait(%fut) # p.py:6:5\n  return (%r)", "  return (%fut)"
    )
    future = call(written("late(int n) -> Future(int)", late, source=SOURCE), (0,))
    with pytest.raises(ZeroDivisionError) as caught:
        future.wait()
    assert names(caught.value) == ["<forked function>"]
    wait = "  %r : int = prim::wait(%fut)\n  return (%r)\n"
    for name in ("one", "other"):
        waits = written(f"{name}(Future(int) fut) -> int", wait)
        with pytest.raises(ZeroDivisionError) as caught:
            call(waits, (future,))
        assert names(caught.value) == [name, "<forked function>"]
        assert len(caught.value.__notes__) == 1
        assert f"in {name}" in caught.value.__notes__[0]


def test_an_await_tells_where_it_failed_and_who_waited() -> None:
    later = written(
        "later(int n) -> Await(int)",
        """\
  %aw : Await(int) = prim::awaitable_0(%n)
  return (%aw)
with prim::awaitable_0 = graph(%m : int):
  %one : int = prim::Constant[value=1]()
  %s : int = script::floordiv.int(%one, %m)
  return (%s)
""",
    )
    wait = written(
        "wait(Await(int) a) -> int",
        "  %r : int = prim::awaitable_wait(%a)\n  return (%r)\n",
    )
    made = call(later, (0,))
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            call(wait, (made,))
        assert names(caught.value) == ["wait", "<awaitable function>"]


def test_a_task_of_python_has_no_frames_of_its_own() -> None:
    wait = written(
        "wait(Future(int) fut) -> int", "  %r : int = prim::wait(%fut)\n  return (%r)\n"
    )
    future = fork_pool.fork(lambda: 1 // 0)
    for _ in range(2):
        with pytest.raises(ZeroDivisionError) as caught:
            call(wait, (future,))
        assert names(caught.value) == ["wait"]


def test_an_error_of_a_future_of_python_keeps_its_class() -> None:
    wait = written(
        "wait(Future(int) fut) -> int", "  %r : int = prim::wait(%fut)\n  return (%r)\n"
    )
    future: Future[Any] = Future()
    future.set_exception(LookupError("gone"))
    with pytest.raises(LookupError) as caught:
        call(wait, (future,))
    assert names(caught.value) == ["wait"]


def endless() -> Function:
    known = Function("f", parse_schema("f(int n) -> int"), Graph())
    made = written(
        "endless(int n) -> int",
        """\
  %f : Function = prim::Constant[function="f"]()
  %r : int = prim::CallFunction(%f, %n)
  return (%r)
""",
        functions={"f": known},
    )
    for node in made.graph.nodes():
        if "function" in node.attributes:
            node.attributes["function"] = made
    return made


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing is collected at a depth that leaves finalizers no room to run."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("uncollected")
def test_recursion_without_end_is_a_clear_error() -> None:
    with pytest.raises(RunningError, check=code("TooDeep")) as caught:
        call(endless(), (1,))
    assert str(caught.value) == (
        "`endless` was called too deeply within other calls.\n"
        "  to do: end the recursion earlier, or make it a loop"
    )
    (note,) = caught.value.__notes__
    assert "more calls ..." in note
    assert len(note) < 2000


def test_an_exception_without_attributes_goes_as_it_is() -> None:
    class Bare(Exception):
        __slots__ = ()

        @property
        def __dict__(self) -> Any:  # type: ignore[override]  # that is the point
            raise AttributeError("none")

    def fail() -> None:
        raise Bare

    python = written(
        "py() -> None",
        """\
  prim::PythonOp[name="fail", object=object(0)]()
  %none : None = prim::Constant[value=None]()
  return (%none)
""",
        objects=[fail],
    )
    with pytest.raises(Bare):
        call(python)


def test_a_program_within_python_within_a_program() -> None:
    within = inner()
    python = written(
        "py(int n) -> int",
        '  %r : int = prim::PythonOp[name="in", object=object(0)](%n)\n  return (%r)\n',
        objects=[lambda n: call(within, (n,))],
    )
    with pytest.raises(ZeroDivisionError) as caught:
        call(python, (0,))
    assert names(caught.value) == ["py", "inner"]
    assert len(caught.value.__notes__) == 1
