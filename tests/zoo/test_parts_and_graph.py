"""The strategy `parts` decides nothing that the full graph contradicts (theorem T6)."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.zoo.parts_and_graph import (
    LEFT_OUT,
    Compared,
    compared,
    compared_drawn,
    counts,
    decision_of,
    small_entries,
)
from tests.zoo.registries import CLASSES, SEEDS_BUILDING, SEEDS_TEST, entries

ROOT = Path(__file__).parents[2]
PARTS = 24
# Of each seventh class, the entry of one seed.
SHORT = [
    entry
    for number, kind in enumerate(CLASSES)
    if number % 7 == 1
    for entry in entries([number % len(SEEDS_BUILDING)], kind)
]
# Seeds of registries of groups: of these `parts` proves, joins and refutes one.
DRAWN_SHORT = {2: "proven", 3: "undecided", 14: "refuted"}
DRAWN = range(48)


def differences(every: list[Compared]) -> list[str]:
    return [each.difference for each in every if each.difference]


@pytest.mark.slow
def test_some_registries_are_decided_alike() -> None:
    assert differences([*map(compared, SHORT)]) == []


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(PARTS))
def test_all_registries_are_decided_alike(part: int) -> None:
    command = [sys.executable, "-m", "tests.zoo.parts_and_graph"]
    ran = subprocess.run(
        [*command, "--part", f"{part}/{PARTS}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    print(ran.stdout)
    many = len(small_entries((*SEEDS_BUILDING, *SEEDS_TEST))[part::PARTS])
    assert ran.stdout.startswith(f"{many} registries; parts: ")
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.nightly
@pytest.mark.parametrize("name", LEFT_OUT)
def test_those_that_are_left_out_are_proven_by_neither(name: str) -> None:
    kind, _, seed = name.partition("/")
    (entry,) = entries([int(seed)], kind)
    one = compared(entry)
    assert (decision_of(one.parts), decision_of(one.graph)) == ("not fresh", "refuted")


@pytest.mark.slow
@pytest.mark.parametrize("seed", DRAWN_SHORT)
def test_a_registry_of_groups_is_decided_alike(seed: int) -> None:
    one = compared_drawn(seed)
    assert (one.difference, decision_of(one.parts)) == ("", DRAWN_SHORT[seed])


@pytest.mark.nightly
def test_registries_of_groups_are_decided_alike() -> None:
    """In the other classes every operation asks for all names: no parts."""
    every = [*map(compared_drawn, DRAWN)]
    print(counts(every))
    assert differences(every) == []
    decided = [decision_of(each.parts) for each in every]
    assert min(decided.count("proven"), decided.count("refuted")) > 5


@pytest.mark.parametrize(
    ("parts", "graph", "differs"),
    [
        ("proven", "proven", False),
        ("proven", "order", True),
        ("proven", "not fresh", True),
        ("proven", "holds", False),
        ("order", "hidden", False),
        ("order", "proven", True),
        ("order", "cut short", True),
        ("holds", "order", False),
        ("not fresh", "order", True),
        ("not fresh", "not fresh", False),
    ],
)
def test_what_a_difference_is(parts: str, graph: str, differs: bool) -> None:
    assert bool(Compared("name", parts, graph).difference) is differs


def test_what_fails_by_chance_may_be_refuted_and_not_proven() -> None:
    assert Compared("name", "order", "holds", flaky=True).difference == ""
    assert Compared("name", "proven", "holds", flaky=True).difference != ""


def test_the_counts_are_those_of_the_verdicts() -> None:
    every = [Compared("a", "order", "hidden"), Compared("b", "holds", "proven")]
    assert counts(every) == (
        "2 registries; parts: 1 refuted, 0 proven, 0 not fresh, 1 undecided; "
        "graph: 1 refuted, 1 proven, 0 not fresh, 0 undecided"
    )
