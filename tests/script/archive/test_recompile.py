"""Texts compile back, and archives come back, to what does the same."""

from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from everyorder import runtime
from everyorder.runtime.errors.script import ProgramError
from everyorder.runtime.script.archive import code, code_of
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import check
from everyorder.runtime.script.ir.program import Function
from tests.script.archive.recompile import recompiled
from tests.script.archive.samples import later, loaded, loop, saved
from tests.script.emission.both import NAMES, Both, Outcome, outcome
from tests.script.emission.generated import Program
from tests.script.emission.generated_forms import NAMES as FORM_NAMES
from tests.script.emission.test_programs import PROGRAMS

Choose = Callable[[int], int]


def back(function: Function) -> list[Function]:
    """The function of the archive, and that of the text."""
    stored, compiled = loaded(saved(function)), recompiled(function)
    check(compiled.graph)
    assert saved(stored) == saved(function)
    return [function, stored, compiled]


def outcomes(functions: list[Function], arguments: Any) -> list[Outcome]:
    """What each does with the arguments."""
    return [
        outcome(lambda *given, each=each: call(each, given, {}), arguments)
        for each in functions
    ]


def differing(choose: Choose, *, compiled: bool = True) -> list[list[Outcome]]:
    """The calls of a generated program that differ.

    Without `compiled` only the archive counts: what compiles a text leaves some graphs
    broken in which a tuple is made behind a branch that raises.
    """
    program = Program(choose)
    ours = Both(program.text, FORM_NAMES).script["f"]
    functions = back(ours) if compiled else [ours, loaded(saved(ours))]
    found = [outcomes(functions, program.arguments()) for _ in range(2)]
    return [each for each in found if len({*each}) > 1]


@pytest.mark.parametrize("title", PROGRAMS)
def test_programs_do_the_same(title: str) -> None:
    source, calls = PROGRAMS[title]
    both = Both(source)
    functions: dict[str, list[Function]] = {}
    for written in calls:
        name, _, given_ = written.partition("(")
        arguments = eval(  # the list's own text
            f"({given_[:-1]},)" if given_ != ")" else "()", dict(NAMES)
        )
        if name not in functions:
            functions[name] = back(both.script[name])
        first, *others = outcomes(functions[name], arguments)
        assert others == [first, first], written


def test_generated_programs_do_the_same() -> None:
    for seed in range(6):
        assert differing(Random(seed).randrange) == [], seed


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(range(6, 156), marks=pytest.mark.slow, id="150"),
        pytest.param(range(156, 1156), marks=pytest.mark.nightly, id="1000"),
    ],
)
def test_many_generated_programs_come_back(seeds: range) -> None:
    for seed in seeds:
        assert differing(Random(seed).randrange, compiled=False) == [], seed


@settings(max_examples=4, deadline=None)
@given(st.data())
def test_programs_that_shrink_come_back(data: st.DataObject) -> None:
    chosen = differing(lambda most: data.draw(st.integers(0, most - 1)), compiled=False)
    assert chosen == []


def test_a_text_that_says_something_else_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    plain = code._FunctionWriter.ends

    def swapped(self: Any, block: Any, names: Any, rest: Any) -> None:
        plain(self, block, names, [*rest][::-1] if len(rest) == 2 else rest)

    monkeypatch.setattr(code._FunctionWriter, "ends", swapped)
    wrong = 0
    for seed in range(15):
        try:
            wrong += bool(differing(Random(seed).randrange))
        except ProgramError:
            wrong += 1
    assert wrong > 2


def test_forks_and_awaits_compile_back() -> None:
    x = runtime.tensor([1.0, 1.0])
    for ours in (loop(), later()):
        made = recompiled(ours)
        assert made.qualname == ours.qualname
        assert str(made.schema) == str(ours.schema)
        assert call(made, (x,), {}).tolist() == call(ours, (x,), {}).tolist()
    kinds = [each.kind for each in recompiled(later()).graph.nodes()]
    assert kinds.count("prim::fork") == kinds.count("prim::awaitable") == 1
    assert kinds.count("prim::wait") == kinds.count("prim::awaitable_wait") == 1


def test_the_text_of_the_text_is_the_text() -> None:
    once = recompiled(later())
    assert code_of(recompiled(once)) == code_of(once)
