"""What a scenario says of its steps, seen in what is explored and found."""

import os
from collections.abc import Callable, Iterator
from functools import singledispatch
from typing import Any

import pytest

from everyorder.harness.exploration.explore_scenario import explore
from everyorder.harness.report.verdict import Report
from everyorder.harness.scenario import Scenario, Step, step, steps, use


class Hooks:
    """Calls hooks newest first; a third thing is kept beside them."""

    def __init__(self, *, sloppy: bool = False) -> None:
        self.hooks: list[str] = []
        self.level: int | None = None
        self.sloppy = sloppy

    def add(self, name: str) -> Callable[[], None]:
        self.hooks.append(name)
        return lambda: self.hooks.remove(name)

    def set_level(self, level: int) -> Callable[[], None]:
        before, self.level = self.level, level

        def undo() -> None:
            # What was there before is forgotten where hooks are there now.
            self.level = before if not (self.sloppy and self.hooks) else 0

        return undo

    def called(self) -> str:
        return " ".join(reversed(self.hooks))


ADD_A, ADD_B = steps("add", "ab", Hooks.add)
LEVEL = step("set_level(1)", lambda to: to.set_level(1))


def seen(of: Hooks) -> str:
    return f"{of.called()}; {of.level}"


def hooks(**options: Any) -> Scenario:
    return Scenario(
        ADD_A, ADD_B, LEVEL, **{"create": Hooks, "observe": seen, **options}
    )


def shortest(report: Report) -> tuple[str, ...]:
    found = report.exploration.violations[0]
    return report.lines(found.shortest or found.history)


def test_an_order_that_is_meant_is_pinned() -> None:
    assert explore(hooks(), "walk:1").verdict == "order"
    assert explore(hooks(ordered=[(ADD_A, ADD_B)]), "walk:1").passed


def test_a_pinned_pair_hides_no_fault_of_a_third_step() -> None:
    """One sentence pinned everything, this fault included."""

    def sloppy() -> Hooks:
        return Hooks(sloppy=True)

    report = explore(hooks(create=sloppy, ordered=[(ADD_A, ADD_B)]), "walk:1")
    assert report.verdict == "order"
    assert "step_3 = set_level(1)" in shortest(report)


def test_an_order_that_shows_only_in_a_use_is_pinned() -> None:
    """It could not be pinned at all."""
    asked = use("called()", Hooks.called)
    blind = hooks(uses=[asked], observe=lambda of: str(of.level))
    assert explore(blind, "walk:1").verdict == "order"
    meant = hooks(
        uses=[asked],
        observe=lambda of: str(of.level),
        ordered=[("add('a')", "add('b')")],
    )
    assert explore(meant, "walk:1").passed


class Tables:
    """Rows need their table, which cannot go while they are there."""

    def __init__(self) -> None:
        self.tables: set[str] = set()
        self.rows: set[str] = set()

    def create(self) -> Callable[[], None]:
        self.tables.add("t")
        return self.drop

    def drop(self) -> None:
        if self.rows:
            raise RuntimeError("the table is not empty")
        self.tables.remove("t")

    def insert(self) -> Callable[[], None]:
        if not self.tables:
            raise LookupError("there is no table")
        self.rows.add("r")
        return lambda: self.rows.remove("r")

    def shown(self) -> str:
        return f"{sorted(self.tables)} {sorted(self.rows)}"


def tables(*made: Step) -> Report:
    return explore(Scenario(*made, create=Tables, observe=Tables.shown), "walk:1")


INSERT = step("insert", lambda to: to.insert())


def test_a_removal_that_fails_is_a_fault() -> None:
    report = tables(step("create", lambda to: to.create()), INSERT)
    assert report.exploration.violations[0].kind == "undo"


def test_a_removal_may_be_refused_rightly() -> None:
    """The state after it is the state before."""
    create = step("create", lambda to: to.create(), may_refuse=True)
    report = tables(create, INSERT)
    assert report.passed
    assert report.exploration.states == {
        (): (("state", "[] []"),),
        (0,): (("state", "['t'] []"),),
        (0, 1): (("state", "['t'] ['r']"),),
    }
    assert report.exploration.refusals == {
        ((0, 1), 0): (("error", "RuntimeError"), ("text", "the table is not empty"))
    }


def test_what_requires_another_is_done_and_undone_within() -> None:
    create = step("create", lambda to: to.create())
    insert = step("insert", lambda to: to.insert(), requires=create)
    report = tables(create, insert)
    assert report.passed
    assert set(report.exploration.states) == {(), (0,), (0, 1)}
    assert report.exploration.failures == report.exploration.refusals == {}


def test_what_comes_after_another_may_outlive_it() -> None:
    def create(to: Tables) -> Iterator[None]:
        to.tables.add("t")
        yield
        to.tables.remove("t")

    def insert(to: Tables) -> Iterator[None]:
        to.rows.add("r" if to.tables else "without a table")
        yield
        to.rows.clear()

    first = step("create", create)
    report = tables(first, step("insert", insert, after=first))
    assert report.passed
    assert report.exploration.states == {
        (): (("state", "[] []"),),
        (0,): (("state", "['t'] []"),),
        (1,): (("state", "[] ['r']"),),
        (0, 1): (("state", "['t'] ['r']"),),
    }


class Renderers:
    """As functools.singledispatch: what was registered stays, and is looked up once."""

    def __init__(self) -> None:
        self.known: dict[str, str] = {}
        self.found: dict[str, str | None] = {}

    def register(self, name: str) -> None:
        self.known[name] = name.upper()

    def find(self, name: str) -> str | None:
        return self.found.setdefault(name, self.known.get(name))


def test_steps_that_stay_are_explored_upwards() -> None:
    """Most registries have no way back."""
    made = Scenario(
        *steps("register", "ab", Renderers.register, undo=None, again=True),
        uses=[use("find('a')", lambda of: of.find("a"))],
        create=Renderers,
        observe=lambda of: str(sorted(of.known)),
    )
    report = explore(made)
    assert report.verdict == "order"
    assert shortest(report)[-1] == "find('a')"
    made = Scenario(
        *steps("register", "ab", Renderers.register, undo=None, again=True),
        uses=[use("known", lambda of: sorted(of.known))],
        create=Renderers,
        observe=lambda of: str(sorted(of.known)),
    )
    report = explore(made)
    assert report.passed
    assert set(report.exploration.states) == {(), (0,), (1,), (0, 1)}


def test_what_the_library_cannot_take_back_is_explored_upwards() -> None:
    """It has a cache of its own, which every registration forgets."""

    def made() -> Any:
        @singledispatch
        def name(value: object) -> str:
            return "object"

        return name

    def register(name: Any, kind: type) -> None:
        name.register(kind, lambda value: kind.__name__)

    report = explore(
        Scenario(
            *steps("register", {"int": int, "bool": bool}, register, undo=None),
            uses=[use("name(True)", lambda name: name(True))],
            create=made,
            observe=lambda name: " ".join(sorted(k.__name__ for k in name.registry)),
        )
    )
    assert report.verdict == "proven"
    assert set(report.exploration.states) == {(), (0,), (1,), (0, 1)}


def test_a_step_that_is_meant_to_fail() -> None:
    def slip(of: Hooks) -> Any:
        of.ad("a")  # type: ignore[attr-defined]  # the slip

    def made(**options: Any) -> Scenario:
        return Scenario(
            LEVEL, step("slip", slip, **options), create=Hooks, observe=seen
        )

    assert explore(made(raises=AttributeError), "walk:1").passed
    # It is not the error that was declared.
    assert explore(made(raises=LookupError), "walk:1").verdict == "typo"
    assert explore(made(), "walk:1").verdict == "typo"


def test_a_use_that_is_meant_to_say_the_same() -> None:
    def made(**options: Any) -> Scenario:
        return hooks(
            uses=[use("same", lambda _: 1, **options)], ordered=[(ADD_A, ADD_B)]
        )

    assert explore(made(constant=True), "walk:1").passed
    assert explore(made(), "walk:1").verdict == "vacuous"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the platform cannot fork")
def test_what_is_explored_in_processes_of_their_own_is_the_same() -> None:
    here = explore(hooks(), "walk:1")
    there = explore(hooks(isolation="fork"), "walk:1")
    assert here.verdict == there.verdict == "order"
    assert shortest(here) == shortest(there)
