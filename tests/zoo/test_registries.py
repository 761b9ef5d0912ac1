"""Every registry of the zoo is what its model says, and every class is worth having."""

import gc
import sys
from collections.abc import Hashable, Iterator
from contextlib import closing
from random import Random

import pytest

from tests.zoo.entry import Entry, Player
from tests.zoo.oracle import ends, operations, play
from tests.zoo.registries import CLASSES, PLACES, SEEDS_BUILDING, SEEDS_TEST, entries
from tests.zoo.verdicts import Known, known

ALL = [*entries(SEEDS_BUILDING), *entries(SEEDS_TEST)]
PARTS = 8
HISTORIES = 4
LONGEST = 12


@pytest.fixture
def _no_collector() -> Iterator[None]:
    gc.disable()
    yield
    gc.enable()


def differs(entry: Entry, random: Random) -> str | None:
    """A random history in which the registry is not its model, if there is one."""
    state, history = entry.model.fresh(), []
    chosen = operations(entry.model)
    with entry.living() as living, closing(Player(living)) as player:
        for _ in range(LONGEST):
            operation = random.choice(chosen)
            history.append(operation)
            after, wanted = play(entry.model, state, operation)
            found = player.play(operation)
            if (type(found), found) != (type(wanted), wanted):
                return f"{entry.name}, {history}: {found!r}, in the model {wanted!r}"
            if ends(entry.model, state, operation, wanted):
                break
            state = after
    return None


def constant(entry: Entry, truth: Known) -> Iterator[tuple[str, int, set[Hashable]]]:
    """What has one answer only, and makes nothing: steps, uses and the look."""
    for operation in range(entry.model.steps + entry.model.uses + 1):
        answers = {
            answer
            for (_, asked), found in truth.oracle.events.items()
            if asked == operation
            for answer in found
        }
        made = operation < entry.model.steps and "done" in answers
        if not made and len(answers) < 2:
            yield entry.name, operation, answers


@pytest.mark.usefixtures("_no_collector")
@pytest.mark.parametrize("part", range(PARTS))
def test_each_behaves_as_its_model(part: int) -> None:
    found = []
    for entry in ALL[part::PARTS]:
        if not entry.rate:
            random = Random(entry.name)
            found += [differs(entry, random) for _ in range(HISTORIES)]
    assert [each for each in found if each] == []


@pytest.mark.usefixtures("_no_collector")
def test_a_registry_that_is_not_its_model_is_seen() -> None:
    entry = next(entries([0], "again"))
    other = next(
        each
        for each in entries(range(3, 60), "again")
        if each.model.steps == entry.model.steps
        and each.model.uses == entry.model.uses
        and each.variant != entry.variant
    )
    mixed = Entry("mixed", 0, "", entry.model, other.build)
    random = Random(0)
    assert any(differs(mixed, random) for _ in range(200))


def test_modules_are_gone_afterwards() -> None:
    entry = next(entries([2], "module global"))
    with entry.living():
        assert entry.module in sys.modules
    assert [name for name in sys.modules if name.startswith("zoo_")] == []


def test_seeds_are_apart_and_enough() -> None:
    assert not {*SEEDS_BUILDING} & {*SEEDS_TEST}
    assert len(CLASSES) * len(SEEDS_TEST) >= 300


def test_an_entry_is_told_by_its_seed() -> None:
    again = [*entries(SEEDS_BUILDING), *entries(SEEDS_TEST)]
    assert [(e.name, e.variant) for e in again] == [(e.name, e.variant) for e in ALL]


@pytest.mark.parametrize(
    "seeds", [SEEDS_BUILDING, SEEDS_TEST], ids=["building", "test"]
)
@pytest.mark.parametrize("kind", CLASSES)
def test_each_class_is_worth_having(kind: str, seeds: range) -> None:
    """It has faulty ones and sound ones, and nothing in them is vacuous."""
    truths = [(entry, known(entry)) for entry in entries(seeds, kind)]
    expected = {truth.expected for _, truth in truths}
    if kind == "flaky":
        assert expected == {"flaky"}
    elif kind == "once per process":
        assert "not fresh" in expected
    else:
        assert {"faulty", "correct"} <= expected
    assert [found for each in truths for found in constant(*each)] == []


def test_every_place_is_used_by_the_seeds_of_both() -> None:
    told = " ".join(entry.variant for entry in ALL)
    missing = [p.name for p in PLACES if f"{p.kind}: {p.name};" not in told]
    assert missing == []


def test_depths_and_lengths_reach_far() -> None:
    """Order of depth 1 to 4; registering again up to the fourth time."""
    told = {kind: [e.variant for e in ALL if e.kind == kind] for kind in CLASSES}
    depths = {each.count("True)") + each.count("False)") for each in told["order"]}
    assert {1, 2, 3, 4} <= depths
    limits = {limit for limit in (2, 3, 4) if f"limit={limit}" in str(told["again"])}
    assert limits == {2, 3, 4}
    far = [entry for entry in ALL if entry.kind in ("order", "again")]
    assert {2, 3, 4, 5, 7} <= {known(entry).oracle.length for entry in far}
