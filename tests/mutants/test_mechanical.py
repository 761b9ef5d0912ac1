"""Each mutant of the committed sample is killed by the default run.

The killers are remembered (`mechanical.json`); the whole catalogue is tried where one
kills no more, and the file is then out of date.
"""

import pytest

from tests.mutants.mechanical import (
    MOST_EQUIVALENT,
    SAMPLE,
    Memory,
    everything,
    sample,
)
from tests.mutants.trial import Order, run

MEMORY = Memory.read()
UP_TO_DATE = "bring the file up to date: python -m tests.mutants.mechanical --write"

# So many items share the work, however many processes there are.
CHUNKS = 8


@pytest.mark.long
@pytest.mark.parametrize("number", range(CHUNKS))
def test_the_sample_is_killed(number: int) -> None:
    taken, _ = sample(MEMORY)
    names = [each.name for each in taken[number::CHUNKS]]
    killers = sorted({MEMORY.killed[name] for name in names if name in MEMORY.killed})
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
    large = {module for module, size in sizes.items() if size >= 20}
    assert large <= {each.module for each in taken}


def test_another_seed_is_another_sample() -> None:
    one, other = (sample(MEMORY, seed)[0] for seed in (1, 2))
    assert one == sample(MEMORY, 1)[0]
    assert len({each.name for each in (*one, *other)}) > SAMPLE


def test_a_mutant_that_no_scenario_meets_survives() -> None:
    # A definition that is refused is none of a listener's business.
    (trial,) = run(
        [
            Order(
                "checks:check_definition_fits:call taken away:1",
                ("scenarios/test_listeners/hears_of_nothing_else",),
                everything=False,
            )
        ]
    )
    assert (trial.outcome, trial.by, trial.how) == ("survived", "", "")


def test_a_mutant_is_killed_by_the_rest_of_the_catalogue() -> None:
    (trial,) = run(
        [
            Order(
                "checks:check_definition_fits:call taken away:1",
                ("scenarios/test_listeners/hears_of_nothing_else",),
            )
        ]
    )
    assert trial.outcome == "killed"
    assert trial.by != "scenarios/test_listeners/hears_of_nothing_else"
