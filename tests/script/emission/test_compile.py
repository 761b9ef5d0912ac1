"""Compiling: names, what is kept, calls of calls, and what is undone."""

from typing import Any

import pytest

from everyorder.runtime.errors.schema import AnnotationError
from everyorder.runtime.errors.script import IllTyped, NotScriptable, ProgramError
from everyorder.runtime.script.emission import (
    Arguments,
    Emitter,
    SimpleValue,
    Sugared,
    compile_function,
    compile_text,
    register_special_form,
    register_sugar,
)
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir import check
from everyorder.runtime.script.ir.program import Program
from tests.coded import code

BASE = 10


def double(x: int) -> int:
    return x * 2


def four(x: int):  # type: ignore[no-untyped-def]  # the result is inferred
    return double(double(x))


def base(x: int) -> int:
    return x + BASE


def broken(x: int) -> int:
    return x.nothing  # type: ignore[attr-defined, no-any-return]  # it is wrong


def calls_broken(x: int) -> int:
    return double(x) + broken(x)


def ping(n: int) -> int:
    return 0 if n == 0 else pong(n - 1) + 1


def pong(n: int) -> int:
    return 0 if n == 0 else ping(n - 1) + 1


def unwritten(x: int) -> int:
    return GENERATED(x)  # type: ignore[no-any-return]  # made below


_SPACE: dict[str, Any] = {}
exec("def made(x: int) -> int:\n    return x\n", _SPACE)
GENERATED: Any = _SPACE["made"]


class Unit:
    """A class that programs do not know until it is registered."""


UNIT = Unit()


def uses_unit(x: int) -> int:
    return UNIT(x)  # type: ignore[operator, no-any-return]  # it means something below


@pytest.mark.spec("script 6.1", "from a function to its value")
def test_functions_that_are_called_are_compiled_with_it() -> None:
    program = Program()
    function = compile_function(four, program)
    assert str(function.schema) == "four(int x) -> int"
    assert call(function, (3,), {}) == 12
    names = [name.rpartition(".")[2] for name in program.functions]
    assert sorted(names) == ["double", "four"]
    for each in program.functions.values():
        assert each.is_compiled
        check(each.graph)


def test_a_function_is_compiled_once_in_a_program() -> None:
    program = Program()
    first = compile_function(double, program)
    assert compile_function(double, program) is first
    assert compile_function(double, Program()) is not first
    program.discard(first)
    assert compile_function(double, program) is not first


def test_functions_that_call_each_other() -> None:
    assert call(compile_function(ping, Program()), (7,), {}) == 7


def test_constants_around_a_function_are_those_of_then() -> None:
    assert call(compile_function(base, Program()), (1,), {}) == 11


@pytest.mark.spec("script 6.9", "because of which calls")
def test_an_error_tells_the_calls_and_nothing_is_kept() -> None:
    program = Program()
    with pytest.raises(ProgramError) as caught:
        compile_function(calls_broken, program)
    text = str(caught.value)
    assert "has no attribute `nothing`" in text
    assert "`broken` is being compiled since it was called from here:" in text
    assert "return double(x) + broken(x)" in text
    assert not program.functions
    with pytest.raises(ProgramError):
        compile_function(broken, program)


@pytest.mark.parametrize(
    ("callee", "line"),
    [("g(x: int) -> Nothing", "x"), ("g(x: int)", "y: Nothing = x")],
)
def test_an_annotation_that_means_no_type_tells_the_calls(
    callee: str, line: str
) -> None:
    text = f"def f(x: int):\n    return g(x)\ndef {callee}:\n    {line}\n    return x\n"
    with pytest.raises(AnnotationError) as caught:
        compile_text(text, Program())
    message, told = str(caught.value).split("`g` is being compiled since it was ")
    assert "`Nothing` is not defined here" in message
    assert told == (
        "called from here:\n"
        "  <text>:2:12\n"
        "def f(x: int):\n"
        "    return g(x)\n"
        "           ~~~~ <--- HERE\n"
        f"def {callee}:\n"
        f"    {line}"
    )


def test_what_is_called_has_a_source() -> None:
    with pytest.raises(NotScriptable, check=code("NoSource")):
        compile_function(GENERATED, Program())
    with pytest.raises(IllTyped, check=code("IllTyped"), match="cannot be compiled"):
        compile_function(unwritten, Program())


@pytest.mark.spec("script 6.1", "from a text")
def test_functions_of_a_text_know_each_other_and_names() -> None:
    text = "def f(x: int):\n    return g(x) + n\ndef g(x: int):\n    return x * n\n"
    f, g = compile_text(text, Program(), {"n": 3})
    assert call(f, (2,), {}) == 9
    assert [f.qualname, g.qualname] == ["__torch__.f", "__torch__.g"]


class _Plus(Sugared):
    """What adds a number."""

    def __init__(self, number: int) -> None:
        self.number = number

    def describe(self) -> str:
        return "a unit"

    def call(self, e: Emitter, arguments: Arguments) -> Sugared:
        (given,) = arguments.positional
        made = e.operator("script::add.int", given.value(e), e.constant(self.number))
        return SimpleValue(made)


def test_sugar_is_registered_and_taken_back() -> None:
    with pytest.raises(
        IllTyped, check=code("IllTyped"), match="means nothing in a program"
    ):
        compile_function(uses_unit, Program())
    of_class = register_sugar(Unit, lambda _: _Plus(1))
    assert call(compile_function(uses_unit, Program()), (1,), {}) == 2
    of_object = register_special_form(UNIT, _Plus(5))
    assert call(compile_function(uses_unit, Program()), (1,), {}) == 6
    of_object.close()
    of_object.close()
    assert call(compile_function(uses_unit, Program()), (1,), {}) == 2
    of_class.close()
    with pytest.raises(IllTyped, check=code("IllTyped")):
        compile_function(uses_unit, Program())


@pytest.mark.parametrize("count", [1, 30, 200])
def test_many_early_returns(count: int) -> None:
    """However many there are, blocks are not nested deeper than they may be."""
    lines = [f"    if x == {n}:\n        return {n * 2}\n" for n in range(count)]
    text = f"def f(x: int) -> int:\n{''.join(lines)}    return -1\n"
    (function,) = compile_text(text, Program())
    check(function.graph)
    assert call(function, (count - 1,), {}) == 2 * count - 2
    assert call(function, (count,), {}) == -1


@pytest.mark.parametrize(
    "body",
    [
        f"return {'-(' * 140}x{')' * 140}",
        f"return {' + '.join(['x'] * 140)}",
        "\n".join(f"{'    ' * n}if x > {n}:" for n in range(90))
        + "\n"
        + "    " * 90
        + "return 1\nreturn 0",
    ],
    ids=["parentheses", "sums", "branches"],
)
def test_deep_programs(body: str) -> None:
    lines = "\n".join(f"    {line}" for line in body.split("\n"))
    (function,) = compile_text(f"def f(x: int) -> int:\n{lines}\n", Program())
    check(function.graph)
