"""The condensed table: what it looks like, and that the whole table follows from it."""

from pathlib import Path

import pytest

from harness import Scenario
from harness.catalogue import load
from harness.systems.dispatcher import DispatcherSystem, condensed
from runtime.dispatch import Dispatcher, Library, fallthrough
from runtime.dispatch.dump import dump_table, table_reading
from runtime.keys import SLOTS
from tests.scenarios.kernels import composed, on_cpu

NUMBER = {key.name: number for number, key in enumerate(SLOTS)}


def lines_of(table: str) -> dict[int, str]:
    pairs = (line.split(": ", 1) for line in table.splitlines())
    return {NUMBER[name]: held for name, held in pairs}


def empty_table() -> dict[int, str]:
    library = Library("a", "FRAGMENT", dispatcher=(target := Dispatcher()))
    library.reserve("b")
    return lines_of(target.dump_table("a::b"))


def rebuilt(text: str) -> str:
    """The whole table, from its condensed form and the empty table."""
    table: dict[int, str] = empty_table()
    for line in text.splitlines():
        span, held = line.split(": ", 1)
        first, _, last = span.partition(" .. ")
        last, _, count = last.rstrip(")").partition(" (")
        covered = range(NUMBER[first], NUMBER[last or first] + 1)
        assert len(covered) == int(count or 1)
        for number in covered:
            if held == "missing":
                del table[number]
            else:
                table[number] = held
    return "".join(f"{SLOTS[n].name}: {held}\n" for n, held in sorted(table.items()))


def catalogue() -> dict[str, Scenario]:
    folder = Path(__file__).resolve().parent.parent / "scenarios"
    found = load([str(folder)], start=folder)
    scenarios = [entry.scenario for entry in found.entries]
    return {s.path: s for s in scenarios if s.create is None and len(s.steps) <= 5}


CATALOGUE = catalogue()


@pytest.mark.parametrize("path", CATALOGUE)
def test_nothing_is_lost(path: str) -> None:
    system = DispatcherSystem(CATALOGUE[path])
    system.reset()
    held = []
    for step in range(system.steps):
        try:
            held.append(system.do(step))
        except Exception:  # a step of a scenario of refusals
            continue
        for entry in system.dispatcher.snapshot().entries():
            # Dumps know of no operator with rules alone.
            if entry.total:
                assert rebuilt(condensed(table_reading(entry))) == dump_table(entry)
    for handle in held:
        handle.close()
    system.close()


def test_an_empty_table_is_no_line() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target)
    library.reserve("b")
    (entry,) = target.snapshot().entries()
    assert condensed(table_reading(entry)) == ""


def test_runs_are_one_line_and_emptied_slots_are_missing() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.impl("b", composed)
    library.impl("b", on_cpu, "NestedTensorCPU")
    (entry,) = target.snapshot().entries()
    # AutogradNestedTensor is guarded and falls back, as it does in the empty table.
    assert condensed(table_reading(entry)) == (
        "Undefined .. SparseCsrMeta (70): composed (here) [math kernel]\n"
        "NestedTensorCPU: on_cpu (here) [kernel]\n"
        "NestedTensorCUDA .. NestedTensorMeta (15): composed (here) [math kernel]\n"
        "AutogradOther .. AutogradMeta (17): composed (here) [math kernel]\n"
    )


def test_a_slot_that_the_empty_table_has_can_be_missing() -> None:
    target = Dispatcher(builtin_fallbacks=False)
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.reserve("b")
    (entry,) = target.snapshot().entries()
    shown = condensed(table_reading(entry)).splitlines()
    assert "BackendSelect: missing" in shown
    assert {line.partition(": ")[2] for line in shown} == {"missing"}
    assert rebuilt("\n".join(shown)) == ""


def test_fallthroughs_say_so() -> None:
    target = Dispatcher()
    library = Library("a", "FRAGMENT", dispatcher=target, origin="here")
    library.impl("b", fallthrough, "CUDA")
    (entry,) = target.snapshot().entries()
    assert condensed(table_reading(entry)) == "CUDA: fallthrough here [kernel]\n"
