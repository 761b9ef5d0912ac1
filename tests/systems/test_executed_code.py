"""The globals of code that no operation executes are not state; all others are."""

import os
import sys
from collections.abc import Callable, Iterator, KeysView, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from everyorder.harness import Scenario, explore, step, steps, use
from everyorder.harness.state.executed_code import ExecutedCode

# What is read by no operation, one after the other.
COUNTS: list[int] = []
STREAM = open(os.devnull)  # noqa: SIM115  # as programs leave one open
# The verdicts on what a state contains; what none contains would be "hidden".
SEEN = {"history", "order"}


def counted() -> int:
    """Answer differently at the third call, and at every third one from then on."""
    COUNTS.append(1)
    del COUNTS[: len(COUNTS) // 3 * 3]
    return len(COUNTS)


class Names:
    def __init__(self) -> None:
        COUNTS.clear()
        self.names: dict[str, str] = {}

    def add(self, name: str) -> Callable[[], object]:
        self.names[name] = name
        return lambda: self.names.pop(name)

    def rarely(self) -> object:
        return counted() if len(self.names) == 2 else "few"

    def report(self) -> object:
        return STREAM.isatty()

    def size(self) -> int:
        return len(self.names)


def verdict(
    asked: Callable[[Any], object],
) -> tuple[str, list[str]]:
    """The verdict on a registry of two names, and what could not be read."""
    report = explore(
        Scenario(
            *steps("add", "ab", Names.add),
            uses=[use("asked", asked)],
            create=Names,
        )
    )
    caveats = report.exploration.caveats
    return report.verdict, [each.text for each in caveats if each.kind == "opaque"]


def test_what_only_uncalled_code_reads_limits_no_proof() -> None:
    """A stream cannot be read whole, and `report` reads it."""
    assert verdict(Names.size) == ("proven", [])
    found, (limit,) = verdict(lambda registry: (registry.report(), registry.size())[1])
    assert found == "holds"
    assert limit.startswith("what a _io.TextIOWrapper holds")


def test_code_that_runs_at_one_state_only_has_state() -> None:
    assert verdict(Names.rarely)[0] in SEEN


def in_thread(registry: Names) -> object:
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(counted).result()


def test_code_that_another_thread_runs_has_state() -> None:
    """Nothing shows which code that is: the globals of all code are read."""
    assert verdict(in_thread)[0] in SEEN


def test_with_an_older_thread_all_is_read() -> None:
    executed = ExecutedCode()
    with ThreadPoolExecutor(1) as pool:
        pool.submit(int).result()
        executed.begin()
        executed.end()
    assert executed.everything


class Lazy(Mapping[str, int]):
    """Its keys are read by who reads the answer."""

    def __getitem__(self, name: str) -> int:
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return iter(str(counted()))

    def __len__(self) -> int:
        return 1


def test_code_that_runs_when_the_answer_is_read_has_state() -> None:
    assert verdict(lambda registry: KeysView(Lazy()))[0] in SEEN


class Refused(Exception):
    def __str__(self) -> str:
        return str(counted())


def test_code_that_tells_an_error_has_state() -> None:
    def refuse(registry: Names) -> None:
        raise Refused

    scenario = Scenario(
        *steps("add", "ab", Names.add),
        step("refuse", refuse, undo=lambda registry: None),
        uses=[use("size", Names.size)],
        create=Names,
    )
    assert explore(scenario).verdict in SEEN


class Dropped:
    def __del__(self) -> None:
        counted()


def test_code_of_finalizers_has_state() -> None:
    def drop(registry: Names) -> int:
        Dropped()
        return len(COUNTS)

    assert verdict(drop)[0] in SEEN


def by_globals(registry: Names) -> int:
    return sum(Names.rarely.__globals__["counted"].__globals__["COUNTS"])


def test_code_that_names_the_globals_of_others_may_read_all() -> None:
    _, (limit,) = verdict(lambda registry: (by_globals(registry), registry.size())[1])
    assert limit.startswith("what a _io.TextIOWrapper holds")


BIRTHS: list[int] = []


class Numbered(Names):
    """One in a hundred thousand is another one, which no exploration meets."""

    def __init__(self) -> None:
        super().__init__()
        BIRTHS.append(1)
        self.is_other = len(BIRTHS) % 100_000 == 0


def test_code_that_creates_a_system_has_state() -> None:
    scenario = Scenario(
        *steps("add", "ab", Names.add),
        uses=[use("size", Names.size)],
        create=Numbered,
    )
    report = explore(scenario)
    assert report.verdict == "not fresh"
    paths = report.exploration.violations[0].paths
    assert any("BIRTHS" in each for each in paths), paths


def without_profiler(registry: Names) -> int:
    profiler = sys.getprofile()
    sys.setprofile(None)
    try:
        return counted()
    finally:
        sys.setprofile(profiler)


def replaced_profiler(registry: Names) -> int:
    sys.setprofile(None)
    return counted()


@pytest.mark.parametrize("asked", [without_profiler, replaced_profiler])
def test_code_that_runs_without_the_profiler_has_state(
    asked: Callable[[Names], int],
) -> None:
    assert verdict(asked)[0] in SEEN


def test_with_another_profiler_all_is_read() -> None:
    """Then nothing shows which code runs."""

    def other(*arguments: object) -> None:
        pass

    executed = ExecutedCode()
    sys.setprofile(other)
    try:
        executed.begin()
    finally:
        sys.setprofile(None)
    assert executed.everything
