"""Each mutant of the committed samples is killed by the run of its target.

The killers are remembered (`Target.file`); the whole run is tried where one kills no
more, and the file is then out of date.
"""

from dataclasses import replace

import pytest

from tests.mutants.mechanical import (
    MOST_EQUIVALENT,
    Memory,
    everything,
    sample,
)
from tests.mutants.target import TARGETS, Target
from tests.mutants.trial import Order, Trial, run

MEMORIES = {name: Memory.read(target.file) for name, target in TARGETS.items()}

# So many items share the work, however many processes there are: small ones, so that
# none is left working alone.
CHUNKS = {"dispatch": 8, "session": 4}

EACH = pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)


def up_to_date(target: Target) -> str:
    """What to do about it."""
    command = f"python -m tests.mutants.mechanical {target.name} --write"
    return f"bring the file up to date: {command}"


@pytest.mark.parametrize(
    ("target", "number"),
    [
        pytest.param(
            *(target, number),
            id=f"{target.name}-{number}",
            marks=pytest.mark.nightly if number % 2 else pytest.mark.slow,
        )
        for target in TARGETS.values()
        for number in range(CHUNKS[target.name])
    ],
)
def test_the_sample_is_killed(target: Target, number: int) -> None:
    memory, chunks = MEMORIES[target.name], CHUNKS[target.name]
    taken, _ = sample(target, memory)
    names = [each.name for each in taken[number::chunks]]
    # What kills must pass beside no mutant, as fast: each killer in one of the items.
    killers = sorted({*memory.killed.values()})[number::chunks]
    orders = [Order("", tuple(killers), everything=False, known=True)]
    orders += [memory.order(name) for name in names if name not in memory.equivalent]
    pristine, *trials = run(orders, target)
    assert (pristine.outcome, pristine.by, pristine.how) == ("survived", "", "")
    assert [each for each in trials if each.outcome != "killed"] == []
    late = {t.name: t.by for t in trials if t.by != memory.killed.get(t.name)}
    assert late == {}, up_to_date(target)


@pytest.mark.slow
@EACH
def test_what_is_discarded_cannot_be_imported(target: Target) -> None:
    _, discarded = sample(target, MEMORIES[target.name])
    orders = [Order(each.name) for each in discarded]
    trials = run(orders, target)
    alive = [each for each in trials if each.outcome != "discarded"]
    assert alive == [], up_to_date(target)


@EACH
def test_the_file_knows_the_sample(target: Target) -> None:
    memory = MEMORIES[target.name]
    taken, discarded = sample(target, memory)
    names = {each.name for each in taken}
    assert names == {*memory.killed, *memory.equivalent}, up_to_date(target)
    assert {each.name for each in discarded} == {*memory.discarded}, up_to_date(target)
    assert len(names) == target.sample


@EACH
def test_few_are_equivalent_and_each_says_why(target: Target) -> None:
    memory = MEMORIES[target.name]
    assert len(memory.killed) >= 100
    assert len(memory.equivalent) <= MOST_EQUIVALENT
    assert not set(memory.equivalent) & set(memory.killed)
    assert all(len(why.split()) > 5 for why in memory.equivalent.values())


@EACH
def test_the_sample_is_spread_over_the_modules(target: Target) -> None:
    taken, _ = sample(target, MEMORIES[target.name])
    sizes: dict[str, int] = {}
    for each in everything(target):
        sizes[each.module] = sizes.get(each.module, 0) + 1
    large = {module for module, size in sizes.items() if size >= 30}
    assert large <= {each.module for each in taken}


@EACH
def test_another_seed_is_another_sample(target: Target) -> None:
    memory = MEMORIES[target.name]
    one, other = (sample(target, memory, seed)[0] for seed in (1, 2))
    assert one == sample(target, memory, 1)[0]
    assert len({each.name for each in (*one, *other)}) > target.sample


REFUSES = "transition:check_definition_fits:call taken away:1"
# A definition that is refused is none of its business.
BLIND = "scenarios/test_listeners/hears_of_nothing_else"


def tried(order: Order) -> Trial:
    (trial,) = run([order])
    return replace(trial, seconds=0.0)


def test_a_mutant_that_no_scenario_meets_survives() -> None:
    found = tried(Order(REFUSES, (BLIND,), everything=False))
    assert found == Trial(REFUSES, "survived")


@pytest.mark.nightly
def test_a_mutant_is_killed_by_the_rest_of_the_catalogue() -> None:
    found = tried(Order(REFUSES, (BLIND,)))
    assert (found.outcome, found.by != BLIND) == ("killed", True)
    without = tried(Order(REFUSES, (BLIND,), without=(BLIND, found.by)))
    assert (without.outcome, without.by not in (BLIND, found.by)) == ("killed", True)


def test_what_never_ends_is_killed_and_told() -> None:
    name, by = (
        "dispatch_table:numbers:condition true:1",
        "scenarios/test_fallbacks/alias_all_or_none",
    )
    found = tried(Order(name, (by,), everything=False, seconds=2))
    assert found == Trial(name, "killed", by, "no end")


def test_a_mutant_of_a_module_that_is_gone_is_told() -> None:
    found = tried(Order("nowhere:call:call taken away:1", (BLIND,), everything=False))
    assert (found.outcome, found.how) == (
        "discarded",
        "NoSuchMutation: nowhere:call:call taken away:1",
    )


def test_what_cannot_be_imported_is_not_killed() -> None:
    name = "transition:_add_implementation:is to is not:1"
    found = tried(Order(name, (BLIND,), everything=False))
    assert (found.outcome, found.by) == ("discarded", "")
    assert found.how.startswith("LookupFailed: no operator core::")
