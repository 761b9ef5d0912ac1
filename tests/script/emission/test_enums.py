"""Enums in scripts: members, their names and values, comparisons, containers."""

from enum import Enum, IntEnum

import pytest

from everyorder.runtime.script.emission import compile_function
from everyorder.runtime.script.executor import call
from everyorder.runtime.script.ir.program import Program
from tests.script.emission.scripts import agrees, script


class Color(Enum):
    RED = 1
    GREEN = 2
    CRIMSON = 1  # noqa: PIE796  # another name of the same


class Mode(Enum):
    FAST = "fast"
    SLOW = "slow"


class Weight(Enum):
    LIGHT = 0.5


class Level(IntEnum):
    LOW = 1


@pytest.mark.spec("script 6.3", "named tuples, enums, classes, interfaces")
def test_members() -> None:
    def f(c: Color) -> tuple[bool, bool, bool, bool, Color]:
        green = Color.GREEN
        return c == Color.RED, c != green, c is Color.CRIMSON, c is not green, green

    agrees(f, (Color.RED,), (Color.GREEN,), (Color.CRIMSON,))


def test_names_and_values() -> None:
    def f(c: Color, m: Mode) -> tuple[str, int, str, str, float]:
        return c.name, c.value + 1, m.name, m.value, Weight.LIGHT.value

    agrees(f, (Color.GREEN, Mode.SLOW), (Color.CRIMSON, Mode.FAST))


def test_in_containers() -> None:
    def f(c: Color) -> tuple[list[Color], dict[str, Color], bool, int]:
        both = [Color.RED, c]
        named = {c.name: c}
        count = 0
        for each in both:
            if each == Color.RED:
                count += 1
        return both, named, c in both, count

    agrees(f, (Color.RED,), (Color.GREEN,))


def test_iteration_over_the_class() -> None:
    def f() -> list[str]:
        names: list[str] = []
        for each in Color:
            names.append(each.name)  # noqa: PERF401  # a loop is what is tested
        return names

    def g() -> list[int]:
        return [each.value for each in Color]

    agrees(f)
    agrees(g)


def test_length_of_the_class() -> None:
    def f(m: Mode) -> tuple[int, bool]:
        return len(Color), m in [Mode.FAST]

    agrees(f, (Mode.FAST,), (Mode.SLOW,))


def test_branches_and_optionals() -> None:
    def f(n: int, c: Color | None) -> Color:
        if c is not None:
            return c
        return Color.RED if n > 2 else Color.GREEN

    agrees(f, (1, None), (3, None), (1, Color.RED))


class Painted:
    def __init__(self, color: Color) -> None:
        self.color = color

    def is_red(self) -> bool:
        return self.color == Color.RED


def test_in_classes() -> None:
    def f(c: Color) -> bool:
        p = Painted(c)
        p.color = c
        return p.is_red()

    agrees(f, (Color.RED,), (Color.GREEN,))


def test_isinstance() -> None:
    def f(c: Color) -> tuple[bool, bool]:
        return isinstance(c, Color), isinstance(c, Mode)

    agrees(f, (Color.RED,))


def test_an_enum_is_declared_once() -> None:
    program = Program()

    def f(c: Color) -> Color:
        return c

    def g(c: Color) -> Color:
        return Color.GREEN

    assert call(compile_function(f, program), (Color.RED,), {}) is Color.RED
    assert call(compile_function(g, program), (Color.RED,), {}) is Color.GREEN
    assert len(program.namespace.qualnames) == 1


def test_enums_of_numbers() -> None:
    def f(c: Level) -> tuple[bool, int]:
        return c == Level.LOW, c.value

    assert script(f)(Level.LOW) == (True, 1)
