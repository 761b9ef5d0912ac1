"""Classes compiled by Cython are read or opaque, and no error ends the exploration.

The classes are those of `numpy.random`.  Each keeps its position in C, where no form of
its objects shows it: a registry that depends on it is not proven.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import pytest
from numpy.random import (
    PCG64,
    BitGenerator,
    Generator,
    RandomState,
    SeedSequence,
)

from everyorder.harness import Budget, Report, Scenario, explore, steps, use

BUDGET = Budget(steps=600)
NAMES = ("a", "b")


class Source(NamedTuple):
    """A compiled class: how one is made, draws, and what its position is."""

    make: Callable[[], Any]
    draw: Callable[[Any], object]
    position: Callable[[Any], object]


SOURCES = {
    "Generator": Source(
        lambda: Generator(PCG64(1)),
        lambda source: source.random(),
        lambda source: source.bit_generator.state["state"]["state"],
    ),
    "BitGenerator": Source(
        lambda: PCG64(1),
        lambda source: source.random_raw(),
        lambda source: source.state["state"]["state"],
    ),
    "RandomState": Source(
        lambda: RandomState(1),
        lambda source: source.random_sample(),
        lambda source: source.get_state()[2],
    ),
    "SeedSequence": Source(
        lambda: SeedSequence(1),
        lambda source: source.spawn(1),
        lambda source: source.n_children_spawned,
    ),
}


class Table:
    """A registry of compiled objects."""

    def __init__(self) -> None:
        self.items: dict[str, object] = {}

    def put(self, name: str, item: object) -> Callable[[], object]:
        self.items[name] = item
        return lambda: self.items.pop(name)


class GeneratorTable(Table, Generator):
    """A Generator that is a registry."""

    def __init__(self) -> None:
        Generator.__init__(self, PCG64(1))
        Table.__init__(self)


class BitGeneratorTable(Table, PCG64):
    """A PCG64 that is a registry."""

    def __init__(self) -> None:
        PCG64.__init__(self, 1)
        Table.__init__(self)


class BareBitGeneratorTable(Table, BitGenerator):
    """A BitGenerator without an algorithm, that is a registry."""

    def __init__(self) -> None:
        BitGenerator.__init__(self, 1)
        Table.__init__(self)


class RandomStateTable(Table, RandomState):
    """A RandomState that is a registry."""

    def __init__(self) -> None:
        RandomState.__init__(self, 1)
        Table.__init__(self)


class SeedSequenceTable(Table, SeedSequence):
    """A SeedSequence that is a registry."""

    def __init__(self) -> None:
        SeedSequence.__init__(self, 1)
        Table.__init__(self)


TABLES = (
    GeneratorTable,
    BitGeneratorTable,
    BareBitGeneratorTable,
    RandomStateTable,
    SeedSequenceTable,
)


def of_table(create: Callable[[], Any], item: Callable[[], object]) -> Report:
    scenario = Scenario(
        *steps("put", NAMES, lambda table, name: table.put(name, item())),
        uses=[use("has a", lambda table: "a" in table.items)],
        create=create,
        observe=lambda table: str(sorted(table.items)),
        name="compiled",
    )
    return explore(scenario, budget=BUDGET)


def is_opaque(report: Report) -> bool:
    return any(caveat.kind == "opaque" for caveat in report.exploration.caveats)


@pytest.mark.parametrize("name", SOURCES)
def test_a_registry_that_holds_one_holds_and_is_not_proven(name: str) -> None:
    report = of_table(Table, SOURCES[name].make)
    assert (report.verdict, is_opaque(report)) == ("holds", True)


@pytest.mark.parametrize("table", TABLES)
def test_a_registry_that_is_one_holds_and_is_not_proven(table: type) -> None:
    report = of_table(table, object)
    assert (report.verdict, is_opaque(report)) == ("holds", True)


# The number of draws before each of the first positions; all later ones count as one.
Positions = Mapping[object, int]


def first_positions(source: Source) -> Positions:
    one = source.make()
    positions = {}
    for draws in range(5):
        positions[source.position(one)] = draws
        source.draw(one)
    return positions


class Drawing:
    """A registry whose every name takes one draw, which its removal gives back."""

    def __init__(self, source: Source, positions: Positions) -> None:
        self.kind = source
        self.source = source.make()
        self.names: list[str] = []
        self.positions = positions

    def add(self, name: str) -> Callable[[], None]:
        self.kind.draw(self.source)
        self.names.append(name)
        return lambda: self.remove(name)

    def remove(self, name: str) -> None:
        self.names.remove(name)
        self.give_back()

    def give_back(self) -> None:
        self.source = self.kind.make()
        for _ in self.names:
            self.kind.draw(self.source)

    def drawn(self) -> int:
        """Return the number of draws, without one."""
        position = self.kind.position(self.source)
        return self.positions.get(position, len(self.positions))


class Advancing(Drawing):
    """The same on one bit generator, which is never replaced."""

    def give_back(self) -> None:
        self.source.bit_generator.advance(-1)


class Forgetful(Drawing):
    """The removal of a name gives nothing back."""

    def give_back(self) -> None:
        pass


def of_drawing(
    registry: type[Drawing],
    source: Source,
    ask: Callable[[Drawing], object] = Drawing.drawn,
) -> Report:
    positions = first_positions(source)
    scenario = Scenario(
        *steps("add", NAMES, lambda drawing, name: drawing.add(name)),
        uses=[use("ask", ask)],
        create=lambda: registry(source, positions),
        observe=lambda drawing: str(sorted(drawing.names)),
        name="drawing",
    )
    return explore(scenario, budget=BUDGET)


@pytest.mark.parametrize("name", SOURCES)
def test_a_registry_that_gives_its_draws_back_holds(name: str) -> None:
    report = of_drawing(Drawing, SOURCES[name])
    assert (report.verdict, is_opaque(report)) == ("holds", True)


def test_a_generator_that_is_advanced_back_holds() -> None:
    report = of_drawing(Advancing, SOURCES["Generator"])
    assert (report.verdict, is_opaque(report)) == ("holds", True)


def shortest(report: Report) -> tuple[str, int]:
    """Return the verdict, and the operations of the shortest history."""
    history = report.exploration.violations[0].shortest
    return report.verdict, len(history or ())


@pytest.mark.parametrize("name", SOURCES)
def test_a_draw_that_is_not_given_back_is_refuted(name: str) -> None:
    report = of_drawing(Forgetful, SOURCES[name])
    assert shortest(report) == ("hidden", 3)


def is_late(drawing: Drawing) -> bool:
    return drawing.drawn() > 2


@pytest.mark.parametrize("name", SOURCES)
def test_an_answer_that_changes_after_three_draws_is_refuted(name: str) -> None:
    """Three draws need four operations, with a removal between two of them."""
    report = of_drawing(Forgetful, SOURCES[name], is_late)
    assert shortest(report) == ("hidden", 5)
