"""The run that kills mutants of sessions, and some of those that it kills.

All of the sample is tried where it takes long: `tests/mutants/test_mechanical.py`.
"""

from collections import Counter
from dataclasses import replace

import pytest

from tests.mutants.mechanical import Memory, sample
from tests.mutants.target import SESSION
from tests.mutants.trial import Order, Trial, run
from tests.rpc.mutants.session_run import FILES, everything, parts

MEMORY = Memory.read(SESSION.file)
SOME = 6

# Nobody asks for more than is there in what only sends a payload.
PROVES = "liveness:LeaseTimes.prove:condition false:1"
BLIND = "protocol/test_parts/test_what_cannot_have_a_payload_is_refused"


def tried(*orders: Order) -> list[Trial]:
    return [replace(trial, seconds=0.0) for trial in run(orders, SESSION)]


def test_some_of_the_sample_are_killed_as_it_is_remembered() -> None:
    taken, _ = sample(SESSION, MEMORY)
    names = [each.name for each in taken if each.name in MEMORY.killed][:SOME]
    trials = tried(*map(MEMORY.order, names))
    found = {each.name: (each.outcome, each.by) for each in trials}
    assert found == {name: ("killed", MEMORY.killed[name]) for name in names}


def test_all_parts_are_named_and_come_once() -> None:
    names = everything("parts")
    assert len(names) == len({*names})
    kinds = Counter(name.partition("/")[0] for name in names)
    assert kinds["schedules"] == 100
    assert kinds["protocol"] > 200
    assert kinds["exploring"] == 12
    # Those of the module come first.
    own = list(parts("protocol/test_parts"))
    assert names[: len(own)] == own
    assert {*names} == {*everything("references")}


def test_what_plants_faults_or_draws_examples_is_no_killer() -> None:
    names = everything()
    assert not [name for name in names if "planted" in name]
    files = {file for file in FILES if not any(n.startswith(file) for n in names)}
    assert files == {"protocol/test_planted"}


def test_parameters_are_cases() -> None:
    few = "exploring/test_sessions/test_every_world_is_at_rest_in_the_end"
    assert list(parts("exploring/test_sessions")) == [f"{few}/{n}" for n in range(3)]


def test_a_mutant_that_no_part_meets_survives() -> None:
    (found,) = tried(Order(PROVES, (BLIND,), everything=False))
    assert found == Trial(PROVES, "survived")


@pytest.mark.slow
def test_a_mutant_is_killed_by_the_rest_of_the_run() -> None:
    (found,) = tried(Order(PROVES, (BLIND,)))
    assert (found.outcome, found.by != BLIND) == ("killed", True)


def test_what_cannot_be_imported_is_not_killed() -> None:
    name = "call_machine:<module>:swap:1"
    (found,) = tried(Order(name, (BLIND,), everything=False))
    assert (found.outcome, found.by) == ("discarded", "")
    assert found.how.startswith("NameError: ")


def test_a_killer_that_is_gone_is_no_killer() -> None:
    gone = ("protocol/test_gone/test_x", f"{BLIND}/7", "protocol/test_parts/test_gone")
    (found,) = tried(Order(PROVES, gone, everything=False, known=True))
    assert found == Trial(PROVES, "survived")
