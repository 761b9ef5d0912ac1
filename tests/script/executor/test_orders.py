"""Operators in every order: a program runs what is there, whatever was there before."""

from collections.abc import Callable, Iterable, Iterator
from itertools import product
from typing import Any

import pytest

from everyorder import runtime
from everyorder.runtime.dispatch.dispatcher import default_dispatcher
from everyorder.runtime.dispatch.handle import OperatorHandle
from everyorder.runtime.dispatch.library import Library
from everyorder.runtime.dispatch.registration import Registration
from everyorder.runtime.schema.signature import OperatorName
from everyorder.runtime.script.executor import call, executor
from everyorder.runtime.script.ir.program import Function
from everyorder.runtime.script.passes import check_passes
from tests.script.executor.conftest import EXECUTORS
from tests.script.executor.written import written

NAMESPACE = "run_orders"
SCHEMA = "scale(Tensor x, int n) -> Tensor"
LINES = f"""\
  %y : Tensor = {NAMESPACE}::scale(%x, %n)
  %one : int = prim::Constant[value=1]()
  %z : Tensor = core::add(%y, %x, %one)
  %m : int = script::add.int(%n, %n)
  %w : Tensor = core::mul(%z, %m)
  return (%w)
"""
NAME = OperatorName(f"{NAMESPACE}::scale")
X = runtime.tensor([2.0])


def program() -> Function:
    """A program that is compiled once, and outlives what it calls."""
    with Library(NAMESPACE, "FRAGMENT") as library:
        library.define(SCHEMA)
        return written("program(Tensor x, int n) -> Tensor", LINES)


def told(function: Callable[[], Any]) -> str:
    """What a call gives, or the class of what it raises."""
    try:
        return str(function().tolist())
    except Exception as error:
        return type(error).__name__


# What may be registered, beside each other, in any order.
STEPS: dict[str, Callable[[Library], Registration]] = {
    "define": lambda library: library.define(SCHEMA),
    "CPU": lambda library: library.impl("scale", lambda x, n: x * 10, "CPU"),
    "Autograd": lambda library: library.impl(
        "scale", lambda x, n: x * 100, "AutogradCPU"
    ),
    "any": lambda library: library.impl(
        "scale", lambda x, n: x * 1000, "CompositeExplicitAutograd"
    ),
}


def eager() -> Any:
    """What the program means, by calls of handles that are looked up each time."""
    y = OperatorHandle(default_dispatcher(), NAME)(X, 3)
    return (y + X) * 6


def stale_at(words: Iterable[tuple[str, ...]], perform: Callable[[], str]) -> list[Any]:
    """The words after which the program does not do what eager calls do.

    A word is steps that are done, or undone, one after the other; `use` is a call of
    the program in between, which may remember what it likes.
    """
    found = []
    for word in words:
        active: dict[str, Registration] = {}
        with Library(NAMESPACE, "FRAGMENT") as library:
            for each in word:
                if each == "use":
                    perform()
                elif each in active:
                    active.pop(each).close()
                else:
                    active[each] = STEPS[each](library)
            if perform() != told(eager):
                found.append(word)
    return found


def words(length: int) -> Iterable[tuple[str, ...]]:
    """All words of so many letters."""
    return product((*STEPS, "use"), repeat=length)


@pytest.fixture
def _unchecked() -> Iterator[None]:
    """No checker between passes: it refuses operators that are gone, in other words."""
    before = check_passes(False)
    yield
    check_passes(before)


@pytest.mark.usefixtures("_unchecked")
@pytest.mark.parametrize("kind", EXECUTORS)
def test_a_program_runs_what_is_registered(kind: str) -> None:
    with executor(**EXECUTORS[kind]):
        function = program()
        assert stale_at(words(4), lambda: told(lambda: call(function, (X, 3)))) == []


def test_a_program_that_kept_a_kernel_is_found_out() -> None:
    kept: dict[str, str] = {}

    def perform() -> str:
        return kept.setdefault("first", told(eager))

    assert len(stale_at(words(2), perform)) > 5
