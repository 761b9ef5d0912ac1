"""Lifetimes: a value goes right behind its last use."""

import gc
import sys
import threading
from typing import Any
from weakref import WeakSet

import pytest

from everyorder.runtime.script.executor import call, executor
from everyorder.runtime.script.executor.task_pool import ThreadState
from tests.script.executor.written import written

pytestmark = pytest.mark.usefixtures("executed")

ALIVE: "WeakSet[Thing]" = WeakSet()


class Thing:
    """A value that can be looked for."""

    def __init__(self) -> None:
        ALIVE.add(self)


SEEN: list[int] = []


def make() -> Thing:
    return Thing()


def use(thing: Any) -> None:
    assert isinstance(thing, Thing)


def look() -> None:
    SEEN.append(len(ALIVE))


def run(lines: str, *arguments: Any, schema: str = "f() -> None") -> list[int]:
    """How many things were alive at each look, and at the end."""
    SEEN.clear()
    gc.collect()
    assert not ALIVE
    words = {
        "MAKE": 'prim::PythonOp[name="make", object=object(0)]()',
        "USE": 'prim::PythonOp[name="use", object=object(1)]',
        "LOOK": 'prim::PythonOp[name="look", object=object(2)]()',
    }
    for word, line in words.items():
        lines = lines.replace(word, line)
    none = "  %none : None = prim::Constant[value=None]()\n  return (%none)\n"
    program = written(schema, lines + none, objects=[make, use, look])
    call(program, arguments)
    assert not ALIVE
    return SEEN.copy()


@pytest.mark.spec("script 0.19", "owners")
@pytest.mark.spec("boundary", "a value is released right after its last use")
def test_behind_the_last_use() -> None:
    assert run(
        """\
  %a : PyObject = MAKE
  %b : PyObject = MAKE
  LOOK
  USE(%a)
  LOOK
  USE(%b)
  LOOK
"""
    ) == [2, 1, 0]


def test_what_nobody_uses_goes_at_once() -> None:
    assert run("  %a : PyObject = MAKE\n  LOOK\n") == [0]


def test_what_a_block_uses_goes_behind_the_block() -> None:
    lines = """\
  %a : PyObject = MAKE
  %two : int = prim::Constant[value=2]()
  %yes : bool = prim::Constant[value=True]()
  prim::Loop(%two, %yes)
    block0(%i : int):
      USE(%a)
      LOOK
      -> (%yes)
  LOOK
"""
    # Unrolled, the last use is known.
    assert run(lines) in ([1, 1, 0], [1, 0, 0])


def test_what_is_carried_is_there_once() -> None:
    lines = """\
  %a : PyObject = MAKE
  %three : int = prim::Constant[value=3]()
  %yes : bool = prim::Constant[value=True]()
  %c : PyObject = prim::Loop(%three, %yes, %a)
    block0(%i : int, %x : PyObject):
      LOOK
      USE(%x)
      LOOK
      %y : PyObject = MAKE
      -> (%yes, %y)
  LOOK
  USE(%c)
  LOOK
"""
    # The first one is held by who carried it in, too.
    assert run(lines)[-2:] == [1, 0]
    assert max(SEEN) <= 2


def test_what_a_branch_gives() -> None:
    lines = """\
  %a : PyObject = prim::If(%b)
    block0():
      %x : PyObject = MAKE
      -> (%x)
    block1():
      %y : PyObject = MAKE
      USE(%y)
      -> (%y)
  LOOK
  USE(%a)
  LOOK
"""
    for given in (True, False):
        assert run(lines, given, schema="f(bool b) -> None") == [1, 0]


def test_an_exception_keeps_nothing_once_it_is_gone() -> None:
    program = written(
        "f() -> None",
        """\
  %a : PyObject = prim::PythonOp[name="make", object=object(0)]()
  %text : str = prim::Constant[value="no"]()
  prim::RaiseException[class="ValueError"](%text)
  prim::PythonOp[name="use", object=object(1)](%a)
  %none : None = prim::Constant[value=None]()
  return (%none)
""",
        objects=[make, use],
    )
    with pytest.raises(ValueError, match="no"):
        call(program)
    gc.collect()
    assert not ALIVE


def test_an_interrupt_at_any_line_leaves_nothing_behind() -> None:
    program = written(
        "f(int n) -> int",
        """\
  %yes : bool = prim::Constant[value=True]()
  %r : int = prim::Loop(%n, %yes, %n)
    block0(%i : int, %x : int):
      %fut : Future(int) = prim::fork_0(%x)
      %aw : Await(int) = prim::awaitable_0(%x)
      %y : int = prim::wait(%fut)
      %z : int = prim::awaitable_wait(%aw)
      %w : int = script::sub.int(%y, %z)
      -> (%yes, %w)
  return (%r)
with prim::fork_0 = graph(%m : int):
  return (%m)
with prim::awaitable_0 = graph(%m : int):
  return (%m)
""",
    )
    with executor(threads=1):
        assert call(program, (3,)) == 0
        here, interrupted = threading.get_ident(), 0
        state = ThreadState().copies
        for at in range(0, 600, 2):
            lines = 0

            def trace(frame: Any, event: str, argument: Any, at: int = at) -> Any:
                nonlocal lines
                if threading.get_ident() == here and "/script/" in (
                    frame.f_code.co_filename
                ):
                    lines += 1
                    if lines == at:
                        sys.settrace(None)
                        raise KeyboardInterrupt
                return trace

            before = sys.gettrace()
            sys.settrace(trace)
            try:
                call(program, (3,))
            except KeyboardInterrupt:
                interrupted += 1
            finally:
                sys.settrace(before)
            assert ThreadState().copies == state
            assert call(program, (3,)) == 0
    assert interrupted > 50
