"""Each mutant of the committed sample is killed by the default run.

The killers are remembered (`mechanical.json`); the whole catalogue is tried where one
kills no more, and the file is then out of date.
"""

from dataclasses import replace

import pytest

from tests.mutants.mechanical import (
    MOST_EQUIVALENT,
    SAMPLE,
    Memory,
    everything,
    sample,
)
from tests.mutants.trial import Order, Trial, run

MEMORY = Memory.read()
UP_TO_DATE = "bring the file up to date: python -m tests.mutants.mechanical --write"

# So many items share the work, however many processes there are: small ones, so that
# none is left working alone.
CHUNKS = 24


@pytest.mark.long
@pytest.mark.parametrize("number", range(CHUNKS))
def test_the_sample_is_killed(number: int) -> None:
    taken, _ = sample(MEMORY)
    names = [each.name for each in taken[number::CHUNKS]]
    # What kills must pass beside no mutant: each killer in one of the items.
    killers = sorted({*MEMORY.killed.values()})[number::CHUNKS]
    orders = [Order("", tuple(killers), everything=False)]
    orders += [MEMORY.order(name) for name in names if name not in MEMORY.equivalent]
    pristine, *trials = run(orders)
    assert (pristine.outcome, pristine.by, pristine.how) == ("survived", "", "")
    assert [each for each in trials if each.outcome != "killed"] == []
    late = {t.name: t.by for t in trials if t.by != MEMORY.killed.get(t.name)}
    assert late == {}, UP_TO_DATE


@pytest.mark.long
def test_what_is_discarded_cannot_be_imported() -> None:
    _, discarded = sample(MEMORY)
    trials = run(Order(each.name) for each in discarded)
    assert [each for each in trials if each.outcome != "discarded"] == [], UP_TO_DATE


def test_the_file_knows_the_sample() -> None:
    taken, discarded = sample(MEMORY)
    names = {each.name for each in taken}
    assert names == {*MEMORY.killed, *MEMORY.equivalent}, UP_TO_DATE
    assert {each.name for each in discarded} == {*MEMORY.discarded}, UP_TO_DATE
    assert len(names) == SAMPLE


def test_few_are_equivalent_and_each_says_why() -> None:
    assert len(MEMORY.killed) >= 100
    assert len(MEMORY.equivalent) <= MOST_EQUIVALENT
    assert not set(MEMORY.equivalent) & set(MEMORY.killed)
    assert all(len(why.split()) > 5 for why in MEMORY.equivalent.values())


def test_the_sample_is_spread_over_the_modules() -> None:
    taken, _ = sample(MEMORY)
    sizes: dict[str, int] = {}
    for each in everything():
        sizes[each.module] = sizes.get(each.module, 0) + 1
    large = {module for module, size in sizes.items() if size >= 30}
    assert large <= {each.module for each in taken}


def test_another_seed_is_another_sample() -> None:
    one, other = (sample(MEMORY, seed)[0] for seed in (1, 2))
    assert one == sample(MEMORY, 1)[0]
    assert len({each.name for each in (*one, *other)}) > SAMPLE


REFUSES = "checks:check_definition_fits:call taken away:1"
# A definition that is refused is none of its business.
BLIND = "scenarios/test_listeners/hears_of_nothing_else"


def tried(order: Order) -> Trial:
    (trial,) = run([order])
    return replace(trial, seconds=0.0)


def test_a_mutant_that_no_scenario_meets_survives() -> None:
    found = tried(Order(REFUSES, (BLIND,), everything=False))
    assert found == Trial(REFUSES, "survived")


@pytest.mark.long
def test_a_mutant_is_killed_by_the_rest_of_the_catalogue() -> None:
    found = tried(Order(REFUSES, (BLIND,)))
    assert (found.outcome, found.by != BLIND) == ("killed", True)
    without = tried(Order(REFUSES, (BLIND,), without=(BLIND, found.by)))
    assert (without.outcome, without.by not in (BLIND, found.by)) == ("killed", True)


def test_what_never_ends_is_killed_and_told() -> None:
    name, by = (
        "table:numbers:condition true:1",
        "scenarios/test_fallbacks/alias_all_or_none",
    )
    found = tried(Order(name, (by,), everything=False, seconds=2))
    assert found == Trial(name, "killed", by, "no end")


def test_what_cannot_be_imported_is_not_killed() -> None:
    name = "transition:_add_implementation:is to is not:1"
    found = tried(Order(name, (BLIND,), everything=False))
    assert (found.outcome, found.by) == ("discarded", "")
    assert found.how.startswith("UnknownOperator: no operator core::")
