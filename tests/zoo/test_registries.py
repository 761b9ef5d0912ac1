"""Every registry of the zoo is what its model says, and every class is worth having."""

import gc
import sys
from collections.abc import Iterator
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


@pytest.fixture(scope="module")
def truths() -> Iterator[dict[str, Known]]:
    """What is true of each entry, by its name."""
    found = {entry.name: known(entry) for entry in ALL}
    yield found
    # The harness scans the process for what changes; this need not be walked.
    found.clear()


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
def test_each_class_has_faulty_and_sound_ones(
    kind: str, seeds: range, truths: dict[str, Known]
) -> None:
    expected = {truths[entry.name].expected for entry in entries(seeds, kind)}
    if kind == "flaky":
        assert expected == {"flaky"}
    elif kind == "once per process":
        assert "not fresh" in expected
    else:
        assert {"faulty", "correct"} <= expected


def test_every_place_is_used_by_the_seeds_of_both() -> None:
    told = " ".join(entry.variant for entry in ALL)
    missing = [p.name for p in PLACES if f"{p.kind}: {p.name};" not in told]
    assert missing == []


def test_depths_and_lengths_reach_far(truths: dict[str, Known]) -> None:
    """Order of depth 1 to 4; registering again up to the fourth time."""
    told = {kind: [e.variant for e in ALL if e.kind == kind] for kind in CLASSES}
    depths = {each.count("True)") + each.count("False)") for each in told["order"]}
    assert {1, 2, 3, 4} <= depths
    limits = {limit for limit in (2, 3, 4) if f"limit={limit}" in str(told["again"])}
    assert limits == {2, 3, 4}
    assert {2, 3, 4, 5, 7} <= {each.oracle.length for each in truths.values()}


@pytest.mark.parametrize("part", range(4))
def test_nothing_is_vacuous(part: int, truths: dict[str, Known]) -> None:
    """Each use and each look gives two answers at least, and so does no step only."""
    constant = []
    for entry in ALL[part::4]:
        events = truths[entry.name].oracle.events
        for operation in range(entry.model.steps + entry.model.uses + 1):
            answers = {
                answer
                for (_, asked), found in events.items()
                if asked == operation
                for answer in found
            }
            made = operation < entry.model.steps and "done" in answers
            if not made and len(answers) < 2:
                constant.append((entry.name, operation, answers))
    assert constant == []
