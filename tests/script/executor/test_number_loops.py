"""Loops of numbers: rounds of trips, tests that are put off, counts without a test."""

import threading
import warnings
from random import Random
from typing import Any

import pytest

from everyorder.runtime import Library, jit
from everyorder.runtime.errors.tensor import ArithmeticRefused
from everyorder.runtime.schema.types import (
    BoolType,
    FloatType,
    IntType,
    StrType,
    TupleType,
    Type,
)
from everyorder.runtime.script.executor import executor
from everyorder.runtime.script.executor.codegen import ROUND
from everyorder.runtime.script.ir import Graph, Value, check
from everyorder.runtime.script.primitives import ROWS
from tests.script.executor.test_random import INTS, Growth, compare

NUMBERS = (IntType, FloatType, BoolType)
MOST, DIGIT = 2**63 - 1, 2**30
EDGES = (0, 1, -1, 2, 3, 7, DIGIT - 1, -DIGIT, DIGIT, 2**62, MOST, -MOST - 1)
SIGNS = ("add", "sub", "mul", "floordiv", "remainder", "eq", "ne", "lt", "gt", "le")
USABLE = [
    row
    for row in ROWS
    if row.name.removeprefix("script::").partition(".")[0] in SIGNS
    and len(row.schema.arguments) == 2
    and all(each.type in NUMBERS for each in row.schema.arguments)
]
WHOLE = [
    row for row in USABLE if all(each.type is IntType for each in row.schema.arguments)
]


class NumberGrowth(Growth):
    """A block of numbers only: branches, loops of many trips, and chains of sums."""

    def value(self, type_: Type) -> Value:
        if type_ is IntType and self.random.random() < 0.4:
            edge = self.random.choice(EDGES)
            return self.put("prim::Constant", (), [IntType], value=edge).output
        return super().value(type_)

    def types(self) -> list[Type]:
        return [self.random.choice(NUMBERS) for _ in range(self.random.randrange(1, 4))]

    def line(self, depth: int) -> None:
        way = self.random.random()
        if way < 0.15 and depth:
            self.branch(depth - 1)
        elif way < 0.4 and depth:
            self.loop(depth - 1)
        elif way < 0.7:
            # What comes before is near what comes after.
            row = self.random.choice(WHOLE)
            last = [each for each in self.visible[-2:] if each.type is IntType]
            near = self.random.choice((1, -1, 5, DIGIT - 1, DIGIT))
            by = self.put("prim::Constant", (), [IntType], value=near).output
            inputs = [last[-1] if last else self.value(IntType), by]
            self.put(row.name, inputs, [each.type for each in row.schema.returns])
        else:
            row = self.random.choice(USABLE)
            inputs = [self.value(each.type) for each in row.schema.arguments]
            self.put(row.name, inputs, [each.type for each in row.schema.returns])


def number_program(random: Random) -> Graph:
    """A program with the parameters of all, whose loops compute with numbers."""
    graph = Graph("random")
    growth = NumberGrowth(random, graph.block, [])
    for each in (IntType, FloatType):
        growth.visible.append(graph.block.add_parameter(each))
    graph.block.add_parameter(StrType)
    graph.block.add_parameter(INTS)
    for _ in range(random.randrange(2, 6)):
        growth.line(3)
    numbers = [each for each in growth.visible if each.type in NUMBERS]
    results = random.choices(numbers, k=3)
    type_ = TupleType(tuple(each.type for each in results))
    node = growth.put("prim::TupleConstruct", results, [type_])
    graph.block.exit.set_inputs([node.output])
    check(graph)
    return graph


def test_random_loops_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    counts = compare(range(150), capsys, number_program)
    assert min(counts["raised"], counts["gave"]) > 10
    assert min(counts[f"prim::{each}"] for each in ("If", "Loop")) > 50


@pytest.mark.slow
def test_more_random_loops_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    compare(range(150, 1_500), capsys, number_program)


@pytest.mark.nightly
def test_many_random_loops_of_numbers(capsys: pytest.CaptureFixture[str]) -> None:
    compare(range(1_500, 6_000), capsys, number_program)


def collatz(n: int) -> int:
    count = 0
    while n != 1:
        if n % 2 == 0:  # noqa: SIM108  # the line of the bench
            n = n // 2
        else:
            n = 3 * n + 1
        count += 1
    return count


def until(n: int, trips: int) -> int:
    total = 0
    for i in range(trips):
        total += i
        if i == n:
            break
    return total


def spread(n: int) -> int:
    a, b = 0, 1
    while b < n:
        a, b = b, a + b
    return a


def left(n: int) -> int:
    while n - 3 > 0:
        n = n - 3
    return n


def turning(n: int, trips: int) -> int:
    trip = 0
    while n != 5 and trip < trips:
        n = 1 - n
        trip += 1
    return n


def shifted(n: int) -> int:
    m = n * 4
    k = m - 7
    return k + m


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize("times", [0, 1, ROUND - 1, ROUND, ROUND + 1, 3 * ROUND])
def test_trips_are_counted_over_the_rounds(times: int) -> None:
    run = jit.script(until)
    assert run(-1, times) == until(-1, times)
    for last in {0, times - 1, times // 2}:
        assert run(last, times + 5) == until(last, times + 5)


@pytest.mark.usefixtures("executed")
def test_loops_do_what_python_does() -> None:
    for function, numbers in (
        (collatz, (1, 2, 27, 837_799)),
        (spread, (0, 1, 2, 100, 2**62)),
        (left, (-5, 0, 3, 4, 10_000)),
        (shifted, (0, 1, -3, 2**40)),
    ):
        run: Any = jit.script(function)
        assert [run(each) for each in numbers] == [function(each) for each in numbers]


@pytest.mark.usefixtures("executed")
@pytest.mark.parametrize(
    "n", [2**61, -(2**61), 2**61 + 1, -(2**61) - 1, 2**60 + 2, MOST, -MOST - 1]
)
def test_a_test_that_is_put_off_finds_the_first_that_is_beyond(n: int) -> None:
    """By its line, and by its numbers: of 4 n, not of what follows from it."""
    steps = n * 4, n * 4 - 7, n * 8 - 7
    beyond = [at for at, each in enumerate(steps) if not -MOST - 1 <= each <= MOST]
    run = jit.script(shifted)
    if not beyond:
        assert run(n) == steps[-1]
        return
    with pytest.raises(ArithmeticRefused) as raised:
        run(n)
    line = shifted.__code__.co_firstlineno + 1 + beyond[0]
    assert f"line {line}, in shifted" in "".join(raised.value.__notes__)


def test_another_thread_is_heard_within_a_round() -> None:
    """What is registered meanwhile ends a loop that would go on for minutes."""
    lib = Library("script", "IMPL")

    def register() -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            lib.impl("sub.int", lambda a, b: 5, "CompositeImplicitAutograd")

    with executor(text_after=0):
        run = jit.script(turning)
        assert run(0, 11) == 1
        later = threading.Timer(0.05, register)
        later.start()
        try:
            assert run(0, 10**10 + 1) == 5
        finally:
            later.join()
            lib.close()
        assert run(0, 11) == 1
